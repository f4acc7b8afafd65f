"""Base tolerances as people write them: in units of their family, refused before any file is read, and those of faults too."""

from dataclasses import replace
from math import radians
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.errors import InputError
from armid.identification.faults import Answer
from armid.identification.pipeline import run_identification
from armid.identification.result import Result
from armid.identification.settings import Identification
from armid.identification.tolerances import USED, base_tolerances, tolerances_of
from armid.logs import Channel, Log
from armid.robot.load import load_robot
from armid.rows.imperfections import KINDS, Family
from support.identified import EFFECTS, log, trusted, urdf_file


@pytest.mark.parametrize(
    ("text", "family", "value"),
    [
        ("gain=2%", Family.GAIN, 0.02),
        ("gain=0.02", Family.GAIN, 0.02),
        ("zero=0.5deg", Family.ZERO, radians(0.5)),
        ("tilt=2mrad", Family.TILT, 0.002),
        ("zero=0.01rad", Family.ZERO, 0.01),
        ("zero=0.01", Family.ZERO, 0.01),
        ("delay = 2 ms", Family.DELAY, 0.002),
        ("reversal=0.002s", Family.REVERSAL, 0.002),
        ("clock=0.1%", Family.CLOCK, 0.001),
        ("stribeck=10%", Family.STRIBECK, 0.1),
        ("rotor=10%", Family.ROTOR, 0.1),
    ],
)
def test_units_are_those_of_the_family(text: str, family: Family, value: float) -> None:
    assert base_tolerances(text) == pytest.approx({family: value})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gain=2deg", "gain=SIZE with a share"),
        ("gain=2ms", "gain=SIZE with a share"),
        ("gain=2", "up to 100%"),
        ("gain=inf", "gain=SIZE"),
        ("zero=50%", "in deg or mrad or rad"),
        ("zero=2ms", "in deg or mrad or rad"),
        ("zero=2mm", "in deg or mrad or rad"),
        ("delay=2deg", "in ms or s"),
        ("delay=2%", "in ms or s"),
        ("delay=inf", "in ms or s"),
        ("stribeck=1deg", "stribeck=SIZE with a share"),
        ("rotor=0.1s", "rotor=SIZE with a share"),
        ("gain=2%,gain=3%", "twice"),
    ],
)
def test_another_unit_is_refused_with_those_that_fit(text: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        base_tolerances(text)
    assert said in str(refused.value)
    assert text.split(",")[-1] in str(refused.value)


@pytest.mark.parametrize("family", [family for family in Family if family not in USED])
def test_a_family_that_never_enters_the_model_has_no_tolerance_to_set(family: Family) -> None:
    with pytest.raises(InputError, match=r"never enters the model.*there are: gain"):
        base_tolerances(f"{family.value}=0.01")


@pytest.mark.parametrize("family", USED)
def test_every_other_family_takes_the_tolerance_it_has(family: Family) -> None:
    own = KINDS[family].tolerance
    assert tolerances_of("all", f"{family.value}={own}").base == pytest.approx({family: own})


@pytest.mark.parametrize("text", ["gain=2deg", "zero=50%", "gear-ratio=2%", "gian=2%"])
def test_the_command_line_refuses_them_before_any_file_is_read(text: str, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    done = CliRunner().invoke(
        application(), ["identify", nowhere, nowhere, "--tolerance", "delay=2ms", "--tolerance", text]
    )
    assert done.exit_code == 2
    assert text.partition("=")[0] in done.stderr
    assert "nowhere" not in done.stderr


def identified(tolerance: str) -> Result:
    """Of recordings whose second joint's torque is 10 % too large."""
    robot = load_robot(str(urdf_file()))
    logs = [with_gain(log(robot, trusted().robot, seed=seed)) for seed in (3, 5)]
    settings = Identification(effects=EFFECTS, sensitivity=False, imperfections=tolerances_of("none", tolerance))
    return run_identification(robot, logs[:1], logs[1:], settings)


def with_gain(recorded: Log) -> Log:
    torque = recorded.channels[Channel.LINK_TORQUE] * np.array([1.0, 1.1, 1.0])
    return replace(recorded, channels={**recorded.channels, Channel.LINK_TORQUE: torque})


def test_what_is_ordinary_is_no_fault() -> None:
    """A sensor that is said to be good to a fifth only is not found to be wrong by a tenth, and one good to a hundredth is."""
    usual, strict, loose = (identified(text).faults["gain of shoulder"] for text in ("", "gain=1%", "gain=20%"))
    assert [fault.tolerance for fault in (usual, strict, loose)] == pytest.approx([0.05, 0.01, 0.2])
    assert usual.answer is Answer.FOUND
    assert not usual.large
    assert strict.answer is Answer.FOUND
    assert strict.large
    assert loose.answer is not Answer.FOUND
