"""Frequency response of single axes: phasors, the seed's formulas, validity, and the MABI arm in MuJoCo."""

from __future__ import annotations

import numpy as np
import pytest

from armid.errors import InputError
from armid.estimation.axis_inertia import axis_inertia_model
from armid.experiments.frequency_response import (
    AxisMeasurement,
    Line,
    ResponseSettings,
    axis_response,
    fitted,
    found_frequencies,
    phasors,
)
from armid.experiments.sweep_motion import DEFAULT_FREQUENCIES, Signal, SweepMotion, sweep_motion
from armid.logs.log import Channel, Log
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.simulation.controllers import PdGravity
from armid.simulation.dynamics import RigidModel
from armid.simulation.physics import Physics
from armid.simulation.scenario import Scenario, run_scenario
from armid.simulation.sensors import PositionSensor, Sensors, TorqueSensor

POSE = np.array([0.1, 0.3, 0.4, 0.2, 0.5, 0.3])


@pytest.fixture(scope="module")
def mabi() -> Robot:
    return load_robot("mabi-max100")


def recorded(robot: Robot, motion: SweepMotion, J: float, mu: float, *, slope: float = 0.0, lag: float = 0.0) -> Log:
    """A perfect recording of one axis with known inertia, friction, gravity slope and lag of torque."""
    t = np.arange(0.0, motion.duration, 1e-3)
    q = motion.sample(t)[0]
    k = motion.axis
    tau = np.zeros_like(q)
    late = np.clip(t - lag, 0.0, motion.duration)
    x, v, a = motion.sample(late)
    tau[:, k] = J * a[:, k] + mu * v[:, k] + slope * (x[:, k] - POSE[k]) + 30.0 * np.sign(v[:, k]) + 100.0
    return Log("made up", robot.joint_names, t, {Channel.POSITION: q, Channel.MOTOR_TORQUE: tau}, named=True)


def test_phasors_know_no_leakage_from_drift_or_neighbours() -> None:
    t = np.arange(0.0, 3.3, 1e-3)
    truth = {2.5: 0.3 * np.exp(0.4j), 2.9: 1.7 * np.exp(-2.0j)}
    x = 5.0 + 3.0 * t - 0.7 * t**2 + sum((c * np.exp(2j * np.pi * f * t)).real for f, c in truth.items())
    assert np.allclose(phasors(t, x, list(truth)), list(truth.values()), atol=1e-9)


def test_formulas_of_the_seed() -> None:
    """Eqs. 9-11 on an exact response."""
    J, mu, w = 3.7, 11.0, 2 * np.pi * 1.7
    line = Line(1.7, 1.0 / (mu + 1j * w * J), 1.0)
    assert line.magnitude == pytest.approx(1 / np.sqrt(mu**2 + w**2 * J**2))
    assert line.phase == pytest.approx(np.arctan(-w * J / mu))
    assert (line.inertia, line.viscous) == pytest.approx((J, mu))
    assert fitted([line])[:2] == pytest.approx((J, mu))


@pytest.mark.parametrize("signal", list(Signal))
def test_motions_are_smooth_and_within_limits(mabi: Robot, signal: Signal) -> None:
    frequencies = (1.5, 6.0) if signal is Signal.CHIRP else DEFAULT_FREQUENCIES
    motion = sweep_motion(mabi, POSE, "joint4", frequencies, signal=signal)
    t = np.linspace(0.0, motion.duration, 40001)
    q, qd, qdd = motion.sample(t)
    limits = mabi.joints[3].limits
    assert np.abs(np.gradient(q[:, 3], t) - qd[:, 3])[2:-2].max() < 1e-5
    assert np.abs(np.gradient(qd[:, 3], t) - qdd[:, 3])[2:-2].max() < 1e-2
    assert np.abs(np.gradient(qdd[:, 3], t) - motion.jerk(t)[:, 3])[2:-2].mean() < 0.1
    assert np.abs(qd).max() < limits.velocity
    assert np.abs(qdd).max() < limits.acceleration
    assert limits.lower < q[:, 3].min()
    assert q[:, 3].max() < limits.upper
    steady = (t > motion.steady[0]) & (t < motion.steady[1])
    assert qd[steady, 3].min() > 0.0
    assert np.ptp(np.delete(q, 3, axis=1), axis=0).max() == 0.0
    assert np.abs(qd[[0, -1]]).max() < 1e-12


def test_inertia_friction_slope_and_lag_are_told_apart(mabi: Robot) -> None:
    motion = sweep_motion(mabi, POSE, "joint4", DEFAULT_FREQUENCIES)
    log = recorded(mabi, motion, 12.0, 55.0, slope=-80.0, lag=4e-4)
    found = axis_response(log, mabi)
    assert found.axis == "joint4"
    assert found.inertia == pytest.approx(12.0, rel=2e-3)
    assert found.viscous == pytest.approx(55.0, rel=1e-2)
    assert found.slope == pytest.approx(-80.0, rel=0.05)
    assert found.lag == pytest.approx(4e-4, rel=0.05)
    assert found.usable


def test_chirp_is_analysed_as_lines_of_its_band(mabi: Robot) -> None:
    """A chirp holds every frequency of its band; fitting many of them at once gives the same inertia."""
    motion = sweep_motion(mabi, POSE, "joint4", (1.5, 6.0), signal=Signal.CHIRP, seconds=8.0)
    log = recorded(mabi, motion, 12.0, 55.0)
    lines = tuple(np.arange(2.0, 5.6, 0.5))
    found = axis_response(log, mabi, ResponseSettings(frequencies=lines, slope=False, lag=False))
    assert found.inertia == pytest.approx(12.0, rel=0.02)


def test_frequencies_are_found_in_the_spectrum(mabi: Robot) -> None:
    motion = sweep_motion(mabi, POSE, "joint4", DEFAULT_FREQUENCIES)
    t = np.arange(*motion.steady, 1e-3)
    found = found_frequencies(t, motion.sample(t)[0][:, 3], 1000.0, "joint4")
    assert found == pytest.approx(DEFAULT_FREQUENCIES, abs=0.05)


def test_simulated_mabi_predicts_axis_inertias_of_fresh_poses(mabi: Robot) -> None:
    """Coulomb friction, gravity and sensor noise in MuJoCo; 32 parameters; inertias of fresh poses within 1 %."""
    rng = np.random.default_rng(2)
    span = mabi.limit("upper") - mabi.limit("lower")
    measured = []
    for axis, count in enumerate((14, 11, 10, 7, 4, 2)):
        poses = mabi.limit("lower") + span * rng.uniform(0.1, 0.9, size=(count, 6))
        measured += [response_at(mabi, pose, axis, 100 * axis + k) for k, pose in enumerate(poses)]
    model = axis_inertia_model(mabi, measured)
    assert len(model.estimate) == 32
    rigid = RigidModel(mabi)
    fresh = np.random.default_rng(9).uniform(mabi.limit("lower"), mabi.limit("upper"), size=(200, 6))
    truth = np.array([np.diag(rigid.mass_matrix(q, rotors=True)) for q in fresh])
    error = model.inertia(fresh) / truth - 1.0
    assert np.sqrt(np.mean(error**2, axis=0)).max() < 0.01, np.sqrt(np.mean(error**2, axis=0))


def response_at(robot: Robot, pose: np.ndarray, axis: int, seed: int) -> AxisMeasurement:
    """A measurement in MuJoCo; the axis' own position does not matter to its inertia, so it moves where it has room."""
    middle = np.array(pose)
    middle[axis] = 0.5 * (robot.joints[axis].limits.lower + robot.joints[axis].limits.upper)
    lines = (3.5, 5.5, 8.0)
    motion = sweep_motion(robot, middle, robot.joint_names[axis], lines, seconds=1.6)
    noise = tuple(float(x) for x in 5e-4 * robot.limit("torque"))
    encoder = PositionSensor(resolution=2.0 * np.pi / 2**20)
    scenario = Scenario(
        controller=PdGravity(frequency_hz=30.0),
        sensors=Sensors(position=encoder, motor=TorqueSensor(noise=noise)),
        physics=Physics(collisions=False),
        seed=seed,
    )
    log = run_scenario(robot, motion, scenario).log
    return axis_response(log, robot, ResponseSettings(frequencies=lines))


def test_a_velocity_that_changes_sign_is_named(mabi: Robot) -> None:
    motion = SweepMotion(mabi.joint_names, POSE, 3, 0.02, (2.5, 4.0, 6.5), (0.02, 0.02, 0.02), 3.2)
    found = axis_response(
        recorded(mabi, motion, 12.0, 55.0), mabi, ResponseSettings(frequencies=(2.5, 4.0, 6.5), window=motion.steady)
    )
    assert "velocity-reverses" in [n.code for n in found.notes]
    assert not found.usable
    with pytest.raises(InputError, match="changes sign"):
        axis_inertia_model(mabi, [found])


def test_another_axis_that_moves_is_named(mabi: Robot) -> None:
    motion = sweep_motion(mabi, POSE, "joint4", DEFAULT_FREQUENCIES)
    log = recorded(mabi, motion, 12.0, 55.0)
    q = np.array(log[Channel.POSITION])
    q[:, 1] += 0.2 * (q[:, 3] - POSE[3])
    moved = Log(
        "x",
        mabi.joint_names,
        log.time,
        {Channel.POSITION: q, Channel.MOTOR_TORQUE: log[Channel.MOTOR_TORQUE]},
        named=True,
    )
    found = axis_response(moved, mabi, ResponseSettings(frequencies=DEFAULT_FREQUENCIES))
    assert [(n.code, n.subject) for n in found.notes if n.severity.value == "error"] == [("other-axis-moves", "joint2")]


def test_torque_of_the_wrong_sign_is_named(mabi: Robot) -> None:
    motion = sweep_motion(mabi, POSE, "joint4", DEFAULT_FREQUENCIES)
    log = recorded(mabi, motion, 12.0, 55.0)
    flipped = {Channel.POSITION: log[Channel.POSITION], Channel.MOTOR_TORQUE: -log[Channel.MOTOR_TORQUE]}
    found = axis_response(Log("x", mabi.joint_names, log.time, flipped, named=True), mabi)
    assert "impossible-response" in [n.code for n in found.notes]


@pytest.mark.parametrize(
    ("frequencies", "match"),
    [((450.0,), "Nyquist"), ((-1.0,), "positive"), ((0.2,), "periods of 0.2 Hz")],
)
def test_frequencies_a_recording_cannot_hold_are_refused(
    mabi: Robot, frequencies: tuple[float, ...], match: str
) -> None:
    motion = sweep_motion(mabi, POSE, "joint4", DEFAULT_FREQUENCIES)
    with pytest.raises(InputError, match=match):
        axis_response(recorded(mabi, motion, 12.0, 55.0), mabi, ResponseSettings(frequencies=frequencies))


def test_recordings_of_something_else_are_refused(mabi: Robot) -> None:
    t = np.arange(0.0, 4.0, 1e-3)
    still = np.tile(POSE, (len(t), 1))
    with pytest.raises(InputError, match="no joint moves"):
        axis_response(
            Log("x", mabi.joint_names, t, {Channel.POSITION: still, Channel.MOTOR_TORQUE: still}, named=True), mabi
        )
    with pytest.raises(InputError, match="no torque to respond to"):
        axis_response(Log("x", mabi.joint_names, t, {Channel.POSITION: still}, named=True), mabi)


def test_a_pose_at_the_limit_has_no_room(mabi: Robot) -> None:
    pose = np.array(POSE)
    pose[1] = mabi.joints[1].limits.upper - 1e-3
    with pytest.raises(InputError, match="no room"):
        sweep_motion(mabi, pose, "joint2", DEFAULT_FREQUENCIES)
    with pytest.raises(InputError, match="a chirp"):
        sweep_motion(mabi, POSE, "joint2", (1.0, 2.0, 3.0), signal=Signal.CHIRP)
