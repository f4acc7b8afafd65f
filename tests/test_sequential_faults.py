"""Sequential identification says what could be wrong with a recording, by the same search as `identify`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.identification.faults import Answer
from armid.logs import Channel
from armid.report.sequential import sequential_page
from armid.sequential.identify import identify_sequential
from support.identified import EFFECTS, log
from test_imperfections import specimen, spoiled


@pytest.mark.parametrize(
    ("name", "fault"),
    [("gain of shoulder", {"gain": 0.3}), ("delay of shoulder", {"delay": 0.04}), ("", {})],
)
def test_a_planted_fault_is_named_and_decisive_and_a_clean_recording_has_none(
    name: str, fault: dict[str, float]
) -> None:
    robot, truth = specimen()
    found = identify_sequential(robot, spoiled(log(robot, truth, seed=3), **fault), effects=EFFECTS)
    assert [f.name for f in found.faults if f.answer is Answer.FOUND] == ([name] if name else [])
    assert ("fault" in {check.code for check in found.checks if not check.passed}) == bool(name)
    if name:
        assert found.faults[name].estimate == pytest.approx(next(iter(fault.values())), rel=0.1)
        assert name in found.summary()
    # What was not found is said too, and where all of it is listed.
    assert "--json and the report list everything" in found.summary()
    assert "excluded beyond these bounds" in found.summary()
    assert [section.title for section in sequential_page(found).sections].count("What could be wrong") == 1


def test_with_a_locked_joint_nothing_is_decided() -> None:
    robot, truth = specimen()
    clean = log(robot, truth, seed=3)
    q = np.array(clean[Channel.POSITION])
    q[:, 0] = 0.0
    still = dict(clean.channels) | {Channel.POSITION: q}
    found = identify_sequential(robot, replace(clean, channels=still, notes=()), effects=EFFECTS)
    assert {f.answer for f in found.faults} == {Answer.UNDECIDABLE}
    assert "record a motion of all joints at once" in " ".join(found.summary().split())


@pytest.mark.parametrize(("gain", "decisive"), [(1.0, None), (1.15, False), (1.6, True)])
def test_a_gain_in_one_of_two_recordings_makes_their_stages_disagree(gain: float, decisive: bool | None) -> None:
    robot, truth = specimen()
    first, second = (log(robot, truth, seed=seed) for seed in (3, 5))
    torque = np.array(second[Channel.LINK_TORQUE])
    torque[:, 1] *= gain
    other = replace(second, channels={**second.channels, Channel.LINK_TORQUE: torque}, name="other")
    found = identify_sequential(robot, [first, other], effects=EFFECTS)
    (check,) = (check for check in found.checks if check.code == "stages-agree")
    assert check.passed == (decisive is None)
    if decisive is not None:
        assert check.decisive == decisive
        assert check.subject == robot.joint_names[1]
