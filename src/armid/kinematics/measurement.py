"""What measured the tool: rows of joint positions with what a tracker, camera, bar, socket or plane said about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, finite, read_only
from armid.errors import ArmidError, ShapeError

IntArray = npt.NDArray[np.intp]


class Observed(StrEnum):
    """What one observation says about one target on the tool."""

    POSE = "pose"
    """Position and orientation in the sensor frame."""
    POSITION = "position"
    """Three coordinates in the sensor frame."""
    ORIENTATION = "orientation"
    """Orientation in the sensor frame, no position."""
    POINT = "point"
    """The target touches one fixed, unknown point (ball in socket, pin tip)."""
    PLANE = "plane"
    """The target lies on one fixed, unknown plane."""
    DISTANCE = "distance"
    """Distance of the target from one fixed, unknown point (ball-bar, draw-wire)."""
    LENGTH = "length"
    """Distance between the target's positions at two configurations (a calibrated bar)."""

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the residual's components."""
        return _CHANNELS[self]

    @property
    def has_position(self) -> bool:
        return self in (Observed.POSE, Observed.POSITION)

    @property
    def has_orientation(self) -> bool:
        return self in (Observed.POSE, Observed.ORIENTATION)


_CHANNELS: dict[Observed, tuple[str, ...]] = {
    Observed.POSE: ("x", "y", "z", "rx", "ry", "rz"),
    Observed.POSITION: ("x", "y", "z"),
    Observed.ORIENTATION: ("rx", "ry", "rz"),
    Observed.POINT: ("x", "y", "z"),
    Observed.PLANE: ("z",),
    Observed.DISTANCE: ("distance",),
    Observed.LENGTH: ("distance",),
}


class MeasurementError(ArmidError):
    """Measurements that cannot be calibrated from; the message names the likely cause."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Observations:
    """The same quantity of the same target in the same setup, for some of the configurations.

    Args:
        quantity: what was measured.
        rows: configurations they belong to, shape [m].
        position: of the target in the sensor frame [m], shape [m, 3]; for poses and positions.
        rotation: of the target in the sensor frame, shape [m, 3, 3]; for poses and orientations.
        distance: [m], shape [m]; for distances and lengths.
        other_rows: the second configuration of each length, shape [m].
        sigma: standard deviation of the instrument per channel [m or rad], shape [m, channels]; zero where unknown.
        axes: rows are the directions to which `sigma` belongs, shape [m, channels, channels], orthogonal and never mixing
            position with orientation; the sensor's own axes when None (see `with_covariance`).
        numbers: the three angles from which `rotation` was read [rad], shape [m, 3], for trying other conventions.
        riding: the sensor rides on the arm and sees something that stands still. Position and rotation are then those of
            the fixed thing in the moving sensor; `target` is the sensor on the arm and `setup` the fixed thing.
        setup: name of the sensor placement; each has its own frame.
        target: name of the point or frame on the tool; each has its own.
    """

    quantity: Observed
    rows: IntArray
    position: FloatArray | None = None
    rotation: FloatArray | None = None
    distance: FloatArray | None = None
    other_rows: IntArray | None = None
    sigma: FloatArray | None = None
    axes: FloatArray | None = None
    numbers: FloatArray | None = None
    riding: bool = False
    setup: str = "sensor"
    target: str = "tool"

    def __post_init__(self) -> None:
        m = len(self.rows)
        needed = {
            "position": (self.quantity.has_position, (m, 3)),
            "rotation": (self.quantity.has_orientation, (m, 3, 3)),
            "distance": (self.quantity in (Observed.DISTANCE, Observed.LENGTH), (m,)),
        }
        for name, (wanted, shape) in needed.items():
            value = getattr(self, name)
            if wanted and (value is None or np.shape(value) != shape):
                raise ShapeError(f"{self.quantity} {name}", np.shape(value), str(list(shape)))
            if value is not None:
                object.__setattr__(self, name, read_only(finite(name, np.asarray(value, dtype=np.float64))))
        if self.riding and not (self.quantity.has_position or self.quantity.has_orientation):
            raise MeasurementError(f"a sensor on the arm sees poses, positions or orientations, not a {self.quantity}")
        if (self.other_rows is not None) != (self.quantity is Observed.LENGTH):
            raise MeasurementError("lengths, and only they, need a second configuration for every row")
        sigma = np.zeros((m, len(self.quantity.channels))) if self.sigma is None else np.asarray(self.sigma, float)
        object.__setattr__(self, "sigma", read_only(np.broadcast_to(sigma, (m, len(self.quantity.channels)))))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def noise(self) -> FloatArray:
        """The instrument's standard deviations, shape [m, channels]; zero where unknown."""
        assert self.sigma is not None
        return self.sigma

    def in_fixed_frame(self) -> tuple[FloatArray | None, FloatArray | None]:
        """Position and rotation of what is on the arm in the frame that stands still; the position of a fixed point in a
        riding sensor without its rotation says nothing about that.
        """
        if not self.riding or self.rotation is None:
            return (None if self.riding else self.position), self.rotation
        back = np.swapaxes(self.rotation, 1, 2)
        return (None if self.position is None else -(back @ self.position[:, :, np.newaxis])[:, :, 0]), back

    def take(self, kept: npt.NDArray[np.bool_], new_rows: IntArray) -> Observations:
        """Those whose mask is true, with configurations renumbered by `new_rows`."""

        def some(value: FloatArray | None) -> FloatArray | None:
            return None if value is None else value[kept]

        others = None if self.other_rows is None else new_rows[self.other_rows[kept]]
        return replace(
            self,
            rows=new_rows[self.rows[kept]],
            position=some(self.position),
            rotation=some(self.rotation),
            distance=some(self.distance),
            sigma=some(self.sigma),
            axes=some(self.axes),
            numbers=some(self.numbers),
            other_rows=others,
        )


def with_covariance(o: Observations, covariance: FloatArray) -> Observations:
    """The same observations, each with its own covariance.

    A covariance is standard deviations along its principal axes; residuals are looked at along these, which changes
    neither their lengths nor what an equal noise in all directions adds.

    Args:
        o: what was measured.
        covariance: [m^2, rad^2], shape [m, channels, channels]; entries between position and orientation must be zero.

    Raises:
        MeasurementError: a covariance is not one, or mixes position with orientation.
    """
    m, c = len(o), len(o.quantity.channels)
    C = np.broadcast_to(np.asarray(covariance, dtype=np.float64), (m, c, c))
    if o.quantity is Observed.POSE and C[:, :3, 3:].any():
        raise MeasurementError("covariances between position and orientation are not supported: give two 3 x 3 blocks")
    axes, sigma = np.zeros((m, c, c)), np.zeros((m, c))
    blocks = (slice(0, 3), slice(3, 6)) if o.quantity is Observed.POSE else (slice(0, c),)
    for block in blocks:
        values, vectors = np.linalg.eigh((C[:, block, block] + np.swapaxes(C[:, block, block], 1, 2)) / 2.0)
        bad = np.flatnonzero(values[:, 0] < -_ROUND_OFF * np.abs(values[:, -1]))
        if len(bad):
            raise MeasurementError(
                f"the covariance of measurement {bad[0] + 1} of {o.target} has a negative eigenvalue"
            )
        axes[:, block, block] = np.swapaxes(vectors, 1, 2)
        sigma[:, block] = np.sqrt(np.maximum(values, 0.0))
    return replace(o, sigma=sigma, axes=axes)


_ROUND_OFF = 1e-6
"""Relative size of a negative eigenvalue that printed digits explain."""


@dataclass(frozen=True, slots=True)
class KnownPlace:
    """Where a target sits on the rigid body that carries it.

    Args:
        body: name; targets of one body share its six unknowns.
        position: on the body [m].
    """

    body: str
    position: tuple[float, float, float]


@dataclass(frozen=True, eq=False, kw_only=True)
class Measurements:
    """Configurations of one arm and everything that was observed there.

    Args:
        q: drive positions [rad or m], shape [n, n_joints].
        observations: what was seen.
        groups: configurations with the same number belong together and are never split between fitting and
            checking, shape [n]; by default equal and nearly equal joint positions form a group.
        labels: where each configuration came from (`file:line`).
        conditions: further columns that came with the rows (`temperature`, `time`, ...), shape [n] each.
        places: targets whose place on a rigid body is known; any other target is a body of its own.
        remarks: what of their files was not used.
        torque: of the drives that hold the arm there, as measured [N m or N], shape [n, n_joints]; NaN where it was not.
    """

    q: FloatArray
    observations: tuple[Observations, ...]
    groups: IntArray | None = None
    labels: tuple[str, ...] = ()
    conditions: Mapping[str, FloatArray] = field(default_factory=dict)
    places: Mapping[str, KnownPlace] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    torque: FloatArray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", read_only(finite("q", np.asarray(self.q, dtype=np.float64))))
        n = len(self.q)
        if self.groups is None:
            object.__setattr__(self, "groups", _same_configuration(self.q))
        if not self.labels:
            object.__setattr__(self, "labels", tuple(f"row {i + 1}" for i in range(n)))

    @property
    def group(self) -> IntArray:
        assert self.groups is not None
        return self.groups

    @property
    def setups(self) -> tuple[str, ...]:
        """Names of the sensor placements, in order of appearance."""
        return tuple(dict.fromkeys(o.setup for o in self.observations if o.quantity is not Observed.LENGTH))

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the targets, in order of appearance."""
        return tuple(dict.fromkeys(o.target for o in self.observations))

    @property
    def n_equations(self) -> int:
        return sum(len(o) * len(o.quantity.channels) for o in self.observations)

    @cached_property
    def n_distinct_equations(self) -> int:
        """Equations of configurations that differ: of a repeated one they show the instrument again, and nothing of the arm."""
        seen: dict[tuple[str, str, Observed], list[IntArray]] = {}
        for o in self.observations:
            ends = self.group[o.rows if o.other_rows is None else o.other_rows]
            seen.setdefault((o.setup, o.target, o.quantity), []).append(np.column_stack([self.group[o.rows], ends]))
        return sum(len(key[2].channels) * len(np.unique(np.concatenate(pairs), axis=0)) for key, pairs in seen.items())

    def subset(self, kept: npt.NDArray[np.bool_]) -> Measurements:
        """Only these configurations (mask of shape [n]); a length stays when both its ends do."""
        new_rows = np.cumsum(kept) - 1
        parts = []
        for o in self.observations:
            mask = kept[o.rows] if o.other_rows is None else kept[o.rows] & kept[o.other_rows]
            if mask.any():
                parts.append(o.take(mask, new_rows))
        index = np.flatnonzero(kept)
        return Measurements(
            q=self.q[kept],
            observations=tuple(parts),
            groups=self.group[kept],
            labels=tuple(self.labels[i] for i in index),
            conditions={name: values[kept] for name, values in self.conditions.items()},
            places=self.places,
            remarks=self.remarks,
            torque=None if self.torque is None else self.torque[kept],
        )


_SAME_PLACE = 0.02
"""[rad or m] Joint positions within which a configuration is the same as another: errors of half a millimetre or half a
milliradian, as arms have them, change by 10 um there, which is what trackers see. A program that is run again, or a pose that is
held, differs by less."""


def _same_configuration(q: FloatArray) -> IntArray:
    """A number per row, equal for rows with equal or nearly equal joint positions, in order of appearance.

    A row belongs to the first one before it that is within `_SAME_PLACE` of it in every joint (less for an arm that moves by less
    than a radian or a metre altogether), so that a slow motion is cut into pieces instead of becoming one configuration.
    """
    _, first, which = np.unique(q, axis=0, return_index=True, return_inverse=True)
    inside = np.argsort(first)
    number = np.empty(len(first), dtype=np.intp)
    number[inside] = _near_ones(q[first[inside]])
    return np.asarray(number[np.ravel(which)], dtype=np.intp)


def _near_ones(q: FloatArray) -> IntArray:
    """The same for rows that differ."""
    n = len(q)
    near = _SAME_PLACE * min(1.0, float(np.ptp(q, axis=0).max(initial=0.0))) if n > 1 else 0.0
    if near <= 0.0:
        return np.arange(n, dtype=np.intp)
    widest = int(np.argmax(q.std(axis=0)))
    leader = np.where(_have_company(q, near, widest), -1, np.arange(n))
    order = np.argsort(q[:, widest], kind="stable")
    low, high = (np.searchsorted(q[order, widest], q[:, widest] + side * near) for side in (-1.0, 1.0))
    for row in np.flatnonzero(leader < 0):
        if leader[row] < 0:
            around = order[low[row] : high[row] + 1]
            around = around[leader[around] < 0]
            leader[around[(np.abs(q[around] - q[row]) <= near).all(axis=1)]] = row
    return np.asarray(np.unique(leader, return_inverse=True)[1], dtype=np.intp)


def _have_company(q: FloatArray, near: float, widest: int) -> npt.NDArray[np.bool_]:
    """Which rows have another within `near` in every joint, shape [n].

    Near rows are near along any direction, and in one of two sets of slices of the widest joint they lie in one slice: rows are
    sorted by slice and direction and compared with those that follow. Uneven weights keep the poses of a grid apart.
    """
    direction = np.linspace(1.0, 2.0, q.shape[1])
    along, width = q @ direction, near * float(direction.sum())
    found = np.zeros(len(q), dtype=bool)
    for shift in (0.0, 0.5):
        slices = np.floor(q[:, widest] / (4.0 * near) + shift)
        key = along + slices * (2.0 * width + float(np.ptp(along)))
        order = np.argsort(key, kind="stable")
        for way in (order, order[::-1]):
            found[way] |= _followed(q[way], np.abs(key[way] - key[way[0]]), near, width)
    return found


def _followed(q: FloatArray, key: FloatArray, near: float, width: float) -> npt.NDArray[np.bool_]:
    """Which rows, sorted by `key`, are followed within `width` by one within `near` in every joint, shape [n]."""
    found = np.zeros(len(q), dtype=bool)
    open_ = np.arange(len(q) - 1)
    step = 1
    while len(open_):
        open_ = open_[key[open_ + step] - key[open_] <= width]
        pair = open_[np.abs(q[open_, 0] - q[open_ + step, 0]) <= near]
        found[pair[(np.abs(q[pair] - q[pair + step]) <= near).all(axis=1)]] = True
        step += 1
        open_ = open_[~found[open_] & (open_ + step < len(q))]
    return found


def _across(groups: IntArray, q: FloatArray) -> IntArray:
    """Groups of several sets with those made one whose configurations are the same: a program that was run once for each set."""
    same, number = _same_configuration(q), np.array(groups)
    while True:
        before = np.array(number)
        for label in (same, groups):
            least = np.full(int(label.max(initial=-1)) + 1, len(q) + int(groups.max(initial=-1)))
            np.minimum.at(least, label, number)
            number = least[label]
        if np.array_equal(number, before):
            break
    _, first, which = np.unique(number, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[np.ravel(which)], dtype=np.intp)


def joined(parts: Iterable[Measurements]) -> Measurements:
    """Several sets of measurements of the same arm as one; setups and targets of the same name are the same."""
    sets = list(parts)
    starts = np.cumsum([0, *(len(m.q) for m in sets)])
    group_starts = np.cumsum([0, *(int(m.group.max(initial=-1)) + 1 for m in sets)])
    observations = []
    for m, start in zip(sets, starts, strict=False):
        for o in m.observations:
            others = None if o.other_rows is None else o.other_rows + start
            observations.append(replace(o, rows=o.rows + start, other_rows=others))
    shared = set.intersection(*(set(m.conditions) for m in sets)) if sets else set()
    q = np.concatenate([m.q for m in sets])
    groups = np.concatenate([m.group + start for m, start in zip(sets, group_starts, strict=False)])
    return Measurements(
        q=q,
        observations=tuple(observations),
        groups=_across(groups, q) if len(sets) > 1 else groups,
        labels=tuple(label for m in sets for label in m.labels),
        conditions={name: np.concatenate([m.conditions[name] for m in sets]) for name in sorted(shared)},
        places={name: place for m in sets for name, place in m.places.items()},
        remarks=tuple(dict.fromkeys(remark for m in sets for remark in m.remarks)),
        torque=_joined_torque(sets),
    )


def _joined_torque(sets: Sequence[Measurements]) -> FloatArray | None:
    """Measured torques of all sets; NaN for those without."""
    if all(m.torque is None for m in sets):
        return None
    return np.concatenate([np.full(m.q.shape, np.nan) if m.torque is None else m.torque for m in sets])
