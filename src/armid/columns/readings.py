"""What one column is taken for, how sure, and what remains to be decided."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from armid.logs.log import Channel


class Certainty(StrEnum):
    """How sure a reading is."""

    SURE = "sure"
    """Name and numbers agree, or one of them leaves no other reading."""
    LIKELY = "likely"
    """One of them says so and nothing contradicts it."""
    OPEN = "open"
    """Neither decides: somebody must say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnReading:
    """What one column is taken for.

    Args:
        column: its name in the file.
        channel: what it is; None for the time.
        joint: the robot's name of it; empty for the time.
        unit: as a mapping writes it.
        certainty: how sure.
        why: name and numbers, in words.
    """

    column: str
    channel: Channel | None
    joint: str
    unit: str
    certainty: Certainty
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Something neither names nor numbers decide.

    Args:
        key: under which the answer is given.
        text: for people.
        choices: words that answer it; empty when numbers do.
        assumed: what is written meanwhile.
    """

    key: str
    text: str
    choices: tuple[str, ...] = ()
    assumed: str = ""
