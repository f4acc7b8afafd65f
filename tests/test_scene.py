"""Clearances: against MuJoCo's geometry, finite differences, forward kinematics; cells and capsules."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from armid.errors import ArmidError, InputError
from armid.kernels.kinematics import forward_kinematics
from armid.robot import Robot
from armid.robot.elementary import Move as Move
from armid.robot.elementary import elementary_matrix, from_matrix, rpy
from armid.robot.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Sphere
from armid.robot.load import load_robot
from armid.robot.meshes import MeshError, vertices
from armid.robot.shapes import pose_along
from armid.scene import distance_kernels as kernels
from armid.scene.capsules import LinkCapsule, capsule_around, enclosing_capsule, link_capsules
from armid.scene.cell import Cell, Obstacle, Region, load_cell, parse_cell
from armid.scene.scene import Scene, build_scene, joint_rows
from support.chains import random_robot

CELL = """
format: armid-cell/1
margin: 0.03
floor: -0.4
obstacles:
  - {name: wall, box: {size: [0.2, 2, 2]}, xyz: [0.9, 0, 0], rpy_deg: [10, 0, 20]}
  - {name: post, cylinder: {radius: 0.1, length: 1}, xyz: [0, -0.7, 0.3]}
  - {name: ball, sphere: {radius: 0.2}, xyz: [-0.5, 0.4, 0.9]}
regions:
  - {axis_distance: 0.2, height: -0.3}
  - {inside: {min: [-1, -1, 0], max: [1, 1, 1.2]}}
  - {camera: {xyz: [2, 0, 1], rpy_deg: [10, 20, 30]}, roll_deg: [-80, 70], pitch_deg: [-45, 45]}
"""


def random_pose(rng: np.random.Generator) -> np.ndarray:
    T = np.eye(4)
    for motion in (Move.RX, Move.RY, Move.RZ):
        T = T @ elementary_matrix(motion, rng.uniform(-np.pi, np.pi))
    T[:3, 3] = rng.uniform(-0.8, 0.8, size=3)
    return T


def still_scene(capsules: list[LinkCapsule], boxes: list[list[float]], table: list[list[float]]) -> Scene:
    """Solids that do not move, to look at distances alone."""
    return Scene(
        robot=load_robot("cylindrical"),
        capsules=tuple(capsules),
        boxes=np.array(boxes).reshape(-1, 15),
        frames=np.zeros((0, 12)),
        frame_links=(),
        cameras=np.zeros((0, 9)),
        table=np.array(table).reshape(-1, 7),
        names=("pair",) * len(table),
    )


def mujoco_distance(first: tuple[str, np.ndarray, list[float]], second: tuple[str, np.ndarray, list[float]]) -> float:
    bodies = ""
    for name, T, size in (first, second):
        quaternion = np.empty(4)
        mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(T[:3, :3]).ravel())
        place = " ".join(map(str, T[:3, 3])), " ".join(map(str, quaternion))
        bodies += f'<geom type="{name}" pos="{place[0]}" quat="{place[1]}" size="{" ".join(map(str, size))}"/>'
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    return mujoco.mj_geomDistance(model, data, 0, 1, 10.0, None)


@pytest.mark.parametrize("seed", range(12))
def test_distances_agree_with_mujoco(seed):
    rng = np.random.default_rng(seed)
    A, B = random_pose(rng), random_pose(rng)
    (ra, rb), (la, lb) = rng.uniform(0.02, 0.1, 2), rng.uniform(0.1, 0.6, 2)
    half = rng.uniform(0.05, 0.3, 3)
    a, b = (
        LinkCapsule(name, 0, T[:3, 3] - T[:3, 2] * length / 2, T[:3, 3] + T[:3, 2] * length / 2, radius)
        for name, T, length, radius in (("a", A, la, ra), ("b", B, lb, rb))
    )
    box = [*B[:3, :3].ravel(), *B[:3, 3], *half]
    scene = still_scene(
        [a, b], [box], [[kernels.CAPSULE_CAPSULE, 0, 1, 0, 0, 0, 0], [kernels.CAPSULE_BOX, 0, 0, 0, 0, 0, 0]]
    )
    ours = scene.clearances(np.zeros((1, 3)))[0]
    assert ours[0] == pytest.approx(
        mujoco_distance(("capsule", A, [ra, la / 2]), ("capsule", B, [rb, lb / 2])), abs=1e-6
    )
    expected = mujoco_distance(("capsule", A, [ra, la / 2]), ("box", B, list(half)))
    if expected > 0.0:
        assert ours[1] == pytest.approx(expected, abs=1e-4)
    else:
        assert ours[1] <= 1e-4


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("coupled", [False, True])
def test_link_frames_are_forward_kinematics(seed, coupled):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 5, coupled)
    scene = still_scene([], [], [])
    q = rng.normal(size=(1, 5))
    geometric = replace(scene, robot=robot).geometric(q)[0]
    R, p, axes, origins = np.empty((6, 3, 3)), np.empty((6, 3)), np.empty((5, 3)), np.empty((5, 3))
    kernels.link_frames(geometric, joint_rows(robot), R, p, axes, origins)
    for k, name in enumerate(robot.link_names):
        T = forward_kinematics(robot, q, name)[0]
        np.testing.assert_allclose(R[k + 1], T[:3, :3], atol=1e-12)
        np.testing.assert_allclose(p[k + 1], T[:3, 3], atol=1e-12)


@pytest.mark.parametrize(("name", "seed"), [("iiwa14", 0), ("panda", 1), ("random with prismatic joints", 2)])
def test_gradients_and_rate_bounds(name, seed):
    # Parallel segments have no unique closest points, hence no gradient: no arm with links along the walls here.
    robot = load_robot(name) if seed < 2 else random_robot(np.random.default_rng(4), 5, coupled=False)
    scene = build_scene(robot, parse_cell(CELL))
    rng = np.random.default_rng(seed)
    q = rng.uniform(-1.0, 1.0, size=(40, robot.n_joints))
    h = 1e-6
    by_joint = np.stack(
        [(scene.clearances(q + h * e) - scene.clearances(q - h * e)) / (2 * h) for e in np.eye(robot.n_joints)], axis=2
    )
    weights = rng.normal(size=(40, len(scene)))
    expected = np.einsum("sc,scj->sj", weights, by_joint)
    np.testing.assert_allclose(scene.gradient(q, weights), expected, atol=1e-6)
    angles = np.isin(scene.table[:, 0], (kernels.FRAME_ROLL, kernels.FRAME_PITCH))
    slopes = np.abs(by_joint).max(axis=0)
    assert (slopes <= scene.rates + 1e-6)[~angles].all()


def test_regions_mean_what_they_say():
    robot = load_robot("iiwa14")
    camera = elementary_matrix(Move.RZ, 0.4) @ elementary_matrix(Move.RX, 0.3)
    region = Region(
        frame=None,
        axis_distance=0.3,
        lower=np.array([-np.inf, -np.inf, 0.1]),
        upper=np.array([0.5, np.inf, np.inf]),
        camera=camera,
        roll=(-1.0, 0.5),
        pitch=(-0.7, 0.8),
    )
    scene = build_scene(robot, Cell(regions=(region,)), self_collision=False)
    q = np.random.default_rng(3).uniform(-1.5, 1.5, size=(20, 7))
    T = forward_kinematics(robot, q)
    values = dict(zip(scene.names, scene.clearances(q).T, strict=True))
    tip = robot.tip.name
    np.testing.assert_allclose(values[f"distance of {tip} from the base axis"], np.hypot(T[:, 0, 3], T[:, 1, 3]) - 0.3)
    np.testing.assert_allclose(values[f"lowest z of {tip}"], T[:, 2, 3] - 0.1)
    np.testing.assert_allclose(values[f"highest x of {tip}"], 0.5 - T[:, 0, 3])
    seen = [rpy(camera[:3, :3].T @ one[:3, :3]) for one in T]
    np.testing.assert_allclose(values[f"lowest roll of {tip} in the camera"], [r + 1.0 for r, _, _ in seen], atol=1e-9)
    np.testing.assert_allclose(
        values[f"highest pitch of {tip} in the camera"], [0.8 - p for _, p, _ in seen], atol=1e-9
    )


def test_floor_and_obstacles_are_seen_by_every_moving_link():
    robot = load_robot("iiwa14")
    scene = build_scene(robot, parse_cell(CELL))
    for link in robot.link_names:
        assert any(name.startswith(f"{link} and wall") for name in scene.names)
    assert any(name.endswith("the floor") for name in scene.names)
    worst, where = scene.worst(np.zeros(7))
    assert worst == pytest.approx(scene.clearances(np.zeros(7)).min())
    assert where in scene.names


@pytest.mark.parametrize("seed", range(5))
def test_capsule_around_contains_its_points(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(60, 3)) * np.array([0.5, 0.1, 0.05]) @ random_pose(rng)[:3, :3].T
    start, end, radius = capsule_around(points)
    along = np.clip(((points - start) @ (end - start)) / max(float((end - start) @ (end - start)), 1e-12), 0.0, 1.0)
    away = np.linalg.norm(points - start - along[:, np.newaxis] * (end - start), axis=1)
    assert away.max() <= radius + 1e-9
    # Not much larger than the smallest ball, which is a capsule of length zero.
    assert radius <= np.linalg.norm(points - points.mean(axis=0), axis=1).max() + 1e-9


@pytest.mark.parametrize("shape", [Box((0.2, 0.1, 0.4)), Sphere(0.1), Cylinder(0.05, 0.3), Capsule(0.05, 0.3)])
def test_shapes_are_enclosed(shape):
    T = random_pose(np.random.default_rng(9))
    start, end, radius = enclosing_capsule(Geometry(shape, T))
    if isinstance(shape, Capsule | Cylinder):
        np.testing.assert_allclose(np.linalg.norm(end - start), 0.3)
    if isinstance(shape, Box):
        corner = (T @ np.array([0.1, 0.05, 0.2, 1.0]))[:3]
        s = np.clip((corner - start) @ (end - start) / max((end - start) @ (end - start), 1e-12), 0.0, 1.0)
        assert np.linalg.norm(corner - start - s * (end - start)) <= radius + 1e-9


def binary_stl(points: np.ndarray) -> bytes:
    facets = b"".join(struct.pack("<12fH", 0, 0, 0, *points[k : k + 3].ravel(), 0) for k in range(0, len(points), 3))
    return b"\0" * 80 + struct.pack("<I", len(points) // 3) + facets


def test_meshes_are_read_and_scaled(tmp_path: Path):
    points = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32).astype(float)
    (tmp_path / "a.stl").write_bytes(binary_stl(points))
    text = "solid x\n" + "".join(f"vertex {p[0]} {p[1]} {p[2]}\n" for p in points) + "endsolid x\n"
    (tmp_path / "b.stl").write_text(text)
    (tmp_path / "c.obj").write_text("# mesh\n" + "".join(f"v {p[0]} {p[1]} {p[2]}\n" for p in points))
    numbers = " ".join(str(x) for x in (points * 1000).ravel())
    (tmp_path / "d.dae").write_text(
        '<COLLADA><asset><unit meter="0.001"/></asset><library_geometries><geometry id="g"><mesh>'
        f'<source id="s"><float_array id="a" count="36">{numbers}</float_array></source>'
        '<vertices id="v"><input semantic="POSITION" source="#s"/></vertices></mesh></geometry></library_geometries></COLLADA>'
    )
    for name in "a.stl", "b.stl", "c.obj", "d.dae":
        found = vertices(Mesh(str(tmp_path / name), (2.0, 2.0, 2.0)))
        np.testing.assert_allclose(np.sort(found, axis=0), np.sort(2 * points, axis=0), atol=1e-6)


def test_missing_and_broken_meshes_are_named(tmp_path: Path):
    with pytest.raises(MeshError, match="not found"):
        vertices(Mesh(str(tmp_path / "gone.stl")))
    (tmp_path / "x.stl").write_text("nothing here")
    with pytest.raises(MeshError, match="vertices"):
        vertices(Mesh(str(tmp_path / "x.stl")))
    (tmp_path / "x.step").write_text("")
    with pytest.raises(MeshError, match="suffix"):
        vertices(Mesh(str(tmp_path / "x.step")))
    robot = load_robot("iiwa14")
    link = replace(robot.links[2], geometry=(Geometry(Mesh(str(tmp_path / "gone.stl"))),))
    capsules, notes = link_capsules(replace(robot, links=(*robot.links[:2], link, *robot.links[3:])))
    assert any(note.code == "mesh-missing" and "gone.stl" in note.message for note in notes)
    assert any(capsule.link == 3 for capsule in capsules), "the skeleton stands in for the missing mesh"


def test_an_arm_without_shapes_gets_a_skeleton_and_a_note():
    robot = random_robot(np.random.default_rng(1), 4)
    capsules, notes = link_capsules(robot)
    assert capsules
    assert [note.code for note in notes] == ["geometry-assumed"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("format: armid-cell/2", "armid-cell/2"),
        ("format: armid-cell/1\nmargin: -1", "negative"),
        ("format: armid-cell/1\nobstacle: []", "obstacle"),
        ("format: armid-cell/1\nobstacles: [{name: x}]", "shape"),
        ("format: armid-cell/1\nregions: [{frame: tip}]", "without a bound"),
        ("format: armid-cell/1\nregions: [{roll_deg: [30, -30]}]", "lower angle"),
        ("format: armid-cell/1\nregions: [{inside: {min: [0, 0, 0], max: [1, 0, 1]}}]", "min is not below max"),
    ],
)
def test_bad_cells_are_named(text, message):
    with pytest.raises(ArmidError, match=message):
        parse_cell(text)


def test_a_cell_that_is_not_there(tmp_path: Path):
    with pytest.raises(InputError, match="does not exist"):
        load_cell(tmp_path / "none.yaml")


def test_cells_that_come_along_are_readable():
    from armid.scene import cell as module

    folder = Path(module.__file__).parent / "cells"
    for path in folder.glob("*.yaml"):
        robot = load_robot(path.stem.removesuffix("-tracker").removesuffix("-excitation"))
        scene = build_scene(robot, load_cell(path))
        limits = robot.limit("lower"), robot.limit("upper")
        q = np.random.default_rng(0).uniform(*limits, size=(500, robot.n_joints))
        assert scene.is_free(q).any()


def test_obstacle_mesh_counts_as_its_box(tmp_path: Path):
    points = np.array([[x, y, z] for x in (0, 1) for y in (0, 2) for z in (0, 4)], dtype=float)
    (tmp_path / "m.obj").write_text("".join(f"v {p[0]} {p[1]} {p[2]}\n" for p in points))
    (tmp_path / "cell.yaml").write_text(
        "format: armid-cell/1\nobstacles: [{name: m, mesh: {path: m.obj, scale: [0.1, 0.1, 0.1]}}]"
    )
    scene = build_scene(load_robot("iiwa14"), load_cell(tmp_path / "cell.yaml"))
    np.testing.assert_allclose(scene.boxes[0, 9:], [0.05, 0.1, 0.2, 0.05, 0.1, 0.2])


def test_sphere_obstacle_is_a_capsule_without_length():
    place = np.eye(4)
    place[:3, 3] = [1.0, 0.0, 0.5]
    scene = build_scene(load_robot("iiwa14"), Cell(obstacles=(Obstacle("ball", Geometry(Sphere(0.1), place)),)))
    ball = scene.capsules[-1]
    np.testing.assert_allclose(ball.start, ball.end)
    assert ball.radius == 0.1


def test_robot_of_one_link_has_no_pairs():
    robot = load_robot("iiwa14")
    one = Robot(name="one", joints=robot.joints[:1], links=robot.links[:1])
    assert len(build_scene(one)) == 0
    assert build_scene(one).is_free(np.zeros((3, 1))).all()
    assert from_matrix(pose_along(np.zeros(3), np.array([0.0, 0.0, 1.0])))
