"""Denavit-Hartenberg rows as chains of elementary transforms, and back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from armid.robot.elementary import Elementary, Motion
from armid.robot.robot import JointKind


class Convention(StrEnum):
    """Which four transforms a row stands for."""

    STANDARD = "dh"
    """Rz(theta) Tz(d) Tx(a) Rx(alpha): the joint axis is z of the *previous* frame [Denavit1955]."""
    MODIFIED = "mdh"
    """Rx(alpha) Tx(a) Rz(theta) Tz(d): the axis is z of the link's own frame [Khalil1986]; their d, r are our a, d."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a Denavit-Hartenberg table; the joint variable is added to theta or d.

    Args:
        alpha, theta: [rad].
        a, d: [m].
        a_symbol, d_symbol: names of the lengths in closed forms.
        sign: of the joint variable.
    """

    alpha: float = 0.0
    a: float = 0.0
    d: float = 0.0
    theta: float = 0.0
    a_symbol: str | None = None
    d_symbol: str | None = None
    sign: int = 1


_ORDER = {
    Convention.STANDARD: (Motion.RZ, Motion.TZ, Motion.TX, Motion.RX),
    Convention.MODIFIED: (Motion.RX, Motion.TX, Motion.RZ, Motion.TZ),
}


def transforms(row: Row, convention: Convention, kind: JointKind | None) -> tuple[Elementary, ...]:
    """The four elementary transforms of a row, zeros included: calibration varies them too.

    Args:
        row: the row.
        convention: the order of the four.
        kind: which of theta and d carries the joint variable; None for a constant row (a tool).
    """
    slides, turns = kind is JointKind.PRISMATIC, kind is JointKind.REVOLUTE
    parts = {
        Motion.RX: Elementary(Motion.RX, row.alpha),
        Motion.TX: Elementary(Motion.TX, row.a, row.a_symbol),
        Motion.RZ: Elementary(Motion.RZ, row.theta, variable=turns, sign=row.sign if turns else 1),
        Motion.TZ: Elementary(
            Motion.TZ, row.d, None if slides else row.d_symbol, variable=slides, sign=row.sign if slides else 1
        ),
    }
    return tuple(parts[motion] for motion in _ORDER[convention])


def row_of(elements: tuple[Elementary, ...]) -> tuple[Convention, Row] | None:
    """The row and convention that `transforms` makes this chain of; None when it is of another form."""
    motions = tuple(element.motion for element in elements)
    for convention, order in _ORDER.items():
        if motions == order:
            by = {element.motion: element for element in elements}
            if by[Motion.RX].variable or by[Motion.TX].variable or by[Motion.RX].symbol or by[Motion.RZ].symbol:
                return None
            sign = next((element.sign for element in elements if element.variable), 1)
            row = Row(
                by[Motion.RX].value, by[Motion.TX].value, by[Motion.TZ].value, by[Motion.RZ].value,
                by[Motion.TX].symbol, by[Motion.TZ].symbol, sign,
            )  # fmt: skip
            return convention, row
    return None
