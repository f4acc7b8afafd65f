"""A serial arm: joints, links, frames, and how it stands against gravity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cached_property
from math import inf
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only
from armid.errors import RobotError, UnknownNameError
from armid.notes import Note
from armid.outcome import text_table
from armid.page import Table
from armid.parameters.inertial import N_INERTIAL, inertial_problem
from armid.robot.elementary import Elementary, product
from armid.robot.geometry import Geometry

STANDARD_GRAVITY = 9.81
"""[m/s^2], the value the five works and most URDF tools use."""


class JointKind(StrEnum):
    """What the joint variable is: an angle [rad] or a length [m]."""

    REVOLUTE = "revolute"
    PRISMATIC = "prismatic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one joint; infinite where the description gives none.

    Args:
        lower, upper: position [rad or m]; infinite for a continuous joint.
        velocity, acceleration, jerk: magnitude [rad/s, rad/s^2, rad/s^3, or m].
        torque: magnitude [N m, or N].
    """

    lower: float = -inf
    upper: float = inf
    velocity: float = inf
    acceleration: float = inf
    jerk: float = inf
    torque: float = inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Drive:
    """What the drive of one joint adds to the rigid-body torque, link side.

    torque = rigid + rotor_inertia * qdd + viscous * qd + coulomb * sign(qd) + offset

    Args:
        rotor_inertia: motor inertia times gear ratio squared [kg m^2, or kg].
        viscous: [N m s/rad, or N s/m].
        coulomb: [N m, or N].
        offset: [N m, or N].
        gear_ratio: motor turns per joint turn.
        stiffness: of an elastic transmission [N m/rad]; infinite when rigid.
        damping: of an elastic transmission [N m s/rad].
        sensed_friction: share of friction and offset that the joint's torque sensor feels, 0 to 1: 0 for one behind the gears, 1
            where torque is known before them.
    """

    rotor_inertia: float = 0.0
    viscous: float = 0.0
    coulomb: float = 0.0
    offset: float = 0.0
    gear_ratio: float = 1.0
    stiffness: float = inf
    damping: float = 0.0
    sensed_friction: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """One moving joint and the constant geometry around it.

    Args:
        name: unique within the robot.
        kind: revolute or prismatic.
        transforms: chain from the previous link's frame to this joint's link frame; exactly one is variable.
        limits: of the joint variable.
        drive: friction and rotor inertia, for simulation and as nominal values.
    """

    name: str
    kind: JointKind
    transforms: tuple[Elementary, ...]
    limits: Limits = field(default_factory=Limits)
    drive: Drive = field(default_factory=Drive)

    def __post_init__(self) -> None:
        variable = [e for e in self.transforms if e.variable]
        if len(variable) != 1:
            raise RobotError(f"joint {self.name!r}", f"{len(variable)} variable transforms", "exactly one is needed")
        if variable[0].motion.is_rotation != (self.kind is JointKind.REVOLUTE):
            raise RobotError(
                f"joint {self.name!r}", f"a {self.kind} joint whose variable is {variable[0].motion.value}"
            )

    @property
    def variable_index(self) -> int:
        """Position of the variable within `transforms`."""
        return next(i for i, e in enumerate(self.transforms) if e.variable)

    def transform(self, q: float = 0.0) -> FloatArray:
        """T_parent_link at joint position q."""
        return product(self.transforms, q)

    def around_variable(self) -> tuple[FloatArray, FloatArray]:
        """T_parent_joint, with the constant part of the variable (it commutes), and T_joint_link."""
        k = self.variable_index
        variable = self.transforms[k]
        before = product((*self.transforms[:k], Elementary(motion=variable.motion, value=variable.value)))
        return before, product(self.transforms[k + 1 :])


@dataclass(frozen=True, eq=False)
class Link:
    """One moving body. Everything fixed to it is merged into it.

    Args:
        name: unique within the robot.
        inertial: ten standard parameters about the link frame (order of `InertialIndex`), or None when unknown.
        geometry: shapes for collision and display, placed in the link frame.
        suspect: a part merged into this link had impossible values, so their sum is not to be trusted either.
    """

    name: str
    inertial: FloatArray | None = None
    geometry: tuple[Geometry, ...] = ()
    suspect: bool = False

    def __post_init__(self) -> None:
        if self.inertial is not None:
            values = read_only(self.inertial)
            if values.shape != (N_INERTIAL,):
                raise RobotError(f"link {self.name!r}", f"{values.size} inertial parameters", f"expected {N_INERTIAL}")
            object.__setattr__(self, "inertial", values)

    @property
    def is_sound(self) -> bool:
        """Whether the inertial values are those of a possible body, so that they may serve as a prior."""
        return self.inertial is not None and not self.suspect and inertial_problem(self.inertial) is None


@dataclass(frozen=True, eq=False)
class Frame:
    """A named frame rigidly attached to a link: a flange, a tool, a merged fixed link.

    Args:
        name: unique within the robot.
        link: 0 for the base, i for the link moved by the i-th joint.
        transforms: chain from that link's frame to this one; no variable.
    """

    name: str
    link: int
    transforms: tuple[Elementary, ...] = ()

    @property
    def T_link_frame(self) -> FloatArray:
        return product(self.transforms)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a description came from: file or catalogue name, SHA-256 of the bytes, and what its numbers rest on."""

    path: str = ""
    sha256: str = ""
    remark: str = ""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Robot:
    """A serial arm.

    Joint i (1-based in words, 0-based in code) moves link i. Link frames are those of the description
    (URDF joint frame, DH frame, ...), and standard parameters are expressed in them.

    Args:
        name: of the robot.
        joints: from base to tip.
        links: `links[i]` is moved by `joints[i]`.
        frames: further frames; the last one is the tip.
        gravity: acceleration of gravity in the base frame [m/s^2], shape [3]; already includes the mounting.
        coupling: `q_geometric = coupling @ q_drive`, shape [n, n]; identity when every drive moves one joint.
        base: name of the base link.
        geometry: of the base.
        source: provenance.
        notes: what the reader had to say about the description.
    """

    name: str
    joints: tuple[Joint, ...]
    links: tuple[Link, ...]
    frames: tuple[Frame, ...] = ()
    gravity: FloatArray = field(default_factory=lambda: np.array([0.0, 0.0, -STANDARD_GRAVITY]))
    coupling: FloatArray | None = None
    base: str = "base"
    geometry: tuple[Geometry, ...] = ()
    source: Source = field(default_factory=Source)
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.joints)
        if n == 0:
            raise RobotError(self.name, "no moving joint", "an arm needs at least one revolute or prismatic joint")
        if len(self.links) != n:
            raise RobotError(self.name, f"{len(self.links)} links for {n} joints")
        for kind, names in (
            ("joint", [j.name for j in self.joints]),
            ("link", [self.base, *(link.name for link in self.links)]),
            ("frame", [f.name for f in self.frames]),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise RobotError(self.name, f"{kind} {twice[0]!r} appears twice")
        object.__setattr__(self, "gravity", read_only(self.gravity))
        if self.gravity.shape != (3,) or not np.isfinite(self.gravity).all():
            raise RobotError(self.name, f"gravity {self.gravity.tolist()}", "expected three finite numbers [m/s^2]")
        if self.coupling is not None:
            C = read_only(self.coupling)
            if C.shape != (n, n) or not np.isfinite(C).all() or abs(np.linalg.det(C)) < 1e-9:
                raise RobotError(self.name, f"coupling {C.tolist()}", f"expected an invertible {n} x {n} matrix")
            object.__setattr__(self, "coupling", None if np.array_equal(C, np.eye(n)) else C)

    def __reduce__(self) -> tuple[Callable[..., Robot], tuple[str, dict[str, Any]]]:
        """One robot stays one: however often it travels to another process and back, there is one of it in each.

        Kernels are compiled once per robot, and robots are told apart by who they are, not by what they are.
        """
        _TRAVELLED[self._passport] = self
        return _arrived, (self._passport, {part.name: getattr(self, part.name) for part in fields(self)})

    @cached_property
    def _passport(self) -> str:
        return uuid4().hex

    def __repr__(self) -> str:
        kinds = "".join("P" if joint.kind is JointKind.PRISMATIC else "R" for joint in self.joints)
        known = "" if self.inertial.any() else ", no masses"
        return f"<Robot {self.name}: {self.n_joints} joints ({kinds}), tip {self.tip.name}{known}>"

    def __str__(self) -> str:
        """A table of the joints with their limits and drives."""
        header = ("joint", "kind", "lower", "upper", "velocity", "torque", "mass", "viscous", "coulomb")
        rows = tuple(
            (
                joint.name,
                joint.kind.value,
                joint.limits.lower,
                joint.limits.upper,
                joint.limits.velocity,
                joint.limits.torque,
                None if link.inertial is None else float(link.inertial[0]),
                joint.drive.viscous,
                joint.drive.coulomb,
            )
            for joint, link in zip(self.joints, self.links, strict=True)
        )
        return f"{self!r}\n\n{text_table(Table(header, rows, caption='SI units'))}"

    @property
    def n_joints(self) -> int:
        return len(self.joints)

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(joint.name for joint in self.joints)

    @property
    def link_names(self) -> tuple[str, ...]:
        return tuple(link.name for link in self.links)

    @property
    def tip(self) -> Frame:
        """The last frame, or the frame of the last link when none is named."""
        return self.frames[-1] if self.frames else Frame(self.links[-1].name, self.n_joints)

    def frame(self, name: str | None = None) -> Frame:
        """The frame of that name: one of `frames`, a link, or the base; the tip when no name is given."""
        if name is None:
            return self.tip
        for frame in self.frames:
            if frame.name == name:
                return frame
        names = (self.base, *self.link_names)
        if name in names:
            return Frame(name, names.index(name))
        raise UnknownNameError("frame", name, (*(f.name for f in self.frames), *names))

    def joint_index(self, name: str) -> int:
        if name not in self.joint_names:
            raise UnknownNameError("joint", name, self.joint_names)
        return self.joint_names.index(name)

    def limit(self, which: str) -> FloatArray:
        """One of the fields of `Limits` for all joints, shape [n_joints]."""
        return np.array([getattr(joint.limits, which) for joint in self.joints])

    def drive(self, which: str) -> FloatArray:
        """One of the fields of `Drive` for all joints, shape [n_joints]."""
        return np.array([getattr(joint.drive, which) for joint in self.joints])

    @property
    def inertial(self) -> FloatArray:
        """Nominal standard inertial parameters of all links in a row, shape [10 n]; zeros where unknown."""
        zero = np.zeros(N_INERTIAL)
        return np.concatenate([zero if link.inertial is None else link.inertial for link in self.links])

    def with_inertial(self, values: npt.ArrayLike) -> Robot:
        """The same arm with other inertial parameters [10 n]."""
        rows = np.asarray(values, dtype=np.float64).reshape(self.n_joints, N_INERTIAL)
        pairs = zip(self.links, rows, strict=True)
        return replace(self, links=tuple(replace(link, inertial=row, suspect=False) for link, row in pairs))

    def with_gravity(self, gravity: npt.ArrayLike) -> Robot:
        """The same arm with another gravity vector in the base frame [m/s^2]."""
        return replace(self, gravity=np.asarray(gravity, dtype=np.float64))

    def mounted(self, R_world_base: npt.ArrayLike) -> Robot:
        """The same arm with its base turned by R_world_base in a world whose z axis points up."""
        R = np.asarray(R_world_base, dtype=np.float64)
        return self.with_gravity(R.T @ np.array([0.0, 0.0, -float(np.linalg.norm(self.gravity))]))


_TRAVELLED: WeakValueDictionary[str, Robot] = WeakValueDictionary()
"""Robots of this process that were sent to another one, or came from there."""


def _arrived(passport: str, parts: dict[str, Any]) -> Robot:
    """The robot that was sent: the one that is here, or a new one with its passport."""
    robot = _TRAVELLED.get(passport)
    if robot is None:
        robot = Robot(**parts)
        robot.__dict__["_passport"] = passport
        _TRAVELLED[passport] = robot
    return robot
