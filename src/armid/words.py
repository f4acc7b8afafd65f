"""Words people type, as the library's own values; objects pass unchanged, so that every function takes either."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TypeVar

from armid.errors import InputError, UnknownNameError

Kind = TypeVar("Kind", bound=StrEnum)


def choice(what: str, word: str | Kind, known: type[Kind]) -> Kind:
    """The member a word names; a member stays as it is.

    Args:
        what: is being chosen, for the message.
        word: as typed.
        known: the members.

    Raises:
        UnknownNameError: a word that does not exist; lists those that do.
    """
    if str(word) not in [member.value for member in known]:
        raise UnknownNameError(what, str(word), [member.value for member in known])
    return known(str(word))


def numbers(where: str, text: str | Sequence[float], count: int, example: str) -> tuple[float, ...]:
    """Exactly `count` numbers from text with commas, or from a sequence.

    Args:
        where: they were given, for the message.
        text: `0,0,-9.81` or the numbers themselves.
        count: how many.
        example: of what was expected.

    Raises:
        InputError: something else.
    """
    try:
        values = tuple(float(part) for part in (text.split(",") if isinstance(text, str) else text))
    except (TypeError, ValueError):
        values = ()
    if len(values) != count:
        raise InputError(where, repr(text), f"expected {count} numbers, for example {example}")
    return values
