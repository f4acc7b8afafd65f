"""Why a path cannot be planned; every error says where on the path."""

from __future__ import annotations

from armid.errors import ArmidError


class PathError(ArmidError):
    """Something about the path that no timing can mend.

    Args:
        place: where on the path, in words a person can find again.
        problem: what is wrong there, with the offending value.
        hint: what to try.
    """

    def __init__(self, place: str, problem: str, hint: str = "") -> None:
        self.place = place
        self.problem = problem
        self.hint = hint
        super().__init__(f"path, {place}: {problem}" + (f" ({hint})" if hint else ""))


class OutsideLimitsError(PathError):
    """The path leaves a joint's position limits."""


class CollisionError(PathError):
    """The arm would touch itself or the cell."""


class SingularPathError(PathError):
    """The path stands still while its parameter moves on: velocity has no direction there."""


class HoldingError(PathError):
    """The drives cannot hold or slowly move the arm there within their torque limits."""


class UnreachableError(PathError):
    """No joint positions were found that put the tool there."""


class StuckError(PathError):
    """No speed is possible there that also leads on to the end of the path."""


class PlanRefusedError(ArmidError):
    """A result that is not to be trusted is not planned with."""

    def __init__(self, reasons: tuple[str, ...]) -> None:
        self.reasons = reasons
        super().__init__(
            "the result is untrusted and no motion is planned with it: "
            + "; ".join(reasons)
            + " (--force plans with it, and marks the files UNVALIDATED)"
        )
