"""What is known about the bodies beforehand: masses, where their mass can be, signs of drive parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.bodies import Body, bodies_of, non_negative_columns
from armid.consistency.inequalities import ThesisInequalities
from armid.consistency.knowledge import Knowledge
from armid.consistency.places import (
    CentreBox,
    CentreEllipsoid,
    CentreHull,
    Support,
    Where,
    support_of_box,
)
from armid.consistency.program import ConicProgram
from armid.errors import InputError, UnknownNameError
from armid.notes import Note
from armid.parameters.inertial import INERTIAL_NAMES

__all__ = [
    "Bounds",
    "CentreBox",
    "CentreEllipsoid",
    "CentreHull",
    "Constraint",
    "Kind",
    "Support",
    "Where",
    "support_of_box",
]

_MANY_ROWS = 2
"""Rows per variable in them from which on copies of the variables make a program faster."""
_ACTIVE = 1e-4
"""Slack relative to the prior body's own size below which a bound is the one that decided."""


class Kind(StrEnum):
    """What G x + h must be."""

    NON_NEGATIVE = "non-negative"
    EQUAL = "equal"
    SECOND_ORDER = "second-order"
    """Its first row at least the norm of the others."""


@dataclass(frozen=True, eq=False)
class Constraint:
    """One statement about the parameters x.

    Args:
        label: in words, with its values.
        kind: what G x + h must be.
        G, h: shapes [k, p] and [k].
    """

    label: str
    kind: Kind
    G: FloatArray
    h: FloatArray

    def slack(self, x: FloatArray, scale: FloatArray) -> float:
        """Smallest distance to being broken in units of the parameters' scale; negative when broken."""
        values = self.G @ x + self.h
        sizes = np.maximum(np.linalg.norm(self.G * scale, axis=1), 1e-300)
        match self.kind:
            case Kind.NON_NEGATIVE:
                return float(np.min(values / sizes))
            case Kind.EQUAL:
                return -float(np.max(np.abs(values) / sizes))
            case Kind.SECOND_ORDER:
                return float((values[0] - np.linalg.norm(values[1:])) / sizes[0])


@dataclass(frozen=True, eq=False, kw_only=True)
class Bounds:
    """Constraints beyond positive semidefinite pseudo-inertias.

    Args:
        mass: per body owner (`link3`, `payload`), lowest and highest mass [kg].
        where: per body owner, where its mass or centre of mass can be.
        total_mass: lowest and highest sum of the links' masses [kg].
        non_negative_drives: rotor inertia, viscous and Coulomb friction at least zero.
        margin: smallest allowed eigenvalue of a pseudo-inertia relative to the prior body's; keeps bodies off the edge
            of the cone, where simulators and exporters round them to impossible ones.
        knowledge: measured or designed values about the centres of mass, with deviations: not convex here.
        inequalities: of [Halper2024]'s constrained problem, when that is asked for.
        notes: what a reader must know about the bounds.
    """

    mass: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    where: Mapping[str, tuple[Where, ...]] = field(default_factory=dict)
    total_mass: tuple[float, float] | None = None
    non_negative_drives: bool = True
    margin: float = 1e-4
    knowledge: tuple[Knowledge, ...] = ()
    inequalities: ThesisInequalities = field(default_factory=ThesisInequalities)
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        for owner, (low, high) in self.mass.items():
            if not low <= high:
                raise InputError(
                    f"bounds of {owner}", f"mass between {low:g} and {high:g} kg", "the lower bound comes first"
                )
        if self.total_mass is not None and not self.total_mass[0] <= self.total_mass[1]:
            raise InputError("bounds", f"total mass between {self.total_mass[0]:g} and {self.total_mass[1]:g} kg")

    @property
    def statements(self) -> tuple[str, ...]:
        """Everything that is said beyond the signs of drives, in words."""
        owners = dict.fromkeys((*self.mass, *self.where, *(k.owner for k in self.knowledge)))
        names = [f"{owner}.{quantity}" for owner in owners for quantity in INERTIAL_NAMES]
        found = replace(self, non_negative_drives=False).constraints(names, bodies_of(names))
        about = (f"{k.owner} about its centre of mass" for k in self.knowledge)
        return tuple(dict.fromkeys((*(c.label for c in found), *about)))

    @property
    def bodies_bounded(self) -> bool:
        """Whether anything is said about masses and places."""
        return bool(self.mass or self.where or self.total_mass is not None)

    def constraints(self, names: Sequence[str], bodies: Sequence[Body]) -> tuple[Constraint, ...]:
        """Every statement as rows on the whole parameter vector.

        Raises:
            UnknownNameError: a bound on a body that the parameters do not contain.
        """
        known = {body.owner: body for body in bodies}
        for owner in (*self.mass, *self.where, *(k.owner for k in self.knowledge)):
            if owner not in known:
                raise UnknownNameError("body", owner, known)
        p = len(names)
        out: list[Constraint] = []
        for owner, (low, high) in self.mass.items():
            out += _interval(f"mass of {owner}", [known[owner].columns[0]], low, high, p)
        for owner, places in self.where.items():
            out += [placed(known[owner], place, p) for place in places]
        if self.total_mass is not None:
            links = [body.columns[0] for body in bodies if body.link is not None]
            out += _interval("total mass of the links", links, *self.total_mass, p)
        if self.non_negative_drives:
            rows = np.eye(p)[non_negative_columns(names)]
            if len(rows):
                label = "friction and rotor inertia not negative"
                out.append(Constraint(label, Kind.NON_NEGATIVE, rows, np.zeros(len(rows))))
        return tuple(out)

    def add_to(self, program: ConicProgram, names: Sequence[str], bodies: Sequence[Body], scale: FloatArray) -> None:
        """Adds every constraint to a program whose first variables are parameters divided by `scale`."""
        for constraint in self.constraints(names, bodies):
            add_constraint(program, constraint, scale)

    def active(self, names: Sequence[str], bodies: Sequence[Body], x: FloatArray, scale: FloatArray) -> tuple[str, ...]:
        """Labels of the statements that hold with no slack left: without them the estimate would be another."""
        found = self.constraints(names, bodies)
        return tuple(dict.fromkeys(c.label for c in found if c.slack(x, scale) < _ACTIVE))

    def broken(
        self, names: Sequence[str], bodies: Sequence[Body], x: FloatArray, scale: FloatArray, *, tolerance: float = 1e-5
    ) -> tuple[str, ...]:
        """Labels of the statements that do not hold."""
        found = self.constraints(names, bodies)
        return tuple(dict.fromkeys(c.label for c in found if c.slack(x, scale) < -tolerance))

    def merged(self, where: Mapping[str, tuple[Where, ...]], notes: Sequence[Note] = ()) -> Bounds:
        """The same with further places."""
        owners = dict.fromkeys((*self.where, *where))
        both = {owner: (*self.where.get(owner, ()), *where.get(owner, ())) for owner in owners}
        return replace(self, where=both, notes=(*self.notes, *notes))


def _interval(label: str, columns: Sequence[int], low: float, high: float, p: int) -> list[Constraint]:
    """Low <= sum of these parameters <= high, as far as finite; one equation when they are the same."""
    row = np.zeros((1, p))
    row[0, list(columns)] = 1.0
    if low == high:
        return [Constraint(f"{label} {low:g} kg", Kind.EQUAL, row, np.array([-low]))]
    out = []
    if np.isfinite(low):
        out.append(Constraint(f"{label} at least {low:g} kg", Kind.NON_NEGATIVE, row, np.array([-low])))
    if np.isfinite(high):
        out.append(Constraint(f"{label} at most {high:g} kg", Kind.NON_NEGATIVE, -row, np.array([high])))
    return out


def placed(body: Body, place: Where, p: int) -> Constraint:
    """A statement about one body's mass on the whole parameter vector."""
    own = place.rows()
    G = np.zeros((len(own), p))
    G[:, list(body.columns)] = own
    kind = Kind.SECOND_ORDER if isinstance(place, CentreEllipsoid) else Kind.NON_NEGATIVE
    what = "mass" if isinstance(place, Support) else "centre of mass"
    return Constraint(f"{what} of {body.owner} {place.label}", kind, G, np.zeros(len(own)))


def add_constraint(program: ConicProgram, constraint: Constraint, scale: FloatArray) -> None:
    """One statement in scaled variables, its rows brought to length one: units do not decide what converges."""
    G, h = constraint.G * scale, constraint.h
    sizes = np.maximum(np.linalg.norm(G, axis=1), 1e-300)
    match constraint.kind:
        case Kind.NON_NEGATIVE:
            used = np.flatnonzero(np.any(G != 0.0, axis=0))
            rows, constants = G / sizes[:, np.newaxis], h / sizes
            if len(rows) > _MANY_ROWS * len(used):
                program.non_negative_on(used, rows[:, used], constants)
            else:
                program.non_negative(rows, constants)
        case Kind.EQUAL:
            program.equal(G / sizes[:, np.newaxis], h / sizes)
        case Kind.SECOND_ORDER:
            program.second_order(G / sizes[0], h / sizes[0])
