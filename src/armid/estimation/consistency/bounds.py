"""What is known about the bodies beforehand: masses, where their mass can be, signs of drive parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError, UnknownNameError
from armid.estimation.consistency.bodies import BASIS, Body, non_negative_columns
from armid.estimation.consistency.program import ConicProgram
from armid.robot.geometry import Box, Capsule, Cylinder, Shape, Sphere
from armid.robot.robot import Robot


@dataclass(frozen=True, eq=False)
class CentreBox:
    """The centre of mass lies in an axis-aligned box of the link frame [m], each corner shape [3]."""

    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, eq=False)
class CentreEllipsoid:
    """The centre of mass lies within |A (c - centre)| <= 1; A [1/m] shape [3, 3], centre [m] shape [3]."""

    centre: FloatArray
    A: FloatArray


@dataclass(frozen=True, eq=False)
class Support:
    """All mass lies within an ellipsoid: tr(Q P) >= 0 with Q = [[-S, S c], [c^T S, 1 - c^T S c]]; [Wensing2018] eq. 22."""

    Q: FloatArray


Where = CentreBox | CentreEllipsoid | Support


@dataclass(frozen=True, eq=False)
class Bounds:
    """Constraints beyond positive semidefinite pseudo-inertias.

    Args:
        mass: per body owner (`link3`, `payload`), lowest and highest mass [kg].
        where: per body owner, where its mass or centre of mass can be.
        total_mass: lowest and highest sum of the links' masses [kg].
        non_negative_drives: rotor inertia, viscous and Coulomb friction at least zero.
        margin: smallest allowed eigenvalue of a pseudo-inertia relative to the prior body's; keeps bodies off the edge
            of the cone, where simulators and exporters round them to impossible ones.
    """

    mass: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    where: Mapping[str, tuple[Where, ...]] = field(default_factory=dict)
    total_mass: tuple[float, float] | None = None
    non_negative_drives: bool = True
    margin: float = 1e-4

    def __post_init__(self) -> None:
        for owner, (low, high) in self.mass.items():
            if not low <= high:
                raise InputError(
                    f"bounds of {owner}", f"mass between {low:g} and {high:g} kg", "the lower bound comes first"
                )
        if self.total_mass is not None and not self.total_mass[0] <= self.total_mass[1]:
            raise InputError("bounds", f"total mass between {self.total_mass[0]:g} and {self.total_mass[1]:g} kg")

    def add_to(self, program: ConicProgram, names: Sequence[str], bodies: Sequence[Body], scale: FloatArray) -> None:
        """Adds every constraint to a program whose first variables are parameters divided by `scale`."""
        known = {body.owner: body for body in bodies}
        for owner in (*self.mass, *self.where):
            if owner not in known:
                raise UnknownNameError("body", owner, known)
        for owner, (low, high) in self.mass.items():
            add_interval(program, indicator([known[owner].columns[0]], scale), low, high)
        for owner, places in self.where.items():
            for place in places:
                add_place(program, known[owner], place, scale)
        if self.total_mass is not None:
            links = [body.columns[0] for body in bodies if body.owner.startswith("link")]
            add_interval(program, indicator(links, scale), *self.total_mass)
        if self.non_negative_drives:
            columns = non_negative_columns(names)
            G = np.zeros((len(columns), len(scale)))
            G[np.arange(len(columns)), columns] = 1.0
            program.non_negative(G, np.zeros(len(columns)))

    def contradiction(self, bodies: Sequence[Body]) -> str:
        """The bounds that exclude each other, in words; empty when none can be named."""
        if self.total_mass is not None:
            links = [body.owner for body in bodies if body.owner.startswith("link")]
            least = sum(self.mass.get(owner, (0.0, np.inf))[0] for owner in links)
            most = sum(self.mass.get(owner, (0.0, np.inf))[1] for owner in links)
            if least > self.total_mass[1] or most < self.total_mass[0]:
                return (
                    f"link masses add up to between {least:g} and {most:g} kg but the total mass must be "
                    f"between {self.total_mass[0]:g} and {self.total_mass[1]:g} kg"
                )
        for owner, (_, high) in self.mass.items():
            if high < 0.0:
                return f"{owner} may weigh at most {high:g} kg"
        return ""


def indicator(columns: Sequence[int], scale: FloatArray) -> FloatArray:
    """A row that sums these parameters."""
    row = np.zeros((1, len(scale)))
    row[0, list(columns)] = scale[list(columns)]
    return row


def add_interval(program: ConicProgram, row: FloatArray, low: float, high: float) -> None:
    """Low <= row v <= high, as far as finite."""
    if np.isfinite(low):
        program.non_negative(row, np.array([-low]))
    if np.isfinite(high):
        program.non_negative(-row, np.array([high]))


def add_place(program: ConicProgram, body: Body, place: Where, scale: FloatArray) -> None:
    """One statement about where a body's mass is; all are linear or second-order in (m, h)."""
    mass, moments = body.columns[0], list(body.columns[1:4])
    match place:
        case CentreBox(lower, upper):
            G = np.zeros((6, len(scale)))
            G[np.arange(3), moments] = scale[moments]
            G[np.arange(3, 6), moments] = -scale[moments]
            G[:, mass] = np.concatenate([-np.asarray(lower), np.asarray(upper)]) * scale[mass]
            program.non_negative(G, np.zeros(6))
        case CentreEllipsoid(centre, A):
            G = np.zeros((4, len(scale)))
            G[0, mass] = scale[mass]
            G[1:, moments] = np.asarray(A) * scale[moments]
            G[1:, mass] = -np.asarray(A) @ np.asarray(centre) * scale[mass]
            program.second_order(G, np.zeros(4))
        case Support(Q):
            G = np.zeros((1, len(scale)))
            G[0, list(body.columns)] = np.einsum("kij,ij->k", BASIS, Q) * scale[list(body.columns)]
            program.non_negative(G, np.zeros(1))


def support_of_box(lower: FloatArray, upper: FloatArray) -> Support:
    """The smallest ellipsoid around a box, as a support."""
    centre = (np.asarray(lower) + np.asarray(upper)) / 2.0
    half = np.maximum((np.asarray(upper) - np.asarray(lower)) / 2.0, 1e-6)
    S = np.diag(1.0 / (3.0 * half**2))
    Q = np.empty((4, 4))
    Q[:3, :3] = -S
    Q[:3, 3] = Q[3, :3] = S @ centre
    Q[3, 3] = 1.0 - centre @ S @ centre
    return Support(Q)


def bounds_from_geometry(robot: Robot, **others: float | bool) -> Bounds:
    """Bounds that keep every link's mass inside its collision shapes' box; links without plain shapes stay free."""
    where: dict[str, tuple[Where, ...]] = {}
    for i, link in enumerate(robot.links):
        boxes = [shape_box(g.shape, g.T_link_shape) for g in link.geometry if g.collision]
        known = [box for box in boxes if box is not None]
        if known and len(known) == len(boxes):
            lower = np.min([box[0] for box in known], axis=0)
            upper = np.max([box[1] for box in known], axis=0)
            where[f"link{i + 1}"] = (CentreBox(lower, upper), support_of_box(lower, upper))
    return Bounds(where=where, **others)  # type: ignore[arg-type]


def shape_box(shape: Shape, T: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Axis-aligned box of a placed shape in the link frame; None for a mesh, whose vertices are not read here."""
    match shape:
        case Box(size):
            half = np.abs(T[:3, :3]) @ (np.asarray(size) / 2.0)
        case Sphere(radius):
            half = np.full(3, radius)
        case Cylinder(radius, length):
            axis = np.abs(T[:3, 2])
            half = axis * length / 2.0 + radius * np.sqrt(np.maximum(1.0 - axis**2, 0.0))
        case Capsule(radius, length):
            half = np.abs(T[:3, 2]) * length / 2.0 + radius
        case _:
            return None
    return T[:3, 3] - half, T[:3, 3] + half
