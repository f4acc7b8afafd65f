"""The final look with the real shapes: convex hulls of meshes, boxes and cylinders as they are, by MuJoCo's distances.

The scene's clearances already rest on them where capsules are too coarse; this is the second opinion, along the finished motion.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from armid.errors import MissingDependencyError
from armid.kernels.kinematics import forward_kinematics
from armid.motions.trajectory import Trajectory, grid
from armid.robot.geometry import Geometry, Mesh
from armid.robot.meshes import MeshError
from armid.robot.robot import Robot
from armid.scene.hull_distances import model_text
from armid.scene.hull_points import corners

try:
    import mujoco
except ImportError:
    raise MissingDependencyError("mujoco", "the embedded robot and shapes of links", "sim") from None

_RATE_HZ = 50.0

_FAR = 1.0
"""[m] beyond which distances are not computed."""


@dataclass(frozen=True, eq=False)
class HullCheck:
    """Closest approach of the real shapes of links that are not neighbours.

    Args:
        distance: smallest one [m]; negative when shapes overlap, infinite when there is nothing to compare.
        pair: the two links.
        time: when [s].
        missing: meshes that could not be read.
    """

    distance: float
    pair: str
    time: float
    missing: tuple[str, ...]


def hull_check(
    robot: Robot, trajectory: Trajectory, *, rate_hz: float = _RATE_HZ, left_out: Collection[tuple[int, int]] = ()
) -> HullCheck:
    """Distances between the shapes of links two or more apart along a motion, at samples.

    Args:
        robot: the arm.
        trajectory: the motion.
        rate_hz: of the samples.
        left_out: pairs of links (0 the base, the lower one first) that overlap by construction.
    """
    shapes, missing = _collision_shapes(robot)
    links = [link for link, _ in shapes]
    pairs = [(a, b) for a in range(len(shapes)) for b in range(a) if abs(links[a] - links[b]) > 1]
    pairs = [(a, b) for a, b in pairs if (min(links[a], links[b]), max(links[a], links[b])) not in left_out]
    if not pairs:
        return HullCheck(float("inf"), "", 0.0, missing)
    model = mujoco.MjModel.from_xml_string(model_text([geometry for _, geometry in shapes]))
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    local = [(data.geom_xpos[k].copy(), data.geom_xmat[k].reshape(3, 3).copy()) for k in range(len(shapes))]
    t = grid(trajectory.duration, rate_hz)
    q = trajectory.sample(t)[0]
    frames = [np.tile(np.eye(4), (len(t), 1, 1)), *(forward_kinematics(robot, q, name) for name in robot.link_names)]
    names = (robot.base, *robot.link_names)
    best = HullCheck(float("inf"), "", 0.0, missing)
    for i, instant in enumerate(t):
        for k, (link, _) in enumerate(shapes):
            T = frames[link][i]
            data.geom_xpos[k] = T[:3, :3] @ local[k][0] + T[:3, 3]
            data.geom_xmat[k] = (T[:3, :3] @ local[k][1]).ravel()
        for a, b in pairs:
            d = mujoco.mj_geomDistance(model, data, a, b, min(best.distance, _FAR), None)
            if d < best.distance and d < _FAR:
                best = HullCheck(float(d), f"{names[shapes[b][0]]} and {names[shapes[a][0]]}", float(instant), missing)
    return best


def _collision_shapes(robot: Robot) -> tuple[list[tuple[int, Geometry]], tuple[str, ...]]:
    """Every collision shape with its link (0 the base), and the meshes that are not there."""
    out, missing = [], []
    for link, geometry in enumerate((robot.geometry, *(one.geometry for one in robot.links))):
        for shape in geometry:
            if not shape.collision:
                continue
            if isinstance(shape.shape, Mesh):
                try:
                    corners(shape.shape)
                except MeshError as problem:
                    missing.append(str(problem))
                    continue
            out.append((link, shape))
    return out, tuple(missing)
