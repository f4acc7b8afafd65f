"""Single elements of what a controller reports, and how well each is reproduced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.kernels.source import RowSource
from armid.rows.gravity import GravityRows
from armid.rows.inertia_matrix import InertiaMatrixRows

GRAVITY, INERTIA = "gravity", "inertia"
"""The two quantities a controller reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementError:
    """How well one reported element is reproduced.

    Args:
        channel: `joint2:gravity`, `M_1_1`, ...
        title: the same for people: `g joint2`, `M 1,1`.
        quantity: `gravity` or `inertia`.
        size: root mean square of the reported values.
        mean_square, largest: of the error, in the channel's unit (squared).
    """

    channel: str
    title: str
    quantity: str
    size: float
    mean_square: float
    largest: float

    def as_dict(self) -> dict[str, Any]:
        return {
            "element": self.channel,
            "size": self.size,
            "mean_square": self.mean_square,
            "largest": self.largest,
        }


def errors_of(quantity: str, source: RowSource, y: FloatArray, error: FloatArray) -> list[ElementError]:
    """Size of every element and of its error.

    Args:
        quantity: that was reported.
        source: its rows.
        y, error: reported values and what is left of them, shape [n_poses, n_channels].
    """
    return [
        ElementError(
            channel=name,
            title=title,
            quantity=quantity,
            size=float(np.sqrt(np.mean(y[:, k] ** 2))),
            mean_square=float(np.mean(error[:, k] ** 2)),
            largest=float(np.abs(error[:, k]).max()),
        )
        for k, (name, title) in enumerate(zip(source.channels, _titles(source), strict=True))
    ]


def _titles(source: RowSource) -> tuple[str, ...]:
    if isinstance(source, InertiaMatrixRows):
        return tuple(f"M {j + 1},{k + 1}" for j, k in source.entries)
    if isinstance(source, GravityRows):
        return tuple(f"g {name}" for name in source.robot.joint_names)
    return source.channels
