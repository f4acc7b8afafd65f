"""Which pairs of links are checked and by what: shapes, margins of their own, pairs that belong together."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from armid.answers import load_answer, write_answer
from armid.design.design import design_motion
from armid.motions.limits import InfeasibleError, motion_limits
from armid.notes import Severity
from armid.robot.geometry import Box, Geometry, Mesh
from armid.robot.load import load_robot
from armid.scene.cell import Cell
from armid.scene.pairs import _own_margin
from armid.scene.scene import Scene, build_scene


def dressed(shape, every: int = 1):
    """An iiwa of one shape per link."""
    robot = load_robot("iiwa14")
    links = tuple(
        replace(link, geometry=(Geometry(shape),) if k % every == 0 else ()) for k, link in enumerate(robot.links)
    )
    return replace(robot, links=links, geometry=(Geometry(shape),))


def by_shapes(scene: Scene) -> np.ndarray:
    return np.asarray(scene.table[:, 4] > 0.0)


def poses(robot, count: int, seed: int = 3) -> np.ndarray:
    limits = motion_limits(robot)[0]
    return np.random.default_rng(seed).uniform(limits.lower, limits.upper, size=(count, robot.n_joints))


def test_flat_shapes_decide_and_are_never_nearer_than_their_capsules():
    robot = dressed(Box((0.24, 0.24, 0.06)))
    scene = build_scene(robot)
    assert by_shapes(scene).any()
    q = poses(robot, 200)
    capsules = replace(scene, hulls=None).clearances(q)
    assert (scene.clearances(q) >= capsules - 1e-7).all()
    assert scene.is_free(q).mean() > replace(scene, hulls=None).is_free(q).mean()


def test_an_arm_none_of_whose_pairs_can_be_checked_is_warned_of():
    scene = build_scene(dressed(Box((100.0, 100.0, 100.0))))
    assert not len(scene)
    assert next((note.code, note.severity) for note in scene.notes) == ("contacts-unchecked", Severity.WARNING)
    assert "contacts-unchecked" not in [note.code for note in build_scene(dressed(Box((0.1, 0.1, 0.1)))).notes]


@pytest.mark.parametrize("guided", [False, True])
def test_gradients_and_rates_of_shapes_by_differences(guided):
    robot = dressed(Box((0.24, 0.2, 0.06)))
    scene = build_scene(robot)
    rng = np.random.default_rng(5)
    q = poses(robot, 60)
    weights = rng.normal(size=(60, len(scene))) * by_shapes(scene)
    if guided:  # a search turns on what is near alone; lower bounds stand for the rest
        weights = weights * (scene.clearances(q) < 0.001)
    gradient = scene.gradient(q, weights, guided=guided)
    h, differences = 1e-6, np.empty_like(q)
    for k in range(7):
        step = np.zeros(7)
        step[k] = h
        change = scene.clearances(q + step, guided=guided) - scene.clearances(q - step, guided=guided)
        differences[:, k] = (weights * change).sum(axis=1) / (2 * h)
        # No clearance changes faster than the bound the certificate rests on.
        smooth = (np.abs(change) < 0.01) & (not guided)
        assert (np.abs(change[:, by_shapes(scene)] / (2 * h)) <= scene.rates[by_shapes(scene), k] + 1e-3)[
            smooth[:, by_shapes(scene)]
        ].all()
    # Where nearest points jump from one corner to another within the step a difference means nothing: few poses.
    close = np.isclose(gradient, differences, atol=2e-3, rtol=2e-3).all(axis=1)
    assert close.mean() > 0.85


def test_scenes_with_shapes_travel_between_processes():
    scene = build_scene(dressed(Box((0.24, 0.2, 0.06))))
    again = pickle.loads(pickle.dumps(scene))
    q = poses(scene.robot, 20)
    np.testing.assert_allclose(again.clearances(q), scene.clearances(q), atol=1e-9)


def test_scenes_with_shapes_are_kept_and_found_again(tmp_path):
    scene = build_scene(dressed(Box((0.24, 0.2, 0.06))))
    write_answer(scene, tmp_path)
    again = load_answer(tmp_path)
    q = poses(scene.robot, 20)
    np.testing.assert_array_equal(again.clearances(q), scene.clearances(q))


def test_a_search_that_forgets_repeats_exactly():
    robot = dressed(Box((0.24, 0.2, 0.06)))
    scene = build_scene(robot)
    q = poses(robot, 40)
    first = scene.clearances(q, guided=True)
    scene.clearances(q + 0.3, guided=True)
    scene.forget()
    np.testing.assert_array_equal(scene.clearances(q, guided=True), first)
    # Without a search nothing is remembered at all.
    exact = scene.clearances(q[:20])
    scene.clearances(q[20:])
    np.testing.assert_array_equal(scene.clearances(q[:20]), exact)


def slabs(gap: float, tilt: float = 0.02):
    """Base and link 2 carry slabs that turn about the common z axis `gap` apart when joint 2 stands still; it can `tilt`."""
    robot = load_robot("iiwa14")
    limits = robot.joints[1].limits
    still = replace(robot.joints[1], limits=replace(limits, lower=-tilt, upper=tilt))
    joints = (robot.joints[0], still, *robot.joints[2:])
    low, high = np.eye(4), np.eye(4)
    middle = build_middle(robot)
    low[2, 3] = middle[2, 3] - gap / 2 - 0.02
    high[2, 3] = middle[2, 3] + gap / 2 + 0.02
    box = Box((0.1, 0.1, 0.04))
    links = tuple(replace(link, geometry=()) for link in robot.links)
    T_link2 = np.linalg.inv(middle) @ high
    links = (links[0], replace(links[1], geometry=(Geometry(box, T_link2),)), *links[2:])
    return replace(robot, joints=joints, links=links, geometry=(Geometry(box, low),))


def build_middle(robot) -> np.ndarray:
    """Pose of link 2 with all joints at zero."""
    from armid.kernels.kinematics import forward_kinematics

    return forward_kinematics(robot, np.zeros((1, 7)), robot.link_names[1])[0]


def test_a_pair_that_is_always_nearer_than_the_margin_gets_its_own():
    robot = slabs(0.010)
    scene = build_scene(robot)
    assert [note.code for note in scene.notes] == ["margin-reduced"]
    assert scene.table[0, 3] == pytest.approx(0.005, abs=0.001)
    assert scene.is_free(poses(robot, 200)).all()
    # Far enough apart, the common margin stays.
    assert build_scene(slabs(0.05)).notes == ()
    assert build_scene(slabs(0.05)).table[0, 3] == 0.02


def test_a_pair_that_is_never_more_than_a_hair_beyond_the_margin_gets_its_own():
    """A motion would have to keep the hair exactly, all the time, whatever it does elsewhere."""
    robot = slabs(0.0202, tilt=1e-4)
    scene = build_scene(robot)
    assert [note.code for note in scene.notes] == ["margin-reduced"]
    assert scene.clearances(poses(robot, 50)).min() > 0.005


def test_a_pair_that_comes_within_a_hair_of_touching_is_still_kept_apart():
    distance = np.concatenate([np.full(30, 2e-5), np.full(70, 0.0202)])
    assert _own_margin(distance, 0.02) == pytest.approx(0.0101)
    assert _own_margin(distance + 0.002, 0.02) is None
    assert _own_margin(np.full(100, 0.0101), 0.02) == pytest.approx(0.00505)


def test_a_pair_that_never_touches_takes_no_poses_from_the_joints_that_keep_it_apart():
    """Tilted, the slabs come nearer than half of the distance they keep in a quarter of the poses, and never touch."""
    robot = slabs(0.010, tilt=0.12)
    scene = build_scene(robot)
    assert [note.code for note in scene.notes] == ["margin-reduced"]
    assert 0.0 < scene.table[0, 3] < 0.0035
    assert scene.is_free(poses(robot, 200)).all()


def test_a_pair_that_always_overlaps_is_left_out_and_said():
    scene = build_scene(slabs(-0.02))
    assert [note.code for note in scene.notes] == ["contact-ignored"]
    assert scene.left_out == {(0, 2)}
    assert len(scene) == 0


def test_nothing_free_is_said_at_once_with_the_pair_the_distance_and_the_option():
    robot = load_robot("iiwa14")
    with pytest.raises(
        InfeasibleError, match=r"none of 20000 random poses is free.*m at best.*--clearance-m"
    ) as caught:
        design_motion(robot, cell=Cell(floor=3.0), seconds=1000.0, workers=1)
    assert "more time would not help" in str(caught.value)
    assert "the floor" in str(caught.value)


def test_a_limit_that_cannot_hold_the_arm_is_said_at_once():
    robot = load_robot("iiwa14")
    weak = replace(robot.joints[1], limits=replace(robot.joints[1].limits, torque=0.01))
    heavy = replace(robot, joints=(robot.joints[0], weak, *robot.joints[2:]))
    with pytest.raises(InfeasibleError, match=r"can be held: .* needs .* % of its torque limit"):
        design_motion(heavy, seconds=1000.0, workers=1)


def test_an_arm_that_can_hold_only_poses_in_balance_is_said_at_once():
    robot = load_robot("iiwa14")
    weak = tuple(
        replace(joint, limits=replace(joint.limits, torque=joint.limits.torque / share))
        for joint, share in zip(robot.joints, (1, 40, 1, 40, 1, 1, 1), strict=True)
    )
    with pytest.raises(InfeasibleError, match=r"% of the free poses can be held.*--max-torque"):
        design_motion(replace(robot, joints=weak), seconds=1000.0, workers=1)


def test_a_flat_mesh_has_a_hull(tmp_path):
    path = tmp_path / "plate.obj"
    path.write_text("v 0 0 0\nv 0.1 0 0\nv 0 0.1 0\nv 0.1 0.1 0\n")
    scene = build_scene(dressed(Mesh(str(path))))
    assert np.isfinite(scene.clearances(poses(scene.robot, 10))).all()
