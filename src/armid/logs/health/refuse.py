"""The door between logs and samples."""

from __future__ import annotations

from collections.abc import Sequence

from armid.errors import ArmidError
from armid.logs.log import Log
from armid.notes import Note, Severity


class LogRefusedError(ArmidError):
    """A log with errors nobody has accepted."""

    def __init__(self, name: str, errors: Sequence[Note]) -> None:
        self.name = name
        self.errors = tuple(errors)
        first = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        subject = f"{first.subject}: " if first.subject and first.subject != name else ""
        flags = " ".join(f"--accept {code}" for code in dict.fromkeys(e.code for e in errors))
        super().__init__(
            f"{name}: {first.code}: {subject}{first.message}{more}; mend the log or its mapping, or accept it with {flags}"
        )


def refuse_errors(log: Log, accept: Sequence[str]) -> None:
    """Raises when the log has error notes that are not accepted by code."""
    refuse_notes(log.name, log.notes, accept)


def refuse_notes(name: str, notes: Sequence[Note], accept: Sequence[str]) -> None:
    """The same for the notes of a log."""
    open_errors = [note for note in notes if note.severity is Severity.ERROR and note.code not in accept]
    if open_errors:
        raise LogRefusedError(name, open_errors)
