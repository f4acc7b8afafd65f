"""Collision-free transitions: straight in joint space where possible, through way-points where not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.motions.limits import InfeasibleError, MotionLimits
from armid.motions.transition import TransitionTrajectory, quickest_transition
from armid.robot.robot import Robot
from armid.scene.scene import Scene

_EDGE_STEP = 0.02
"""[rad or m] between poses checked along an edge; the certificate of the motion looks in between."""

_TREE_NODES = 1500
"""Random directions tried before a way is declared not found."""

_SLOWDOWN = 1.25
"""A transition that asks for too much torque is slowed by this factor until it does not."""


class NoTransitionError(InfeasibleError):
    """No collision-free way between two poses was found."""


def edge_is_free(scene: Scene, a: FloatArray, b: FloatArray) -> bool:
    """Whether the straight way between two poses keeps every clearance, at steps of `_EDGE_STEP`."""
    count = max(int(np.ceil(np.abs(b - a).max() / _EDGE_STEP)), 1)
    return bool(scene.is_free(a + np.linspace(0.0, 1.0, count + 1)[:, np.newaxis] * (b - a)).all())


def safe_waypoints(
    scene: Scene, start: FloatArray, goal: FloatArray, limits: MotionLimits, rng: np.random.Generator
) -> FloatArray:
    """Way-points from start to goal with free edges, by two random trees that grow towards each other.

    Raises:
        NoTransitionError: an end is itself in collision, or no way was found.
    """
    for name, pose in (("start", start), ("goal", goal)):
        depth, where = scene.worst(pose)
        if depth < 0.0:
            raise NoTransitionError(
                f"{name} pose {np.round(pose, 3).tolist()} is not free: {where}, {-depth:.4f} m too close"
            )
    if edge_is_free(scene, start, goal):
        return np.vstack([start, goal])
    trees = (Tree(start, limits), Tree(goal, limits))
    for k in range(_TREE_NODES):
        growing, other = trees[k % 2], trees[1 - k % 2]
        node = growing.grow(rng.uniform(limits.lower, limits.upper), scene)
        if node is None:
            continue
        met = other.grow(growing.poses[node], scene)
        if met is not None and np.array_equal(other.poses[met], growing.poses[node]):
            path = [*growing.path(node), *reversed(other.path(met))]
            return _shorten(scene, np.array(path if k % 2 == 0 else path[::-1]), rng)
    raise NoTransitionError(
        f"no free way from {np.round(start, 3).tolist()} to {np.round(goal, 3).tolist()} after {_TREE_NODES} random "
        "directions; widen the cell or give an intermediate pose"
    )


class Tree:
    """Poses connected by free edges, grown from a root; [Kuffner2000]."""

    def __init__(self, root: FloatArray, limits: MotionLimits) -> None:
        self.poses = root[np.newaxis]
        self.parents = [-1]
        self.scale = 1.0 / limits.half_range

    def nearest(self, pose: FloatArray) -> int:
        return int(np.argmin((((self.poses - pose) * self.scale) ** 2).sum(axis=1)))

    def grow(self, towards: FloatArray, scene: Scene) -> int | None:
        """From the nearest node straight towards a pose as far as the way is free; the new node's index."""
        parent = self.nearest(towards)
        count = max(int(np.ceil(np.abs(towards - self.poses[parent]).max() / _EDGE_STEP)), 1)
        way = self.poses[parent] + np.linspace(0.0, 1.0, count + 1)[1:, np.newaxis] * (towards - self.poses[parent])
        free = scene.is_free(way)
        reached = count if free.all() else int(np.argmin(free))
        if reached == 0:
            return None
        self.poses = np.vstack([self.poses, towards if reached == count else way[reached - 1]])
        self.parents.append(parent)
        return len(self.parents) - 1

    def path(self, node: int) -> list[FloatArray]:
        """From the root to a node."""
        out = []
        while node >= 0:
            out.append(self.poses[node])
            node = self.parents[node]
        return out[::-1]


def _shorten(scene: Scene, path: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The path with detours cut where a straight edge is free."""
    for _ in range(100):
        if len(path) <= 2:
            break
        i, j = np.sort(rng.choice(len(path), size=2, replace=False))
        if j - i > 1 and edge_is_free(scene, path[i], path[j]):
            path = np.vstack([path[: i + 1], path[j:]])
    return path


def safe_transition(
    robot: Robot,
    start: npt.ArrayLike,
    goal: npt.ArrayLike,
    limits: MotionLimits,
    scene: Scene,
    *,
    rng: np.random.Generator,
) -> TransitionTrajectory:
    """The quickest collision-free motion from rest to rest that keeps every limit, torque included.

    Raises:
        NoTransitionError: no free way, or a pose on it that the torque limits cannot hold.
    """
    from armid.design.certificate import certify

    a, b = np.asarray(start, dtype=np.float64), np.asarray(goal, dtype=np.float64)
    motion = quickest_transition(robot.joint_names, safe_waypoints(scene, a, b, limits, rng), limits)
    for _ in range(12):
        proof = certify(motion, robot, limits, scene)
        if proof.usage["torque"].max() <= 1.0:
            break
        motion = TransitionTrajectory(motion.joint_names, motion.waypoints, motion.durations * _SLOWDOWN)
    if not proof.feasible:
        raise NoTransitionError(f"transition breaks its limits: {'; '.join(proof.violations[:3])}")
    return motion
