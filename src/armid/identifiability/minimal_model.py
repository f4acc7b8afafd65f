"""One channel as few base functions times as few parameters as possible; algorithms 4.3 to 4.8 of [RWTH2021]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.errors import MissingDependencyError
from armid.identifiability.closed_form import ClosedForm, lengths_of, numeric_generators, polynomial_values
from armid.recursion.trigonometry import TrigonometricScalars

try:
    import sympy
    from sympy.polys.domains import QQ
    from sympy.polys.fields import field
except ImportError:
    raise MissingDependencyError("sympy", "closed forms of parameters", "symbolic") from None

LinearForm = dict[int, Any]
"""Index of a base parameter -> coefficient in the field of the lengths."""


@dataclass(frozen=True, eq=False, kw_only=True)
class MinimalModel:
    """`y = sum over k of function_k(q) * phi_k`, with independent functions and independent phi.

    Args:
        channel: what is measured.
        functions: base functions, each a sum of products of sines and cosines: exponents of the ring's generators ->
            weight, a number or an expression in the link lengths.
        parameters: phi_k as base parameter -> coefficient in the link lengths.
        inputs: names of the arguments.
        scalars: the ring of the functions.
    """

    channel: str
    functions: tuple[dict[tuple[int, ...], sympy.Expr], ...]
    parameters: tuple[dict[str, sympy.Expr], ...]
    inputs: tuple[str, ...]
    scalars: TrigonometricScalars

    def __len__(self) -> int:
        return len(self.functions)

    @property
    def expressions(self) -> tuple[sympy.Expr, ...]:
        """The base functions as SymPy expressions."""
        return tuple(
            sympy.Add(*(weight * self.scalars.expression(self.monomial(m)) for m, weight in function.items()))
            for function in self.functions
        )

    def monomial(self, exponents: tuple[int, ...]) -> Any:
        """A product of sines and cosines as an element of the ring."""
        return self.scalars.ring({(*exponents, *(0 for _ in self.scalars.lengths)): QQ(1)})

    def standard_terms(self, base_terms: Mapping[str, Mapping[str, sympy.Expr]]) -> tuple[dict[str, sympy.Expr], ...]:
        """The phi as combinations of standard parameters, given those of the base parameters."""
        out = []
        for phi in self.parameters:
            total: dict[str, sympy.Expr] = {}
            for name, factor in phi.items():
                for standard, coefficient in base_terms[name].items():
                    total[standard] = total.get(standard, sympy.Integer(0)) + factor * coefficient
            out.append({k: sympy.factor(v) for k, v in total.items() if sympy.expand(v) != 0})
        return tuple(out)

    def evaluate(self, q: npt.ArrayLike) -> FloatArray:
        """The base functions at many positions, shape [n_samples, len(self)].

        Args:
            q: joint positions, shape [n_samples, n_joints].
        """
        x = samples("q", q, len(self.inputs))
        generators = numeric_generators(self.scalars, dict(zip(self.inputs, x.T, strict=True)))
        lengths = {sympy.Symbol(k): v for k, v in lengths_of(self.scalars.robot).items()}
        products = {m: polynomial_values(self.monomial(m), generators, len(x)) for f in self.functions for m in f}
        columns = [
            sum((float(weight.subs(lengths)) * products[m] for m, weight in function.items()), start=np.zeros(len(x)))
            for function in self.functions
        ]
        return np.column_stack(columns)


def minimal_model(form: ClosedForm, channel: int | str) -> MinimalModel:
    """The minimal model of one channel.

    Every monomial in sines and cosines multiplies a linear form in the base parameters. Forms are taken in order; one
    that those before it already span adds its monomial to their functions instead of becoming a parameter.
    """
    k = form.channel(channel) if isinstance(channel, str) else channel
    scalars = form.scalars
    F, lengths = _length_field(scalars)
    forms = _monomial_forms(form.entries[k], scalars, F)
    chosen: list[LinearForm] = []
    functions: list[dict[tuple[int, ...], Any]] = []
    echelon: list[tuple[int, LinearForm, LinearForm]] = []
    for monomial in sorted(forms, reverse=True):
        rest, combination = _reduced_form(forms[monomial], echelon)
        if rest:
            pivot = min(rest)
            own = {index: -x for index, x in combination.items()} | {len(chosen): F.one}
            scale = rest[pivot]
            echelon.append((pivot, _divided(rest, scale), _divided(own, scale)))
            chosen.append(forms[monomial])
            functions.append({monomial: F.one})
        else:
            for index, x in combination.items():
                functions[index][monomial] = x
    parameters = tuple(
        {form.parameters[j]: sympy.factor(x.as_expr(*lengths)) for j, x in linear.items()} for linear in chosen
    )
    weighted = tuple({m: sympy.factor(w.as_expr(*lengths)) for m, w in function.items()} for function in functions)
    return MinimalModel(
        channel=form.channels[k], functions=weighted, parameters=parameters, inputs=form.inputs, scalars=scalars
    )


def channel_forms(form: ClosedForm, channel: int) -> list[dict[int, sympy.Expr]]:
    """The linear form in the base parameters that each product of sines and cosines of a channel multiplies."""
    F, lengths = _length_field(form.scalars)
    forms = _monomial_forms(form.entries[channel], form.scalars, F)
    return [{j: sympy.factor(x.as_expr(*lengths)) for j, x in linear.items()} for linear in forms.values()]


def _length_field(scalars: TrigonometricScalars) -> tuple[Any, list[sympy.Symbol]]:
    """The field of rational functions in the lengths, and the symbols of its generators."""
    names = list(scalars.lengths) or ["unused"]
    return field(names, QQ)[0], [sympy.Symbol(name) for name in names]


def _monomial_forms(row: Mapping[int, Any], scalars: TrigonometricScalars, F: Any) -> dict[tuple[int, ...], LinearForm]:
    """Exponents of the angles -> linear form in the base parameters; lengths go into its coefficients."""
    first = len(scalars.ring.gens) - len(scalars.lengths)
    out: dict[tuple[int, ...], LinearForm] = {}
    for j, p in row.items():
        for monomial, coefficient in p.terms():
            value = F(coefficient)
            for power, g in zip(monomial[first:], F.gens, strict=False):
                value = value * g**power if power else value
            form = out.setdefault(monomial[:first], {})
            form[j] = form.get(j, F.zero) + value
    return {m: {j: x for j, x in form.items() if x} for m, form in out.items() if any(form.values())}


def _reduced_form(
    form: LinearForm, echelon: Sequence[tuple[int, LinearForm, LinearForm]]
) -> tuple[LinearForm, LinearForm]:
    """What the chosen forms do not span of a form, and the combination of chosen forms that makes up the rest."""
    rest: LinearForm = dict(form)
    combination: LinearForm = {}
    for pivot, row, own in echelon:
        factor = rest.get(pivot)
        if not factor:
            continue
        rest = _combined(rest, -factor, row)
        combination = _combined(combination, factor, own)
    return rest, combination


def _combined(a: LinearForm, factor: Any, b: LinearForm) -> LinearForm:
    """A plus factor times b, without zeros."""
    out = dict(a)
    for index, x in b.items():
        out[index] = out[index] + factor * x if index in out else factor * x
    return {index: x for index, x in out.items() if x}


def _divided(form: LinearForm, scale: Any) -> LinearForm:
    return {index: x / scale for index, x in form.items()}
