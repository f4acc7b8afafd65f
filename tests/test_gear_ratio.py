"""A wrong gear ratio is told from two faults of one joint that undo each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.identification.faults import Answer, Fault
from armid.identification.gear_ratio import gear_ratio_faults
from armid.identification.imperfections import ImperfectionTolerances
from armid.identification.pipeline import run_identification
from armid.identification.settings import Identification
from armid.logs import Channel, Log
from support.identified import EFFECTS, log
from test_imperfections import specimen


def fault(kind: str, joint: str, size: float) -> Fault:
    return Fault(kind=kind, joint=joint, estimate=size, standard_deviation=0.01, answer=Answer.FOUND)


def test_only_a_gain_and_a_scale_of_one_joint_that_undo_each_other_are_one_ratio() -> None:
    one = gear_ratio_faults([fault("gain", "a", 0.25), fault("scale", "a", -0.2)])
    assert [f.name for f in one] == ["gear-ratio of a"]
    assert one[0].estimate == pytest.approx(0.25, abs=1e-12)
    assert not gear_ratio_faults([fault("gain", "a", 0.25), fault("scale", "b", -0.2)])
    assert not gear_ratio_faults([fault("gain", "a", 0.25), fault("scale", "a", 0.2)])
    assert not gear_ratio_faults([fault("gain", "a", 0.1), fault("scale", "a", -0.2)])
    assert not gear_ratio_faults([replace(fault("gain", "a", 0.25), answer=Answer.EXCLUDED), fault("scale", "a", -0.2)])


def test_a_wrong_ratio_in_a_recording_is_named_and_sized() -> None:
    robot, truth = specimen()

    def geared(clean: Log) -> Log:
        q, tau = np.array(clean[Channel.POSITION]), np.array(clean[Channel.LINK_TORQUE])
        q[:, 1], tau[:, 1] = q[:, 1] / 1.15, tau[:, 1] * 1.15
        return replace(clean, channels={**clean.channels, Channel.POSITION: q, Channel.LINK_TORQUE: tau})

    logs = [geared(log(robot, truth, seed=seed)) for seed in (3, 5)]
    settings = Identification(effects=EFFECTS, sensitivity=False, imperfections=ImperfectionTolerances(families=()))
    found = run_identification(robot, logs[:1], logs[1:], settings).faults["gear-ratio of shoulder"]
    assert found.low < 0.15 < found.high
    assert "1.1" in found.words
