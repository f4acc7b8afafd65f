"""The final look with the real shapes: convex hulls of meshes, boxes and cylinders as they are, by MuJoCo's distances.

Capsules contain the shapes they stand for, so a motion certified with them is clear of itself with the shapes too - except for
pairs of links whose capsules overlap by construction and were left out. Those are looked at here.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from armid.arrays import FloatArray
from armid.kernels.kinematics import forward_kinematics
from armid.motions.trajectory import Trajectory, grid
from armid.robot.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Sphere
from armid.robot.meshes import MeshError, vertices
from armid.robot.robot import Robot

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


def hull_check(robot: Robot, trajectory: Trajectory, *, rate_hz: float = _RATE_HZ) -> HullCheck:
    """Distances between the shapes of links two or more apart along a motion, at samples."""
    shapes, missing = _collision_shapes(robot)
    pairs = [(a, b) for a in range(len(shapes)) for b in range(a) if abs(shapes[a][0] - shapes[b][0]) > 1]
    if not pairs:
        return HullCheck(float("inf"), "", 0.0, missing)
    model = mujoco.MjModel.from_xml_string(*_model_text([geometry for _, geometry in shapes]))
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
                    vertices(shape.shape)
                except MeshError as problem:
                    missing.append(str(problem))
                    continue
            out.append((link, shape))
    return out, tuple(missing)


def _model_text(shapes: list[Geometry]) -> tuple[str, dict[str, bytes]]:
    """A MuJoCo model with one geom per shape, in order, and no extra files: meshes are given by their vertices."""
    assets, geoms = [], []
    for k, geometry in enumerate(shapes):
        place = f'pos="{_numbers(geometry.T_link_shape[:3, 3])}" xyaxes="{_numbers(geometry.T_link_shape[:3, :2].T.ravel())}"'
        match geometry.shape:
            case Box(size):
                geoms.append(f'<geom type="box" size="{_numbers(np.array(size) / 2)}" {place}/>')
            case Sphere(radius):
                geoms.append(f'<geom type="sphere" size="{radius}" {place}/>')
            case Cylinder(radius, length):
                geoms.append(f'<geom type="cylinder" size="{radius} {length / 2}" {place}/>')
            case Capsule(radius, length):
                geoms.append(f'<geom type="capsule" size="{radius} {length / 2}" {place}/>')
            case mesh:
                # MuJoCo makes the convex hull of loose vertices itself.
                assets.append(f'<mesh name="m{k}" vertex="{_numbers(vertices(mesh).ravel())}"/>')
                geoms.append(f'<geom type="mesh" mesh="m{k}" {place}/>')
    return f"<mujoco><asset>{''.join(assets)}</asset><worldbody>{''.join(geoms)}</worldbody></mujoco>", {}


def _numbers(values: FloatArray) -> str:
    return " ".join(f"{float(x):.17g}" for x in values)
