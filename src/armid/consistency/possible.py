"""From weighted rows to possible bodies, by the way asked for: the one call behind `armid identify`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from armid.arrays import FloatArray
from armid.consistency.bounds import Bounds
from armid.consistency.consistent import Consistency, ConsistentEstimate
from armid.consistency.knowledge import extras_of
from armid.consistency.prior import Prior
from armid.consistency.refine import LogCholeskyRefinement
from armid.consistency.regularisers import Entropic, Euclidean, PullBack, Regulariser
from armid.consistency.successive import SuccessivePrograms
from armid.consistency.thesis import ThesisProblem
from armid.errors import InputError
from armid.information.information import Information


class Way(StrEnum):
    """How possible bodies are found."""

    LMI = "lmi"
    """Pseudo-inertias positive definite, by convex programming: the global optimum, always possible bodies. Knowledge about
    centres of mass, not convex, is taken in by convex programs in a row: a local optimum."""
    LOG_CHOLESKY = "log-cholesky"
    """The same, refined smoothly in coordinates that know no impossible bodies: a local optimum; no further bounds."""
    THESIS = "eq3.53"
    """The inequalities of [Halper2024]'s eq. 3.53: positive masses and tensors, but not always possible bodies; checked."""


REGULARISERS: dict[str, type[PullBack] | type[Entropic] | type[Euclidean]] = {
    "pull-back": PullBack,
    "entropic": Entropic,
    "euclidean": Euclidean,
}


@dataclass(frozen=True, eq=False)
class PossibleBodies:
    """Settings.

    Args:
        regulariser: pull towards the prior.
        bounds: further constraints, and knowledge about centres of mass.
        way: how.
    """

    regulariser: Regulariser = field(default_factory=PullBack)
    bounds: Bounds = field(default_factory=Bounds)
    way: Way = Way.LMI

    def fit(self, information: Information, units: tuple[str, ...], prior: Prior) -> ConsistentEstimate:
        """The estimate; the convex program comes first whatever the way, the others start from it.

        Raises:
            EstimationError: contradictory bounds, or the solver failed.
            InputError: bounds that the way cannot keep.
        """
        if self.way is Way.LOG_CHOLESKY and self.bounds.bodies_bounded:
            hint = "use lmi, which keeps them and takes in knowledge about centres of mass too"
            raise InputError("consistency log-cholesky", "bounds on masses or places have no smooth coordinates", hint)
        start = Consistency(self.regulariser, self.bounds).fit(information, units, prior)
        return self._from(start, information)

    def values(self, information: Information, units: tuple[str, ...], prior: Prior) -> FloatArray:
        """Its parameters alone, where nothing else is asked of it.

        Raises:
            EstimationError, InputError: as for `fit`.
        """
        if self.way is Way.LMI and not self.bounds.knowledge:
            return Consistency(self.regulariser, self.bounds).values(information, prior)[0]
        return self.fit(information, units, prior).values

    def _from(self, start: ConsistentEstimate, information: Information) -> ConsistentEstimate:
        """By the way asked for, from the optimum of the convex program."""
        extras = extras_of(self.bounds.knowledge, start.bodies, len(start.names))
        match self.way:
            case Way.THESIS:
                return ThesisProblem(self.regulariser, self.bounds).fit(information, start)
            case Way.LOG_CHOLESKY:
                return LogCholeskyRefinement(self.regulariser, self.bounds.margin).fit(information, start, extras)
            case Way.LMI:
                if extras is None:
                    return start
                return SuccessivePrograms(self.regulariser, self.bounds).fit(information, start, extras)
