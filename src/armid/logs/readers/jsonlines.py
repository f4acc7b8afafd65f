"""JSON lines: one object per sample, numbers or lists of numbers in it."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.readers.table import Layout, Skipped, Table
from armid.logs.readers.text import line_groups, skipped_notes
from armid.notes import Note

_JOINT_KEYS = ("name", "names", "joint_names", "joints")
_MAX_DEPTH = 8

Flat = dict[str, list[float] | float]


@dataclass(eq=False, kw_only=True)
class JsonTable:
    """A file of JSON objects with the keys and lengths of the first ones; what a line leaves out is missing."""

    path: Path
    widths: dict[str, int]
    joints: tuple[str, ...] = ()
    named: bool = True
    skipped: Skipped = field(default_factory=Skipped)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.widths)

    @property
    def notes(self) -> tuple[Note, ...]:
        return skipped_notes(self.path, self.skipped)

    def chunks(self, rows: int, wanted: Collection[str] | None = None) -> Iterator[Table]:
        names = [name for name in self.names if wanted is None or name in wanted]
        self.skipped = Skipped()
        with self.path.open(encoding="utf-8", errors="replace") as file:
            number = 0
            for lines in line_groups(file, self.path, rows):
                flat = [self.sample(line, number + i + 1) for i, line in enumerate(lines)]
                number += len(lines)
                kept = [sample for sample in flat if sample is not None]
                if kept:
                    yield {name: self.column(name, kept) for name in names}

    def column(self, name: str, kept: list[Flat]) -> FloatArray:
        return np.array([sample[name] for sample in kept], dtype=np.float64)

    def sample(self, line: str, number: int) -> Flat | None:
        """One line; None when it is not an object with the expected keys, which is counted."""
        if not line.strip():
            return None
        content = parsed(line)
        flat = _flattened(content) if isinstance(content, dict) else {}
        for name, width in self.widths.items():
            value = flat.get(name, math.nan if width == 0 else [math.nan] * width)
            if (len(value) if isinstance(value, list) else 0) != width:
                self.skipped.row(number)
                return None
            flat[name] = value
        if not flat or not isinstance(content, dict):
            self.skipped.row(number)
            return None
        return self.ordered(content, flat, number)

    def ordered(self, content: dict[str, Any], flat: Flat, number: int) -> Flat | None:
        """The sample with its lists in the joint order of the first, when each says its own."""
        names = joint_names(content)
        if not self.joints or names == self.joints:
            return flat
        if names and set(names) == set(self.joints):
            order = [names.index(name) for name in self.joints]
            for name, value in flat.items():
                if isinstance(value, list) and len(value) == len(order):
                    flat[name] = [value[k] for k in order]
            return flat
        if names:
            self.skipped.row(number)
            return None
        return flat


_HEAD_LINES = 200
"""Lines looked at to learn the keys: some writers leave out what has not arrived yet."""


def open_json_lines(path: Path, layout: Layout) -> JsonTable:
    """JSON objects, one per line; nested keys are joined with dots."""
    with path.open(encoding="utf-8", errors="replace") as file:
        lines = (line for group in line_groups(file, path, _HEAD_LINES) for line in group if line.strip())
        head = list(itertools.islice(lines, _HEAD_LINES))
    objects = [content for line in head if isinstance(content := parsed(line), dict)]
    if not objects or not isinstance(parsed(head[0]), dict):
        raise InputError(path, "the first line is no JSON object", "expected one JSON object per line")
    widths: dict[str, Counter[int]] = {}
    for content in objects:
        for name, value in _flattened(content).items():
            widths.setdefault(name, Counter())[len(value) if isinstance(value, list) else 0] += 1
    if not widths:
        raise InputError(path, "the first objects hold no numbers")
    joints = next((names for content in objects if (names := joint_names(content))), ())
    return JsonTable(
        path=path, widths={name: counts.most_common(1)[0][0] for name, counts in widths.items()}, joints=joints
    )


def parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def joint_names(content: dict[str, Any]) -> tuple[str, ...]:
    """The joint names an object carries, as ROS messages do."""
    for key in _JOINT_KEYS:
        value = content.get(key)
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return tuple(value)
    return ()


def _flattened(content: dict[str, Any], prefix: str = "", depth: int = 0) -> Flat:
    """Numbers and lists of numbers by dotted key."""
    out: Flat = {}
    for key, value in content.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and depth < _MAX_DEPTH:
            out |= _flattened(value, f"{name}.", depth + 1)
        elif _is_number(value):
            out[name] = number(value)
        elif isinstance(value, list) and value and all(_is_number(item) for item in value):
            out[name] = [number(item) for item in value]
    return out


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def number(value: float | int | None) -> float:
    try:
        return math.nan if value is None else float(value)
    except OverflowError:
        return math.inf
