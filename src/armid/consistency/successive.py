"""Non-convex extras under all bounds: convex programs in a row, each with the extras linearised where the last one ended.

Every iterate satisfies the cone and every bound, the rows stay exact, and only the extras need damping; their sum of squares
is measured where they are, so the cost never rises.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from armid.consistency.bounds import Bounds
from armid.consistency.consistent import Consistency, ConsistentEstimate, active_notes, sum_of_squares
from armid.consistency.knowledge import Extras
from armid.consistency.refine import Problem
from armid.consistency.regularisers import PullBack, Regulariser
from armid.information.information import Information
from armid.information.status import Status
from armid.notes import Note, Severity

_NEGLIGIBLE = 1e-4
"""Of a step's gain in weighted squared error, where one is a standard deviation: the search ends."""
_STIFFEST = 1e8
"""Damping in units of the pull-back divergence from the last iterate: no step that helps is left."""


@dataclass(frozen=True, eq=False)
class SuccessivePrograms:
    """Settings.

    Args:
        regulariser: pull towards the prior.
        bounds: kept by every iterate.
        iterations: at most so many.
    """

    regulariser: Regulariser = field(default_factory=PullBack)
    bounds: Bounds = field(default_factory=Bounds)
    iterations: int = 60

    def fit(self, information: Information, start: ConsistentEstimate, extras: Extras) -> ConsistentEstimate:
        """A local optimum; the global one when the extras are convex.

        Args:
            information: the same weighted rows the start was fitted to.
            start: estimate within the same bounds.
            extras: further residuals.

        Raises:
            EstimationError: the solver failed.
        """
        factor = information.stacked()
        R, z = factor[:-1, :-1], factor[:-1, -1]
        convex = Consistency(self.regulariser, self.bounds)
        cost = Problem(R=R, z=z, regulariser=self.regulariser, start=start, extras=extras).cost
        F = PullBack().root(start.prior)
        x, damping, status, used, seconds = np.array(start.values), 1e-3, Status.NOT_CONVERGED, 0, start.seconds
        while used < self.iterations and status is not Status.SOLVED:
            used += 1
            r, J = extras(x)
            w = np.sqrt(damping)
            rows, values = np.vstack([R, J, w * F]), np.concatenate([z, J @ x - r, w * F @ x])
            solution, scale = convex.solve(rows, values, start.prior, 0.0)
            seconds += solution.seconds
            trial = solution.v[: len(scale)] * scale
            gain = cost(x) - cost(trial)
            if gain > 0.0:
                x, damping = trial, damping / 10.0
            else:
                damping *= 10.0
            if 0.0 < gain < _NEGLIGIBLE or damping > _STIFFEST:
                status = Status.SOLVED
        notes = tuple(note for note in start.notes if note.code != "bounds-active")
        notes += active_notes(self.bounds, start.prior, x)
        if status is not Status.SOLVED:
            notes += (Note("not-converged", Severity.WARNING, status.message),)
        return replace(
            start,
            values=x,
            chi_square=sum_of_squares(factor, x),
            method="successive-lmi",
            status=status,
            iterations=used,
            seconds=seconds,
            notes=notes,
        )
