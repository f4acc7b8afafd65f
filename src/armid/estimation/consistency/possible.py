"""From weighted rows to possible bodies, by the way asked for: the one call behind `armid identify`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from armid.estimation.consistency.bounds import Bounds
from armid.estimation.consistency.consistent import Consistency, ConsistentEstimate
from armid.estimation.consistency.knowledge import extras_of
from armid.estimation.consistency.prior import Prior
from armid.estimation.consistency.refine import LogCholeskyRefinement
from armid.estimation.consistency.regularisers import Entropic, Euclidean, PullBack, Regulariser
from armid.estimation.consistency.thesis import ThesisProblem
from armid.information.information import Information


class Way(StrEnum):
    """How possible bodies are found."""

    LMI = "lmi"
    """Pseudo-inertias positive definite, by convex programming: the global optimum, always possible bodies."""
    LOG_CHOLESKY = "log-cholesky"
    """The same, refined smoothly: possible bodies by construction, a local optimum, knowledge about centres of mass counts."""
    THESIS = "eq3.53"
    """The inequalities of seed 000's eq. 3.53: positive masses and tensors, but not always possible bodies; checked."""


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
        bounds: further constraints; knowledge about centres of mass asks for the refinement by itself.
        way: how.
    """

    regulariser: Regulariser = field(default_factory=PullBack)
    bounds: Bounds = field(default_factory=Bounds)
    way: Way = Way.LMI

    def fit(self, information: Information, units: tuple[str, ...], prior: Prior) -> ConsistentEstimate:
        """The estimate; the convex program comes first whatever the way, the others start from it.

        Raises:
            EstimationError: contradictory bounds, or the solver failed.
        """
        start = Consistency(self.regulariser, self.bounds).fit(information, units, prior)
        if self.way is Way.THESIS:
            return ThesisProblem(self.regulariser, self.bounds).fit(information, start)
        extras = extras_of(self.bounds.knowledge, start.bodies, len(start.names))
        if self.way is Way.LOG_CHOLESKY or extras is not None:
            return LogCholeskyRefinement(self.regulariser, self.bounds).fit(information, start, extras)
        return start
