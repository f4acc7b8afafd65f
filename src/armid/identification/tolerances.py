"""What a user says about imperfections: families that may enter the model, and their tolerances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan

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


def tolerances_of(words: str | ImperfectionTolerances, tolerance: str | Sequence[str] = ()) -> ImperfectionTolerances:
    """ImperfectionTolerances from words.

    Args:
        words: `all`, `none`, or families with commas between them (`gain,zero,stribeck`).
        tolerance: base tolerances such as `gain=2%`, `zero=0.5deg`, `delay=2ms`; with commas between them, or several.

    Raises:
        UnknownNameError: a family that does not exist.
        InputError: a tolerance that is no positive number with a unit of its family.
    """
    if isinstance(words, ImperfectionTolerances):
        return words
    given = [part.strip() for part in words.split(",") if part.strip()]
    named = [word for word in given if word not in ("all", "none")]
    families = USED if given == ["all"] else tuple(choice("imperfection", word, Family) for word in named)
    texts = tolerance.split(",") if isinstance(tolerance, str) else [part for t in tolerance for part in t.split(",")]
    return ImperfectionTolerances(families=families, base=dict(_tolerance_of(text) for text in texts if text.strip()))


_UNITS = {"%": 0.01, "deg": float(np.pi / 180.0), "mrad": 1e-3, "rad": 1.0, "ms": 1e-3, "s": 1.0, "": 1.0}
"""Of tolerances as people write them; longest first where one ends like another."""


def _tolerance_of(text: str) -> tuple[Family, float]:
    """A family and its base tolerance from `gain=2%`."""
    word, _, size = text.strip().partition("=")
    family = choice("imperfection", word.strip(), Family)
    unit = next(unit for unit in _UNITS if size.strip().endswith(unit))
    try:
        value = float(size.strip().removesuffix(unit)) * _UNITS[unit]
    except ValueError:
        value = nan
    if not value > 0.0:
        raise InputError("--tolerance", repr(text), "expected FAMILY=SIZE, for example gain=2%, zero=0.5deg, delay=2ms")
    return family, value
