"""Torque per share of a length, against differences of the torque itself; planted lengths are found and told from sensors."""

from __future__ import annotations

import numpy as np
import pytest

import armid
from armid.identification.described_ways import way_words
from armid.kernels.evaluate import reference_rows
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide
from armid.robot.robot import Robot
from armid.robot.urdf.arm import parse_urdf
from armid.rows.lengths import LengthColumns, felt_ways, with_way
from armid.rows.torque import TorqueRows
from support.scara import SCARA_URDF

ARMS = ("panda", "ur10e", "rv2sq", "tx40", "cylindrical", "lwr4-dh")


def torque_of(robot: Robot, effects: Effects, x: np.ndarray, standard: np.ndarray) -> np.ndarray:
    return reference_rows(TorqueRows(robot, effects), x) @ standard


@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize("torques", [TorqueSide.LINK, TorqueSide.BOTH])
def test_torque_per_share_of_a_length_is_its_derivative(name: str, torques: TorqueSide) -> None:
    robot, effects = armid.load_robot(name), Effects(torques=torques, payload=PayloadRuns.LOADED)
    rng = np.random.default_rng(3)
    x = rng.normal(size=(20, 3 * robot.n_joints))
    standard = rng.normal(size=len(TorqueRows(robot, effects).columns))
    columns = LengthColumns(robot, effects, loaded=True, motion=x, standard=standard)
    size = np.abs(torque_of(robot, effects, x, standard)).max()
    for j in felt_ways(robot):
        plus, minus = (torque_of(with_way(robot, j, 1.0 + h), effects, x, standard) for h in (0.5, -0.5))
        # Quadratic in the length: central differences of any step are exact.
        np.testing.assert_allclose(columns.per_share(j), plus - minus, atol=1e-9 * size)


def test_the_words_that_mend_a_length_are_the_numbers_to_write_into_the_description() -> None:
    arm = parse_urdf(SCARA_URDF)
    elbow = arm.joint_index("elbow")
    words = way_words(arm, elbow, 0.05)
    assert words.startswith("way to elbow from the joint before divided by 1.05: ")
    assert words.endswith(": xyz of the joint's <origin>, x 0.35 -> 0.3333, z 0.1 -> 0.09524 m")
    table = way_words(armid.load_robot("ur10e"), 2, -0.02)
    assert table.endswith("divided by 0.98: a3 -0.5716 -> -0.5832 m")


def test_lengths_of_fixed_joints_before_one_that_moves_are_said_to_be_there() -> None:
    split = SCARA_URDF.replace(
        '<parent link="inner"/><child link="outer"/>', '<parent link="bracket"/><child link="outer"/>'
    ).replace(
        "</robot>",
        '<link name="bracket"/><joint name="plate" type="fixed"><parent link="inner"/><child link="bracket"/>'
        '<origin xyz="0.2 0 0"/></joint></robot>',
    )
    robot = parse_urdf(split)
    words = way_words(robot, robot.joint_index("elbow"), 0.1)
    assert "<origin> and those of the fixed joints before it, x 0.2 -> 0.1818, x 0.35 -> 0.3182" in words
