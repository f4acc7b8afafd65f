"""Where the ten parameters of each body stand in a parameter vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.parameters.inertial import INERTIAL_NAMES, N_INERTIAL, pseudo_inertia

BASIS: FloatArray = np.array([pseudo_inertia(row) for row in np.eye(N_INERTIAL)])
"""Pseudo-inertia of each unit parameter, shape [10, 4, 4]: P(pi) = sum of pi_k BASIS[k]."""

NON_NEGATIVE = ("rotor_inertia", "viscous", "coulomb")
"""Drive quantities (and everything whose name ends like them) that cannot be negative: they only store or dissipate energy."""


@dataclass(frozen=True, slots=True)
class Body:
    """One rigid body.

    Args:
        owner: `link3` or `payload`.
        columns: places of its ten parameters, in the order of `InertialIndex`.
    """

    owner: str
    columns: tuple[int, ...]

    def of(self, values: FloatArray) -> FloatArray:
        """Its ten parameters out of a whole vector."""
        return values[list(self.columns)]


def bodies_of(names: Sequence[str]) -> tuple[Body, ...]:
    """The bodies whose ten parameters are all among the names (`link3.mass`, ...), in order of appearance."""
    place = {name: i for i, name in enumerate(names)}
    owners = dict.fromkeys(name.split(".")[0] for name in names if name.endswith(".mass"))
    found = []
    for owner in owners:
        columns = [place.get(f"{owner}.{quantity}") for quantity in INERTIAL_NAMES]
        if all(column is not None for column in columns):
            found.append(Body(owner, tuple(int(c) for c in columns if c is not None)))
    return tuple(found)


def non_negative_columns(names: Sequence[str]) -> npt.NDArray[np.intp]:
    """Columns of parameters that cannot be negative."""
    found = [i for i, name in enumerate(names) if name.split(".")[-1].endswith(NON_NEGATIVE)]
    return np.array(found, dtype=np.intp)


def other_columns(names: Sequence[str], bodies: Sequence[Body]) -> npt.NDArray[np.intp]:
    """Columns that belong to no body: friction, rotor inertia, offsets, gains."""
    taken = {column for body in bodies for column in body.columns}
    return np.array([i for i in range(len(names)) if i not in taken], dtype=np.intp)
