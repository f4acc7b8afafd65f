"""Interrupted long work resumes: killed and started again, it goes on and ends with the same answer."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armid import unfinished
from armid.design.candidate import Candidate, Work
from armid.design.design import design_motion
from armid.design.motion import Design
from armid.design.search import Budget, SearchState
from armid.errors import InputError
from armid.folders import unfinished_file
from armid.motions.limits import InfeasibleError
from armid.parameters.effects import TorqueSide
from armid.robot.load import load_robot
from armid.studies.kinematics import pieces as study_pieces
from armid.studies.kinematics import study as study_module
from armid.studies.kinematics.comparison import StudySettings
from armid.studies.kinematics.study import run_study
from armid.unfinished import UnfinishedWork, question_digest

ASKED: dict[str, Any] = {"starts": 3, "seconds": 0, "workers": 1, "harmonics": 3, "period": 4, "seed": 5}
WORDS = [f"--{name}={value}" for name, value in ASKED.items()]
SAME_FILES = ("trajectory.json", "trajectory.csv", "joint_trajectory.json")


class Killed(BaseException):
    """Nothing catches it on its way, like a signal."""


def killed_after(pieces: int):
    """A listener that ends the work when so many pieces are finished."""
    left = [pieces]

    def tell(_text: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    return tell


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[Design, Path]:
    """The answer of a run that nobody interrupts."""
    folder = tmp_path_factory.mktemp("whole")
    found = design_motion("cylindrical", **ASKED, out=folder)
    found.save(folder)
    return found, folder


@pytest.fixture
def every_piece(monkeypatch):
    """Pieces of a small arm are so quick that not all would be written."""
    monkeypatch.setattr(unfinished, "_MOST_TIME", float("inf"))


def kept_in(folder: Path, by: str = "Design") -> Path:
    return folder / unfinished_file(by)


def codes(found: Any) -> list[str]:
    return [note.code for note in found.notes]


def kill_when_something_is_kept(words: list[str], file: Path) -> None:
    process = subprocess.Popen([sys.executable, "-m", "armid", *words], stdout=-3, stderr=-3)
    try:
        limit = time.monotonic() + 120.0
        while not file.is_file() and process.poll() is None and time.monotonic() < limit:
            time.sleep(0.002)
    finally:
        process.kill()
    assert process.wait() == -9, "it was over before it could be killed"


def test_design_killed_after_its_first_start_ends_with_the_same_motion(tmp_path: Path, whole):
    words = ["design", "cylindrical", *WORDS, f"--out={tmp_path}"]
    kill_when_something_is_kept(words, kept_in(tmp_path))
    assert not (tmp_path / "trajectory.json").exists()
    done = json.loads(kept_in(tmp_path).read_text())["pieces"]["search"]["done"]
    assert 0 < len(done) < ASKED["starts"]
    again = subprocess.run([sys.executable, "-m", "armid", *words], capture_output=True, text=True, check=True)
    assert "went on from what an interrupted run had left" in again.stderr
    for name in SAME_FILES:
        assert (tmp_path / name).read_bytes() == (whole[1] / name).read_bytes()
    assert not kept_in(tmp_path).exists()


@pytest.mark.parametrize("pieces", [2, 3, 5])
def test_wherever_it_is_killed_the_search_ends_the_same(tmp_path: Path, whole, every_piece, pieces: int):
    """Among the starts, after the last one, and among the motions that are polished."""
    with pytest.raises(Killed):
        design_motion("cylindrical", **ASKED, out=tmp_path, progress=killed_after(pieces))
    left = json.loads(kept_in(tmp_path).read_text())["pieces"]["search"]
    assert len(left["done"]) == min(pieces, 3)
    assert len(left["taken"]) == max(pieces - 3, 0)
    told: list[str] = []
    found = design_motion("cylindrical", **ASKED, out=tmp_path, progress=told.append)
    assert len(told) == 6 - pieces  # three starts, three of them polished
    assert "resumed" in codes(found)
    expected = whole[0].search
    assert (found.search.explored, found.search.polished) == (expected.explored, expected.polished)
    for ours, theirs in zip(found.search.pool, expected.pool, strict=True):
        assert (ours.start, ours.objective, ours.feasible) == (theirs.start, theirs.objective, theirs.feasible)
        np.testing.assert_array_equal(ours.coefficients, theirs.coefficients)
    t = np.linspace(0.0, 4.0, 50)
    np.testing.assert_array_equal(found.trajectory.sample(t), whole[0].trajectory.sample(t))
    found.save(tmp_path)
    assert not kept_in(tmp_path).exists()


def test_another_question_does_not_use_what_is_kept_and_says_so(tmp_path: Path, whole):
    with pytest.raises(Killed):
        design_motion("cylindrical", **(ASKED | {"seed": 6}), out=tmp_path, progress=killed_after(1))
    found = design_motion("cylindrical", **ASKED, out=tmp_path)
    assert "unfinished-not-used" in codes(found)
    np.testing.assert_array_equal(found.search.best.coefficients, whole[0].search.best.coefficients)


def test_an_answer_of_an_uninterrupted_run_has_no_note_about_it(whole):
    assert not {"resumed", "unfinished-not-used", "not-kept"} & set(codes(whole[0]))
    assert not kept_in(whole[1]).exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema": "other"}', '{"schema": "armid.unfinished/1"}'])
def test_a_damaged_file_is_not_used(tmp_path: Path, content: str):
    kept_in(tmp_path).write_text(content)
    kept = UnfinishedWork(tmp_path, "Design", 1)
    assert kept.get("search") is None
    assert codes(kept) == ["unfinished-not-used"]
    kept.put("search", 1)
    assert UnfinishedWork(tmp_path, "Design", 1).get("search") == 1


def test_a_file_behind_a_link_is_not_used(tmp_path: Path):
    UnfinishedWork(tmp_path / "theirs", "Design", 1).put("search", 1)
    kept_in(tmp_path).symlink_to(kept_in(tmp_path / "theirs"))
    assert UnfinishedWork(tmp_path, "Design", 1).get("search") is None


def test_kept_pieces_that_were_tampered_with_are_named(tmp_path: Path):
    with pytest.raises(Killed):
        design_motion("cylindrical", **ASKED, out=tmp_path, progress=killed_after(1))
    file = kept_in(tmp_path)
    value = json.loads(file.read_text())
    del value["pieces"]["search"]["done"]
    file.write_text(json.dumps(value))
    with pytest.raises(InputError, match="'done' is missing"):
        design_motion("cylindrical", **ASKED, out=tmp_path)


def test_a_search_without_an_answer_leaves_nothing_behind(tmp_path: Path, monkeypatch):
    def none(*_args: object, kept: UnfinishedWork, **_more: object) -> Design:
        kept.put("search", {})
        assert kept_in(tmp_path / "new").is_file()
        raise InfeasibleError("no motion")

    monkeypatch.setattr("armid.design.design.design_excitation", none)
    with pytest.raises(InfeasibleError):
        design_motion("cylindrical", **ASKED, out=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_disk_that_takes_no_more_ends_the_keeping_not_the_work(tmp_path: Path, monkeypatch):
    def full(path: Path, *_args: object, **_more: object) -> None:
        raise InputError(path, "cannot be written: No space left on device")

    monkeypatch.setattr(unfinished, "write_json", full)
    kept = UnfinishedWork(tmp_path, "Design", 1)
    kept.put("search", 1)
    kept.put("search", 2)
    assert codes(kept) == ["not-kept"]
    assert kept.get("search") == 2


def test_starts_that_were_under_way_in_other_processes_are_done_first():
    """Two processes had finished starts 0 and 2 of five; 1 and 3 were lost."""
    plan = SearchState(budget=Budget(seconds=None, starts=5), families=1, done={0, 2})
    starts = []
    while (task := plan.task()) is not None:
        assert task.work is Work.EXPLORE
        starts.append(task.start)
    assert starts == [1, 3, 4]


def test_time_a_killed_search_took_counts():
    plan = SearchState(budget=Budget(seconds=10.0), families=1, sketching=True)
    plan.record(plan.task(), Candidate(start=0, family=0, coefficients=np.zeros((3, 2)), objective=1.0))  # type: ignore[arg-type]
    again = SearchState(budget=Budget(seconds=10.0), families=1)
    again.go_on(plan.values() | {"seconds": 9.0}, None)  # type: ignore[arg-type]
    assert again.share == pytest.approx(0.9, abs=0.05)
    assert again.counts == (1, 0)


def test_what_is_kept_stays_small():
    """However many starts are finished, only the good ones keep their motion."""
    plan = SearchState(budget=Budget(seconds=None, starts=500), families=1)
    for _ in range(500):
        task = plan.task()
        assert task is not None
        height = float((task.start * 37) % 500)
        plan.record(task, Candidate(start=task.start, family=0, coefficients=np.ones((21, 7)), objective=height))
    values = json.loads(json.dumps(plan.values()))
    assert len(values["explored"]) == 8
    again = SearchState(budget=plan.budget, families=1)
    again.go_on(values, None)  # type: ignore[arg-type]
    assert again.counts == (500, 0)
    first, other = again.task(), plan.task()
    assert first is not None
    assert other is not None
    assert (first.work, first.start) == (other.work, other.start) == (Work.POLISH, 0)


def test_the_digest_sees_every_bit_of_the_question_and_no_more():
    arm = load_robot("cylindrical")
    asked = {"arm": arm, "words": frozenset("abc"), "numbers": np.array([0.1, 0.2])}
    same = {"numbers": np.array([0.1, 0.2]), "words": frozenset("cba"), "arm": load_robot("cylindrical")}
    assert question_digest(asked) == question_digest(same)
    joint = arm.joints[0]
    narrower = replace(joint, limits=replace(joint.limits, torque=np.nextafter(joint.limits.torque, 0.0)))
    other = asked | {"arm": replace(arm, joints=(narrower, *arm.joints[1:]))}
    assert question_digest(other) != question_digest(asked)
    with pytest.raises(TypeError, match="no definite text"):
        question_digest(object())


def test_a_killed_study_ends_with_the_same_numbers(tmp_path: Path, every_piece, monkeypatch):
    """Killed after the first recordings: neither the calibration nor what was recorded is done again."""
    arm, settings = load_robot("cylindrical"), StudySettings(motions=1, seconds=4.0, poses=6, torques=TorqueSide.LINK)
    calibrated: list[object] = []
    monkeypatch.setattr(study_module, "kinematic_step", once(study_module.kinematic_step, calibrated))
    moved: list[object] = []
    carry_out = study_module.carry_out
    for module in (study_module, study_pieces):
        monkeypatch.setattr(module, "carry_out", lambda *args: moved.append(args) or carry_out(*args))

    def tell(text: str, _share: float) -> None:
        if text == "motions recorded and identified: 1 of 2 done":
            raise Killed

    expected = run_study(arm, settings)
    with pytest.raises(Killed):
        run_study(arm, settings, progress=tell, out=tmp_path)
    kept = json.loads(kept_in(tmp_path, "Study").read_text())["pieces"]
    assert [name for name in kept if name.startswith("recording")] == [f"recording 0 0 {k}" for k in range(3)]
    assert len(calibrated) == 2
    moved.clear()
    found = run_study(arm, settings, out=tmp_path)
    assert len(calibrated) == 2  # kept
    assert len(moved) == 2  # the optimised and the held-out motion; the way-points are kept
    assert "resumed" in codes(found)
    for ours, theirs in zip(found.cases, expected.cases, strict=True):
        np.testing.assert_array_equal(ours.estimates, theirs.estimates)
        np.testing.assert_array_equal(ours.predicted, theirs.predicted)
        np.testing.assert_array_equal(ours.residuals, theirs.residuals)
    assert question_digest(found.kinematics) == question_digest(expected.kinematics)
    found.save(tmp_path)
    assert not kept_in(tmp_path, "Study").exists()


def once(step: Any, calls: list[object]):
    """The step, done once and counted: it is the same for the same question."""
    made: list[Any] = []

    def counted(*args: Any, **more: Any) -> Any:
        calls.append(args)
        if not made:
            made.append(step(*args, **more))
        return made[0]

    return counted


def test_a_kept_calibration_that_was_tampered_with_is_named(tmp_path: Path, every_piece, monkeypatch):
    arm, settings = load_robot("cylindrical"), StudySettings(motions=1, seconds=4.0, poses=6, torques=TorqueSide.LINK)

    def tell(text: str, _share: float) -> None:
        if "calibrating" not in text:
            raise Killed

    with pytest.raises(Killed):
        run_study(arm, settings, progress=tell, out=tmp_path)
    path = kept_in(tmp_path, "Study")
    kept = json.loads(path.read_text())
    kept["pieces"]["calibration"]["verdict"] = "splendid"
    path.write_text(json.dumps(kept))
    with pytest.raises(InputError, match=r"wrong kind.*splendid.*calibration of an interrupted study"):
        run_study(arm, settings, out=tmp_path)
