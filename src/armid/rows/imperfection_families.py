"""Families of what sensors and friction may have that no model has: their words, ordinary sizes and units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import permutations

import numpy as np

from armid.arrays import FloatArray
from armid.parameters.effects import Effects
from armid.robot.robot import JointKind, Robot
from armid.rows.lengths import felt_ways, way_to


class Family(StrEnum):
    """Imperfections of one kind; the words of `--imperfections` and `--tolerance`."""

    GAIN = "gain"
    """Torque read too large by a share, per joint."""
    DELAY = "delay"
    """Torque recorded late [s], per joint."""
    COMMON_DELAY = "common-delay"
    """All torques recorded late alike [s]."""
    ENCODER_DELAY = "encoder-delay"
    """Motion of one joint recorded late [s], per joint: an encoder on another bus, or behind a filter of its own."""
    ZERO = "zero"
    """Angle read too large by a constant [rad or m], per joint."""
    SCALE = "scale"
    """Angle read too large by a share, per joint."""
    CLOCK = "clock"
    """Time stamped too long by a share."""
    TILT = "tilt"
    """Base out of level [rad], about two axes."""
    GEAR_RATIO = "gear-ratio"
    """Gear ratio taken too large by a share, per joint: torque is multiplied by it, the angle divided."""
    WEIGHT = "weight"
    """Share of the arm's weight that is missing from all torques, as after a controller that compensates gravity."""
    LENGTH = "length"
    """Way to a joint from the one before described too long by a share, per joint."""
    DRIFT = "drift"
    """Torque that grows by this much from the begin of a recording to its end [N m or N], per joint."""
    SLOW_DRIFT = "slow-drift"
    """Torque that wanders slowly, so much between its extremes [N m or N], per joint."""
    GAIN_DRIFT = "gain-drift"
    """Torque gain that grows by this share from the begin of a recording to its end, per joint: a sensor that warms up."""
    FRICTION_DRIFT = "friction-drift"
    """Friction that grows by this much from the begin of a recording to its end, at the largest speed [N m or N], per joint."""
    ZERO_DRIFT = "zero-drift"
    """Angle read ever more too large, by this much at the end of a recording [rad or m], per joint: a coupling that slips."""
    DIRECTION_GAIN = "direction-gain"
    """Torque gain of positive torque beyond that of negative torque, a share, per joint."""
    TURNING_GAIN = "turning-gain"
    """Torque gain while a joint turns forward beyond that while it turns back, a share, per joint."""
    LOAD_GAIN = "load-gain"
    """Torque gain at the joint's largest load beyond that near zero, a share, per joint: a sensor that saturates softly."""
    POSITION_GAIN = "position-gain"
    """Torque gain that goes with the joint's position, by this share at most, per joint: a sensor or a gear that is not round, by
    waves of the angle; of a slide by its position [1/m]."""
    CROSSTALK = "crosstalk"
    """Share of another joint's torque that a joint's sensor reads beside its own."""
    ECCENTRICITY = "eccentricity"
    """Encoder whose disc or magnet sits off its axis: angle read too large by this times the sine, or the cosine, of it [rad]."""
    PLAY = "play"
    """Width of the play behind which an encoder is dragged along [rad or m], per joint."""
    HYSTERESIS = "hysteresis"
    """Width of the loop between rising and falling torque [N m or N], per joint."""
    SPRING = "spring"
    """Torque per angle that pulls a joint back [N m/rad or N/m]: a cable, a balancer, a hose."""
    ASYMMETRIC = "asymmetric"
    """Friction |qd|: other slopes in either direction."""
    QUADRATIC = "quadratic"
    """Friction qd |qd|."""
    CUBIC = "cubic"
    """Friction qd^3."""
    LOAD = "load"
    """Friction sign(qd) |load|."""
    LOAD_SPEED = "load-speed"
    """Friction qd |load|."""
    STRIBECK = "stribeck"
    """Friction that humps near standstill."""
    POSITION_SINE = "position-sine"
    """Torque sin(q) of the joint's own angle."""
    POSITION_COSINE = "position-cosine"
    """Torque cos(q) of the joint's own angle."""
    REVERSAL = "reversal"
    """Coulomb friction that turns around later than the velocity [s], per joint."""
    ROTOR = "rotor"
    """Inertia of a rotor that no parameter describes [kg m^2], per joint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyKind:
    """What is known of a family beforehand.

    Args:
        tolerance: ordinary size in a healthy cell: in `unit`, or a share of the joint's torque where the unit is torque, and
            of it per radian or metre where it is stiffness.
        unit: of the size; `torque` for N m or N, `stiffness` for N m/rad or N/m.
        sensors: whether it belongs to sensors and cell, not to the arm.
        aliases: whether bodies can take its place or it theirs.
        recurs: whether it may enter the model: another recording by the same sensors has it too, and no other family holds it.
    """

    tolerance: float
    unit: str
    sensors: bool
    aliases: bool
    recurs: bool = True


KINDS: dict[Family, FamilyKind] = {
    Family.GAIN: FamilyKind(tolerance=0.05, unit="1", sensors=True, aliases=True),
    Family.DELAY: FamilyKind(tolerance=0.003, unit="s", sensors=True, aliases=False),
    Family.COMMON_DELAY: FamilyKind(tolerance=0.003, unit="s", sensors=True, aliases=False, recurs=False),
    Family.ENCODER_DELAY: FamilyKind(tolerance=0.003, unit="s", sensors=True, aliases=False, recurs=False),
    Family.ZERO: FamilyKind(tolerance=float(np.radians(1.0)), unit="rad", sensors=True, aliases=True),
    Family.SCALE: FamilyKind(tolerance=0.01, unit="1", sensors=True, aliases=True),
    Family.CLOCK: FamilyKind(tolerance=0.01, unit="1", sensors=True, aliases=True),
    Family.TILT: FamilyKind(tolerance=float(np.radians(1.0)), unit="rad", sensors=True, aliases=True),
    Family.GEAR_RATIO: FamilyKind(tolerance=0.01, unit="1", sensors=True, aliases=True, recurs=False),
    Family.WEIGHT: FamilyKind(tolerance=0.05, unit="1", sensors=True, aliases=True, recurs=False),
    Family.LENGTH: FamilyKind(tolerance=0.01, unit="1", sensors=True, aliases=True, recurs=False),
    Family.DRIFT: FamilyKind(tolerance=0.05, unit="torque", sensors=True, aliases=False, recurs=False),
    Family.SLOW_DRIFT: FamilyKind(tolerance=0.05, unit="torque", sensors=True, aliases=False, recurs=False),
    Family.GAIN_DRIFT: FamilyKind(tolerance=0.05, unit="1", sensors=True, aliases=False, recurs=False),
    Family.FRICTION_DRIFT: FamilyKind(tolerance=0.05, unit="torque", sensors=False, aliases=False, recurs=False),
    Family.ZERO_DRIFT: FamilyKind(
        tolerance=float(np.radians(1.0)), unit="rad", sensors=True, aliases=False, recurs=False
    ),
    Family.DIRECTION_GAIN: FamilyKind(tolerance=0.05, unit="1", sensors=True, aliases=False, recurs=False),
    Family.TURNING_GAIN: FamilyKind(tolerance=0.05, unit="1", sensors=True, aliases=False, recurs=False),
    Family.LOAD_GAIN: FamilyKind(tolerance=0.05, unit="1", sensors=True, aliases=True, recurs=False),
    Family.POSITION_GAIN: FamilyKind(tolerance=0.05, unit="1", sensors=True, aliases=True, recurs=False),
    Family.CROSSTALK: FamilyKind(tolerance=0.02, unit="1", sensors=True, aliases=True, recurs=False),
    Family.ECCENTRICITY: FamilyKind(
        tolerance=float(np.radians(0.5)), unit="rad", sensors=True, aliases=True, recurs=False
    ),
    Family.PLAY: FamilyKind(tolerance=float(np.radians(0.3)), unit="rad", sensors=True, aliases=False, recurs=False),
    Family.HYSTERESIS: FamilyKind(tolerance=0.05, unit="torque", sensors=True, aliases=False, recurs=False),
    Family.SPRING: FamilyKind(tolerance=0.05, unit="stiffness", sensors=False, aliases=True, recurs=False),
    Family.ASYMMETRIC: FamilyKind(tolerance=0.05, unit="torque", sensors=False, aliases=False),
    Family.QUADRATIC: FamilyKind(tolerance=0.05, unit="torque", sensors=False, aliases=False),
    Family.CUBIC: FamilyKind(tolerance=0.05, unit="torque", sensors=False, aliases=False),
    Family.LOAD: FamilyKind(tolerance=0.05, unit="torque", sensors=False, aliases=True),
    Family.LOAD_SPEED: FamilyKind(tolerance=0.05, unit="torque", sensors=False, aliases=True),
    Family.STRIBECK: FamilyKind(tolerance=0.05, unit="torque", sensors=False, aliases=False),
    Family.POSITION_SINE: FamilyKind(tolerance=0.05, unit="torque", sensors=False, aliases=True),
    Family.POSITION_COSINE: FamilyKind(tolerance=0.05, unit="torque", sensors=False, aliases=True),
    Family.REVERSAL: FamilyKind(tolerance=0.003, unit="s", sensors=False, aliases=False),
    Family.ROTOR: FamilyKind(tolerance=0.05, unit="kg m^2", sensors=False, aliases=True),
}
"""Base tolerances: what data sheets and calibrated cells have. A torque sensor is good to a few per cent, an encoder is homed to
a degree and true to half of one, a bus is late by a few milliseconds, lengths of a
description are those of the drawing; shapes of friction are a few per cent of the torque."""

SINE, COSINE = "sine", "cosine"
"""Parts of a wave of the angle."""

SINE_TWICE, COSINE_TWICE = "sine of twice", "cosine of twice"
"""The same of a wave that comes twice in a turn, as of an oval ring."""

POSITION_ALONE = "of its position alone"
"""Part of what concerns positions while recorded velocities, of another sensor, are right."""

WITH_VELOCITIES = "with velocities"
"""Part of a clock whose recorded velocities were made from its stamps."""

AS_DESCRIBED = "as described"
"""Part of weight that a controller has taken out by the description, and not by the arm."""

EVERY_RECORDING = "in every recording"
"""Part of what changes alike from begin to end in each of several recordings, as where every one begins with a cold arm."""

STEPS = {
    Family.DRIFT: "offset-step",
    Family.GAIN_DRIFT: "gain-step",
    Family.FRICTION_DRIFT: "friction-step",
    Family.ZERO_DRIFT: "zero-step",
}
"""Families of what may also be another at once, with the words for that."""

MOMENTS = 40
"""Blocks of time of a motion at whose begins something may be another: to within 1.25 % of it."""

STRIBECK_SCALES = (0.03, 0.1, 0.3)
"""Shares of a joint's largest speed at which the hump near standstill has decayed; which one, the data decide."""


_PRISMATIC = {Family.ZERO: 0.001, Family.ZERO_DRIFT: 0.001, Family.PLAY: 0.0003}
"""[m]: a linear axis is homed to a millimetre, and has a third of one of play."""

_DRAWN = 0.001
"""[m]: descriptions are rounded to millimetres; of a short way that is more than its share."""

_FELT = 0.05
"""Share of a joint's own torque that torque of another may add before it matters: that of a drift."""

_MOST_CROSSTALK = 0.2
"""Share of another joint's torque beyond which nothing is crosstalk; where less could not matter, a pair is no candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imperfection:
    """One column.

    Args:
        family: its kind.
        joint: 0-based; None when it is about the whole arm.
        part: tells several of one joint or arm apart.
        unit: of its size.
        tolerance: base tolerance [unit].
        scale: of Stribeck friction: share of the largest speed at which the hump has decayed.
        linear: multiples of the joint's linear friction that are taken away from a shape of friction, so that viscous friction,
            Coulomb friction and offset stay what they are without it.
        waves: of a slow drift: half waves over the recording that it is made of, the k-th times cos(k pi elapsed), k from 1;
            without any it swings once.
        other: of crosstalk: the joint whose torque is read too, 0-based.
        stretch: of all recordings in which something is there at once, and nowhere else, shares that have gone by at its begin
            and end; None for what grows evenly.
    """

    family: Family
    joint: int | None
    part: str = ""
    unit: str
    tolerance: float
    scale: float = 0.0
    linear: tuple[float, ...] = ()
    waves: tuple[float, ...] = ()
    other: int | None = None
    stretch: tuple[float, float] | None = None

    @property
    def kind(self) -> str:
        """Such as `gain`, `crosstalk from joint3` or `gain-step from 35 % on`."""
        if self.stretch is not None:
            begin, end = (f"{100.0 * share:.0f} %" for share in self.stretch)
            return f"{STEPS[self.family]} {f'until {end}' if self.stretch[0] == 0.0 else f'from {begin} on'}"
        return f"{self.family.value} {self.part}".strip()

    def name(self, joints: Sequence[str]) -> str:
        """Such as `gain of joint4`."""
        return self.kind if self.joint is None else f"{self.kind} of {joints[self.joint]}"


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnReference:
    """Where the columns are taken: the model, and the training motion that scales shapes of friction.

    Args:
        standard: full parameter vector of the rows.
        speed: largest speed of every drive in training [rad/s or m/s].
        load: largest rigid torque of every drive in training [N m or N].
        size: standard deviation of every drive's torque in training [N m or N].
        acceleration: root mean square of every drive's acceleration in training.
        recorded_velocity: whether velocities were recorded and not derived from positions: a wrong clock does not scale these.
    """

    standard: FloatArray
    speed: FloatArray
    load: FloatArray
    size: FloatArray
    acceleration: FloatArray
    recorded_velocity: bool = False

    @classmethod
    def without_model(cls, n_joints: int, *, recorded_velocity: bool) -> ColumnReference:
        """For what is undone without a model: gains, zeros, scales, delays and the clock of sensors."""
        ones = np.ones(n_joints)
        return cls(
            standard=np.empty(0),
            speed=ones,
            load=ones,
            size=ones,
            acceleration=ones,
            recorded_velocity=recorded_velocity,
        )


def imperfections(
    robot: Robot, effects: Effects, reference: ColumnReference, families: Iterable[Family]
) -> tuple[Imperfection, ...]:
    """Every imperfection of these families that the effects do not model already.

    Args:
        robot: the arm.
        effects: of the rows.
        reference: for the size of torque.
        families: wanted.
    """
    modelled = {
        Family.ASYMMETRIC: effects.asymmetric,
        Family.STRIBECK: effects.stribeck,
        Family.LOAD: effects.load,
        Family.REVERSAL: not effects.coulomb,
        Family.ROTOR: effects.rotor_inertia or effects.torques.value == "motor",
        Family.TILT: not np.any(robot.gravity),
        Family.WEIGHT: not np.any(robot.gravity),
    }
    out: list[Imperfection] = []
    for family in families:
        if not modelled.get(family, False):
            out += _of_family(family, robot, reference)
    return tuple(out)


def _of_family(family: Family, robot: Robot, reference: ColumnReference) -> list[Imperfection]:
    kind = KINDS[family]
    if family in (Family.CLOCK, Family.COMMON_DELAY, Family.WEIGHT):
        return [Imperfection(family=family, joint=None, unit=kind.unit, tolerance=kind.tolerance)]
    if family is Family.TILT:
        return [
            Imperfection(family=family, joint=None, part=part, unit="rad", tolerance=kind.tolerance)
            for part in ("first", "second")
        ]
    if family is Family.LENGTH:
        return [
            Imperfection(
                family=family,
                joint=j,
                unit=kind.unit,
                tolerance=max(kind.tolerance, _DRAWN / way_to(robot.joints[j])),
            )
            for j in felt_ways(robot)
        ]
    if family is Family.CROSSTALK:
        return _crosstalk(robot, reference)
    if family is Family.ECCENTRICITY:
        return [
            Imperfection(family=family, joint=j, part=part, unit=kind.unit, tolerance=kind.tolerance)
            for j, joint in enumerate(robot.joints)
            if joint.kind is JointKind.REVOLUTE
            for part in (SINE, COSINE)
        ]
    if family is Family.POSITION_GAIN:
        return [
            Imperfection(family=family, joint=j, part=part, unit=unit, tolerance=kind.tolerance)
            for j, joint in enumerate(robot.joints)
            for part, unit in (
                [(part, "1") for part in (SINE, COSINE, SINE_TWICE, COSINE_TWICE)]
                if joint.kind is JointKind.REVOLUTE
                else [("", "1/m")]
            )
        ]
    parts = ("", POSITION_ALONE) if family is Family.PLAY and reference.recorded_velocity else ("",)
    out: list[Imperfection] = []
    for j, joint in enumerate(robot.joints):
        prismatic = joint.kind is JointKind.PRISMATIC
        force = "N" if prismatic else "N m"
        unit, tolerance = kind.unit, kind.tolerance
        if kind.unit == "torque":
            unit, tolerance = force, kind.tolerance * float(reference.size[j])
        elif kind.unit == "stiffness":
            unit, tolerance = f"{force}/{'m' if prismatic else 'rad'}", kind.tolerance * float(reference.size[j])
        elif prismatic and family in _PRISMATIC:
            unit, tolerance = "m", _PRISMATIC[family]
        elif family is Family.ROTOR:
            unit = "kg" if prismatic else "kg m^2"
            tolerance = kind.tolerance * float(reference.size[j]) / max(float(reference.acceleration[j]), 1e-12)
        scales = STRIBECK_SCALES if family is Family.STRIBECK else (0.0,)
        out += [
            Imperfection(family=family, joint=j, part=part, unit=unit, tolerance=max(tolerance, 1e-12), scale=scale)
            for scale in scales
            for part in parts
        ]
    return out


def _crosstalk(robot: Robot, reference: ColumnReference) -> list[Imperfection]:
    """Of every joint whose sensor could feel another's torque: torques of joints that turn alone, forces of those that slide.

    The ordinary share is that of a sensor, or what is as little of the joint's own torque as other things that are ordinary.
    """
    out = []
    for j, i in permutations(range(robot.n_joints), 2):
        share = _FELT * float(reference.size[j]) / max(float(reference.size[i]), 1e-12)
        tolerance = max(KINDS[Family.CROSSTALK].tolerance, share)
        if tolerance <= _MOST_CROSSTALK and robot.joints[i].kind is robot.joints[j].kind:
            part = f"from {robot.joint_names[i]}"
            out.append(
                Imperfection(family=Family.CROSSTALK, joint=j, part=part, unit="1", tolerance=tolerance, other=i)
            )
    return out
