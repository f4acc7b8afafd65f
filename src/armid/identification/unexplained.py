"""Torque of a joint that neither the model nor noise explains: how much, and what it goes with.

Every fault that is looked for by name has a column of its own. What has none (ripple of a gear, play, a sensor that saturates
softly, one that holds its values) is left over all the same, so one row for every joint bounds all the rest together: between

    sqrt(error^2 - (1.5 noise)^2) and error,    over the joint's torque, on held-out motion,

the noise known from the spectrum of the raw torque. What bodies or friction have taken up is not in it.

Where it is more than negligible, it is held against what a joint does: waves of its position, the mean residual by position, by
speed, by acceleration and by torque, learnt from the training motion and tried on the held-out one, where chance explains
nothing. What goes with one of them is listed however little it is; the rest where it is more than ordinary, or much more than on
the training motion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.estimate import NORMAL_95
from armid.estimation.recording import torque_source
from armid.estimation.run import Run, each_run
from armid.estimation.runs import lengths_of
from armid.identification.evidence import Evidence
from armid.identification.faults import Answer, Fault
from armid.identification.held_out import JudgedJoint, judged_joints
from armid.identification.thresholds import (
    FAULT_EXCLUDED,
    FLOOR_RATIO,
    GOES_WITH,
    GROWTH,
    NEGLIGIBLE,
    NEGLIGIBLE_ERROR,
)
from armid.identification.torque_error import JointErrors

KIND = "unexplained torque"

_LOOKED_AT = 40_000
"""Samples of a part, spread over its motion: a ripple of fifty to a turn is still seen a few times in every one of its waves."""

_FEWEST = 30
"""Samples in a bin: its mean is then known to a fifth of what is left over."""

_MOST_BINS = 400
"""Over the range of a training motion."""

_FEWEST_WAVES = 2.0
"""Of a ripple over the range of a training motion; what has fewer is weight, a spring or a cable."""

_WAVE_SAMPLES = 4.0
"""In a wave, at the joint's middling speed, that show it."""

_MOST_WAVES = 500
"""Ripples that are tried; of a motion with more samples than can be told apart every so many are left out."""

_SCANNED = 2000
"""Samples that choose among them."""

_NOISY = "may be noise of its sensor: move it faster, or record longer"

_GREW = (
    "what changes with time (friction that warms up, a sensor that drifts), another load, or motion beyond that of the training; "
    "exchange the two recordings"
)

_GOES_WITH = (
    "goes with its position: ripple of a gear or a sensor, an encoder that is not round; turn this joint alone, slowly to and "
    "fro, and look at its torque over the angle",
    "goes with its speed: another shape of friction (--friction with asymmetric or stribeck), or play",
    "goes with its acceleration: inertia of a rotor (--rotor-inertia), or torque that is late",
    "goes with its torque: a sensor that is not linear, or saturates; hold weighed loads in several poses",
)
"""By position, speed, acceleration and torque of the joint: what it may be, and what would tell."""

_IN_WAVES = (
    "goes with its position, in {number:.3g} waves a turn (of 2 pi rad or m): ripple of a gear, a motor or a sensor; turn this "
    "joint alone, slowly to and fro, and look at its torque over the angle"
)

_WITH_NOTHING = "goes with neither its position, speed, acceleration nor torque: look at it over time and at its sensor"


def unexplained_faults(
    joints: Sequence[JointErrors],
    evidence: Evidence,
    train: Sequence[Run],
    held_out: Sequence[Run],
    standard: FloatArray,
) -> tuple[Fault, ...]:
    """One answer for every joint that moves in the held-out motion; none without such a motion.

    Args:
        joints: errors of the consistent estimate.
        evidence: what the motions were, and the noise.
        train, held_out: runs as the model predicts them.
        standard: consistent parameters.
    """
    judged = [joint for joint in judged_joints(joints, evidence) if isfinite(joint.relative)] if len(held_out) else []
    sizes = {joint.name: _Left.of(joint) for joint in judged}
    if not any(size.asks for size in sizes.values()):
        return tuple(size.fault() for size in sizes.values())
    learnt, tried = (_gathered(runs, standard) for runs in (train, held_out))
    channels = train[0].channels
    return tuple(
        size.fault(*_driver(learnt, tried, channels.index(name))) if size.asks else size.fault()
        for name, size in sizes.items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Left:
    """What is left of a joint's torque, as shares of it.

    Args:
        name: of the joint.
        low, middle, high: with as much noise as there may be, as is likely, and none.
        tolerance: up to which it is ordinary.
        growth: from the training motion to the held-out motion.
    """

    name: str
    low: float
    middle: float
    high: float
    tolerance: float
    growth: float

    @staticmethod
    def of(joint: JudgedJoint) -> _Left:
        def beyond(noise: float) -> float:
            return sqrt(max(joint.error**2 - noise**2, 0.0)) / joint.torque

        return _Left(
            name=joint.name,
            low=beyond(FLOOR_RATIO.value * joint.noise),
            middle=beyond(joint.noise),
            high=beyond(0.0),
            tolerance=NEGLIGIBLE.value * joint.limit,
            growth=joint.error / max(joint.train, 1e-300),
        )

    @property
    def open(self) -> bool:
        """Whether it is beyond what is ordinary, or may be twice that."""
        return self.low > self.tolerance or self.high > FAULT_EXCLUDED.value * self.tolerance

    @property
    def grew(self) -> bool:
        """Whether it is beyond noise, and far more than on the training motion."""
        return self.low > NEGLIGIBLE_ERROR.value and self.growth > GROWTH.value

    @property
    def asks(self) -> bool:
        """Whether it is worth looking what it goes with."""
        return self.open or self.low > NEGLIGIBLE_ERROR.value

    def fault(self, driver: str = "", share: float = 0.0) -> Fault:
        """As a row of what could be wrong.

        Args:
            driver: what it goes with, in words; nothing.
            share: of its square that goes with it, on held-out motion.
        """
        # What other motion repeats is neither noise nor chance, however little it is: bodies have taken up another part of it.
        open_ = self.open or self.grew or bool(driver)
        return Fault(
            kind=KIND,
            joint=self.name,
            estimate=self.middle,
            standard_deviation=(self.high - self.low) / (2.0 * NORMAL_95),
            low=self.low,
            high=self.high,
            unit="1",
            tolerance=self.tolerance,
            answer=Answer.UNDECIDABLE if open_ else Answer.EXCLUDED,
            explains=share,
            experiment=self._experiment(driver, share) if open_ else "",
        )

    def _experiment(self, driver: str, share: float) -> str:
        """What it may be, and what would tell."""
        if driver:
            return f"{100 * share:.0f} % of its square {driver}"
        if self.grew:
            return f"{self.growth:.1f} times that of the training motion: {_GREW}"
        return _WITH_NOTHING if self.low > self.tolerance else _NOISY


def _driver(learnt: FloatArray, tried: FloatArray, channel: int) -> tuple[str, float]:
    """What of a joint's doing explains most of its residual, in words, if any explains enough; which share of its square."""
    (*doing, residual), (*there, other) = learnt[channel], tried[channel]
    shares = {
        words: _explained(one, another, residual, other)
        for words, one, another in zip(_GOES_WITH, doing, there, strict=True)
    }
    number, share = _rippled(doing[0], there[0], residual, other)
    shares[_IN_WAVES.format(number=number)] = share
    best = max(shares, key=lambda words: shares[words])
    return (best, shares[best]) if shares[best] > GOES_WITH.value else ("", 0.0)


def _rippled(learnt: FloatArray, tried: FloatArray, residual: FloatArray, other: FloatArray) -> tuple[float, float]:
    """How many waves of the position there are in 2 pi radians or metres, and their share of a held-out residual's squares.

    Of the waves that the training motion shows, the one that explains most of its residual. Bins would need hundreds of samples
    in every one of its waves; a wave has three numbers.

    Args:
        learnt, tried: position in either motion.
        residual, other: in the same samples.
    """
    steps = np.abs(np.diff(learnt))
    reach, step = float(np.ptp(learnt)), float(np.median(steps)) if len(steps) else 0.0
    if not (step > 0.0 and np.any(residual) and np.any(other)):
        return 0.0, 0.0
    least, most = 2.0 * np.pi * _FEWEST_WAVES / reach, 2.0 * np.pi / (_WAVE_SAMPLES * step)
    count = min(_MOST_WAVES, int((most - least) * reach / np.pi))
    if count < 1:
        return 0.0, 0.0
    few = slice(None, None, max(1, len(learnt) // _SCANNED))
    waves = [_Wave.through(k, learnt[few], residual[few]) for k in np.linspace(least, most, count)]
    best = max(waves, key=lambda wave: wave.explains)
    left = other - best.at(tried)
    return best.number, max(1.0 - float(np.sum(left**2) / np.sum(other**2)), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wave:
    """A wave of the position.

    Args:
        number: of waves in 2 pi radians or metres.
        sine, cosine: its parts.
        explains: square that it takes away of the residual it was put through.
    """

    number: float
    sine: float
    cosine: float
    explains: float

    @staticmethod
    def through(number: float, position: FloatArray, residual: FloatArray) -> _Wave:
        """By least squares."""
        parts = np.column_stack([np.sin(number * position), np.cos(number * position)])
        told = parts.T @ residual
        sine, cosine = np.linalg.lstsq(parts.T @ parts, told, rcond=None)[0]
        return _Wave(number=number, sine=sine, cosine=cosine, explains=float(told @ [sine, cosine]))

    def at(self, position: FloatArray) -> FloatArray:
        """Torque."""
        return self.sine * np.sin(self.number * position) + self.cosine * np.cos(self.number * position)


def _explained(learnt: FloatArray, tried: FloatArray, residual: FloatArray, other: FloatArray) -> float:
    """Share of the squares of a held-out residual that the training's mean residual by bins of a driver takes away.

    Args:
        learnt, tried: the driver in either motion.
        residual, other: in the same samples.
    """
    bins = int(min(_MOST_BINS, len(learnt) // _FEWEST))
    if bins < 2 or not np.ptp(learnt) > 0.0 or not np.any(other):
        return 0.0
    edges = np.linspace(learnt.min(), learnt.max(), bins + 1)[1:-1]
    place, there = np.searchsorted(edges, learnt), np.searchsorted(edges, tried)
    count = np.bincount(place, minlength=bins)
    mean = np.bincount(place, residual, minlength=bins) / np.maximum(count, 1)
    mean[count < _FEWEST // 3] = 0.0
    within = (tried >= learnt.min()) & (tried <= learnt.max())
    left = other - np.where(within, mean[there], 0.0)
    return max(1.0 - float(np.sum(left**2) / np.sum(other**2)), 0.0)


def _gathered(runs: Sequence[Run], standard: FloatArray) -> FloatArray:
    """Position, speed, acceleration, predicted torque and residual of every channel, shape [n_channels, 5, n]."""
    stride = max(1, sum(lengths_of(runs)) // _LOOKED_AT)
    return np.concatenate(list(each_run(runs, _Doing(standard, stride))), axis=2)


@dataclass(frozen=True, eq=False)
class _Doing:
    """What every channel's joint does in one run, every so many samples, beside its residual."""

    standard: FloatArray
    stride: int

    def __call__(self, run: Run) -> FloatArray:
        n = torque_source([run]).robot.n_joints
        residual = run.residuals(self.standard)
        states = [run.inputs[:, k * n : (k + 1) * n] for k in range(3)]
        joint = np.arange(residual.shape[1]) % n
        every = [*(state[:, joint] for state in states), run.y - residual, residual]
        return np.stack([values[:: self.stride].T for values in every], axis=1)
