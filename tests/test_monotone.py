"""A larger fault never turns untrusted into trusted: ladders of sizes, planted in training and held-out motion alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from armid.errors import ArmidError
from armid.identification.pipeline import run_identification
from armid.identification.settings import Identification
from armid.kernels.dynamics import gravity
from armid.logs import Channel, Log
from armid.logs.check import check_log
from armid.outcome import Verdict
from armid.robot.robot import Robot
from support.identified import EFFECTS, log
from test_imperfections import specimen, spoiled


def geared(clean: Log, size: float) -> Log:
    """Another gear ratio of the shoulder."""
    q, tau = np.array(clean[Channel.POSITION]), np.array(clean[Channel.LINK_TORQUE])
    q[:, 1], tau[:, 1] = q[:, 1] / (1.0 + size), tau[:, 1] * (1.0 + size)
    return replace(clean, channels={**clean.channels, Channel.POSITION: q, Channel.LINK_TORQUE: tau})


def weightless(clean: Log, robot: Robot, share: float) -> Log:
    """A share of the described weight taken out by the controller."""
    tau = clean[Channel.LINK_TORQUE] - share * gravity(robot, clean[Channel.POSITION])
    return replace(clean, channels={**clean.channels, Channel.LINK_TORQUE: tau})


def trusted(plant: Callable[[Log], Log]) -> bool:
    robot, truth = specimen()
    logs = [plant(log(robot, truth, seed=seed)) for seed in (3, 5)]
    try:
        checked = [check_log(replace(each, notes=()), robot) for each in logs]
        result = run_identification(robot, checked[:1], checked[1:], Identification(effects=EFFECTS, sensitivity=False))
    except ArmidError:
        return False
    return result.verdict is Verdict.TRUSTED


LADDERS: dict[str, list[Callable[[Log], Log]]] = {
    "gain": [partial(spoiled, gain=size) for size in (0.02, 0.4, 4.0)],
    "zero": [partial(spoiled, zero=size) for size in (0.005, 0.15, 0.8)],
    "scale": [partial(spoiled, scale=size) for size in (0.003, 0.08, 0.6)],
    "delay": [partial(spoiled, delay=size) for size in (0.001, 0.04, 0.2)],
    "gear ratio": [partial(geared, size=size) for size in (0.003, 0.1, 0.8)],
    "weight": [partial(weightless, robot=specimen()[0], share=share) for share in (0.01, 0.4, 0.9)],
}


@pytest.mark.parametrize("kind", LADDERS)
def test_trust_once_lost_is_not_regained(kind: str) -> None:
    verdicts = [trusted(plant) for plant in LADDERS[kind]]
    assert verdicts[0]  # so small that nothing is wrong
    assert verdicts == sorted(verdicts, reverse=True)
    assert not verdicts[-1]
