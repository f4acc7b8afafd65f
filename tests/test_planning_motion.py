"""Planned motions: limits hold, doubt costs time, and what cannot be planned is said with its place on the path."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armid.errors import InputError
from armid.kernels.kinematics import forward_kinematics
from armid.motions.fourier import FourierTrajectory
from armid.motions.trajectory_files import load_trajectory
from armid.parameters.effects import Effects
from armid.planning.constraints import planning_limits
from armid.planning.errors import CollisionError, HoldingError, OutsideLimitsError, SingularPathError
from armid.planning.fastest import fastest_motion
from armid.planning.model import TorqueModel, model_of_robot
from armid.planning.motion import Plan, PlanSettings
from armid.planning.path import SplinePath, TrajectoryPath
from armid.robot import Box, Geometry, Robot, load_robot
from armid.robot.robot import Limits
from armid.scene.cell import Cell, Obstacle
from armid.scene.scene import build_scene
from support.planar import planar_arm

WAYPOINTS = np.array([[-0.8, 0.3], [0.2, 1.0], [0.9, 0.2], [0.3, -0.8]])


def doubtful(robot: Robot, relative: float = 0.05) -> TorqueModel:
    """The robot's own model with independent relative doubt in every parameter."""
    model = model_of_robot(robot)
    return replace(model, covariance=np.diag((relative * model.values) ** 2))


def within(plan: Plan, robot: Robot, *, count: int = 6000) -> None:
    """Every limit at other instants than those planned with."""
    limits = planning_limits(robot)[0]
    t = np.linspace(0.0, plan.duration, count)
    q, qd, qdd = plan.trajectory.sample(t)
    slack = 1.0 + 2e-3  # between the instants that were checked
    assert (np.abs(qd) <= limits.velocity * slack).all()
    assert (np.abs(qdd) <= limits.acceleration * slack).all()
    assert (np.abs(plan.model.torque(q, qd, qdd)) <= limits.torque * slack).all()
    inside = slice(3, -3)
    assert (np.abs(plan.trajectory.jerk(t)[inside]) <= limits.jerk * slack * 1.02).all()


@pytest.mark.parametrize("name", ["panda", "ur10e", "cylindrical"])
def test_limits_hold_and_the_path_is_kept(name: str) -> None:
    robot = load_robot(name)
    lower, upper = np.maximum(robot.limit("lower"), -2.0), np.minimum(robot.limit("upper"), 2.0)
    rng = np.random.default_rng(7)
    path = SplinePath(
        robot.joint_names, 0.5 * (lower + upper) + 0.25 * (upper - lower) * rng.uniform(-1, 1, (4, robot.n_joints))
    )
    plan = fastest_motion(path, model_of_robot(robot), PlanSettings(points=400, jerk_points=250))
    within(plan, robot)
    assert max(plan.usage.worst().values()) == pytest.approx(1.0, abs=1e-3)  # something is used in full
    q, qd, _ = plan.trajectory.sample([0.0, plan.duration])
    assert np.allclose(q, path.waypoints[[0, -1]], atol=1e-9)
    assert np.allclose(qd, 0.0, atol=1e-6)
    # Derivatives belong together.
    t = np.linspace(0.1, 0.9, 50) * plan.duration
    h = 1e-6
    ahead, behind = plan.trajectory.sample(t + h), plan.trajectory.sample(t - h)
    _, qd, qdd = plan.trajectory.sample(t)
    assert np.allclose((ahead[0] - behind[0]) / (2 * h), qd, atol=1e-5 * np.abs(qd).max())
    assert np.allclose((ahead[1] - behind[1]) / (2 * h), qdd, atol=1e-3 * np.abs(qdd).max())


def test_closed_fourier_path() -> None:
    robot = planar_arm(jerk=300.0)
    fourier = FourierTrajectory(
        robot.joint_names, 5.0, np.array([0.2, 0.3]), np.array([[0.6], [0.1]]), np.array([[0.1], [0.7]])
    )
    plan = fastest_motion(TrajectoryPath(fourier), model_of_robot(robot), PlanSettings(points=500, jerk_points=300))
    q, _, _ = plan.trajectory.sample([0.0, plan.duration])
    assert np.allclose(q[0], q[1], atol=1e-9)
    within(plan, robot)


def test_friction_makes_a_difference() -> None:
    path = SplinePath(("j1", "j2"), WAYPOINTS)
    with_friction = fastest_motion(path, model_of_robot(planar_arm(torque=(60.0, 18.0))))
    rigid = model_of_robot(planar_arm(torque=(60.0, 18.0)), effects=Effects(rotor_inertia=True))
    without = fastest_motion(path, rigid)
    assert abs(with_friction.duration / without.duration - 1.0) > 0.01
    # The motion planned without friction asks for more than there is.
    q, qd, qdd = without.trajectory.sample(np.linspace(0.0, without.duration, 3000))
    assert (
        np.abs(with_friction.model.torque(q, qd, qdd)) / planar_arm(torque=(60.0, 18.0)).limit("torque")
    ).max() > 1.05


@pytest.mark.parametrize("jerk", [np.inf, 400.0])
def test_doubt_costs_time_and_buys_probability(jerk: float) -> None:
    robot = planar_arm(torque=(60.0, 22.0), jerk=jerk)
    path = SplinePath(robot.joint_names, WAYPOINTS)
    model = doubtful(robot, 0.03)
    settings = PlanSettings(points=400, jerk_points=200)
    bold = fastest_motion(path, model, settings)
    plans = [fastest_motion(path, model, replace(settings, confidence=p)) for p in (0.8, 0.99)]
    assert bold.duration < plans[0].duration < plans[1].duration
    assert plans[1].longer == pytest.approx(plans[1].duration / bold.duration - 1.0)
    # Independent draws of the parameters, torque recomputed at other instants.
    rng = np.random.default_rng(99)
    values = model.values + rng.standard_normal((400, len(model.values))) * np.sqrt(np.diag(model.covariance))
    held = []
    for plan in (bold, *plans):
        rows = model.rows(*plan.trajectory.sample(np.linspace(0.0, plan.duration, 457)))
        torque = np.einsum("njr,dr->dnj", rows, values)
        held.append(float((np.abs(torque) <= robot.limit("torque") * (1.0 + 1e-3)).all(axis=(1, 2)).mean()))
    assert held[0] < 0.5
    assert held[1] >= 0.8 - 0.04
    assert held[2] >= 0.99 - 0.01
    assert plans[1].probability == pytest.approx(held[2], abs=0.02)
    assert (plans[1].usage.margin > 0.0).any()


def test_no_doubt_means_no_difference() -> None:
    robot = planar_arm()
    path = SplinePath(robot.joint_names, WAYPOINTS)
    plain = fastest_motion(path, model_of_robot(robot))
    confident = fastest_motion(path, model_of_robot(robot), PlanSettings(confidence=0.999))
    assert confident.duration == plain.duration
    assert confident.probability == 1.0
    with pytest.raises(InputError, match="a probability from"):
        fastest_motion(path, model_of_robot(robot), PlanSettings(confidence=1.0))


def test_margin_leaves_limits_unused() -> None:
    robot = planar_arm(acceleration=20.0)
    path = SplinePath(robot.joint_names, WAYPOINTS)
    full = fastest_motion(path, model_of_robot(robot), PlanSettings(points=300))
    spare = fastest_motion(path, model_of_robot(robot), PlanSettings(points=300, margin=0.2))
    assert spare.duration > full.duration
    _, _, qdd = spare.trajectory.sample(np.linspace(0.0, spare.duration, 2000))
    assert (np.abs(qdd) <= 0.8 * 20.0 * 1.001).all()
    with pytest.raises(InputError, match="margin"):
        fastest_motion(path, model_of_robot(robot), PlanSettings(margin=1.0))


def test_units_of_the_path_parameter_do_not_matter() -> None:
    """The same curve run through by two different parameters takes the same time."""
    robot = planar_arm(torque=(60.0, 20.0))
    one = FourierTrajectory(robot.joint_names, 4.0, np.zeros(2), np.array([[0.8], [0.2]]), np.array([[0.1], [0.6]]))
    plans = [
        fastest_motion(TrajectoryPath(fourier), model_of_robot(robot), PlanSettings(points=1500))
        for fourier in (one, replace(one, period=13.0))
    ]
    assert plans[0].duration == pytest.approx(plans[1].duration, rel=1e-6)


def test_leaving_the_position_limits_says_where() -> None:
    robot = planar_arm()
    path = SplinePath(robot.joint_names, np.array([[0.0, 0.0], [2.9, 1.0], [3.2, 0.0]]))
    with pytest.raises(
        OutsideLimitsError,
        match=r"from waypoint 2 to 3, .* % of the path: j1 leaves its limits -3 to 3, as far as 3\.2",
    ):
        fastest_motion(path, model_of_robot(robot))


def test_a_spline_that_swings_over_is_noticed_between_waypoints() -> None:
    robot = planar_arm()
    path = SplinePath(robot.joint_names, np.array([[0.0, 0.0], [2.95, 0.2], [2.95, 2.0], [0.0, 2.2]]))
    with pytest.raises(OutsideLimitsError, match="waypoint 2 to 3"):
        fastest_motion(path, model_of_robot(robot))


def test_torque_too_small_to_hold_the_arm_says_where() -> None:
    robot = planar_arm(torque=(25.0, 25.0))
    # Stretched out sideways half-way: 4 * 9.81 * 0.22 + 2.5 * 9.81 * 0.7 = 25.8 N m.
    path = SplinePath(robot.joint_names, np.array([[-1.2, 0.0], [1.2, 0.0]]))
    with pytest.raises(
        HoldingError, match=r"50 % of the way from waypoint 1 to 2.*j1 needs 25\.8 to hold .* limit is 25"
    ) as caught:
        fastest_motion(path, model_of_robot(robot))
    assert caught.value.place.endswith("49.9 % of the path")
    # With a little more torque it can be held, but not moved against friction of 2 N m.
    strong = planar_arm(torque=(26.5, 25.0))
    with pytest.raises(HoldingError, match=r"needs 27\.8 to move the arm slowly"):
        fastest_motion(path, model_of_robot(strong))
    with pytest.raises(HoldingError, match="for the doubt in the parameters"):
        fastest_motion(path, doubtful(planar_arm(torque=(28.5, 25.0)), 0.1), PlanSettings(confidence=0.999))


def test_a_path_that_turns_back_says_where() -> None:
    robot = planar_arm()
    path = SplinePath(robot.joint_names, np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]))
    with pytest.raises(SingularPathError, match=r"(waypoint 1 to 2|waypoint 2 to 3), \d+\.\d % of the path: singular"):
        fastest_motion(path, model_of_robot(robot))


def test_self_collision_says_where_and_what() -> None:
    robot = load_robot("panda")
    free = np.array([0.0, -0.3, 0.0, -1.8, 0.0, 1.6, 0.7])
    folded = np.array([0.0, 1.5, 0.0, -3.0, 0.0, 0.2, 0.7])
    scene = build_scene(robot)
    assert scene.is_free(free)[0]
    assert not scene.is_free(folded)[0]
    path = SplinePath(robot.joint_names, np.array([free, folded]))
    with pytest.raises(
        CollisionError, match=r"% of the way from waypoint 1 to 2.* and .* come closer than the margin, by \d+ mm"
    ):
        fastest_motion(path, model_of_robot(robot), scene=scene)


def test_collision_with_the_cell_is_named() -> None:
    robot = load_robot("panda")
    start, end = np.array([0.0, -0.3, 0.0, -1.8, 0.0, 1.6, 0.7]), np.array([1.2, -0.3, 0.0, -1.8, 0.0, 1.6, 0.7])
    path = SplinePath(robot.joint_names, np.array([start, end]))
    fastest_motion(path, model_of_robot(robot), PlanSettings(points=200, jerk_points=150), scene=build_scene(robot))
    place = forward_kinematics(robot, 0.5 * (start + end))[0]
    T = np.eye(4)
    T[:3, 3] = place[:3, 3]
    cell = Cell(obstacles=(Obstacle("pillar", Geometry(Box((0.1, 0.1, 0.1)), T)),))
    with pytest.raises(CollisionError, match="pillar"):
        fastest_motion(path, model_of_robot(robot), scene=build_scene(robot, cell))


def test_a_joint_without_any_limit_of_force_gets_a_note() -> None:
    robot = planar_arm()
    first = replace(robot.joints[0], limits=Limits(lower=-3.0, upper=3.0, velocity=2.0))
    robot = replace(robot, joints=(first, robot.joints[1]))
    plan = fastest_motion(SplinePath(robot.joint_names, WAYPOINTS), model_of_robot(robot), PlanSettings(points=300))
    codes = {note.code for note in plan.notes}
    assert "limit-assumed" in codes
    assert "jerk-unlimited" in codes


def test_files_come_back_as_the_same_motion(tmp_path: Path) -> None:
    robot = planar_arm(jerk=300.0)
    plan = fastest_motion(
        SplinePath(robot.joint_names, WAYPOINTS), model_of_robot(robot), PlanSettings(points=300, jerk_points=150)
    )
    files = plan.save(tmp_path / "out", rate_hz=500.0)
    assert [file.name for file in files[:4]] == ["plan.json", "plan.csv", "plan-joint-trajectory.yaml", "plan.html"]
    t = np.linspace(0.0, plan.duration, 333)
    for file in files[:2]:
        again = load_trajectory(file)
        assert again.duration == pytest.approx(plan.duration, abs=1e-9)
        assert np.allclose(again.sample(t)[0], plan.trajectory.sample(t)[0], atol=1e-6)
    marked = replace(plan, doubts=("40 % error",)).save(tmp_path / "out", rate_hz=100.0)
    assert all("UNVALIDATED" in file.name for file in marked[:4])
    (tmp_path / "taken").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        plan.save(tmp_path / "taken", rate_hz=100.0)
