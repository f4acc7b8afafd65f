"""Words people type, as the library's own values; objects pass unchanged, so that every function takes either."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from enum import StrEnum
from math import isnan
from pathlib import Path
from typing import Any, TypeVar

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


def number(what: str, value: object) -> float:
    """A number, of whatever kind.

    Raises:
        InputError: text, nothing, or not a number.
    """
    try:
        found = float("nan") if isinstance(value, str | bytes) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        found = float("nan")
    if isnan(found):
        raise InputError(what, repr(value), "expected a number")
    return found


def whole_number(what: str, value: object, *, least: int = 1) -> int:
    """A whole number that is large enough.

    Raises:
        InputError: text, nothing, a fraction, or less than `least`.
    """
    found = number(what, value)
    if not found >= least or found % 1.0:  # infinity has no remainder
        raise InputError(what, repr(value), f"expected a whole number, at least {least}")
    return int(found)


def word_list(what: str, words: str | Iterable[str]) -> tuple[str, ...]:
    """Words with commas between them, or any number of words, in their order.

    Args:
        what: is asked for, for the message.
        words: `ols,wls`, or one by one.

    Raises:
        InputError: something else than words.
    """
    parts = (
        words.split(",") if isinstance(words, str) else several(what, words, (str,), "words, with commas or in a list")
    )
    return tuple(part.strip() for part in parts if part.strip())


def wrong_kind(what: str, value: object, expected: str) -> InputError:
    """The complaint about a thing of a kind that cannot be meant: names its type, as people know it."""
    return InputError(what, "nothing given" if value is None else f"a {type(value).__name__}", f"expected {expected}")


def path_of(what: str, value: object, expected: str) -> Path:
    """The path that a word or a path object names.

    Args:
        what: is asked for, for the message.
        value: as given.
        expected: in words, when it is neither.

    Raises:
        InputError: something else than text or a path.
    """
    if not isinstance(value, str | os.PathLike):
        raise wrong_kind(what, value, expected)
    return Path(value)


def several(what: str, given: Any, kinds: tuple[type, ...], expected: str) -> list[Any]:
    """One or several of a kind, as a list.

    Args:
        what: is asked for, for the message.
        given: one of them, or any number in a list, a tuple or the like.
        kinds: of which they may be.
        expected: in words.

    Raises:
        InputError: something else; tables and arrays are not taken for lists.
    """
    if isinstance(given, kinds):
        return [given]
    if not isinstance(given, Iterable) or hasattr(given, "dtype") or hasattr(given, "columns"):
        raise wrong_kind(what, given, expected)
    found = list(given)
    for one in found:
        if not isinstance(one, kinds):
            raise wrong_kind(what, one, expected)
    return found
