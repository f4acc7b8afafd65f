"""Faults as records: words, answers, order, and what programs read."""

from dataclasses import replace
from math import inf, isnan, nan

import pytest

from armid.identification.faults import Answer, Fault, bounded_widths, faults_table, listed_faults
from armid.identification.sizes import said, said_within

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


def test_numbers_beyond_what_a_quantity_can_be_are_not_said():
    """An angle beyond a full turn, a share beyond the whole: words for people, numbers for programs."""
    wild = Fault(kind="zero", joint="joint1", estimate=-0.6, low=-2.6e5, high=2.6e5, unit="rad", experiment="tilt it")
    assert wild.sentence == "zero of joint1: undecidable from this log, size not determined; tilt it"
    assert [row[2] for row in faults_table([wild]).rows] == ["size not determined"]
    assert (wild.as_dict()["low"], wild.as_dict()["bound"]) == (-2.6e5, 2.6e5)
    half = Fault(kind="scale", joint="joint1", estimate=-0.8, low=-1.8, high=0.2, unit="1")
    assert half.sentence.endswith("log, -80 % (95 %: no bound to +20 %)")
    drift = Fault(kind="drift", joint="joint1", estimate=1.0, low=-99.0, high=101.0, unit="N m", tolerance=0.1)
    assert drift.sentence.endswith("size not determined")


@pytest.mark.parametrize(
    "fault",
    [
        Fault(kind="gain", joint="a", estimate=1.2, low=1.1, high=1.3, unit="1"),
        Fault(kind="zero", joint="a", estimate=0.1, low=-3.0, high=3.2, unit="rad"),
        Fault(kind="gain", joint="a", estimate=3.0, low=1.5, high=4.5, unit="1", answer=Answer.FOUND),
        Fault(kind="payload", estimate=2.0, low=-90.0, high=94.0, unit="kg"),
    ],
)
def test_numbers_that_say_something_are_said(fault):
    assert "no bound" not in fault.sentence
    assert "(95 %: " in fault.sentence


def test_found_come_first_and_bounds_last():
    rows = listed_faults([_ZERO, _SCALE, _GAIN])
    assert [fault.name for fault in rows] == ["gain of joint4", "common gain", "zero of joint2"]
    assert rows["gain of joint4"] is _GAIN
    assert "undone in this result" not in str(faults_table([_GAIN]).rows)
    assert "undone in this result" in str(faults_table([replace(_GAIN, corrected=True)]).rows)
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


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.031, "1", "+3.1 %"),
        (-0.02, "rad", "-1.15 deg"),
        (1.01, "s", "+1010 ms"),
        (0.001, "m", "+1 mm"),
        (2.0, "kg", "+2 kg"),
    ],
)
def test_sizes_are_said_in_units_of_people(value, unit, text):
    assert said(value, unit) == text


def test_a_size_with_its_deviation_has_one_unit():
    assert said_within(0.0922, 0.03, "1") == "+9.22 +- 3 %"
    assert said_within(0.29, 0.08, "N m") == "+0.29 +- 0.08 N m"


@pytest.mark.parametrize("kind", ["play", "hysteresis"])
def test_a_width_is_never_less_than_nothing(kind):
    """An error of the model by the other sign may hide as much of a true one: the bound stays."""
    open_one = Fault(kind=kind, joint="a", estimate=-0.01, low=-0.03, high=0.01, unit="rad", tolerance=0.005)
    (bounded,) = bounded_widths([open_one])
    assert (bounded.estimate, bounded.low, bounded.bound) == (0.0, 0.0, 0.03)
    assert bounded.sentence.endswith("undecidable from this log, at most 1.72 deg")
    found = replace(open_one, answer=Answer.FOUND, low=0.01, estimate=0.02, high=0.03)
    gain = replace(_GAIN, estimate=-0.1, low=-0.2, high=0.1, answer=Answer.UNDECIDABLE)
    assert bounded_widths([found, gain]) == (found, gain)
