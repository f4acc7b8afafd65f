"""Sensors do what their formulas say, clocks and networks too, and every mistake can be seen in the log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.errors import InputError, ShapeError, UnknownNameError
from armid.kernels.dynamics import gravity
from armid.logs.log import Channel
from armid.motions.needed_torque import limits_are_placeholders, torque_limits
from armid.robot import Drive
from armid.robot.load import load_robot
from armid.simulation.controller_data import read_controller
from armid.simulation.measure import Mistakes, held, measure
from armid.simulation.run import run_motion
from armid.simulation.sensors import (
    ChannelLag,
    CurrentSensor,
    EncoderSide,
    Packets,
    PositionSensor,
    RecordedVelocity,
    SampleClock,
    Sensors,
    TorqueSensor,
    VelocitySensor,
    typical_sensors,
)
from armid.simulation.settings_file import sensors_from
from support.motions import sines


@pytest.fixture(scope="module")
def run():
    robot = load_robot("panda")
    return run_motion(robot, sines(robot, 2.0))


def test_perfect_sensors_say_what_happened(run):
    log = measure(run)
    np.testing.assert_array_equal(log.time, run.time)
    np.testing.assert_array_equal(log[Channel.POSITION], run.q)
    np.testing.assert_array_equal(log[Channel.VELOCITY], run.qd)
    np.testing.assert_array_equal(log[Channel.LINK_TORQUE], run.link_torque)
    np.testing.assert_array_equal(log[Channel.MOTOR_TORQUE], run.motor_torque)
    assert log.joints == run.robot.joint_names


def test_position_noise_and_resolution(run):
    noise = tuple(1e-4 * (i + 1) for i in range(7))
    log = measure(run, Sensors(position=PositionSensor(noise=noise)), seed=1)
    error = log[Channel.POSITION] - run.q
    np.testing.assert_allclose(error.std(axis=0), noise, rtol=0.06)  # 2001 samples: 1.6 % standard error
    coarse = measure(run, Sensors(position=PositionSensor(resolution=0.01)))[Channel.POSITION]
    np.testing.assert_allclose(coarse / 0.01, np.round(coarse / 0.01), atol=1e-9)
    assert np.abs(coarse - run.q).max() <= 0.005 + 1e-12
    motor = measure(run, Sensors(position=PositionSensor(side=EncoderSide.MOTOR)))[Channel.POSITION]
    np.testing.assert_array_equal(motor, run.motor_q)


def test_velocity_measured_differenced_or_absent(run):
    differenced = measure(run, Sensors(velocity=VelocitySensor(RecordedVelocity.DIFFERENCED)))[Channel.VELOCITY]
    np.testing.assert_allclose(differenced[1:], np.diff(run.q, axis=0) / 1e-3, atol=1e-9)
    assert Channel.VELOCITY not in measure(run, Sensors(velocity=VelocitySensor(RecordedVelocity.NONE)))
    noisy = measure(run, Sensors(velocity=VelocitySensor(noise=0.01)))[Channel.VELOCITY]
    assert (noisy - run.qd).std() == pytest.approx(0.01, rel=0.05)


def test_torque_gain_offset_noise_resolution_and_saturation(run):
    sensor = TorqueSensor(gain=2.0, offset=0.5, resolution=0.25, saturation=30.0)
    tau = measure(run, Sensors(torque=sensor))[Channel.LINK_TORQUE]
    expected = np.clip(np.round((2.0 * run.link_torque + 0.5) / 0.25) * 0.25, -30.0, 30.0)
    np.testing.assert_allclose(tau, expected)
    assert np.abs(tau).max() == 30.0
    noisy = measure(run, Sensors(torque=TorqueSensor(noise=0.3)))[Channel.LINK_TORQUE]
    assert (noisy - run.link_torque).std() == pytest.approx(0.3, rel=0.05)
    log = measure(run, Sensors(torque=None, motor=None, current=CurrentSensor(torque_constant=10.0)))
    np.testing.assert_allclose(log[Channel.CURRENT], run.motor_torque / 10.0)
    assert Channel.LINK_TORQUE not in log
    assert Channel.MOTOR_TORQUE not in log


def test_every_sensor_has_its_own_chance(run):
    noisy = PositionSensor(noise=1e-3)
    both = measure(run, Sensors(position=noisy, torque=TorqueSensor(noise=1.0)), seed=3)
    one = measure(run, Sensors(position=noisy), seed=3)
    np.testing.assert_array_equal(both[Channel.POSITION], one[Channel.POSITION])
    other = measure(run, Sensors(position=noisy), seed=4)
    assert (one[Channel.POSITION] != other[Channel.POSITION]).any()


def test_lag_between_channels_is_what_was_asked_for(run):
    log = measure(run, Sensors(lag=ChannelLag(torque=0.010)))
    np.testing.assert_allclose(log[Channel.LINK_TORQUE][10:], run.link_torque[:-10])
    np.testing.assert_array_equal(log[Channel.LINK_TORQUE][:10], np.tile(run.link_torque[0], (10, 1)))
    np.testing.assert_array_equal(log[Channel.POSITION], run.q)
    half = measure(run, Sensors(lag=ChannelLag(position=0.0005)))[Channel.POSITION]
    np.testing.assert_allclose(half[1:], held(run.time, run.q, run.time[1:] - 0.0005, run.qd), atol=1e-12)


def test_values_between_ticks_are_those_of_the_cubic():
    time = np.arange(6) * 0.1
    t = np.linspace(0.0, 0.5, 41)

    def cubic(x):
        return (x**3 - x**2)[:, np.newaxis]

    slopes = (3 * time**2 - 2 * time)[:, np.newaxis]
    np.testing.assert_allclose(held(time, cubic(time), t, slopes), cubic(t), atol=1e-14)


def test_clock_rate_jitter_and_honesty(run):
    slow = measure(run, Sensors(clock=SampleClock(rate_hz=125.0, start=100.0)))
    np.testing.assert_allclose(np.diff(slow.time), 0.008)
    assert slow.time[0] == 100.0
    np.testing.assert_array_equal(slow[Channel.POSITION], run.q[::8])
    jitter = SampleClock(jitter=1e-4)
    honest = measure(run, Sensors(clock=jitter))
    assert (np.diff(honest.time) > 0.0).all()
    assert np.diff(honest.time).std() == pytest.approx(np.sqrt(2.0) * 1e-4, rel=0.06)
    np.testing.assert_allclose(honest[Channel.POSITION], held(run.time, run.q, honest.time, run.qd), atol=1e-12)
    lying = measure(run, Sensors(clock=replace(jitter, honest=False)))
    np.testing.assert_array_equal(lying[Channel.POSITION], honest[Channel.POSITION])
    np.testing.assert_allclose(np.diff(lying.time), 1e-3)


def test_dropped_and_repeated_packets(run):
    log = measure(run, Sensors(packets=Packets(dropped=0.1)))
    assert len(log) == pytest.approx(0.9 * len(run.time), rel=0.03)
    index = np.round(log.time * 1e3).astype(int)
    np.testing.assert_array_equal(log[Channel.POSITION], run.q[index])
    twice = measure(run, Sensors(packets=Packets(repeated=0.1)))
    same = (np.diff(twice[Channel.POSITION], axis=0) == 0.0).all(axis=1)
    assert same.mean() == pytest.approx(0.1, abs=0.025)
    np.testing.assert_array_equal(twice.time, run.time)
    with pytest.raises(InputError, match="probability"):
        Packets(dropped=1.0)


def test_mistakes_are_made_as_people_make_them(run):
    plain = measure(run)
    sign = measure(run, mistakes=Mistakes(wrong_sign=("joint2",)))
    np.testing.assert_array_equal(sign[Channel.LINK_TORQUE][:, 1], -plain[Channel.LINK_TORQUE][:, 1])
    np.testing.assert_array_equal(sign[Channel.LINK_TORQUE][:, 2], plain[Channel.LINK_TORQUE][:, 2])
    degrees = measure(run, mistakes=Mistakes(degrees=True))
    np.testing.assert_allclose(degrees[Channel.POSITION], np.degrees(plain[Channel.POSITION]))
    np.testing.assert_array_equal(degrees[Channel.LINK_TORQUE], plain[Channel.LINK_TORQUE])
    swapped = measure(run, mistakes=Mistakes(swapped=(("joint1", "joint3"),)))
    for channel in (Channel.POSITION, Channel.LINK_TORQUE):
        np.testing.assert_array_equal(swapped[channel][:, [0, 1, 2]], plain[channel][:, [2, 1, 0]])
    light = measure(run, mistakes=Mistakes(gravity_compensated=True))
    expected = run.link_torque - gravity(run.robot, run.q)
    np.testing.assert_allclose(light[Channel.LINK_TORQUE], expected, atol=1e-9)
    with pytest.raises(UnknownNameError, match="elbow"):
        measure(run, mistakes=Mistakes(wrong_sign=("elbow",)))
    assert Mistakes(degrees=True, swapped=(("a", "b"),)).codes == ("degrees", "joint-order")


def test_bad_settings_are_refused(run):
    with pytest.raises(ShapeError, match="noise"):
        measure(run, Sensors(position=PositionSensor(noise=(1.0, 2.0))))
    with pytest.raises(InputError, match="not a number"):
        measure(run, Sensors(position=PositionSensor(noise=float("nan"))))
    with pytest.raises(InputError, match="torque_constant"):
        measure(run, Sensors(current=CurrentSensor(torque_constant=0.0)))
    with pytest.raises(InputError, match="rate_hz"):
        measure(run, Sensors(clock=SampleClock(rate_hz=-1.0)))


def test_typical_sensors_scale_with_the_arm():
    limit = np.array([80.0, 10.0, np.inf])
    sensors = typical_sensors(limit)
    np.testing.assert_allclose(sensors.torque.noise, [0.08, 0.01, 0.1])


def test_controller_data_is_symmetric_with_symmetric_noise():
    robot = load_robot("lwr4plus")
    q = np.random.default_rng(0).normal(size=(300, 7))
    exact = read_controller(robot, q)
    noisy = read_controller(robot, q, gravity_noise=0.02, inertia_noise=0.01, seed=1)
    np.testing.assert_allclose(exact.gravity, gravity(robot, q), atol=1e-9)
    np.testing.assert_array_equal(noisy.inertia, np.swapaxes(noisy.inertia, 1, 2))
    assert (noisy.gravity - exact.gravity).std() == pytest.approx(0.02, rel=0.06)
    assert (noisy.inertia - exact.inertia).std() == pytest.approx(0.01, rel=0.06)
    rounded = read_controller(robot, q, digits=3)
    np.testing.assert_allclose(rounded.gravity * 1e3, np.round(rounded.gravity * 1e3), atol=1e-6)


def test_sensors_of_an_arm_without_torque_limits_are_sized_by_what_it_weighs():
    """An arm of a tonne needs thousands of N m: sensors that end at 120 recorded nothing but their end."""
    panda = load_robot("panda")
    bare = tuple(replace(joint, limits=replace(joint.limits, torque=np.inf)) for joint in panda.joints)
    heavy = replace(panda, joints=bare).with_inertial(100.0 * panda.inertial)
    needed = torque_limits(heavy)
    weight = np.abs(gravity(heavy, np.array([[0.0, 1.5, 0.0, -0.1, 0.0, 1.5, 0.0]]))).max(axis=0)
    assert (needed >= weight).all()
    assert needed[1] > 1000.0
    sensors = sensors_from("typical", heavy, "scenario")
    np.testing.assert_allclose(sensors.torque.saturation, 1.2 * needed)
    np.testing.assert_array_equal(torque_limits(panda), panda.limit("torque"))
    light = replace(heavy, links=tuple(replace(link, inertial=None) for link in heavy.links))
    drives = tuple(replace(joint, drive=Drive()) for joint in light.joints)
    assert np.isfinite(sensors_from("typical", replace(light, joints=drives), "scenario").torque.saturation).all()


def test_torque_limits_that_no_joint_can_use_say_nothing_of_sensors():
    """A description with 10 kN m on every joint of a Panda; one joint that does use its limit vouches for the others."""
    panda = load_robot("panda")
    idle = replace(panda, joints=tuple(replace(j, limits=replace(j.limits, torque=1e4)) for j in panda.joints))
    assert limits_are_placeholders(idle)
    bare = replace(panda, joints=tuple(replace(j, limits=replace(j.limits, torque=np.inf)) for j in panda.joints))
    np.testing.assert_array_equal(torque_limits(idle), torque_limits(bare))
    used = replace(panda.joints[1], limits=replace(panda.joints[1].limits, torque=100.0))
    meant = replace(idle, joints=(idle.joints[0], used, *idle.joints[2:]))
    assert not limits_are_placeholders(meant)
    np.testing.assert_array_equal(torque_limits(meant), meant.limit("torque"))
    light = replace(idle, links=tuple(replace(link, inertial=None) for link in idle.links))
    still = replace(light, joints=tuple(replace(j, drive=Drive()) for j in light.joints))
    np.testing.assert_array_equal(torque_limits(still), still.limit("torque"))
