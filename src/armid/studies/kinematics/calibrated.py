"""The kinematic half of the study: optimised poses, a tracker, a calibration, and how good it is at fresh poses."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.calibration.calibrate import Calibration, calibrate
from armid.calibration.tool_error import Statistics, statistics
from armid.design.poses import PoseDesign, PoseMethod, PoseSettings, Purpose, design_poses
from armid.kinematics.calibrated import predicted_poses
from armid.kinematics.measurement import Measurements, Observations, Observed
from armid.kinematics.rotations import rotation_log
from armid.robot.robot import Robot
from armid.simulation.tracker import TrackedPoses, Tracker, track_poses
from armid.studies.kinematics.misbuilt import Misbuilt, beside

_FRESH = 200
"""Poses at which the calibrated arm is compared with the real one."""

_TRACKED = "led_fixture"
"""The frame the instrument of [Kolyubin2017] tracks, where a description has it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class KinematicStep:
    """What the calibration of the study found.

    Args:
        design: the poses that were measured.
        calibration: from their measurements.
        position_before, position_after: distance of the real target from the predicted one at fresh poses [m].
        orientation_before, orientation_after: the same for orientation [rad].
    """

    design: PoseDesign
    calibration: Calibration
    position_before: Statistics
    position_after: Statistics
    orientation_before: Statistics
    orientation_after: Statistics


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
        design=design,
        calibration=calibration,
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
