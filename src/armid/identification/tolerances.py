"""What a user says about imperfections: families that may enter the model, and their tolerances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite, nan

import numpy as np

from armid.errors import InputError
from armid.rows.imperfections import KINDS, Family, Imperfection
from armid.words import choice

USED = tuple(family for family in Family if KINDS[family].recurs)
"""Families that may enter the model: those that other recordings by the same sensors have too."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ImperfectionTolerances:
    """What a user says about imperfections.

    Args:
        families: that may enter the model; none turns all of it off.
        base: other base tolerances by family, in the family's unit (a share of the joint's torque for shapes of friction).
    """

    families: tuple[Family, ...] = USED
    base: Mapping[Family, float] = field(default_factory=dict)

    def applied(self, item: Imperfection) -> Imperfection:
        """The imperfection with the tolerance asked for."""
        if item.family not in self.base:
            return item
        return replace(item, tolerance=item.tolerance * self.base[item.family] / KINDS[item.family].tolerance)


DEFAULT = ImperfectionTolerances()
"""What is taken where nobody says anything."""


def tolerances_of(words: str | ImperfectionTolerances, tolerance: str | Sequence[str] = ()) -> ImperfectionTolerances:
    """ImperfectionTolerances from words.

    Args:
        words: `all`, `none`, or families with commas between them (`gain,zero,stribeck`).
        tolerance: base tolerances such as `gain=2%`, `zero=0.5deg`, `delay=2ms`; with commas between them, or several.

    Raises:
        UnknownNameError: a family that does not exist.
        InputError: a family that never enters the model, one that is named twice, or a tolerance that is no positive number with
            a unit of its family.
    """
    if isinstance(words, ImperfectionTolerances):
        return words
    given = [part.strip() for part in words.split(",") if part.strip()]
    named = [word for word in given if word not in ("all", "none")]
    families = USED if given == ["all"] else tuple(choice("imperfection", word, Family) for word in named)
    return ImperfectionTolerances(families=families, base=base_tolerances(tolerance))


def base_tolerances(texts: str | Sequence[str]) -> dict[Family, float]:
    """Base tolerances by family, in its unit, from `gain=2%,zero=0.5deg` or several such texts; see `tolerances_of`."""
    every = texts.split(",") if isinstance(texts, str) else [part for text in texts for part in text.split(",")]
    found: dict[Family, float] = {}
    for text in every:
        if not text.strip():
            continue
        family, value = _tolerance_of(text)
        if family in found:
            raise InputError(_OPTION, f"{text.strip()!r}: {family.value} is given twice", "keep one of them")
        found[family] = value
    return found


_OPTION = "--tolerance"
_EXAMPLES = "for example gain=2%, zero=0.5deg, delay=2ms"

_SHARES = {"%": 0.01, "": 1.0}
_UNITS: dict[str, dict[str, float]] = {
    "1": _SHARES,
    "torque": _SHARES,
    "kg m^2": _SHARES,
    "rad": {"deg": float(np.pi / 180.0), "mrad": 1e-3, "rad": 1.0, "": 1.0},
    "s": {"ms": 1e-3, "s": 1.0, "": 1.0},
}
"""Of tolerances as people write them, by the unit of their family; longest first where one ends like another.

Where that unit is of torque or of inertia the tolerance is a share of the joint's torque."""

_WHOLE = 1.0
"""Share beyond which nothing is a tolerance: `gain=2` is meant to be 2 %."""


def _tolerance_of(text: str) -> tuple[Family, float]:
    """A family and its base tolerance from `gain=2%`."""
    word, _, size = (part.strip() for part in text.partition("="))
    family = choice("imperfection", word, Family)
    if family not in USED:
        others = ", ".join(one.value for one in USED)
        problem = f"{text.strip()!r}: {family.value} never enters the model, and has no tolerance to set"
        raise InputError(_OPTION, problem, f"there are: {others}")
    units = _UNITS[KINDS[family].unit]
    unit = next(unit for unit in units if size.endswith(unit))
    try:
        value = float(size.removesuffix(unit)) * units[unit]
    except ValueError:
        value = nan
    largest = _WHOLE if units is _SHARES else inf
    if not 0.0 < value <= largest or not isfinite(value):
        raise InputError(_OPTION, f"{text.strip()!r}", f"expected {family.value}={_expected(units)}, {_EXAMPLES}")
    return family, value


def _expected(units: Mapping[str, float]) -> str:
    """What stands behind the family, in words."""
    if units is _SHARES:
        return "SIZE with a share up to 100%, or up to 1"
    return f"SIZE with a positive number in {' or '.join(unit for unit in units if unit)}"
