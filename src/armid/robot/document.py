"""A YAML document as plain text values, and the checks every field passes on the way in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.documents import yaml_values
from armid.errors import InputError, RobotError
from armid.robot.amount import amount


def document(text: str, where: str) -> Any:
    """The document as nested dicts, lists and strings: numbers are read by our own grammar, which knows units and lengths.

    Raises:
        RobotError: not YAML, too large, too deep, with anchors, tags or repeated keys.
    """
    try:
        return yaml_values(text, where, as_text=True)
    except InputError as error:
        raise RobotError(error.where, error.problem, error.hint) from None


@dataclass(frozen=True)
class Field:
    """One value of the document together with where it stands, so that every complaint names the place.

    Args:
        value: dict, list or str.
        where: file and path (`panda.yaml: joints[2].limits`).
        names: lengths that expressions may use.
    """

    value: Any
    where: str
    names: Mapping[str, float] = field(default_factory=dict)

    def error(self, problem: str, hint: str = "") -> RobotError:
        return RobotError(self.where.removesuffix(":"), problem, hint)

    def keys(self, allowed: Collection[str], required: Collection[str] = ()) -> dict[str, Field]:
        """The entries of a mapping, none unknown and none missing."""
        if not isinstance(self.value, dict):
            kind = "text" if isinstance(self.value, str) else type(self.value).__name__
            raise self.error(f"{kind} is not a mapping", f"expected the keys {', '.join(allowed)}")
        for key in self.value:
            if key not in allowed:
                near = get_close_matches(key, allowed, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(allowed)}"
                raise self.error(f"unknown key {key!r}", hint)
        for key in required:
            if key not in self.value:
                raise self.error(f"key {key!r} is missing", f"known keys: {', '.join(allowed)}")
        dot = " " if self.where.endswith(":") else "."
        return {key: Field(value, f"{self.where}{dot}{key}", self.names) for key, value in self.value.items()}

    def items(self) -> list[Field]:
        """The entries of a list."""
        if not isinstance(self.value, list):
            raise self.error(f"{_short(self.value)} is not a list")
        return [Field(value, f"{self.where}[{i}]", self.names) for i, value in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.error(f"{_short(self.value)} is not text")
        return self.value

    def name(self) -> str:
        """Non-empty text without control characters, for names of robots, joints, links and frames."""
        text = self.text().strip()
        if not text or not text.isprintable():
            raise self.error(f"{text!r} is not a name")
        return text

    def choice(self, options: Sequence[str]) -> str:
        text = self.text()
        if text not in options:
            near = get_close_matches(text, options, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"expected one of: {', '.join(options)}"
            raise self.error(f"{_short(text)} is not known here", hint)
        return text

    def number(self) -> float:
        return amount(self._scalar(), self.where, names=self.names).constant

    def flag(self) -> bool:
        return self.choice(("true", "false")) == "true"

    def vector(self, count: int) -> FloatArray:
        """Exactly `count` finite numbers."""
        entries = self.items()
        if len(entries) != count:
            comma = " (decimal commas split a number in two: write points)" if len(entries) > count else ""
            raise self.error(f"{len(entries)} numbers{comma}", f"expected {count}")
        return np.array([entry.number() for entry in entries])

    def with_names(self, names: Mapping[str, float]) -> Field:
        return Field(self.value, self.where, names)

    def _scalar(self) -> str:
        if not isinstance(self.value, str):
            raise self.error(f"{_short(self.value)} is not a number")
        return self.value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
