"""Numbers that decide what a user is told: each with its unit and the reason for it, in tables that can be printed.

Health of logs (`armid.logs.health.thresholds`) and the gate of results (`armid.identification.thresholds`) each have one. What
only guards arithmetic against rounding is no threshold and stays where it is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from armid.page import Table


@dataclass(frozen=True, slots=True)
class Threshold:
    """A number that decides what a user is told.

    Args:
        name: kebab-case, unique within its table.
        value: in `unit`.
        unit: SI, or what it is a share or multiple of.
        reason: why this value; with the measurement it rests on where there is one.
    """

    name: str
    value: float
    unit: str
    reason: str


def thresholds_table(caption: str, thresholds: Iterable[Threshold]) -> Table:
    """The thresholds as a table for people."""
    return Table(
        ("threshold", "value", "unit", "reason"),
        tuple((each.name, each.value, each.unit, each.reason) for each in thresholds),
        caption=caption,
    )
