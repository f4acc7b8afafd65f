"""Experiments at postures instead of along motions: a tracker watching the tool, a controller read out."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.documents import plain, write_json
from armid.errors import InputError
from armid.robot.robot import Robot
from armid.simulation.controller_data import ControllerData, read_controller, write_controller_data
from armid.simulation.scenario import Scenario, physical_robot
from armid.simulation.tracker import TrackedPoses, track_poses, write_poses
from armid.simulation.truth import SCHEMA, VERSION, description, settings_values


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


def postures_of(postures: str | Path | npt.ArrayLike, robot: Robot) -> FloatArray:
    """Joint positions from a CSV file, or from an array of shape [n_poses, n_joints]."""
    if isinstance(postures, str | Path):
        return load_postures(Path(postures), robot)
    return samples("postures", np.asarray(postures, dtype=np.float64), robot.n_joints)


@dataclass(frozen=True, eq=False, kw_only=True)
class PostureExperiment:
    """What was measured at postures.

    Args:
        declared: the arm as its users believe it to be.
        robot: the physical arm.
        scenario: what was simulated.
        measured: tool poses, or the controller's model.
    """

    declared: Robot
    robot: Robot
    scenario: Scenario
    measured: TrackedPoses | ControllerData

    @property
    def truth(self) -> dict[str, Any]:
        """What it may be scored against, as plain values."""
        payload = self.scenario.physics.payload
        out: dict[str, Any] = plain(
            {
                "format": SCHEMA,
                "version": VERSION,
                "robot": description(self.declared),
                "seed": self.scenario.seed,
                "inertial": self.robot.inertial,
                "payload": payload,
                "gravity": {"true": self.robot.gravity, "declared": self.declared.gravity},
                "scenario": settings_values(self.scenario),
            }
        )
        return out


def run_postures(declared: Robot, q: FloatArray, scenario: Scenario, *, tracked: bool) -> PostureExperiment:
    """Measures tool poses, or reads the controller's model, at postures.

    Args:
        declared: the arm as described.
        q: [rad or m], shape [n_poses, n_joints].
        scenario: which specimen, tracker and encoders.
        tracked: tool poses by a tracker; otherwise the controller's model.
    """
    robot, payload = physical_robot(declared, scenario), scenario.physics.payload
    measured: TrackedPoses | ControllerData
    if tracked:
        measured = track_poses(
            robot, q, scenario.tracker, errors=scenario.joint_errors, payload=payload, seed=scenario.seed
        )
    else:
        measured = read_controller(robot, q, payload=payload, seed=scenario.seed)
    return PostureExperiment(declared=declared, robot=robot, scenario=scenario, measured=measured)


def write_posture_experiment(experiment: PostureExperiment, directory: Path) -> tuple[Path, ...]:
    """Writes `poses.csv` or `controller.npz`, and the truth beside it."""
    if isinstance(experiment.measured, TrackedPoses):
        file = write_poses(experiment.measured, directory / "poses.csv")
    else:
        file = write_controller_data(experiment.measured, directory / "controller.npz")
    return file, write_json(file.with_suffix(".truth.json"), experiment.truth)
