"""The inequalities of [Halper2024] (eq. 3.53) on physical parameters mu = (m, c, I_c), inertias about the centre of mass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np

from armid.arrays import FloatArray

_DIAGONAL = (4, 7, 9)
"""Ixx, Iyy, Izz within mu = (m, cx, cy, cz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz)."""
_OFF_DIAGONAL = (5, 6, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThesisInequalities:
    """Eq. 3.53 as a selectable set.

    Args:
        ratio: of the largest to the smallest diagonal inertia, at most (3.53b).
        off_diagonal: of any off-diagonal to the smallest diagonal inertia, at most (3.53c).
        smallest_inertia: of any diagonal entry [kg m^2] (3.53d).
        smallest_mass: [kg] (3.52c).
        slender: per body owner, the axis (0, 1, 2) its length runs along; the other two diagonal inertias are at least
            `slender_ratio` times the one about it (3.53e, f: links 1, 3, 5 along z, 2 and 4 along y).
        slender_ratio: see there.
        around_prior: each mu within this fraction of its prior value, either way (3.52b); None: not asked for.
    """

    ratio: float = 100.0
    off_diagonal: float = 0.1
    smallest_inertia: float = 1e-4
    smallest_mass: float = 1e-3
    slender: Mapping[str, int] = field(default_factory=dict)
    slender_ratio: float = 3.0
    around_prior: float | None = None

    def rows(self, owner: str) -> tuple[FloatArray, FloatArray]:
        """G, h with G mu + h >= 0 for the ten mu of one body."""
        G: list[FloatArray] = []
        unit = np.eye(10)
        for a, b, c in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
            G.append(unit[_DIAGONAL[a]] + unit[_DIAGONAL[b]] - unit[_DIAGONAL[c]])
        G += [self.ratio * unit[a] - unit[b] for a, b in permutations(_DIAGONAL, 2)]
        G += [
            self.off_diagonal * unit[a] - sign * unit[o]
            for a in _DIAGONAL
            for o in _OFF_DIAGONAL
            for sign in (1.0, -1.0)
        ]
        if owner in self.slender:
            axis = self.slender[owner]
            G += [unit[d] - self.slender_ratio * unit[_DIAGONAL[axis]] for k, d in enumerate(_DIAGONAL) if k != axis]
        h = [0.0] * len(G)
        for d in _DIAGONAL:
            G.append(unit[d])
            h.append(-self.smallest_inertia)
        G.append(unit[0])
        h.append(-self.smallest_mass)
        return np.array(G), np.array(h)
