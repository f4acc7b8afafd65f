"""Elastic transmissions: jets, rows with one and with two sensors, stiffness and motor inertia, a real arm with both encoders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from armid.errors import InputError, UnknownNameError
from armid.estimation.least_squares import OrdinaryLeastSquares
from armid.identifiability.structure import structural_base
from armid.information.accumulate import accumulate
from armid.kernels.dynamics import inverse_dynamics
from armid.kernels.evaluate import evaluate_rows, reference_rows
from armid.logs.conditioning import Differentiator, LowPass, derivatives, low_pass
from armid.logs.log import Channel, Log
from armid.logs.read import ReadOptions, unchecked_log
from armid.parameters.effects import Effects
from armid.recursion.jets import Jet, JetScalars
from armid.recursion.scalars import FLOATS
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.rows.elastic import OneSensorRows, TwoSensorRows, four_derivatives, link_position
from armid.rows.torque import TorqueRows
from armid.simulation.physics import Physics
from armid.simulation.scenario import Scenario, run_scenario
from armid.simulation.sensors import PositionSensor, Sensors, TorqueSensor
from armid.transmission.two_encoders import TransmissionSearch, gravity_loads
from support.chains import random_robot
from support.realdata import ROOT, real_data

K = np.array([8000.0, 6000.0, 3000.0])
B = np.array([2.0, 1.5, 0.5])


def wave(t: np.ndarray, order: int, seed: int, n: int = 3) -> np.ndarray:
    """Derivatives of a motion of several sines, shape [n_samples, n]."""
    rng = np.random.default_rng(seed)
    w, phase = rng.uniform(2.0, 7.0, (2, 4, n))
    angle = t[:, np.newaxis, np.newaxis] * w + phase * 6.0 + order * np.pi / 2
    return (0.3 * w**order * np.sin(angle)).sum(axis=1)


def joint_torque(robot: Robot, t: np.ndarray, seed: int) -> np.ndarray:
    return inverse_dynamics(robot, *(wave(t, k, seed) for k in range(3)))


def second_derivative(f: np.ndarray, h: float) -> np.ndarray:
    """Sixth-order central differences of seven values around the middle."""
    weights = np.array([2, -27, 270, -490, 270, -27, 2]) / (180.0 * h**2)
    return np.tensordot(weights, f, axes=(0, 0))


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("cmu-dd-arm2")


def test_jets_are_derivatives() -> None:
    def f(t: float) -> float:
        return np.sin(t * t) * (2.0 - np.cos(3.0 * t)) + 5.0 * t

    t, h = 0.7, 1e-4
    scalars = JetScalars(FLOATS)
    x = Jet(t, 1.0, 0.0)
    out = scalars.sin(x * x) * (scalars.constant(2.0) - scalars.cos(3.0 * x)) + 5.0 * x
    assert out.x == pytest.approx(f(t))
    assert out.d == pytest.approx((f(t + h) - f(t - h)) / (2 * h), abs=1e-6)
    assert out.dd == pytest.approx((f(t + h) - 2 * f(t) + f(t - h)) / h**2, abs=1e-5)
    assert (1.0 - x).x == pytest.approx(0.3)
    assert (x - 1.0).d == 1.0


@pytest.mark.parametrize("seed", [0, 1])
def test_one_sensor_rows_hold_the_second_derivative_of_the_joint_torque(seed: int) -> None:
    """Eq. 4 (corrected): tau = tau_J + B/K tau_J'' + B qdd, tau_J'' by finite differences, on random chains."""
    chain = random_robot(np.random.default_rng(seed), 3)
    t, h = np.array([0.4, 1.1]), 2e-3
    around = np.array([joint_torque(chain, t + k * h, seed) for k in range(-3, 4)])
    tau = around[3] + B / K * second_derivative(around, h) + B * wave(t, 2, seed)
    source = OneSensorRows(chain, Effects(), tuple(B / K))
    x = np.hstack([wave(t, k, seed) for k in range(5)])
    pi = np.array([value_of(chain, name) for name in source.columns])
    assert np.allclose(reference_rows(source, x) @ pi, tau, rtol=1e-6, atol=1e-6)
    apart = OneSensorRows(chain, Effects())
    both = np.array([product_of(chain, name) for name in apart.columns])
    assert np.allclose(reference_rows(apart, x) @ both, tau, rtol=1e-6, atol=1e-6)


def value_of(robot: Robot, name: str) -> float:
    owner, quantity = name.split(".")
    index = int(owner[-1]) - 1
    order = ("mass", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
    return float(B[index]) if quantity == "rotor_inertia" else float(robot.inertial[10 * index + order.index(quantity)])


def product_of(robot: Robot, name: str) -> float:
    if "*" not in name:
        return value_of(robot, name)
    ratio, parameter = name.split("*")
    j = int(ratio.split(".")[0][5:]) - 1
    return float(B[j] / K[j]) * value_of(robot, parameter)


def test_one_sensor_rows_give_the_ratio_and_the_links(robot: Robot) -> None:
    """Eq. 5: from q alone, its products with B/K come out next to the parameters themselves."""
    t = np.linspace(0.0, 6.0, 700)
    x = np.hstack([wave(t, k, 3) for k in range(5)])
    source = OneSensorRows(robot, Effects())
    h = 1e-3
    around = np.array([joint_torque(robot, t + k * h, 3) for k in range(-3, 4)])
    tau = around[3] + B / K * second_derivative(around, h) + B * wave(t, 2, 3)
    base = structural_base(source)
    A = evaluate_rows(source, x)[:, :, base.independent].reshape(-1, len(base))
    scale = np.linalg.norm(A, axis=0)
    values = np.linalg.lstsq(A / scale, tau.ravel(), rcond=None)[0] / scale
    truth = base.values([product_of(robot, name) for name in source.columns])
    found, wanted = (dict(zip(base.names, v, strict=True)) for v in (values, truth))
    assert found["link3.mz"] == pytest.approx(wanted["link3.mz"], rel=1e-4)
    ratio = found["joint3.ratio*link3.mz"] / found["link3.mz"]
    assert ratio == pytest.approx(B[2] / K[2], rel=1e-2)


def test_two_sensor_rows_give_links_stiffness_and_motor_inertia(robot: Robot) -> None:
    """Eq. 6: a homogeneous link equation and the motor equation that sets the scale."""
    t, h = np.linspace(0.0, 6.0, 400), 1e-3
    around = np.array([joint_torque(robot, t + k * h, 5) for k in range(-3, 4)])
    slope = np.tensordot(np.array([-1, 9, -45, 0, 45, -9, 1]) / (60 * h), around, axes=(0, 0))
    q, qd, qdd = (wave(t, k, 5) for k in range(3))
    theta, thetad, thetadd = q + around[3] / K, qd + slope / K, qdd + second_derivative(around, h) / K
    viscous = np.array([1.0, 2.0, 3.0])
    tau = B * thetadd + around[3] + viscous * thetad
    source = TwoSensorRows(robot, Effects(viscous=True))
    x = np.hstack([q, qd, qdd, theta, thetad, thetadd])
    y = np.hstack([np.zeros_like(tau), tau])
    base = structural_base(source)
    A = evaluate_rows(source, x)[:, :, base.independent].reshape(-1, len(base))
    scale = np.linalg.norm(A, axis=0)
    found = dict(zip(base.names, np.linalg.lstsq(A / scale, y.ravel(), rcond=None)[0] / scale, strict=True))
    for j in range(3):
        assert found[f"joint{j + 1}.stiffness"] == pytest.approx(K[j], rel=1e-5)
        assert found[f"joint{j + 1}.rotor_inertia"] == pytest.approx(B[j], rel=1e-4)
        assert found[f"joint{j + 1}.motor_viscous"] == pytest.approx(viscous[j], rel=1e-3)
    assert found["link3.mx"] == pytest.approx(robot.inertial[21], rel=1e-4)


def test_link_position_from_motor_position_and_torque() -> None:
    theta, tau = np.array([[1.0, 2.0]]), np.array([[80.0, -30.0]])
    assert np.allclose(link_position(theta, tau, [8000.0, np.inf]), [[0.99, 2.0]])
    with pytest.raises(InputError, match="stiffness"):
        link_position(theta, tau, [8000.0, -1.0])


def test_four_derivatives_of_a_sine() -> None:
    t = np.arange(0.0, 4.0, 1e-3)
    w = 2 * np.pi * 1.5
    out = four_derivatives(np.sin(w * t)[:, np.newaxis], 1000.0, 30.0)
    inside = slice(400, -400)
    waves = (np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t), -(w**3) * np.cos(w * t), w**4 * np.sin(w * t))
    for k, expected in enumerate(waves):
        assert np.abs(out[inside, k] - expected[inside]).max() < 1e-4 * w**k
    with pytest.raises(InputError, match="cut-off 600 Hz"):
        four_derivatives(np.zeros((100, 1)), 1000.0, 600.0)
    with pytest.raises(InputError, match="of signal"):
        four_derivatives(np.zeros((100, 1)), 1000.0, 10.0)


def elastic_log(lag: int = 0, noise: float = 0.0) -> Log:
    """One joint against a spring: 250 Hz, inertia and gravity behind it."""
    rate, stiffness, rotor = 250.0, 4e6, 1500.0
    t = np.arange(0.0, 20.0, 1.0 / rate)
    wide = [wave(t, k, 8, n=1)[:, 0] for k in range(5)]
    link_torque = 900.0 * wide[2] + 3000.0 * np.sin(wide[0])
    theta = wide[0] + link_torque / stiffness
    rng = np.random.default_rng(0)
    thetadd = np.gradient(np.gradient(theta, t), t)
    tau = link_torque + rotor * thetadd + 300.0 * np.sign(wide[1]) + 500.0 * wide[1]
    q = np.roll(wide[0], lag) + noise * rng.normal(size=len(t))
    arrays = {Channel.POSITION: q, Channel.MOTOR_POSITION: theta, Channel.MOTOR_TORQUE: tau}
    return Log(
        name="made up",
        joints=("joint1",),
        time=t,
        channels={c: v[:, np.newaxis] for c, v in arrays.items()},
        named=True,
    )


def test_stiffness_and_motor_inertia_where_both_sides_are_measured() -> None:
    found = TransmissionSearch(cutoff=30.0).fit([elastic_log()], "joint1")
    assert found.stiffness == pytest.approx(4e6, rel=0.02)
    assert found.rotor_inertia == pytest.approx(1500.0, rel=0.02)
    assert found.coulomb == pytest.approx(300.0, rel=0.1)
    assert not found.notes


def test_encoders_out_of_step_are_noticed_and_then_refused() -> None:
    slight = TransmissionSearch(cutoff=30.0).fit([elastic_log(lag=1)], "joint1")
    assert [n.code for n in slight.notes] == ["encoder-lag"]
    assert slight.lag == pytest.approx(0.004, rel=0.15)
    assert slight.stiffness == pytest.approx(4e6, rel=0.1)
    with pytest.raises(InputError, match="not synchronised"):
        TransmissionSearch(cutoff=30.0).fit([elastic_log(lag=10)], "joint1")


def test_joint_torque_sensors_need_the_link_equation_only() -> None:
    """Eq. 7: MuJoCo with springs in the joints; links identified from joint torque as if the arm were rigid."""
    stiff = load_robot("cmu-dd-arm2")
    pairs = zip(stiff.joints, (4000.0, 3000.0, 1500.0), strict=True)
    arm = replace(stiff, joints=tuple(replace(j, drive=replace(j.drive, stiffness=k)) for j, k in pairs))
    scenario = Scenario(physics=Physics(elastic=True, sensed_friction=0.0, collisions=False, tracking_limit=1.0))
    run = run_scenario(arm, Wiggle(), scenario).run
    assert np.abs(run.motor_q - run.q).max() > 1e-3
    source = TorqueRows(arm)
    base = structural_base(source)
    information = accumulate(source, np.hstack([run.q, run.qd, run.qdd]), run.link_torque)
    found = OrdinaryLeastSquares().fit(information, base)
    assert np.allclose(found.values, base.values(arm.inertial), rtol=1e-3, atol=1e-3)


class Wiggle:
    """Two sines per joint within the velocity limits."""

    duration = 3.0

    def sample(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return tuple(wave(np.asarray(t), k, 11) * 0.6 for k in range(3))  # type: ignore[return-value]


def test_recordings_without_both_encoders_are_refused() -> None:
    log = elastic_log()
    bare = Log(
        name="bare", joints=log.joints, time=log.time, channels={Channel.POSITION: log[Channel.POSITION]}, named=True
    )
    with pytest.raises(UnknownNameError, match="motor"):
        TransmissionSearch().fit([bare], "joint1")
    with pytest.raises(UnknownNameError, match="joint9"):
        TransmissionSearch().fit([log], "joint9")
    with pytest.raises(InputError, match="there are none"):
        TransmissionSearch().fit([], "joint1")


def spoilt(channel: Channel, change: Callable[[np.ndarray], np.ndarray]) -> Log:
    log = elastic_log()
    return replace(log, channels=dict(log.channels) | {channel: change(np.array(log[channel]))})


def holed(x: np.ndarray) -> np.ndarray:
    x[100] = np.nan
    return x


@pytest.mark.parametrize(
    ("channel", "change", "match"),
    [
        (Channel.POSITION, lambda x: 0.0 * x, "does not move"),
        (Channel.MOTOR_POSITION, lambda x: 250.0 * x, "runs 249 times as far"),
        (Channel.MOTOR_POSITION, lambda x: -x, "runs -0.995 times as far"),
        (Channel.POSITION, holed, "1 values of position are not finite"),
        (Channel.MOTOR_TORQUE, holed, "1 values of torque.motor are not finite"),
    ],
)
def test_signals_that_do_not_belong_together_are_refused(
    channel: Channel, change: Callable[[np.ndarray], np.ndarray], match: str
) -> None:
    with pytest.raises(InputError, match=match):
        TransmissionSearch(cutoff=30.0).fit([spoilt(channel, change)], "joint1")


def test_torque_of_the_wrong_sign_gives_an_impossible_transmission() -> None:
    found = TransmissionSearch(cutoff=30.0).fit([spoilt(Channel.MOTOR_TORQUE, np.negative)], "joint1")
    assert {n.code for n in found.notes if n.severity.value == "error"} == {"impossible-transmission"}


def test_gaps_are_refused() -> None:
    log = elastic_log()
    kept = np.ones(len(log), dtype=bool)
    kept[1000:1100] = False
    with pytest.raises(InputError, match="samples are missing"):
        TransmissionSearch(cutoff=30.0).fit([log.selected(kept)], "joint1")


KR300 = ROOT / "docs" / "robots" / "kr300.yaml"


def test_kr300_transmissions_agree_between_recordings() -> None:
    """Axes 2 and 3: stiffness of both recordings within their intervals; axis 1, without gravity, is said to be weak."""
    options = ReadOptions(data_root=real_data())
    mapping = ROOT / "docs" / "mappings"
    arm = load_robot(str(KR300))
    logs = [unchecked_log(mapping / f"kr300-{name}-elastic.yaml", options=options) for name in "AB"]
    for joint, low, high in (("joint2", 3e6, 7e6), ("joint3", 3e6, 7e6)):
        first, second = (TransmissionSearch().fit([log], joint, arm) for log in logs)
        spread = np.hypot(first.standard_deviations[0], second.standard_deviations[0])
        assert abs(first.stiffness - second.stiffness) < 2.0 * spread
        assert low < first.stiffness < high
        assert 1.5e-3 < first.lag < 4e-3
        assert abs(first.lag - second.lag) < 0.5e-3
        inertia = np.hypot(first.standard_deviations[1], second.standard_deviations[1])
        assert abs(first.rotor_inertia - second.rotor_inertia) < 3.0 * inertia
    weak = TransmissionSearch().fit(logs, "joint1", arm)
    codes = {n.code: n.message for n in weak.notes}
    assert {"weak-deflection", "unloaded-joint"} <= set(codes)
    assert weak.load_deflection < weak.encoder_error
    assert f"{weak.encoder_error:.2g} rad" in codes["weak-deflection"]
    assert "--motor-inertia" in codes["unloaded-joint"]


def test_kr300_with_the_motors_inertia_known() -> None:
    """The recordings come with motor inertias and stiffnesses of their makers: given the former, the latter come out."""
    from scipy.io import loadmat

    options = ReadOptions(data_root=real_data())
    arm = load_robot(str(KR300))
    logs = [unchecked_log(ROOT / "docs" / "mappings" / f"kr300-{name}-elastic.yaml", options=options) for name in "AB"]
    made = loadmat(real_data("dynamics", "kr300", "rec_A.mat"), squeeze_me=True, struct_as_record=False)["para"]
    names = ("joint1", "joint2", "joint3")
    inertia = dict(zip(names, (made.J_mr * made.u**2)[:3].tolist(), strict=True))
    found = [TransmissionSearch(motor_inertia=inertia).fit(logs, name, arm) for name in names]
    for one, stiffness in zip(found, made.c_rad_ff[:3], strict=True):
        assert one.rotor_inertia == inertia[one.joint]
        assert one.standard_deviations[1] == 0.0
        assert abs(one.stiffness - stiffness) < 3.0 * one.standard_deviations[0]
        assert one.standard_deviations[0] < 0.2 * one.stiffness
    # One clock behind all three link encoders.
    assert np.ptp([one.lag for one in found]) < 0.3e-3


def test_motor_inertia_makes_up_for_missing_gravity() -> None:
    """A vertical joint in MuJoCo, encoders off centre: stiffness only with the motor's inertia, and then within 3 %."""
    arm = load_robot("cmu-dd-arm2")
    scenario = Scenario(
        physics=Physics(elastic=True, stiffness=(40000.0, 30000.0, 15000.0), collisions=False, tracking_limit=1.0),
        sensors=Sensors(position=PositionSensor(resolution=2.0 * np.pi / 2**20)),
    )
    log = run_scenario(arm, Slow(), scenario).log
    off_centre = log[Channel.POSITION] + 2e-4 * np.sin(log[Channel.POSITION] + 0.5)
    log = replace(log, channels=dict(log.channels) | {Channel.POSITION: off_centre})
    known = TransmissionSearch(motor_inertia={"joint1": 0.3}).fit([log], "joint1", arm)
    assert known.stiffness == pytest.approx(40000.0, rel=0.03)
    blind = TransmissionSearch(motor_inertia={"joint1": 0.3}, eccentric=False).fit([log], "joint1", arm)
    assert abs(blind.stiffness - 40000.0) > 3.0 * abs(known.stiffness - 40000.0)
    assert not gravity_loads(arm, 0)
    assert gravity_loads(arm, 2)


class Slow:
    """Two sines per joint, one of them slow."""

    duration = 10.0

    def sample(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return tuple(0.6 * wave(np.asarray(t), k, 12) for k in range(3))  # type: ignore[return-value]


def test_stiffness_of_elastic_joints_in_mujoco_within_its_deviation() -> None:
    """Encoders of 20 bits on both sides, friction on the links' side of the spring, motor torque with noise."""
    arm = load_robot("cmu-dd-arm2")
    stiffness = (4000.0, 3000.0, 1500.0)
    encoder = 2.0 * np.pi / 2**20
    scenario = Scenario(
        physics=Physics(elastic=True, stiffness=stiffness, collisions=False, tracking_limit=1.0),
        sensors=Sensors(position=PositionSensor(resolution=encoder, noise=encoder), motor=TorqueSensor(noise=0.1)),
    )
    log = run_scenario(arm, Slow(), scenario).log
    for name, K, B in zip(arm.joint_names, stiffness, arm.drive("rotor_inertia"), strict=True):
        found = TransmissionSearch(cutoff=15.0, eccentric=False).fit([log], name, arm)
        assert abs(found.stiffness - K) < 3.0 * found.standard_deviations[0]
        assert found.standard_deviations[0] < 0.01 * K
        assert abs(found.rotor_inertia - B) < 3.0 * found.standard_deviations[1] + 0.02 * B


def test_two_sensor_form_on_mujoco() -> None:
    """Eq. 6 on a plant that is not ours: links, stiffness and motor inertia of all joints at once from both encoders."""
    arm = load_robot("cmu-dd-arm2")
    stiffness = np.array([4000.0, 3000.0, 1500.0])
    physics = Physics(
        elastic=True, stiffness=tuple(stiffness), sensed_friction=0.0, collisions=False, tracking_limit=1.0
    )
    log = run_scenario(arm, Slow(), Scenario(physics=physics)).log
    smooth = LowPass(1000.0, 30.0, 4)
    sides = [low_pass(log[c], smooth) for c in (Channel.POSITION, Channel.MOTOR_POSITION)]
    x = np.hstack([y for side in sides for y in (side, *derivatives(side, 1000.0, Differentiator.CENTRAL_8))])
    source = TwoSensorRows(arm, Effects(viscous=True, coulomb=True))
    base = structural_base(source)
    filter = LowPass(1000.0, 12.0, 4)
    inside = slice(500, -500, 20)
    A = low_pass(evaluate_rows(source, x)[:, :, base.independent], filter)[inside].reshape(-1, len(base))
    tau = low_pass(log[Channel.MOTOR_TORQUE], filter)[inside]
    y = np.hstack([np.zeros_like(tau), tau]).ravel()
    scale = np.linalg.norm(A, axis=0)
    found = dict(zip(base.names, np.linalg.lstsq(A / scale, y, rcond=None)[0] / scale, strict=True))
    for j, B in enumerate(arm.drive("rotor_inertia")):
        assert found[f"joint{j + 1}.stiffness"] == pytest.approx(stiffness[j], rel=0.01)
        assert found[f"joint{j + 1}.rotor_inertia"] == pytest.approx(B, rel=0.1)
    truth = structural_base(TorqueRows(arm)).values(arm.inertial)
    names = structural_base(TorqueRows(arm)).names
    for name, value in zip(names, truth, strict=True):
        if name in found:
            assert found[name] == pytest.approx(value, rel=0.02, abs=0.01), name


def test_one_sensor_form_on_mujoco() -> None:
    """Eqs. 4-5 with the link encoders alone: stiffness from B / K, the motor torque's dependence on the fourth derivative."""
    arm = load_robot("cmu-dd-arm2")
    stiffness = np.array([400.0, 300.0, 150.0])
    free = tuple(replace(j, drive=replace(j.drive, viscous=0.0, coulomb=0.0, damping=0.0)) for j in arm.joints)
    arm = replace(arm, joints=free)
    physics = Physics(elastic=True, stiffness=tuple(stiffness), damping=0.0, collisions=False, tracking_limit=2.0)
    log = run_scenario(arm, Slow(), Scenario(physics=physics)).log
    x = four_derivatives(log[Channel.POSITION], 1000.0, 12.0)
    tau = low_pass(log[Channel.MOTOR_TORQUE], LowPass(1000.0, 12.0, 6))
    inside = slice(500, -500, 10)
    B = arm.drive("rotor_inertia")

    def error(ratio: float) -> float:
        """What the third joint's torque leaves, as a function of its B / K."""
        source = OneSensorRows(arm, Effects(), (B[0] / stiffness[0], B[1] / stiffness[1], ratio))
        A = evaluate_rows(source, x[inside])[:, 2]
        A = A[:, np.abs(A).max(axis=0) > 0.0]
        y = tau[inside, 2]
        U, s, _ = np.linalg.svd(A / np.linalg.norm(A, axis=0), full_matrices=False)
        U = U[:, s > 1e-9 * s[0]]
        return float(np.linalg.norm(y - U @ (U.T @ y)) / np.linalg.norm(y))

    true = float(B[2] / stiffness[2])
    assert error(true) < 2e-3
    assert error(true) < 0.25 * min(error(0.0), error(2.0 * true))
    tried = true * np.linspace(0.5, 1.5, 21)
    assert tried[np.argmin([error(float(r)) for r in tried])] == pytest.approx(true, rel=0.15)
