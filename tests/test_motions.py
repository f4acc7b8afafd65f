"""Trajectory families: derivatives by finite differences, both published Fourier forms, rest, files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from armid.errors import InputError, ShapeError
from armid.motions.fourier import FourierTrajectory, from_velocity_form, published_bounds
from armid.motions.limits import InfeasibleError, MotionLimits
from armid.motions.sample_table import save_csv
from armid.motions.spline import SplineTrajectory
from armid.motions.trajectory import SampledTrajectory, SequenceTrajectory, Trajectory, grid
from armid.motions.trajectory_files import load_trajectory, save_joint_trajectory, save_trajectory
from armid.motions.transition import EASE, TransitionTrajectory, quickest_transition
from armid.motions.trapezoid import TrapezoidalTrajectory, random_waypoints
from armid.robot.load import load_robot
from armid.robot.robot import JointKind

NAMES = ("a", "b", "c")

THESIS = {
    "a": [
        [-0.01473, 0.0016, -0.40337],
        [0.00018, -0.69745, -0.18612],
        [0.51786, -0.00037, 0.22333],
        [-0.09658, 0.67202, -0.04078],
        [-0.40672, 0.0242, 0.40695],
    ],
    "b": [
        [-0.04209, 0.00182, 0.18905],
        [-0.00097, 0.02406, -0.42849],
        [0.02858, -0.00341, 0.00112],
        [0.38574, -0.12365, -0.01963],
        [-0.31694, 0.09097, 0.14861],
    ],
}
"""First three joints of the feasibility-test trajectory (table A.2 of the [Halper2024])."""


def fourier(rng: np.random.Generator, repetitions: int = 2) -> FourierTrajectory:
    return FourierTrajectory(
        NAMES, 8.0, rng.normal(size=3), rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), repetitions
    )


def spline(rng: np.random.Generator) -> SplineTrajectory:
    values = rng.normal(size=(9, 3))
    values[-1] = values[0]
    return SplineTrajectory(NAMES, 8.0, values, 2)


def transition(rng: np.random.Generator) -> TransitionTrajectory:
    return TransitionTrajectory(NAMES, rng.normal(size=(4, 3)), np.array([1.0, 2.0, 1.5]))


def sampled(rng: np.random.Generator) -> SampledTrajectory:
    t = np.linspace(0.0, 16.0, 161)
    return SampledTrajectory(NAMES, t, *fourier(rng).sample(t))


def sequence(rng: np.random.Generator) -> SequenceTrajectory:
    body = spline(rng)
    start = body.sample(0.0)[0][0]
    approach = TransitionTrajectory(NAMES, np.vstack([np.zeros(3), start]), np.array([2.0]))
    return SequenceTrajectory((approach, body, approach.reversed()))


SMOOTH = [fourier, spline, transition, sampled, sequence]


@pytest.mark.parametrize("make", SMOOTH)
def test_derivatives_are_those_of_the_positions(make):
    trajectory: Trajectory = make(np.random.default_rng(1))
    # Instants away from the joints of pieces, where the third derivative may jump.
    t, h = np.linspace(0.013, trajectory.duration - 0.017, 301), 1e-4
    _, qd, qdd = trajectory.sample(t)
    before, after = trajectory.sample(t - h), trajectory.sample(t + h)
    np.testing.assert_allclose((after[0] - before[0]) / (2 * h), qd, atol=2e-5)
    np.testing.assert_allclose((after[1] - before[1]) / (2 * h), qdd, atol=2e-4)
    central = (after[2] - before[2]) / (2 * h)
    near = np.abs(central - trajectory.jerk(t)) < 1e-2 * (1.0 + np.abs(central))
    assert near.mean() > 0.98


@pytest.mark.parametrize("make", [spline, transition, sequence])
def test_rest_at_both_ends(make):
    trajectory = make(np.random.default_rng(2))
    for t in (0.0, trajectory.duration):
        _, qd, qdd = trajectory.sample(t)
        np.testing.assert_allclose(qd, 0.0, atol=1e-9)
        np.testing.assert_allclose(qdd, 0.0, atol=1e-8)


def test_velocity_form_is_the_published_sum():
    a, b = np.array(THESIS["a"]).T, np.array(THESIS["b"]).T
    trajectory = from_velocity_form(NAMES, 20.0, a, b)
    w, t = 2 * np.pi / 20.0, 3.7
    expected = sum(
        a[:, l - 1] / (w * l) * np.sin(w * l * t) - b[:, l - 1] / (w * l) * np.cos(w * l * t) for l in range(1, 6)
    )
    np.testing.assert_allclose(trajectory.sample(t)[0][0], expected, rtol=0.0, atol=1e-14)
    np.testing.assert_allclose(trajectory.velocity_form[0], a, atol=1e-15)
    # Table A.2 is printed to five digits: it starts at rest at zero to that precision (eq. 3.55c).
    q, qd, qdd = trajectory.sample(0.0)
    assert np.abs(q).max() < 3e-4
    assert np.abs(qd).max() < 2e-4
    assert np.abs(qdd).max() < 1e-3


def test_bounds_hold_for_every_instant_and_the_printed_one_would_not():
    a, b = np.array(THESIS["a"]).T, np.array(THESIS["b"]).T
    trajectory = from_velocity_form(NAMES, 20.0, a, b)
    position, velocity = np.radians([170, 120, 170]), np.radians([85, 85, 100])
    usage = published_bounds(trajectory, position, velocity)
    q, qd, _ = trajectory.sample(grid(20.0, 200.0))
    assert (np.abs(q).max(axis=0) / position <= usage["position"] + 1e-12).all()
    assert (np.abs(qd).max(axis=0) / velocity <= usage["velocity"] + 1e-12).all()
    assert (usage["coefficient"] <= 1.0).all()
    assert (usage["coefficient"] * trajectory.n_harmonics > 1.0).any()


@pytest.mark.parametrize("make", [fourier, spline])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_derivative_bounds_are_bounds(make, order):
    trajectory = make(np.random.default_rng(order))
    t = grid(8.0, 500.0)
    values = trajectory.derivative(t, order) if make is fourier else trajectory.spline(t, order)
    assert (np.abs(values).max(axis=0) <= trajectory.derivative_bound(order) * (1 + 1e-12)).all()


def test_periodic_repetition_and_slowing():
    trajectory = fourier(np.random.default_rng(3), repetitions=3)
    t = np.linspace(0.0, 8.0, 50)
    np.testing.assert_allclose(trajectory.sample(t)[0], trajectory.sample(t + 16.0)[0], atol=1e-12)
    slow = trajectory.slowed(1.35)
    assert slow.duration == pytest.approx(1.35 * trajectory.duration)
    np.testing.assert_allclose(slow.sample(1.35 * t)[1], trajectory.sample(t)[1] / 1.35, atol=1e-12)


def test_trapezoid_reaches_its_waypoints_within_limits():
    rng = np.random.default_rng(4)
    trajectory = random_waypoints(
        NAMES, -np.ones(3), np.ones(3), np.array([1.0, 2.0, 0.5]), np.full(3, 2.0), count=6, rng=rng
    )
    t = grid(trajectory.duration, 1000.0)
    q, qd, qdd = trajectory.sample(t)
    assert (np.abs(qd) <= trajectory.velocity * (1 + 1e-9)).all()
    assert (np.abs(qdd) <= trajectory.acceleration * (1 + 1e-9)).all()
    np.testing.assert_allclose(q[-1], trajectory.waypoints[-1], atol=1e-12)
    np.testing.assert_allclose(np.diff(q, axis=0) * 1000.0, (qd[1:] + qd[:-1]) / 2, atol=3e-3)
    # Somewhere a limit is reached: the motion is not slower than it must be.
    assert max((np.abs(qd) / trajectory.velocity).max(), (np.abs(qdd) / trajectory.acceleration).max()) > 0.999


def test_trapezoid_may_stand_still_between_equal_waypoints():
    points = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, -1.0]])
    trajectory = TrapezoidalTrajectory(NAMES, points, np.ones(3), np.ones(3))
    q, _, _ = trajectory.sample(grid(trajectory.duration, 100.0))
    assert np.isfinite(q).all()
    np.testing.assert_allclose(q[-1], points[-1])


def test_quickest_transition_uses_a_limit_fully_and_none_beyond():
    limits = MotionLimits(
        -np.ones(3) * 3,
        np.ones(3) * 3,
        np.array([1.0, 2.0, 3.0]),
        np.array([4.0, 5.0, 6.0]),
        np.array([30.0, 20.0, 10.0]),
        np.full(3, np.inf),
    )
    trajectory = quickest_transition(NAMES, [[0, 0, 0], [1.0, -2.0, 0.5], [1.0, -2.0, 0.4]], limits)
    t = grid(trajectory.duration, 5000.0)
    _, qd, qdd = trajectory.sample(t)
    usage = max(
        (np.abs(qd) / limits.velocity).max(),
        (np.abs(qdd) / limits.acceleration).max(),
        (np.abs(trajectory.jerk(t)) / limits.jerk).max(),
    )
    assert usage == pytest.approx(1.0 / EASE, abs=1e-3)


def trapezoidal(rng: np.random.Generator) -> TrapezoidalTrajectory:
    return TrapezoidalTrajectory(NAMES, rng.normal(size=(3, 3)), np.ones(3), np.ones(3))


@pytest.mark.parametrize("make", [*SMOOTH, trapezoidal])
def test_json_round_trip(make, tmp_path: Path):
    trajectory = make(np.random.default_rng(5))
    again = load_trajectory(save_trajectory(trajectory, tmp_path / "t.json", robot="x"))
    t = np.linspace(0.0, trajectory.duration, 77)
    assert again.joint_names == NAMES
    for x, y in zip(trajectory.sample(t), again.sample(t), strict=True):
        np.testing.assert_allclose(x, y, rtol=0.0, atol=1e-12)


def test_csv_round_trip(tmp_path: Path):
    trajectory = fourier(np.random.default_rng(6), repetitions=1)
    again = load_trajectory(save_csv(trajectory, tmp_path / "t.csv", rate_hz=50.0))
    t = np.linspace(0.0, 8.0, 333)
    # A quintic over 20 ms of harmonics below 0.5 Hz: the truncation is below these tolerances.
    for x, y, tolerance in zip(trajectory.sample(t), again.sample(t), (1e-7, 1e-6, 1e-4), strict=True):
        np.testing.assert_allclose(x, y, rtol=0.0, atol=tolerance)


def test_a_table_of_samples_names_its_joints_and_their_units(tmp_path: Path):
    robot = load_robot("cylindrical")
    rng = np.random.default_rng(6)
    names = robot.joint_names
    motion = FourierTrajectory(
        joint_names=names, period=8.0, offset=np.zeros(3), sine=rng.normal(size=(3, 3)), cosine=np.zeros((3, 3))
    )
    path = save_csv(motion, tmp_path / "t.csv", rate_hz=50.0, robot=robot)
    units = ["rad" if joint.kind is JointKind.REVOLUTE else "m" for joint in robot.joints]
    header = path.read_text().splitlines()[0]
    assert header.split(",")[:4] == ["time [s]", *(f"q_{n} [{u}]" for n, u in zip(names, units, strict=True))]
    assert {"rad", "m"} == set(units)
    again = load_trajectory(path)
    assert again.joint_names == names
    np.testing.assert_allclose(again.sample(np.array([1.0]))[0], motion.sample(np.array([1.0]))[0], atol=1e-9)


TWO_ROWS = "\n0,1,0,0\n1,2,0,0\n"


def test_tables_without_names_or_in_degrees_are_read_too(tmp_path: Path):
    path = tmp_path / "t.csv"
    path.write_text("time,q1,qd1,qdd1" + TWO_ROWS)
    assert load_trajectory(path).joint_names == ("joint1",)
    path.write_text('time [s],"q_a,b [deg]","qd_a,b [deg/s]","qdd_a,b [deg/s^2]"' + TWO_ROWS)
    motion = load_trajectory(path)
    assert motion.joint_names == ("a,b",)
    np.testing.assert_allclose(motion.sample(np.array([0.0, 1.0]))[0][:, 0], np.radians([1.0, 2.0]))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("time,q_a [turns],qd_a [turns/s],qdd_a [turns/s^2]", r"joint a: units \[turns\]"),
        ("time,q_a [deg],qd_a [rad/s],qdd_a [rad/s^2]", "same per s"),
        ("time,q_a [rad],qd_b [rad/s],qdd_a [rad/s^2]", "not the header of a motion"),
        ("time [ms],q_a [rad],qd_a [rad/s],qdd_a [rad/s^2]", "not the header of a motion"),
    ],
)
def test_a_table_whose_header_says_something_else_is_refused(tmp_path: Path, header: str, message: str):
    path = tmp_path / "t.csv"
    path.write_text(header + TWO_ROWS)
    with pytest.raises(InputError, match=message):
        load_trajectory(path)


def test_joint_trajectory_message(tmp_path: Path):
    trajectory = spline(np.random.default_rng(7))
    as_json = json.loads(save_joint_trajectory(trajectory, tmp_path / "m.json", rate_hz=10.0).read_text())
    as_yaml = yaml.safe_load(save_joint_trajectory(trajectory, tmp_path / "m.yaml", rate_hz=10.0).read_text())
    assert as_json == as_yaml
    assert as_json["joint_names"] == list(NAMES)
    last = as_json["points"][-1]
    assert last["time_from_start"] == {"sec": 16, "nanosec": 0}
    np.testing.assert_allclose(last["velocities"], 0.0, atol=1e-9)
    assert len(as_json["points"]) == 161


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ('{"format": "other"}', "format"),
        ('{"format": "armid-trajectory", "version": 9}', "version 9"),
        ('{"format": "armid-trajectory", "version": 1, "kind": "warp"}', "warp"),
        ('{"format": "armid-trajectory", "version": 1, "kind": "fourier", "joint_names": ["a"]}', "offset"),
        (
            '{"format": "armid-trajectory", "version": 1, "kind": "fourier", "joint_names": ["a"], "period": 1, '
            '"offset": [0], "sine": [[1, 2]], "cosine": [[1]]}',
            "cosine",
        ),
    ],
)
def test_bad_files_say_what_is_wrong(text, message, tmp_path: Path):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_trajectory(path)


def test_parts_must_join():
    rng = np.random.default_rng(8)
    with pytest.raises(InputError, match=r"starts .* away"):
        SequenceTrajectory((transition(rng), transition(rng)))


def test_impossible_limits_are_named():
    with pytest.raises(InfeasibleError, match="joint 2 leave no room"):
        MotionLimits(np.array([-1.0, 2.0]), np.array([1.0, 1.5]), *(np.ones(2) for _ in range(4)))
    with pytest.raises(InfeasibleError, match="velocity limit of joint 1"):
        MotionLimits(-np.ones(2), np.ones(2), np.array([0.0, 1.0]), *(np.ones(2) for _ in range(3)))


def test_wrong_shapes_are_named():
    with pytest.raises(ShapeError, match="cosine"):
        FourierTrajectory(NAMES, 1.0, np.zeros(3), np.zeros((3, 2)), np.zeros((3, 3)))
