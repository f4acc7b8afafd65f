"""Which bounds exclude each other, found by leaving them out one after another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.bounds import Bounds, Constraint, Kind
from armid.consistency.prior import Prior
from armid.consistency.program import ConicProgram
from armid.consistency.regularisers import relative_basis

_SMALLEST_MARGIN = 1e-4
"""Of a body relative to its prior, for this question, when none is asked for."""
_GIVE = 1e-3
"""Of the least body there can be: statements that need more are contradictory."""
_WEAK_PULL = 1e-4
"""Towards small parameters, so that the program has one answer; too weak to be worth breaking a statement for."""


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
    """Whether bodies satisfy them all: how far all would have to give way at once must be next to nothing.

    Statements about places leave the mass free, so bodies of hardly any mass almost satisfy them; the give is therefore
    measured against the margin, the least body there can be.
    """
    least = max(margin, _SMALLEST_MARGIN)
    p = len(scale)
    program = ConicProgram(p + 1)
    add_bodies(program, prior, scale, least)
    for constraint in constraints:
        relax(program, constraint, scale, p)
    give = np.zeros((1, p + 1))
    give[0, p] = 1.0
    program.non_negative(give, np.zeros(1))
    program.f[p] = 1.0
    program.add_squares(np.eye(p), np.zeros(p), _WEAK_PULL)
    solution = program.solve(tolerance=1e-10)
    return bool(solution.v[p] < _GIVE * least)


def relax(program: ConicProgram, constraint: Constraint, scale: FloatArray, give: int) -> None:
    """A statement that may be broken by the variable `give` times the least body, rows of length one."""
    G = constraint.G * scale
    sizes = np.maximum(np.linalg.norm(G, axis=1), 1e-300)
    rows, h = G / sizes[:, np.newaxis], constraint.h / sizes
    if constraint.kind is Kind.SECOND_ORDER:
        rows, h = G / sizes[0], constraint.h / sizes[0]
    signs = (1.0, -1.0) if constraint.kind is Kind.EQUAL else (1.0,)
    for sign in signs:
        wide = np.zeros((len(rows), give + 1))
        wide[:, : rows.shape[1]] = sign * rows
        wide[: 1 if constraint.kind is Kind.SECOND_ORDER else None, give] = 1.0
        if constraint.kind is Kind.SECOND_ORDER:
            program.second_order(wide, h)
        else:
            program.non_negative(wide, sign * h)
