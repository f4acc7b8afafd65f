"""Values about a body's centre of mass, from a drawing or a balance: h h^T / m makes them not convex in standard parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray, read_only
from armid.consistency.bodies import Body
from armid.consistency.physical import physical_jacobian, to_physical
from armid.errors import ShapeError
from armid.parameters.inertial import N_INERTIAL

Extras = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""From standard parameters [p] to residuals [m] and their Jacobian [m, p], in units of the weighted rows."""

ALONE = (Body("", tuple(range(N_INERTIAL))),)


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Physical parameters of one body with standard deviations.

    Args:
        owner: `link3` or `payload`.
        values: (m, cx, cy, cz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz), inertias about the centre of mass; shape [10].
        deviations: how well each is known; infinite where nothing is; shape [10].
    """

    owner: str
    values: FloatArray
    deviations: FloatArray

    def __post_init__(self) -> None:
        for name in ("values", "deviations"):
            array = read_only(getattr(self, name))
            if array.shape != (N_INERTIAL,):
                raise ShapeError(f"{name} of {self.owner}", array.shape, "ten numbers")
            object.__setattr__(self, name, array)

    def residuals(self, ten: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(mu(pi) - values) / deviations of what is known, shape [k], and the slope by the ten parameters, shape [k, 10]."""
        known = np.isfinite(self.deviations)
        mu = to_physical(ten, ALONE)
        slope = np.linalg.inv(physical_jacobian(mu, ALONE))
        weight = 1.0 / self.deviations[known]
        return weight * (mu - self.values)[known], weight[:, np.newaxis] * slope[known]


def extras_of(knowledge: Sequence[Knowledge], bodies: Sequence[Body], p: int) -> Extras | None:
    """All that is known as residuals of the whole parameter vector; None when nothing is."""
    if not knowledge:
        return None
    owners = {body.owner: body for body in bodies}

    def extras(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        residuals, slopes = [], []
        for item in knowledge:
            body = owners[item.owner]
            r, own = item.residuals(body.of(x))
            J = np.zeros((len(r), p))
            J[:, list(body.columns)] = own
            residuals.append(r)
            slopes.append(J)
        return np.concatenate(residuals), np.vstack(slopes)

    return extras
