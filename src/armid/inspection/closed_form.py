"""Closed forms on request: g(q), M(q), C(q, qd) and axis inertias as LaTeX, SymPy and NumPy text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from armid.identifiability.base import BaseParameters
from armid.identifiability.structure import structural_base, structural_rows
from armid.kernels.source import RowSource
from armid.parameters.effects import Effects
from armid.parameters.space import ROTOR_INERTIA, Parameter
from armid.robot.robot import Robot
from armid.rows.axis_inertia import AxisInertiaRows
from armid.rows.gravity import GravityRows
from armid.rows.inertia_matrix import InertiaMatrixRows

if TYPE_CHECKING:
    import sympy

    from armid.identifiability.closed_form import ClosedForm
    from armid.identifiability.minimal_model import MinimalModel


class FormWord(StrEnum):
    """What can be asked for in closed form."""

    GRAVITY = "gravity"
    INERTIA_MATRIX = "inertia-matrix"
    CORIOLIS = "coriolis"
    AXIS_INERTIA = "axis-inertia"

    @property
    def stem(self) -> str:
        """Of the names of its files."""
        return self.value.replace("-", "_")


_SOURCES: dict[FormWord, Any] = {
    FormWord.GRAVITY: GravityRows,
    FormWord.INERTIA_MATRIX: InertiaMatrixRows,
    FormWord.CORIOLIS: InertiaMatrixRows,
    FormWord.AXIS_INERTIA: AxisInertiaRows,
}

_UNSEEN = 1e-9
"""Relative size below which a change of parameters has no effect on rows computed in double precision."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ArmForm:
    """A closed form and what its base parameters stand for.

    Args:
        word: what it is of.
        form: functions of the inputs times base parameters.
        base: the base parameters.
        terms: their combinations of standard parameters.
        standard: the standard parameters.
    """

    word: FormWord
    form: ClosedForm
    base: BaseParameters
    terms: tuple[dict[str, sympy.Expr], ...]
    standard: tuple[Parameter, ...]

    @cached_property
    def axis_models(self) -> tuple[MinimalModel, ...]:
        """The minimal model of every channel; [RWTH2021] eq. 24."""
        from armid.identifiability.minimal_model import minimal_model

        return tuple(minimal_model(self.form, k) for k in range(len(self.form.channels)))

    def axis_functions(self, axis: int) -> list[tuple[sympy.Expr, dict[str, sympy.Expr]]]:
        """Base functions of one axis, each with the combination of standard parameters it multiplies."""
        standard = dict(zip(self.base.names, self.terms, strict=True))
        model = self.axis_models[axis]
        return list(zip(model.expressions, model.standard_terms(standard), strict=True))


def arm_form(
    robot: Robot,
    word: FormWord,
    *,
    base: BaseParameters,
    terms: tuple[dict[str, sympy.Expr], ...],
    parameters: tuple[Parameter, ...],
) -> ArmForm:
    """A closed form over the inspected base parameters, or over its own when those do not determine it.

    With drives that move several joints, g, M and C are those of the joints themselves (`q = coupling @ q_drive`,
    torques `coupling^T tau`); axis inertias belong to drives and are refused.

    Args:
        robot: the arm.
        word: what to write.
        base: the inspected base parameters.
        terms: their combinations.
        parameters: the standard parameters inspected.
    """
    from armid.identifiability.closed_form import closed_form, coriolis_form
    from armid.identifiability.regrouping import regroup

    effects = Effects(rotor_inertia=any(parameter.quantity == ROTOR_INERTIA for parameter in parameters))
    if robot.coupling is not None and word is not FormWord.AXIS_INERTIA:
        robot, effects = replace(robot, coupling=None), Effects()
    source = _SOURCES[word](robot, effects)
    if not _determines(base, source):
        base = structural_base(source)
        terms, parameters = regroup(source, base=base).terms, source.space.parameters
    form = closed_form(source, base.names, name=word)
    if word is FormWord.CORIOLIS:
        form = coriolis_form(form, {entry: k for k, entry in enumerate(source.entries)})
    return ArmForm(word=word, form=form, base=base, terms=terms, standard=parameters)


def _determines(base: BaseParameters, source: RowSource) -> bool:
    """Whether changes that the base parameters do not notice have no effect on a source's rows."""
    if not set(source.columns) <= set(base.parameters):
        return False
    A = structural_rows(source, count=30).reshape(-1, len(source.columns))
    N = base.null_space[[base.parameters.index(name) for name in source.columns]]
    return bool(np.abs(A @ N).max(initial=0.0) <= _UNSEEN * np.abs(A).max())


def form_files(arm: ArmForm) -> dict[str, str]:
    """File name -> text: `<name>.tex`, `<name>.py` (NumPy), `<name>.sympy` (one expression per line)."""
    from armid.identifiability.expressions import plain

    stem = arm.word.stem
    regroupings = [f"% {b} = {plain(terms)}" for b, terms in zip(arm.base.names, arm.terms, strict=True)]
    texts = {
        f"{stem}.tex": "\n".join([*regroupings, arm.form.latex()]) + "\n",
        f"{stem}.py": arm.form.numpy_source(),
        f"{stem}.sympy": "".join(
            f"{c} = {e}\n" for c, e in zip(arm.form.channels, arm.form.expressions(), strict=True)
        ),
    }
    if arm.word is FormWord.AXIS_INERTIA:
        texts[f"{stem}_minimal.tex"] = _minimal_latex(arm)
        texts[f"{stem}_minimal.txt"] = _minimal_text(arm)
    return texts


def axis_caption(arm: ArmForm, axis: int) -> str:
    """`axis 5: 3 base functions`."""
    count = len(arm.axis_models[axis])
    return f"axis {axis + 1}: {count} base function{'s' if count != 1 else ''}"


def _minimal_text(arm: ArmForm) -> str:
    """The minimal models for people, one function per line."""
    from armid.identifiability.expressions import Notation

    notation = Notation.of(arm.standard)
    lines = []
    for k in range(len(arm.axis_models)):
        lines.append(axis_caption(arm, k))
        for function, terms in arm.axis_functions(k):
            lines.append(f"  {str(function).replace('**', '^')}: {notation.unicode(terms)}")
    return "\n".join(lines) + "\n"


def _minimal_latex(arm: ArmForm) -> str:
    """Base functions and their parameters, axis by axis."""
    import sympy

    from armid.identifiability.expressions import Notation

    notation = Notation.of(arm.standard)
    lines = []
    for k, model in enumerate(arm.axis_models):
        lines += [rf"% axis {k + 1}: {len(model)} base functions", r"\begin{align*}"]
        lines += [rf"  {sympy.latex(f)} &: {notation.latex(terms)} \\" for f, terms in arm.axis_functions(k)]
        lines.append(r"\end{align*}")
    return "\n".join(lines) + "\n"
