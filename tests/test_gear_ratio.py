"""A wrong gear ratio multiplies the torque of a joint and divides its angle: one fault, with a column of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armid.identification.faults import Answer
from armid.identification.pipeline import run_identification
from armid.identification.settings import Identification
from armid.identification.tolerances import ImperfectionTolerances
from armid.logs import Channel, Log
from support.identified import EFFECTS, log
from test_imperfections import specimen


def test_a_wrong_ratio_in_a_recording_is_named_and_sized() -> None:
    robot, truth = specimen()

    def geared(clean: Log) -> Log:
        q, tau = np.array(clean[Channel.POSITION]), np.array(clean[Channel.LINK_TORQUE])
        q[:, 1], tau[:, 1] = q[:, 1] / 1.15, tau[:, 1] * 1.15
        return replace(clean, channels={**clean.channels, Channel.POSITION: q, Channel.LINK_TORQUE: tau})

    logs = [geared(log(robot, truth, seed=seed)) for seed in (3, 5)]
    settings = Identification(effects=EFFECTS, sensitivity=False, imperfections=ImperfectionTolerances(families=()))
    faults = run_identification(robot, logs[:1], logs[1:], settings).faults
    found = faults["gear-ratio of shoulder"]
    assert found.answer is Answer.FOUND
    assert found.low < 0.15 < found.high
    assert f"gear_ratio: {{shoulder: {1.0 / (1.0 + found.estimate):.4g}}}" in found.words
    assert [f.name for f in faults if f.answer is Answer.FOUND] == ["gear-ratio of shoulder"]
