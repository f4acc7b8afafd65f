"""Pieces of URDF text."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from armid.arrays import FloatArray
from armid.parameters.inertial import tensor, to_centre_of_mass
from armid.robot.elementary import rpy


def one_line(text: str) -> str:
    """Text for a comment: whatever could end its line, in any language, becomes a blank."""
    return "".join(c if c.isprintable() else " " for c in text).rstrip("\\ ")


def xml_comment(text: str) -> str:
    """A comment of one line, whatever stands in it: two hyphens may not follow one another in XML, nor may one end it."""
    return f"<!-- {re.sub('-(?=-)', '- ', one_line(text)).rstrip('-')} -->"


def inertial_lines(inertial: FloatArray) -> list[str]:
    """An `<inertial>` element of ten standard parameters."""
    mass, centre, I = centred(inertial)
    six = " ".join(f'{key}="{float(I[i, j])!r}"' for key, (i, j) in INERTIA_ATTRIBUTES.items())
    return [
        "<inertial>",
        f'  <origin xyz="{numbers(centre)}" rpy="0 0 0"/>',
        f'  <mass value="{mass!r}"/>',
        f"  <inertia {six}/>",
        "</inertial>",
    ]


NO_LIMIT = "1e16"
"""What says none where the format, and so every other reader, demands a number."""

INERTIA_ATTRIBUTES = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}


def centred(inertial: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Mass, centre and inertia about it; without mass everything about the origin."""
    if float(inertial[0]) == 0.0:
        return 0.0, np.zeros(3), tensor(inertial[4:])
    return to_centre_of_mass(inertial)


def origin_tag(T: FloatArray) -> str:
    return f'<origin xyz="{numbers(T[:3, 3])}" rpy="{numbers(rpy(T[:3, :3]))}"/>'


def numbers(values: Iterable[float]) -> str:
    """Numbers separated by spaces, each the shortest text that reads back as the same float."""
    return " ".join(repr(float(value) + 0.0) for value in values)


def free_name(wish: str, used: set[str]) -> str:
    """The wish, or the wish with a number; taken from then on."""
    name, count = wish, 1
    while name in used:
        count += 1
        name = f"{wish}_{count}"
    used.add(name)
    return name
