"""Closed forms on request: g(q), M(q), C(q, qd) and axis inertias as LaTeX, SymPy and NumPy text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy

from armid.errors import InputError
from armid.identifiability.base import BaseParameters
from armid.identifiability.closed_form import ClosedForm, closed_form, coriolis_form
from armid.identifiability.expressions import latex, plain, unicode
from armid.identifiability.minimal_model import MinimalModel, minimal_model
from armid.identifiability.regrouping import regroup
from armid.identifiability.structure import structural_base, structural_rows
from armid.inspection.inspection import Inspection, Quantity
from armid.parameters.effects import Effects
from armid.rows.axis_inertia import AxisInertiaRows
from armid.rows.gravity import GravityRows
from armid.rows.inertia_matrix import InertiaMatrixRows

CLOSED_FORMS = ("gravity", "inertia-matrix", "coriolis", "axis-inertia")
"""What can be asked for."""

MINIMAL_TEXT = "axis_inertia_minimal.txt"
"""File for people: the base functions of every axis and what multiplies them."""

UNSEEN = 1e-9
"""Relative size below which a change of parameters has no effect on rows computed in double precision."""


@dataclass(frozen=True, eq=False)
class ArmForm:
    """A closed form and what its base parameters stand for.

    Args:
        form: functions of the inputs times base parameters.
        base: the base parameters.
        terms: their combinations of standard parameters.
    """

    form: ClosedForm
    base: BaseParameters
    terms: tuple[dict[str, sympy.Expr], ...]


def arm_form(found: Inspection, name: str) -> ArmForm:
    """One of `CLOSED_FORMS` over the inspected base parameters, or over its own when those do not determine it.

    With drives that move several joints, g, M and C are those of the joints themselves (`q = coupling @ q_drive`,
    torques `coupling^T tau`); axis inertias belong to drives and are refused.
    """
    if name not in CLOSED_FORMS:
        raise InputError("closed form", f"{name!r} is not one of them", ", ".join(CLOSED_FORMS))
    if Quantity.POSE in found.quantities:
        raise InputError("closed form", "asked for kinematic parameters", "inspect a quantity of the dynamics")
    effects = Effects(rotor_inertia=any(p.endswith(".rotor_inertia") for p in found.base.parameters))
    robot = found.robot
    if robot.coupling is not None and name != "axis-inertia":
        robot, effects = replace(robot, coupling=None), Effects()
    source: Any = {
        "gravity": GravityRows(robot, effects),
        "axis-inertia": AxisInertiaRows(robot, effects),
    }.get(name, InertiaMatrixRows(robot, effects))
    base, terms = found.base, found.terms
    if not determines(base, source):
        base = structural_base(source)
        terms = regroup(source, base=base).terms
    form = closed_form(source, base.names, name=name)
    if name == "coriolis":
        form = coriolis_form(form, {entry: k for k, entry in enumerate(source.entries)})
    return ArmForm(form, base, terms)


def determines(base: BaseParameters, source: Any) -> bool:
    """Whether changes that the base parameters do not notice have no effect on a source's rows."""
    if not set(source.columns) <= set(base.parameters):
        return False
    A = structural_rows(source, count=30).reshape(-1, len(source.columns))
    N = base.null_space[[base.parameters.index(name) for name in source.columns]]
    return bool(np.abs(A @ N).max(initial=0.0) <= UNSEEN * np.abs(A).max())


def axis_models(arm: ArmForm) -> tuple[MinimalModel, ...]:
    """The minimal model of every channel; [RWTH2021] eq. 24."""
    return tuple(minimal_model(arm.form, k) for k in range(len(arm.form.channels)))


def closed_form_files(found: Inspection, name: str) -> dict[str, str]:
    """File name -> text: `<name>.tex`, `<name>.py` (NumPy), `<name>.sympy` (one expression per line)."""
    arm = arm_form(found, name)
    stem = name.replace("-", "_")
    regroupings = [f"% {b} = {plain(terms)}" for b, terms in zip(arm.base.names, arm.terms, strict=True)]
    texts = {
        f"{stem}.tex": "\n".join([*regroupings, arm.form.latex()]) + "\n",
        f"{stem}.py": arm.form.numpy_source(),
        f"{stem}.sympy": "".join(
            f"{c} = {e}\n" for c, e in zip(arm.form.channels, arm.form.expressions(), strict=True)
        ),
    }
    if name == "axis-inertia":
        texts["axis_inertia_minimal.tex"] = minimal_latex(arm)
        texts[MINIMAL_TEXT] = minimal_text(arm)
    return texts


def minimal_text(arm: ArmForm) -> str:
    """The same for people, one function per line."""
    standard = dict(zip(arm.base.names, arm.terms, strict=True))
    lines = []
    for k, model in enumerate(axis_models(arm), start=1):
        lines.append(f"axis {k}: {len(model)} base function{'s' if len(model) != 1 else ''}")
        for function, terms in zip(model.expressions, model.standard_terms(standard), strict=True):
            lines.append(f"  {str(function).replace('**', '^')}: {unicode(terms)}")
    return "\n".join(lines) + "\n"


def minimal_latex(arm: ArmForm) -> str:
    """Base functions and their parameters, axis by axis."""
    standard = dict(zip(arm.base.names, arm.terms, strict=True))
    lines = []
    for k, model in enumerate(axis_models(arm), start=1):
        lines += [rf"% axis {k}: {len(model)} base functions", r"\begin{align*}"]
        for function, terms in zip(model.expressions, model.standard_terms(standard), strict=True):
            lines.append(rf"  {sympy.latex(function)} &: {latex(terms)} \\")
        lines.append(r"\end{align*}")
    return "\n".join(lines) + "\n"
