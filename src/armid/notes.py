"""Findings that are data, not exceptions: what a reader of the result must know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum


class Severity(StrEnum):
    """How much a note weighs."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Note:
    """One finding.

    Args:
        code: stable, kebab-case, for machines (`torque-sign`, `rank-deficient`).
        severity: an `ERROR` means a later stage refuses to go on unless told to.
        message: what was found, where, and what to do about it.
        subject: the joint, link, channel or file it is about; empty when it is about the whole.
    """

    code: str
    severity: Severity
    message: str
    subject: str = ""

    def as_dict(self) -> dict[str, str]:
        return {key: str(value) for key, value in asdict(self).items()}


_MOST_ALIKE = 8
"""Findings of one kind that are shown each by itself: as many as an arm has joints, and one of the log."""


def like_counted(notes: Iterable[Note]) -> tuple[Note, ...]:
    """The notes as they are shown: of a kind that many recordings have, one line with the count stands for all."""
    alike: dict[tuple[str, Severity], list[Note]] = {}
    for note in notes:
        alike.setdefault((note.code, note.severity), []).append(note)
    return tuple(one for group in alike.values() for one in (group if len(group) <= _MOST_ALIKE else [_counted(group)]))


def _counted(group: Sequence[Note]) -> Note:
    first, subjects = group[0], Counter(note.subject for note in group if note.subject)
    listed = ", ".join(name if count == 1 else f"{name} {count} times" for name, count in subjects.most_common(3))
    others = f"; mostly {listed}" if listed and len(subjects) < len(group) else ""
    return replace(first, message=f"{len(group)} times{others}; the first: {first.message}")
