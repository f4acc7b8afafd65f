"""What can be wrong with a recording or missing in the model: each fault with an estimate, an interval and an answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf, isfinite, isnan, nan, pi
from typing import Any

from armid.identification.sizes import said
from armid.outcome import Listing
from armid.page import Cell, Table
from armid.rows.imperfections import STEPS, Family
from armid.screen import unbroken


class Answer(StrEnum):
    """What a recording says about a fault."""

    FOUND = "found"
    """It is there: significant, above its tolerance, explains more than its rivals, and undoing it lowers the held-out error."""
    EXCLUDED = "excluded"
    """It is smaller than the stated bound."""
    UNDECIDABLE = "undecidable"
    """This recording cannot tell; `Fault.experiment` says what would."""


_ORDER = {Answer.FOUND: 0, Answer.UNDECIDABLE: 1, Answer.EXCLUDED: 2}


_POSSIBLE = {"rad": 2.0 * pi, "1": 1.0, "s": 1.0, "m": 1.0}
"""Sizes by unit beyond which an interval no longer says anything: a full turn, the whole quantity, a second, a metre."""
_WHOLE_TORQUE = 20.0
"""The same in tolerances, of what is in units of torque or of inertia: their tolerance is a twentieth of the joint's torque."""


_HINTED = ("position torque", "payload", "missing load", "common gain", "friction compensated")
"""Kinds whose words say what it may be, or what would tell: they stand in no file."""

_NEVER_NEGATIVE = (Family.PLAY.value, Family.HYSTERESIS.value)
"""Kinds of what has a width: there is none that is less than nothing."""

_CORRECTABLE = frozenset(
    family.value
    for family in (
        Family.GAIN,
        Family.DELAY,
        Family.COMMON_DELAY,
        Family.ENCODER_DELAY,
        Family.ZERO,
        Family.SCALE,
        Family.GEAR_RATIO,
        Family.CLOCK,
        Family.WEIGHT,
        Family.ECCENTRICITY,
    )
)
"""Families that `--correct` undoes. Drifts are another in the next recording; play and what mixes sensors nothing undoes. A
tilted base shows bodies that a level one does not: `--find-gravity` estimates these, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that could be wrong.

    Args:
        kind: `gain`, `delay`, `zero`, `scale`, `clock`, `tilt`, `drift`, `payload`, ...; the word of its family.
        joint: name; None when it is about the whole arm.
        estimate: its size [unit]; nan for one that is either there or not (a swap of two joints).
        standard_deviation: [unit]; infinite when the recording does not determine it.
        low, high: ends of the 95 % interval [unit].
        unit: of all of these: `1`, `rad`, `s`, `kg`, `N m`, ...
        tolerance: up to which it is ordinary in a healthy cell [unit].
        answer: see there.
        explains: share of the training residual's energy that goes away with it alone, 0 to 1.
        held_out_change: relative change of the held-out error when it is corrected; negative is better, nan when not tried.
        words: to put into the mapping, or the description, to undo it, such as `gain: 0.77`; empty when there are none.
        rivals: names of what explains as much, and may be there in its place.
        experiment: that would decide it; empty unless undecidable.
        large: whether it is so large that the recording must not be used uncorrected; decisive in the gate.
        corrected: whether the result was made with it corrected.
    """

    kind: str
    joint: str | None = None
    estimate: float = nan
    standard_deviation: float = inf
    low: float = -inf
    high: float = inf
    unit: str = ""
    tolerance: float = nan
    answer: Answer = Answer.UNDECIDABLE
    explains: float = 0.0
    held_out_change: float = nan
    words: str = ""
    rivals: tuple[str, ...] = ()
    experiment: str = ""
    large: bool = False
    corrected: bool = False

    @property
    def name(self) -> str:
        """Such as `gain of joint4`."""
        return self.kind if self.joint is None else f"{self.kind} of {self.joint}"

    @property
    def place(self) -> str:
        """Where its words undo it; empty when they do not."""
        if not self.words or self.kind in _HINTED or self.kind.partition(" ")[0] in STEPS.values():
            return ""
        if self.kind == Family.LENGTH:
            return "in the description"
        return "on the command line" if self.words.startswith("--") else "in the mapping"

    @property
    def correctable(self) -> bool:
        """Whether `--correct` undoes it where it was found: a sensor's error of one size, on one side of the drives, alone.

        What is not certain is not undone.
        """
        both_sides = ":" in (self.joint or "")
        return self.kind.partition(" ")[0] in _CORRECTABLE and not self.rivals and not both_sides

    @property
    def undoing(self) -> str:
        """Its words with their place, such as "`torque: {gain: {joint4: 0.77}}` in the mapping"; empty without a place."""
        return f"`{self.words}` {self.place}{self._unless}" if self.place else ""

    @property
    def advice(self) -> str:
        """Its words, with what may be there in its place."""
        return f"{self.words}{self._unless}".lstrip()

    @property
    def _unless(self) -> str:
        return f" (unless it is {' or '.join(self.rivals)}, which explains as much)" if self.rivals else ""

    @property
    def bound(self) -> float:
        """The largest size the 95 % interval allows [unit]; infinite when nothing is known."""
        return max(abs(self.low), abs(self.high))

    @property
    def sentence(self) -> str:
        """The answer in words."""
        match self.answer:
            case Answer.FOUND if isfinite(self.estimate):
                return f"{self.name}: found, {self._interval}"
            case Answer.FOUND:
                return f"{self.name}: found"
            case Answer.EXCLUDED:
                return f"{self.name}: excluded beyond {self._sized(self.bound).lstrip('+')}"
            case _:
                remedy = f"; {self.experiment}" if self.experiment else ""
                return f"{self.name}: undecidable from this log{self._seen}{remedy}"

    @property
    def _seen(self) -> str:
        """What is known of the size of something undecidable, after a comma; empty for nothing."""
        if isfinite(self.bound):
            return f", {self._interval_possible}"
        return ", cannot be bounded" if isfinite(self.low) else ""

    @property
    def _interval(self) -> str:
        """The estimate with the ends of its interval, where they are told apart; of nothing, or of no estimate, the bound."""
        if isnan(self.estimate) or self.estimate == self.low == 0.0 < self.high:
            return f"at most {self._sized(self.bound).lstrip('+')}"
        middle, low, high = map(self._sized, (self.estimate, self.low, self.high))
        return middle if low == high else f"{middle} (95 %: {low} to {high})"

    @property
    def _interval_possible(self) -> str:
        """The same without numbers beyond what the quantity can be: an interval wider than that says nothing there."""
        limit = _POSSIBLE.get(self.unit, inf if isnan(self.tolerance) else _WHOLE_TORQUE * self.tolerance)
        if self.high - self.low <= limit and not (self.unit == "rad" and self.bound > limit):
            return self._interval
        low, high = (end if abs(end) <= limit else nan for end in (self.low, self.high))
        if isnan(low) and isnan(high):
            return "size not determined"
        middle = f"{self._sized(self.estimate)} " if abs(self.estimate) <= limit else ""
        return f"{middle}(95 %: {self._sized(low)} to {self._sized(high)})"

    def _sized(self, value: float) -> str:
        """A size as people say it: per cent, degrees, milliseconds."""
        if not isfinite(value):
            return "no bound"
        return said(value, self.unit)

    def as_dict(self) -> dict[str, Any]:
        """With the keys programs rely on: `fault`, `subject`, `estimate`, `low`, `high`, `unit`, `answer`, `bound`."""
        return {
            "fault": self.kind,
            "subject": self.joint or "",
            "estimate": self.estimate,
            "standard_deviation": self.standard_deviation,
            "low": self.low,
            "high": self.high,
            "unit": self.unit,
            "tolerance": self.tolerance,
            "answer": self.answer.value,
            "bound": self.bound,
            "explains": self.explains,
            "held_out_change": self.held_out_change,
            "words": self.words,
            "rivals": list(self.rivals),
            "experiment": self.experiment,
            "large": self.large,
            "corrected": self.corrected,
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Fault:
        """What `as_dict` gave, numbers that are not finite stored as null."""
        missing = {"estimate": nan, "standard_deviation": inf, "low": -inf, "high": inf, "tolerance": nan}
        missing |= {"held_out_change": nan, "explains": 0.0}
        numbers = {key: other if values[key] is None else float(values[key]) for key, other in missing.items()}
        return Fault(
            kind=values["fault"],
            joint=values["subject"] or None,
            unit=values["unit"],
            answer=Answer(values["answer"]),
            words=values["words"],
            rivals=tuple(values.get("rivals", ())),
            experiment=values["experiment"],
            large=bool(values["large"]),
            corrected=bool(values["corrected"]),
            **numbers,
        )


def bounded_widths(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """The faults, those that have no negative size bounded at zero where they were not found, and at no less than is ordinary.

    A width less than nothing is an error of the model, which may hide as much of a true one: the bound stays. What is ordinary
    looks like friction that turns around late, which takes most of it.
    """
    return tuple(
        _bounded_width(fault) if fault.kind.partition(" ")[0] in _NEVER_NEGATIVE else fault for fault in faults
    )


def _bounded_width(fault: Fault) -> Fault:
    if fault.answer is Answer.FOUND or not isfinite(fault.bound):
        return fault
    least = 0.0 if isnan(fault.tolerance) else fault.tolerance
    return replace(fault, estimate=max(fault.estimate, 0.0), low=max(fault.low, 0.0), high=max(fault.bound, least))


def beside_unexplained(faults: Iterable[Fault], joints: Collection[str]) -> tuple[Fault, ...]:
    """The faults, where nothing about a joint that the model does not explain is excluded.

    A bound holds beside a model that is right but for the fault. Where something else is missing, or the fault is so large that
    its column no longer tells what it does, the truth may lie beyond it: an encoder's play of 5.7 degrees, after which its joint
    hardly moves with its torque, was excluded beyond half a degree.

    Args:
        faults: see there.
        joints: names of those whose error is beyond their limit.
    """
    return tuple(
        replace(
            fault,
            estimate=nan,
            standard_deviation=inf,
            low=-inf,
            high=inf,
            answer=Answer.UNDECIDABLE,
            experiment=_MEND_FIRST,
        )
        if fault.answer is Answer.EXCLUDED and fault.joint in joints
        else fault
        for fault in faults
    )


def without_stand_ins(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """The faults; of a joint whose gain goes with its position, what was found before that and taken back for it is not there.

    One gain for all positions, a spring or an angle off its zero stands in for most of it, and it is tried in their place.
    """
    every = tuple(faults)
    gains = {f.joint: f for f in every if f.answer is Answer.FOUND and f.kind.startswith(Family.POSITION_GAIN)}
    return tuple(
        replace(
            fault,
            answer=Answer.UNDECIDABLE,
            words="",
            large=False,
            experiment=f"mend the {gains[fault.joint].name} first",
        )
        if fault.joint in gains and fault.answer is Answer.FOUND and fault.kind in _STAND_INS and not fault.corrected
        else fault
        for fault in every
    )


_STAND_INS = (Family.GAIN, Family.ZERO, Family.SCALE, Family.GEAR_RATIO, Family.SPRING, Family.PLAY)
"""Kinds that stand in for a gain that goes with the position."""


_MEND_FIRST = "its torque is not explained: mend what is wrong with this joint first; no bound holds beside that"


def listed_faults(faults: Iterable[Fault]) -> Listing[Fault]:
    """Found first, by what they explain; then what is undecidable; then what is excluded."""
    return Listing(sorted(faults, key=lambda f: (_ORDER[f.answer], -f.explains)))


def faults_table(faults: Iterable[Fault]) -> Table:
    """Found first, then what is undecidable and what would decide it, then the bounds; for people."""
    rows: list[tuple[Cell, ...]] = []
    for fault in listed_faults(faults):
        remedy = fault.advice if fault.answer is Answer.FOUND else fault.experiment
        if fault.corrected:
            remedy = f"undone in this result; for a mapping: {remedy}"
        rows.append((fault.name, fault.answer.value, _size_cell(fault), _share(fault.explains), remedy))
    return Table(
        ("fault", "answer", "size, or bound", "explains", "words for the mapping, or what would decide it"),
        tuple(rows),
        caption="what could be wrong with these recordings",
        words=True,
    )


def _size_cell(fault: Fault) -> str:
    """Size and interval, which lines break before its ends only: a number stays with its unit."""
    estimate, bracket, ends = _size(fault).partition("(")
    low, to, high = ends.partition(" to ")
    return f"{estimate}{unbroken(bracket + low)} {unbroken(to.lstrip() + high)}" if to else estimate + bracket + ends


def _size(fault: Fault) -> str:
    text = fault.sentence.removeprefix(f"{fault.name}: ")
    match fault.answer:
        case Answer.FOUND:
            return text.removeprefix("found").removeprefix(", ")
        case Answer.EXCLUDED:
            return text.removeprefix("excluded ")
        case _:
            return text.partition(";")[0].removeprefix("undecidable from this log").removeprefix(", ")


def _share(value: float) -> str:
    return f"{100 * value:.1f} %" if value > 0.0005 else ""
