"""Whatever bytes come in, either an arm or one of our own errors comes out, and soon."""

import re
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from armid.errors import ArmidError
from armid.robot import Robot
from armid.robot.load import load_robot
from armid.robot.urdf.arm import parse_urdf
from armid.robot.urdf.text import NO_LIMIT
from armid.robot.urdf.write import new_urdf, updated_urdf
from armid.robot.urdf.xml_tree import decoded
from armid.robot.yaml_file import parse_yaml, to_yaml
from support.robot_files import URDF, YAML, with_gripper

SECONDS = 5.0
"""Generous: the readers need milliseconds, the machine may be busy."""

QUIET = settings(
    max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

SPICE = (
    "0",
    "-1",
    "1e308",
    "-1e308",
    "1e-320",
    "nan",
    "inf",
    "1,5",
    "",
    " ",
    "\n",
    "\t",
    "\x00",
    "<",
    ">",
    "/>",
    "&",
    "&amp;",
    "&x;",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<!DOCTYPE a>",
    '"',
    "'",
    "{",
    "}",
    "[",
    "]",
    ":",
    "- ",
    "*a",
    "&a ",
    "!!int ",
    "? ",
    "q",
    "pi",
    "d1",
    "Rz(q)",
    "fixed",
    "floating",
    "revolute",
    "prismatic",
    "mimic",
    "upper",
    "world",
    "ü",
    "\ud7ff",
    "(" * 60,
    "| ",
    "> ",
    "---\n",
    "...\n",
    "%YAML 9",
    "<link/>",
    '<link name="upper"/>',
    "<mimic joint='turn'/>",
)


@st.composite
def mutated(draw, sources):
    """A valid file with a few pieces cut, repeated, swapped or replaced."""
    text = draw(st.sampled_from(sources))
    for _ in range(draw(st.integers(1, 4))):
        a = draw(st.integers(0, len(text)))
        b = min(len(text), a + draw(st.integers(0, 40)))
        piece = draw(st.sampled_from(("cut", "spice", "repeat", "swap", "text")))
        if piece == "cut":
            text = text[:a] + text[b:]
        elif piece == "spice":
            text = text[:a] + draw(st.sampled_from(SPICE)) + text[b:]
        elif piece == "repeat":
            text = text[:b] + text[a:b] * draw(st.integers(1, 3)) + text[b:]
        elif piece == "swap":
            c = draw(st.integers(0, len(text)))
            text = text[:a] + text[c : c + b - a] + text[b:]
        else:
            text = text[:a] + draw(st.text(max_size=8)) + text[b:]
    return text


@st.composite
def words_changed(draw, text):
    """A valid file in which whole words and numbers are something else: gets past the syntax more often."""
    words = text.split(" ")
    for _ in range(draw(st.integers(1, 6))):
        i = draw(st.integers(0, len(words) - 1))
        words[i] = draw(st.sampled_from((*SPICE, *words[:200])))
    return " ".join(words)


def survives(read) -> Robot | None:
    start = time.process_time()
    robot, message = None, ""
    try:
        robot = read()
    except ArmidError as error:
        message = str(error)
    assert time.process_time() - start < SECONDS
    assert len(message) < 3000
    return robot


def check(robot: Robot | None) -> None:
    """An arm that came out can be used: written and read again, unless numbers overflow on the way."""
    if robot is None:
        return
    for joint in robot.joints:
        assert np.isfinite(joint.transform(0.1)).all()
    with np.errstate(all="ignore"):
        survives(lambda: parse_yaml(to_yaml(robot)))
        survives(lambda: parse_urdf(new_urdf(robot)))


def without_demanded(text):
    """What a file gains that is written with the arm it was read as: what other readers demand.

    Limits that say none, and the world that joints hang from without a link of its own.
    """
    text = re.sub(r'\s*<link name="world"/>', "", text)
    text = re.sub(
        rf'\s*<limit lower="-{NO_LIMIT}" upper="{NO_LIMIT}" effort="{NO_LIMIT}" velocity="{NO_LIMIT}"/>', "", text
    )
    return re.sub(rf'\s*(effort|velocity)="{NO_LIMIT}"', "", text)


@QUIET
@given(mutated((URDF, with_gripper())))
def test_mutated_urdf(text):
    robot = survives(lambda: parse_urdf(text))
    check(robot)
    if robot is not None:
        assert without_demanded(updated_urdf(text, robot)) == without_demanded(text)


@QUIET
@given(words_changed(with_gripper()))
def test_urdf_with_other_words(text):
    check(survives(lambda: parse_urdf(text)))


@QUIET
@given(mutated((YAML,)))
def test_mutated_yaml(text):
    check(survives(lambda: parse_yaml(text)))


@QUIET
@given(words_changed(YAML))
def test_yaml_with_other_words(text):
    check(survives(lambda: parse_yaml(text)))


@QUIET
@given(st.binary(max_size=300))
def test_random_bytes(data):
    survives(lambda: parse_urdf(decoded(data, "x")))
    survives(lambda: parse_yaml(decoded(data, "x")))


@QUIET
@given(st.text(max_size=40))
def test_random_names(name):
    survives(lambda: load_robot(name))


BOMBS = {
    "billion laughs": '<!DOCTYPE a [<!ENTITY a "x"><!ENTITY b "' + "&a;" * 50 + '">]><robot>&b;</robot>',
    "external entity": '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="&x;"/>',
    "yaml aliases": "a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
    "deep flow": "a: " + "{a: " * 5000,
    "deep block": "\n".join(" " * i + "a:" for i in range(3000)),
    "deep xml": "<robot>" * 100_000,
    "many attributes": "<robot " + " ".join(f'a{i}="1"' for i in range(20_000)) + "/>",
    "long number": '<robot name="r"><link name="a"/><joint name="j" type="revolute"><parent link="a"/><child link="b"/>'
    '<origin xyz="' + "9" * 1_000_000 + ' 0 0"/></joint><link name="b"/></robot>',
    "long expression": YAML.replace("d: d1", "d: " + "1+" * 100_000 + "1"),
    "many keys": "\n".join(f"k{i}: 1" for i in range(50_000)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_quickly(name):
    for read in (parse_urdf, parse_yaml):
        start = time.process_time()
        with pytest.raises(ArmidError):
            read(BOMBS[name])
        assert time.process_time() - start < 2 * SECONDS
