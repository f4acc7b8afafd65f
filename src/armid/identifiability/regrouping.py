"""Regroupings in closed form for any serial arm, in symbols of the link lengths. Derived in docs/derivations.md.

A body fixed to link i goes unnoticed there when its effect does not depend on joint i: then it might as well be fixed
to link i-1, and the pair "add it to link i, take it from link i-1" changes no measurement. The bodies of link i of that
kind form a space D_i, and the pairs made of all D_i span *all* unnoticed changes, the fixed base being link 0. For a
joint in general position D_i is known: a mass on the axis, its first moment along it, a rod on it (revolute); any
inertia without mass (prismatic). Near the base the links move less freely and D_i is larger; its extra dimensions are
found from random samples and are constants in the joint's own frame unless lengths enter, which an exact elimination
then settles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from armid.errors import MissingDependencyError
from armid.identifiability.base import COEFFICIENT_ROUND_OFF, BaseParameters
from armid.identifiability.blocks import (
    Block,
    NullVectors,
    block_null_vectors,
    blocks_of,
    exact_null_vectors,
    inertial_transform,
    minus,
)
from armid.identifiability.errors import UnsupportedClosedFormError
from armid.identifiability.structure import meant_source, structural_base, structural_rows
from armid.parameters.inertial import N_INERTIAL
from armid.recursion.symbols import FieldScalars, exact_number, length_symbols
from armid.robot.elementary import Elementary
from armid.robot.robot import Robot
from armid.rows.quantity import ArmSource

try:
    import sympy
except ImportError:
    raise MissingDependencyError("sympy", "closed forms of parameters", "symbolic") from None

Vector = dict[int, Any]
"""Sparse vector over the standard parameters, entries in the field of the lengths."""

_AGREEMENT = 1e-7
"""Relative; symbolic coefficients at the arm's lengths against the numeric ones, whose own error is below 1e-9 unless
leading columns are nearly dependent; then it grows with their condition number."""
_BLOCK_SAMPLES = 40
"""More than twice the columns of one link with everything in its drive."""
_ROUND_OFF = 1e-14
"""Error of a numeric coefficient per unit of that condition number."""


@dataclass(frozen=True, eq=False)
class Regrouping:
    """Base parameters with their coefficients as expressions in the link lengths.

    Args:
        base: the same base parameters with numbers.
        terms: for each base parameter, standard parameter -> coefficient, in the order of the parameter vector.
        lengths: symbol -> value [m].
    """

    base: BaseParameters
    terms: tuple[dict[str, sympy.Expr], ...]
    lengths: dict[str, float]

    def __getitem__(self, name: str) -> dict[str, sympy.Expr]:
        return self.terms[self.base.index(name)]


def regroup(*sources: ArmSource, base: BaseParameters | None = None) -> Regrouping:
    """Closed forms of the base parameters of one or several experiments on the same arm.

    Args:
        sources: experiments over the same standard parameters.
        base: the numeric answer when it is known already.

    Raises:
        UnsupportedClosedFormError: the rules do not cover this model (drives that move several joints, with their own
            inertia in the model); the numeric base parameters hold all the same.
    """
    base = structural_base(*sources) if base is None else base
    sources = tuple(meant_source(source) for source in sources)
    robot = sources[0].robot
    scalars = FieldScalars(length_symbols(robot))
    vectors: dict[int, Vector] = {}
    draws = [_null_spaces(sources, lengths) for lengths in _random_lengths(scalars.lengths)]
    for i, block in enumerate(blocks_of(robot, sources[0].space)):
        basis = _null_vectors(i, block, [draw[i] for draw in draws], sources, scalars)
        _reduce_block([_lifted(block, v, scalars) for v in basis], vectors)
    if set(vectors) != {int(i) for i in base.dependent}:
        raise UnsupportedClosedFormError(
            f"the closed-form rules find {len(vectors)} dependent parameters of {robot.name}, samples find "
            f"{len(base.dependent)}; use the numeric base parameters"
        )
    lengths = {name: _value_of(robot, name) for name in scalars.lengths}
    out = Regrouping(base, _symbolic_terms(base, vectors), lengths)
    _check_agreement(out)
    return replace(out, terms=tuple(_without_round_off(terms, lengths) for terms in out.terms))


def _without_round_off(terms: dict[str, sympy.Expr], lengths: dict[str, float]) -> dict[str, sympy.Expr]:
    """Terms whose coefficient is more than what an angle written with few decimals leaves behind (1.5708 for pi/2)."""
    size = {name: abs(float(value.subs(lengths))) for name, value in terms.items()}
    floor = COEFFICIENT_ROUND_OFF * max(size.values())
    return {name: value for name, value in terms.items() if size[name] == 0.0 or size[name] > floor}


def _value_of(robot: Robot, symbol: str) -> float:
    """The length a symbol stands for."""
    return next(e.value for joint in robot.joints for e in joint.transforms if e.symbol == symbol)


def _random_lengths(names: Sequence[str]) -> list[dict[str, float]]:
    """Two choices of the lengths that share no value, as short decimals."""
    rng = np.random.default_rng(7)
    return [{name: round(float(rng.uniform(0.2, 1.2)), 3) for name in names} for _ in range(2)]


def _null_spaces(sources: Sequence[ArmSource], lengths: dict[str, float]) -> list[NullVectors]:
    """All D_i at given lengths."""
    moved = [replace(source, robot=with_lengths(source.robot, lengths)) for source in sources]  # type: ignore[type-var]
    A = np.vstack([structural_rows(s, count=_BLOCK_SAMPLES).reshape(-1, len(s.columns)) for s in moved])
    return [block_null_vectors(block, A) for block in blocks_of(moved[0].robot, moved[0].space)]


def _null_vectors(
    i: int, block: Block, draws: Sequence[NullVectors], sources: Sequence[ArmSource], scalars: FieldScalars
) -> list[list[Any]]:
    """A basis of D_i in the joint's own frame, entries in the field.

    Entries that agree at random choices of the lengths do not depend on them; otherwise they are found by exact
    elimination with those lengths as symbols that matter.
    """
    if _same(*draws):
        return [[scalars.number(exact_number(float(x))) for x in row] for row in draws[0].basis]
    first, second = _random_lengths(scalars.lengths)
    fixed = {
        name: value
        for name, value in first.items()
        if _same(draws[0], _null_spaces(sources, {**first, name: second[name]})[i])
    }
    exact = [replace(s, robot=with_lengths(s.robot, fixed, forget=True)) for s in sources]  # type: ignore[type-var]
    return exact_null_vectors(blocks_of(exact[0].robot, exact[0].space)[i], exact, scalars)


def _same(a: NullVectors, b: NullVectors) -> bool:
    """Whether two bases are the same numbers up to round-off."""
    return a.pivots == b.pivots and np.allclose(a.basis, b.basis, rtol=0.0, atol=1e-8)


def with_lengths(robot: Robot, lengths: dict[str, float], *, forget: bool = False) -> Robot:
    """The same arm with other values for named lengths, which lose their names with `forget`."""

    def element(e: Elementary) -> Elementary:
        if e.symbol not in lengths or e.value == 0.0 or e.motion.is_rotation:
            return e
        return replace(e, value=lengths[e.symbol], symbol=None if forget else e.symbol)

    return replace(
        robot, joints=tuple(replace(j, transforms=tuple(element(e) for e in j.transforms)) for j in robot.joints)
    )


def _lifted(block: Block, vector: Sequence[Any], scalars: FieldScalars) -> Vector:
    """The unnoticed change: the body added to the block's link, taken from the link before, with the drive's part."""
    out: Vector = {}
    ten = vector[:N_INERTIAL]
    for start, elements, sign, inverse in (
        (block.link_start, block.after, 1, True),
        (block.parent_start, block.before, -1, False),
    ):
        if start is None:
            continue
        for k, value in enumerate(inertial_transform(scalars.placement(elements), ten, inverse=inverse)):
            if value:
                out[start + k] = value if sign > 0 else -value
    for column, value in zip(block.drives, vector[N_INERTIAL:], strict=True):
        if value:
            out[column] = value
    return out


def _reduce_block(own: list[Vector], vectors: dict[int, Vector]) -> None:
    """Gauss-Jordan on the vectors of one block, pivots on the highest index; adds them to those of the blocks before.

    Vectors of earlier blocks have no entry in this block's columns, so they stay reduced.
    """
    own = [_reduced(v, vectors) for v in own]
    pivots: dict[int, Vector] = {}
    for vector in own:
        v = _reduced(vector, pivots)
        if not v:
            continue
        pivot = max(v)
        scale = v[pivot]
        v = {i: x / scale for i, x in v.items()}
        pivots = {p: minus(w, w.get(pivot), v) for p, w in pivots.items()} | {pivot: v}
    vectors.update(pivots)


def _reduced(vector: Vector, pivots: dict[int, Vector]) -> Vector:
    """The vector with zeros at all pivots."""
    for pivot, w in pivots.items():
        vector = minus(vector, vector.get(pivot), w)
    return vector


def _symbolic_terms(base: BaseParameters, vectors: dict[int, Vector]) -> tuple[dict[str, sympy.Expr], ...]:
    """From unnoticed changes e_j - sum K_ij e_i to base parameters b_i = pi_i + sum K_ij pi_j."""
    rows: dict[int, dict[int, sympy.Expr]] = {int(i): {int(i): sympy.Integer(1)} for i in base.independent}
    for j, vector in vectors.items():
        for i, value in vector.items():
            if i != j:
                rows[i][j] = sympy.factor((-value).as_expr())
    return tuple({base.parameters[j]: rows[int(i)][j] for j in sorted(rows[int(i)])} for i in base.independent)


def _check_agreement(regrouping: Regrouping) -> None:
    """Symbolic and numeric coefficients are the same numbers.

    Raises:
        UnsupportedClosedFormError: they are not; lengths that happen to satisfy a relation can do that.
    """
    weak = regrouping.base.weak
    tolerance = max(_AGREEMENT, _ROUND_OFF / weak[0].ratio if weak else 0.0)
    for i, terms in enumerate(regrouping.terms):
        numeric = regrouping.base.terms(i)
        at = {name: float(c.subs(regrouping.lengths)) for name, c in terms.items()}
        for name in numeric.keys() | at.keys():
            expected, value = numeric.get(name, 0.0), at.get(name, 0.0)
            if abs(expected - value) > tolerance * max(1.0, abs(expected)):
                raise UnsupportedClosedFormError(
                    f"{regrouping.base.names[i]}: the coefficient of {name} is {value:g} in closed form "
                    f"but {expected:g} from samples; use the numeric base parameters"
                )


def numeric_terms(base: BaseParameters) -> tuple[dict[str, sympy.Expr], ...]:
    """Coefficients as exact short numbers, for an arm whose closed form is out of reach."""
    return tuple(
        {name: sympy.Rational(*exact_number(value).as_integer_ratio()) for name, value in base.terms(i).items()}
        for i in range(len(base))
    )
