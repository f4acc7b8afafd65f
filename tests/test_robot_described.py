"""The description's own values as a parameter vector, and parameters that know what they are."""

import numpy as np
import pytest

from armid.kernels.dynamics import inverse_dynamics
from armid.kernels.evaluate import evaluate_rows
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide
from armid.parameters.inertial import InertialIndex
from armid.parameters.space import OwnerKind, named_parameter, named_parameters
from armid.robot.described import described_values
from armid.robot.load import load_robot
from armid.rows.torque import TorqueRows, space_of

EVERYTHING = {"viscous": True, "coulomb": True, "offset": True, "rotor_inertia": True}


def motion(robot, rng):
    return rng.uniform(-1.0, 1.0, (20, 3 * robot.n_joints))


@pytest.mark.parametrize("name", ["iiwa14", "panda", "cylindrical"])
@pytest.mark.parametrize("side", [TorqueSide.LINK, TorqueSide.MOTOR, TorqueSide.BOTH])
def test_described_values_give_the_torque_of_the_described_arm(name, side):
    robot = load_robot(name)
    rows = TorqueRows(robot, Effects(**EVERYTHING, torques=side))
    x = motion(robot, np.random.default_rng(0))
    q, qd, qdd = np.split(x, 3, axis=1)
    torque = evaluate_rows(rows, x) @ described_values(robot, rows.space)
    expected = inverse_dynamics(robot, q, qd, qdd, drives=True)
    np.testing.assert_allclose(torque[:, -robot.n_joints :], expected, atol=1e-9)


def test_the_drive_alone_has_the_friction_on_the_motors_side():
    robot = load_robot("panda")
    rows = TorqueRows(robot, Effects(**EVERYTHING, torques=TorqueSide.DIFFERENCE))
    values = dict(zip(rows.columns, described_values(robot, rows.space), strict=True))
    assert values["joint1.motor_viscous"] == robot.joints[0].drive.viscous


def test_a_payload_is_not_described():
    robot = load_robot("iiwa14")
    space = space_of(robot, Effects(payload=PayloadRuns.LOADED))
    values = described_values(robot, space)
    assert not values[[p.kind is OwnerKind.PAYLOAD for p in space]].any()
    np.testing.assert_array_equal(values[: 10 * robot.n_joints], robot.inertial)


@pytest.mark.parametrize("side", list(TorqueSide))
def test_names_lead_back_to_the_same_parameters(side):
    robot = load_robot("cylindrical")
    shapes = {"asymmetric": True, "stribeck": True, "load": True} if side is TorqueSide.MOTOR else {}
    space = space_of(robot, Effects(**EVERYTHING, **shapes, torques=side, payload=PayloadRuns.BOTH))
    for parameter in space:
        read = named_parameter(parameter.name)
        assert (read.name, read.kind, read.quantity) == (parameter.name, parameter.kind, parameter.quantity)
        assert read.kind is OwnerKind.PAYLOAD or read.body == parameter.body
    stored = described_values(robot, map(named_parameter, space.names))
    np.testing.assert_array_equal(stored, described_values(robot, space))


def test_vectors_of_arms_with_many_joints_are_known_by_name():
    names = tuple(f"link{k + 1}.mass" for k in range(200))
    assert [one.body for one in named_parameters(names)] == list(range(200))


def test_a_parameter_knows_what_it_is():
    mass, friction = named_parameter("link3.mx"), named_parameter("joint2.motor_coulomb")
    assert (mass.kind, mass.body, mass.component, mass.drive_quantity) == (OwnerKind.LINK, 2, InertialIndex.MX, None)
    assert (friction.kind, friction.body, friction.component) == (OwnerKind.JOINT, 1, None)
    assert (friction.drive_quantity, friction.is_motor_side) == ("coulomb", True)


@pytest.mark.parametrize(
    "name",
    ["gain", "link.mass", "link0.mass", "sensor.rx", "joint1", "payload", "link3.colour", "link03.mass", "joint1.mass"],
)
def test_a_name_that_is_no_parameter_of_an_arm_keeps_its_name(name):
    parameter = named_parameter(name)
    assert (parameter.kind, parameter.name, parameter.owner) == (OwnerKind.OTHER, name, "")


@pytest.mark.parametrize("name", ["iiwa14", "cylindrical", "lwr4-dh"])
def test_an_arm_is_told_in_one_line_and_in_one_table(name):
    robot = load_robot(name)
    assert "\n" not in repr(robot)
    assert repr(robot).startswith(f"<Robot {name}: {robot.n_joints} joints")
    assert len(repr(robot)) < 200
    for joint in robot.joints:
        assert joint.name in str(robot)
    assert ("no masses" in repr(robot)) == (not robot.inertial.any())
