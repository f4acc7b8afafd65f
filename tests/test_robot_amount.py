"""Numbers as people write them."""

from contextlib import suppress
from math import pi

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armid.errors import ArmidError, RobotError
from armid.robot.amount import amount


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.333", 0.333),
        ("-1e-3", -1e-3),
        (".5", 0.5),
        ("2.", 2.0),
        ("1e3", 1000.0),
        ("pi", pi),
        ("-pi/2", -pi / 2),
        ("3*pi/2", 3 * pi / 2),
        ("2*(1 + 3)/4 - 1", 1.0),
        ("--1", 1.0),
        ("d3", 0.4),
        ("-d3/2", -0.2),
        (" 7 ", 7.0),
        ("1 - 2 - 3", -4.0),
        ("8/4/2", 1.0),
    ],
)
def test_expressions_have_their_usual_value(text, value):
    assert amount(text, "here", names={"d3": 0.4}).constant == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "constant", "slope"),
    [("q", 0, 1), ("-q", 0, -1), ("q + pi/2", pi / 2, 1), ("pi - q", pi, -1), ("2*q/2", 0, 1)],
)
def test_the_joint_variable_is_kept_apart(text, constant, slope):
    result = amount(text, "here", variable=True)
    assert (result.constant, result.slope) == (constant, slope)


def test_only_a_bare_name_is_a_symbol():
    assert amount("d3", "here", names={"d3": 0.4}).symbol == "d3"
    assert amount("-d3", "here", names={"d3": 0.4}).symbol is None
    assert amount("pi", "here").symbol is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,5", "decimal point: 1.5"),
        ("nan", "not a finite number"),
        ("-.inf", "not a finite number"),
        ("1e999", "not a finite number"),
        ("1e13", "SI units"),
        ("1/0", "divides by zero"),
        ("d4", "known names: d3, pi"),
        ("", "expected a number"),
        ("1 +", "ends too early"),
        ("(1", "without a closing one"),
        ("1 2", "cannot be read from '2' on"),
        ("q", "unknown name 'q'"),
        ("__import__('os')", "cannot be read from"),
        ("1" * 300, "longer than"),
        ("*1", "where a number should stand"),
        ("d3.x", "cannot be read"),
    ],
)
def test_what_is_no_number_is_explained(text, message):
    with pytest.raises(RobotError, match=message.replace("(", r"\(").replace(")", r"\)").replace("'", "['\"]")):
        amount(text, "file.yaml: joints[0].d", names={"d3": 0.4})


@pytest.mark.parametrize("text", ["q*q", "1/q", "q/q"])
def test_the_joint_variable_enters_linearly(text):
    with pytest.raises(RobotError, match="not linear in q"):
        amount(text, "here", variable=True)


@given(st.text(max_size=60))
def test_any_text_is_a_number_or_our_error(text):
    with suppress(ArmidError):
        amount(text, "here", names={"d": 1.0}, variable=True)


@given(st.floats(min_value=-1e12, max_value=1e12))
def test_floats_read_back_exactly(x):
    assert amount(repr(x), "here").constant == (x if abs(x) >= 1e-100 else 0.0)
