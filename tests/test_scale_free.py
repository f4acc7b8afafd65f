"""The same arm ten times as heavy, or in other units of mass, gives the same verdict and the same relative errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.arrays import FloatArray
from armid.consistency.drive_scale import torque_sizes, with_drive_scales
from armid.consistency.prior import nominal_prior
from armid.information.accumulate import accumulate
from armid.kernels.dynamics import inverse_dynamics
from armid.logs.log import Channel, Log
from armid.parameters.effects import effects_of
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.rows.torque import TorqueRows

RATE, SECONDS = 250.0, 16.0
LIGHT = load_robot("cmu-dd-arm2")


def heavier(robot: Robot, factor: float) -> Robot:
    """Every mass, inertia and friction multiplied: all torques are."""
    links = tuple(
        replace(link, inertial=None if link.inertial is None else factor * link.inertial) for link in robot.links
    )
    quantities = ("rotor_inertia", "viscous", "coulomb", "offset")
    joints = tuple(
        replace(joint, drive=replace(joint.drive, **{q: factor * getattr(joint.drive, q) for q in quantities}))
        for joint in robot.joints
    )
    return replace(robot, links=links, joints=joints)


def recorded(factor: float, seed: int) -> Log:
    """A log of the arm `factor` times as heavy; noise in proportion."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(SECONDS * RATE)) / RATE
    n = LIGHT.n_joints
    w, phase = 2.0 * np.pi * rng.uniform(0.1, 0.6, size=(n, 3)), rng.uniform(0.0, 2.0 * np.pi, size=(n, 3))
    angle = w * t[:, None, None] + phase
    q, qd, qdd = ((0.4 * x).sum(axis=2) for x in (np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle)))
    tau = inverse_dynamics(LIGHT, q, qd, qdd) + 0.9 * qd + 1.4 * np.sign(qd) + rng.normal(0.0, 0.05, size=q.shape)
    channels = {Channel.POSITION: q, Channel.LINK_TORQUE: factor * tau}
    return Log(name=f"log {seed}", joints=tuple(LIGHT.joint_names), time=t, channels=channels, named=True)


def identified(factor: float) -> armid.Result:
    return armid.identify(
        heavier(LIGHT, factor), recorded(factor, 0), validate=recorded(factor, 1), friction="viscous,coulomb"
    )


@pytest.fixture(scope="module")
def light() -> armid.Result:
    return identified(1.0)


@pytest.mark.parametrize("factor", [10.0, 1000.0])
def test_a_heavier_arm_has_the_same_relative_errors(light: armid.Result, factor: float) -> None:
    heavy = identified(factor)
    if factor == 10.0:
        assert heavy.verdict == light.verdict
    for part in ("train", "held_out"):
        # The conic program stops within its own tolerance, not at round-off.
        assert heavy.relative_error[part] == pytest.approx(light.relative_error[part], rel=1e-3)
    assert heavy.estimate.values == pytest.approx(factor * light.estimate.values, rel=1e-5, abs=1e-5 * factor)
    assert heavy.estimate.standard_deviations == pytest.approx(factor * light.estimate.standard_deviations, rel=1e-3)
    friction = [k for k, name in enumerate(light.consistent.names) if name.endswith(("viscous", "coulomb"))]
    assert heavy.consistent.values[friction] == pytest.approx(
        factor * light.consistent.values[friction], rel=1e-2, abs=1e-3 * factor
    )


def with_gain(recording: Log, gain: float) -> Log:
    """The recording of a sensor of the first joint that reads too much."""
    torque = np.array(recording.channels[Channel.LINK_TORQUE])
    torque[:, 0] *= 1.0 + gain
    return replace(recording, channels={**recording.channels, Channel.LINK_TORQUE: torque})


def gains_beside_bodies(factor: float) -> FloatArray:
    logs = [with_gain(recorded(factor, seed), 0.1) for seed in (0, 1)]
    result = armid.identify(
        heavier(LIGHT, factor), logs[0], validate=logs[1], friction="viscous,coulomb", sensitivity=False
    )
    assert result.imperfections is not None
    return result.imperfections.gains


def test_gains_beside_bodies_do_not_depend_on_the_unit_of_force() -> None:
    # Friction doubted by one newton metre, whatever the arm, would pull at the gains of a heavy one.
    assert gains_beside_bodies(100.0) == pytest.approx(gains_beside_bodies(1.0), abs=1e-4)


def test_doubt_about_friction_is_in_units_of_the_joints_own_torque() -> None:
    rows = TorqueRows(LIGHT, effects_of("viscous,coulomb"))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(800, 3 * LIGHT.n_joints))
    y = rng.normal(size=(800, LIGHT.n_joints)) * [100.0, 10.0, 1.0]
    information = accumulate(rows, x, y)
    prior = with_drive_scales(nominal_prior(LIGHT, rows.columns), information)
    coulomb = [prior.scale[rows.columns.index(f"joint{j + 1}.coulomb")] for j in range(3)]
    assert coulomb == pytest.approx([100.0, 10.0, 1.0], rel=0.1)
    assert torque_sizes(information)[rows.columns.index("joint1.coulomb")] == pytest.approx(coulomb[0])
