"""Planned motions on the embedded robot under computed torque: with the identified model, and with the description's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from scipy.spatial import cKDTree

from armid.planning.constraints import planning_limits
from armid.planning.fastest import fastest_motion
from armid.planning.model import TorqueModel, model_of_result, model_of_robot
from armid.planning.motion import Plan, PlanSettings
from armid.planning.path import SplinePath
from armid.robot import Robot
from armid.simulation import ComputedTorque, OnFault, Physics, SimulatedRun, run_motion
from armid.simulation.variation import varied
from support.identified import trusted

TORQUE = (24.0, 30.0, 7.5)
"""Limits [N m] low enough for this path to need all of them."""

JERK = 400.0
MARGIN = 0.04
"""Left to the controller's feedback."""

WAYPOINTS = np.array([[-1.2, -0.6, 0.4], [-0.3, 0.2, -0.9], [0.6, -0.7, 0.3], [1.3, 0.1, 1.1]])


def limited(robot: Robot) -> Robot:
    """The arm with the limits of this test."""
    joints = [
        replace(joint, limits=replace(joint.limits, torque=torque, jerk=JERK))
        for joint, torque in zip(robot.joints, TORQUE, strict=True)
    ]
    return replace(robot, joints=tuple(joints))


@cache
def physical() -> Robot:
    """The specimen that `identified.trusted` was identified from."""
    robot = trusted().robot
    drives = [
        replace(j, drive=replace(j.drive, rotor_inertia=0.2, offset=0.1 * (-1) ** i))
        for i, j in enumerate(robot.joints)
    ]
    return limited(replace(varied(robot, 0.2, np.random.default_rng(1)), joints=tuple(drives)))


@dataclass(frozen=True)
class Outcome:
    """A plan and what became of it."""

    plan: Plan
    run: SimulatedRun

    @property
    def path_error(self) -> float:
        """Largest distance of the arm from the path [rad]."""
        path = self.plan.path
        dense = path.derivatives(np.linspace(0.0, path.length, 20000))[0]
        return float(cKDTree(dense).query(self.run.q)[0].max())

    @property
    def saturated(self) -> int:
        return sum(fault.code == "torque-saturated" for fault in self.run.faults)


def executed(model: TorqueModel, believed: Robot) -> Outcome:
    """Plan with a model, then run under computed torque with the same model on the physical arm."""
    limits = planning_limits(limited(trusted().robot))[0]
    path = SplinePath(trusted().robot.joint_names, WAYPOINTS)
    plan = fastest_motion(path, model, PlanSettings(points=500, jerk_points=250, limits=limits, margin=MARGIN))
    physics = Physics(collisions=False, on_fault=OnFault.RECORD)
    controller = ComputedTorque(model=believed, frequency_hz=6.0)
    return Outcome(plan, run_motion(physical(), plan.trajectory, controller=controller, physics=physics))


@cache
def with_identified() -> Outcome:
    return executed(model_of_result(trusted()), limited(trusted().robot))


@cache
def with_described() -> Outcome:
    return executed(model_of_robot(trusted().described), limited(trusted().described))


def test_the_identified_model_keeps_torque_limits_and_the_path() -> None:
    outcome = with_identified()
    assert outcome.run.complete
    assert outcome.saturated == 0
    usage = np.abs(outcome.run.motor_torque) / TORQUE
    assert usage.max() <= 1.0
    assert usage.max() > 0.9  # the limits are needed
    assert outcome.path_error < 2e-3
    assert np.allclose(outcome.run.q[-1], WAYPOINTS[-1], atol=2e-3)


def test_velocity_limits_hold_as_well() -> None:
    run = with_identified().run
    assert (np.abs(run.qd) <= trusted().robot.limit("velocity") * 1.01).all()


def test_predicted_torque_is_what_the_arm_needs() -> None:
    outcome = with_identified()
    t = outcome.run.time
    predicted = outcome.plan.model.torque(*outcome.plan.trajectory.sample(t))
    moving = (np.abs(outcome.run.command.qd) > 0.05).all(axis=1)
    error = outcome.run.motor_torque[moving] - predicted[moving]
    assert np.sqrt((error**2).mean(axis=0)) == pytest.approx(0.0, abs=0.4)


def test_the_described_model_saturates_and_leaves_the_path() -> None:
    """Side by side: the same path, limits and controller, planned with what the description says."""
    good, wrong = with_identified(), with_described()
    assert wrong.saturated > 0
    assert wrong.path_error > 5.0 * good.path_error
    # What the description predicts for its own motion lies within the limits; what the arm really needs does not.
    t = np.linspace(0.01, 0.99, 500) * wrong.plan.duration
    motion = wrong.plan.trajectory.sample(t)
    believed = np.abs(wrong.plan.model.torque(*motion)) / TORQUE
    needed = np.abs(model_of_robot(physical()).torque(*motion)) / TORQUE
    assert believed.max() <= 1.0
    assert needed.max() > 1.05
