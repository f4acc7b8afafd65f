"""Experiments at postures instead of along motions: a tracker watching the tool, a controller read out."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray, samples
from armid.errors import InputError
from armid.robot.robot import Robot
from armid.simulation.controller_data import read_controller, write_controller_data
from armid.simulation.scenario import Scenario, physical_robot
from armid.simulation.tracker import track_poses, write_poses
from armid.simulation.truth import SCHEMA, VERSION, description, plain


def load_postures(path: Path, robot: Robot) -> FloatArray:
    """Joint positions from a CSV with a header: columns `q1..qn`, `q_<joint>` or the joints' names; others are ignored.

    Returns:
        [rad or m], shape [n_poses, n_joints].
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise InputError(path, f"cannot be read: {problem}") from None
    header = [name.strip() for name in rows[0]] if rows else []
    spellings = (
        [f"q{i + 1}" for i in range(robot.n_joints)],
        [f"q_{name}" for name in robot.joint_names],
        list(robot.joint_names),
    )
    wanted = next((names for names in spellings if set(names) <= set(header)), None)
    if wanted is None:
        raise InputError(path, f"header {','.join(header)[:60]!r}", f"expected columns q1..q{robot.n_joints}")
    columns = [header.index(name) for name in wanted]
    try:
        values = np.array([[float(row[k]) for k in columns] for row in rows[1:] if row])
    except (ValueError, IndexError) as problem:
        raise InputError(path, f"a row without all its numbers: {problem}") from None
    if not len(values):
        raise InputError(path, "no postures below the header")
    return samples(f"{path}: q", values, robot.n_joints)


def write_posture_experiment(
    declared: Robot, q: FloatArray, scenario: Scenario, directory: Path, *, tracked: bool
) -> list[Path]:
    """Measured tool poses (`poses.csv`) or the controller's model (`controller.npz`) at postures, and the truth."""
    robot = physical_robot(declared, scenario)
    payload = scenario.physics.payload
    if tracked:
        poses = track_poses(
            robot, q, scenario.tracker, errors=scenario.joint_errors, payload=payload, seed=scenario.seed
        )
        measured = write_poses(poses, directory / "poses.csv")
    else:
        measured = write_controller_data(
            read_controller(robot, q, payload=payload, seed=scenario.seed), directory / "controller.npz"
        )
    truth: dict[str, Any] = {
        "format": SCHEMA,
        "version": VERSION,
        "robot": description(declared),
        "seed": scenario.seed,
        "inertial": robot.inertial.tolist(),
        "payload": None if payload is None else payload.tolist(),
        "gravity": {"true": robot.gravity.tolist(), "declared": declared.gravity.tolist()},
        "scenario": plain(scenario),
    }
    path = measured.with_suffix(".truth.json")
    path.write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")
    return [measured, path]
