"""The inequalities of [Halper2024] (eq. 3.53) on physical parameters mu = (m, c, I_c), inertias about the centre of mass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np

from armid.arrays import FloatArray
from armid.robot.robot import Robot

_DIAGONAL = (4, 7, 9)
"""Ixx, Iyy, Izz within mu = (m, cx, cy, cz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz)."""
_OFF_DIAGONAL = (5, 6, 8)
_ALONG = 0.95
"""Cosine of the angle to an axis up to which a link runs along it: 18 degrees."""


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

    def groups(self, owner: str) -> dict[str, tuple[FloatArray, FloatArray]]:
        """For the ten mu of one body, by what they say: G, h with G mu + h >= 0."""
        unit = np.eye(10)
        d = [unit[k] for k in _DIAGONAL]
        found = {
            "(3.53a) triangle inequality of its diagonal inertias": [
                d[0] + d[1] - d[2],
                d[0] + d[2] - d[1],
                d[1] + d[2] - d[0],
            ],
            f"(3.53b) largest diagonal inertia at most {self.ratio:g} times the smallest": [
                self.ratio * a - b for a, b in permutations(d, 2)
            ],
            f"(3.53c) off-diagonal inertias at most {self.off_diagonal:g} of the smallest diagonal one": [
                self.off_diagonal * a - sign * unit[o] for a in d for o in _OFF_DIAGONAL for sign in (1.0, -1.0)
            ],
        }
        if owner in self.slender:
            axis = self.slender[owner]
            said = f"(3.53e, f) slender along {'xyz'[axis]}, other inertias at least {self.slender_ratio:g} times that about it"
            found[said] = [other - self.slender_ratio * d[axis] for k, other in enumerate(d) if k != axis]
        out = {said: (np.array(rows), np.zeros(len(rows))) for said, rows in found.items()}
        least = f"(3.53d) diagonal inertias at least {self.smallest_inertia:g} kg m^2"
        out[least] = (np.array(d), np.full(3, -self.smallest_inertia))
        out[f"(3.52c) mass at least {self.smallest_mass:g} kg"] = (unit[:1], np.array([-self.smallest_mass]))
        return out


def slender_axes(robot: Robot) -> dict[str, int]:
    """Axis each link of an arm is long along, for eqs. 3.53e and f: that of its frame which points to the next joint.

    Of all links but the last two, as the work has it (links 1, 3, 5 of the iiwa along z, 2 and 4 along y). A link whose next
    joint lies along none of its axes, or in the same place, has none.
    """
    found = {}
    for k in range(robot.n_joints - 2):
        way = robot.joints[k + 1].transform()[:3, 3]
        length = float(np.linalg.norm(way))
        axis = int(np.argmax(np.abs(way)))
        if length > 1e-6 and abs(way[axis]) > _ALONG * length:
            found[f"link{k + 1}"] = axis
    return found
