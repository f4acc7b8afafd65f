"""Experiments at postures instead of along motions: a tracker watching the tool, a controller read out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from armid.arrays import FloatArray
from armid.robot.robot import Robot
from armid.simulation.controller_data import read_controller, write_controller_data
from armid.simulation.scenario import Scenario, physical_robot
from armid.simulation.tracker import track_poses, write_poses
from armid.simulation.truth import SCHEMA, VERSION, description, plain


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
