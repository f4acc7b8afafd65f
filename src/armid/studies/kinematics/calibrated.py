"""The kinematic half of the study: optimised poses, a tracker, a calibration, and how good it is at fresh poses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.calibration.calibrate import Calibration, calibrate
from armid.calibration.correction import correction
from armid.calibration.tool_error import Statistics, statistics
from armid.design.poses import PoseMethod, PoseSettings, Purpose, design_poses
from armid.kinematics.calibrated import predicted_poses
from armid.kinematics.measurement import Measurements, Observations, Observed
from armid.kinematics.rotations import rotation_log
from armid.notes import Note, Severity
from armid.outcome import Verdict
from armid.robot.record import record, restored
from armid.robot.robot import Robot
from armid.simulation.tracker import TrackedPoses, Tracker, track_poses
from armid.studies.kinematics.misbuilt import Misbuilt, beside

_FRESH = 200
"""Poses at which the calibrated arm is compared with the real one."""

_TRACKED = "led_fixture"
"""The frame the instrument of [Kolyubin2017] tracks, where a description has it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class KinematicStep:
    """What the calibration of the study found; a few plain values, so that an interrupted study can keep them.

    Args:
        robot: the calibrated arm.
        correction: what was found, as `calibration.correction` writes it.
        identified: names of the fitted parameters.
        verdict: of the calibration.
        notes: of the calibration.
        poses: that were measured [rad or m], shape [n_poses, n_joints].
        condition_number, initial_condition_number: of these poses, and of as many random ones.
        position_before, position_after: distance of the real target from the predicted one at fresh poses [m].
        orientation_before, orientation_after: the same for orientation [rad].
    """

    robot: Robot
    correction: Mapping[str, Any]
    identified: tuple[str, ...]
    verdict: Verdict
    notes: tuple[Note, ...]
    poses: FloatArray
    condition_number: float
    initial_condition_number: float
    position_before: Statistics
    position_after: Statistics
    orientation_before: Statistics
    orientation_after: Statistics

    def as_dict(self) -> dict[str, Any]:
        """As plain values, every number to its last bit; `stored_step` is the way back."""
        return {
            "robot": record(self.robot),
            "correction": dict(self.correction),
            "identified": list(self.identified),
            "verdict": str(self.verdict),
            "notes": [note.as_dict() for note in self.notes],
            "poses": self.poses.tolist(),
            "condition_number": record(self.condition_number),
            "initial_condition_number": record(self.initial_condition_number),
            "position_before": self.position_before.as_dict(),
            "position_after": self.position_after.as_dict(),
            "orientation_before": self.orientation_before.as_dict(),
            "orientation_after": self.orientation_after.as_dict(),
        }


_KEPT = "the calibration of an interrupted study"


def stored_step(stored: dict[str, Any]) -> KinematicStep:
    """The step that `KinematicStep.as_dict` stands for."""
    return KinematicStep(
        robot=restored(stored["robot"], _KEPT),
        correction=stored["correction"],
        identified=tuple(stored["identified"]),
        verdict=Verdict(stored["verdict"]),
        notes=tuple(Note(**{**note, "severity": Severity(note["severity"])}) for note in stored["notes"]),
        poses=np.array(stored["poses"], dtype=float),
        condition_number=float(restored(stored["condition_number"], _KEPT)),
        initial_condition_number=float(restored(stored["initial_condition_number"], _KEPT)),
        position_before=Statistics(**stored["position_before"]),
        position_after=Statistics(**stored["position_after"]),
        orientation_before=Statistics(**stored["orientation_before"]),
        orientation_after=Statistics(**stored["orientation_after"]),
    )


def kinematic_step(
    nominal: Robot, real: Misbuilt, *, count: int, position_noise: float, orientation_noise: float, seed: int
) -> KinematicStep:
    """Chooses poses on the described arm, measures them on the real one, calibrates.

    Args:
        nominal: the arm as described.
        real: the arm that is there.
        count: of poses.
        position_noise, orientation_noise: of the tracker, per axis [m, rad].
        seed: of poses and noise.
    """
    frame = _TRACKED if any(f.name == _TRACKED for f in nominal.frames) else None
    settings = PoseSettings(count=count, frame=frame, method=PoseMethod.EXCHANGE, transitions=False)
    design = design_poses(nominal, Purpose.CALIBRATION, settings, seed=seed)
    tracker = Tracker(beside(), np.linalg.inv(nominal.tip.T_link_frame) @ real.T_link_target)
    noisy = replace(tracker, position_noise=position_noise, orientation_noise=orientation_noise)
    seen = track_poses(real.robot, design.poses, noisy, seed=seed)
    calibration = calibrate(nominal, _measurements_of(seen), candidates=(real.errors,), seed=seed)
    lower, upper = nominal.limit("lower"), nominal.limit("upper")
    span = np.where(np.isfinite(upper - lower), upper - lower, 0.0)
    fresh = np.where(np.isfinite(lower), lower, 0.0) + span * np.random.default_rng([seed, 7]).random(
        (_FRESH, len(span))
    )
    truth = track_poses(real.robot, fresh, tracker).T_tracker_target
    before, after = (_errors(calibration, values, fresh, truth) for values in _solutions(calibration))
    return KinematicStep(
        robot=calibration.robot,
        correction=correction(nominal, calibration.fit),
        identified=calibration.identified,
        verdict=calibration.verdict,
        notes=calibration.notes,
        poses=design.poses,
        condition_number=design.condition_number,
        initial_condition_number=design.initial_condition_number,
        position_before=before[0],
        position_after=after[0],
        orientation_before=before[1],
        orientation_after=after[1],
    )


def _measurements_of(seen: TrackedPoses) -> Measurements:
    """Tracked poses as a calibration takes them."""
    T = seen.T_tracker_target
    sigma = np.repeat([seen.position_noise, seen.orientation_noise], 3)
    rows = np.arange(len(T))
    return Measurements(
        q=seen.q,
        observations=(
            Observations(quantity=Observed.POSE, rows=rows, position=T[:, :3, 3], rotation=T[:, :3, :3], sigma=sigma),
        ),
    )


def _solutions(calibration: Calibration) -> tuple[FloatArray, FloatArray]:
    """Parameters with the frames fitted alone, and with everything."""
    return calibration.fit.before.values, calibration.fit.after.values


def _errors(
    calibration: Calibration, values: FloatArray, q: FloatArray, truth: FloatArray
) -> tuple[Statistics, Statistics]:
    """Position and orientation errors of the predicted target."""
    model = calibration.fit.model
    T = predicted_poses(model, values, q, setup=next(iter(model.setups)), target=next(iter(model.targets)))
    turned = rotation_log(truth[:, :3, :3] @ np.swapaxes(T[:, :3, :3], 1, 2))
    away = np.linalg.norm(truth[:, :3, 3] - T[:, :3, 3], axis=1)
    return statistics(away), statistics(np.linalg.norm(turned, axis=1))
