"""Candidates for what is wrong with a recording: which families, what rows show of one, what is possible, the words for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import hypot, inf, log1p

from armid.estimation.estimate import NORMAL_95
from armid.estimation.imperfections import FACTORS
from armid.estimation.quantiles import student_quantile
from armid.identification.faults import Answer, Fault
from armid.identification.sensor_file import SCHEMA
from armid.identification.sensors import Imperfections, Sized
from armid.identification.stamped_clock import clock_words
from armid.identification.thresholds import FAR_APART, FAULT_CONFIDENCE, FAULT_DEVIATIONS, FAULT_SHARE, TIED
from armid.rows.imperfections import KINDS, WITH_VELOCITIES, Family, Imperfection

MIXED = (
    Family.DIRECTION_GAIN,
    Family.TURNING_GAIN,
    Family.LOAD_GAIN,
    Family.POSITION_GAIN,
    Family.CROSSTALK,
    Family.HYSTERESIS,
)
"""Families of sensors that read by direction or by load, or what another joint carries: looked at beside gains and friction of
the load, which are nearly the same where a torque has one sign, or two joints one axis."""

CHANGES = (Family.GAIN_DRIFT, Family.FRICTION_DRIFT, Family.ZERO_DRIFT)
"""Families of something that is another at the end of a recording than at its begin."""

DRIFTS = (Family.DRIFT, Family.SLOW_DRIFT, *CHANGES)
"""Families of what changes with time and not with the motion alone; another recording has another change."""

SUSPECTED = (
    Family.GAIN,
    Family.DELAY,
    Family.COMMON_DELAY,
    Family.ENCODER_DELAY,
    Family.ZERO,
    Family.SCALE,
    Family.GEAR_RATIO,
    Family.CLOCK,
    Family.TILT,
    Family.WEIGHT,
    Family.LENGTH,
    Family.ECCENTRICITY,
    Family.PLAY,
    *MIXED,
    *DRIFTS,
    Family.SPRING,
)
"""Families that are faults of a recording when they are large."""

_LARGEST = 1000.0
"""Share by which something may read too much: a missing gear ratio, or one unit for another."""

_LEAST = -0.9
"""The same by which it may read too little: what is left of less cannot be told from nothing, or from the opposite."""

_LOOPS = (Family.PLAY, Family.HYSTERESIS)
"""Families of what follows behind: their width is no less than nothing."""

_LATEST = 1.0
"""[s] by which anything may be recorded late."""

_MOST_ECCENTRIC = 0.5
"""Of its radius, by which the disc of an encoder may sit off its axis."""

_CHANNELS = 7.0
"""Of the arms that shares of the residual were set on: a fault of one joint of fourteen explains half as much of the whole."""

_LIKELY = 3.0
"""Deviations, by the noise that holds the fault as well, from which on a candidate is undone and looked at again."""

_UNDERSTATED = 0.2
"""Of what a fault must explain, the part that its derivative must show where it is decisive in size: far from zero columns say
little of what undoing it does. Torque held for 200 ms explained 1 % as a derivative and 6 % as a delay undone, for 100 ms 4 and
9 %."""

_MISSED = {Family.PLAY: 0.125, Family.HYSTERESIS: 0.125}
"""Share of a size, as a deviation, that a column misses: behind a play a joint turns around before its encoder tells, and what
follows behind a wide loop does so later than behind an ordinary one. Planted, they came out 5 to 19 % too small."""

EXPERIMENTS = {
    Family.GAIN: "carry a weighed payload in a second recording (--payload both)",
    Family.ZERO: "drive to a mechanical reference, or calibrate the arm",
    Family.SCALE: "record a motion over a larger range, or calibrate the arm",
    Family.GEAR_RATIO: "compare the ratio in the mapping with the data sheet, or turn the joint by a known angle",
    Family.WEIGHT: "hold the arm still in a few poses and compare its torque with its weight, or ask the controller's manual",
    Family.CLOCK: "record a faster motion, or compare the stamps with another clock",
    Family.TILT: "put a level on the base, or use --find-gravity with a motion of all joints",
    Family.DELAY: "record a faster motion of this joint",
    Family.COMMON_DELAY: "record a faster motion",
    Family.ENCODER_DELAY: "record a faster motion of this joint, or stamp its encoder and the torque by one clock",
    Family.LENGTH: "measure the length, or calibrate the arm with measured poses (armid calibrate)",
    Family.DRIFT: "return to the same poses at the end of the recording",
    Family.SLOW_DRIFT: "return to the same poses again and again during the recording",
    Family.GAIN_DRIFT: "let the arm warm up, and repeat the motion at the end of the recording",
    Family.FRICTION_DRIFT: "let the arm warm up, and repeat the motion at the end of the recording",
    Family.ZERO_DRIFT: "drive to a mechanical reference before and after the recording",
    Family.DIRECTION_GAIN: "hold a weighed load on either side of the joint, and compare the two torques",
    Family.TURNING_GAIN: "turn the joint to and fro slowly under a weighed load, so that its torque takes both signs both ways",
    Family.LOAD_GAIN: "hold weighed loads, light and heavy, and compare the torque with them",
    Family.POSITION_GAIN: "hold a weighed load at several positions of the joint, and compare its torque with the weight",
    Family.CROSSTALK: "brake this joint, load the other one by hand, and read the torque of this one",
    Family.ECCENTRICITY: "turn the joint once round slowly beside a dial or a second encoder, or calibrate the arm",
    Family.PLAY: "lock the drive, push the joint to and fro, and read its encoder",
    Family.HYSTERESIS: "load the joint slowly by weights put on and taken off again, and compare its torque at the same load",
    Family.SPRING: "hold the joint still at both ends of its range, or take off cables and hoses",
}
"""What would decide a fault of a family."""

LARGER_RANGE = "move this joint over a larger range: over so little friction acts as a spring"
"""What would decide anything about the position of a joint that hardly moves."""

_AT_ONCE = "see what happened then (a restart, a plug, a tool, a push), and record again"


def experiment_for(item: Imperfection) -> str:
    """What would decide it."""
    return EXPERIMENTS[item.family] if item.stretch is None else _AT_ONCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A candidate as the rows show it.

    Args:
        item: which.
        size: its estimate.
        deviation: by the noise of the rows.
        taken: squared error it takes away.
        spread: deviation by what leaving out blocks of time changes.
        freedom: degrees of freedom of the spread; the fewer blocks, the less it is known itself.
        beyond: squared error it takes away beyond a simpler candidate that it holds; a slow drift beyond a straight line.
        moves: whether its joint moves far enough to tell it from friction.
    """

    item: Imperfection
    size: float
    deviation: float
    taken: float
    spread: float = 0.0
    freedom: float = inf
    beyond: float = inf
    moves: bool = True

    @property
    def half(self) -> float:
        """Of the 95 % interval: the wider of the two, and what the column misses."""
        missed = NORMAL_95 * _MISSED.get(self.item.family, 0.0) * self.size
        return hypot(max(NORMAL_95 * self.deviation, self._spread_of(0.95)), missed)

    def beyond_chance(self, looked_at: int) -> bool:
        """Whether its size is beyond what chance makes of the largest of so many candidates, and of the model's own errors."""
        confidence = 1.0 - (1.0 - FAULT_CONFIDENCE.value) / max(looked_at, 1)
        return abs(self.size) > max(FAULT_DEVIATIONS.value * self.deviation, self._spread_of(confidence))

    @property
    def certain(self) -> bool:
        """Whether noise does not make its size, and its interval leaves zero out."""
        return abs(self.size) > max(FAULT_DEVIATIONS.value * self.deviation, self.half)

    def _spread_of(self, confidence: float) -> float:
        """By how much leaving out blocks says it may be off, with this confidence."""
        if self.spread == 0.0:
            return 0.0
        return student_quantile(0.5 + 0.5 * confidence, max(self.freedom, 1.0)) * self.spread

    def whole(self, size: float) -> Seen:
        """What was undone, of so much, from what is seen once it is: shares of what was multiplied multiply."""
        factor = 1.0 + size if multiplies(self.item) else 1.0
        return replace(self, size=size, deviation=factor * self.deviation, spread=factor * self.spread)


def nothing_told(seen: Seen) -> Seen:
    """A candidate of which the motion tells nothing: its joint moves too little."""
    return replace(seen, size=0.0, deviation=inf, taken=0.0, spread=0.0, moves=False)


def together(item: Imperfection, size: float, more: float) -> float:
    """An error of this size on top of another: shares multiply."""
    return (1.0 + size) * (1.0 + more) - 1.0 if multiplies(item) else size + more


def multiplies(item: Imperfection) -> bool:
    """Whether it multiplies what is recorded; a missing share of the weight is subtracted."""
    return item.unit == "1" and item.family not in (Family.WEIGHT, *MIXED)


def possible_size(item: Imperfection, size: float) -> float:
    """A size that can be undone: of weight no more than all of it is missing, of other shares a tenth is left.

    An encoder that is out of round still counts forward everywhere.
    """
    if item.family is Family.WEIGHT:
        return min(max(size, 0.0), 1.0)
    if item.family is Family.ECCENTRICITY:
        return min(max(size, -_MOST_ECCENTRIC), _MOST_ECCENTRIC)
    if item.unit == "s":
        return min(max(size, -_LATEST), _LATEST)
    if item.family in _LOOPS:
        return max(size, 0.0)
    return min(max(size, _LEAST), _LARGEST) if item.unit == "1" else size


def tied(energy: float, left: float, rest: float) -> bool:
    """Whether a candidate that leaves `rest` of the squared error is as good as the best, which leaves less.

    The best may leave more than there was: undone exactly, a large fault need not do what its derivative promised.
    """
    return rest <= left or (rest <= TIED.value**2 * left and TIED.value * (energy - rest) >= energy - left)


def against(sized: Sized) -> float:
    """What speaks against a size beforehand, as squared error in units of the noise: the farther from ordinary, the more.

    Twice the logarithm by which Cauchy's density of its tolerance falls: what is a hundred times as large as ordinary is there
    in one cell of a hundred times a hundred, and a normal density would rule it out.
    """
    return 2.0 * log1p((sized.value / sized.item.tolerance) ** 2)


def within_chance(left: float, rest: float) -> bool:
    """Whether what leaves `rest` of the squared error, in units of the noise, may be there in place of what leaves less.

    Independent rows make the one likelier than the other by the exponential of half the difference.
    """
    return rest - left < FAR_APART.value**2


def shape_numbers(item: Imperfection) -> int:
    """How many numbers the rows chose of what changes with time: its size, the moment of a step, the waves of a slow drift."""
    return 2 if item.stretch is not None else max(len(item.waves), 1)


def same_to_torque(one: Imperfection, other: Imperfection, *, recorded_velocity: bool) -> bool:
    """Whether two imperfections are the same to the torque, whatever the motion, with other bodies and friction.

    Where a clock has stretched all velocities torque of the motion is too small beside that of the weight, as if part of the
    weight were missing.
    """
    clock = WITH_VELOCITIES if recorded_velocity else ""
    kinds = {(one.family, one.part), (other.family, other.part)}
    return kinds == {(Family.CLOCK, clock), (Family.WEIGHT, "")}


_OF_POSITION = (Family.POSITION_SINE, Family.POSITION_COSINE)


def share_of_channels(count: int) -> float:
    """Factor on shares of the squared residual that were set for arms of seven joints, for those of more."""
    return min(1.0, _CHANNELS / count)


def significant(seen: Seen, energy: float, share: float) -> bool:
    """Beyond its tolerance, worth looking at, and likely beyond chance; that is settled once it is undone."""
    return abs(seen.size) > seen.item.tolerance and worth_undoing(seen, energy, share)


def worth_undoing(seen: Seen, energy: float, share: float) -> bool:
    """Likely beyond chance, and explains something, or may once it is undone; it may be ordinary.

    Beside the noise that it makes itself a fault is less sure than it is: what is beyond its tolerance with all of its interval
    is looked at, too.
    """
    if seen.item.family in _LOOPS and seen.size < 0.0:
        return False
    undoable = seen.item.family not in (*DRIFTS, *MIXED)
    nearest = abs(seen.size) - seen.half
    likely = abs(seen.size) > _LIKELY * seen.deviation or (undoable and nearest > seen.item.tolerance)
    far = undoable and nearest > FACTORS[-1] * seen.item.tolerance
    least = share * FAULT_SHARE.value * (_UNDERSTATED if far else 1.0)
    return likely and min(seen.taken, seen.beyond) > least * energy


def simplest(worth: Sequence[Seen]) -> list[Seen]:
    """Candidates without straight lines over all recordings of joints whose torque wanders."""
    slow = {seen.item.joint for seen in worth if seen.item.family is Family.SLOW_DRIFT}

    def held(item: Imperfection) -> bool:
        straight = item.family is Family.DRIFT and not item.part and item.stretch is None
        return straight and item.joint in slow

    return [seen for seen in worth if not held(seen.item)]


def undoing_words(item: Imperfection, size: float, joints: Sequence[str]) -> str:
    """What undoes it, as the mapping or the command line says it.

    Args:
        item: which.
        size: of it.
        joints: names of the channels of torque; with its side after a colon where both sides are measured.
    """
    if item.stretch is not None:
        return f"{_AT_ONCE}, or use one side of it alone"
    name, _, side = ("", "", "") if item.joint is None else joints[item.joint].partition(":")
    torque = f"torque.{side}" if side else "torque"
    match item.family:
        case Family.GAIN if size <= _LEAST:
            return f"{in_mapping(torque, 'sign', name, '-1')}, or another unit"
        case Family.SCALE if size <= _LEAST:
            return f"{in_mapping(MOTION, 'sign', name, '-1')}, or another unit"
        case Family.GAIN:
            return in_mapping(torque, "gain", name, f"{1.0 / (1.0 + size):.4g}")
        case Family.SCALE:
            return in_mapping(MOTION, "gain", name, f"{1.0 / (1.0 + size):.4g}")
        case Family.GEAR_RATIO:
            return in_mapping(f"position, velocity and {torque}", "gear_ratio", name, f"{1.0 / (1.0 + size):.4g}")
        case Family.ZERO:
            return in_mapping("position", "offset", name, f"{-size:.4g}")
        case Family.DELAY | Family.ENCODER_DELAY | Family.ECCENTRICITY:
            word = f"{item.family.value}_{item.part}" if item.part else item.family.value.replace("-", "_")
            return f"sensors: FILE, and in FILE schema: {SCHEMA} and joints: {{{name}: {{{word}: {size:.4g}}}}}"
        case Family.COMMON_DELAY:
            return f"--torque-delay-ms {1e3 * size:.3g}"
        case Family.TILT:
            return "--find-gravity"
        case Family.CLOCK:
            also = f" and velocity: {{gain: {1.0 + size:.4g}}}" if item.part else ""
            return f"{clock_words(size)}{also}"
        case _:
            return ""


MOTION = "position and velocity"
"""Channels that an encoder makes."""


def in_mapping(channels: str, word: str, joint: str, value: str) -> str:
    """Such as `torque: {gain: {joint4: 0.77}}`; a number that stands there already is multiplied by it, an offset added."""
    return f"{channels}: {{{word}: {{{joint}: {value}}}}}"


def not_looked_for(remedy: str) -> tuple[Fault, ...]:
    """Every kind of fault, where nothing can be said about any.

    Args:
        remedy: after which something could be.
    """
    return tuple(
        Fault(kind=family.value, unit=KINDS[family].unit, tolerance=KINDS[family].tolerance, experiment=remedy)
        for family in SUSPECTED
    )


def position_faults(used: Imperfections | None) -> tuple[Fault, ...]:
    """Torque that goes with the position of its joint, where the model holds more than a tolerance of it beyond doubt.

    It looks like weight. Subtracted beside the bodies it keeps errors small, but files of bodies and linear friction lack it; and
    a description whose geometry is wrong makes it up, because weight and inertia then ask for other bodies.

    Args:
        used: that entered the model.
    """
    own = [s for s in used.sizes if s.item.family in _OF_POSITION] if used is not None else []
    faults = []
    for j, name in enumerate(used.joints if used is not None else ()):
        waves = [s for s in own if s.item.joint == j]
        size = hypot(*(s.value for s in waves))
        deviation = hypot(*(s.standard_deviation for s in waves))
        if waves and size > max(waves[0].item.tolerance, FAR_APART.value * deviation):
            faults.append(
                Fault(
                    kind="position torque",
                    joint=name,
                    estimate=size,
                    standard_deviation=deviation,
                    low=size - NORMAL_95 * deviation,
                    high=size + NORMAL_95 * deviation,
                    unit=waves[0].item.unit,
                    tolerance=waves[0].item.tolerance,
                    answer=Answer.FOUND,
                    words="a cable, a sensor that is not round, or lengths of the description that are wrong",
                )
            )
    return tuple(faults)


def undone_faults(faults: Sequence[Fault], undone: Imperfections | None) -> tuple[Fault, ...]:
    """The faults, with those that were undone marked."""
    if undone is None:
        return tuple(faults)
    kinds = {(s.item.kind, None if s.item.joint is None else undone.joints[s.item.joint]) for s in undone.sizes}
    return tuple(replace(fault, corrected=(fault.kind, fault.joint) in kinds) for fault in faults)
