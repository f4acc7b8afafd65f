"""What the motion of some runs was: where joints stood still, how far and fast they went, and whether one motion repeats another.

Friction of a joint at rest is anything up to its Coulomb friction. A sample at rest is therefore charged only for what it is
beyond that band; a sample in motion for all of its error.

What a joint carries is its torque without the constant that the model holds as an offset: a sensor far off its zero, or a column
that is another quantity, would else be predicted to a few per cent by a constant alone, whatever the joint does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import nan
from typing import Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.estimation.recording import torque_source
from armid.estimation.run import Run, each_run, gathered
from armid.identification.thresholds import REPEAT_DISTANCE, REST_SECONDS, REST_SPEED
from armid.identification.torque_error import number_or_nan
from armid.parameters.space import named_parameters
from armid.signals.spline import CubicSpline

STATIC_FRICTION = ("coulomb", "motor_coulomb", "stribeck", "coupled_coulomb", "coulomb_load")
"""Quantities of a joint whose torque at rest is not known: anything up to them."""

_OFFSETS = ("offset", "motor_offset")
"""Quantities of a joint that are the same torque always."""

_WINDOW_SECONDS = 2.0
"""A stretch of motion long enough to be recognised, short enough that a part of a repeated motion is found."""
_WINDOW_POINTS = 20
_MOST_WINDOWS = 40
_MOST_OFFSETS = 20_000
_GRID_HZ = 50.0
"""Of the grid on which motions are laid over each other, whatever their own rates: at 2 rad/s half a step is 0.02 rad."""
_COURSE_POINTS = 1 << 17
"""Kept of a training motion with its result, ten a second: three and a half hours, and four megabytes of seven joints."""
_STEP = round(_WINDOW_SECONDS * _GRID_HZ / _WINDOW_POINTS)
"""Of that grid between two points of a window: the same time in every motion, or one motion at two rates is two motions."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class JointMotion:
    """One channel over the runs of one part: errors in motion and at rest, and where the joint went.

    Args:
        name: of the channel.
        rmse_moving, torque_moving: root mean square of error and torque while the joint moves [N m or N], in recorded units as
            `TorqueErrors` are; NaN when it never does. Torque without what the offset makes of its mean.
        rmse_rest, torque_rest: the same at rest, the error beyond what Coulomb friction can hold; NaN when it never rests.
        rest_share: of the samples.
        seconds_moving: how long it moves [s].
        low, high: positions reached [rad or m].
        speed: largest [rad/s or m/s].
        offset: constant torque that the model holds beside bodies and friction [N m or N].
    """

    name: str
    rmse_moving: float = nan
    torque_moving: float = nan
    rmse_rest: float = nan
    torque_rest: float = nan
    rest_share: float = 0.0
    seconds_moving: float = 0.0
    low: float = nan
    high: float = nan
    speed: float = nan
    offset: float = 0.0

    @property
    def relative_moving(self) -> float:
        """Error over torque while the joint moves."""
        return self.rmse_moving / self.torque_moving if self.torque_moving > 0.0 else nan

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> JointMotion:
        return JointMotion(
            name=values["name"], **{key: number_or_nan(value) for key, value in values.items() if key != "name"}
        )


def largest_speeds(runs: Sequence[Run]) -> FloatArray:
    """Largest speed of every joint [rad/s or m/s]; zeros without runs."""
    found = list(each_run(runs, _largest_speeds))
    return np.max(found, axis=0) if found else np.zeros(0)


def _largest_speeds(run: Run) -> FloatArray:
    n = torque_source([run]).robot.n_joints
    return np.asarray(np.abs(run.inputs[:, n : 2 * n]).max(axis=0, initial=0.0))


def at_rest(run: Run, speeds: FloatArray) -> Mask:
    """Samples during which a joint stands still, shape [n_samples, n_joints].

    Args:
        run: the motion.
        speeds: largest speed of every joint in the training motion [rad/s or m/s].
    """
    n = torque_source([run]).robot.n_joints
    slow = np.abs(run.inputs[:, n : 2 * n]) < REST_SPEED.value * np.maximum(speeds, 1e-12)
    return _long_runs(slow, run.segments, max(1, round(REST_SECONDS.value * run.rate)))


def still_channels(run: Run, speeds: FloatArray) -> Mask:
    """The same for every channel, that of its joint, shape [n_samples, n_channels]."""
    rest = at_rest(run, speeds)
    return rest[:, np.arange(run.y.shape[1]) % rest.shape[1]]


def _long_runs(mask: Mask, segments: Sequence[tuple[int, int]], fewest: int) -> Mask:
    """The mask without stretches shorter than the fewest samples; a reversal is no rest."""
    out = np.zeros_like(mask)
    for start, stop in segments:
        for j in range(mask.shape[1]):
            edges = np.flatnonzero(np.diff(np.concatenate([[0], mask[start:stop, j].astype(np.int8), [0]])))
            for first, last in zip(edges[::2], edges[1::2], strict=True):
                if last - first >= fewest:
                    out[start + first : start + last, j] = True
    return out


def beyond_static(run: Run, residual: FloatArray, standard: FloatArray, rest: Mask) -> FloatArray:
    """Residuals in which a sample at rest keeps only what Coulomb friction cannot hold, shape like the residual.

    Args:
        run: the motion.
        residual: of the model [N m or N], shape [n_samples, n_channels].
        standard: its full parameters.
        rest: see `at_rest`, shape [n_samples, n_joints].
    """
    if not rest.any():
        return residual
    n = rest.shape[1]
    parameters = named_parameters(tuple(run.source.columns))
    static = np.where([one.quantity in STATIC_FRICTION for one in parameters], standard, 0.0)
    band = static_friction(tuple(run.source.columns), standard, n)
    without = residual + run.y - run.residuals(static)
    out = np.array(residual)
    for k in range(residual.shape[1]):
        here = rest[:, k % n]
        size = np.maximum(np.abs(without[here, k]) - band[k % n], 0.0)
        out[here, k] = np.copysign(size, without[here, k])
    return out


def held_offset(run: Run, standard: FloatArray) -> FloatArray:
    """Constant torque of every channel that a model holds as the offsets of its joints, shape [n_channels]."""
    parameters = named_parameters(tuple(run.source.columns))
    offsets = np.where([one.quantity in _OFFSETS for one in parameters], standard, 0.0)
    first = run.window(0, 1)
    return np.asarray((first.y - first.residuals(offsets))[0])


def static_friction(names: tuple[str, ...], standard: FloatArray, n_joints: int) -> FloatArray:
    """Friction that may hold every joint at rest [N m or N], shape [n_joints].

    Friction that grows with load is not counted: without the load its size is not known, and it is the smaller part.

    Args:
        names: of the parameters.
        standard: their values.
        n_joints: of the arm.
    """
    band = np.zeros(n_joints)
    for parameter, value in zip(named_parameters(names), standard, strict=True):
        if value > 0.0 and parameter.quantity in STATIC_FRICTION and parameter.quantity != "coulomb_load":
            band[parameter.body] += value
    return band


class MotionSums:
    """Errors of one model in motion and at rest, run by run, and windows of the course of the positions.

    Args:
        channels: names.
        speeds: largest speed of every joint in the training motion [rad/s or m/s].
        standard: full parameters of the model.
    """

    def __init__(self, channels: Sequence[str], speeds: FloatArray, standard: FloatArray) -> None:
        self._channels, self._standard = tuple(channels), standard
        self.speeds = speeds
        k, n = len(self._channels), len(speeds)
        self._error, self._size, self._sum, self._count = (np.zeros((2, k)) for _ in range(4))
        self._low, self._high, self._speed = np.full(n, np.inf), np.full(n, -np.inf), np.zeros(n)
        self._seconds, self._offset = np.zeros(k), np.zeros(k)
        self._windows: list[FloatArray] = []

    def add(self, run: Run, residual: FloatArray) -> None:
        """One more run with the residuals of the model."""
        n = len(self.speeds)
        charged = beyond_static(run, residual, self._standard, at_rest(run, self.speeds))
        still = still_channels(run, self.speeds)
        error, torque = run.as_recorded(charged), run.as_recorded(run.y)
        self._offset = run.as_recorded(held_offset(run, self._standard))
        for part, mask in enumerate((~still, still)):
            self._error[part] += np.sum(error**2, axis=0, where=mask)
            self._size[part] += np.sum(torque**2, axis=0, where=mask)
            self._sum[part] += np.sum(torque, axis=0, where=mask)
            self._count[part] += mask.sum(axis=0)
        self._seconds += (~still).sum(axis=0) / run.rate
        q, qd = run.inputs[:, :n], run.inputs[:, n : 2 * n]
        self._low, self._high = np.minimum(self._low, q.min(axis=0)), np.maximum(self._high, q.max(axis=0))
        self._speed = np.maximum(self._speed, np.abs(qd).max(axis=0))
        self._windows += [window for course in _courses(run, n) for window in windows_of(course)]

    def merge(self, other: MotionSums) -> None:
        """Those of further runs."""
        self._error, self._size = self._error + other._error, self._size + other._size
        self._sum = self._sum + other._sum
        self._count, self._seconds = self._count + other._count, self._seconds + other._seconds
        self._low, self._high = np.minimum(self._low, other._low), np.maximum(self._high, other._high)
        self._speed = np.maximum(self._speed, other._speed)
        self._offset = other._offset
        self._windows += other._windows

    def joints(self) -> tuple[JointMotion, ...]:
        """Per channel."""
        n = len(self.speeds)
        with np.errstate(divide="ignore", invalid="ignore"):
            rmse, torque = np.sqrt(self._error / self._count), self._torque()
            share = self._count[1] / self._count.sum(axis=0)
        return tuple(
            JointMotion(
                name=name,
                rmse_moving=float(rmse[0, k]),
                torque_moving=float(torque[0, k]),
                rmse_rest=float(rmse[1, k]),
                torque_rest=float(torque[1, k]),
                rest_share=float(share[k]),
                seconds_moving=float(self._seconds[k]),
                low=float(self._low[k % n]),
                high=float(self._high[k % n]),
                speed=float(self._speed[k % n]),
                offset=float(self._offset[k]),
            )
            for k, name in enumerate(self._channels)
        )

    def _torque(self) -> FloatArray:
        """Root mean square torque in motion and at rest, without what the offset makes of its mean, shape [2, n_channels].

        An offset against the mean, or beyond it, is held by something else: the torque is not more for it.
        """
        mean = self._sum / self._count
        constant = np.clip(self._offset, np.minimum(mean, 0.0), np.maximum(mean, 0.0))
        return np.asarray(np.sqrt(np.maximum(self._size / self._count - (2.0 * mean - constant) * constant, 0.0)))

    def repeats(self, known: MotionSums, runs: Sequence[Run]) -> float:
        """Share of this motion that another one has gone through already; NaN when nothing moves.

        Args:
            known: of the other motion.
            runs: of it, gone through where they are.
        """
        sought = SoughtWindows.among(self._windows, known._low, known._high)
        return float(np.mean(gathered(runs, sought, _either))) if len(runs) and sought.windows else nan

    def course(self) -> FloatArray:
        """Windows one after the other, ten poses a second, shape [n, n_joints]: `repeats_course` knows this motion again by them.

        Of very long motion the first hours.
        """
        kept = self._windows[: _COURSE_POINTS // _WINDOW_POINTS]
        return np.concatenate([np.empty((0, len(self.speeds))), *kept])

    def repeats_course(self, course: FloatArray) -> float:
        """Share of this motion that another one has gone through already; NaN when nothing moves.

        Args:
            course: of the other motion, see `course`.
        """
        if not len(course):
            return nan
        sought = SoughtWindows.among(self._windows, course.min(axis=0), course.max(axis=0))
        return float(np.mean(sought.within(_between(course)))) if sought.windows else nan


def on_grid(rate: float, course: FloatArray) -> FloatArray:
    """A course between its own samples, at the times on which all motions are compared, shape [n_times, n_joints].

    Args:
        rate: of the course [Hz].
        course: positions, shape [n_samples, n_joints].
    """
    own = np.arange(len(course)) / rate
    times = np.arange(int((len(course) - 1) * _GRID_HZ / rate + 1e-9) + 1) / _GRID_HZ
    return np.column_stack([np.interp(times, own, joint) for joint in course.T])


def joined_course(*parts: FloatArray | None) -> FloatArray | None:
    """Courses one after the other, of those that are known; None when none is."""
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known else None


def _between(course: FloatArray) -> FloatArray:
    """A course of ten poses a second on the grid, by cubic splines: straight lines would cut the corners of fast motion."""
    own = np.arange(0.0, _STEP * len(course), _STEP)
    return CubicSpline.through(own, course)(np.arange(own[-1] + 1.0))


def windows_of(course: FloatArray) -> list[FloatArray]:
    """Evenly placed windows of a course, shape [points, n_joints] each.

    Args:
        course: positions, see `on_grid`.
    """
    length = _STEP * _WINDOW_POINTS
    return [np.array(course[start : start + length : _STEP]) for start in range(0, len(course) - length + 1, length)]


def _courses(run: Run, n: int) -> list[FloatArray]:
    """Positions of n joints over uniform stretches, see `on_grid`."""
    return [on_grid(run.rate, run.inputs[start:stop, :n]) for start, stop in run.segments if stop > start]


@dataclass(frozen=True, eq=False)
class SoughtWindows:
    """Windows of one motion that are looked for in another.

    Args:
        windows: scaled, of the joints that tell motions apart, shape [points, joints] each.
        span: of every joint in the other motion [rad or m], shape [n_joints].
        telling: joints that move so much there that they tell motions apart, shape [n_joints].
    """

    windows: tuple[FloatArray, ...]
    span: FloatArray
    telling: Mask

    @staticmethod
    def among(windows: Sequence[FloatArray], low: FloatArray, high: FloatArray) -> SoughtWindows:
        """Some of the windows in which something moves, for a motion between these positions."""
        span = np.maximum(high - low, 1e-9)
        # A joint that hardly moves tells motions apart no better than its noise.
        telling = high - low > 0.1 * np.max(high - low, initial=0.0)
        scaled = [window[:, telling] / span[telling] for window in windows]
        moving = [window for window in scaled if np.ptp(window, axis=0).max(initial=0.0) > 0.1]
        return SoughtWindows(tuple(moving[:: max(1, -(-len(moving) // _MOST_WINDOWS))]), span, telling)

    def __call__(self, run: Run) -> Mask:
        """Which of them a run goes through."""
        return _either([self.within(course) for course in _courses(run, len(self.span))])

    def within(self, course: FloatArray) -> Mask:
        """Which of them lie within a small distance of a stretch of a course; see `on_grid`."""
        scaled = np.ascontiguousarray((course[:, self.telling] / self.span[self.telling]).T)
        return np.array([_nearest(scaled, window) < REPEAT_DISTANCE.value for window in self.windows])


def _either(found: Sequence[Mask]) -> Mask:
    return np.asarray(np.any(found, axis=0))


def _nearest(course: FloatArray, window: FloatArray) -> float:
    """Largest distance of a window from the nearest stretch of a course, both scaled; infinite when none is near.

    Args:
        course: positions on the grid, shape [n_joints, n_samples].
        window: shape [points, n_joints].
    """
    count = course.shape[1] - _STEP * (len(window) - 1)
    if count < 1:
        return np.inf
    starts = np.arange(0, count, max(1, -(-count // _MOST_OFFSETS)))
    worst = np.zeros(len(starts))
    for k, point in enumerate(window):
        # Joint by joint: most stretches are too far away in the first one already.
        for joint, place in zip(course, point, strict=True):
            away = np.abs(joint[starts + k * _STEP] - place)
            near = away < REPEAT_DISTANCE.value
            starts, worst = starts[near], np.maximum(worst[near], away[near])
            if not len(starts):
                return np.inf
    return float(worst.min())
