"""Which physical effects beyond the rigid links a model has, and what is measured and carried."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from armid.errors import InputError, UnknownNameError
from armid.words import choice, wrong_kind


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


DEFAULT_FRICTION = "viscous,coulomb,offset"
"""Of every verb, unless something else is asked for: one arm has the same parameters wherever it is looked at."""

FRICTION_NAMES = ("viscous", "coulomb", "offset")
"""Linear friction: what is in use bears these names in the parameter vector."""

FRICTION_SHAPES = {
    "asymmetric": ("viscous_asymmetry",),
    "stribeck": ("stribeck",),
    "smooth": (),
    "load": ("coulomb_load",),
    "coupled": ("coupled_viscous", "coupled_coulomb"),
}
"""Friction beyond that, with the quantities each adds to a joint. `smooth` adds none: it changes what `coulomb` multiplies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What enters the model besides the links' inertial parameters.

    Args:
        viscous: `viscous * qd` per joint.
        coulomb: `coulomb * sign(qd)` per joint.
        offset: a constant per joint.
        rotor_inertia: `rotor_inertia * qdd` per joint.
        torques: where torque is measured.
        payload: which runs carried an unknown payload.
        asymmetric: `viscous_asymmetry * |qd|`: another slope in either direction; other levels are the offset.
        stribeck: `stribeck * sign(qd) exp(-(qd / v)^2)`: more friction near standstill; v per joint is found by search.
        smooth: `coulomb * tanh(qd / v)` instead of the jump; v per joint is found by search.
        load: `coulomb_load * |rigid torque| * sign(qd)`: friction that grows with what the gear carries.
        coupled: friction of joints that several drives move together, besides that of the drives themselves.

    Raises:
        InputError: effects that contradict each other.
    """

    viscous: bool = False
    coulomb: bool = False
    offset: bool = False
    rotor_inertia: bool = False
    torques: TorqueSide = TorqueSide.LINK
    payload: PayloadRuns = PayloadRuns.NONE
    asymmetric: bool = False
    stribeck: bool = False
    smooth: bool = False
    load: bool = False
    coupled: bool = False

    def __post_init__(self) -> None:
        if not self.shapes:
            return
        shown = ",".join((*self.friction, *self.shapes))
        if not self.coulomb:
            raise InputError("friction", f"{shown}: {self.shapes[0]} without coulomb", "add coulomb, which it changes")
        if self.asymmetric and not (self.viscous and self.offset):
            raise InputError(
                "friction",
                f"{shown}: asymmetric without viscous and offset",
                "add them: slopes and levels of the two directions are their sums and differences",
            )
        if self.smooth and self.stribeck:
            raise InputError(
                "friction",
                f"{shown}: smooth lowers friction near standstill, stribeck raises it",
                "choose one of the two",
            )
        if self.torques not in (TorqueSide.LINK, TorqueSide.MOTOR):
            raise InputError(
                "friction", f"{shown} with torques {self.torques}", "shapes of friction need one side: link or motor"
            )

    @property
    def friction(self) -> tuple[str, ...]:
        """The joint-side linear friction parameters in use, in the order they stand in the parameter vector."""
        return tuple(name for name in FRICTION_NAMES if getattr(self, name))

    @property
    def shapes(self) -> tuple[str, ...]:
        """Friction in use beyond the linear one."""
        return tuple(name for name in FRICTION_SHAPES if getattr(self, name))

    @property
    def linear(self) -> Effects:
        """The same without shapes of friction."""
        return replace(self, asymmetric=False, stribeck=False, smooth=False, load=False, coupled=False)

    @property
    def has_scale(self) -> bool:
        """Whether the friction has a velocity scale per joint."""
        return self.stribeck or self.smooth

    @property
    def measures_motor(self) -> bool:
        return self.torques is not TorqueSide.LINK


def _friction_words(text: str | Iterable[str], *, shapes: bool = True) -> dict[str, bool]:
    """Fields of `Effects` from a comma-separated list; `none` for none.

    Args:
        text: or a list; words of `FRICTION_NAMES` and `FRICTION_SHAPES`.
        shapes: whether the latter are understood.

    Raises:
        UnknownNameError: another word.
        InputError: `none` beside others.
    """
    known = (*FRICTION_NAMES, *(FRICTION_SHAPES if shapes else ()))
    if not isinstance(text, str | Iterable):
        raise wrong_kind("friction", text, f"words of {', '.join((*known, 'none'))}")
    words = text.split(",") if isinstance(text, str) else [str(word) for word in text]
    chosen = [word.strip() for word in words if word.strip()]
    if "none" in chosen and len(chosen) > 1:
        raise InputError("friction", repr(text), "'none' stands alone")
    for word in chosen:
        if word != "none" and word not in known:
            raise UnknownNameError("friction effect", word, (*known, "none"))
    return {name: name in chosen for name in known}


def effects_of(
    friction: str | Iterable[str] = DEFAULT_FRICTION,
    *,
    rotor_inertia: bool = False,
    payload: str | PayloadRuns = PayloadRuns.NONE,
    torques: str | TorqueSide = TorqueSide.LINK,
    shapes: bool = True,
) -> Effects:
    """Effects from words.

    Args:
        friction: comma-separated or a list, of `FRICTION_NAMES` and `FRICTION_SHAPES`; `none` or empty for none.
        rotor_inertia: whether rotor inertias are estimated (always so on the motor side).
        payload: which runs carried one.
        torques: where torque is measured.
        shapes: whether friction beyond the linear one is understood.

    Raises:
        UnknownNameError: a word that does not exist; lists those that do.
        InputError: words that contradict each other.
    """
    return Effects(
        **_friction_words(friction, shapes=shapes),
        rotor_inertia=rotor_inertia,
        torques=choice("torques", torques, TorqueSide),
        payload=choice("payload", payload, PayloadRuns),
    )
