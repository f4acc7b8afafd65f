"""Notes for people: those of one kind become one, the rest is folded away."""

from __future__ import annotations

from collections.abc import Sequence

from armid.notes import Note, Severity
from armid.page import Block, Table

_ALIKE = 3
"""More notes of one code than this are shown as one, with the others folded below."""
_NAMED = 6
"""Subjects that a merged note names."""

_TONES = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.INFO: ""}
_HEADER = ("severity", "code", "about", "finding")


def note_tables(notes: Sequence[Note], caption: str = "") -> tuple[Block, ...]:
    """What was found, most severe first; many notes of one kind as one row, and all of them in a folded table.

    Args:
        notes: in any order.
        caption: of the first table.
    """
    if not notes:
        return ()
    ranked = sorted(notes, key=lambda note: (list(_TONES).index(note.severity), note.code))
    kinds: dict[tuple[Severity, str], list[Note]] = {}
    for note in ranked:
        kinds.setdefault((note.severity, note.code), []).append(note)
    rows: list[tuple[str, str, str, str]] = []
    tones: list[str] = []
    for (severity, code), alike in kinds.items():
        shown = [_merged(alike)] if len(alike) > _ALIKE else [(note.subject, note.message) for note in alike]
        rows += [(str(severity), code, subject, message) for subject, message in shown]
        tones += [_TONES[severity]] * len(shown)
    merged = Table(_HEADER, tuple(rows), tuple(tones), caption=caption)
    if len(rows) == len(ranked):
        return (merged,)
    every = tuple((str(note.severity), note.code, note.subject, note.message) for note in ranked)
    return (merged, Table(_HEADER, every, caption="Every finding.", folded=True))


def _merged(alike: Sequence[Note]) -> tuple[str, str]:
    """Subjects and text of several notes of one kind."""
    subjects = list(dict.fromkeys(note.subject for note in alike if note.subject))
    more = f" and {len(subjects) - _NAMED} more" if len(subjects) > _NAMED else ""
    return ", ".join(subjects[:_NAMED]) + more, f"{alike[0].message} ({len(alike) - 1} more of this kind)"
