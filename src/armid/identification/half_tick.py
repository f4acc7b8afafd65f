"""Torque paired with the motion of the half control tick it belongs to.

A controller that sets its torque at every tick holds it until the next one: on average the arm feels it half a tick later than it
was written down, T/2 with T at most the time between two samples. A torque sensor has no such lag. A log does not say which of
the two it holds; the motion does. A delay common to all torques is one column beside the base parameters (`rows.imperfections`),
its size s believed to lie between -T/2 and 0. Where the training motion shows it, torque is moved there; what remains unknown of
it, d(base)/ds times its deviation, widens intervals along that one direction. Where both sides of the drives were recorded, the
delay is common to both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.estimate import Estimate
from armid.estimation.imperfections import FOLDS, BlockFactors, block_spreads
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.recording import torque_source
from armid.estimation.reversals import classed_information
from armid.estimation.run_maker import RunMaker, choice_samples
from armid.identifiability.base import BaseParameters
from armid.identification.data import Data
from armid.identification.gains import DriveGains, gain_values
from armid.identification.imperfection_rows import RowsBeside, reference_of
from armid.identification.moving import made_to_learn
from armid.identification.settings import Identification
from armid.logs.conditioning import VelocitySource
from armid.notes import Note, Severity
from armid.robot.robot import Robot
from armid.rows.imperfections import Family, imperfections

LONGEST_TICK = 0.002
"""[s]; drives set their torque at 500 Hz or faster, and a slower log leaves ticks out."""

_SHOWN = 3.0
"""Standard deviations from zero at which the motion shows that torque was held."""

_NEGLIGIBLE = 0.05
"""Of half a tick; a smaller shift is not worth reading the recordings again."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldTorque:
    """What is known of the tick.

    Args:
        shift: by which torque is late against the motion [s]: between -T/2 and 0.
        deviation: of what remains unknown of it [s].
        direction: change of the base parameters per second of shift, shape [r].
        base: of these parameters.
    """

    shift: float
    deviation: float
    direction: FloatArray
    base: BaseParameters

    def widened(self, estimate: Estimate) -> Estimate:
        """The estimate with what is not known of the tick in its covariance: C + v v^T."""
        if not np.array_equal(estimate.base.independent, self.base.independent):
            return estimate
        v = self.deviation * self.direction
        return estimate.with_covariance(estimate.covariance + np.outer(v, v), estimate.covariance_kind)


def half_tick(data: Data) -> float:
    """Half the time between two recorded samples of the slowest training recording, or of the longest tick [s]."""
    steps = [recording.duration / max(len(recording) - 1, 1) for recording in data.recordings[0]]
    return 0.5 * min(max(steps), LONGEST_TICK)


def held_torque(robot: Robot, data: Data, base: BaseParameters) -> HeldTorque | None:
    """The common delay of the torques as the training motion shows it; None where it is no matter of a tick.

    Within what a tick can do the delay is believed to lie anywhere: of deviation T/2 / sqrt(3) around zero. Its deviation is the
    larger of the formula's and of what leaving out blocks of time changes. A delay beyond the tick is a fault or an imperfection.

    Args:
        robot: as the runs have it.
        data: with the training runs.
        base: parameters that the training motion determines.
    """
    factors = _factors(robot, data, base)
    size, deviation, _ = factors.alone(0)
    if not np.isfinite(deviation):
        return None
    nothing = np.zeros((0, factors.base + 2))
    deviation = max(deviation, float(block_spreads(factors.base, factors.factors, nothing)[0]))
    limit = half_tick(data)
    if not -limit - _SHOWN * deviation < size < _SHOWN * deviation:
        return None
    believed = 1.0 / (limit**2 / 3.0)
    left = sqrt(1.0 / (deviation**-2 + believed))
    shift = float(np.clip(size * left**2 / deviation**2, -limit, 0.0))
    shown = size < -_SHOWN * deviation and shift < -_NEGLIGIBLE * limit
    return HeldTorque(
        shift=shift if shown else 0.0,
        deviation=left if shown else sqrt(left**2 + shift**2),
        direction=-factors.whole.base_given[: len(base), 0],
        base=base,
    )


def _factors(robot: Robot, data: Data, base: BaseParameters) -> BlockFactors:
    """Rows `[A z y]` of the training motion with the common delay as z, by blocks of time.

    When friction turns around is free beside the base parameters: a joint's friction that turns early is no torque that is.
    """
    estimate = WeightedLeastSquares().fit(classed_information(data.train), base)
    recorded = data.conditioning.velocity is VelocitySource.MEASURED
    reference = reference_of(data.train, estimate.standard, recorded_velocity=recorded)
    effects = torque_source(data.train).effects
    beside = imperfections(robot, effects, reference, (Family.REVERSAL,)) if effects.coulomb else ()
    late = imperfections(robot, effects, reference, (Family.COMMON_DELAY,))
    rows = RowsBeside(data.train, base, (*beside, *late))
    blocks = rows.blocks(reference, rows.noise(estimate), folds=2 * FOLDS)
    return BlockFactors(len(base) + len(beside), blocks.factors, blocks.tolerances[len(beside) :])


def paired_with_motion(
    robot: Robot, data: Data, settings: Identification, gains: DriveGains | None, base: BaseParameters
) -> tuple[Data, HeldTorque | None]:
    """Data whose torque is moved to the motion of the half tick it belongs to, where the motion shows that.

    Args:
        robot: as the runs have it.
        data: with linear friction.
        settings: see there.
        gains: of the drives, when currents were measured.
        base: parameters that the training motion determines.
    """
    found = held_torque(robot, data, base)
    if found is None or not found.shift:
        return data, found
    conditioning = replace(data.conditioning, torque_delay=found.shift)
    maker = RunMaker(
        robot=robot,
        effects=settings.effects.linear,
        shapes=data.shapes,
        conditioning=conditioning,
        gains=gain_values(gains),
    )
    train, held_out = made_to_learn(maker, data.recordings, data.workers).runs
    text = (
        f"torque acts {-1e3 * found.shift:.2f} ms after it was recorded, as one held for a control tick does: "
        "it is paired with the motion of that time"
    )
    return (
        replace(
            data,
            train=train,
            held_out=held_out,
            conditioning=conditioning,
            choice=choice_samples(data.recordings[0], conditioning, data.workers),
            notes=(*data.notes, Note("torque-held", Severity.INFO, text)),
        ),
        found,
    )
