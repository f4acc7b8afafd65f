"""Errors. One base class; one class per cause, carrying the facts as fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

_MOST_NAMES_LISTED = 40
"""More than this in one message nobody reads; every catalogue, parameter kind and format list is shorter."""

_MOST_LETTERS = 1500
"""Of what is wrong with a file: a value that fills pages (an array, a name of a megabyte) is shown by its two ends."""


class ArmidError(Exception):
    """Anything armid refuses to do. The message says what, which value, what was expected and what to try."""

    def __reduce__(self) -> tuple[Callable[..., ArmidError], tuple[Any, ...]]:
        """As it was, also in another process: constructors take facts, not the message."""
        return type(self)._again, (self.args, dict(self.__dict__))

    @classmethod
    def _again(cls, args: tuple[Any, ...], facts: dict[str, Any]) -> ArmidError:
        error = cls.__new__(cls, *args)
        error.args = args
        error.__dict__.update(facts)
        return error


class InputError(ArmidError):
    """A file or an argument that cannot be used.

    Args:
        where: file, and element or field inside it, in words a person can find again.
        problem: what is wrong, with the offending value.
        hint: what to try.
    """

    def __init__(self, where: str | Path, problem: str, hint: str = "") -> None:
        self.where = str(where)
        half = _MOST_LETTERS // 2
        self.problem = problem if len(problem) <= _MOST_LETTERS else f"{problem[:half]} ... {problem[-half:]}"
        self.hint = hint
        super().__init__(f"{self.where}: {self.problem}" + (f" ({hint})" if hint else ""))


class UnknownColumnsError(InputError):
    """A table whose columns cannot be told from their names; `armid map` may draft a mapping for it."""


class RobotError(InputError):
    """A robot description that is not a well-formed serial arm."""


class UnknownNameError(ArmidError):
    """A name that does not exist; the message lists those that do."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind = kind
        self.name = name
        self.known = tuple(known)
        super().__init__(f"no {kind} named {name!r}; there are: {self._listed()}")

    def _listed(self) -> str:
        """All names that exist; of a humanoid's hundred links only those that come near."""
        if len(self.known) <= _MOST_NAMES_LISTED:
            return ", ".join(self.known) or "none"
        near = get_close_matches(self.name, self.known, n=6, cutoff=0.4) or self.known[:6]
        return f"{', '.join(near)} and {len(self.known) - len(near)} others"


class ShapeError(ArmidError):
    """An array whose shape does not fit the robot or the other arrays."""

    def __init__(self, name: str, shape: tuple[int, ...], expected: str) -> None:
        self.name = name
        self.shape = shape
        self.expected = expected
        super().__init__(f"{name} has shape {list(shape)}, expected {expected}")


class NotFiniteError(ArmidError):
    """NaN or infinity where a number is needed."""

    def __init__(self, name: str, count: int, first: tuple[int, ...]) -> None:
        self.name = name
        self.count = count
        self.first = first
        super().__init__(f"{name} holds {count} value(s) that are not finite, the first at index {list(first)}")


class MissingDependencyError(ArmidError):
    """An optional library that is not installed."""

    def __init__(self, library: str, purpose: str, extra: str) -> None:
        self.library = library
        self.extra = extra
        super().__init__(f"{purpose} needs {library}, which is not installed (try: pip install 'armid[{extra}]')")
