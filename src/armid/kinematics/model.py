"""The arm with its error parameters: a chain of elementary transforms, some of whose numbers are unknown.

Every kind of error enters in one of two ways. A constant of the chain (a link length, an axis angle, a number of the
sensor's or the tool's frame) gets a value added to it. A joint coordinate gets `parameter * basis(q)` added to it, with
basis 1 (offset), q (gain), sin q and cos q (eccentricity), another joint's q (coupling) or the gravity torque
(compliance). The derivative of the pose is then, for both, the twist of one element of the chain times the basis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import UnknownNameError
from armid.kinematics.parameter import KinematicParameter, Tolerances
from armid.kinematics.structural import STRUCTURAL, Zero, as_number
from armid.kinematics.words import Term, UnknownGeometry
from armid.parameters.space import OwnerKind
from armid.recursion.kinematics import chain_pose, element_twists
from armid.recursion.placement import Placement
from armid.recursion.scalars import FLOATS
from armid.robot.elementary import Elementary, Move, from_matrix
from armid.robot.robot import JointKind, Robot


class TermBasis(StrEnum):
    """The function of the configuration that multiplies a joint parameter."""

    ONE = "one"
    POSITION = "position"
    SIN = "sin"
    COS = "cos"
    OTHER = "other"
    TORQUE = "torque"


@dataclass(frozen=True, slots=True)
class Slot:
    """One elementary transform of the chain.

    Args:
        element: with its nominal value.
        joint: whose variable it uses, or None.
        parameter: index of the parameter added to its value, or None.
    """

    element: Elementary
    joint: int | None = None
    parameter: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JointTerm:
    """`parameter * basis` added to the geometric coordinate of a joint.

    Args:
        joint: it is added to.
        parameter: index.
        basis: function of the configuration.
        other: the drive of a coupling.
        covered: range of the joint that was measured [rad]: beyond it eccentricity stays as at its edge, since a sine fitted to
            part of a turn says nothing about the rest.
    """

    joint: int
    parameter: int
    basis: TermBasis
    other: int = 0
    covered: tuple[float, float] = (-np.inf, np.inf)


@dataclass(frozen=True)
class FrameModel:
    """How a sensor or tool frame is parametrised: a fixed chain, some of whose numbers are free.

    Args:
        elements: the chain.
        free: names of the free values, None where fixed; same length.
        rank: the order in which redundant parameters are dropped (higher first).
        body: frames of the same body share their free values; each frame is its own body when None.
    """

    elements: tuple[Elementary, ...]
    free: tuple[str | None, ...]
    rank: int = 0
    body: str | None = None

    @classmethod
    def around(cls, T: FloatArray, free: Sequence[Move], *, outside: bool) -> FrameModel:
        """Small corrections around a start value, on its outer (sensor) or inner (tool) side: never near a singularity."""
        start = from_matrix(T)
        small = tuple(Elementary(motion=motion) for motion in free)
        names = tuple(str(motion.value).lower() for motion in free)
        fixed: tuple[str | None, ...] = (None,) * len(start)
        return cls(small + start, names + fixed) if outside else cls(start + small, fixed + names)


def known_cluster(
    T_link_body: FloatArray, offsets: Mapping[str, FloatArray], *, body: str = "tool"
) -> dict[str, FrameModel]:
    """Several targets on one rigid body whose places on it are known: six unknowns for all of them.

    Args:
        T_link_body: start value of the body's frame on the last link, shape [4, 4].
        offsets: name of each target -> its known position on the body [m], shape [3].
        body: name of the body, in front of its parameters' names.
    """
    motions = (Move.TX, Move.TY, Move.TZ, Move.RX, Move.RY, Move.RZ)
    frame = FrameModel.around(T_link_body, motions, outside=False)
    return {
        name: FrameModel(
            (*frame.elements, *(Elementary(motion=m, value=float(x)) for m, x in zip(motions[:3], at, strict=True))),
            (*frame.free, None, None, None),
            frame.rank,
            body,
        )
        for name, at in offsets.items()
    }


@dataclass(frozen=True)
class ErrorModel:
    """What may differ from nominal.

    Args:
        geometry: which link constants.
        terms: which joint terms.
        couplings: pairs (moved joint, moving drive), 0-based, for `Term.COUPLING`; neighbours when empty.
        tolerances: the prior.
    """

    geometry: UnknownGeometry = UnknownGeometry.COMPLETE
    terms: frozenset[Term] = frozenset({Term.OFFSET})
    couplings: tuple[tuple[int, int], ...] = ()
    tolerances: Tolerances = field(default_factory=Tolerances)


@dataclass(frozen=True, eq=False, kw_only=True)
class KinematicModel:
    """A chain per sensor and target through the same arm, over one parameter vector.

    Args:
        robot: nominal arm, in the form whose constants carry the parameters.
        parameters: all of them, identifiable or not.
        links: slots of every joint, from the previous link's frame to its own.
        terms: what is added to joint coordinates.
        setups, targets: frames in front of the base and behind the last link.
    """

    robot: Robot
    parameters: tuple[KinematicParameter, ...]
    links: tuple[tuple[Slot, ...], ...]
    terms: tuple[JointTerm, ...]
    setups: Mapping[str, tuple[Slot, ...]]
    targets: Mapping[str, tuple[Slot, ...]]

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters)

    @cached_property
    def tolerances(self) -> FloatArray:
        return np.array([p.tolerance for p in self.parameters])

    @cached_property
    def preferred(self) -> tuple[int, ...]:
        """Columns in the order in which they are kept: sensors, tools, zeros, then lengths and axes, each from tip to base.

        Sensors come before tools, since nothing at all is known of where they stand: what the two share is theirs. Frames that a
        caller ranks with the links (`FrameModel.rank`) stand among these.
        """

        def place(i: int) -> tuple[int, bool, int]:
            own = self.parameters[i]
            return own.rank, own.rank == 0 and own.kind is OwnerKind.TARGET, -i

        return tuple(sorted(range(len(self.parameters)), key=place))

    def index(self, name: str) -> int:
        if name not in self.names:
            raise UnknownNameError("kinematic parameter", name, self.names)
        return self.names.index(name)

    def owned(self, *kinds: OwnerKind) -> npt.NDArray[np.bool_]:
        """Mask of the parameters of these kinds of owners, shape [p]."""
        return np.array([p.kind in kinds for p in self.parameters], dtype=bool)

    @cached_property
    def arm(self) -> tuple[Slot, ...]:
        """Every slot from the base to the last link."""
        return tuple(slot for link in self.links for slot in link)

    def chain(self, setup: str | None, target: str | None) -> tuple[Slot, ...]:
        """Every slot from the sensor (or the base) to the target (or the last link)."""
        before = () if setup is None else self.setups[setup]
        return (*before, *self.arm, *(() if target is None else self.targets[target]))


_BOUNDED = (TermBasis.SIN, TermBasis.COS)
"""Terms that hold only where the joint was measured."""


def covering(model: KinematicModel, ranges: Mapping[int, tuple[float, float]]) -> KinematicModel:
    """The same model whose eccentricity is known over these ranges of its joints only, by the joint's index [rad]."""
    terms = tuple(
        replace(t, covered=ranges[t.joint]) if t.basis in _BOUNDED and t.joint in ranges else t for t in model.terms
    )
    return replace(model, terms=terms)


def covered_ranges(model: KinematicModel) -> dict[int, tuple[float, float]]:
    """Ranges of the joints over which eccentricity is known [rad], where they are bounded."""
    bounded = (t for t in model.terms if t.basis in _BOUNDED and np.isfinite(t.covered).all())
    return {t.joint: t.covered for t in bounded}


def corrected(slots: Sequence[Slot], values: FloatArray) -> list[tuple[Elementary, int | None]]:
    """The chain with the parameters added to its constants."""
    out: list[tuple[Elementary, int | None]] = []
    for slot in slots:
        element = slot.element
        if slot.parameter is not None and values[slot.parameter] != 0.0:
            element = replace(element, value=element.value + float(values[slot.parameter]))
        out.append((element, slot.joint))
    return out


def basis_values(term: JointTerm, q: FloatArray, torque: FloatArray | None) -> FloatArray | float:
    """The basis of one term at the drive positions q [n, n_joints] and gravity torques [n, n_joints]."""
    match term.basis:
        case TermBasis.ONE:
            return 1.0
        case TermBasis.POSITION:
            return q[:, term.joint]
        case TermBasis.SIN:
            return np.sin(np.clip(q[:, term.joint], *term.covered))
        case TermBasis.COS:
            return np.cos(np.clip(q[:, term.joint], *term.covered))
        case TermBasis.OTHER:
            return q[:, term.other]
        case TermBasis.TORQUE:
            assert torque is not None
            return torque[:, term.joint]


def joint_coordinates(
    model: KinematicModel, values: FloatArray, q: FloatArray, torque: FloatArray | None = None
) -> FloatArray:
    """Geometric coordinates the arm really takes when its drives read q, shape [n, n_joints]."""
    moved = np.array(q if model.robot.coupling is None else q @ model.robot.coupling.T)
    for term in model.terms:
        if values[term.parameter] != 0.0:
            moved[:, term.joint] += values[term.parameter] * basis_values(term, q, torque)
    return moved


def pose_and_derivative(
    model: KinematicModel,
    values: FloatArray,
    q: FloatArray,
    setup: str | None,
    target: str | None,
    *,
    torque: FloatArray | None = None,
    wanted: npt.NDArray[np.bool_] | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Where the target is and how it moves with every parameter.

    Args:
        model, values: the arm and its parameters, shape [p].
        q: drive positions, shape [n, n_joints].
        setup, target: the ends of the chain; the base frame and the last link's frame when None.
        torque: gravity torque, shape [n, n_joints]; needed with compliance only.
        wanted: mask of the parameters whose derivative is needed; all by default.

    Returns:
        R [3, 3, n], p [3, n], and J [c, 6, n] over the wanted parameters: rows vx vy vz wx wy wz in sensor axes.
        Samples come last, so that each entry is one contiguous vector.
    """
    n = len(q)
    slots = model.chain(setup, target)
    moved = joint_coordinates(model, values, q, torque)
    # The recursion runs on arrays directly: its constants change with every iteration, so a compiled kernel would not pay.
    T, twists = element_twists(corrected(slots, values), list(np.ascontiguousarray(moved.T)), STRUCTURAL)
    R, p = _pose_arrays(T, n)
    place = places(len(values), wanted)
    J = np.zeros((int(place[-1]) + 1, 6, n))
    begun: set[int] = set()
    for k, parameter, basis in _moved_elements(model, slots, q, torque, wanted):
        column = J[place[parameter]]
        for i, entry in enumerate((*twists[k].linear, *twists[k].angular)):
            if isinstance(entry, Zero):
                continue
            if parameter in begun:
                column[i] += as_number(entry) * basis
            else:
                np.multiply(as_number(entry), basis, out=column[i])
        begun.add(parameter)
    return R, p, J


def places(count: int, wanted: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.intp]:
    """Column of every wanted parameter among the wanted ones."""
    return np.cumsum(np.ones(count, dtype=bool) if wanted is None else wanted) - 1


def last_link(
    model: KinematicModel, values: FloatArray, q: FloatArray, torque: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """R [3, 3, n] and p [3, n] of the last link in the base frame."""
    moved = joint_coordinates(model, values, q, torque)
    T = chain_pose(corrected(model.arm, values), list(np.ascontiguousarray(moved.T)), STRUCTURAL)
    return _pose_arrays(T, len(q))


def _pose_arrays(T: Placement, n: int) -> tuple[FloatArray, FloatArray]:
    """Rotation [3, 3, n] and position [3, n] of a placement whose entries are arrays or numbers."""
    R, p = np.empty((3, 3, n)), np.empty((3, n))
    for i in range(3):
        p[i] = as_number(T.p[i])
        for j in range(3):
            R[i, j] = as_number(T.R[i][j])
    return R, p


def at_setup(
    model: KinematicModel,
    values: FloatArray,
    setup: str,
    link: tuple[FloatArray, FloatArray],
    *,
    wanted: npt.NDArray[np.bool_],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """`pose_and_derivative` of the last link from its pose in the base frame, by parameters of the sensor's frame alone."""
    slots = model.setups[setup]
    T, twists = element_twists(corrected(slots, values), (), FLOATS)
    turn: FloatArray = np.array(T.R)
    R, p = link
    lever = turn @ p
    place = places(len(values), wanted)
    J = np.zeros((int(place[-1]) + 1, 6, p.shape[1]))
    for slot, twist in zip(slots, twists, strict=True):
        if slot.parameter is not None and wanted[slot.parameter]:
            column = J[place[slot.parameter]]
            v, w = np.array(twist.linear)[:, np.newaxis], np.array(twist.angular)[:, np.newaxis]
            column[:3] += v + np.cross(w, lever, axis=0)
            column[3:] += w
    return np.einsum("ij,jkn->ikn", turn, R), lever + np.array(T.p)[:, np.newaxis], J


def at_target(
    model: KinematicModel,
    values: FloatArray,
    target: str,
    link: tuple[FloatArray, FloatArray, FloatArray],
    *,
    wanted: npt.NDArray[np.bool_] | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """`pose_and_derivative` of a target from that of the last link: the arm is gone through once for several targets."""
    R, p, J = link
    slots = model.targets[target]
    T, twists = element_twists(corrected(slots, values), (), FLOATS)
    lever = np.einsum("ijn,j->in", R, T.p)
    J = J.copy()
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        J[:, i] += J[:, 3 + j] * lever[k] - J[:, 3 + k] * lever[j]
    place = places(len(values), wanted)
    for slot, twist in zip(slots, twists, strict=True):
        if slot.parameter is not None and (wanted is None or wanted[slot.parameter]):
            J[place[slot.parameter], :3] = np.einsum("ijn,j->in", R, twist.linear)
            J[place[slot.parameter], 3:] = np.einsum("ijn,j->in", R, twist.angular)
    return np.einsum("ijn,jk->ikn", R, T.R), p + lever, J


def _moved_elements(
    model: KinematicModel,
    slots: Sequence[Slot],
    q: FloatArray,
    torque: FloatArray | None,
    wanted: npt.NDArray[np.bool_] | None = None,
) -> Iterator[tuple[int, int, FloatArray | float]]:
    """(element of the chain, parameter, factor) of every way a wanted parameter moves the chain."""
    for k, slot in enumerate(slots):
        if slot.parameter is not None and (wanted is None or wanted[slot.parameter]):
            yield k, slot.parameter, 1.0
        if slot.joint is not None:
            for term in model.terms:
                if term.joint == slot.joint and (wanted is None or wanted[term.parameter]):
                    yield k, term.parameter, slot.element.sign * basis_values(term, q, torque)


def prismatic(robot: Robot, joint: int) -> bool:
    return robot.joints[joint].kind is JointKind.PRISMATIC
