"""What a description's inertial values are worth, as notes: wrong ones are common in the files people want to fix."""

from __future__ import annotations

from armid.arrays import FloatArray
from armid.notes import Note, Severity
from armid.parameters.inertial import inertial_problem


def inertial_notes(link: str, inertial: FloatArray | None) -> tuple[Note, ...]:
    """One note when the ten parameters of a link are missing or impossible, else none."""
    if inertial is None:
        message = f"link {link!r} has no inertial values; they count as zero until identified"
        return (Note("inertial-missing", Severity.INFO, message, link),)
    problem = inertial_problem(inertial)
    if problem is None:
        return ()
    message = f"link {link!r}: {problem}; the values are kept but not trusted as prior knowledge"
    return (Note("inertial-impossible", Severity.WARNING, message, link),)
