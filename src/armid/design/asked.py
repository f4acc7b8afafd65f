"""What people type about motions and poses, as the values this room works with; values pass unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from armid.errors import InputError
from armid.words import numbers

_PERIODS_IN_RANGE = 5
"""Tried between the two ends of a range, both included."""


def number_list(where: str, values: str | npt.ArrayLike) -> tuple[float, ...]:
    """Any number of numbers from text with commas, or from an array; a single one is a list of one."""
    if isinstance(values, str):
        return numbers(where, values, len(values.split(",")), "0,0.5,-1")
    return tuple(float(x) for x in np.atleast_1d(np.asarray(values, dtype=np.float64)))


def joint_values(where: str, values: str | npt.ArrayLike | None, count: int) -> tuple[float, ...] | None:
    """One number for each joint; None stays None."""
    if values is None:
        return None
    found = number_list(where, values)
    if len(found) != count:
        raise InputError(where, f"{len(found)} numbers", f"expected {count}, one for each joint")
    return found


def periods_of(period: str | float | Sequence[float]) -> tuple[float, ...]:
    """One period, several, or equally spaced ones over a range `low:high` [s]."""
    if not isinstance(period, str) or ":" not in period:
        return number_list("period", period)
    low, high = numbers("period", period.replace(":", ","), 2, "10:30")
    if not 0.0 < low < high:
        raise InputError("period", repr(period), "a range of periods has its shorter one first")
    return tuple(low + (high - low) * k / (_PERIODS_IN_RANGE - 1) for k in range(_PERIODS_IN_RANGE))


def reserves_of(reserve: str | Mapping[str, float] | None) -> dict[str, float]:
    """`joint6=0.9,joint7=0.9` as a mapping from joint to mean torque reserve, a fraction of the limit."""
    if reserve is None or isinstance(reserve, str):
        parts = [part.partition("=") for part in (reserve or "").split(",") if part.strip()]
        given = {name.strip(): numbers("goal reserve", value, 1, "joint6=0.9")[0] for name, _, value in parts}
    else:
        given = dict(reserve)
    for name, fraction in given.items():
        if not 0.0 < fraction <= 1.0:
            raise InputError(
                "goal reserve", f"{name}={fraction:g}", "a reserve is a fraction of the torque limit, 0 to 1"
            )
    return given


def words_of(words: str | Sequence[str]) -> frozenset[str]:
    """Words with commas between them, or a sequence of words, as a set."""
    parts = words.split(",") if isinstance(words, str) else words
    return frozenset(part.strip() for part in parts if part.strip())
