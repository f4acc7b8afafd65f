"""How a fit ended. The text is the message: what happened and what to try."""

from __future__ import annotations

from enum import StrEnum

from armid.errors import ArmidError


class Status(StrEnum):
    """The end of a fit."""

    SOLVED = "solved"
    NOT_CONVERGED = "not-converged"
    RANK_DEFICIENT = "rank-deficient"
    TOO_FEW_ROWS = "too-few-rows"
    INFEASIBLE = "infeasible"
    SOLVER_FAILED = "solver-failed"

    @property
    def message(self) -> str:
        return _MESSAGES[self]


_MESSAGES = {
    Status.SOLVED: "solved",
    Status.NOT_CONVERGED: "the iteration stopped before its values settled; raise the iteration limit or look for outliers",
    Status.RANK_DEFICIENT: "the data cannot tell all wanted parameters apart; move more joints at once, or add a prior",
    Status.TOO_FEW_ROWS: "there are fewer rows than parameters; record a longer motion",
    Status.INFEASIBLE: "no parameters satisfy all the bounds at once; relax or correct the bounds named in the message",
    Status.SOLVER_FAILED: "the conic solver stopped without a solution; check the scale of the data and the bounds",
}


class EstimationError(ArmidError):
    """A fit that produced nothing usable.

    Args:
        status: how it ended.
        detail: which parameters, channels or bounds, with values.
    """

    def __init__(self, status: Status, detail: str) -> None:
        self.status = status
        self.detail = detail
        super().__init__(f"{detail}: {status.message} [{status.value}]")
