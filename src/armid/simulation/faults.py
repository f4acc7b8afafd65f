"""What can go wrong while the simulated arm moves, said in words a person can act on."""

from __future__ import annotations

from armid.errors import ArmidError, InputError
from armid.notes import Note, Severity


class CommandError(InputError):
    """A command the arm cannot follow: not finite, beyond its limits, or starting elsewhere than the arm stands."""


class GainError(ArmidError):
    """Controller gains that make the sampled closed loop unstable.

    Args:
        radius: spectral radius of one control period, linearised; stable below 1.
        period: of the controller [s].
    """

    def __init__(self, radius: float, period: float) -> None:
        self.radius = radius
        self.period = period
        super().__init__(
            f"the controller gains are unstable at {1.0 / period:g} Hz: small errors grow by a factor {radius:.4g} per "
            "period (lower the gains, raise --control-rate-hz, or give light joints a rotor: --rotor-ratio)"
        )


class SimulationError(ArmidError):
    """A motion that had to be stopped.

    Args:
        fault: what happened, with a code for machines.
        time: when, since the start of the motion [s].
    """

    def __init__(self, fault: Note, time: float) -> None:
        self.fault = fault
        self.time = time
        super().__init__(f"the motion was stopped after {time:.3f} s: {fault.message}")


def ending_fault(code: str, message: str, subject: str = "") -> Note:
    """A fault that ends the motion."""
    return Note(code, Severity.ERROR, message, subject)


def passing_fault(code: str, message: str, subject: str = "") -> Note:
    """A fault the motion survives, kept in the record."""
    return Note(code, Severity.WARNING, message, subject)
