"""Experiments at postures instead of along motions: a tracker watching the tool, a controller read out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.documents import plain, write_json
from armid.folders import answer_folder
from armid.motions.postures import load_postures
from armid.robot.robot import Robot
from armid.simulation.controller_data import ControllerData, read_controller, write_controller_data
from armid.simulation.scenario import Scenario, physical_robot
from armid.simulation.tracker import TrackedPoses, track_poses, write_poses
from armid.simulation.truth import SCHEMA, VERSION, description, settings_values


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
    with answer_folder(directory, "simulated postures"):
        if isinstance(experiment.measured, TrackedPoses):
            file = write_poses(experiment.measured, directory / "poses.csv")
        else:
            file = write_controller_data(experiment.measured, directory / "controller.npz")
        return file, write_json(file.with_suffix(".truth.json"), experiment.truth)
