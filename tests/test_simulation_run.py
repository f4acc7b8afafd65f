"""Motions on the simulated arm: controllers, sides of the transmission, brakes, hands, and what goes wrong."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import numpy as np
import pytest

from armid.errors import InputError, ShapeError, UnknownNameError
from armid.kernels.dynamics import gravity, inverse_dynamics
from armid.kernels.evaluate import evaluate_rows
from armid.motions.trajectory import SampledTrajectory
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide
from armid.parameters.inertial import from_centre_of_mass
from armid.robot import Drive, Elementary, Joint, JointKind, Limits, Link, Move, Robot
from armid.robot.catalogue import catalogue_names
from armid.robot.geometry import Capsule, Geometry, Sphere
from armid.robot.load import load_robot
from armid.rows.torque import TorqueRows
from armid.simulation.controllers import ComputedTorque, HandGuiding, Law, PdGravity, lightest, spread
from armid.simulation.drift import FrictionDrift
from armid.simulation.dynamics import RigidModel
from armid.simulation.faults import CommandError, GainError, SimulationError
from armid.simulation.feedback import Encoders, Feedback
from armid.simulation.motions import Approached, Held
from armid.simulation.physics import OnFault, Physics
from armid.simulation.run import run_motion
from armid.simulation.truth import true_parameters
from support.chains import random_robot
from support.motions import Broken, Sines, pendulum, sines

SLIDING = 0.02
"""[rad/s] Faster than this no joint of these tests can stick within a step."""


@pytest.fixture(scope="module")
def panda():
    return load_robot("panda")


def with_drives(robot, **fields):
    return replace(robot, joints=tuple(replace(j, drive=replace(j.drive, **fields)) for j in robot.joints))


@pytest.mark.parametrize("name", catalogue_names())
def test_every_catalogue_robot_moves_and_obeys_our_equations(name):
    robot = load_robot(name)
    run = run_motion(robot, sines(robot, 0.5), physics=Physics(collisions=False))
    assert run.complete
    assert np.abs(run.q - run.command.q).max() < 0.05
    rigid = inverse_dynamics(robot, run.q, run.qd, run.qdd)
    scale = np.abs(rigid).max()
    np.testing.assert_allclose(run.rigid_torque, rigid, atol=1e-8 * scale)


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("side", list(TorqueSide))
def test_true_parameters_explain_the_torques_of_every_side(panda, share, side):
    robot = with_drives(panda, viscous=1.5, coulomb=0.7, offset=0.2, rotor_inertia=0.3)
    payload = from_centre_of_mass(1.0, [0.0, 0.02, 0.1], np.diag([0.01, 0.01, 0.005]))
    run = run_motion(robot, sines(robot, 0.4), physics=Physics(sensed_friction=share, payload=payload))
    parameters = true_parameters(run.plant, side)
    effects = Effects(viscous=True, coulomb=True, offset=True, torques=side, payload=PayloadRuns.LOADED)
    source = TorqueRows(robot, effects)
    assert tuple(parameters) == source.columns
    rows = evaluate_rows(source, np.hstack([run.q, run.qd, run.qdd]))
    predicted = rows @ np.array([parameters[name] for name in source.columns])
    measured = {
        TorqueSide.LINK: run.link_torque,
        TorqueSide.MOTOR: run.motor_torque,
        TorqueSide.BOTH: np.hstack([run.link_torque, run.motor_torque]),
        TorqueSide.DIFFERENCE: run.motor_torque - run.link_torque,
    }[side]
    slides = (np.abs(run.qd) > SLIDING).all(axis=1)
    assert slides.sum() > 100
    np.testing.assert_allclose(predicted[slides], measured[slides], atol=1e-6)


def test_friction_acts_on_coupled_drives_not_on_joints():
    robot = random_robot(np.random.default_rng(5), 4, coupled=True)
    robot = with_drives(robot, rotor_inertia=1.0, viscous=0.5, coulomb=0.3, offset=0.1)
    run = run_motion(robot, sines(robot, 0.5))
    slides = np.abs(run.qd) > SLIDING
    expected = 0.5 * run.qd + 0.3 * np.sign(run.qd)
    np.testing.assert_allclose(run.friction[slides], expected[slides], atol=1e-6)
    whole = run.rigid_torque + run.motor_qdd + run.friction + 0.1
    np.testing.assert_allclose(run.motor_torque, whole, atol=1e-6)


def test_computed_torque_with_the_right_model_tracks_better_than_with_a_wrong_one(panda):
    motion = sines(panda, 1.0)
    heavy = panda.with_inertial(1.5 * panda.inertial)

    def error(controller):
        run = run_motion(panda, motion, controller=controller)
        return np.abs(run.q - run.command.q).max()

    right = error(ComputedTorque())
    assert right < 1e-3
    assert error(ComputedTorque(model=heavy)) > 5.0 * right


@pytest.mark.parametrize("rate", [1000.0, 4000.0, 8000.0])
def test_control_rates_from_one_to_eight_kilohertz(panda, rate):
    run = run_motion(panda, sines(panda, 0.1), physics=Physics(control_rate_hz=rate))
    assert len(run.time) == round(0.1 * rate) + 1
    assert np.abs(run.q - run.command.q).max() < 0.05


def test_gains_hold_where_the_arm_folds_together():
    """A heavy arm stands up on its own turning axis for a moment, between the postures that a coarse look would take."""
    bodies = (
        from_centre_of_mass(3.0, [0, 0, 0], 0.01 * np.eye(3)),
        from_centre_of_mass(5.0, [1, 0, 0], 0.01 * np.eye(3)),
    )
    turn = Elementary(motion=Move.RZ, variable=True)
    joints = (
        Joint(name="j1", kind=JointKind.REVOLUTE, transforms=(turn,)),
        Joint(name="j2", kind=JointKind.REVOLUTE, transforms=(Elementary(motion=Move.RY, variable=True),)),
    )
    robot = Robot(
        name="folder", joints=joints, links=tuple(Link(f"l{i}", x) for i, x in enumerate(bodies)), gravity=np.zeros(3)
    )
    time = np.linspace(0.0, 4.0, 4001)
    fold = 1.55 * np.exp(-(((time - 1.43) / 0.15) ** 2))
    q = np.column_stack([0.2 * np.sin(5.0 * time), fold])
    qd = np.gradient(q, time, axis=0)
    motion = SampledTrajectory(("j1", "j2"), time, q, qd, np.gradient(qd, time, axis=0))
    assert np.abs(spread(q)[:, 1]).max() < 1.0  # the coarse look misses the fold
    assert np.abs(lightest(RigidModel(robot), q, np.ones(2))[:, 1]).min() > 1.4
    run = run_motion(
        robot, motion, controller=PdGravity(frequency_hz=25.0), physics=Physics(collisions=False, tracking_limit=9.0)
    )
    chatter = np.abs(np.diff(run.motor_torque, n=2, axis=0)).max()
    assert chatter < 1.0, chatter  # N m between ticks of a smooth motion; an unstable loop flips hundreds
    # A joint without damping of its own is not weighed.
    assert lightest(RigidModel(robot), q, np.array([1.0, 0.0])).shape == (3, 2)


def test_encoders_in_the_loop_make_the_torque_rough_and_the_seed_decides_how(panda):
    motion = sines(panda, 0.3)
    smooth = run_motion(panda, motion)
    noisy = Feedback(resolution=1e-5, noise=2e-5, seed=1)
    one, same = (run_motion(panda, motion, physics=Physics(feedback=noisy)) for _ in range(2))
    other = run_motion(panda, motion, physics=Physics(feedback=replace(noisy, seed=2)))

    def roughness(run):
        return np.abs(np.diff(run.motor_torque, n=2, axis=0)).mean()

    assert roughness(one) > 5.0 * roughness(smooth)
    np.testing.assert_array_equal(one.q, same.q)
    assert (one.q != other.q).any()
    assert np.abs(one.q - one.command.q).max() < 0.05
    np.testing.assert_allclose(one.rigid_torque, inverse_dynamics(panda, one.q, one.qd, one.qdd), atol=1e-6)
    with pytest.raises(InputError, match="cutoff_hz"):
        Feedback(cutoff_hz=0.0)


def test_encoders_filter_the_difference_of_what_they_show():
    encoders = Encoders(Feedback(cutoff_hz=50.0), np.zeros(1), np.zeros(1), 400, 1e-3)
    seen = [encoders.read(k, np.array([2e-3 * k]))[1][0] for k in range(400)]  # a ramp of 2 rad/s
    expected = 2.0 * (1.0 - np.exp(-2.0 * np.pi * 50.0 * 1e-3 * np.arange(400)))
    np.testing.assert_allclose(seen, expected, atol=1e-12)


def test_a_control_period_longer_than_the_step_is_divided(panda):
    run = run_motion(panda, sines(panda, 0.1), physics=Physics(control_rate_hz=500.0, step=0.7e-3))
    assert run.plant.model.opt.timestep == pytest.approx(2e-3 / 3)


def test_hand_guiding_needs_no_drive_torque_beyond_gravity_and_drag(panda):
    light = with_drives(panda, viscous=0.1, coulomb=0.05)
    run = run_motion(light, sines(light, 1.0), controller=HandGuiding())
    assert run.complete
    moved = np.ptp(run.q, axis=0)
    assert (moved > 0.02).all()
    assert np.abs(run.external_torque).max() > 0.1
    # The sensor sees what the arm needs less what the hand gives.
    expected = run.rigid_torque - run.external_torque + run.friction
    np.testing.assert_allclose(run.link_torque, expected, atol=1e-9)


def test_a_locked_joint_stands_still_and_its_sensor_reads_the_reaction(panda):
    run = run_motion(panda, sines(panda, 0.5), physics=Physics(locked=("joint2",)))
    assert run.complete
    assert np.ptp(run.q[:, 1]) < 1e-12
    assert not run.motor_torque[:, 1].any()
    rigid = inverse_dynamics(panda, run.q, run.qd, run.qdd)
    np.testing.assert_allclose(run.link_torque[:, 1], rigid[:, 1], atol=1e-9)
    np.testing.assert_allclose(run.rigid_torque, rigid, atol=1e-5)
    with pytest.raises(UnknownNameError, match="joint9"):
        run_motion(panda, sines(panda), physics=Physics(locked=("joint9",)))


def test_a_brake_holds_a_drive_not_a_joint():
    robot = random_robot(np.random.default_rng(6), 3, coupled=True)
    robot = with_drives(robot, rotor_inertia=1.0, viscous=0.5, coulomb=0.1, offset=0.0)
    run = run_motion(robot, sines(robot, 0.5), physics=Physics(locked=("j2",)))
    assert np.ptp(run.q[:, 1]) < 1e-12
    joints = run.q @ robot.coupling.T
    assert (np.ptp(joints, axis=0) > 0.01).all()  # the second joint is moved by the first drive
    assert np.abs(run.q - run.command.q)[:, [0, 2]].max() < 0.05
    np.testing.assert_allclose(run.rigid_torque, inverse_dynamics(robot, run.q, run.qd, run.qdd), atol=1e-5)


def test_coupled_elastic_drives_obey_the_equations():
    robot = random_robot(np.random.default_rng(7), 3, coupled=True)
    robot = with_drives(robot, rotor_inertia=1.0, viscous=0.5, coulomb=0.1, offset=0.2, stiffness=1e4, damping=20.0)
    run = run_motion(robot, sines(robot, 0.3), physics=Physics(elastic=True, sensed_friction=0.5))
    np.testing.assert_allclose(run.rigid_torque, inverse_dynamics(robot, run.q, run.qd, run.qdd), atol=1e-6)
    spring = 1e4 * (run.motor_q - run.q) + 20.0 * (run.motor_qd - run.qd)
    np.testing.assert_allclose(run.link_torque, spring, atol=1e-6)


def test_elastic_transmissions_bend_by_torque_over_stiffness(panda):
    robot = with_drives(panda, stiffness=2e4, damping=30.0)
    soft = Physics(elastic=True, stiffness=2e4, damping=(30.0,) * 7)
    run = run_motion(panda, Held(np.array([0.0, 0.3, 0.0, -1.5, 0.0, 1.0, 0.0]), 1.0), physics=soft)
    bend = run.motor_q[-1] - run.q[-1]
    np.testing.assert_allclose(bend, gravity(robot, run.q[-1:])[0] / 2e4, atol=2e-5)  # dry friction holds the rest
    run = run_motion(robot, sines(robot, 0.3), physics=Physics(elastic=True, sensed_friction=0.3))
    np.testing.assert_allclose(run.rigid_torque, inverse_dynamics(robot, run.q, run.qd, run.qdd), atol=1e-6)
    spring = 2e4 * (run.motor_q - run.q) + 30.0 * (run.motor_qd - run.qd)
    np.testing.assert_allclose(run.link_torque, spring, atol=1e-6)


def test_elastic_joints_need_a_stiffness(panda):
    with pytest.raises(InputError, match="no drive has a finite stiffness"):
        run_motion(panda, sines(panda), physics=Physics(elastic=True))


def test_a_transmission_too_stiff_to_simulate_is_named():
    robot = pendulum(Drive(rotor_inertia=1e-9, stiffness=1e6))
    with pytest.raises(InputError, match="vibration"):
        run_motion(robot, Held(np.zeros(1), 0.1), physics=Physics(elastic=True))


def test_friction_falls_as_the_drives_warm_up(panda):
    robot = with_drives(panda, viscous=2.0, coulomb=1.0)
    drift = FrictionDrift(start=25.0, end=65.0, time_constant=0.5)
    run = run_motion(robot, sines(robot, 1.5), physics=Physics(drift=drift))
    slides = np.abs(run.qd) > SLIDING
    viscous, coulomb = run.friction_scale[:, :1], run.friction_scale[:, 1:]
    expected = 2.0 * viscous * run.qd + coulomb * np.sign(run.qd)
    np.testing.assert_allclose(run.friction[slides], expected[slides], atol=1e-6)
    # The balance with MuJoCo's own forces holds all along, so the friction that acted is the one recorded.
    np.testing.assert_allclose(run.rigid_torque, inverse_dynamics(robot, run.q, run.qd, run.qdd), atol=1e-6)
    assert run.friction_scale[-1, 0] == pytest.approx(1.0 - 0.02 * 40.0 * (1.0 - np.exp(-3.0)), abs=0.02)
    np.testing.assert_allclose(drift.scales(np.array([0.0]))[0], 1.0)
    with pytest.raises(InputError, match="time_constant"):
        FrictionDrift(time_constant=0.0)


def test_the_same_run_twice_is_the_same(panda):
    one, other = (run_motion(panda, sines(panda, 0.2)) for _ in range(2))
    np.testing.assert_array_equal(one.q, other.q)
    np.testing.assert_array_equal(one.link_torque, other.link_torque)


def test_a_long_run_is_faster_than_five_seconds(panda):
    motion = sines(panda, 27.0)
    before = process_time()
    run = run_motion(panda, motion)
    assert len(run.time) == 27001
    assert process_time() - before < 5.0


# What goes wrong


def test_unstable_gains_are_refused_before_anything_moves(panda):
    gains = PdGravity(kp=(1e7,) * 7, kd=(1e5,) * 7)
    with pytest.raises(GainError, match=r"unstable at 1000 Hz.*lower the gains") as caught:
        run_motion(panda, sines(panda), controller=gains)
    assert caught.value.radius > 1.0
    with pytest.raises(ShapeError, match="expected one number, or"):
        run_motion(panda, sines(panda), controller=PdGravity(kp=(1.0,), kd=(1.0,)))


def test_an_arm_that_leaves_its_limits_says_where_it_was_sent_and_what_helps(panda):
    weak = PdGravity(kp=(1.0,) * 7, kd=(1.0,) * 7, model=panda.with_inertial(0.1 * panda.inertial))
    free = Physics(collisions=False, tracking_limit=100.0)
    with pytest.raises(SimulationError, match=r"left its limits: at .*, allowed .* to .*, commanded .*--margin"):
        run_motion(panda, sines(panda, 3.0), controller=weak, physics=free)


def test_gains_too_low_to_carry_the_arm_lose_the_command(panda):
    weak = PdGravity(kp=(1.0,) * 7, kd=(1.0,) * 7, model=panda.with_inertial(0.1 * panda.inertial))
    with pytest.raises(SimulationError, match=r"stopped after .* away from its command") as caught:
        run_motion(panda, sines(panda, 3.0), controller=weak, physics=Physics(collisions=False))
    assert caught.value.fault.code in ("tracking-lost", "position-limit")
    run = run_motion(
        panda, sines(panda, 3.0), controller=weak, physics=Physics(collisions=False, on_fault=OnFault.RECORD)
    )
    assert not run.complete
    assert run.faults[-1].severity == "error"
    assert 0 < len(run.time) < 3001
    assert np.isfinite(run.link_torque).all()


def test_a_motor_that_pushes_the_wrong_way_is_stopped_not_exploded():
    class Runaway:
        def law(self, robot, plant, reference, period):
            nothing = lambda q: np.zeros((1, 1))  # noqa: E731
            return Law(
                torque=lambda k, q, qd: 50.0 * (qd + 1.0), hand=None, tracks=False, stiffness=nothing, damping=nothing
            )

    run = run_motion(pendulum(), Held(np.zeros(1), 2.0), controller=Runaway(), physics=Physics(on_fault=OnFault.RECORD))
    assert run.faults[-1].code == "diverged"
    assert np.isfinite(run.q).all()


def test_nan_torque_is_a_fault(tmp_path, monkeypatch):
    class Nan:
        def law(self, robot, plant, reference, period):
            nothing = lambda q: np.zeros((1, 1))  # noqa: E731
            return Law(
                torque=lambda k, q, qd: np.full(1, np.nan if k > 10 else 0.0),
                hand=None,
                tracks=False,
                stiffness=nothing,
                damping=nothing,
            )

    monkeypatch.chdir(tmp_path)
    with pytest.raises(SimulationError, match="no finite state"):
        run_motion(pendulum(), Held(np.zeros(1), 1.0), controller=Nan())
    assert not list(tmp_path.iterdir())  # no MUJOCO_LOG.TXT


def test_torque_beyond_the_limit_saturates_and_is_recorded(panda):
    weak = replace(panda, joints=tuple(replace(j, limits=replace(j.limits, torque=15.0)) for j in panda.joints))
    motion = Held(np.array([0.0, 0.5, 0.0, -1.5, 0.0, 1.0, 0.0]), 0.2)
    physics = Physics(on_fault=OnFault.RECORD)
    run = run_motion(weak, motion, physics=physics)
    assert np.abs(run.motor_torque).max() <= 15.0
    assert run.faults[0].code == "torque-saturated"
    assert "joint2" in run.faults[0].message


@pytest.mark.parametrize(
    ("motion", "message"),
    [
        (Broken(np.array([0.0, np.nan])), "not finite"),
        (Broken(np.array([0.0, np.inf])), "not finite"),
        (Broken(np.array([0.0, 2.0])), "position .* limits -1"),
        (Broken(np.array([0.0, 0.0]), extra={"qd": np.full((101, 1), 9.0)}), "velocity 9"),
        (Broken(np.array([0.0, 0.0]), duration=0.0), "positive duration"),
        (Broken(np.array([0.5, 0.5])), "'hinge'.*0.5 away in position"),
    ],
)
def test_commands_that_cannot_be_followed_are_refused(motion, message):
    robot = pendulum()
    joint = replace(robot.joints[0], limits=Limits(lower=-1.0, upper=1.0, velocity=3.0))
    with pytest.raises(CommandError, match=message):
        run_motion(replace(robot, joints=(joint,)), motion, start=np.zeros(1))


def test_wrong_shapes_and_settings_are_refused(panda):
    with pytest.raises(ShapeError, match="one column per joint"):
        run_motion(panda, Held(np.zeros(3), 1.0))
    with pytest.raises(ShapeError, match="start"):
        run_motion(panda, sines(panda), start=np.zeros(3))
    with pytest.raises(InputError, match="control_rate_hz"):
        Physics(control_rate_hz=0.0)
    with pytest.raises(InputError, match="step"):
        Physics(step=float("nan"))


def test_a_moving_start_needs_an_approach(panda):
    motion = sines(panda, 0.3)
    home = motion.centre.copy()
    with pytest.raises(CommandError, match=r"away in velocity.*approach"):
        run_motion(panda, motion, start=home)
    whole = Approached(home, 1.0, motion)
    q, qd, qdd = whole.sample(np.array([0.0, 1.0 - 1e-9, 1.0]))
    np.testing.assert_allclose(q[1], q[2], atol=1e-6)
    np.testing.assert_allclose(qd[1], qd[2], atol=1e-6)
    np.testing.assert_allclose(qdd[1], qdd[2], atol=1e-5)
    run = run_motion(panda, whole, start=home)
    assert run.complete
    assert len(run.time) == 1301


def test_columns_follow_names_not_places(panda):
    class Named(Sines):
        joint_names = panda.joint_names[::-1]

    base = sines(panda, 0.1)
    turned = Named(base.centre[::-1], base.amplitude[::-1], base.frequency[::-1], 0.1)
    np.testing.assert_allclose(run_motion(panda, turned).command.q, run_motion(panda, base).command.q)

    class Strange(Sines):
        joint_names = (*panda.joint_names[:6], "elbow")

    with pytest.raises(CommandError, match="'elbow'"):
        run_motion(panda, Strange(base.centre, base.amplitude, base.frequency, 0.1))


def test_links_that_touch_stop_the_motion():
    # An arm of 0.6 m swinging towards a ball fixed to the base.
    robot = pendulum(geometry=(Geometry(Capsule(0.03, 0.5), place(0.0, 0.0, 0.35)),))
    robot = replace(robot, joints=robot.joints, geometry=(Geometry(Sphere(0.1), place(0.0, -0.5, 0.0)),))
    two = replace(
        robot,
        joints=(replace(robot.joints[0], name="first"), robot.joints[0]),
        links=(replace(robot.links[0], name="base_link", geometry=()), robot.links[0]),
    )
    motion = Sines(np.zeros(2), np.array([0.0, 1.5]), np.array([1.0, 0.25]), 1.0)
    with pytest.raises(SimulationError, match=r"arm touches base|base touches arm") as caught:
        run_motion(two, motion)
    assert caught.value.fault.code == "collision"
    assert run_motion(two, motion, physics=Physics(collisions=False)).complete


def place(x, y, z):
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T
