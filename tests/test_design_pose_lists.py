"""Poses of arms that describe little, and poses from a user's own list."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.design.pose_list import read_pose_list
from armid.design.pose_pool import pose_limits, pose_places, without_doubtful_pairs
from armid.design.pose_refine import refined_poses
from armid.design.pose_selection import Pool, exchange, tabu_search
from armid.design.poses import PoseMethod, PoseSettings, Purpose, choose_poses, design_poses
from armid.errors import InputError
from armid.identifiability.smooth import Merit, SmoothCriterion
from armid.kernels.kinematics import forward_kinematics
from armid.motions.limits import motion_limits
from armid.robot.load import load_robot
from armid.robot.robot import Limits
from armid.scene.cell import cell_of, parse_cell
from armid.scene.scene import build_scene

QUICK = PoseSettings(pool=(1500,), starts=1, tabu_steps=60, transitions=False)


def bare(name: str):
    """An arm of the catalogue that describes neither shapes nor limits."""
    robot = load_robot(name)
    return replace(
        robot,
        geometry=(),
        links=tuple(replace(link, geometry=()) for link in robot.links),
        joints=tuple(replace(joint, limits=Limits()) for joint in robot.joints),
    )


@pytest.mark.parametrize("name", ["ur10e", "panda", "tx40"])
def test_an_arm_without_shapes_or_limits_has_poses_and_what_was_assumed_is_said(name):
    robot = bare(name)
    settings = replace(QUICK, count=20, method=PoseMethod.EXCHANGE)
    found = design_poses(robot, Purpose.GRAVITY, settings, seed=1)
    assert len(found.poses) == 20
    assert np.abs(found.poses).max() <= np.pi
    note = next(note for note in found.notes if note.code == "limit-assumed")
    assert all(joint in note.message for joint in robot.joint_names)
    assert "-3.14 to 3.14 rad is assumed" in note.message
    assert "--limits-file" in note.message
    assert any(note.code == "geometry-assumed" for note in found.notes)


def test_limits_that_are_stated_are_kept_and_not_called_assumed(tmp_path):
    path = tmp_path / "limits.yaml"
    path.write_text("format: armid-limits/1\nall: {lower: -1.0, upper: 1.5}\n")
    found = choose_poses(
        bare("ur10e"), "gravity", limits_file=path, pool=1500, starts=1, method="exchange", transitions=False
    )
    assert found.poses.min() >= -1.0
    assert found.poses.max() <= 1.5
    assert not any(note.code == "limit-assumed" for note in found.notes)


def test_one_joint_without_limits_is_named_alone():
    robot = load_robot("panda")
    joints = list(robot.joints)
    joints[2] = replace(joints[2], limits=replace(joints[2].limits, lower=-np.inf, upper=np.inf))
    limits, notes = pose_limits(replace(robot, joints=tuple(joints)))
    assert (limits.lower[2], limits.upper[2]) == (-np.pi, np.pi)
    np.testing.assert_array_equal(np.delete(limits.lower, 2), np.delete(robot.limit("lower"), 2))
    (note,) = notes
    assert "joint3:" in note.message
    assert "joint4" not in note.message


def test_stand_ins_that_leave_no_room_are_not_checked_and_that_is_said():
    """The bodies of an arm five times as thick as usual touch everywhere, yet nobody knows them."""
    scene = build_scene(bare("ur10e"), parse_cell("{format: armid-cell/1, floor: -9.0}"))
    fat = replace(scene, capsules=tuple(replace(c, radius=5.0 * c.radius) if c.assumed else c for c in scene.capsules))
    limits = motion_limits(scene.robot)[0]
    q = np.random.default_rng(0).uniform(limits.lower, limits.upper, size=(1000, 6))
    only_links = replace(fat, table=fat.table[:-5], names=fat.names[:-5])
    assert all("the floor" in name for name in fat.names[-5:])
    assert only_links.is_free(q).mean() < 0.05
    wider = without_doubtful_pairs(fat, q)
    assert wider.names[-5:] == fat.names[-5:], "the floor is real"
    assert len(wider) < len(fat)
    assert wider.notes[-1].code == "contact-unknown"
    without_floor = without_doubtful_pairs(only_links, q)
    assert without_floor.is_free(q).mean() >= 0.05
    assert without_doubtful_pairs(scene, q) is scene, "where there is room nothing is left out"


def test_described_shapes_are_never_left_out():
    robot = load_robot("ur10e")
    scene = build_scene(robot)
    fat = replace(scene, capsules=tuple(replace(c, radius=5.0 * c.radius) for c in scene.capsules), hulls=None)
    q = np.random.default_rng(0).uniform(-3, 3, size=(300, 6))
    assert without_doubtful_pairs(fat, q) is fat


def same(poses, robot):
    limits = motion_limits(robot)[0]
    turns = np.ones(robot.n_joints, dtype=bool)
    places = pose_places(poses, limits, turns)
    close = (np.abs(places[:, None] - places) < 1.0).all(axis=2)
    return np.argwhere(np.triu(close, 1))


@pytest.mark.parametrize("count", [24, 60])
def test_no_pose_is_chosen_twice(count):
    """The optimal design repeats its best poses; whole turns of a UR are the same pose as well."""
    robot = load_robot("ur10e")
    settings = replace(QUICK, count=count, method=PoseMethod.EXCHANGE)
    found = design_poses(robot, Purpose.GRAVITY, settings, seed=2)
    assert len(found.poses) == count
    assert len(same(found.poses, robot)) == 0


def test_whole_turns_are_the_same_pose():
    robot = load_robot("ur10e")
    q = np.array([[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]])
    turned = q + 2.0 * np.pi * np.array([[1, 0, 0, -1, 0, 0]])
    assert len(same(np.vstack([q, turned]), robot)) == 1
    assert len(same(np.vstack([q, q + 0.1]), robot)) == 0


@pytest.mark.parametrize("search", ["exchange", "tabu"])
def test_searches_keep_candidates_distinct(search):
    rng = np.random.default_rng(4)
    blocks = rng.normal(size=(40, 2, 5))
    blocks[:3] *= 30.0
    places = np.arange(40.0)[:, None]
    places[1] = 0.2
    pool = Pool(blocks, np.zeros(40, dtype=np.intp), (8,), places)
    merit = Merit(SmoothCriterion.LOG_DET)
    start = pool.random(rng)
    chosen = (
        exchange(pool, start, merit)[0]
        if search == "exchange"
        else tabu_search(pool, start, merit, iterations=200, tenure=3, rng=rng)[0]
    )
    assert len(set(chosen.tolist())) == 8
    assert not {0, 1} <= set(chosen.tolist()), "0 and 1 are the same pose"
    repeated = exchange(Pool(blocks, pool.groups, (8,)), start, merit)[0]
    assert len(set(repeated.tolist())) < 8, "without places the best would be repeated"


def test_refinement_takes_back_what_would_coincide():
    from armid.identifiability.structure import structural_base
    from armid.kernels.evaluate import Restricted
    from armid.rows.gravity import GravityRows

    robot = load_robot("cmu-dd-arm2")
    source = GravityRows(robot)
    rows = Restricted(source, tuple(int(i) for i in structural_base(source).independent))
    limits = motion_limits(robot)[0]
    scene = replace(build_scene(robot), table=np.zeros((0, 7)), names=(), hulls=None)
    poses = np.random.default_rng(3).uniform(limits.lower, limits.upper, size=(25, 3))
    turns = np.ones(3, dtype=bool)

    def moved(places):
        return refined_poses(
            rows, poses, np.ones((25, 3)), Merit(SmoothCriterion.CONDITION, 8.0), limits, scene, places=places
        )

    assert len(same(poses, robot)) == 0
    assert len(same(moved(lambda q: pose_places(q, limits, turns)), robot)) == 0


def pose_file(path, robot, q, *, titles=None, mark=",", decimal="."):
    head = mark.join(titles or robot.joint_names)
    lines = [mark.join(f"{x:.6f}".replace(".", decimal) for x in row) for row in q]
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


def listed_poses(robot, count=80, seed=5):
    limits = motion_limits(robot)[0]
    return np.random.default_rng(seed).uniform(limits.lower, limits.upper, size=(count, robot.n_joints))


def test_poses_are_chosen_from_the_users_own_list(tmp_path):
    robot = load_robot("iiwa14")
    q = listed_poses(robot)
    q[7] = q[3]
    q[11, 0] = 9.0
    path = pose_file(tmp_path / "own.csv", robot, q)
    found = choose_poses(robot, "calibration", count=20, from_file=path, starts=1, transitions=False)
    distance = np.abs(found.poses[:, None] - q).max(axis=2).min(axis=1)
    assert distance.max() < 1e-6
    assert len(np.unique(found.poses, axis=0)) == 20
    notes = " ".join(note.message for note in found.notes if note.code == "poses-left-out")
    assert "outside the limits: line 13" in notes
    assert "the same as an earlier one: line 9" in notes
    assert found.condition_number < found.random_condition_numbers[0]
    assert [i.role for i in found.provenance.inputs] == ["robot", "poses"]


@pytest.mark.parametrize(
    ("titles", "mark", "decimal", "factor"),
    [
        ([f"q{k}" for k in range(1, 8)], ",", ".", 1.0),
        ([f"Q{k}_deg" for k in range(1, 8)], ";", ",", 180 / np.pi),
        ([f"q{k} [deg]" for k in range(1, 8)], "\t", ".", 180 / np.pi),
    ],
)
def test_lists_are_read_by_name_number_and_unit(titles, mark, decimal, factor, tmp_path):
    robot = load_robot("iiwa14")
    q = listed_poses(robot, 5)
    path = pose_file(tmp_path / "own.csv", robot, factor * q, titles=titles, mark=mark, decimal=decimal)
    np.testing.assert_allclose(read_pose_list(path, robot).poses, q, atol=1e-5)


def test_bad_lists_are_named(tmp_path):
    robot = load_robot("iiwa14")
    q = listed_poses(robot, 5)
    path = pose_file(tmp_path / "a.csv", robot, q, titles=["a", "b", "c", "d", "e", "f", "g"])
    with pytest.raises(InputError, match=r"a\.csv: columns a, b.*one for each joint: .*or q1 to q7"):
        read_pose_list(path, robot)
    path = pose_file(tmp_path / "b.csv", robot, q)
    path.write_text(path.read_text().replace(f"{q[1, 2]:.6f}", "n/a"))
    with pytest.raises(InputError, match=r"b\.csv, line 3: .* is 'n/a'.*finite number"):
        read_pose_list(path, robot)
    path = pose_file(tmp_path / "c.csv", robot, q)
    with pytest.raises(InputError, match=r"c\.csv: 5 poses that can be used, 20 are needed"):
        choose_poses(robot, "calibration", count=20, from_file=path)
    with pytest.raises(InputError, match="lists are for calibration and gravity"):
        choose_poses(robot, "axis-inertia", from_file=path)
    (tmp_path / "d.csv").write_text("")
    with pytest.raises(InputError, match=r"d\.csv: no poses"):
        read_pose_list(tmp_path / "d.csv", robot)


def test_the_choice_under_visibility_is_compared_with_random_draws_under_the_same():
    robot = load_robot("lwr4plus")
    settings = replace(QUICK, frame="led_fixture", pool=None, method=PoseMethod.EXCHANGE)
    cell = cell_of("lwr4plus-tracker")
    found = design_poses(robot, Purpose.CALIBRATION, settings, cell=cell, seed=3)
    assert len(found.random_condition_numbers) == 50
    assert found.initial_condition_number == pytest.approx(np.median(found.random_condition_numbers))
    gain = next(check for check in found.checks if check.code == "better-than-random")
    assert gain.passed
    assert gain.value > 1.1
    assert "best of 50 random draws under the same limits and visibility" in gain.message
    T = forward_kinematics(robot, found.poses, "led_fixture")
    assert (T[:, 2, 3] >= -0.1 - 1e-9).all()
    worse = replace(found, condition_number=2.0 * found.random_condition_numbers[0])
    gain = next(check for check in worse.checks if check.code == "better-than-random")
    assert not gain.passed
    assert "nothing better was found" in gain.message


def test_degrees_without_a_unit_are_refused(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("q1,q2,q3,q4,q5,q6\n10,20,30,40,50,60\n")
    with pytest.raises(InputError, match="degrees are titled"):
        read_pose_list(path, load_robot("ur10e"))
