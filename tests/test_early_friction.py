"""Friction that turns around before the joint does: a matter of milliseconds near reversals, and of no delay anywhere."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import armid
from armid.identification.faults import Answer
from armid.identification.result import Result
from armid.kernels.dynamics import inverse_dynamics
from armid.logs.log import Channel, Log
from armid.robot.load import load_robot
from armid.rows.imperfections import Family

ARM = load_robot("cmu-dd-arm2")
RATE, SECONDS, NOISE = 500.0, 15.0, 0.01
COULOMB = np.array([9.0, 2.0, 0.3])
"""[N m] two fifths of the torque of each joint."""


def motion(t: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    n = ARM.n_joints
    w, phase = 2.0 * np.pi * rng.uniform(0.2, 1.0, size=(n, 3)), rng.uniform(0.0, 2.0 * np.pi, size=(n, 3))
    angle = w * t[:, None, None] + phase
    return tuple((0.4 * part).sum(axis=2) for part in (np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle)))


def recorded(seed: int, *, early: float, late: float) -> Log:
    """Torque stamped `late` seconds after the motion, its friction turning `early` seconds before the joints do."""
    t = np.arange(int(SECONDS * RATE)) / RATE
    q, qd, qdd = motion(t - late, seed)
    tau = inverse_dynamics(ARM, q, qd, qdd) + 0.3 * qd + COULOMB * np.sign(motion(t - late + early, seed)[1])
    tau += np.random.default_rng(seed + 9).normal(0.0, NOISE, size=tau.shape)
    channels = {Channel.POSITION: motion(t, seed)[0], Channel.LINK_TORQUE: tau}
    return Log(name=f"run {seed}", joints=tuple(ARM.joint_names), time=t, channels=channels, named=True)


@cache
def identified(early: float, late: float) -> Result:
    one, other = (recorded(seed, early=early, late=late) for seed in (0, 1))
    return armid.identify(ARM, one, validate=other, sensitivity=False)


def families(result: Result) -> set[Family]:
    return set() if result.imperfections is None else {use.family for use in result.imperfections.families}


@pytest.mark.parametrize("early", [0.0, 0.006])
def test_friction_that_turns_early_is_no_late_torque(early: float) -> None:
    """Beside rows that all weigh the same a delay of -3.3 ms is found, and enters the model."""
    result = identified(early, 0.0)
    delays = [fault for fault in result.suspects if fault.kind == "delay"]
    assert all(fault.answer is Answer.EXCLUDED and abs(fault.estimate) < 3e-4 for fault in delays)
    assert Family.DELAY not in families(result)


def test_late_torque_is_found_beside_it() -> None:
    result = identified(0.006, 0.012)
    found = [f for f in result.suspects if f.answer is Answer.FOUND and f.kind.endswith("delay")]
    assert found
    assert all(abs(fault.estimate - 0.012) < 1e-3 for fault in found)
