"""Friction that drives is named by `identify`, whose possible bodies never have it."""

from __future__ import annotations

import numpy as np
import pytest

from armid.identification.identify import identify
from armid.kernels import dynamics
from armid.logs.log import Channel, Log
from armid.robot.load import load_robot


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_friction_below_zero_is_named(sign: float) -> None:
    robot = load_robot("cmu-dd-arm2")
    t = np.arange(0.0, 20.0, 0.01)[:, None]
    w = 2 * np.pi * np.array([[0.31, 0.43, 0.61]])
    q = 0.8 * np.sin(w * t) + 0.3 * np.cos(1.7 * w * t)
    qd = 0.8 * w * np.cos(w * t) - 0.51 * w * np.sin(1.7 * w * t)
    qdd = -0.8 * w**2 * np.sin(w * t) - 0.867 * w**2 * np.cos(1.7 * w * t)
    tau = dynamics.inverse_dynamics(robot, q, qd, qdd) + sign * np.array([0.0, 1.5, 0.0]) * np.sign(qd)
    tau += 0.05 * np.random.default_rng(0).normal(size=tau.shape)
    log = Log(
        name="log", joints=robot.joint_names, time=t[:, 0], channels={Channel.POSITION: q, Channel.LINK_TORQUE: tau}
    )
    codes = ("torque-lag", "torque-sign", "wrong-sign", "joint-order", "mounting")
    found = identify(robot, log, friction="coulomb", imperfections="none", sensitivity=False, accept=codes)
    named = [note.subject for note in found.notes if note.code == "friction-drives"]
    assert named == ([] if sign > 0 else ["joint2.coulomb"])
    assert found.robot.drive("coulomb").min() >= -1e-9
