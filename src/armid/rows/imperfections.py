"""What sensors and friction may have that no model has: each imperfection as a column of torque with a tolerance.

An imperfection of size s changes the recorded torque by s times a known direction, the derivative of the prediction:

    y = A(x) pi + sum_k s_k z_k,    s_k ~ N(0, (factor * tolerance_k)^2)

Sizes are errors of the *recording*: a torque gain of +0.1 recorded 1.1 times the torque, a zero of +1 degree recorded angles one
degree too large, a delay of +3 ms recorded torque 3 ms late, a clock of +0.01 stamped 1.01 s for every second. Shapes of
friction are torques [N m or N] at the joint's largest training speed, load or position; beyond these they stay what they were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.kernels.evaluate import residuals
from armid.kernels.gradients import prediction_jacobian
from armid.kernels.source import RowSource
from armid.parameters.effects import Effects, TorqueSide
from armid.parameters.space import OwnerKind, Parameter, named_parameters
from armid.robot.described import described_values
from armid.robot.robot import Robot
from armid.rows.filtered import FilteredTorqueRows
from armid.rows.gravity import GravityRows
from armid.rows.imperfection_families import (
    AS_DESCRIBED,
    COSINE,
    EVERY_RECORDING,
    KINDS,
    MOMENTS,
    POSITION_ALONE,
    SINE,
    STEPS,
    STRIBECK_SCALES,
    WITH_VELOCITIES,
    ColumnReference,
    Family,
    Imperfection,
    imperfections,
)
from armid.rows.lengths import LengthColumns, half_way, length_torque
from armid.rows.presliding import followed

__all__ = [
    "AS_DESCRIBED",
    "COSINE",
    "EVERY_RECORDING",
    "KINDS",
    "MOMENTS",
    "POSITION_ALONE",
    "SINE",
    "STEPS",
    "STRIBECK_SCALES",
    "WITH_VELOCITIES",
    "ColumnReference",
    "Columns",
    "Family",
    "Imperfection",
    "Motion",
    "drift_curve",
    "imperfections",
    "level_axes",
    "tilted",
]


@dataclass(frozen=True, eq=False, kw_only=True)
class Motion:
    """A stretch of rows as columns are computed on.

    Args:
        source: of the torque rows.
        robot, effects, loaded: behind them.
        inputs: shape [n_samples, len(source.inputs)]; positions, velocities, accelerations first.
        rate: [Hz].
        segments: (start, stop) of uniform sampling.
        elapsed: share of all recordings that has gone by at every sample, 0 to 1, shape [n_samples].
        elapsed_alone: the same of its own recording.
        every: only every so many samples are wanted.
        recorded: torque at every sample, shape [n_samples, n_channels]; None where only motion is known.
    """

    source: RowSource
    robot: Robot
    effects: Effects
    loaded: bool
    inputs: FloatArray
    rate: float
    segments: tuple[tuple[int, int], ...]
    elapsed: FloatArray
    elapsed_alone: FloatArray
    every: int = 1
    recorded: FloatArray | None = None


class Columns:
    """Columns of imperfections along one motion; what several share is computed once.

    Args:
        motion: see there.
        reference: see there.
    """

    def __init__(self, motion: Motion, reference: ColumnReference) -> None:
        self._m, self._r = motion, reference
        self._n, self._channels = motion.robot.n_joints, len(motion.source.channels)
        self._x = motion.inputs[:: motion.every]
        self._friction: dict[tuple[int, bool], FloatArray] = {}
        self._makers: dict[Family, Callable[[Imperfection], FloatArray]] = {
            Family.ZERO: self._zero,
            Family.ZERO_DRIFT: self._zero_changing,
            Family.SCALE: self._scale,
            Family.CLOCK: self._clock,
            Family.COMMON_DELAY: self._common_delay,
            Family.TILT: self._tilt,
            Family.GEAR_RATIO: self._gear_ratio,
            Family.WEIGHT: self._weight,
            Family.REVERSAL: self._turned_late,
            Family.LENGTH: self._length,
            Family.ECCENTRICITY: self._eccentricity,
            Family.ENCODER_DELAY: self._behind,
            Family.PLAY: self._play,
        }

    def of(self, wanted: Sequence[Imperfection]) -> FloatArray:
        """Change of the recorded torque per unit of each, at the samples wanted, shape [n, n_channels, len(wanted)]."""
        out = np.zeros((len(self._x), self._channels, len(wanted)))
        for k, item in enumerate(wanted):
            maker = self._makers.get(item.family)
            if maker is not None:
                out[:, :, k] = maker(item)
            elif item.joint is not None:
                out[:, item.joint, k] = self._on_one_joint(item, item.joint)
                if item.linear:
                    # Beyond the training's speeds a shape stays what it was, and so must what it is taken without.
                    out[:, item.joint, k] -= self.linear_friction(item.joint, within=True) @ np.array(item.linear)
        return out

    def of_length(self, item: Imperfection, share: float) -> FloatArray:
        """Change of the recorded torque by a length described too long by a share: all of it, not its derivative."""
        j = int(item.joint or 0)
        return -length_torque(self._lengths_of(half_way(self._m.robot, j, share)), j, share)

    @cached_property
    def torque(self) -> FloatArray:
        """Predicted at all samples, shape [n_samples, n_channels]."""
        return self._predicted(self._m.inputs, self._r.standard)

    @cached_property
    def load(self) -> FloatArray:
        """Of the links alone, relative to the largest in training, at most 1, shape [n_samples, n_channels]."""
        links = np.array([not one.of_joint for one in named_parameters(tuple(self._m.source.columns))])
        rigid = self._predicted(self._x, np.where(links, self._r.standard, 0.0))
        return np.clip(np.abs(rigid) / np.maximum(self._r.load, 1e-12), 0.0, 1.0)

    def _predicted(self, inputs: FloatArray, standard: FloatArray) -> FloatArray:
        return -residuals(self._m.source, inputs, np.zeros((len(inputs), self._channels)), standard)

    @cached_property
    def _jacobian(self) -> FloatArray:
        return prediction_jacobian(self._m.source, self._x, self._r.standard)

    @cached_property
    def _speed(self) -> FloatArray:
        """Relative to the largest in training, between -1 and 1."""
        qd = self._x[:, self._n : 2 * self._n]
        return np.asarray(np.clip(qd / np.maximum(self._r.speed, 1e-12), -1.0, 1.0))

    @cached_property
    def _direction(self) -> FloatArray:
        """Of Coulomb friction: as the rows have it, low-passed and with presliding, else the sign of the velocity."""
        return self._direction_of(self._x)

    @property
    def _turns(self) -> bool:
        """Whether the rows are given the direction of Coulomb friction."""
        return isinstance(self._m.source, FilteredTorqueRows)

    def _direction_of(self, inputs: FloatArray) -> FloatArray:
        n = self._n
        if self._turns:
            return inputs[:, 3 * n : 4 * n]
        return np.asarray(np.sign(inputs[:, n : 2 * n]))

    def linear_friction(self, j: int, *, within: bool = False) -> FloatArray:
        """What viscous friction, Coulomb friction and offset of a drive multiply, those the effects have, shape [n, 0 to 3].

        Args:
            j: drive.
            within: velocities beyond the training's largest count as that.
        """
        if (j, within) not in self._friction:
            parts = {
                "viscous": self._speed[:, j] * self._r.speed[j] if within else self._x[:, self._n + j],
                "coulomb": self._direction[:, j],
                "offset": np.ones(len(self._x)),
            }
            words = self._m.effects.friction
            columns = np.column_stack([np.empty((len(self._x), 0)), *(parts[word] for word in words)])
            self._friction[j, within] = columns
        return self._friction[j, within]

    def _mixed(self, item: Imperfection, j: int) -> FloatArray:
        """What a sensor reads whose gain is not one number (by sign, turning, load, past), or that feels another joint."""
        torque = self.torque[:: self._m.every]
        own = torque[:, j if item.other is None else item.other]
        match item.family:
            case Family.DIRECTION_GAIN:
                return 0.5 * np.abs(own)
            case Family.TURNING_GAIN:
                return np.asarray(0.5 * self._direction[:, j] * own)
            case Family.LOAD_GAIN:
                return np.asarray(own * np.abs(own) / max(self._r.load[j], 1e-12))
            case Family.POSITION_GAIN:
                return np.asarray(own * self._wave(item, j))
            case Family.HYSTERESIS:
                return -0.5 * self._behind_torque(j, item.tolerance)[:: self._m.every]
            case _:
                return np.asarray(own)

    def _wave(self, item: Imperfection, j: int) -> FloatArray:
        """What a gain that is not constant goes with: a wave of the angle, or the position of a slide [m]."""
        q = self._x[:, j]
        match item.part:
            case "sine":
                return np.asarray(np.sin(q))
            case "cosine":
                return np.asarray(np.cos(q))
            case "sine of twice":
                return np.asarray(np.sin(2.0 * q))
            case "cosine of twice":
                return np.asarray(np.cos(2.0 * q))
            case _:
                return q

    def _behind_torque(self, j: int, width: float) -> FloatArray:
        """Whether torque of a joint rises or falls, between -1 and 1: it has turned around once it changed by this width.

        As recorded: noise of the acceleration moves predicted torque to and fro, and what follows that agrees with what is left.
        """
        torque = self.torque if self._m.recorded is None else self._m.recorded
        out = np.zeros(len(torque))
        for start, stop in self._m.segments:
            out[start:stop] = followed(torque[start:stop, j], width)
        return out

    def _on_one_joint(self, item: Imperfection, j: int) -> FloatArray:
        v, way = self._speed[:, j], self._direction[:, j]
        match item.family:
            case Family.GAIN:
                return self.torque[:: self._m.every, j]
            case Family.DELAY:
                return -self._rate_of_change(self.torque[:, j])[:: self._m.every]
            case Family.DRIFT | Family.SLOW_DRIFT | Family.GAIN_DRIFT | Family.FRICTION_DRIFT:
                return self._changing(item, j)
            case (
                Family.DIRECTION_GAIN
                | Family.TURNING_GAIN
                | Family.LOAD_GAIN
                | Family.POSITION_GAIN
                | Family.CROSSTALK
                | Family.HYSTERESIS
            ):
                return self._mixed(item, j)
            case Family.SPRING:
                return self._x[:, j]
            case Family.ASYMMETRIC:
                return np.abs(v)
            case Family.QUADRATIC:
                return v * np.abs(v)
            case Family.CUBIC:
                return v**3
            case Family.LOAD:
                return way * self.load[:, j]
            case Family.LOAD_SPEED:
                return v * self.load[:, j]
            case Family.STRIBECK:
                return way * np.exp(-np.abs(v) / item.scale)
            case Family.POSITION_SINE | Family.POSITION_COSINE:
                wave = np.sin if item.family is Family.POSITION_SINE else np.cos
                return np.asarray(wave(self._x[:, j]))
            case Family.ROTOR:
                return self._x[:, 2 * self._n + j]
            case _:
                raise AssertionError(item.family)

    def _curve(self, item: Imperfection) -> FloatArray:
        """How much of what changes along a recording is there at the samples wanted."""
        elapsed = self._m.elapsed_alone if item.part == EVERY_RECORDING else self._m.elapsed
        return drift_curve(item, elapsed[:: self._m.every])

    def _changing(self, item: Imperfection, j: int) -> FloatArray:
        """Torque, gain or friction that is another at the end of the recording than at its begin."""
        curve = self._curve(item)
        match item.family:
            case Family.GAIN_DRIFT:
                return self.torque[:: self._m.every, j] * curve
            case Family.FRICTION_DRIFT:
                return 0.5 * (self._direction[:, j] + self._speed[:, j]) * curve
            case _:
                return curve

    def _turned_late(self, item: Imperfection) -> FloatArray:
        """Change of torque per second by which a drive's Coulomb friction follows its velocity, where it is felt."""
        j = int(item.joint or 0)
        turning = -self._rate_of_change(self._direction_of(self._m.inputs)[:, j])[:: self._m.every]
        out = np.zeros((len(self._x), self._channels))
        for channel, quantities in self._felt_friction(j).items():
            names = [Parameter(OwnerKind.JOINT, j, quantity, "").name for quantity in quantities]
            out[:, channel] = sum(self._r.standard[self._m.source.columns.index(name)] for name in names) * turning
        return out

    def _felt_friction(self, j: int) -> dict[int, tuple[str, ...]]:
        """Channels that feel a drive's Coulomb friction, with the quantities they feel."""
        match self._m.effects.torques:
            case TorqueSide.BOTH:
                return {j: ("coulomb",), self._n + j: ("coulomb", "motor_coulomb")}
            case TorqueSide.DIFFERENCE:
                return {j: ("motor_coulomb",)}
            case _:
                return {j: ("coulomb",)}

    def _rate_of_change(self, values: FloatArray) -> FloatArray:
        out = np.zeros_like(values)
        for start, stop in self._m.segments:
            if stop - start > 1:
                out[start:stop] = np.gradient(values[start:stop], 1.0 / self._m.rate)
        return out

    def _zero(self, item: Imperfection) -> FloatArray:
        return -self._jacobian[:, :, item.joint]

    def _zero_changing(self, item: Imperfection) -> FloatArray:
        return self._zero(item) * self._curve(item)[:, np.newaxis]

    def _scale(self, item: Imperfection) -> FloatArray:
        places = [order * self._n + int(item.joint or 0) for order in range(3)]
        return -np.einsum("nck,nk->nc", self._jacobian[:, :, places], self._x[:, places])

    def _eccentricity(self, item: Imperfection) -> FloatArray:
        """An angle read as q + s w(q), with a velocity and an acceleration to match."""
        j = int(item.joint or 0)
        places = [order * self._n + j for order in range(3)]
        q, qd, qdd = self._x[:, places].T
        wave, slope = (np.sin(q), np.cos(q)) if item.part == SINE else (np.cos(q), -np.sin(q))
        error = np.column_stack([wave, slope * qd, slope * qdd - wave * qd**2])
        return -np.einsum("nck,nk->nc", self._jacobian[:, :, places], error)

    def _behind(self, item: Imperfection) -> FloatArray:
        """Angle, velocity and acceleration of one joint as they were a while ago, and the direction of its friction with them."""
        n, j, x = self._n, int(item.joint or 0), self._m.inputs
        jerk = self._rate_of_change(x[:, 2 * n + j])[:: self._m.every]
        changes = [self._x[:, n + j], self._x[:, 2 * n + j], jerk]
        if self._turns:
            changes.append(self._rate_of_change(x[:, 3 * n + j])[:: self._m.every])
        places = [order * n + j for order in range(len(changes))]
        return np.asarray(np.einsum("nck,nk->nc", self._jacobian[:, :, places], np.column_stack(changes)))

    def _play(self, item: Imperfection) -> FloatArray:
        """An angle read half the play behind where the joint is, on either way, with a velocity and an acceleration to match."""
        j = int(item.joint or 0)
        behind = self._direction_of(self._m.inputs)[:, j]
        orders = [behind]
        if self._turns and item.part != POSITION_ALONE:
            orders.append(self._rate_of_change(behind))
            orders.append(self._rate_of_change(orders[1]))
        places = [order * self._n + j for order in range(len(orders))]
        read = 0.5 * np.column_stack(orders)[:: self._m.every]
        return np.asarray(np.einsum("nck,nk->nc", self._jacobian[:, :, places], read))

    def _gear_ratio(self, item: Imperfection) -> FloatArray:
        """Torque multiplied, the angle divided: that much gain, and as much less scale."""
        out, j = -self._scale(item), int(item.joint or 0)
        out[:, j] += self.torque[:: self._m.every, j]
        return out

    def _weight(self, item: Imperfection) -> FloatArray:
        robot, source = self._m.robot, self._m.source
        if item.part != AS_DESCRIBED:
            return -self._holding_torque(robot, self._r.standard)
        return -self._holding_torque(robot, described_values(robot, named_parameters(tuple(source.columns))))

    @cached_property
    def _lengths(self) -> LengthColumns:
        return self._lengths_of(self._m.robot)

    def _lengths_of(self, robot: Robot) -> LengthColumns:
        return LengthColumns(
            robot,
            self._m.effects,
            loaded=self._m.loaded,
            motion=self._x[:, : 3 * self._n],
            standard=self._r.standard,
        )

    def _length(self, item: Imperfection) -> FloatArray:
        return -self._lengths.per_share(int(item.joint or 0))

    def _clock(self, item: Imperfection) -> FloatArray:
        n, x = self._n, self._x
        speed, acceleration = slice(n, 2 * n), slice(2 * n, 3 * n)
        slower = np.einsum("nck,nk->nc", self._jacobian[:, :, acceleration], x[:, acceleration])
        if self._r.recorded_velocity and item.part != WITH_VELOCITIES:
            return slower
        return 2.0 * slower + np.einsum("nck,nk->nc", self._jacobian[:, :, speed], x[:, speed])

    def _common_delay(self, item: Imperfection) -> FloatArray:
        return -np.column_stack([self._rate_of_change(column)[:: self._m.every] for column in self.torque.T])

    def _tilt(self, item: Imperfection) -> FloatArray:
        return self._holding_torque(tilted(self._m.robot, item.part), self._r.standard)

    def _holding_torque(self, robot: Robot, standard: FloatArray) -> FloatArray:
        """Of links with these parameters, and of the payload where it was carried, under a gravity, shape [n, n_channels].

        As rows: what the pose alone decides is evaluated once, however many models are asked about along the same motion.
        """
        rows = GravityRows(robot, self._m.effects, loaded=self._m.loaded)
        q = self._x[:, : self._n]
        return -residuals(rows, q, np.zeros((len(q), self._channels)), standard)


@lru_cache(maxsize=8)
def tilted(robot: Robot, part: str) -> Robot:
    """The arm under the change of its gravity per unit of tilt; one object, so that its rows are recorded once."""
    axis = level_axes(robot.gravity)[0 if part == "first" else 1]
    return robot.with_gravity(np.cross(axis, robot.gravity))


def drift_curve(item: Imperfection, elapsed: FloatArray) -> FloatArray:
    """Torque per unit of a drift's size along a recording, shape [n_samples].

    Args:
        item: a drift.
        elapsed: share of the recording that has gone by, 0 to 1, shape [n_samples].
    """
    if item.stretch is not None:
        begin, end = item.stretch
        return ((elapsed >= begin) & (elapsed < end)).astype(float)
    if item.family is not Family.SLOW_DRIFT:
        return elapsed - 0.5
    if not item.waves:
        return np.sin(2.0 * np.pi * elapsed)
    k = np.arange(1, len(item.waves) + 1)
    return np.asarray(np.cos(np.pi * np.outer(elapsed, k)) @ np.array(item.waves))


def level_axes(gravity: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Two axes across gravity about which a base may be tilted, base frame."""
    down = np.asarray(gravity, dtype=np.float64) / np.linalg.norm(gravity)
    helper = np.eye(3)[int(np.argmin(np.abs(down)))]
    first = helper - down * (down @ helper)
    first = first / np.linalg.norm(first)
    return first, np.cross(down, first)
