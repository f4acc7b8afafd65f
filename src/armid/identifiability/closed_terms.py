"""The combinations that base parameters stand for, as exact expressions where they exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from armid.identifiability.base import BaseParameters
from armid.identifiability.errors import UnsupportedClosedFormError
from armid.kernels.source import RowSource
from armid.notes import Note, Severity
from armid.rows.quantity import ArmSource

if TYPE_CHECKING:
    import sympy


_MOST_JOINTS_IN_SYMBOLS = 10
"""Expressions of a general arm double with every joint: ten take seconds, twenty do not end."""


@dataclass(frozen=True, eq=False)
class Combinations:
    """Coefficients of base parameters over the standard ones.

    Args:
        terms: for each base parameter, standard parameter -> coefficient.
        exact: whether they are expressions in the link lengths; numbers otherwise.
        notes: why they are not, where that deserves a word.
    """

    terms: tuple[dict[str, sympy.Expr], ...]
    exact: bool
    notes: tuple[Note, ...] = ()


def closed_terms(sources: Sequence[RowSource], base: BaseParameters) -> Combinations:
    """Coefficients in closed form, or as numbers with a note that says why."""
    # sympy takes a quarter of a second to load: only who asks for closed forms pays.
    from armid.identifiability.regrouping import numeric_terms, regroup

    of_arm = [source for source in sources if isinstance(source, ArmSource)]
    if len(of_arm) < len(sources) or all(parameter.component is None for parameter in of_arm[0].space):
        return Combinations(numeric_terms(base), exact=False)
    joints = of_arm[0].robot.n_joints
    if joints > _MOST_JOINTS_IN_SYMBOLS:
        text = f"{joints} joints: combinations are numbers, expressions are made for arms of up to {_MOST_JOINTS_IN_SYMBOLS}"
        note = Note("no-closed-form", Severity.INFO, text)
        return Combinations(numeric_terms(base), exact=False, notes=(note,))
    try:
        return Combinations(regroup(*of_arm, base=base).terms, exact=True)
    except UnsupportedClosedFormError as reason:
        note = Note("no-closed-form", Severity.INFO, str(reason))
        return Combinations(numeric_terms(base), exact=False, notes=(note,))


def numeric_combinations(base: BaseParameters) -> Combinations:
    """Coefficients as numbers: for a base in another convention than ours."""
    from armid.identifiability.regrouping import numeric_terms

    return Combinations(numeric_terms(base), exact=False)
