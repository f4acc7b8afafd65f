"""Friction that drives is refused by `identify`, whose possible bodies never have it; friction that falls with speed is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from armid.identification.identify import identify
from armid.identification.result import Result
from armid.kernels import dynamics
from armid.logs.log import Channel, Log
from armid.robot.load import load_robot


def identified(coulomb: float, viscous: float, friction: str = "viscous,coulomb", names: Sequence[str] = ()) -> Result:
    """An arm whose second joint has that friction, and whose joints may have other names."""
    robot = load_robot("cmu-dd-arm2")
    if names:
        robot = replace(robot, joints=tuple(replace(j, name=n) for j, n in zip(robot.joints, names, strict=True)))
    t = np.arange(0.0, 20.0, 0.01)[:, None]
    w = 2 * np.pi * np.array([[0.31, 0.43, 0.61]])
    q = 0.8 * np.sin(w * t) + 0.3 * np.cos(1.7 * w * t)
    qd = 0.8 * w * np.cos(w * t) - 0.51 * w * np.sin(1.7 * w * t)
    qdd = -0.8 * w**2 * np.sin(w * t) - 0.867 * w**2 * np.cos(1.7 * w * t)
    tau = dynamics.inverse_dynamics(robot, q, qd, qdd) + np.array([0.0, 1.0, 0.0]) * (
        coulomb * np.sign(qd) + viscous * qd
    )
    tau += 0.05 * np.random.default_rng(0).normal(size=tau.shape)
    log = Log(
        name="log", joints=robot.joint_names, time=t[:, 0], channels={Channel.POSITION: q, Channel.LINK_TORQUE: tau}
    )
    codes = ("torque-lag", "torque-sign", "joint-order", "mounting")
    return identify(robot, log, friction=friction, imperfections="none", sensitivity=False, accept=codes)


def driving(found: Result) -> str:
    """The friction that fails the check; empty when none does."""
    return "".join(c.subject for c in found.checks if c.code == "friction-opposes" and c.decisive and not c.passed)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_friction_below_zero_is_refused(sign: float) -> None:
    found = identified(1.5 * sign, 0.0, "coulomb")
    assert driving(found) == ("" if sign > 0 else "joint2.coulomb")
    assert (str(found.verdict) == "untrusted") or sign > 0
    assert found.robot.drive("coulomb").min() >= -1e-9


def test_friction_below_zero_is_refused_whatever_the_joints_are_called() -> None:
    assert driving(identified(-1.5, 0.0, "coulomb", names=("base", "shoulder", "elbow"))) == "shoulder.coulomb"


def test_a_slope_below_zero_is_refused_where_coulomb_friction_no_longer_makes_up_for_it() -> None:
    assert driving(identified(3.0, -0.2)) == ""
    assert driving(identified(0.2, -0.5)) == "joint2.viscous at the largest speed"
