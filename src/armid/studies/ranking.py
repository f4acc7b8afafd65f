"""Which of several motions teaches most: each is run on the embedded robot and identified; [Halper2024], algorithm 2.

A condition number says how errors may spread, not how large they will be. Running the candidates tells what a motion
achieves with noise, filters and friction as they are, beside what its information matrix predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.estimate import Estimate
from armid.identifiability.expectation import trajectory_condition
from armid.identification.pipeline import run_identification
from armid.identification.settings import Identification
from armid.logs.check import check_log
from armid.logs.conditioning import Conditioning
from armid.motions.fourier import FourierTrajectory
from armid.motions.needed_torque import torque_limits
from armid.motions.spline import SplineTrajectory
from armid.motions.trajectory import Trajectory
from armid.parameters.effects import Effects, TorqueSide
from armid.robot.robot import Robot
from armid.simulation.measure import measure
from armid.simulation.plant import build_plant
from armid.simulation.run import run_motion
from armid.simulation.sensors import typical_sensors
from armid.simulation.truth import true_parameters

_EFFECTS = Effects(viscous=True, coulomb=True, offset=True, rotor_inertia=True, torques=TorqueSide.MOTOR)
"""What a run of the embedded robot shows at its motors."""

_SCALE_FLOOR = 0.05
"""Of the largest true value with the same unit: errors of parameters that are nearly zero are not divided by nothing."""


@dataclass(frozen=True, eq=False)
class Ranked:
    """One motion after its run.

    Args:
        index: in the order they were given.
        condition_number: of its commanded motion.
        predicted: root mean square of the relative standard deviations the estimate states.
        achieved: root mean square of the relative errors against the truth.
    """

    index: int
    condition_number: float
    predicted: float
    achieved: float


def rank_motions(robot: Robot, motions: Sequence[Trajectory], *, seed: int = 0) -> tuple[Ranked, ...]:
    """Runs each motion on the embedded robot with typical sensors, identifies, and sorts by the error achieved.

    Args:
        robot: its own parameters are the truth.
        motions: periodic ones run twice; the first half of each run is identified.
        seed: of the sensors' noise.
    """
    truth = true_parameters(build_plant(robot), _EFFECTS.torques)
    return tuple(sorted((_run_one(robot, k, m, truth, seed) for k, m in enumerate(motions)), key=lambda r: r.achieved))


def _run_one(robot: Robot, index: int, motion: Trajectory, truth: dict[str, float], seed: int) -> Ranked:
    """One motion, run, logged, identified and scored."""
    twice = motion.repeated(2) if isinstance(motion, FourierTrajectory | SplineTrajectory) else motion
    log = measure(run_motion(robot, twice), typical_sensors(torque_limits(robot)), declared=robot, seed=seed)
    train, held_out = check_log(log, robot).split(0.5)
    settings = Identification(effects=_EFFECTS, conditioning=Conditioning(), seed=seed)
    estimate = run_identification(robot, [train], [held_out], settings).estimate
    true = _true_base(estimate, truth)
    scale = _error_scale(estimate, true)
    return Ranked(
        index,
        trajectory_condition(robot, _EFFECTS, motion),
        _rms(estimate.standard_deviations / scale),
        _rms((estimate.values - true) / scale),
    )


def _true_base(estimate: Estimate, truth: dict[str, float]) -> FloatArray:
    """True values of the estimated base parameters, shape [r]."""
    terms = (estimate.base.terms(k) for k in range(len(estimate)))
    return np.array([sum(weight * truth[name] for name, weight in row.items()) for row in terms])


def _error_scale(estimate: Estimate, true: FloatArray) -> FloatArray:
    """What errors are divided by, shape [r]."""
    units = np.array(estimate.units)
    largest = {unit: float(np.abs(true[units == unit]).max()) for unit in set(units.tolist())}
    return np.maximum(np.abs(true), [_SCALE_FLOOR * max(largest[unit], 1e-9) for unit in units.tolist()])


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))
