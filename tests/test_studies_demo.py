"""The story of `armid demo` on the iiwa: believed when everything is right, stopped by name when one thing is wrong.

The motions are the published ones instead of a search (which tests of design cover), and the embedded robot runs each once:
a wrong sign and a lag are mistakes of the log, not of the arm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from armid.errors import ArmidError
from armid.identification.result import load_result
from armid.motions.fourier import FourierTrajectory, from_velocity_form
from armid.robot.load import load_robot
from armid.simulation import scenario
from armid.simulation.run import SimulatedRun
from armid.studies import demo as module
from armid.studies.demo import Demonstration, Mistake, Story, tell_story
from support.iiwa_motions import EXCITATION_A, EXCITATION_B, FEASIBILITY_A, FEASIBILITY_B

STORY = Story(repetitions=1)


@cache
def motion(*, training: bool) -> FourierTrajectory:
    a, b = (EXCITATION_A, EXCITATION_B) if training else (FEASIBILITY_A, FEASIBILITY_B)
    names = load_robot("iiwa14").joint_names
    return from_velocity_form(names, STORY.period, a.T, b.T, repetitions=STORY.repetitions + 1 if training else 1)


@pytest.fixture(scope="module")
def shortcuts() -> Iterator[None]:
    """Published motions for the search, and every run of the embedded robot only once."""
    run_motion, runs = scenario.run_motion, {}

    def designed(robot: Any, story: Story, repetitions: int) -> Any:
        return SimpleNamespace(trajectory=motion(training=repetitions > 1), condition_number=63.0)

    def simulated_once(specimen: Any, trajectory: FourierTrajectory, **more: Any) -> SimulatedRun:
        key = (tuple(specimen.gravity), trajectory.duration)
        if key not in runs:
            runs[key] = run_motion(specimen, trajectory, **more)
        return runs[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "designed", designed)
        patch.setattr(scenario, "run_motion", simulated_once)
        yield


def told(fault: Mistake, folder: Path) -> Demonstration:
    return tell_story(Story(repetitions=STORY.repetitions, fault=fault), folder)


def test_without_mistakes_it_is_trusted(shortcuts: None, tmp_path: Path) -> None:
    ending = told(Mistake.NONE, tmp_path)
    assert ending.result.verdict == "trusted", ending.result.reasons
    assert ending.result.relative_error["held_out"] < 0.03
    # 99 % intervals of 69 parameters: seven or more misses would happen once in ten thousand times.
    assert ending.parameters == 69
    assert ending.inside >= ending.parameters - 6
    # Where periods join the arm may stand still and friction has no sign: that part of the averaged period is left out.
    choices = ending.result.conditioning
    kept = STORY.period - 2.0 * module.STANDSTILL
    assert choices.samples_train == pytest.approx(kept * choices.rate_hz, abs=2)
    assert choices.torque_delay_s == -0.0005  # half a tick of the controller
    written = {path.name for export in ending.exports for path in export.files}
    assert written == {"iiwa14.urdf", "iiwa14.joints.yaml", "iiwa14.xml"}
    assert ending.page_file.stat().st_size < 10_000_000
    assert load_result(tmp_path / "result").verdict == "trusted"
    said = ending.as_dict()
    assert said["verdict"] == "trusted"
    assert said["urdf"] == str(tmp_path / "iiwa14.urdf")
    assert said["held_out_relative_error"] == ending.result.relative_error["held_out"]
    assert "\n" not in repr(ending)
    assert "Torque error on a motion never seen" in ending.summary()
    # The other motion is free to go further than the averaged period did; that is said, and nothing else is.
    assert {check.code for check in ending.checks if not check.passed} <= {"extrapolation"}
    unlucky = replace(ending, inside=ending.parameters - 7)
    assert {check.code for check in unlucky.checks if not check.passed} - {"extrapolation"} == {"coverage"}
    assert unlucky.verdict == "trusted"  # what only a simulation knows does not decide


@pytest.mark.parametrize(
    ("fault", "cause"),
    [(Mistake.SIGN, "opposite|sign"), (Mistake.LAG, r"late against the motion"), (Mistake.MOUNTING, "hangs|gravity")],
)
def test_a_mistake_is_stopped_and_named(fault: Mistake, cause: str, shortcuts: None, tmp_path: Path) -> None:
    try:
        ending = told(fault, tmp_path)
    except ArmidError as refusal:
        reasons = str(refusal)
    else:
        assert ending.result.verdict == "untrusted"
        assert ending.exports == ()
        reasons = "; ".join(ending.result.reasons)
    assert re.search(cause, reasons), reasons
    assert not list(tmp_path.glob("*.urdf"))
