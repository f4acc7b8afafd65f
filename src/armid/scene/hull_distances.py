"""Distances between the real shapes, for pairs of links whose capsules are too coarse to decide.

A capsule contains its shape, so capsules apart mean shapes apart; only where capsules overlap does the shape have to be
asked. MuJoCo's
distances of convex shapes answer, with the two nearest points (of the deepest overlap, when they overlap), from which the
gradient follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import local
from typing import Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import MissingDependencyError
from armid.robot.geometry import Box, Capsule, Cylinder, Geometry, Sphere
from armid.scene.hull_points import corners
from armid.scene.separation import Outlines, distances, outlines

try:
    import mujoco
except ImportError:
    raise MissingDependencyError("mujoco", "the embedded robot and shapes of links", "sim") from None

_FAR = 10.0
"""[m] No arm's links are farther apart; nearer answers are exact."""

_DEPTH_FLOOR = 1e-9
"""[m] Nearest points closer than this have no direction between them."""


@dataclass(frozen=True, eq=False)
class Witnesses:
    """Nearest points of pairs of shapes, one row per question.

    Args:
        distance: [m], negative when they overlap, shape [k]; a lower bound of it where shapes are certainly apart.
        first, second: the point on either shape in the base frame [m], shape [k, 3].
        normal: direction in which the first shape moves away fastest, shape [k, 3]; zero where the shapes just touch.
    """

    distance: FloatArray
    first: FloatArray
    second: FloatArray
    normal: FloatArray


@dataclass(frozen=True, eq=False)
class HullDistances:
    """Convex shapes fixed to links, and their distances at given poses of the links.

    Args:
        shapes: link (0 the base) and shape of each, meshes readable.
    """

    shapes: tuple[tuple[int, Geometry], ...]

    @cached_property
    def _links(self) -> npt.NDArray[np.intp]:
        return np.array([link for link, _ in self.shapes], dtype=np.intp)

    @cached_property
    def _outlines(self) -> Outlines:
        return outlines(self.shapes)

    @cached_property
    def _model(self) -> Any:
        return mujoco.MjModel.from_xml_string(model_text([geometry for _, geometry in self.shapes]))

    @cached_property
    def _of_threads(self) -> local:
        return local()

    @property
    def _data(self) -> Any:
        """Where MuJoCo works, one for each thread: it writes there while other threads run."""
        kept = self._of_threads
        if not hasattr(kept, "data"):
            kept.data = mujoco.MjData(self._model)
            mujoco.mj_kinematics(self._model, kept.data)
        return kept.data

    @cached_property
    def _rest(self) -> tuple[FloatArray, FloatArray]:
        """Rotations and places of the shapes in their links' frames."""
        fresh = mujoco.MjData(self._model)
        mujoco.mj_kinematics(self._model, fresh)
        return fresh.geom_xmat.reshape(-1, 3, 3).copy(), fresh.geom_xpos.copy()

    def __reduce__(self) -> tuple[type[HullDistances], tuple[tuple[tuple[int, Geometry], ...]]]:
        # Other processes compile the model again: that is quicker than sending it.
        return HullDistances, (self.shapes,)

    def witnesses(
        self, R: FloatArray, p: FloatArray, poses: npt.NDArray[np.intp], pairs: npt.NDArray[np.intp]
    ) -> Witnesses:
        """Nearest points for a list of questions: pair k of shapes at pose k.

        Args:
            R: rotation of each link, base first, shape [n_poses, n_links, 3, 3].
            p: origin of each link [m], shape [n_poses, n_links, 3].
            poses: which pose, shape [k].
            pairs: which two shapes, shape [k, 2].
        """
        distance, ends = self._distances(R, p, poses, pairs)
        safe = np.where(np.abs(distance) > _DEPTH_FLOOR, distance, np.inf)[:, np.newaxis]
        return Witnesses(distance, ends[:, :3], ends[:, 3:], (ends[:, :3] - ends[:, 3:]) / safe)

    def nearest(
        self,
        R: FloatArray,
        p: FloatArray,
        poses: npt.NDArray[np.intp],
        pairs: npt.NDArray[np.intp],
        *,
        rows: npt.NDArray[np.intp],
        enough: FloatArray,
        directions: FloatArray,
    ) -> Witnesses:
        """`witnesses`, quicker: nearest points of shapes that are apart are found by compiled code.

        Hulls of many corners count as larger than they are by at most 0.2 mm or 0.1 % of their extent, cylinders by 0.5 % of
        their radius.

        Args:
            R, p, poses, pairs: as for `witnesses`.
            rows: number of the pair, shape [k].
            enough: distances worth knowing [m], shape [k]: beyond them a lower bound will do.
            directions: that parted the pairs when last asked about, zeros at first; changed; shape [n_poses or 1, n_rows, 3].
        """
        k, shapes = len(poses), self._outlines
        distance, ends, normal = np.empty(k), np.empty((k, 6)), np.empty((k, 3))
        distances(
            R,
            p,
            poses,
            rows,
            pairs,
            enough,
            shapes.points,
            shapes.first,
            shapes.radius,
            shapes.links,
            directions,
            distance,
            ends,
            normal,
        )
        overlap = np.flatnonzero(distance < 0.0)
        used, places = np.unique(poses[overlap], return_inverse=True)
        deep = self.witnesses(R[used], p[used], places, pairs[overlap])
        distance[overlap], normal[overlap] = deep.distance, deep.normal
        ends[overlap, :3], ends[overlap, 3:] = deep.first, deep.second
        return Witnesses(distance, ends[:, :3], ends[:, 3:], normal)

    def _distances(
        self, R: FloatArray, p: FloatArray, poses: npt.NDArray[np.intp], pairs: npt.NDArray[np.intp]
    ) -> tuple[FloatArray, FloatArray]:
        """Distances [m], shape [k], and nearest points [m], shape [k, 6], as MuJoCo finds them."""
        own_turns, own_places = self._rest
        turns = R[:, self._links] @ own_turns
        places = (R[:, self._links] @ own_places[..., np.newaxis])[..., 0] + p[:, self._links]
        distance, ends = np.empty(len(poses)), np.empty((len(poses), 6))
        current, data = -1, self._data
        for k, (pose, (a, b)) in enumerate(zip(poses.tolist(), pairs.tolist(), strict=True)):
            if pose != current:
                data.geom_xpos[:] = places[pose]
                data.geom_xmat[:] = turns[pose].reshape(-1, 9)
                current = pose
            distance[k] = mujoco.mj_geomDistance(self._model, data, a, b, _FAR, ends[k])
        return distance, ends


def model_text(shapes: Sequence[Geometry]) -> str:
    """A MuJoCo model with one geom per shape, in order, and no extra files: meshes are given by the corners of their hull."""
    assets, geoms = [], []
    for k, geometry in enumerate(shapes):
        T = geometry.T_link_shape
        place = f'pos="{_numbers(T[:3, 3])}" xyaxes="{_numbers(T[:3, :2].T.ravel())}"'
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
                assets.append(f'<mesh name="m{k}" vertex="{_numbers(corners(mesh).ravel())}"/>')
                geoms.append(f'<geom type="mesh" mesh="m{k}" {place}/>')
    return f"<mujoco><asset>{''.join(assets)}</asset><worldbody>{''.join(geoms)}</worldbody></mujoco>"


def _numbers(values: FloatArray) -> str:
    return " ".join(f"{float(x):.17g}" for x in values)
