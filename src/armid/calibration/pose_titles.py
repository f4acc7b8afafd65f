"""Titles of a poses file: plain names, units, and other people's words for a quaternion or a matrix."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

NUMBERED_JOINT = re.compile(r"(q|j|joint|axis|a|theta|actual_q)[_ ]?(\d+)$")
"""Joint columns by number; `actual_q_0` is what the recorder of a Universal Robots controller writes."""

LENGTH_FACTORS: Mapping[str, float] = {"m": 1.0, "mm": 1e-3, "cm": 1e-2, "um": 1e-6, "in": 0.0254}
"""Metres in a unit of length."""
ANGLE_FACTORS: Mapping[str, float] = {"rad": 1.0, "mrad": 1e-3, "deg": np.pi / 180.0}
"""Radians in a unit of angle."""
_SPELT = {
    "\u00b0": "deg",
    "\u00ba": "deg",
    "degree": "deg",
    "degrees": "deg",
    "grad": "deg",
    "\u00b5m": "um",
    "\u03bcm": "um",
    "inch": "in",
    "inches": "in",
}
"""Other spellings of units; Greek mu and the micro sign are two letters."""
_SHORT = r"mm|cm|um|\u00b5m|\u03bcm|m|rad|mrad|deg|[\u00b0\u00ba]"
_LONG = _SHORT + r"|degrees?|grad|in|inch|inches|degc|c"
_UNIT = re.compile(
    rf"[\s_]*[\[(]\s*({_LONG})\s*[\])]$|[\s_]*/\s*({_SHORT})$|\s+in\s+({_SHORT}|grad)$|_({_SHORT})$|\s({_SHORT})$"
)
"""A unit at the end of a title: `x [mm]`, `x / mm`, `x in mm`, `x_mm`, `x mm`."""


def plain(title: str) -> tuple[str, str]:
    """Lower-case name and unit of a header cell."""
    text = title.strip().lower()
    match = _UNIT.search(text)
    if match is None or match.start() == 0:
        return text, ""
    unit = next(word for word in match.groups() if word)
    return text[: match.start()].strip(), _SPELT.get(unit, unit)


QUATERNION = ("qw", "qx", "qy", "qz")
"""What Q0..Q3 are where other columns are the joints: quaternions as trackers write them, scalar first."""


def as_quaternion(titles: Sequence[str]) -> list[str]:
    """Titles with Q0..Q3 (or q0..q3) read as a quaternion where other columns are the joints; with a Q4 they are joints."""
    for letter in "Qq":
        four = [f"{letter}{k}" for k in range(4)]
        others = [t for t in titles if t not in four and NUMBERED_JOINT.fullmatch(plain(t)[0])]
        if letter == "q":
            others = [t for t in others if t[0].lower() != "q"]
        if set(four) <= set(titles) and f"{letter}4" not in titles and others:
            ours = dict(zip(four, QUATERNION, strict=True))
            return [ours.get(title, title) for title in titles]
    return list(titles)


_ENTRY = re.compile(r"(m|mat|matrix|t|tf|h|htm|pose|r|rot|rotation)[_. ]?([0-4])[_,. ]?([0-4])$")
"""An entry of a matrix: its letter, row and column, counted from 0 or from 1."""
_APPROACH = {f"{letter}{axis}": f"r{row}{k}" for k, letter in enumerate("noa", 1) for row, axis in enumerate("xyz", 1)}
"""Columns n, o, a of a rotation matrix, as older controllers write them."""

LAST_ROW = ("r41", "r42", "r43", "r44")
"""Our names of the row 0 0 0 1 of a homogeneous matrix."""


def matrix_entries(names: Sequence[str]) -> dict[str, str]:
    """Our names `r11 .. r33`, `x y z` of the entries of a matrix, by the file's plain names; empty where there is none.

    Read are three or four rows of a homogeneous matrix (`m11 .. m44`, `T00 .. T33`, `t_1_4`, ...), a number for the row and one
    for the column, rotation matrices counted from 0, and the columns n, o, a. Positions beside the matrix are taken instead of
    its own.
    """
    by_letter: dict[str, dict[tuple[int, int], str]] = {}
    for name in names:
        if match := _ENTRY.fullmatch(name):
            by_letter.setdefault(match.group(1), {})[int(match.group(2)), int(match.group(3))] = name
    for entries in by_letter.values():
        first = 0 if (0, 0) in entries else 1
        ours = {(i, j): f"r{i + 1}{j + 1}" for i in range(3) for j in range(3)}
        if {"x", "y", "z"}.isdisjoint(names):
            ours |= {(i, 3): axis for i, axis in enumerate("xyz")}
        ours |= {(3, j): LAST_ROW[j] for j in range(4)}
        found = {
            entries[i + first, j + first]: our for (i, j), our in ours.items() if (i + first, j + first) in entries
        }
        if {f"r{i}{j}" for i in "123" for j in "123"} <= set(found.values()):
            return found
    return dict(_APPROACH) if set(_APPROACH) <= set(names) else {}
