"""Words of the command line, as the library's own values."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from armid.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from armid.parameters.effects import Effects

Kind = TypeVar("Kind", bound=StrEnum)


def choice(what: str, word: str, known: type[Kind]) -> Kind:
    """The member a word names.

    Args:
        what: is being chosen, for the message.
        word: as typed.
        known: the members.

    Raises:
        UnknownNameError: a word that does not exist; lists those that do.
    """
    if word not in [member.value for member in known]:
        raise UnknownNameError(what, word, [member.value for member in known])
    return known(word)


def numbers(text: str) -> list[float]:
    """Comma-separated numbers.

    Raises:
        InputError: something else.
    """
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != 3:
        raise InputError("--gravity", repr(text), "expected three numbers, for example 0,0,-9.81")
    return values


def effects_of(friction: str, rotor_inertia: bool, payload: str, torques: str, *, shapes: bool = False) -> Effects:
    """Effects from the words of the command line; `shapes` says whether friction beyond the linear one is understood.

    Raises:
        UnknownNameError: a word that does not exist; lists those that do.
        InputError: words that contradict each other.
    """
    from armid.parameters.effects import Effects, PayloadRuns, TorqueSide, friction_words

    chosen: dict[str, Any] = friction_words(friction, shapes=shapes)
    return Effects(
        **chosen,
        rotor_inertia=rotor_inertia,
        torques=choice("torques", torques, TorqueSide),
        payload=choice("payload", payload, PayloadRuns),
    )
