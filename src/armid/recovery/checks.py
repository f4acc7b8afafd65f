"""What a recovered model is held against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt

from armid.consistency.consistent import ConsistentEstimate
from armid.notes import Note, Severity
from armid.outcome import Check
from armid.recovery.elements import ElementError
from armid.recovery.gravity import FOREIGN

_DISAGREEMENT = 10.0
"""Gravity and inertia that share no model fit together at least this many times worse than apart."""


def reproduction_checks(validation: Sequence[ElementError]) -> list[Check]:
    """Whether elements at poses that were not used are reproduced, quantity by quantity."""
    out = []
    for quantity in dict.fromkeys(e.quantity for e in validation):
        own = [e for e in validation if e.quantity == quantity]
        size = sum(e.size**2 for e in own)
        error = sqrt(sum(e.mean_square for e in own) / size) if size > 0.0 else 0.0
        out.append(
            Check(
                code="reproduced",
                passed=error < FOREIGN,
                value=error,
                limit=FOREIGN,
                message=f"{quantity} at poses that were not used is off by {100 * error:.2g} %",
                subject=quantity,
            )
        )
    return out


def agreement_checks(disagreement: Mapping[str, float]) -> list[Check]:
    """Whether gravity and inertia belong to one arm: a reversed sign, or a tool only one of them knows of, does not."""
    return [
        Check(
            code="one-arm",
            passed=ratio < _DISAGREEMENT,
            value=ratio,
            limit=_DISAGREEMENT,
            message=f"{name}: {_disagreement_text(name, ratio)}",
            subject=name,
        )
        for name, ratio in disagreement.items()
    ]


def _disagreement_text(name: str, ratio: float) -> str:
    """In words."""
    return (
        f"{name} fitted with the rest is {ratio:.2g} times worse than alone: gravity and inertia do not belong to one arm (a "
        "reversed sign, another mounting, or a tool that only one of them includes)"
    )


def disagreement_notes(disagreement: Mapping[str, float]) -> list[Note]:
    """The same as findings."""
    return [
        Note("gravity-inertia-disagree", Severity.ERROR, _disagreement_text(name, ratio), name)
        for name, ratio in disagreement.items()
        if ratio >= _DISAGREEMENT
    ]


def notes_of(suspicions: Iterable[Check]) -> list[Note]:
    """What speaks against the data, as findings."""
    return [
        Note(check.code, Severity.ERROR if check.decisive else Severity.WARNING, check.message, check.subject)
        for check in suspicions
    ]


def bodies_check(consistent: ConsistentEstimate) -> Check:
    """Whether bodies that can exist have these coefficients; without them there is no description to write."""
    smallest = min(consistent.smallest_eigenvalues.values(), default=0.0)
    return Check(
        code="possible-bodies",
        passed=consistent.is_physical,
        value=smallest,
        limit=0.0,
        message="no bodies that can exist have these coefficients"
        if not consistent.is_physical
        else "bodies that can exist have these coefficients",
        decisive=False,
    )
