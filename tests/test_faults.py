"""Faults as records: words, answers, order, and what programs read."""

from math import inf, isnan, nan

import pytest

from armid.identification.faults import Answer, Fault, faults_table, listed_faults

_GAIN = Fault(
    kind="gain",
    joint="joint4",
    estimate=0.3,
    standard_deviation=0.01,
    low=0.28,
    high=0.32,
    unit="1",
    tolerance=0.05,
    answer=Answer.FOUND,
    explains=0.8,
    held_out_change=-0.5,
    words="gain: 0.769",
    large=True,
)
_ZERO = Fault(
    kind="zero",
    joint="joint2",
    estimate=0.0,
    standard_deviation=0.001,
    low=-0.002,
    high=0.002,
    unit="rad",
    answer=Answer.EXCLUDED,
)
_SCALE = Fault(kind="common gain", experiment="a weighed payload")


def test_every_answer_has_its_sentence():
    assert _GAIN.sentence == "gain of joint4: found, +30 % (95 %: +28 % to +32 %)"
    assert _ZERO.sentence == "zero of joint2: excluded beyond 0.115 deg"
    assert _SCALE.sentence == "common gain: undecidable from this log; a weighed payload"


def test_found_come_first_and_bounds_last():
    rows = listed_faults([_ZERO, _SCALE, _GAIN])
    assert [fault.name for fault in rows] == ["gain of joint4", "common gain", "zero of joint2"]
    assert rows["gain of joint4"] is _GAIN
    assert [row[1] for row in faults_table([_ZERO, _SCALE, _GAIN]).rows] == ["found", "undecidable", "excluded"]


@pytest.mark.parametrize("fault", [_GAIN, _ZERO, _SCALE])
def test_a_fault_survives_being_written(fault):
    written = {key: None if value in (inf, -inf) or value != value else value for key, value in fault.as_dict().items()}
    again = Fault.from_dict(written)
    assert again.as_dict().keys() == fault.as_dict().keys()
    assert all(
        a == b or (isnan(a) and isnan(b))
        for a, b in zip(again.as_dict().values(), fault.as_dict().values(), strict=True)
    )


def test_programs_find_the_promised_keys():
    promised = {"fault", "subject", "estimate", "low", "high", "unit", "answer", "bound"}
    assert promised <= set(_GAIN.as_dict())
    assert _GAIN.as_dict()["bound"] == pytest.approx(0.32)
    assert _SCALE.bound == inf
    assert isnan(Fault(kind="swap", estimate=nan).estimate)
