"""What time a log is in: the unit of a clock nobody named, the step of a log without one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.logs.log import Channel, Clock
from armid.logs.mapping import ClockMap
from armid.logs.units import seconds
from armid.notes import Note, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockGuess:
    """Kind of clock, unit of its column, step [s] when it has none, what to say about it, and true over stamped time."""

    kind: Clock
    unit: str = "s"
    step: float | None = None
    notes: tuple[Note, ...] = ()
    gain: float = 1.0

    def times(self, stamps: FloatArray | None, offset: int, count: int) -> FloatArray:
        """Times of some rows [s]: their stamps, or counted from the row `offset` on; without any clock, the count itself."""
        with np.errstate(all="ignore"):
            if stamps is None:
                return np.arange(float(offset), float(offset + count)) * (self.step or 1.0)
            return np.asarray(stamps * (self.gain * seconds(self.unit or "s")))


_UNIT_MARGIN = 4.0
"""Units of time are a factor of 1000 apart; a step within this factor of the inferred one settles which it is."""

_MIN_STEP = 5e-5
_MAX_STEP = 0.5
"""[s] Slowest and fastest sampling of robot logs: decides the unit of a clock when no velocity is recorded."""


def clock_guess(
    clock: ClockMap, time: FloatArray | None, channels: Mapping[Channel, FloatArray], name: str
) -> ClockGuess:
    """The clock of a log from the mapping, or from its first piece when the mapping leaves it open."""
    if clock.step is not None:
        return ClockGuess(kind=Clock.STEP, step=clock.step)
    with np.errstate(all="ignore"):
        return _guessed_clock(clock, time, channels, name)


def _guessed_clock(
    clock: ClockMap, time: FloatArray | None, channels: Mapping[Channel, FloatArray], name: str
) -> ClockGuess:
    """The clock from what the numbers do."""
    step = _inferred_step(channels.get(Channel.POSITION), channels.get(Channel.VELOCITY))
    if time is None:
        return _without_clock(step, name)
    if clock.unit:
        return ClockGuess(kind=Clock.COLUMN, unit=clock.unit, gain=clock.gain)
    return _guessed_unit(time, step, name)


def _without_clock(step: float | None, name: str) -> ClockGuess:
    if step is None:
        text = "no time column and no step: give the sampling step with --step or in a mapping (clock: {step: 0.01})"
        return ClockGuess(kind=Clock.UNKNOWN, notes=(Note("clock-unknown", Severity.ERROR, text, name),))
    text = (
        f"no time column: a step of {step * 1e3:.4g} ms makes the velocity the derivative of the position; "
        "give the true one with --step or in a mapping"
    )
    return ClockGuess(kind=Clock.INFERRED, step=step, notes=(Note("clock-inferred", Severity.WARNING, text, name),))


def _guessed_unit(time: FloatArray, step: float | None, name: str) -> ClockGuess:
    """The unit in which the recorded steps agree with the motion, or at least are those of a robot log."""
    steps = np.diff(time)
    steps = steps[np.isfinite(steps) & (steps > 0)]
    median = float(np.median(steps)) if len(steps) else 1.0
    for unit in ("s", "ms", "us", "ns"):
        dt = median * seconds(unit)
        fits = step / _UNIT_MARGIN < dt < step * _UNIT_MARGIN if step is not None else _MIN_STEP <= dt <= _MAX_STEP
        if fits:
            if unit == "s":
                return ClockGuess(kind=Clock.COLUMN)
            why = "the velocity says so" if step is not None else "the step would be absurd otherwise"
            text = f"time is taken to be in {unit} ({why}): name the unit in a mapping if it is not"
            return ClockGuess(
                kind=Clock.COLUMN, unit=unit, notes=(Note("clock-unit-guess", Severity.INFO, text, name),)
            )
    return ClockGuess(kind=Clock.COLUMN)


def _inferred_step(position: FloatArray | None, velocity: FloatArray | None) -> float | None:
    """The step h that makes `q[k+1] - q[k] = h (qd[k] + qd[k+1]) / 2` fit best over all joints; None when it does not fit.

    Least squares over all joints and samples, after thinning to moving samples; accepted when it explains
    most of the change of position.
    """
    if position is None or velocity is None or len(position) < 20:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        # Ten steps at a time: repeated rows and quantisation average out.
        change = position[10:] - position[:-10]
        # Sum of trapezia: half the end points.
        total = np.cumsum(np.vstack([np.zeros((1, velocity.shape[1])), velocity]), axis=0)
        travel = total[10:-1] - total[:-11] + 0.5 * (velocity[10:] - velocity[:-10])
        good = np.isfinite(change).all(axis=1) & np.isfinite(travel).all(axis=1)
        x, y = travel[good].ravel(), change[good].ravel()
        power, cross, energy = float(x @ x), float(x @ y), float(y @ y)
    if not (np.isfinite([power, cross, energy]).all() and power > 0.0 and energy > 0.0 and cross > 0.0):
        return None
    explained = cross * cross / (power * energy)
    return cross / power if explained > 0.9 else None
