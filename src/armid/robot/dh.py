"""Denavit-Hartenberg rows as chains of elementary transforms, and back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from armid.robot.elementary import Elementary, Move
from armid.robot.robot import JointKind


class Convention(StrEnum):
    """Which four transforms a row stands for."""

    STANDARD = "dh"
    """Rz(theta) Tz(d) Tx(a) Rx(alpha): the joint axis is z of the *previous* frame [Denavit1955]."""
    MODIFIED = "mdh"
    """Rx(alpha) Tx(a) Rz(theta) Tz(d): the axis is z of the link's own frame [Khalil1986]; their d, r are our a, d."""


@dataclass(frozen=True, slots=True, kw_only=True)
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
    Convention.STANDARD: (Move.RZ, Move.TZ, Move.TX, Move.RX),
    Convention.MODIFIED: (Move.RX, Move.TX, Move.RZ, Move.TZ),
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
        Move.RX: Elementary(motion=Move.RX, value=row.alpha),
        Move.TX: Elementary(motion=Move.TX, value=row.a, symbol=row.a_symbol),
        Move.RZ: Elementary(motion=Move.RZ, value=row.theta, variable=turns, sign=row.sign if turns else 1),
        Move.TZ: Elementary(
            motion=Move.TZ,
            value=row.d,
            symbol=None if slides else row.d_symbol,
            variable=slides,
            sign=row.sign if slides else 1,
        ),
    }
    return tuple(parts[motion] for motion in _ORDER[convention])


def row_of(elements: tuple[Elementary, ...]) -> tuple[Convention, Row] | None:
    """The row and convention that `transforms` makes this chain of; None when it is of another form."""
    motions = tuple(element.motion for element in elements)
    for convention, order in _ORDER.items():
        if motions == order:
            by = {element.motion: element for element in elements}
            if by[Move.RX].variable or by[Move.TX].variable or by[Move.RX].symbol or by[Move.RZ].symbol:
                return None
            sign = next((element.sign for element in elements if element.variable), 1)
            row = Row(
                alpha=by[Move.RX].value,
                a=by[Move.TX].value,
                d=by[Move.TZ].value,
                theta=by[Move.RZ].value,
                a_symbol=by[Move.TX].symbol,
                d_symbol=by[Move.TZ].symbol,
                sign=sign,
            )
            return convention, row
    return None
