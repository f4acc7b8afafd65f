"""Arm and cell together: every clearance a pose must keep, in batch, with gradients and bounds on how fast it changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.motions.limits import motion_limits
from armid.notes import Note
from armid.robot.elementary import product
from armid.robot.geometry import Box, Geometry, Mesh
from armid.robot.robot import JointKind, Robot
from armid.scene import distance_kernels as kernels
from armid.scene.capsules import LinkCapsule, enclosing_capsule, link_capsules
from armid.scene.cell import Cell, Region
from armid.scene.cell_kernels import cell_clearances
from armid.scene.hull_distances import HullDistances, Witnesses

_GUIDE = 0.002
"""[m] of overlap of capsules that doubles the weight of an overlap of shapes in a search: shapes a few millimetres into
each other may be a radian away from the way out."""

_SURE = 0.002
"""[m] beyond the margin, from which on a lower bound of a distance will do for a search: it turns on nearer pairs."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _Near:
    """Where capsules overlap and shapes decide.

    Args:
        x: poses asked about, shape [n_samples, n_joints].
        samples, rows: sample and row of the table of each answer, shape [k].
        capsule: the capsules' clearance there [m], shape [k].
        witnesses: nearest points of the shapes there.
    """

    x: FloatArray
    samples: npt.NDArray[np.intp]
    rows: npt.NDArray[np.intp]
    capsule: FloatArray
    witnesses: Witnesses


@dataclass(frozen=True, eq=False, kw_only=True)
class Scene:
    """Clearances of one arm in one cell, all in metres (rad for angles); a pose is free when none is negative.

    Args:
        robot: geometry and coupling.
        capsules: of links, base and round obstacles.
        boxes: rotation (9), centre (3), half edges (3) in the base frame, shape [n_boxes, 15].
        frames: rotation (9) and translation (3) in the link frame, shape [n_frames, 12].
        frame_links: link of each frame.
        cameras: rotation camera-from-base, shape [n_cameras, 9].
        table: kind, two indices, four numbers per clearance, shape [n_clearances, 7]; `distance_kernels` explains.
        names: what each clearance is, in words.
        notes: what was assumed.
        hulls: shapes of the robot's capsules, asked where a row of the table says that they decide; None when no row does.
        left_out: pairs of links (0 the base, the lower one first) that overlap by construction and are not checked.
    """

    robot: Robot
    capsules: tuple[LinkCapsule, ...]
    boxes: FloatArray
    frames: FloatArray
    frame_links: tuple[int, ...]
    cameras: FloatArray
    table: FloatArray
    names: tuple[str, ...]
    notes: tuple[Note, ...] = ()
    hulls: HullDistances | None = None
    left_out: frozenset[tuple[int, int]] = frozenset()

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def _arrays(self) -> tuple[npt.NDArray[np.generic], ...]:
        capsules = np.array([[*c.start, *c.end, c.radius] for c in self.capsules]).reshape(-1, 7)
        links = np.array([c.link for c in self.capsules], dtype=np.int64)
        turns = np.array([joint.kind is JointKind.REVOLUTE for joint in self.robot.joints])
        return (
            joint_rows(self.robot),
            turns,
            capsules,
            links,
            np.ascontiguousarray(self.boxes.reshape(-1, 15)),
            np.ascontiguousarray(self.frames.reshape(-1, 12)),
            np.array(self.frame_links, dtype=np.int64),
            np.ascontiguousarray(self.cameras.reshape(-1, 9)),
            np.ascontiguousarray(self.table.reshape(-1, 7)),
        )

    def _run(self, x: FloatArray, weights: FloatArray, values: FloatArray, gradient: FloatArray) -> None:
        joints, turns, capsules, links, *_, table = self._arrays
        alone: Callable[..., None] = kernels.clearances
        alone(x, joints, turns, capsules, links, table, weights, values, gradient)
        if self._in_cell:
            around: Callable[..., None] = cell_clearances
            around(x, *self._arrays, weights, values, gradient)

    @cached_property
    def _in_cell(self) -> bool:
        """Whether there are clearances from anything but the arm itself and the floor."""
        return bool(np.isin(self.table[:, 0], (kernels.CAPSULE_CAPSULE, kernels.CAPSULE_FLOOR), invert=True).any())

    def geometric(self, q: npt.ArrayLike) -> FloatArray:
        """Joint positions of the arm itself from those of its drives, contiguous."""
        x = samples("q", q, self.robot.n_joints)
        return np.ascontiguousarray(x if self.robot.coupling is None else x @ self.robot.coupling.T)

    def clearances(self, q: npt.ArrayLike, *, guided: bool = False) -> FloatArray:
        """All clearances at drive positions q, shape [n_samples, n_clearances].

        Args:
            q: shape [n_samples, n_joints].
            guided: for a search: shapes that overlap are moved apart along their shortest way out, which is often the axis of
                the joint between them, along which nothing can move. Negative clearances h of shapes are therefore multiplied
                by 1 - c/s, with c the capsules' clearance, whose gradient leads out.
        """
        x = self.geometric(q)
        values = self._capsule_clearances(x)
        if self.hulls is not None:
            near = self._near_shapes(x, values, guided=guided)
            h = near.witnesses.distance - self.table[near.rows, 3]
            values[near.samples, near.rows] = np.where(h < 0.0, h * (1.0 - near.capsule / _GUIDE), h) if guided else h
        return values

    def _capsule_clearances(self, x: FloatArray) -> FloatArray:
        """All clearances as capsules see them; a lower bound where shapes decide."""
        values = np.empty((len(x), len(self)))
        self._run(x, np.empty((0, 0)), values, np.empty((0, 0)))
        return values

    def gradient(self, q: npt.ArrayLike, weights: FloatArray, *, guided: bool = False) -> FloatArray:
        """Gradient of `sum(weights * clearances)` by q, shape [n_samples, n_joints]; `guided` as for the clearances."""
        x = self.geometric(q)
        out = np.zeros_like(x)
        by_capsules = np.array(weights)
        near = None if self.hulls is None else self._near_shapes(x, guided=guided)
        if near is not None:
            w = weights[near.samples, near.rows]
            h = np.minimum(near.witnesses.distance - self.table[near.rows, 3], 0.0) if guided else np.zeros(len(w))
            by_capsules[near.samples, near.rows] = -w * h / _GUIDE
            w = np.where(h < 0.0, w * (1.0 - near.capsule / _GUIDE), w)
        self._run(x, by_capsules, np.empty((len(x), len(self))), out)
        if near is not None:
            self._pull_shapes(x, near, w, out)
        return out if self.robot.coupling is None else out @ self.robot.coupling

    @cached_property
    def _shapes_decide(self) -> npt.NDArray[np.bool_]:
        """Rows whose capsules are only a first look, shape [n_clearances]."""
        return np.asarray((self.table[:, 0] == kernels.CAPSULE_CAPSULE) & (self.table[:, 4] > 0.0))

    @cached_property
    def _last(self) -> dict[str, _Near]:
        """The last answer about shapes: a search asks for values and gradient at the same poses."""
        return {}

    def _near_shapes(self, x: FloatArray, values: FloatArray | None = None, *, guided: bool) -> _Near:
        """Where capsules overlap and shapes decide, and the nearest points of the shapes there."""
        assert self.hulls is not None
        last = self._last.get("near")
        if last is not None and np.array_equal(last.x, x):
            return last
        capsules = self._capsule_clearances(x) if values is None else values
        # Contiguous, as few or many: compiled code is compiled once more for every layout.
        where, rows = map(np.ascontiguousarray, np.nonzero((capsules < 0.0) & self._shapes_decide))
        R, p, _, _ = self._frames(x)
        pairs = self.table[rows, 1:3].astype(np.intp)
        enough = self.table[rows, 3] + (_SURE if guided else np.inf)
        found = self.hulls.nearest(
            R, p, where, pairs, rows=rows, enough=enough, directions=self._directions(len(x), guided=guided)
        )
        self._last["near"] = _Near(x=x.copy(), samples=where, rows=rows, capsule=capsules[where, rows], witnesses=found)
        return self._last["near"]

    def _directions(self, count: int, *, guided: bool) -> FloatArray:
        """Directions to begin with: a search asks about nearly the same poses again, others about poses one after the other."""
        if not guided:
            return np.zeros((1, len(self), 3))
        if count not in self._parting:
            self._parting[count] = np.zeros((count, len(self), 3))
        return self._parting[count]

    def forget(self) -> None:
        """Forgets where a search has been, so that the next one does not depend on it."""
        self._parting.clear()
        self._last.clear()

    @cached_property
    def _parting(self) -> dict[int, FloatArray]:
        """For a number of poses the directions that parted shapes when last asked about."""
        return {}

    def _frames(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Rotations and origins of the links, axes and origins of the joints, at geometric positions."""
        m, n = x.shape
        out = np.empty((m, n + 1, 3, 3)), np.empty((m, n + 1, 3)), np.empty((m, n, 3)), np.empty((m, n, 3))
        kernels.all_link_frames(x, self._arrays[0], *out)
        return out

    def _pull_shapes(self, x: FloatArray, near: _Near, weights: FloatArray, out: FloatArray) -> None:
        """Adds the gradients of the clearances that shapes decide."""
        used = weights != 0.0
        if not used.any():
            return
        _, _, axes, origins = self._frames(x)
        links = np.array([c.link for c in self.capsules], dtype=np.int64)
        kernels.pull_points(
            near.samples[used],
            links[self.table[near.rows[used], 1:3].astype(np.intp)],
            np.ascontiguousarray(near.witnesses.first[used]),
            np.ascontiguousarray(near.witnesses.second[used]),
            np.ascontiguousarray(near.witnesses.normal[used]),
            weights[used],
            axes,
            origins,
            self._arrays[1],
            out,
        )

    def is_free(self, q: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Whether each pose keeps every clearance, shape [n_samples]."""
        return np.asarray((self.clearances(q) >= 0.0).all(axis=1))

    def worst(self, q: npt.ArrayLike) -> tuple[float, str]:
        """The smallest clearance over these poses and what it is between; infinity when there is none."""
        if not len(self):
            return float("inf"), ""
        values = self.clearances(q)
        k = int(np.argmin(values.min(axis=0)))
        return float(values[:, k].min()), self.names[k]

    def contacts(self) -> Scene:
        """The same without regions: what a motion between measurements must keep."""
        return self.only(np.flatnonzero(self.table[:, 0] < kernels.FRAME_AXIS))

    def only(self, rows: npt.NDArray[np.intp]) -> Scene:
        """Some of the clearances alone."""
        return replace(self, table=self.table[rows], names=tuple(self.names[k] for k in rows))

    @cached_property
    def rates(self) -> FloatArray:
        """Largest change of each clearance per unit velocity of each geometric joint, shape [n_clearances, n_joints]."""
        return np.array([_clearance_rate(self, row) for row in self.table]).reshape(len(self), self.robot.n_joints)


def joint_rows(robot: Robot) -> FloatArray:
    """Per joint what `distance_kernels.link_frames` needs, shape [n_joints, 27]; the variable's constant goes before it."""
    rows = []
    for joint in robot.joints:
        k = joint.variable_index
        element = joint.transforms[k]
        before = product(joint.transforms[:k]) @ element.matrix(0.0)
        after = product(joint.transforms[k + 1 :])
        turns = 1.0 if joint.kind is JointKind.REVOLUTE else 0.0
        rows.append(
            [
                *before[:3, :3].ravel(),
                *before[:3, 3],
                element.motion.axis,
                element.sign,
                turns,
                *after[:3, :3].ravel(),
                *after[:3, 3],
            ]
        )
    return np.array(rows, dtype=np.float64)


def build_scene(robot: Robot, cell: Cell | None = None, *, self_collision: bool = True) -> Scene:
    """The clearances of an arm in a cell.

    Neighbouring links are left out; `pairs` settles the others.

    Args:
        robot: the arm; capsules stand in for shapes it does not have.
        cell: what surrounds it; an empty space by default.
        self_collision: whether the arm must keep clear of itself.
    """
    from armid.scene.pairs import settle_pairs

    space = cell or Cell()
    own, notes = link_capsules(robot)
    round_solids, boxes = _split_obstacles(space)
    capsules = own + round_solids
    pairs = _self_pairs(own, space.margin) if self_collision else []
    frames, links, cameras, region_rows = _region_parts(robot, space.regions)
    scene = Scene(
        robot=robot,
        capsules=capsules,
        boxes=np.array([b for _, b in boxes]).reshape(-1, 15),
        frames=frames,
        frame_links=links,
        cameras=cameras,
        table=np.array([row for row, _ in pairs]).reshape(-1, 7),
        names=tuple(name for _, name in pairs),
        notes=notes,
    )
    scene = settle_pairs(scene)
    others = _obstacle_pairs(own, len(own), round_solids, boxes, space) + region_rows
    table = np.vstack([scene.table, np.array([row for row, _ in others]).reshape(-1, 7)])
    names = scene.names + tuple(name for _, name in others)
    return replace(scene, table=table, names=names)


def _split_obstacles(cell: Cell) -> tuple[tuple[LinkCapsule, ...], list[tuple[str, list[float]]]]:
    """Round obstacles as capsules of the base, all others as boxes."""
    capsules: list[LinkCapsule] = []
    boxes: list[tuple[str, list[float]]] = []
    for obstacle in cell.obstacles:
        if isinstance(obstacle.geometry.shape, Box | Mesh):
            boxes.append((obstacle.name, _box_row(obstacle.geometry)))
        else:
            capsules.append(LinkCapsule(obstacle.name, 0, *enclosing_capsule(obstacle.geometry)))
    return tuple(capsules), boxes


def _box_row(geometry: Geometry) -> list[float]:
    """Rotation, centre and half edges; a mesh by the box around its vertices along its own axes."""
    T, shape = geometry.T_link_shape, geometry.shape
    if isinstance(shape, Box):
        centre, half = np.zeros(3), np.array(shape.size) / 2
    else:
        from armid.robot.meshes import vertices

        assert isinstance(shape, Mesh)
        points = vertices(shape)
        centre, half = (points.max(axis=0) + points.min(axis=0)) / 2, np.ptp(points, axis=0) / 2
    return [*T[:3, :3].ravel(), *(T[:3, :3] @ centre + T[:3, 3]), *half]


def _self_pairs(capsules: tuple[LinkCapsule, ...], margin: float) -> list[tuple[list[float], str]]:
    """Pairs of links that are not neighbours."""
    out = []
    for a, first in enumerate(capsules):
        for b, second in enumerate(capsules[:a]):
            if abs(first.link - second.link) > 1:
                out.append((_distance_row(kernels.CAPSULE_CAPSULE, a, b, margin), f"{second.name} and {first.name}"))
    return out


def _obstacle_pairs(
    own: tuple[LinkCapsule, ...],
    first: int,
    round_solids: tuple[LinkCapsule, ...],
    boxes: list[tuple[str, list[float]]],
    cell: Cell,
) -> list[tuple[list[float], str]]:
    """Every moving link against every obstacle and the floor."""
    out = []
    for a, capsule in enumerate(own):
        if capsule.link == 0:
            continue
        for k, solid in enumerate(round_solids):
            out.append(
                (_distance_row(kernels.CAPSULE_CAPSULE, a, first + k, cell.margin), f"{capsule.name} and {solid.name}")
            )
        for k, (name, _) in enumerate(boxes):
            out.append((_distance_row(kernels.CAPSULE_BOX, a, k, cell.margin), f"{capsule.name} and {name}"))
        if cell.floor is not None:
            out.append(
                (_distance_row(kernels.CAPSULE_FLOOR, a, 0, cell.floor + cell.margin), f"{capsule.name} and the floor")
            )
    return out


def _distance_row(kind: int, a: int, b: int, *numbers: float) -> list[float]:
    return [float(kind), float(a), float(b), *numbers, *([0.0] * (4 - len(numbers)))]


def _region_parts(
    robot: Robot, regions: tuple[Region, ...]
) -> tuple[FloatArray, tuple[int, ...], FloatArray, list[tuple[list[float], str]]]:
    """Frames, their links, cameras, and one row per bound."""
    frames, links, cameras, rows = [], [], [], []
    for k, region in enumerate(regions):
        frame = robot.frame(region.frame)
        T = frame.T_link_frame
        frames.append([*T[:3, :3].ravel(), *T[:3, 3]])
        links.append(frame.link)
        cameras.append(region.camera[:3, :3].T.ravel())
        rows += _region_rows(region, k, frame.name)
    return (
        np.array(frames).reshape(-1, 12),
        tuple(links),
        np.array(cameras).reshape(-1, 9),
        rows,
    )


def _region_rows(region: Region, k: int, name: str) -> list[tuple[list[float], str]]:
    """One row per bound of a region."""
    out: list[tuple[list[float], str]] = []
    if region.axis_distance is not None:
        out.append(
            (_distance_row(kernels.FRAME_AXIS, k, 0, region.axis_distance), f"distance of {name} from the base axis")
        )
    for axis, letter in enumerate("xyz"):
        unit = np.eye(3)[axis]
        if np.isfinite(region.lower[axis]):
            out.append(
                (_distance_row(kernels.FRAME_PLANE, k, 0, region.lower[axis], *unit), f"lowest {letter} of {name}")
            )
        if np.isfinite(region.upper[axis]):
            out.append(
                (_distance_row(kernels.FRAME_PLANE, k, 0, -region.upper[axis], *-unit), f"highest {letter} of {name}")
            )
    for kind, word, bounds in (
        (kernels.FRAME_ROLL, "roll", region.roll),
        (kernels.FRAME_PITCH, "pitch", region.pitch),
    ):
        if bounds is not None:
            out.append((_distance_row(kind, k, k, bounds[0], 1.0), f"lowest {word} of {name} in the camera"))
            out.append((_distance_row(kind, k, k, bounds[1], -1.0), f"highest {word} of {name} in the camera"))
    return out


def _clearance_rate(scene: Scene, entry: FloatArray) -> FloatArray:
    """Bound on |d clearance / d q_k| of one row for each geometric joint, shape [n_joints].

    A point at most r away from a revolute axis moves at most r per radian; r is the length of the chain of
    segments from the joint to the point. Joints before both bodies move both alike and do not count.
    """
    kind, a, b = (int(x) for x in entry[:3])
    n = scene.robot.n_joints
    if kind in (kernels.FRAME_ROLL, kernels.FRAME_PITCH):
        # Rolling is faster than turning by 1 / cos(pitch): 2 up to a pitch of 60 degrees, where no camera sees a target.
        return np.where(np.arange(n) < scene.frame_links[a], 2.0, 0.0)
    if kind in (kernels.FRAME_AXIS, kernels.FRAME_PLANE):
        far = float(np.linalg.norm(scene.frames[a, 9:12]))
        return _reach_bounds(scene.robot, scene.frame_links[a], far)
    first = scene.capsules[a]
    # A shape's own points reach as far as the surface of its capsule.
    surface = kind == kernels.CAPSULE_CAPSULE and bool(entry[4] > 0.0)
    bounds = _reach_bounds(scene.robot, first.link, _extent(first, surface=surface))
    if kind == kernels.CAPSULE_CAPSULE and scene.capsules[b].link > 0:
        second = scene.capsules[b]
        low = min(first.link, second.link)
        upper = first if first.link > second.link else second
        reach = _reach_bounds(scene.robot, upper.link, _extent(upper, surface=surface))
        bounds = np.where(np.arange(n) < low, 0.0, reach)
    return bounds


def _extent(capsule: LinkCapsule, *, surface: bool) -> float:
    """Farthest point of a capsule's segment, or of its surface, from its link's origin [m]."""
    far = max(float(np.linalg.norm(capsule.start)), float(np.linalg.norm(capsule.end)))
    return far + capsule.radius if surface else far


def _reach_bounds(robot: Robot, link: int, beyond: float) -> FloatArray:
    """For each joint before a link: how far a point `beyond` from the link's origin can be from the joint's axis.

    Shape [n_joints]; 1 for a prismatic joint, 0 for joints that do not move the link.
    """
    limits, _ = motion_limits(robot)
    out = np.zeros(robot.n_joints)
    length = beyond
    for k in range(link - 1, -1, -1):
        joint = robot.joints[k]
        i = joint.variable_index
        after = float(np.linalg.norm(product(joint.transforms[i + 1 :])[:3, 3]))
        before = float(np.linalg.norm(product(joint.transforms[:i])[:3, 3]))
        length += after
        if joint.kind is JointKind.REVOLUTE:
            out[k] = length
        else:
            out[k] = 1.0
            length += max(abs(limits.lower[k]), abs(limits.upper[k])) + abs(joint.transforms[i].value)
        length += before
    return out
