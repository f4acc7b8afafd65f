"""Torque per share by which a length of the description is wrong, exactly and without compiling anything.

Stretching the way to joint j moves every body behind it by d, which is fixed in the body that carries it (angular velocity w,
angular acceleration al). All of them are then accelerated by the same

    e = al x d + w x (w x d)

so that the wrench on the bodies behind joint k about its link's origin changes by (M_k e, S_k x e) with their mass M_k and
first moment S_k, and joints before the way feel the force F_j behind it with a longer lever: (s_k x d) . F_j for the axis s_k.
Masses and first moments are all that enters. Torque is quadratic in any one length; its derivative half way between two lengths
therefore gives the exact difference of their torques.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide
from armid.parameters.inertial import N_INERTIAL
from armid.parameters.space import OwnerKind
from armid.recursion.motion import Twist, geometric_coordinates, joint_placements, link_motions
from armid.recursion.scalars import ARRAYS, Scalar, Vector, add, cross, dot, scale, times, transpose_times
from armid.robot.elementary import Elementary, product
from armid.robot.robot import Joint, JointKind, Robot
from armid.rows.torque import space_of


def is_length(element: Elementary) -> bool:
    """Whether an element of a joint is a constant translation."""
    return not element.motion.is_rotation and not element.variable


def way_to(joint: Joint) -> float:
    """Length of the constant translations of a joint, each straight on [m]."""
    return float(np.linalg.norm([e.value for e in joint.transforms if is_length(e)]))


def felt_ways(robot: Robot) -> tuple[int, ...]:
    """Joints with a way that some torque may depend on: of the first joint only what turns about its axis."""
    lengths = tuple(j for j, joint in enumerate(robot.joints) if way_to(joint) > 0.0)
    return tuple(j for j in lengths if j > 0 or _turns(robot.joints[0]))


def _turns(joint: Joint) -> bool:
    """Whether a joint moves its own link's origin around its axis."""
    k = joint.variable_index
    across = np.delete(product(joint.transforms[k + 1 :])[:3, 3], joint.transforms[k].motion.axis)
    return joint.kind is JointKind.REVOLUTE and bool(np.any(np.abs(across) > 1e-12))


def stretched(joint: Joint, factor: float) -> Joint:
    """The joint with its constant translations multiplied."""
    return replace(
        joint,
        transforms=tuple(replace(e, value=factor * e.value) if is_length(e) else e for e in joint.transforms),
    )


def with_way(robot: Robot, j: int, factor: float) -> Robot:
    """The arm with the way to joint j multiplied."""
    return replace(robot, joints=tuple(stretched(own, factor) if i == j else own for i, own in enumerate(robot.joints)))


@dataclass(frozen=True, slots=True)
class _Behind:
    """Bodies moved by a joint, seen from its link: their mass, first moment about its origin, and the force that moves them."""

    mass: float
    moment: Vector
    force: Vector


class LengthColumns:
    """Change of torque with the lengths of an arm along one motion.

    Args:
        robot: as described.
        effects: of the rows.
        loaded: whether the payload is carried.
        motion: drive positions, velocities and accelerations, shape [n_samples, 3 n_joints].
        standard: parameter vector of the rows.
    """

    def __init__(
        self, robot: Robot, effects: Effects, *, loaded: bool, motion: FloatArray, standard: FloatArray
    ) -> None:
        n = robot.n_joints
        self._robot, self._side, self._samples = robot, effects.torques, len(motion)
        columns = list(motion.T)
        q, qd, qdd = (geometric_coordinates(robot, columns[k * n : (k + 1) * n], ARRAYS) for k in range(3))
        self._placements = joint_placements(robot, q, ARRAYS)
        self._motions = link_motions(robot, self._placements, qd, qdd, ARRAYS)
        self._behind = self._all_behind(_bodies(robot, effects, standard, loaded=loaded))

    def per_share(self, j: int) -> FloatArray:
        """Derivative of torque by the logarithm of the way to joint j, shape [n_samples, n_channels]."""
        n = self._robot.n_joints
        torque = np.zeros((self._samples, n))
        for way, carrier_moves in self._ways(j):
            for k, value in enumerate(self._felt(j, way, carrier_moves=carrier_moves)):
                torque[:, k] += value
        drives = torque if self._robot.coupling is None else torque @ self._robot.coupling
        match self._side:
            case TorqueSide.BOTH:
                return np.concatenate([drives, drives], axis=1)
            case TorqueSide.DIFFERENCE:
                return np.zeros_like(drives)
            case _:
                return drives

    def _ways(self, j: int) -> list[tuple[Vector, bool]]:
        """Translations of joint j in its link's axes, and whether the joint itself moves them: those behind its axis."""
        joint, R = self._robot.joints[j], self._placements[j].placement.R
        k = joint.variable_index
        before, after = product(joint.transforms[:k])[:3, 3], product(joint.transforms[k + 1 :])
        own = after[:3, :3].T @ after[:3, 3]
        out: list[tuple[Vector, bool]] = []
        if np.any(before):
            out.append((transpose_times(R, _constant(before)), False))
        if np.any(own):
            out.append((_constant(own), True))
        return out

    def _felt(self, j: int, way: Vector, *, carrier_moves: bool) -> list[Scalar]:
        """Change of every joint's torque when the bodies from link j on move by a way in its axes."""
        n, motion = self._robot.n_joints, self._motions[j]
        w, alpha = (motion.angular_velocity, motion.angular_acceleration) if carrier_moves else self._parent(j)
        extra = add(cross(alpha, way), cross(w, cross(w, way)))
        torque: list[Scalar] = []
        for k, axis in enumerate(motion.axes):
            value = _against(axis, self._behind[j], extra)
            if k < j or carrier_moves:
                value = value + dot(cross(axis.angular, way), self._behind[j].force)
            torque.append(value)
        for k in range(j + 1, n):
            extra = transpose_times(self._placements[k].placement.R, extra)
            torque.append(_against(self._motions[k].axes[k], self._behind[k], extra))
        return torque

    def _parent(self, j: int) -> tuple[Vector, Vector]:
        """Angular velocity and acceleration of the link before joint j, in the axes of link j."""
        if j == 0:
            still = _constant(np.zeros(3))
            return still, still
        R, before = self._placements[j].placement.R, self._motions[j - 1]
        return transpose_times(R, before.angular_velocity), transpose_times(R, before.angular_acceleration)

    def _all_behind(self, bodies: Sequence[FloatArray]) -> list[_Behind]:
        out: list[_Behind] = []
        for i in reversed(range(self._robot.n_joints)):
            mass, first = float(bodies[i][0]), _constant(bodies[i][1:])
            motion = self._motions[i]
            w, alpha = motion.angular_velocity, motion.angular_acceleration
            force = add(scale(mass, motion.acceleration), add(cross(alpha, first), cross(w, cross(w, first))))
            if out:
                outer, T = out[-1], self._placements[i + 1].placement
                first = add(first, add(times(T.R, outer.moment), scale(outer.mass, T.p)))
                force = add(force, times(T.R, outer.force))
                mass += outer.mass
            out.append(_Behind(mass, first, force))
        return out[::-1]


def length_torque(columns: LengthColumns, j: int, share: float) -> FloatArray:
    """What the arm's torque has too much because the way to joint j is described too long by a share.

    Args:
        columns: of the arm half way between its description and the truth, see `half_way`.
        j: joint.
        share: of the true way.
    """
    return 2.0 * share / (2.0 + share) * columns.per_share(j)


def half_way(robot: Robot, j: int, share: float) -> Robot:
    """The arm with the way to joint j between its description and what it is when that is too long by a share."""
    return with_way(robot, j, (2.0 + share) / (2.0 * (1.0 + share)))


def _against(axis: Twist, behind: _Behind, extra: Vector) -> Scalar:
    """Torque about an axis of an acceleration that all bodies behind have alike."""
    return behind.mass * dot(axis.linear, extra) + dot(axis.angular, cross(behind.moment, extra))


def _bodies(robot: Robot, effects: Effects, standard: FloatArray, *, loaded: bool) -> list[FloatArray]:
    """Mass and first moment of every link, the payload with the last."""
    space, n = space_of(robot, effects), robot.n_joints
    starts = [space.start(OwnerKind.LINK, i) for i in range(n)]
    bodies = [np.array(standard[start : start + N_INERTIAL][:4]) for start in starts]
    if loaded and effects.payload is not PayloadRuns.NONE:
        bodies[-1] += standard[space.start(OwnerKind.PAYLOAD, n) :][:4]
    return bodies


def _constant(values: FloatArray) -> Vector:
    x, y, z = (float(v) for v in values)
    return x, y, z
