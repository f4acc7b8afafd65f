"""Tables of Fourier coefficients as papers print them: a row per coefficient, a column per joint.

    form: velocity
    period: 20
          q_1      q_2
    a_1  -0.004    0.005
    b_1   0.006    0.017
    bias  0        0.3

`form` says which of the two published series the numbers belong to (`armid.motions.fourier`): the numbers alone do not tell.
`duration` is the time of one period as it was run, when the robot needed longer than designed: the same path, slower.
`docs/formats.md` describes the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite
from pathlib import Path

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.motions.fourier import FourierTrajectory, from_velocity_form
from armid.words import choice

_COEFFICIENT = re.compile(r"([ab])_?\{?(\d{1,3})\}?", re.IGNORECASE)
"""`a_1`, `a1` and `a_{10}`, as tables set in type have it."""

_PRINTED_JOINT = re.compile(r"q_?\{?(\d{1,3})\}?", re.IGNORECASE)
"""`q_1`: the first joint, whatever its name."""

_SETTINGS = ("form", "period", "duration", "repetitions")
_BIAS = ("bias", "offset", "q0", "q_0")
_EXPECTED = (
    "lines `form: velocity` and `period: 20`, a row of joints q_1 q_2 ..., rows a_1, b_1, a_2, ... and, if any, bias"
)


class Series(StrEnum):
    """Which series the coefficients belong to."""

    VELOCITY = "velocity"
    """[Halper2024] eq. 3.55b: amplitudes of velocity, divided by k w."""
    POSITION = "position"
    """[Kolyubin2017] eq. 23: amplitudes of position."""


@dataclass
class _Content:
    """What the lines of a file said."""

    settings: dict[str, str] = field(default_factory=dict)
    joints: tuple[str, ...] = ()
    rows: dict[tuple[str, int], list[float]] = field(default_factory=dict)


def is_coefficient_table(text: str) -> bool:
    """Whether a text is such a table: its first line says one of the settings."""
    lines = (_cells(line) for line in text.splitlines())
    first = next((cells for cells in lines if cells), [""])
    return first[0].lower() in _SETTINGS


def parse_coefficients(text: str, where: Path) -> FourierTrajectory:
    """A motion from a table of coefficients.

    Args:
        text: of the file.
        where: it is, for errors.

    Raises:
        InputError: a line that is none of the expected ones, a coefficient that is missing or there twice, no period.
    """
    if not is_coefficient_table(text):  # any text, then, whose content is not for a message
        raise InputError(where, "no table of coefficients", f"expected {_EXPECTED}, the settings first")
    content = _Content()
    for number, line in enumerate(text.splitlines(), start=1):
        cells = _cells(line)
        if cells:
            _take(content, cells, f"{where}, line {number}")
    n = _width(content, where)
    series = choice("form", _setting(content, "form", where), Series)
    period, repetitions = _number(content, "period", where), _number(content, "repetitions", where, default=1.0)
    duration = _number(content, "duration", where, default=period)
    if not (period > 0.0 and duration > 0.0 and repetitions >= 1.0 and repetitions.is_integer()):
        found = f"period {period:g} s, duration {duration:g} s, {repetitions:g} repetitions"
        raise InputError(where, found, "all positive, the last whole")
    a, b = (_harmonics(content, letter, where) for letter in "ab")
    bias = np.array(content.rows.get(("bias", 0), [0.0] * n))
    names = content.joints or tuple(f"joint{k + 1}" for k in range(n))
    if series is Series.POSITION:
        built = FourierTrajectory(names, period, bias, sine=a, cosine=b, repetitions=int(repetitions))
    else:
        built = from_velocity_form(names, period, a, b, offset=bias, repetitions=int(repetitions))
    return built.slowed(duration / period)


def _cells(line: str) -> list[str]:
    """What stands in a line between commas, semicolons, colons, equal signs or blanks; nothing of a comment."""
    return [cell for cell in re.split(r"[\s,;:=|&]+", line.split("#")[0].replace("\\", " ")) if cell]


def _take(content: _Content, cells: list[str], where: str) -> None:
    """One line: a setting, a row of joints or a row of coefficients."""
    label = cells[0].lower()
    if label in _SETTINGS:
        if len(cells) != 2:
            raise InputError(where, f"{label} with {len(cells) - 1} values", "expected one")
        content.settings[label] = cells[1]
        return
    coefficient = _COEFFICIENT.fullmatch(cells[0])
    if coefficient is None and label not in _BIAS:
        _take_joints(content, cells, where)
        return
    key = ("bias", 0) if coefficient is None else (coefficient[1].lower(), int(coefficient[2]))
    if key in content.rows:
        raise InputError(where, f"a second row {cells[0]}", "every coefficient has one row")
    content.rows[key] = _numbers(cells[1:], where)


def _take_joints(content: _Content, cells: list[str], where: str) -> None:
    """A row of joints, which may stand above each half of the table."""
    try:
        float(cells[0])
    except ValueError:
        pass
    else:
        raise InputError(where, "a row of numbers without a label", f"expected {_EXPECTED}")
    printed = [_PRINTED_JOINT.fullmatch(cell) for cell in cells]
    joints = tuple(
        cell if match is None else f"joint{int(match[1])}" for cell, match in zip(cells, printed, strict=True)
    )
    if (content.joints and joints != content.joints) or len(set(joints)) != len(joints):
        raise InputError(
            where, f"joints {', '.join(joints)}", "the same joints above every part of the table, each once"
        )
    content.joints = joints


def _numbers(cells: list[str], where: str) -> list[float]:
    try:
        values = [float(cell.replace("\N{MINUS SIGN}", "-")) for cell in cells]
    except ValueError as problem:
        raise InputError(where, f"{problem}", "expected a number for every joint") from None
    if not all(isfinite(value) for value in values):
        raise InputError(where, "a value that is not finite", "expected a number for every joint")
    return values


def _width(content: _Content, where: Path) -> int:
    """How many joints; every row must have as many."""
    widths = {len(row) for row in content.rows.values()} | ({len(content.joints)} if content.joints else set())
    if len(widths) != 1 or 0 in widths:
        found = f"rows of {', '.join(map(str, sorted(widths)))} values" if widths else "no rows of coefficients"
        raise InputError(where, found, f"expected {_EXPECTED}, with one value per joint in every row")
    return widths.pop()


def _setting(content: _Content, name: str, where: Path) -> str:
    if name not in content.settings:
        hint = f"{name}: {'velocity ([Halper2024] eq. 3.55b) or position ([Kolyubin2017] eq. 23)' if name == 'form' else '20'}"
        raise InputError(where, f"{name} is missing", f"expected a line `{hint}`")
    return content.settings[name]


def _number(content: _Content, name: str, where: Path, *, default: float | None = None) -> float:
    if name not in content.settings and default is not None:
        return default
    return _numbers([_setting(content, name, where)], f"{where}: {name}")[0]


def _harmonics(content: _Content, letter: str, where: Path) -> FloatArray:
    """Coefficients of one letter, shape [n_joints, n_harmonics]; as many as the highest of either letter."""
    highest = max((k for name, k in content.rows if name in "ab"), default=0)
    missing = [f"{letter}_{k}" for k in range(1, highest + 1) if (letter, k) not in content.rows]
    if missing or not highest or any(k == 0 for name, k in content.rows if name in "ab"):
        found = f"no row {', '.join(missing)}" if missing else "harmonics that do not start at 1"
        raise InputError(where, found, "rows a_k and b_k for k = 1 to the highest; zeros where there is nothing")
    return np.array([content.rows[letter, k] for k in range(1, highest + 1)]).T
