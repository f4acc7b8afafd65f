"""What to do after an identification, most urgent first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from armid.identification.faults import Answer, Fault
from armid.identification.gate import fault_checks
from armid.identification.result import Result
from armid.outcome import Verdict
from armid.rows.imperfections import Family


def next_steps(result: Result) -> Iterator[str]:
    """What failed and what is wrong, then what a good model is for, then what could not be decided.

    A fault that was found is a cause; errors may be no more than what it does. A decisive one comes first, and any other before
    the second reason.
    """
    found = [fault for fault in result.faults if fault.answer is Answer.FOUND and not fault.corrected]
    decisive = [fault for fault in found if fault.large]
    stated = {check.message for check in fault_checks(decisive)}
    reasons = [reason for reason in result.reasons if reason not in stated]
    yield from _corrections(decisive, found)
    yield from map(_capital, reasons[:1])
    yield from _corrections([fault for fault in found if not fault.large], found)
    yield from map(_capital, reasons[1:])
    if result.verdict is Verdict.TRUSTED:
        yield "Use it: `armid export RESULT --to urdf` writes the identified arm."
        yield "Test it on a third motion: `armid validate RESULT LOG`."
        yield from _undecided(result)
        yield "Find out what the arm carries: `armid payload RESULT LOG`; who pushes it: `armid observe RESULT LOG`."
    else:
        yield from _undecided(result)
        yield "Record a motion made for this arm: `armid design ROBOT`, then identify from it."
        yield "Look at the recording itself: `armid check ROBOT LOG`."
        yield "Read what each condition means: docs/gate.md."


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _corrections(faults: Sequence[Fault], found: Sequence[Fault]) -> Iterator[str]:
    """What to do about each fault.

    Args:
        faults: to write about.
        found: all that were: beside a wrong length sensors are not what they seem, and are not undone.
    """
    described = not any(fault.kind == Family.LENGTH for fault in found)
    for fault in faults:
        size = fault.sentence.removeprefix(f"{fault.name}: ")
        ways = [fault.undoing, "`--correct`" if described and fault.correctable else ""]
        ways = [way for way in ways if way]
        if ways:
            yield f"Correct the {fault.name} ({size}): {', or '.join(ways)}."
        else:
            yield f"Look at the {fault.name} ({size}): {fault.advice or 'nothing undoes it; mend it, and record again'}."


def _undecided(result: Result) -> Iterator[str]:
    """The first fault that these recordings could not decide, with what would."""
    for fault in result.faults:
        if fault.answer is Answer.UNDECIDABLE and fault.experiment:
            yield f"Decide the {fault.name}: {fault.experiment}."
            return
