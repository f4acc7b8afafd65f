"""Which bounds exclude each other, found by leaving them out one after another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.consistency.bounds import Bounds, Constraint, add_constraint
from armid.estimation.consistency.prior import Prior
from armid.estimation.consistency.program import ConicProgram
from armid.estimation.consistency.regularisers import relative_basis
from armid.estimation.status import Status


def add_bodies(program: ConicProgram, prior: Prior, scale: FloatArray, margin: float) -> None:
    """P_i >= margin * P_i(prior) for every body, seen from the prior body, in variables divided by `scale`."""
    for body in prior.bodies:
        columns = list(body.columns)
        F = np.zeros((len(scale), 4, 4))
        F[columns] = relative_basis(body.of(prior.values)) * scale[columns, np.newaxis, np.newaxis]
        program.semidefinite(F, -margin * np.eye(4))


def contradiction(bounds: Bounds, prior: Prior, scale: FloatArray) -> str:
    """A smallest set of bounds that no bodies satisfy, in words; empty when the bounds can be satisfied.

    Deletion filter [Chinneck2008]: a bound whose removal leaves the rest impossible is not needed for the
    contradiction. What remains at the end contradicts itself and every part of it is needed.
    """
    left = list(bounds.constraints(prior.names, prior.bodies))
    if possible(left, prior, scale, bounds.margin):
        return ""
    for constraint in list(left):
        others = [c for c in left if c is not constraint]
        if not possible(others, prior, scale, bounds.margin):
            left = others
    labels = dict.fromkeys(c.label for c in left)
    return "these bounds exclude each other: " + "; ".join(labels)


def possible(constraints: Sequence[Constraint], prior: Prior, scale: FloatArray, margin: float) -> bool:
    """Whether bodies satisfy them all: a program that asks for the smallest parameters and nothing else."""
    program = ConicProgram(len(scale))
    add_bodies(program, prior, scale, margin)
    for constraint in constraints:
        add_constraint(program, constraint, scale)
    program.add_squares(np.eye(len(scale)), np.zeros(len(scale)))
    return program.solve().status is not Status.INFEASIBLE
