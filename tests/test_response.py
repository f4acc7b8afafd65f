"""Frequency response of single axes: phasors, the formulas of [RWTH2021], validity, and the MABI arm in MuJoCo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armid.design.inertia_poses import described_inertia
from armid.errors import InputError, UnknownNameError
from armid.estimation.estimate import Estimate
from armid.identifiability.structure import structural_base
from armid.logs.log import Channel, Log
from armid.motions.limits import motion_limits
from armid.motions.sweep import Signal, SweepMotion, sweep_motion
from armid.response.axis_inertia import AxisInertiaModel, axis_inertia_model, expected_accuracy
from armid.response.campaign import plan_sweep
from armid.response.excitation import found_excitation
from armid.response.frequency_response import AxisMeasurement, ResponseLine, ResponseSettings, axis_response
from armid.response.modulation import modulation
from armid.response.phasors import phasors
from armid.response.plan import Site, SweepSettings, sweep_plan
from armid.response.sweep import InertiaPrediction, model_checks, sweep
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.rows.axis_inertia import AxisInertiaRows
from armid.simulation.dynamics import RigidModel
from armid.simulation.physics import Physics
from armid.simulation.scenario import Scenario, run_scenario
from armid.simulation.sensors import PositionSensor, Sensors, TorqueSensor
from support.outcomes import check_family, failing

POSE = np.array([0.1, 0.3, 0.4, 0.2, 0.5, 0.3])


@pytest.fixture(scope="module")
def mabi() -> Robot:
    return load_robot("mabi-max100")


def recorded(
    robot: Robot,
    motion: SweepMotion,
    J: float,
    mu: float,
    *,
    gravity: tuple[float, float] = (0.0, 0.0),
    lag: float = 0.0,
) -> Log:
    """A perfect recording of one axis with known inertia, friction, gravity (cosine, sine) and lag of torque."""
    t = np.arange(0.0, motion.duration, 1e-3)
    q = motion.sample(t)[0]
    k = motion.axis
    tau = np.zeros_like(q)
    late = np.clip(t - lag, 0.0, motion.duration)
    x, v, a = (part[:, k] for part in motion.sample(late))
    tau[:, k] = J * a + mu * v + gravity[0] * np.cos(x) + gravity[1] * np.sin(x) + 30.0 * np.sign(v) + 100.0
    return Log(
        name="made up",
        joints=robot.joint_names,
        time=t,
        channels={Channel.POSITION: q, Channel.MOTOR_TORQUE: tau},
        named=True,
    )


def test_phasors_know_no_leakage_from_drift_or_neighbours() -> None:
    t = np.arange(0.0, 3.3, 1e-3)
    truth = {2.5: 0.3 * np.exp(0.4j), 2.9: 1.7 * np.exp(-2.0j)}
    x = 5.0 + 3.0 * t - 0.7 * t**2 + sum((c * np.exp(2j * np.pi * f * t)).real for f, c in truth.items())
    assert np.allclose(phasors(t, x, list(truth)), list(truth.values()), atol=1e-9)


def test_formulas_of_the_seed() -> None:
    """Eqs. 9-11 on an exact response."""
    J, mu, w = 3.7, 11.0, 2 * np.pi * 1.7
    line = ResponseLine(1.7, 1.0 / (mu + 1j * w * J), 1.0)
    assert line.magnitude == pytest.approx(1 / np.sqrt(mu**2 + w**2 * J**2))
    assert line.phase == pytest.approx(np.arctan(-w * J / mu))
    assert (line.inertia, line.viscous) == pytest.approx((J, mu))


def test_modulating_functions_differentiate_by_parts() -> None:
    """int phi x' = -int phi' x and so on, for any signal, against closed forms of a sine that does not fit the window."""
    t = np.arange(0.0, 3.0, 1e-3) + 1e5
    m = modulation(t, 2.0, [0.0, 1.7, 2.3])
    w, s = 2 * np.pi * 2.13, t - 1e5
    x = [w**k * np.sin(w * s + 0.4 + k * np.pi / 2) for k in range(4)]
    whole = [m.functions(t) @ d for d in x]
    parts = [(-1) ** k * (m.functions(t, k) @ x[0]) for k in range(4)]
    for k in range(1, 4):
        # The window has three continuous derivatives: the trapezium rule sees the jump of the next one.
        assert np.allclose(parts[k], whole[k], atol=1e-5 * np.abs(whole[k]).max(), rtol=0.0)


@pytest.mark.parametrize("axis", ["joint1", "joint4", "joint6"])
@pytest.mark.parametrize("signal", list(Signal))
def test_motions_are_smooth_and_use_their_limits(mabi: Robot, signal: Signal, axis: str) -> None:
    motion = sweep_motion(mabi, POSE, axis, signal=signal)
    k = mabi.joint_index(axis)
    t = np.linspace(0.0, motion.duration, 40001)
    q, qd, qdd = motion.sample(t)
    limits = mabi.joints[k].limits
    scale = np.abs(qdd).max()
    assert np.abs(np.gradient(q[:, k], t) - qd[:, k])[2:-2].max() < 1e-4
    assert np.abs(np.gradient(qd[:, k], t) - qdd[:, k])[2:-2].max() < 2e-3 * scale
    steady = (t > motion.steady[0]) & (t < motion.steady[1])
    jerk = motion.jerk(t)[steady, k]
    used = [np.abs(qdd[steady, k]).max() / limits.acceleration, np.abs(jerk).max() / limits.jerk]
    assert max(used) == pytest.approx(0.9, abs=0.02)
    assert np.abs(qd).max() < limits.velocity
    assert limits.lower < q[:, k].min()
    assert q[:, k].max() < limits.upper
    assert qd[steady, k].min() > 0.2 * motion.offset
    assert np.ptp(np.delete(q, k, axis=1), axis=0).max() == 0.0
    assert np.abs(qd[[0, -1]]).max() < 1e-12
    # A sine that only respects the same limits has a crest factor of 1.41.
    if signal is Signal.SINES:
        assert motion.mean_square_acceleration > (0.6 * 0.9 * limits.acceleration) ** 2


@pytest.mark.parametrize("signal", list(Signal))
def test_inertia_friction_gravity_and_lag_are_told_apart(mabi: Robot, signal: Signal) -> None:
    """Sines and chirp alike, to the digits."""
    motion = sweep_motion(mabi, POSE, "joint4", signal=signal)
    log = recorded(mabi, motion, 12.0, 55.0, gravity=(-80.0, 130.0), lag=4e-4)
    found = axis_response(log, mabi)
    assert found.axis == "joint4"
    assert found.inertia == pytest.approx(12.0, rel=1e-5)
    assert found.viscous == pytest.approx(55.0, rel=1e-4)
    assert found.lag == pytest.approx(4e-4, rel=1e-3)
    assert found.usable
    assert bool(found.lines) == (signal is Signal.SINES)
    x = log[Channel.POSITION][:, 3]
    assert abs(found.slope) < 80.0 + 130.0
    assert np.ptp(x) > 1.0


@pytest.mark.parametrize("signal", list(Signal))
def test_noise_leaves_what_the_plan_expected(mabi: Robot, signal: Signal) -> None:
    """Deviations of the fit and of the plan agree with the scatter over noise; sines and chirp are of one accuracy."""
    motion = sweep_motion(mabi, POSE, "joint5", signal=signal, seconds=4.0)
    clean = recorded(mabi, motion, 7.6, 35.0, gravity=(20.0, 5.0))
    rng = np.random.default_rng(4)
    errors, deviations = [], []
    for _ in range(16):
        found = axis_response(noisy(clean, 3.6, rng), mabi)
        errors.append(found.inertia - 7.6)
        deviations.append(found.inertia_deviation)
    scatter = np.std(errors)
    assert abs(np.mean(errors)) < 3.0 * scatter / np.sqrt(16)
    assert scatter == pytest.approx(np.mean(deviations), rel=0.4)
    assert np.mean(deviations) == pytest.approx(motion.deviation(3.6, 1000.0), rel=0.45)
    assert scatter < 0.005 * 7.6


def noisy(log: Log, torque: float, rng: np.random.Generator) -> Log:
    """With torque noise and an encoder of 1e-5 rad."""
    q, tau = log[Channel.POSITION], log[Channel.MOTOR_TORQUE]
    channels = {
        Channel.POSITION: np.round(q / 1e-5) * 1e-5,
        Channel.MOTOR_TORQUE: tau + torque * rng.normal(size=tau.shape),
    }
    return Log(name="noisy", joints=log.joints, time=log.time, channels=channels, named=True)


def test_other_axes_that_give_way_are_taken_out(mabi: Robot) -> None:
    """Axis 3 swings with axis 2 by 2 %: the coupling torque it causes is known from its own torque, M_23 = M_32."""
    motion = sweep_motion(mabi, POSE, "joint2")
    t = np.arange(0.0, motion.duration, 1e-3)
    q, v, a = motion.sample(t)
    J, M23, J3 = 400.0, 90.0, 130.0
    tau = np.zeros_like(q)
    share = 0.02
    q[:, 2] += share * (q[:, 1] - motion.pose[1] - motion.offset * (t - 0.5 * motion.duration))
    tau[:, 1] = J * a[:, 1] + M23 * share * a[:, 1] + 300.0 * v[:, 1]
    tau[:, 2] = M23 * a[:, 1] + J3 * share * a[:, 1]
    log = Log(
        name="x", joints=mabi.joint_names, time=t, channels={Channel.POSITION: q, Channel.MOTOR_TORQUE: tau}, named=True
    )
    found = axis_response(log, mabi, ResponseSettings(frequencies=motion.frequencies, window=motion.steady))
    assert found.coupling == pytest.approx(M23 * share / J, rel=0.1)
    # What is left is of second order.
    assert found.inertia == pytest.approx(J, rel=3.0 * J3 * share**2 / J)
    assert found.inertia_deviation > 0.5 * found.coupling * J


def test_frequencies_are_found_in_the_spectrum(mabi: Robot) -> None:
    for signal in Signal:
        motion = sweep_motion(mabi, POSE, "joint4", signal=signal)
        t = np.arange(*motion.steady, 1e-3)
        found = found_excitation(t, motion.sample(t)[0][:, 3], 1000.0, "joint4")
        if signal is Signal.SINES:
            assert found.lines == pytest.approx(motion.frequencies, abs=1e-3)
        else:
            assert found.lines == ()
            assert (found.low, found.high) == pytest.approx(motion.frequencies, abs=0.25)


def test_gravity_along_the_axis_is_said_and_matters(mabi: Robot) -> None:
    motion = sweep_motion(mabi, POSE, "joint2")
    log = recorded(mabi, motion, 100.0, 300.0, gravity=(2000.0, 1000.0))
    found = axis_response(log, mabi)
    assert [n.code for n in found.notes] == ["gravity-slope"]
    assert found.inertia == pytest.approx(100.0, rel=1e-4)
    without = axis_response(log, mabi, ResponseSettings(slope=False))
    assert abs(without.inertia / 100.0 - 1.0) > 0.01


def test_a_velocity_that_changes_sign_is_named(mabi: Robot) -> None:
    for signal in Signal:
        good = sweep_motion(mabi, POSE, "joint4", signal=signal)
        motion = replace(good, offset=0.5 * good.offset)
        settings = ResponseSettings(window=motion.steady)
        found = axis_response(recorded(mabi, motion, 12.0, 55.0), mabi, settings)
        assert "velocity-reverses" in [n.code for n in found.notes]
        assert not found.usable
        with pytest.raises(InputError, match="changes sign"):
            axis_inertia_model(mabi, [found])
        assert axis_response(recorded(mabi, good, 12.0, 55.0), mabi).usable


def test_another_axis_that_moves_is_named(mabi: Robot) -> None:
    motion = sweep_motion(mabi, POSE, "joint4")
    log = recorded(mabi, motion, 12.0, 55.0)
    q = np.array(log[Channel.POSITION])
    q[:, 1] += 0.2 * (q[:, 3] - POSE[3])
    moved = Log(
        name="x",
        joints=mabi.joint_names,
        time=log.time,
        channels={Channel.POSITION: q, Channel.MOTOR_TORQUE: log[Channel.MOTOR_TORQUE]},
        named=True,
    )
    found = axis_response(moved, mabi)
    assert [(n.code, n.subject) for n in found.notes if n.severity.value == "error"] == [("other-axis-moves", "joint2")]


def test_torque_of_the_wrong_sign_is_named(mabi: Robot) -> None:
    motion = sweep_motion(mabi, POSE, "joint4")
    log = recorded(mabi, motion, 12.0, 55.0)
    flipped = {Channel.POSITION: log[Channel.POSITION], Channel.MOTOR_TORQUE: -log[Channel.MOTOR_TORQUE]}
    found = axis_response(Log(name="x", joints=mabi.joint_names, time=log.time, channels=flipped, named=True), mabi)
    assert "impossible-response" in [n.code for n in found.notes]


@pytest.mark.parametrize(
    ("frequencies", "match"),
    [((450.0,), "Nyquist"), ((-1.0,), "positive"), ((0.2,), r"periods of 0\.2 Hz")],
)
def test_frequencies_a_recording_cannot_hold_are_refused(
    mabi: Robot, frequencies: tuple[float, ...], match: str
) -> None:
    motion = sweep_motion(mabi, POSE, "joint4")
    with pytest.raises(InputError, match=match):
        axis_response(recorded(mabi, motion, 12.0, 55.0), mabi, ResponseSettings(frequencies=frequencies))


def test_recordings_of_something_else_are_refused(mabi: Robot) -> None:
    t = np.arange(0.0, 4.0, 1e-3)
    still = np.tile(POSE, (len(t), 1))
    with pytest.raises(InputError, match="no joint moves"):
        axis_response(
            Log(
                name="x",
                joints=mabi.joint_names,
                time=t,
                channels={Channel.POSITION: still, Channel.MOTOR_TORQUE: still},
                named=True,
            ),
            mabi,
        )
    with pytest.raises(InputError, match="no torque to respond to"):
        axis_response(
            Log(name="x", joints=mabi.joint_names, time=t, channels={Channel.POSITION: still}, named=True), mabi
        )


def test_a_pose_at_the_limit_has_no_room(mabi: Robot) -> None:
    pose = np.array(POSE)
    pose[1] = mabi.joints[1].limits.upper - 1e-3
    with pytest.raises(InputError, match="no room"):
        sweep_motion(mabi, pose, "joint2")
    with pytest.raises(InputError, match="a chirp"):
        sweep_motion(mabi, POSE, "joint2", (1.0, 2.0, 3.0), signal=Signal.CHIRP)


def test_a_chirp_runs_upwards(mabi: Robot) -> None:
    with pytest.raises(InputError, match="upwards"):
        sweep_motion(mabi, POSE, "joint4", (4.0, 2.0), signal=Signal.CHIRP)
    with pytest.raises(InputError, match="Nyquist"):
        sweep_motion(mabi, POSE, "joint4", (2.0, 30.0), signal=Signal.CHIRP, rate_hz=50.0)


def test_too_little_torque_lowers_the_excitation_or_refuses(mabi: Robot) -> None:
    full = sweep_motion(mabi, POSE, "joint4")
    k = mabi.joint_index("joint4")

    def limited(torque: float) -> Robot:
        joints = list(mabi.joints)
        joints[k] = replace(joints[k], limits=replace(joints[k].limits, torque=torque))
        return replace(mabi, joints=tuple(joints))

    weak = sweep_motion(limited(150.0), POSE, "joint4")
    assert weak.mean_square_acceleration < 0.9 * full.mean_square_acceleration
    with pytest.raises(InputError, match="leave"):
        sweep_motion(limited(40.0), POSE, "joint4")


def test_a_budget_of_time_lengthens_and_repeats(mabi: Robot) -> None:
    sites = [Site("a", POSE, "joint1"), Site("b", POSE, "joint2")]
    short, long = (sweep_plan(mabi, sites, SweepSettings(minutes=m)) for m in (0.3, 2.0))
    for sweeps, minutes in ((short, 0.3), (long, 2.0)):
        assert sum(s.motion.duration for s in sweeps) == pytest.approx(60.0 * minutes, rel=0.25)
    # Joint 2 has room for some twelve seconds: the rest goes to repetitions, every other one backwards.
    again = [s.motion.offset for s in long if s.motion.axis == 1]
    assert len(again) > 2
    assert np.sign(again).tolist() == [(-1.0) ** i for i in range(len(again))]
    assert long[0].deviation < 0.6 * short[0].deviation
    with pytest.raises(InputError, match="more time"):
        sweep_plan(mabi, sites, SweepSettings(minutes=0.01))


def test_a_motion_backwards_gives_the_same(mabi: Robot) -> None:
    forward = sweep_motion(mabi, POSE, "joint4")
    found = axis_response(recorded(mabi, replace(forward, offset=-forward.offset), 12.0, 55.0), mabi)
    assert found.inertia == pytest.approx(12.0, rel=1e-5)
    assert found.usable


def test_expected_accuracy_is_that_of_a_repeated_fit(mabi: Robot) -> None:
    """Least squares over made-up measurements of the stated deviations scatters as foretold."""
    rng = np.random.default_rng(0)
    poses = rng.uniform(mabi.limit("lower"), mabi.limit("upper"), size=(90, 6))
    axes = np.arange(90) % 6
    deviation = 1e-3 * described_inertia(mabi, poses)[np.arange(90), axes]
    expected = expected_accuracy(mabi, poses, axes, deviation)
    fresh = rng.uniform(mabi.limit("lower"), mabi.limit("upper"), size=(300, 6))
    truth = described_inertia(mabi, fresh)
    rigid = RigidModel(mabi)
    assert np.allclose(truth[0], np.diag(rigid.mass_matrix(fresh[0], rotors=True)))
    squares = []
    for _ in range(20):
        y = described_inertia(mabi, poses)[np.arange(90), axes] + deviation * rng.normal(size=90)
        model = axis_inertia_model(
            mabi, [made(mabi, p, int(k), v, s) for p, k, v, s in zip(poses, axes, y, deviation, strict=True)]
        )
        squares.append(np.mean((model.inertia(fresh) / truth - 1.0) ** 2, axis=0))
    assert np.sqrt(np.mean(squares, axis=0)) == pytest.approx(expected.typical, rel=0.35)
    assert (expected.worst >= expected.typical).all()


def made(robot: Robot, pose: np.ndarray, axis: int, inertia: float, deviation: float) -> AxisMeasurement:
    return AxisMeasurement(
        axis=robot.joint_names[axis],
        pose=pose,
        inertia=inertia,
        viscous=1.0,
        slope=0.0,
        lag=0.0,
        inertia_deviation=deviation,
        viscous_deviation=0.1,
        lines=(),
    )


@pytest.mark.parametrize(("name", "axis"), [("cylindrical", 1), ("tx40", 1), ("iiwa14", 3), ("mabi-max100", 5)])
def test_coarse_sensors_on_other_arms(name: str, axis: int) -> None:
    """Prismatic, coupled and light axes in MuJoCo, encoders in steps of 1e-4, torque noise of 0.5 % of the limit."""
    robot = load_robot(name)
    pose = np.array(motion_limits(robot)[0].middle)
    others = np.arange(robot.n_joints) != axis
    pose[others] += 0.1 * np.arange(robot.n_joints)[others]
    limit = robot.limit("torque")
    noise = tuple(float(x) for x in 5e-3 * np.where(np.isfinite(limit), limit, 100.0))
    sensors = Sensors(position=PositionSensor(resolution=1e-4), motor=TorqueSensor(noise=noise), torque=None)
    motion = sweep_motion(robot, pose, robot.joint_names[axis], seconds=5.0)
    log = run_scenario(robot, motion, Scenario(sensors=sensors, physics=Physics(collisions=False), seed=1)).log
    found = axis_response(log, robot)
    truth = RigidModel(robot).mass_matrix(pose, rotors=True)[axis, axis]
    assert found.usable
    assert abs(found.inertia - truth) < 4.0 * found.inertia_deviation
    assert found.inertia == pytest.approx(truth, rel=0.02)


def test_one_function_for_recordings_of_single_axes(mabi: Robot, tmp_path: Path) -> None:
    """Logs as they are; inertia and friction come back, and an answer like every other."""
    motion = sweep_motion(mabi, POSE, "joint1", rate_hz=1000.0)
    found = sweep(mabi, recorded(mabi, motion, 12.0, 55.0))
    assert found.axes[0].inertia == pytest.approx(12.0, rel=1e-3)
    assert found.logs == ("made up",)
    assert found.verdict == "trusted"
    assert len(found.parameters) == 0
    check_family(found, tmp_path, figures=2)


def test_what_a_measurement_is_held_against(mabi: Robot) -> None:
    motion = sweep_motion(mabi, POSE, "joint1", rate_hz=1000.0)
    good = recorded(mabi, motion, 12.0, 55.0)
    torque = good[Channel.MOTOR_TORQUE] if Channel.MOTOR_TORQUE in good else good[Channel.LINK_TORQUE]
    side = next(channel for channel in good.channels if channel.is_torque)
    reversed_ = sweep(mabi, replace(good, channels=dict(good.channels) | {side: -torque}))
    assert "possible-response" in failing(reversed_)
    assert reversed_.verdict == "untrusted"
    swung = np.array(good[Channel.POSITION])
    swung[:, 1] += 0.5 * (swung[:, 0] - swung[0, 0])
    other = sweep(mabi, replace(good, channels=dict(good.channels) | {Channel.POSITION: swung}))
    assert "others-stand-still" in failing(other)
    noise = 3e3 * np.random.default_rng(0).normal(size=torque.shape)
    vague = sweep(mabi, replace(good, channels=dict(good.channels) | {side: torque + noise}))
    assert "inertia-known" in failing(vague)


def test_a_motion_that_turns_around_is_not_to_be_trusted(mabi: Robot) -> None:
    motion = sweep_motion(mabi, POSE, "joint1", rate_hz=1000.0)
    found = sweep(mabi, recorded(mabi, replace(motion, offset=0.3 * motion.offset), 12.0, 55.0))
    assert "velocity-keeps-sign" in failing(found)


def test_what_parameters_of_all_axes_are_held_against(mabi: Robot) -> None:
    """Measurements that do not belong together, and an inertia below zero."""
    base = structural_base(AxisInertiaRows(mabi), what="axis inertia")
    estimate = Estimate(
        base=base,
        units=("",) * len(base),
        values=np.ones(len(base)),
        covariance=np.eye(len(base)),
        covariance_kind="made up",
        sigma={},
        method="made up",
    )
    model = AxisInertiaModel(mabi, estimate, disagreement=7.0)
    negative = InertiaPrediction(POSE, np.array([1.0, -1.0, 1.0, 1.0, 1.0, 1.0]), np.ones(6))
    assert [c.code for c in model_checks(model, [negative]) if not c.passed] == [
        "measurements-agree",
        "positive-inertia",
    ]
    assert model_checks(None, ()) == []


def test_a_campaign_is_an_answer_too(mabi: Robot, tmp_path: Path) -> None:
    """Poses as an array; one axis alone does not determine all of them, which is said."""
    campaign = plan_sweep(mabi, [POSE], axes=["joint1"])
    assert failing(campaign) == {"campaign-determines"}
    assert campaign.verdict == "trusted"
    assert [note.code for note in campaign.notes] == ["accuracy-not-known"]
    check_family(campaign, tmp_path)
    with pytest.raises(UnknownNameError, match="joint9"):
        plan_sweep(mabi, [POSE], axes=["joint9"])
    with pytest.raises(UnknownNameError, match="no cell named 'kitchen'"):
        plan_sweep(mabi, [POSE], axes=["joint1"], cell="kitchen")
