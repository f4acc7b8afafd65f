"""Coefficients counted and printed as [Gaz2014] does: every product of sines and cosines has one, and equal ones are one.

A gravity vector or an inertia matrix in closed form is a sum of products of sines and cosines, each times a linear form in the
standard parameters. The work collects these forms "when different"; here two are different unless they agree up to sign. They
are not independent of one another for an inertia matrix: most are multiples of others by a length or its square, and what is left
are as many as base parameters. That columns of all of them are independent does not show it: products of sines and cosines are
independent whatever they are multiplied with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armid.arrays import FloatArray
from armid.documents import new_file
from armid.kernels.source import RowSource
from armid.parameters.effects import Effects
from armid.recovery.silent_channels import Silence
from armid.rows.gravity import GravityRows
from armid.rows.inertia_matrix import InertiaMatrixRows

if TYPE_CHECKING:
    from armid.estimation.estimate import Estimate
    from armid.recovery.recovery import Recovery

_SOURCES: Mapping[str, type] = {"gravity": GravityRows, "inertia": InertiaMatrixRows}

_ALONE = 1e-9
"""Round-off: a constraint that involves another base parameter by more is not about a single one, and forms that are less aligned
are not multiples of each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """One coefficient of a quantity in closed form.

    Args:
        quantity: gravity or inertia.
        expression: in the standard parameters and lengths.
        value: [kg m or kg m^2].
        elements: of the quantity that contain it.
        family: number of the first coefficient of the quantity that it is a multiple of, its own when it is that one.
    """

    quantity: str
    expression: str
    value: float
    elements: tuple[str, ...]
    family: int


def collected_coefficients(found: Recovery) -> tuple[Coefficient, ...]:
    """Coefficients of gravity vector and inertia matrix with the recovered values, gravity first.

    Args:
        found: a recovered model; what it found to vanish is left out ([Gaz2014] eq. 27).
    """
    vanishing = {
        name
        for silent in found.silent
        if silent.kind is Silence.CONSTRAINT
        for constraint in silent.constraints
        for name in _single(constraint)
    }
    fitted = {"gravity": found.gravity, "inertia": found.inertia}
    out: list[Coefficient] = []
    for quantity, estimate in fitted.items():
        if estimate is not None:
            source = _SOURCES[quantity](found.robot, found.effects or Effects())
            out += _collected(quantity, source, estimate, vanishing)
    return tuple(out)


def coefficient_counts(rows: Sequence[Coefficient]) -> dict[str, int]:
    """How many there are in each quantity, how many that differ by more than a factor, and how many in its richest element."""
    out: dict[str, int] = {}
    for quantity in dict.fromkeys(row.quantity for row in rows):
        own = [row for row in rows if row.quantity == quantity]
        elements = [name for row in own for name in row.elements]
        richest = max(dict.fromkeys(elements), key=elements.count)
        families = len({row.family for row in own})
        out |= {quantity: len(own), f"{quantity}, but for a factor": families, richest: elements.count(richest)}
    return out


def write_coefficients(rows: Sequence[Coefficient], path: Path) -> Path:
    """One line per coefficient: quantity, value, family, elements, expression."""
    with new_file(path, text=True) as file:
        file.write("quantity,value,family,elements,expression\n")
        for row in rows:
            file.write(f"{row.quantity},{row.value!r},{row.family},{' '.join(row.elements)},{row.expression}\n")
    return path


def _single(constraint: Mapping[str, float]) -> list[str]:
    """The base parameter a constraint says is zero; empty when it relates several."""
    own = [name for name, share in constraint.items() if abs(share) > _ALONE]
    return own if len(own) == 1 else []


def _collected(quantity: str, source: RowSource, estimate: Estimate, vanishing: set[str]) -> list[Coefficient]:
    # sympy takes a quarter of a second to load: only who asks for closed forms pays.
    from armid.identifiability.closed_form import closed_form, lengths_of
    from armid.identifiability.expressions import plain
    from armid.identifiability.minimal_model import channel_forms
    from armid.identifiability.regrouping import regroup

    arm_source: Any = source
    form = closed_form(arm_source, estimate.names)
    terms = regroup(arm_source, base=estimate.base).terms
    lengths = lengths_of(form.scalars.robot)
    kept = [j for j, name in enumerate(estimate.names) if name not in vanishing]
    found: dict[tuple[tuple[int, Any], ...], list[str]] = {}
    for k, channel in enumerate(form.channels):
        for linear in channel_forms(form, k):
            key = _without_sign({j: x for j, x in linear.items() if j in kept})
            if key:
                where = found.setdefault(key, [])
                where += [] if channel in where else [channel]
    forms = np.zeros((len(found), len(estimate.names)))
    for i, key in enumerate(found):
        for j, x in key:
            forms[i, j] = float(x.subs(lengths))
    return [
        Coefficient(
            quantity=quantity,
            expression=plain(_standard_terms(key, terms)),
            value=float(forms[i] @ estimate.values),
            elements=tuple(where),
            family=_first_multiple(forms, i),
        )
        for i, (key, where) in enumerate(found.items())
    ]


def _first_multiple(forms: FloatArray, i: int) -> int:
    """The first of the linear forms that form i is a multiple of, by Schwarz's inequality."""
    sizes = np.linalg.norm(forms, axis=1)
    aligned = np.abs(forms @ forms[i]) >= (1.0 - _ALONE) * sizes * sizes[i]
    return int(np.argmax(aligned))


def _without_sign(linear: Mapping[int, Any]) -> tuple[tuple[int, Any], ...]:
    """A linear form as a key that its negative shares."""
    items = sorted(linear.items())
    if items and items[0][1].could_extract_minus_sign():
        items = [(j, -x) for j, x in items]
    return tuple(items)


def _standard_terms(key: Sequence[tuple[int, Any]], terms: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A linear form in base parameters as one in the standard ones."""
    out: dict[str, Any] = {}
    for j, x in key:
        for name, share in terms[j].items():
            out[name] = out.get(name, 0) + x * share
    return {name: value for name, value in ((n, v.expand().factor()) for n, v in out.items()) if value != 0}
