"""Paths: splines, eased parameters, Fourier series, tool lines and arcs, and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armid.errors import ArmidError, InputError
from armid.kernels.kinematics import forward_kinematics
from armid.motions.fourier import FourierTrajectory
from armid.motions.spline import SplineTrajectory
from armid.motions.trajectory_files import save_trajectory
from armid.planning.errors import SingularPathError, UnreachableError
from armid.planning.path import EasedPath, SplinePath, TrajectoryPath, in_joint_order, regular_grid
from armid.planning.path_files import load_path, parse_path
from armid.planning.tool_path import Arc, ToolLine, tool_path
from armid.robot import load_robot

NAMES = ("a", "b")
POINTS = np.array([[0.0, 0.0], [1.0, 0.5], [1.5, -0.5], [0.5, -1.0]])
IIWA_START = np.array([0.0, 0.5, 0.0, -1.4, 0.0, 1.0, 0.0])


def differentiated(path: object, theta: np.ndarray, order: int, h: float = 1e-4) -> np.ndarray:
    ahead, behind = path.derivatives(theta + h)[order - 1], path.derivatives(theta - h)[order - 1]  # type: ignore[attr-defined]
    return (ahead - behind) / (2 * h)


def test_spline_goes_through_its_waypoints() -> None:
    path = SplinePath(NAMES, POINTS)
    assert np.allclose(path.derivatives(path.knots)[0], POINTS, atol=1e-12)
    assert path.length == pytest.approx(np.linalg.norm(np.diff(POINTS, axis=0), axis=1).sum())


def test_two_waypoints_are_a_straight_line() -> None:
    path = SplinePath(NAMES, POINTS[:2])
    theta = np.linspace(0.0, path.length, 20)
    q, first, second, third = path.derivatives(theta)
    assert np.allclose(q, np.outer(theta / path.length, POINTS[1]), atol=1e-12)
    assert np.allclose(np.linalg.norm(first, axis=1), 1.0)
    assert np.allclose(second, 0.0, atol=1e-9)
    assert np.allclose(third, 0.0, atol=1e-8)


@pytest.mark.parametrize("kind", ["spline", "eased", "fourier"])
def test_derivatives_by_finite_differences(kind: str) -> None:
    spline = SplinePath(NAMES, POINTS)
    rng = np.random.default_rng(0)
    fourier = TrajectoryPath(FourierTrajectory(NAMES, 2.0, rng.normal(size=2), *rng.normal(size=(2, 2, 3))))
    path = {"spline": spline, "eased": EasedPath(spline), "fourier": fourier}[kind]
    theta = np.linspace(0.02, 0.98, 41) * path.length
    for order in (1, 2, 3):
        exact = path.derivatives(theta)[order]
        assert np.allclose(exact, differentiated(path, theta, order), atol=2e-4 * np.abs(exact).max()), order


def test_eased_path_starts_and_ends_at_rest_with_zero_acceleration() -> None:
    path = EasedPath(SplinePath(NAMES, POINTS))
    _, first, second, third = path.derivatives(np.array([0.0, 1.0]))
    assert np.allclose(first, 0.0)
    assert np.allclose(second, 0.0)
    assert np.abs(third).max() > 1.0
    assert np.allclose(path.derivatives([0.0, 1.0])[0], POINTS[[0, -1]], atol=1e-12)
    assert (np.diff(path.inner(np.linspace(0, 1, 500))[0]) > 0.0).all()


def test_columns_are_matched_by_name() -> None:
    path = in_joint_order(SplinePath(NAMES, POINTS), ("b", "a"))
    assert np.allclose(path.derivatives(0.0)[0][0], POINTS[0, ::-1])
    assert np.allclose(path.derivatives(path.length)[0][0], POINTS[-1, ::-1])
    with pytest.raises(InputError, match="the arm has a, c"):
        in_joint_order(SplinePath(NAMES, POINTS), ("a", "c"))


def test_repeated_waypoints_are_named() -> None:
    with pytest.raises(SingularPathError, match="waypoints 2 and 3"):
        SplinePath(NAMES, POINTS[[0, 1, 1, 2]])
    with pytest.raises(InputError, match="at least two"):
        SplinePath(NAMES, POINTS[:1])


def test_a_turn_on_the_spot_is_a_singular_parameterisation() -> None:
    path = SplinePath(("a",), np.array([[0.0], [1.0], [0.2]]))
    theta = np.linspace(0.0, path.length, 400)
    with pytest.raises(SingularPathError, match=r"from waypoint (1 to 2|2 to 3), 5\d\.\d % of the path.*singular"):
        regular_grid(path, theta)


@pytest.mark.parametrize("points", [50, 300, 1000, 5000])
def test_a_tight_turn_is_regular_on_any_grid(points: int) -> None:
    """A hairpin that a coarse grid steps over: its points are added there, and nowhere else."""
    path = SplinePath(("a", "b"), np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.004], [0.0, 0.004]]))
    given = np.linspace(0.0, path.length, points)
    grid = regular_grid(path, given)
    slope = path.derivatives(grid)[1]
    assert (np.einsum("ij,ij->i", slope[:-1], slope[1:]) >= 0.0).all()
    assert (np.diff(grid) > 0.0).all()
    assert np.isin(given, grid).all()
    assert len(grid) <= points + 60


@pytest.mark.parametrize("points", [50, 300, 301, 1000])
def test_a_turn_on_the_spot_is_found_on_any_grid(points: int) -> None:
    path = SplinePath(("a", "b"), np.array([[0.0, 0.0], [1.0, 0.0], [0.2, 0.0]]))
    with pytest.raises(SingularPathError):
        regular_grid(path, np.linspace(0.0, path.length, points))


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("iiwa14", IIWA_START),
        ("panda", np.array([0, -0.3, 0, -1.8, 0, 1.6, 0.7])),
        ("ur10e", np.array([0.2, -1.2, 1.6, -1.0, -1.4, 0.3])),
    ],
)
def test_tool_follows_a_line_between_the_waypoints_too(name: str, start: np.ndarray) -> None:
    robot = load_robot(name)
    T = forward_kinematics(robot, start)[0]
    end = T.copy()
    end[:3, 3] += [-0.15, 0.2, 0.1]
    path = tool_path(robot, start, ToolLine(T, end))
    theta = np.linspace(0.0, path.length, 700)
    poses = forward_kinematics(robot, path.derivatives(theta)[0])
    direction = (end - T)[:3, 3] / np.linalg.norm((end - T)[:3, 3])
    away = poses[:, :3, 3] - T[:3, 3]
    off = away - np.outer(away @ direction, direction)
    assert np.abs(off).max() < 2e-6
    assert np.abs(poses[:, :3, :3] - T[:3, :3]).max() < 1e-5
    assert np.allclose(path.waypoints[0], start, atol=1e-9)
    assert np.allclose(poses[-1], end, atol=1e-7)


def test_tool_follows_an_arc() -> None:
    robot = load_robot("iiwa14")
    T = forward_kinematics(robot, IIWA_START)[0]
    centre = T[:3, 3] + [-0.1, 0.0, 0.0]
    via, end = T.copy(), T.copy()
    via[:3, 3], end[:3, 3] = centre + np.array([0.0, 0.1, 0.0]), centre + np.array([-0.1, 0.0, 0.0])
    path = tool_path(robot, IIWA_START, Arc(T, via[:3, 3], end))
    places = forward_kinematics(robot, path.derivatives(np.linspace(0.0, path.length, 500))[0])[:, :3, 3]
    assert np.abs(np.linalg.norm(places - centre, axis=1) - 0.1).max() < 2e-6
    assert np.abs(places[:, 2] - T[2, 3]).max() < 2e-6
    assert places[:, 1].max() == pytest.approx(centre[1] + 0.1, abs=1e-4)


def test_arm_of_three_joints_follows_with_its_position_alone() -> None:
    robot = load_robot("cmu-dd-arm2")
    start = np.array([0.2, 1.4, 0.5])
    T = forward_kinematics(robot, start)[0]
    end = T.copy()
    end[:3, 3] += [-0.03, 0.02, 0.01]
    path = tool_path(robot, start, ToolLine(T, end), orientation=False)
    assert np.allclose(forward_kinematics(robot, path.waypoints[-1])[0][:3, 3], end[:3, 3], atol=1e-7)


def test_out_of_reach_says_where() -> None:
    robot = load_robot("iiwa14")
    T = forward_kinematics(robot, IIWA_START)[0]
    end = T.copy()
    end[:3, 3] += [3.0, 0.0, 0.0]
    with pytest.raises(UnreachableError, match=r"\d+ % of the tool path: no joint positions reach"):
        tool_path(robot, IIWA_START, ToolLine(T, end))
    with pytest.raises(InputError, match="lie on a line"):
        Arc(T, T[:3, 3] + 0.5 * (end - T)[:3, 3], end).poses(0.5)


def test_waypoints_from_a_table_by_name_and_by_number(tmp_path: Path) -> None:
    robot = load_robot("cylindrical")
    names = robot.joint_names
    points = np.array([[0.0, 0.5, 0.3], [0.4, 0.6, 0.4], [0.8, 0.5, 0.2]])
    shuffled = tmp_path / "named.csv"
    shuffled.write_text(
        f"time,{names[2]},{names[0]},{names[1]}\n" + "".join(f"{k},{c},{a},{b}\n" for k, (a, b, c) in enumerate(points))
    )
    numbered = tmp_path / "numbered.csv"
    numbered.write_text("q1,q2,q3\n" + "".join(f"{a},{b},{c}\n" for a, b, c in points))
    for file in (shuffled, numbered):
        path = load_path(file, robot)
        assert isinstance(path, SplinePath)
        assert np.allclose(path.waypoints, points)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty file"),
        ("q1,q2\n0,0\n1,1\n", "header: misses q3"),
        ("q1,q2,q3,q4\n0,0,0,0\n", "header: has q4"),
        ("q1,q2,q3\n0,0\n", "row 2: 2 values"),
        ("q1,q2,q3\n0,0,0\n1,nan,0\n", "row 3, column q2: 'nan' is not a finite number"),
        ("q1,q2,q3\n0,0,0\n1,x,0\n", "not a finite number"),
        ("q1,q2,q3\n0,0,0\n", "at least two"),
    ],
)
def test_bad_tables_are_named(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises(ArmidError, match=problem):
        load_path(file, load_robot("cylindrical"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("format: armid-path/2\nline: {by: [1, 0, 0]}", "armid-path/1"),
        ("format: armid-path/1", "exactly one"),
        ("format: armid-path/1\nline: {by: [0.1, 0, 0]}", "start"),
        ("format: armid-path/1\nstart: [0, 0.5, 0, -1.4, 0, 1, 0]\nline: {}", "one of them"),
        ("format: armid-path/1\nstart: [0, 0.5]\nline: {by: [0.1, 0, 0]}", "expected 7"),
        ("format: armid-path/1\nstart: [0, 0.5, 0, -1.4, 0, 1, 0]\narc: {to: [0.1, 0, 0]}", "'via' is missing"),
        ("format: armid-path/1\nlines: {by: [1, 0, 0]}", "did you mean 'line'"),
    ],
)
def test_bad_path_files_are_named(text: str, problem: str) -> None:
    with pytest.raises(ArmidError, match=problem):
        parse_path(text, "bad.yaml", load_robot("iiwa14"))


def test_path_files_of_tool_paths_and_waypoints(tmp_path: Path) -> None:
    robot = load_robot("iiwa14")
    T = forward_kinematics(robot, IIWA_START)[0]
    file = tmp_path / "line.yaml"
    start = ", ".join(str(x) for x in np.degrees(IIWA_START))
    file.write_text(f"format: armid-path/1\nstart_deg: [{start}]\nline: {{by: [0, 0.1, 0.05]}}\n")
    path = load_path(file, robot)
    ends = forward_kinematics(robot, path.derivatives([0.0, path.length])[0])
    assert np.allclose(ends[1, :3, 3] - T[:3, 3], [0.0, 0.1, 0.05], atol=1e-6)
    file.write_text("format: armid-path/1\nwaypoints_deg: [[0, 0, 0, 0, 0, 0, 0], [90, 0, 0, 0, 0, 0, 0]]\n")
    assert load_path(file, robot).length == pytest.approx(np.pi / 2)


def test_a_series_that_rests_at_its_ends_has_a_regular_path(tmp_path: Path) -> None:
    """An excitation starts and ends at rest: its time is a singular parameter there, the way it goes is not."""
    robot = load_robot("cylindrical")
    rng = np.random.default_rng(2)
    sine = 0.1 * np.outer(rng.normal(size=3), [2.0, -1.0])  # the slopes k s_k of the two harmonics cancel
    rest = FourierTrajectory(robot.joint_names, 4.0, np.zeros(3), sine, 0.1 * rng.normal(size=(3, 2)), repetitions=2)
    assert np.abs(rest.sample(0.0)[1]).max() < 1e-12
    path = load_path(save_trajectory(rest, tmp_path / "rest.json"), robot)
    theta = np.linspace(0.0, path.length, 400)
    q, _, _, _ = path.derivatives(theta)
    assert np.array_equal(regular_grid(path, theta), theta)
    dense = rest.sample(np.linspace(0.0, 4.0, 40_000))[0]
    assert max(np.abs(dense - row).max(axis=1).min() for row in q[::10]) < 1e-4
    np.testing.assert_allclose(q[[0, -1]], dense[[0, -1]], atol=1e-9)


def test_trajectories_lose_their_timing(tmp_path: Path) -> None:
    robot = load_robot("cylindrical")
    rng = np.random.default_rng(1)
    fourier = FourierTrajectory(robot.joint_names, 4.0, np.zeros(3), *(0.1 * rng.normal(size=(2, 3, 2))), repetitions=3)
    path = load_path(save_trajectory(fourier, tmp_path / "f.json"), robot)
    assert isinstance(path, TrajectoryPath)
    assert path.length == 4.0  # one period
    spline = SplineTrajectory(
        robot.joint_names, 5.0, np.array([[0, 0.2, 0.1], [0.5, 0.4, 0.2], [1.0, 0.3, 0.2], [1.5, 0.2, 0.3]])
    )
    traced = load_path(save_trajectory(spline, tmp_path / "s.json"), robot)
    theta = np.linspace(0.0, traced.length, 300)
    regular_grid(traced, theta)  # at rest at both ends, but the path is regular
    dense = spline.sample(np.linspace(0.0, 5.0, 20000))[0]
    gaps = [np.abs(dense - q).max(axis=1).min() for q in traced.derivatives(theta)[0][::20]]
    assert max(gaps) < 1e-3
    with pytest.raises(InputError, match="no such file"):
        load_path(tmp_path / "none.csv", robot)
    other = FourierTrajectory(("x", "y", "z"), 4.0, np.zeros(3), *np.ones((2, 3, 1)))
    with pytest.raises(InputError, match="moves x, y, z"):
        load_path(save_trajectory(other, tmp_path / "o.json"), robot)
