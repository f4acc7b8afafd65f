"""Where the ten parameters of each body stand in a parameter vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.parameters.inertial import INERTIAL_NAMES, N_INERTIAL, pseudo_inertia
from armid.parameters.space import named_parameters

BASIS: FloatArray = np.array([pseudo_inertia(row) for row in np.eye(N_INERTIAL)])
"""Pseudo-inertia of each unit parameter, shape [10, 4, 4]: P(pi) = sum of pi_k BASIS[k]."""

_NON_NEGATIVE = (
    "rotor_inertia",
    *(f"{side}{quantity}" for side in ("", "motor_", "coupled_") for quantity in ("viscous", "coulomb")),
)
"""Drive quantities, on either side of the gear, that cannot be negative: they only store or dissipate energy."""


@dataclass(frozen=True, slots=True)
class Body:
    """One rigid body.

    Args:
        owner: `link3` or `payload`.
        columns: places of its ten parameters, in the order of `InertialIndex`.
        link: 0-based; None for the payload.
    """

    owner: str
    columns: tuple[int, ...]
    link: int | None = None

    def of(self, values: FloatArray) -> FloatArray:
        """Its ten parameters out of a whole vector."""
        return values[list(self.columns)]


def bodies_of(names: Sequence[str]) -> tuple[Body, ...]:
    """The bodies whose ten parameters are all among the names (`link3.mass`, ...), in order of appearance."""
    return _bodies_of(tuple(names))


@lru_cache(maxsize=32)
def _bodies_of(names: tuple[str, ...]) -> tuple[Body, ...]:
    places: dict[str, dict[str, int]] = {}
    links: dict[str, int | None] = {}
    for i, parameter in enumerate(named_parameters(names)):
        if parameter.quantity in INERTIAL_NAMES:
            places.setdefault(parameter.owner, {})[parameter.quantity] = i
            links[parameter.owner] = parameter.body if parameter.of_link else None
    return tuple(
        Body(owner, tuple(found[quantity] for quantity in INERTIAL_NAMES), links[owner])
        for owner, found in places.items()
        if len(found) == len(INERTIAL_NAMES)
    )


def non_negative_columns(names: Sequence[str]) -> npt.NDArray[np.intp]:
    """Columns of parameters that cannot be negative."""
    parameters = named_parameters(tuple(names))
    return np.array([i for i, one in enumerate(parameters) if one.quantity in _NON_NEGATIVE], dtype=np.intp)


def other_columns(names: Sequence[str], bodies: Sequence[Body]) -> npt.NDArray[np.intp]:
    """Columns that belong to no body: friction, rotor inertia, offsets, gains."""
    taken = {column for body in bodies for column in body.columns}
    return np.array([i for i in range(len(names)) if i not in taken], dtype=np.intp)
