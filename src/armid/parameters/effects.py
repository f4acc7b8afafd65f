"""Which physical effects beyond the rigid links a model has, and what is measured and carried."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class TorqueSide(StrEnum):
    """Where torque is measured (models 1, 2, 3 of [Kolyubin2017])."""

    LINK = "link"
    """After the transmission: joint torque sensors. Rotor inertia only if the sensor sees it."""
    MOTOR = "motor"
    """Before the transmission (motor current), scaled to the joint: rigid body plus everything in the drive."""
    BOTH = "both"
    """Joint and motor torque together: two channels per joint."""
    DIFFERENCE = "difference"
    """Motor minus joint torque: the drive alone."""


class PayloadRuns(StrEnum):
    """What the arm carried."""

    NONE = "none"
    LOADED = "loaded"
    """Every run with the same unknown payload."""
    BOTH = "both"
    """Some runs with and some without it."""


@dataclass(frozen=True, slots=True)
class Effects:
    """What enters the model besides the links' inertial parameters.

    Args:
        viscous: `viscous * qd` per joint.
        coulomb: `coulomb * sign(qd)` per joint.
        offset: a constant per joint.
        rotor_inertia: `rotor_inertia * qdd` per joint.
        torques: where torque is measured.
        payload: which runs carried an unknown payload.
    """

    viscous: bool = False
    coulomb: bool = False
    offset: bool = False
    rotor_inertia: bool = False
    torques: TorqueSide = TorqueSide.LINK
    payload: PayloadRuns = PayloadRuns.NONE

    @property
    def friction(self) -> tuple[str, ...]:
        """The joint-side friction parameters in use, in the order they stand in the parameter vector."""
        return tuple(name for name in FRICTION_NAMES if getattr(self, name))

    @property
    def measures_motor(self) -> bool:
        return self.torques is not TorqueSide.LINK


FRICTION_NAMES = ("viscous", "coulomb", "offset")
