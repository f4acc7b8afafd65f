"""What may change on an arm while it runs: the states of the watch, each in units of its tolerance.

Per torque channel gain, offset and delay; per joint Coulomb and viscous friction and the encoder's zero; the tilt of the base;
and the ten parameters of what the arm carries, which is no imperfection but changes torque as they do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.estimate import Estimate
from armid.identification.result import Result
from armid.parameters.inertial import INERTIAL_NAMES, INERTIAL_UNITS, N_INERTIAL, InertialIndex
from armid.parameters.space import OwnerKind
from armid.robot.robot import Joint, JointKind, Robot
from armid.rows.imperfections import KINDS, ColumnReference, Family, Imperfection, imperfections
from armid.rows.lengths import way_to
from armid.rows.torque import TorqueRows

COULOMB, VISCOUS = "coulomb", "viscous"
"""Parts of friction that changed."""

_LOAD = 0.002
"""Of the mass of the links: what is fastened to an arm or taken off it without a word, such as a cable."""

_LEVER = 0.1
"""Of the arm's length: how far from the last joint a load has its mass, roughly."""

_JUMP = 10.0
"""Tolerances by which anything may change at once."""

_LOAD_JUMP, _LOAD_REACH = 150.0, 3.0
"""The same of a load: a third of the arm's own mass, and thrice as far out."""

_LOAD_WALK = 10.0
"""The same that it wanders: what a zero of the last joint does, a load does too, and a load is the likelier to change."""

_SPEED = 1.0
"""[rad/s or m/s] Ordinary, where the result has no viscous friction to tell the speed of its training by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One state.

    Args:
        family: of the imperfection; None for what the arm carries.
        subject: channel or joint; empty for the whole arm.
        part: tells several of one subject apart.
        unit: of its size.
        tolerance: ordinary size [unit].
        jump: tolerances by which it may change at once.
    """

    family: Family | None
    subject: str
    part: str = ""
    unit: str
    tolerance: float
    jump: float = _JUMP


@dataclass(frozen=True, eq=False, kw_only=True)
class WatchLayout:
    """The states side by side: gains, offsets, delays [m each], Coulomb, viscous, zeros [n each], tilt [2], load [10].

    Args:
        states: in that order, N of them.
        channels, joints: how many, m and n.
        speed: of joints in training, root mean square [rad/s or m/s], shape [n].
    """

    states: tuple[Watched, ...]
    channels: int
    joints: int
    speed: FloatArray

    @property
    def tolerances(self) -> FloatArray:
        """Shape [N]."""
        return np.array([state.tolerance for state in self.states])

    @property
    def jumps(self) -> FloatArray:
        """Tolerances by which each state may change at once, shape [N]."""
        return np.array([state.jump for state in self.states])

    @property
    def walks(self) -> FloatArray:
        """Tolerances by which each state wanders in the time of the walk, shape [N]; a load comes and goes."""
        return np.array([1.0 if state.family is not None else _LOAD_WALK for state in self.states])

    @property
    def gains(self) -> slice:
        return slice(0, self.channels)

    @property
    def offsets(self) -> slice:
        return slice(self.channels, 2 * self.channels)

    @property
    def delays(self) -> slice:
        return slice(2 * self.channels, 3 * self.channels)

    @property
    def coulomb(self) -> slice:
        return slice(self.delays.stop, self.delays.stop + self.joints)

    @property
    def viscous(self) -> slice:
        return slice(self.coulomb.stop, self.coulomb.stop + self.joints)

    @property
    def zeros(self) -> slice:
        return slice(self.viscous.stop, self.viscous.stop + self.joints)

    @property
    def tilt(self) -> slice:
        return slice(self.zeros.stop, self.zeros.stop + 2)

    @property
    def load(self) -> slice:
        return slice(self.tilt.stop, self.tilt.stop + N_INERTIAL)


def layout_of(known: Result, source: TorqueRows) -> WatchLayout:
    """What is watched of the arm of a result.

    Args:
        known: the result.
        source: of its rows.
    """
    n, channels, joints = known.robot.n_joints, source.channels, known.robot.joint_names
    size, speed = _size(known, source), _speed(known, source)
    per_channel = [
        _watched(item, names)
        for family in (Family.GAIN, Family.DRIFT, Family.DELAY)
        for first in range(0, len(channels), n)
        for names in (channels[first : first + n],)
        for item in _items(known, family, size[first : first + n])
    ]
    coulomb = [
        replace(_watched(item, joints), part=COULOMB) for item in _items(known, Family.FRICTION_DRIFT, size[-n:])
    ]
    viscous = [_per_speed(state, joint, v) for state, joint, v in zip(coulomb, known.robot.joints, speed, strict=True)]
    zeros = [_watched(item, joints) for item in _items(known, Family.ZERO, size[-n:])]
    states = (*per_channel, *coulomb, *viscous, *zeros, *_tilt(), *_load(known.robot))
    return WatchLayout(states=states, channels=len(channels), joints=n, speed=speed)


def _items(known: Result, family: Family, size: FloatArray) -> tuple[Imperfection, ...]:
    """One per joint, with the unit and the tolerance that the family has there.

    Args:
        known: the result.
        family: which.
        size: of the joints' torque [N m or N], shape [n].
    """
    reference = replace(ColumnReference.without_model(len(size), recorded_velocity=False), size=size)
    return imperfections(known.robot, known.effects, reference, (family,))


def _watched(item: Imperfection, names: tuple[str, ...]) -> Watched:
    assert item.joint is not None
    return Watched(family=item.family, subject=names[item.joint], unit=item.unit, tolerance=item.tolerance)


def _per_speed(state: Watched, joint: Joint, speed: float) -> Watched:
    """Viscous friction that makes as much at the speed of training as Coulomb friction does."""
    unit = f"{state.unit} s/{'m' if joint.kind is JointKind.PRISMATIC else 'rad'}"
    return replace(state, part=VISCOUS, unit=unit, tolerance=state.tolerance / speed)


def _tilt() -> Iterator[Watched]:
    kind = KINDS[Family.TILT]
    for part in ("first", "second"):
        yield Watched(family=Family.TILT, subject="", part=part, unit=kind.unit, tolerance=kind.tolerance)


def _load(robot: Robot) -> Iterator[Watched]:
    """Ten parameters of what is fastened to the last link, as large as a little mass near its joint makes them."""
    mass = _LOAD * float(np.abs(robot.inertial.reshape(-1, N_INERTIAL)[:, InertialIndex.MASS]).sum())
    lever = _LEVER * sum(way_to(joint) for joint in robot.joints)
    orders = (0,) + (1,) * 3 + (2,) * 6
    for name, unit, order in zip(INERTIAL_NAMES, INERTIAL_UNITS, orders, strict=True):
        tolerance = max(mass * lever**order, np.finfo(float).tiny)
        jump = _LOAD_JUMP * _LOAD_REACH**order
        yield Watched(family=None, subject="", part=name, unit=unit, tolerance=tolerance, jump=jump)


def _size(known: Result, source: TorqueRows) -> FloatArray:
    """Torque of every channel in training, root mean square [N m or N], shape [m]."""
    pooled = known.information.pooled()
    found = [pooled.channel(name) for name in source.channels]
    return np.array([float(np.linalg.norm(c.factor[:, -1])) / max(c.count, 1.0) ** 0.5 for c in found])


def _speed(known: Result, source: TorqueRows) -> FloatArray:
    """Of the joints in training, root mean square [rad/s or m/s], shape [n]: the column of viscous friction is the velocity."""
    pooled, out = known.information.pooled(), []
    for i, name in enumerate(source.channels[-known.robot.n_joints :]):
        names = (source.space.find(OwnerKind.JOINT, i, quantity) for quantity in ("viscous", "motor_viscous"))
        places = [column for column in names if column is not None]
        channel = pooled.channel(name)
        seen = np.isin(channel.columns, places)
        square = float((channel.R[:, seen] ** 2).sum()) / max(int(seen.sum()), 1) / max(channel.count, 1.0)
        out.append(square**0.5 or _SPEED)
    return np.array(out)


def known_sizes(known: Result, layout: WatchLayout) -> FloatArray:
    """Sizes that the result had found already, in tolerances, shape [N]: where the states start.

    Shares that it undid one after the other multiply; everything else adds up.
    """
    sizes = np.zeros(len(layout.states))
    gains, step = np.ones(layout.channels), known.imperfections
    while step is not None and layout.channels == layout.joints:
        gains *= 1.0 + step.per_joint(Family.GAIN)
        sizes[layout.delays] += step.per_joint(Family.DELAY) + step.size(Family.COMMON_DELAY)
        sizes[layout.zeros] += step.per_joint(Family.ZERO)
        sizes[layout.tilt] += [step.size(Family.TILT, part=part) for part in ("first", "second")]
        step = step.before
    sizes[layout.gains] = gains - 1.0
    return sizes / layout.tolerances


def base_values(estimate: Estimate, columns: int) -> FloatArray:
    """Full parameter vector that predicts what the base parameters do, shape [columns]: zero where they leave it open."""
    full = np.zeros(columns)
    full[np.asarray(estimate.base.independent, dtype=np.intp)] = estimate.values
    return full
