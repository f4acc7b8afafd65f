"""Shapes attached to links, for collision and display."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from armid.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Box:
    """A box centred at its frame's origin; `size` is the full edge length along x, y, z [m]."""

    size: tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Sphere:
    """A ball centred at its frame's origin; radius [m]."""

    radius: float


@dataclass(frozen=True, eq=False)
class Cylinder:
    """A cylinder along z centred at its frame's origin; radius and length [m]."""

    radius: float
    length: float


@dataclass(frozen=True, eq=False)
class Capsule:
    """A cylinder along z with hemispherical caps; `length` is that of the cylinder alone [m]."""

    radius: float
    length: float


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
