"""What identifiability refuses to answer."""

from __future__ import annotations

from armid.errors import ArmidError


class ToleranceError(ArmidError):
    """A rank tolerance that is not a fraction."""

    def __init__(self, value: float) -> None:
        self.value = value
        super().__init__(f"rank tolerance {value:g} is outside (0, 1); it is relative to the largest singular value")


class NothingIdentifiableError(ArmidError):
    """A quantity on which none of the parameters has any effect."""

    def __init__(self, what: str, parameters: tuple[str, ...]) -> None:
        self.what = what
        self.parameters = parameters
        shown = ", ".join(parameters[:6]) + (", ..." if len(parameters) > 6 else "")
        super().__init__(
            f"{what} identifies nothing: none of the {len(parameters)} parameters ({shown}) has an effect on it; "
            "measure another quantity, or check the direction of gravity"
        )


class UnsupportedClosedFormError(ArmidError):
    """A model whose closed form these rules do not cover; the numeric answer still holds."""
