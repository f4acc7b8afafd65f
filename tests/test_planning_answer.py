"""`armid.plan_motion`: results and paths by file or as objects, and what a plan can do."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import armid
from armid.cli import application
from armid.outcome import Verdict
from armid.planning.errors import PlanRefusedError
from armid.planning.motion import Plan
from armid.planning.path import SplinePath
from support.identified import trusted, untrusted
from support.outcomes import check_kept

WAYPOINTS = np.array([[-0.8, -0.4, 0.3], [0.0, 0.3, -0.5], [0.7, -0.2, 0.6]])


@cache
def plan() -> Plan:
    return armid.plan_motion(trusted(), WAYPOINTS)


def test_files_and_objects_give_the_same_motion(tmp_path: Path) -> None:
    trusted().save(tmp_path / "result")
    file = tmp_path / "path.csv"
    np.savetxt(file, WAYPOINTS, delimiter=",", header="waist,shoulder,elbow", comments="")
    path = SplinePath(trusted().robot.joint_names, WAYPOINTS)
    assert armid.plan_motion(tmp_path / "result", str(file)).duration == pytest.approx(plan().duration, rel=1e-9)
    assert armid.plan_motion(trusted(), path).duration == plan().duration
    words = ["plan", str(tmp_path / "result"), str(file), "--json", "--out", str(tmp_path / "out")]
    told = json.loads(CliRunner().invoke(application(), words).stdout)
    assert told.keys() == plan().as_dict().keys() | {"seconds", "files"}
    assert told["duration"] == pytest.approx(plan().duration, rel=1e-9)


def test_the_answer_can_be_read(tmp_path: Path) -> None:
    assert plan().verdict is Verdict.TRUSTED
    assert "\n" not in repr(plan())
    assert len(repr(plan())) < 200
    assert "torque" in plan().summary()
    assert "elbow" in plan()._repr_html_()
    assert "phase-plane" in plan().figures()
    assert plan().plot("phase-plane").data
    assert "plan.html" in [file.name for file in plan().save(tmp_path)]
    check_kept(plan(), tmp_path)


def test_an_untrusted_result_is_refused_or_marks_the_plan(tmp_path: Path) -> None:
    with pytest.raises(PlanRefusedError, match="40 %"):
        armid.plan_motion(untrusted(), WAYPOINTS)
    forced = armid.plan_motion(untrusted(), WAYPOINTS, force=True)
    assert forced.verdict is Verdict.UNTRUSTED
    assert {check.code for check in forced.checks if not check.passed} == {"result"}
    motion = [file.name for file in forced.save(tmp_path) if file.stem != "answer"]
    assert len(motion) == 4
    assert all("UNVALIDATED" in name for name in motion)
    assert armid.load_answer(tmp_path).reasons == forced.reasons
    assert forced.reasons[0].startswith("UNVALIDATED")


def test_a_motion_over_a_limit_is_not_trusted() -> None:
    usage = replace(plan().usage, torque=1.1 * plan().usage.torque / plan().torque_usage)
    over = replace(plan(), usage=usage)
    assert {check.code for check in over.checks if not check.passed} == {"limits"}
    assert "110.0 %" in over.reasons[0]


def test_a_probability_that_was_not_reached_is_not_trusted() -> None:
    wary = armid.plan_motion(trusted(), WAYPOINTS, confidence=0.99)
    assert wary.verdict is Verdict.TRUSTED
    assert "probability" in wary.summary()
    missed = replace(wary, probability=0.97)
    assert {check.code for check in missed.checks if not check.passed} == {"confidence"}
