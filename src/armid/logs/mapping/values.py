"""Values of a mapping file, each checked for its kind; errors name the file and the key."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError, UnknownNameError


def keyed(value: Any, known: tuple[str, ...], where: Path, what: str) -> dict[str, Any]:
    """A YAML mapping whose keys are all known."""
    if not isinstance(value, dict) or (value and not set(map(str, value)) & set(known)):
        # Perhaps no file of ours at all: what stands in it is not for others to read.
        problem = f"{what} has none of the keys it needs" if isinstance(value, dict) else f"{what} has no keys"
        raise InputError(where, problem, f"expected keys among {', '.join(known)}")
    for key in value:
        if key not in known:
            raise UnknownNameError(f"key in {what} of {where.name}", str(key), known)
    return {str(k): v for k, v in value.items()}


def per_joint(value: Any, where: Path, what: str, width: int | None) -> tuple[float, ...]:
    """One number, or one per joint."""
    values = value if isinstance(value, list) else [value]
    out = tuple(number(v, where, what) for v in values)
    if width is not None and len(out) not in (1, width):
        raise InputError(where, f"{what} has {len(out)} values", f"expected one, or one for each of {width}")
    return out


def named_numbers(value: dict[Any, Any], where: Path, what: str) -> dict[str, float]:
    """Numbers of single joints by name."""
    if not value:
        raise InputError(where, f"{what} names no joint", "expected a number, a list, or {joint: number}")
    return {str(name): number(one, where, f"{what} for {name}") for name, one in value.items()}


def matrix(value: Any, where: Path, what: str, *, square: bool = False) -> FloatArray | None:
    if value is None:
        return None
    rows = value if isinstance(value, list) and value and all(isinstance(row, list) for row in value) else None
    if rows is None or len({len(row) for row in rows}) != 1 or not rows[0]:
        raise InputError(where, f"{what} is {describe(value)}", "expected a list of rows of equal length")
    array = np.array([[number(v, where, what) for v in row] for row in rows])
    if square and (array.shape[0] != array.shape[1] or np.linalg.cond(array) > 1e12):
        raise InputError(where, f"{what} cannot be inverted")
    array.flags.writeable = False
    return array


def names(value: Any, where: Path, what: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
        raise InputError(where, f"{what} is {describe(value)}", "expected a list of names")
    if len(set(value)) != len(value):
        raise InputError(where, f"a name appears twice in {what}")
    return tuple(value)


def number(value: Any, where: Path, what: str) -> float:
    # YAML 1.1 reads 1e-3 without a point as text, so text is tried as well.
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            result = float(value)
        except (ValueError, OverflowError):
            result = math.nan
        if math.isfinite(result):
            return result
    raise InputError(where, f"{what} is {describe(value)}", "expected a finite number")


def text(value: Any, where: Path, what: str) -> str:
    if not isinstance(value, str):
        raise InputError(where, f"{what} is {describe(value)}", "expected text")
    return value


def describe(value: Any) -> str:
    return "missing" if value is None else repr(value)[:80]
