"""Torque per share of a length, against differences of the torque itself; planted lengths are found and told from sensors."""

from __future__ import annotations

import numpy as np
import pytest

import armid
from armid.kernels.evaluate import reference_rows
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide
from armid.robot.robot import Robot
from armid.rows.lengths import LengthColumns, felt_ways, with_way
from armid.rows.torque import TorqueRows

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
