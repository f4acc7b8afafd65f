"""What an identified arm can be written as."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from armid.errors import InputError


class Format(StrEnum):
    """What can be written."""

    URDF = "urdf"
    MJCF = "mjcf"
    JSON = "json"
    PYTHON = "python"
    C = "c"
    MATLAB = "matlab"


SUFFIXES = {
    ".urdf": Format.URDF,
    ".xml": Format.MJCF,
    ".mjcf": Format.MJCF,
    ".json": Format.JSON,
    ".py": Format.PYTHON,
    ".c": Format.C,
    ".m": Format.MATLAB,
}

CODE = (Format.PYTHON, Format.C, Format.MATLAB)
"""Formats that are programs."""


class What(StrEnum):
    """What generated code computes."""

    MODEL = "model"
    """Torque, mass matrix, Coriolis matrix and gravity."""
    FEEDFORWARD = "feedforward"
    """Torque of a wanted motion, friction included."""
    GRAVITY = "gravity"
    """Torque that holds the arm."""
    OBSERVER = "observer"
    """External torque by the generalised momentum, one sample after the other."""


class RegressorKind(StrEnum):
    """Which regressor."""

    STANDARD = "regressor"
    """One column per standard parameter, [Halper2024]'s func_Y."""
    BASE = "base-regressor"
    """One column per base parameter, func_Y_b, and the base parameters of standard ones, func_pi_b."""


@dataclass(frozen=True)
class CodeContent:
    """What generated code is for.

    Args:
        what: it computes.
        rate_hz: samples a second that the observer will get.
        bandwidth_hz: of the observer.
    """

    what: What = What.MODEL
    rate_hz: float = 1000.0
    bandwidth_hz: float = 10.0

    def for_format(self, target: Format) -> CodeContent:
        """Itself, when this format can hold it.

        Raises:
            InputError: something else than the model in a description, an observer in MATLAB, or rates that cannot be.
        """
        if self.what is not What.MODEL and target not in CODE:
            raise InputError(
                f"--what {self.what}", f"{target} is a description", f"only {', '.join(CODE)} are programs"
            )
        if self.what is What.OBSERVER and target is Format.MATLAB:
            raise InputError(f"--what {self.what}", "is not written in matlab", "choose --to c or python")
        if not 0.0 < self.bandwidth_hz < self.rate_hz / 2.0:
            raise InputError(
                "bandwidth", f"{self.bandwidth_hz:g} Hz at {self.rate_hz:g} samples a second", "below half the rate"
            )
        return self
