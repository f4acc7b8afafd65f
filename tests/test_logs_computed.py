"""Torque that is the description's own is said to be computed; torque of an arm a little off it, or with friction, is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.kernels.dynamics import inverse_dynamics
from armid.logs import Channel, Log, check_log
from armid.notes import Severity
from support.recordings import arm, motion, recording


def computed(scale: float = 1.0, friction: float = 0.0) -> Log:
    """A log whose torque is that of the description, all masses scaled, with some friction."""
    robot, log = arm(), recording()
    _, q, qd, qdd = motion()
    tau = inverse_dynamics(robot, q, qd, qdd, inertial=scale * np.array(robot.inertial))
    tau = tau + friction * np.std(tau, axis=0) * np.tanh(qd / 0.01)
    return replace(log, channels={**log.channels, Channel.LINK_TORQUE: tau}, notes=())


def codes(log: Log) -> dict[str, Severity]:
    return {note.code: note.severity for note in check_log(log, arm()).notes}


def test_the_torque_of_the_description_itself_is_warned_of() -> None:
    assert codes(computed())["torque-computed"] is Severity.WARNING


@pytest.mark.parametrize("log", [computed(1.03), computed(0.97), computed(friction=0.05), recording()])
def test_an_arm_a_little_off_its_description_or_with_friction_is_not(log: Log) -> None:
    assert "torque-computed" not in codes(log)
