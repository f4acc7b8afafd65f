"""Shapes attached to links, for collision and display."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite

import numpy as np

from armid.arrays import FloatArray
from armid.errors import RobotError

THINNEST = 1e-6
"""[m]; what a shape without thickness (a plate, a point) measures where an engine takes positive sizes alone."""


def _check_sizes(what: str, sizes: tuple[float, ...]) -> None:
    """Refuses a body that cannot exist.

    Raises:
        RobotError: a size is negative or not finite.
    """
    if not all(isfinite(size) and size >= 0.0 for size in sizes):
        raise RobotError(what, f"sizes {', '.join(f'{size:g}' for size in sizes)}", "sizes are finite and not negative")


@dataclass(frozen=True, eq=False)
class Box:
    """A box centred at its frame's origin; `size` is the full edge length along x, y, z [m]."""

    size: tuple[float, float, float]

    def __post_init__(self) -> None:
        _check_sizes("a box", self.size)


@dataclass(frozen=True, eq=False)
class Sphere:
    """A ball centred at its frame's origin; radius [m]."""

    radius: float

    def __post_init__(self) -> None:
        _check_sizes("a sphere", (self.radius,))


@dataclass(frozen=True, eq=False)
class Cylinder:
    """A cylinder along z centred at its frame's origin; radius and length [m]."""

    radius: float
    length: float

    def __post_init__(self) -> None:
        _check_sizes("a cylinder", (self.radius, self.length))


@dataclass(frozen=True, eq=False)
class Capsule:
    """A cylinder along z with hemispherical caps; `length` is that of the cylinder alone [m]."""

    radius: float
    length: float

    def __post_init__(self) -> None:
        _check_sizes("a capsule", (self.radius, self.length))


@dataclass(frozen=True, eq=False)
class Mesh:
    """A mesh file named by the description; only read when something needs its vertices."""

    path: str
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)


Shape = Box | Sphere | Cylinder | Capsule | Mesh


@dataclass(frozen=True, eq=False)
class Geometry:
    """A shape placed in its link's frame.

    Args:
        shape: what it is.
        T_link_shape: where it is, shape [4, 4].
        collision: part of collision checks; otherwise for display only.
        part: the description's own link, when several are merged into one moving link; empty when nobody said.
    """

    shape: Shape
    T_link_shape: FloatArray = field(default_factory=lambda: np.eye(4))
    collision: bool = True
    part: str = ""
