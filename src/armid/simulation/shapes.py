"""Collision shapes of links as MuJoCo geoms, and which pairs of bodies are never to collide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.errors import MissingDependencyError
from armid.robot.geometry import THINNEST, Box, Capsule, Cylinder, Geometry, Mesh, Sphere

try:
    import mujoco
except ImportError:
    raise MissingDependencyError("mujoco", "the embedded robot and shapes of links", "sim") from None

_MESH_SUFFIXES = (".stl", ".obj")
"""Mesh formats MuJoCo reads; a mesh collides as its convex hull."""


def pose_fields(T: FloatArray) -> dict[str, FloatArray]:
    """`pos` and `quat` of a homogeneous matrix, as MuJoCo spells a placement."""
    quat = np.empty(4)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(T[:3, :3]).ravel())
    return {"pos": np.array(T[:3, 3]), "quat": quat}


def add_shapes(spec: Any, body: Any, geometry: tuple[Geometry, ...], T_body_link: FloatArray) -> None:
    """Adds the collision shapes of one link to its body. Massless: inertia comes from the parameters alone."""
    for item in geometry:
        if not item.collision:
            continue
        fields = _geom_fields(spec, item)
        if fields is not None:
            body.add_geom(mass=0.0, **fields, **pose_fields(T_body_link @ item.T_link_shape))


def _geom_fields(spec: Any, item: Geometry) -> dict[str, Any] | None:
    """Type and size of one geom; None for a mesh that cannot be read here."""
    geom = mujoco.mjtGeom
    match item.shape:
        case Box(size):
            return {"type": geom.mjGEOM_BOX, "size": [max(0.5 * edge, THINNEST) for edge in size]}
        case Sphere(radius):
            return {"type": geom.mjGEOM_SPHERE, "size": [max(radius, THINNEST), 0.0, 0.0]}
        case Cylinder(radius, length):
            return {"type": geom.mjGEOM_CYLINDER, "size": [max(radius, THINNEST), max(0.5 * length, THINNEST), 0.0]}
        case Capsule(radius, length):
            return {"type": geom.mjGEOM_CAPSULE, "size": [max(radius, THINNEST), max(0.5 * length, THINNEST), 0.0]}
        case Mesh(path, scale):
            return _mesh_fields(spec, Path(path), scale)


def _mesh_fields(spec: Any, path: Path, scale: tuple[float, float, float]) -> dict[str, Any] | None:
    if path.suffix.lower() not in _MESH_SUFFIXES or not path.is_file():
        return None
    name = f"mesh{len(spec.meshes)}"
    spec.add_mesh(
        name=name, file=str(path.resolve()), scale=list(scale), inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    )
    return {"type": mujoco.mjtGeom.mjGEOM_MESH, "meshname": name}


_OVERLAP_POSTURES = 200

_ALWAYS = 0.9
"""A pair that touches in this share of all postures overlaps by design; one that touches sometimes collides."""

_OFTEN = 0.05
"""For a link and the next but one (across a short wrist link) touching this often means that the shapes are too coarse:
the limits of the joint between them keep the real ones apart. Motion design leaves such pairs out as well."""


def overlapping_bodies(model: Any, lower: FloatArray, upper: FloatArray) -> set[tuple[int, int]]:
    """Pairs of bodies whose shapes overlap by design, from postures between the given positions [n_dofs]."""
    rng = np.random.default_rng(0)
    data = mujoco.MjData(model)
    seen: dict[tuple[int, int], int] = {}
    for _ in range(_OVERLAP_POSTURES):
        data.qpos[:] = rng.uniform(lower, upper)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        bodies = model.geom_bodyid[data.contact.geom[: data.ncon]]
        for pair in {(int(min(row)), int(max(row))) for row in bodies}:
            seen[pair] = seen.get(pair, 0) + 1
    return {
        (one, other)
        for (one, other), count in seen.items()
        if count >= (_OFTEN if one > 0 and other - one == 2 else _ALWAYS) * _OVERLAP_POSTURES
    }
