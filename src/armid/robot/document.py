"""A YAML document as plain text values, and the checks every field passes on the way in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
import yaml

from armid.arrays import FloatArray
from armid.errors import RobotError
from armid.robot.amount import amount

MAX_BYTES = 2_000_000
"""A robot file is a few kilobytes; meshes are separate files."""
MAX_DEPTH = 30
"""Levels of nesting; ours needs six. Deeper text would exhaust the parser's stack."""
MAX_NODES = 30_000
"""Values in the document; bounds the time a hostile file can take."""


class _Loader(yaml.BaseLoader):
    """Every scalar stays text: numbers are read by our own grammar, and nothing is constructed from tags."""


def document(text: str, where: str) -> Any:
    """The document as nested dicts, lists and strings.

    Raises:
        RobotError: not YAML, too large, too deep, with anchors, tags or repeated keys.
    """
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise RobotError(where, f"larger than {MAX_BYTES} bytes", "a robot file holds no meshes or data")
    try:
        _check_events(text, where)
        node = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{where}, line {mark.line + 1}" if mark is not None else where
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise RobotError(place, f"not valid YAML: {problem}", "check indentation, colons and brackets") from None
    if node is None:
        raise RobotError(where, "empty file")
    return _plain(node, where)


def _check_events(text: str, where: str) -> None:
    depth = 0
    for nodes, event in enumerate(yaml.parse(text, Loader=_Loader)):
        place = f"{where}, line {event.start_mark.line + 1}"
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise RobotError(place, "anchors and aliases (& and *) are not read", "write the value out")
        if getattr(event, "tag", None) not in (None, "!"):
            raise RobotError(place, f"tag {event.tag!r} is not read", "plain values only")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            raise RobotError(place, "nested too deeply" if depth > MAX_DEPTH else "too many values")


def _plain(node: yaml.Node, where: str) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, where) for item in node.value]
    out: dict[str, Any] = {}
    for key_node, value_node in node.value:
        place = f"{where}, line {key_node.start_mark.line + 1}"
        if not isinstance(key_node, yaml.ScalarNode):
            raise RobotError(place, "a key that is not plain text")
        if key_node.value in out:
            raise RobotError(place, f"key {key_node.value!r} appears twice", "keep one of them")
        out[key_node.value] = _plain(value_node, where)
    return out


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
            raise self.error(f"{_short(self.value)} is not a mapping", f"expected the keys {', '.join(allowed)}")
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
