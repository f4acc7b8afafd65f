"""The simulated closed loop and its derivatives: balances, another integrator, finite differences, files, recovery."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from armid.closed_loop.bodies import fitting_bodies
from armid.closed_loop.command import loop_motion
from armid.closed_loop.controller import JointController, catalogue_controller, read_controller
from armid.closed_loop.fit import LoopMethod, LoopRecord, fit_loop
from armid.closed_loop.loop import LoopDivergedError, LoopMotion, axis_inertia, joined
from armid.closed_loop.plant import LoopPlant
from armid.consistency.prior import nominal_prior
from armid.errors import InputError
from armid.identifiability.structure import structural_base
from armid.identification.metrics import nominal_standard
from armid.kernels.dynamics import inverse_dynamics
from armid.parameters.effects import Effects
from armid.robot import Robot, load_robot
from armid.rows.torque import TorqueRows
from support.chains import pinocchio_model

EFFECTS = Effects(viscous=True, coulomb=True, rotor_inertia=True)
RATE = 5000.0


def plant_of(robot: Robot) -> tuple[LoopPlant, np.ndarray]:
    """The arm ready for a loop, and its true base values."""
    source = TorqueRows(robot, EFFECTS)
    base = structural_base(source)
    return LoopPlant(source, base), base.values(nominal_standard(robot, source.columns))


def controller_of(robot: Robot, **changes: object) -> JointController:
    """Stiff enough to follow, per unit of torque limit."""
    n = robot.n_joints
    size = np.minimum(robot.limit("torque"), 500.0)
    own: dict[str, object] = {"rate": RATE, "kp": 60.0 * size, "kd": 1.5 * size, "ki": np.zeros(n)}
    return JointController(**(own | changes))  # type: ignore[arg-type]


def motion_of(
    robot: Robot, seconds: float, *, controller: JointController | None = None, **changes: object
) -> LoopMotion:
    """A smooth motion from rest with a few reversals per joint, inside the joints' range."""
    plant, values = plant_of(robot)
    t = np.arange(int(seconds * RATE) + 1) / RATE
    middle = 0.5 * (robot.limit("lower") + robot.limit("upper"))
    span = np.minimum(0.2 * (robot.limit("upper") - robot.limit("lower")), 0.6)
    rng = np.random.default_rng(1)
    w = 2.0 * np.pi * rng.uniform(0.8, 2.0, (2, robot.n_joints))
    reference = middle + 0.5 * span * ((1.0 - np.cos(np.outer(t, w[0]))) + 0.5 * (1.0 - np.cos(np.outer(t, w[1]))))
    fields = {
        "plant": plant,
        "controller": controller or controller_of(robot),
        "reference": reference,
        "forward": np.zeros_like(reference),
        "stride": 5,
        "inertia": axis_inertia(plant, values, reference),
    }
    return LoopMotion(**(fields | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["cmu-dd-arm2", "cylindrical", "tx40"])
def test_torque_balances_along_the_simulated_motion(name):
    # Revolute, prismatic, and a wrist whose drives are coupled: M, n and friction together are the inverse dynamics.
    robot = load_robot(name)
    motion = motion_of(robot, 0.3)
    _, values = plant_of(robot)
    got = motion.simulate(values)
    n = robot.n_joints
    q, qd, qdd = (got.motion[:, k * n : (k + 1) * n] for k in range(3))
    rigid = inverse_dynamics(robot, q, qd, qdd)
    drives = (
        robot.drive("rotor_inertia") * qdd + robot.drive("viscous") * qd + robot.drive("coulomb") * np.tanh(qd / 0.01)
    )
    np.testing.assert_allclose(got.torque, rigid + drives, rtol=1e-9, atol=1e-9 * np.abs(got.torque).max())
    np.testing.assert_array_equal(got.position, q)


def test_the_motion_is_that_of_pinocchio_under_runge_kutta():
    robot = load_robot("cmu-dd-arm2")
    motion = motion_of(robot, 0.12)
    _, values = plant_of(robot)
    got = motion.extrapolated(values)
    model = pinocchio_model(robot)
    model.armature = robot.drive("rotor_inertia")
    data, controller, n = model.createData(), motion.controller, robot.n_joints
    viscous, coulomb = robot.drive("viscous"), robot.drive("coulomb")

    def rate(x, tau):
        v = x[n:]
        return np.concatenate([v, pin.aba(model, data, x[:n], v, tau - viscous * v - coulomb * np.tanh(v / 0.01))])

    x, h = np.concatenate([motion.reference[0], np.zeros(n)]), 1.0 / (8 * RATE)
    x[n:] = motion.at_rest().velocity
    last = np.zeros(n)
    positions = []
    for k, command in enumerate(motion.reference):
        if k % motion.stride == 0:
            positions.append(x[:n].copy())
        error = command - x[:n]
        tau = controller.kp * error + controller.kd * (error - last) * RATE
        last = error
        for _ in range(8):
            k1 = rate(x, tau)
            k2 = rate(x + 0.5 * h * k1, tau)
            k3 = rate(x + 0.5 * h * k2, tau)
            x = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + rate(x + h * k3, tau))
    moved = np.abs(np.array(positions) - positions[0]).max()
    # What remains of the integration error after extrapolation.
    np.testing.assert_allclose(got.position, positions, rtol=0.0, atol=1e-6 * moved)


def test_integration_is_of_second_order():
    motion = motion_of(load_robot("cmu-dd-arm2"), 0.3)
    _, values = plant_of(motion.plant.robot)
    once, twice, often = (replace(motion, refinement=k).simulate(values).position for k in (1, 2, 16))
    ratio = np.abs(once - often).max() / np.abs(twice - often).max()
    assert 3.3 < ratio < 4.7


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"ki": np.full(3, 2000.0), "delay_ticks": 2, "derivative_cutoff": np.full(3, 300.0)},
        {"torque_limit": np.array([12.0, 6.0, 1.0])},
    ],
    ids=["plain", "integral-delay-filter", "limited"],
)
def test_derivatives_are_those_of_the_simulation(changes):
    robot = load_robot("cmu-dd-arm2")
    motion = motion_of(robot, 0.25, controller=controller_of(robot, **changes), free_gains=True, free_start=True)
    _, values = plant_of(robot)
    got = joined(list(motion.blocks(values)))
    if "torque_limit" in changes:
        assert np.any(np.abs(got.torque) == changes["torque_limit"])
    r, n, begin = len(values), robot.n_joints, motion.at_rest()

    def outputs(k: int, h: float) -> np.ndarray:
        b, gains, start = values.copy(), motion.controller.gains, begin
        if k < r:
            b[k] += h
        elif k < r + motion.n_gains:
            gains[np.unravel_index(np.flatnonzero(motion.gain_places.ravel() == k)[0], gains.shape)] += h
        else:
            step = np.zeros(2 * n)
            step[k - r - motion.n_gains] = h
            start = replace(begin, position=begin.position + step[:n], velocity=begin.velocity + step[n:])
        moved = motion.with_gains(gains).simulate(b, start=start)
        return np.hstack([moved.position, moved.torque])

    for k in range(motion.n_parameters):
        # Moves the arm by about 1e-7 rad: far below what bends friction, far above round-off.
        h = 1e-7 / np.abs(got.slopes[:, :n, k]).max()
        numeric = (outputs(k, h) - outputs(k, -h)) / (2.0 * h)
        for part in (slice(0, n), slice(n, 2 * n)):
            np.testing.assert_allclose(
                got.slopes[:, part, k], numeric[:, part], rtol=0.0, atol=2e-5 * np.abs(numeric[:, part]).max() + 1e-12
            )


def test_a_loop_that_cannot_be_simulated_says_when_and_why():
    robot = load_robot("cmu-dd-arm2")
    motion = motion_of(robot, 0.3)
    _, values = plant_of(robot)
    with pytest.raises(LoopDivergedError, match="inertia matrix is not positive"):
        motion.simulate(-values)
    weak = replace(motion, controller=controller_of(robot, kp=-1e5 * np.ones(3)))
    with pytest.raises(LoopDivergedError, match="leaves its command"):
        weak.simulate(values)


def test_the_controller_of_the_protocol_comes_with_its_arm():
    controller = catalogue_controller(load_robot("tx40-birdy"))
    assert controller is not None
    assert controller.rate == 5000.0
    np.testing.assert_allclose(controller.kp[0], 341.87 * 35.24)
    assert catalogue_controller(load_robot("panda")) is None


GOOD = "format: armid-controller/1\nrate_hz: 1000\nkp: 100\nkd: {joint_1: 1, joint_2: 2, joint_3: 3}\n"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (GOOD.replace("controller/1", "controller/9"), "begin with 'format: armid-controller/1'"),
        (GOOD + "gain: 1\n", "unknown key 'gain'"),
        (GOOD.replace("rate_hz: 1000", "rate_hz: fast"), "rate_hz: 'fast'"),
        (GOOD.replace("kp: 100\n", ""), "no kp.*'kp: unknown' to have it estimated"),
        (GOOD.replace("kp: 100", "kp: [1, 2]"), "kp: 2 values.*a list of 3"),
        (GOOD.replace("joint_3: 3", "elbow: 3"), "elbow is no joint of this arm|joint_3 is missing"),
        (GOOD + "delay_s: 0.0015\n", "1.500 control ticks"),
        (GOOD + "torque_limit: 0\n", "0 is not positive"),
        (GOOD + "feedforward: 3\n", "none, description, or a robot file"),
    ],
)
def test_a_bad_controller_file_is_refused_in_one_line(tmp_path, text, match):
    path = tmp_path / "controller.yaml"
    path.write_text(text)
    robot = _named()
    with pytest.raises(InputError, match=match):
        read_controller(path, robot)


def _named() -> Robot:
    robot = load_robot("cmu-dd-arm2")
    joints = tuple(replace(joint, name=f"joint_{k + 1}") for k, joint in enumerate(robot.joints))
    return replace(robot, joints=joints)


def test_a_controller_file_is_read_as_written(tmp_path):
    path = tmp_path / "controller.yaml"
    path.write_text(GOOD + "torque_per_unit: 2\ndelay_s: 0.002\nfeedforward: description\nfriction_velocity: 0.02\n")
    controller = read_controller(path, _named())
    np.testing.assert_allclose(controller.kp, [200.0, 200.0, 200.0])
    np.testing.assert_allclose(controller.kd, [2.0, 4.0, 6.0])
    assert controller.delay_ticks == 2
    assert controller.known
    assert controller.feedforward is not None
    np.testing.assert_allclose(controller.friction_velocity, 0.02)
    path.write_text("format: armid-controller/1\nrate_hz: 1000\nkp: unknown\n")
    assert not read_controller(path, _named()).known


def recorded(motion: LoopMotion, values: np.ndarray, noise: float, seed: int) -> LoopRecord:
    """A log of the loop with noise fed back, integrated more finely than the fit does."""
    rng = np.random.default_rng(seed)
    drawn = noise * rng.standard_normal(motion.reference.shape)
    got = replace(motion, refinement=4).simulate(values, noise=drawn)
    torque = got.torque + 0.02 * rng.standard_normal(got.torque.shape)
    return LoopRecord(motion, got.position + drawn[:: motion.stride], torque)


@pytest.mark.parametrize("method", list(LoopMethod))
def test_a_planted_arm_is_found_with_honest_deviations(method):
    robot = load_robot("cmu-dd-arm2")
    motion = motion_of(robot, 1.6)
    plant, values = plant_of(robot)
    record = recorded(motion, values, 1e-5, 3)
    prior = nominal_prior(robot, plant.source.columns)
    start = values * (1.0 + 0.1 * np.random.default_rng(5).standard_normal(len(values)))
    fit = fit_loop([record], start, method, fitting_bodies(plant.base, prior))
    assert fit.converged, fit.why
    z = (fit.values - values) / np.sqrt(np.diag(fit.covariance))
    assert np.sqrt(np.mean(z**2)) < 1.8
    assert np.abs(z).max() < 4.0


def test_unknown_gains_are_estimated_with_the_bodies():
    robot = load_robot("cmu-dd-arm2")
    motion = motion_of(robot, 1.6)
    plant, values = plant_of(robot)
    record = recorded(motion, values, 1e-5, 4)
    true = motion.controller.gains
    loose = replace(motion.with_gains(true * np.array([[1.1], [0.9], [1.0]])), free_gains=True)
    prior = nominal_prior(robot, plant.source.columns)
    fit = fit_loop([replace(record, motion=loose)], values, LoopMethod.ML, fitting_bodies(plant.base, prior))
    assert fit.converged, fit.why
    z = (fit.gains - true)[:2] / fit.gain_deviations[:2]
    assert np.abs(z).max() < 4.0
    assert np.all(fit.gain_deviations[:2] < 0.02 * true[:2])


def test_a_log_whose_rate_does_not_fit_the_controller_is_refused():
    robot = load_robot("cmu-dd-arm2")
    plant, values = plant_of(robot)
    with pytest.raises(InputError, match="whole multiple"):
        loop_motion(plant, controller_of(robot), np.zeros((50, 3)), values, log_rate=1500.0)
