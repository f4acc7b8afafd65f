"""`armid.design_motion` and `armid.choose_poses`: paths or objects, words or values, and what every answer can do."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import armid
from armid.cli import application
from armid.design.asked import joint_values, periods_of, reserves_of
from armid.design.design import default_workers
from armid.design.motion import Design
from armid.design.pose_design import PoseDesign
from armid.design.sequential import SequentialDesign
from armid.errors import ArmidError, InputError, UnknownNameError
from armid.motions.trajectory_files import load_trajectory
from armid.outcome import UntrustedError, Verdict
from armid.parameters.effects import Effects
from armid.robot.load import load_robot
from support.outcomes import check_kept

QUICK = {"starts": 1, "seconds": None, "workers": 1, "harmonics": 3, "period": 4.0}
WORDS = ["--starts", "1", "--seconds", "0", "--workers", "1", "--harmonics", "3", "--period", "4"]


@pytest.fixture(scope="module")
def design() -> Design:
    return armid.design_motion("cylindrical", **QUICK)


@pytest.fixture(scope="module")
def poses() -> PoseDesign:
    return armid.choose_poses("cylindrical", "gravity", pool=200, starts=1, count=8)


@pytest.fixture(scope="module")
def plan() -> SequentialDesign:
    return armid.design_motion("cylindrical", sequential=True, **QUICK)


def test_a_robot_or_its_name_words_or_effects_give_the_same_motion(design: Design) -> None:
    effects = Effects(viscous=True, coulomb=True, offset=True)
    again = armid.design_motion(load_robot("cylindrical"), friction=effects, **QUICK)
    assert again.condition_number == design.condition_number
    t = np.linspace(0.0, 4.0, 9)
    np.testing.assert_array_equal(again.trajectory.sample(t)[0], design.trajectory.sample(t)[0])


@pytest.mark.parametrize("name", ["design", "poses", "plan"])
def test_every_answer_can_be_read(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    answer = request.getfixturevalue(name)
    assert answer.verdict is Verdict.TRUSTED
    assert answer.raise_if_untrusted() is answer
    assert "\n" not in repr(answer)
    assert len(repr(answer)) < 200
    assert "trusted" in answer.summary()
    assert "<table>" in answer._repr_html_()
    json.dumps(answer.as_dict())
    assert answer.provenance.inputs[0].path == "catalogue:cylindrical"
    assert answer.provenance.seed == 0
    files = answer.save(tmp_path / "saved")
    assert files
    assert all(file.is_file() for file in files)
    if answer._loads:
        check_kept(answer, tmp_path / "saved")
    assert answer.report(tmp_path / "page.html").stat().st_size > 1000
    for figure in answer.figures():
        assert answer.plot(figure).data
    with pytest.raises(UnknownNameError, match="no figure named 'luck'"):
        answer.plot("luck")


def test_the_command_line_gives_the_same_answer(design: Design, tmp_path: Path) -> None:
    done = CliRunner().invoke(application(), ["design", "cylindrical", *WORDS, "--json", "--out", str(tmp_path)])
    told, own = json.loads(done.stdout), json.loads(json.dumps(design.as_dict()))
    timed = {"seconds", "search_seconds", "history", "files"}
    assert {k: v for k, v in told.items() if k not in timed} == {k: v for k, v in own.items() if k not in timed}
    assert told.keys() - own.keys() == {"files"}
    assert load_trajectory(tmp_path / "trajectory.json").duration == design.trajectory.duration


def test_poses_of_the_command_line_are_those_of_the_library(poses: PoseDesign, tmp_path: Path) -> None:
    words = ["cylindrical", "--for", "gravity", "--pool", "200", "--starts", "1", "--count", "8"]
    done = CliRunner().invoke(application(), ["poses", *words, "--json", "--out", str(tmp_path)])
    told = json.loads(done.stdout)
    assert {key: told[key] for key in poses.as_dict()} == poses.as_dict()
    assert told.keys() - poses.as_dict().keys() == {"files", "seconds"}


def failing(answer: Design | PoseDesign) -> set[str]:
    return {check.code for check in answer.checks if not check.passed}


def test_a_motion_beyond_its_limits_is_not_trusted(design: Design, tmp_path: Path) -> None:
    proof = design.certificate
    usage = {**proof.usage, "velocity": np.array([0.5, 1.2, 0.5])}
    fast = replace(design, certificate=replace(proof, usage=usage))
    assert failing(fast) == {"limits"}
    assert "velocity of joint2 at 120.0 %" in fast.reasons[0]
    assert not fast.as_dict()["feasible"]
    with pytest.raises(UntrustedError, match="limits are broken"):
        fast.raise_if_untrusted()
    close = replace(design, certificate=replace(proof, clearance=-0.01, closest="link1 and link3"))
    assert failing(close) == {"clearance"}
    assert "link1 and link3" in close.reasons[0]


def test_a_motion_that_does_not_show_everything_is_not_trusted(design: Design) -> None:
    assert failing(replace(design, condition_number_scaled=float("inf"))) == {"rank", "excitation"}
    weak = replace(design, condition_number_scaled=2000.0)
    assert failing(weak) == {"excitation"}
    assert weak.verdict is Verdict.TRUSTED
    assert "2000 times less" in weak.summary()


def test_missed_goals_are_said(design: Design) -> None:
    missed = replace(design, misses=np.array([0.1, -0.2]))
    assert failing(missed) == {"goals"}
    assert missed.verdict is Verdict.TRUSTED
    assert "misses +10.0 %, -20.0 %" in missed.summary()
    assert missed.as_dict()["goals_attained"] is False


def test_poses_that_do_not_show_everything_are_not_trusted(poses: PoseDesign) -> None:
    blind = replace(poses, condition_number=float("inf"), condition_number_scaled=float("inf"))
    assert failing(blind) == {"rank", "better-than-random"}
    assert blind.verdict is Verdict.UNTRUSTED
    assert "take more of them" in blind.reasons[0]


@dataclass(frozen=True)
class Ranked:
    index: int
    predicted: float
    achieved: float


def test_the_judge_decides() -> None:
    def backwards(robot, motions, *, seed=0):
        assert robot.name == "cylindrical"
        return [Ranked(k, 0.1, 0.01 * k) for k in range(len(motions))][::-1]

    quick = QUICK | {"starts": 2}
    first = armid.design_motion("cylindrical", **quick)
    chosen = armid.design_motion("cylindrical", rank=2, judge=backwards, **quick)
    assert len(chosen.ranking) == 2
    assert chosen.condition_number != first.condition_number
    assert "achieved error" in chosen.summary()
    with pytest.raises(InputError, match="no judge"):
        armid.design_motion("cylindrical", rank=2, **quick)


def test_progress_is_told_and_searches_go_on(tmp_path: Path) -> None:
    told: list[str] = []
    found = armid.design_motion("cylindrical", progress=told.append, **QUICK)
    assert "1 starts" in told[0]
    found.save(tmp_path)
    for earlier in (found.search, tmp_path / "search.json", str(tmp_path / "search.json")):
        again = armid.design_motion("cylindrical", resume=earlier, **QUICK)
        assert again.search.best.objective <= found.search.best.objective + 1e-6


def test_words_and_values_mean_the_same() -> None:
    assert periods_of("20") == periods_of(20.0) == (20.0,)
    assert periods_of("10,20") == periods_of([10, 20]) == (10.0, 20.0)
    assert periods_of("10:30") == (10.0, 15.0, 20.0, 25.0, 30.0)
    assert reserves_of("joint6=0.9, joint7=0.5") == reserves_of({"joint6": 0.9, "joint7": 0.5})
    assert reserves_of(None) == {}
    assert joint_values("start", "0,1", 2) == joint_values("start", np.array([0, 1]), 2) == (0.0, 1.0)
    with pytest.raises(InputError, match="shorter one first"):
        periods_of("30:10")
    with pytest.raises(InputError, match="fraction of the torque limit"):
        reserves_of({"joint1": 2.0})
    with pytest.raises(InputError, match="start: 2 numbers"):
        joint_values("start", "0,1", 3)


@pytest.mark.parametrize(
    "asked",
    [{"criterion": "luck"}, {"friction": "sticky"}, {"torques": "elbow"}, {"limits": "patience"}, {"cell": "nowhere"}],
)
def test_unknown_words_list_those_there_are(asked: dict[str, str]) -> None:
    with pytest.raises(ArmidError, match="there are: "):
        armid.design_motion("cylindrical", **asked)


def test_a_short_search_stays_in_this_process() -> None:
    assert default_workers(5.0) == 1
    assert default_workers(60.0) >= 1


def test_a_script_without_a_guard_searches_in_processes(tmp_path: Path):
    """New processes do not run the script that started them from its top."""
    script = tmp_path / "first_minute.py"
    script.write_text(
        "import armid\n"
        "print('once')\n"
        "motion = armid.design_motion('cylindrical', period=5.0, harmonics=3, starts=2, seconds=0.0, workers=2)\n"
        "print(motion.verdict)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["once", "trusted"]
