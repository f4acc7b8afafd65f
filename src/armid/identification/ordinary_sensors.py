"""What sensors that are ordinarily good have: families that stand beside the parameters of any experiment on torque."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armid.estimation.imperfections import RESOLVED, BlockFactors, Effect
from armid.rows.imperfections import KINDS, Family, Imperfection

ORDINARY = (Family.GAIN, Family.ZERO, Family.SCALE, Family.DELAY, Family.CLOCK, Family.TILT)
"""Gains, zeros, scales, delays, the clock and the level of the base."""


def by_family(items: Sequence[Imperfection]) -> list[Effect]:
    """Imperfections as sets of columns, one per family (of Stribeck friction, one per scale)."""
    groups: dict[tuple[Family, float], list[int]] = {}
    for k, item in enumerate(items):
        groups.setdefault((item.family, item.scale), []).append(k)
    return [Effect(family.value, np.array(columns, dtype=np.intp)) for (family, _), columns in groups.items()]


def kept_ordinary(effects: Sequence[Effect], blocks: BlockFactors) -> list[Effect]:
    """Those that bodies can stand in for keep their base tolerance unless the rows decide them.

    Args:
        effects: families.
        blocks: rows beside them.
    """
    return [
        replace(effect, largest=1.0)
        if KINDS[Family(effect.family)].aliases and blocks.resolution(effect) < RESOLVED
        else effect
        for effect in effects
    ]
