"""What is said of a candidate: found, excluded beyond a bound, or undecidable, with its interval and what would decide it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, nan

import numpy as np

from armid.estimation.estimate import NORMAL_95
from armid.estimation.imperfections import FACTORS
from armid.identification.candidates import LARGER_RANGE, MIXED, Seen, experiment_for, undoing_words
from armid.identification.described_ways import way_words
from armid.identification.faults import Answer, Fault
from armid.identification.sensors import DELAYS, Sized
from armid.identification.thresholds import FAULT_EXCLUDED
from armid.robot.robot import Robot
from armid.rows.imperfections import KINDS, Family, Imperfection

_NOTHING_UNDOES = (Family.GAIN_DRIFT, Family.ZERO_DRIFT, Family.PLAY, *MIXED)
"""What the model does not hold: which constant gain, or which angle, fits what is not constant is chance."""


@dataclass(frozen=True, kw_only=True)
class FaultAnswers:
    """Answers about one recording.

    Args:
        robot: as described.
        channels: of torque; names of joints, with their side after a colon where both are measured.
        delay: up to which late torque is not told from friction that turns around late [s].
        looked_at: candidates.
    """

    robot: Robot
    channels: Sequence[str]
    delay: float
    looked_at: int

    def unfound(self, seen: Seen, whole: float) -> Fault:
        """What is said of a candidate that was not found.

        Excluded is only what the interval neither reaches nor lies beyond. A size that is beyond its tolerance without doubt, yet
        explains too little or does not help on other motion, is not excluded: something is there that this log cannot name.

        Args:
            seen: it.
            whole: squared error to which its share refers.
        """
        tolerance = seen.item.tolerance
        beyond = abs(seen.size) - seen.half > tolerance
        reached = abs(seen.size) + seen.half > FAULT_EXCLUDED.value * tolerance
        answer = Answer.UNDECIDABLE if beyond or reached else Answer.EXCLUDED
        return self._fault(seen, answer, explains=seen.taken / whole if isfinite(seen.deviation) else 0.0)

    def found(self, seen: Seen, *, explains: float, large: bool, change: float = nan) -> Fault:
        """What is said of one that was.

        Args:
            seen: it.
            explains: share of the squared error that goes away with it.
            large: whether the recording is not to be used as it is, which is decisive.
            change: relative change of the held-out error when it is undone.
        """
        return self._fault(seen, Answer.FOUND, explains=explains, change=change, large=large)

    def unless(self, fault: Fault, rivals: Sequence[Sized]) -> Fault:
        """A fault that was found, with what may be there in its place.

        It is decisive only where the recording is not to be used as it is whichever of them is there.

        Args:
            fault: found.
            rivals: that explain as much.
        """
        if not rivals:
            return fault
        names = tuple(rival.item.name(self.channels) for rival in rivals)
        return replace(fault, rivals=names, large=fault.large and all(map(self._too_large, rivals)))

    def beyond(self, seen: Seen) -> bool:
        """Whether a candidate is, with its whole interval, too large for the recording to be used as it is."""
        return self._too_large(Sized(seen.item, max(abs(seen.size) - seen.half, 0.0), 0.0))

    def large(self, seen: Seen) -> bool:
        """Whether that is so, and beyond what chance makes of the largest of all candidates."""
        return self.beyond(seen) and seen.beyond_chance(self.looked_at)

    def _too_large(self, sized: Sized) -> bool:
        """Whether a sensor that is off by so much is beyond what the model undoes."""
        family = sized.item.family
        factor = 1.0 if family in _NOTHING_UNDOES else FACTORS[-1]
        limit = max(factor * sized.item.tolerance, self.delay if family in DELAYS else 0.0)
        return KINDS[family].sensors and abs(sized.value) > limit

    def rival(self, sized: Sized, found: Fault) -> Fault:
        """What explains as much as something that was found, and may be there in its place."""
        item, other = sized.item, f"explains as much as {found.name}, and one of the two is there"
        if item.family is Family.LENGTH:
            words = way_words(self.robot, int(item.joint or 0), sized.value)
            other += f" (it would be undone in the description: {words})"
        return Fault(
            kind=item.kind,
            joint=self._joint(item),
            estimate=sized.value,
            unit=item.unit,
            tolerance=item.tolerance,
            explains=found.explains,
            experiment=f"{other}: {experiment_for(item)}",
        )

    def _fault(self, seen: Seen, answer: Answer, *, explains: float, change: float = nan, large: bool = False) -> Fault:
        item, half = seen.item, seen.half
        known = isfinite(seen.deviation)
        return Fault(
            kind=item.kind,
            joint=self._joint(item),
            estimate=seen.size if known else nan,
            standard_deviation=half / NORMAL_95,
            low=seen.size - half if known else -inf,
            high=seen.size + half if known else inf,
            unit=item.unit,
            tolerance=item.tolerance,
            answer=answer,
            explains=float(np.clip(explains, 0.0, 1.0)),
            held_out_change=change,
            words=self._undoing(item, seen.size) if answer is Answer.FOUND else "",
            experiment=_experiment(seen) if answer is Answer.UNDECIDABLE else "",
            large=large,
        )

    def _joint(self, item: Imperfection) -> str | None:
        return None if item.joint is None else self.channels[item.joint]

    def _undoing(self, item: Imperfection, size: float) -> str:
        """Words that undo it: in the description, in the mapping, or on the command line."""
        if item.family is Family.LENGTH:
            return way_words(self.robot, int(item.joint or 0), size)
        return undoing_words(item, size, self.channels)


def _experiment(seen: Seen) -> str:
    """What would decide it."""
    return experiment_for(seen.item) if seen.moves else LARGER_RANGE


def with_deviations(sizes: Sequence[Sized], found: Mapping[Imperfection, Fault]) -> tuple[Sized, ...]:
    """Sizes with what is known of their uncertainty by the faults they are; NaN of others.

    Args:
        sizes: that the runs are freed from.
        found: faults with their intervals.
    """
    known = {item: fault.standard_deviation for item, fault in found.items()}
    return tuple(replace(sized, standard_deviation=known.get(sized.item, nan)) for sized in sizes)
