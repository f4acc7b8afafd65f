"""Sizes as people say them: per cent, degrees, milliseconds, millimetres."""

from __future__ import annotations

from math import pi

_PEOPLE = {"1": (100.0, "%"), "rad": (180.0 / pi, "deg"), "s": (1e3, "ms"), "m": (1e3, "mm")}
"""By unit: what it is multiplied by, and the unit people use."""


def said(value: float, unit: str, *, digits: int = 3) -> str:
    """Such as `+3.1 %` for 0.031 of the unit `1`.

    Args:
        value: [unit].
        unit: of it; those that people do not say otherwise stay.
        digits: significant ones; all those before the point are kept.
    """
    factor, other = _PEOPLE.get(unit, (1.0, unit))
    size = factor * value
    return f"{size:+.0f} {other}" if abs(size) >= 10.0**digits else f"{size:+.{digits}g} {other}"


def said_within(value: float, standard_deviation: float, unit: str) -> str:
    """Such as `+9.22 +- 3 %`."""
    factor, other = _PEOPLE.get(unit, (1.0, unit))
    return f"{factor * value:+.3g} +- {factor * standard_deviation:.1g} {other}"
