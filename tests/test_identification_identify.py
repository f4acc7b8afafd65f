"""`armid.identify`, `armid.validate` and `armid.compare`: paths and objects, one family of answers, Information that adds up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import armid
from armid.documents import plain
from armid.errors import InputError, UnknownNameError
from armid.estimation import determined
from armid.estimation import runs as shelf
from armid.estimation.run import information_of, summed
from armid.estimation.runs import Runs, RunShelf, map_runs, thinned_runs
from armid.identifiability import structure
from armid.identification import pipeline, prepare
from armid.identification.thresholds import THRESHOLDS
from armid.identification.torque_error import joint_errors
from armid.logs import recording
from armid.outcome import UntrustedError, Verdict
from armid.robot.load import load_robot
from support.elbow_logs import ROBOT, run, write_elbow_log

FRICTION = "viscous,coulomb,offset"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("identify")
    (folder / "elbow.yaml").write_text(ROBOT)
    robot = load_robot(folder / "elbow.yaml")
    for k in (1, 2, 3, 4):
        write_elbow_log(folder / f"log{k}.csv", robot, k)
    return folder


@pytest.fixture(scope="module")
def result(place):
    return armid.identify(place / "elbow.yaml", place / "log1.csv", validate=place / "log3.csv")


@pytest.fixture(scope="module")
def other(place):
    return armid.identify(str(place / "elbow.yaml"), [place / "log2.csv"], validate=[place / "log4.csv"])


def test_paths_and_objects_give_the_same(place, result):
    robot = load_robot(place / "elbow.yaml")
    logs = [armid.logs.open_recording(place / f"log{k}.csv", robot) for k in (1, 3)]
    again = armid.identify(robot, logs[0], validate=logs[1], friction=FRICTION, torques="link", method="wls")
    np.testing.assert_array_equal(again.estimate.values, result.estimate.values)
    assert again.checks == result.checks


def test_the_command_line_says_what_the_function_says(place, result):
    args = ("identify", place / "elbow.yaml", place / "log1.csv", "--validate", place / "log3.csv")
    said = run(*args, "--out", place / "typed", "--json")
    mine = json.loads(json.dumps(plain(result.as_dict())))
    assert set(said) == {*mine, "files"}
    for key in set(mine) - {"seconds", "peak_memory_mb"}:
        assert said[key] == mine[key]
    assert all(joint["verdict"] == "trusted" for joint in said["joints"])


def test_an_answer_of_the_family(result, tmp_path):
    text = result.summary()
    assert "15 base parameters" not in text
    assert "24 base parameters" in text
    assert "trusted" in text
    assert "Notes:\n[1]" in text
    assert "\n" not in repr(result)
    assert "<table>" in result._repr_html_()
    assert result.raise_if_untrusted() is result
    files = result.save(tmp_path / "stored")
    assert {path.name for path in files} == {"result.json", "result.npz", "torque.npz"}
    again = armid.load_result(tmp_path / "stored")
    assert plain(again.as_dict()) == plain(result.as_dict())
    assert again.checks == result.checks
    assert again.provenance == result.provenance
    for mine, stored in zip(result.information.channels, again.information.channels, strict=True):
        np.testing.assert_array_equal(mine.factor, stored.factor)
        assert (mine.name, mine.count) == (stored.name, stored.count)
    assert any(name.startswith("torque") for name in result.figures())
    assert again.plot("torque").data
    assert result.report(tmp_path / "page.html").stat().st_size > 10_000


def test_parameters_are_rows_a_person_can_sort(result):
    row = result.parameters["joint2.viscous"]
    assert row.low < 2.0 < row.high
    assert row.unit == "N m s/rad"
    widest = result.parameters.sorted_by("standard_deviation", descending=True)
    assert widest[0].standard_deviation >= widest[-1].standard_deviation
    assert {row.determined_by for row in result.standard_parameters} <= {"data", "both", "prior"}
    assert all(np.isinf(row.high) for row in result.standard_parameters if row.determined_by == "prior")


def test_the_robot_of_a_result_is_the_identified_one(result):
    q = np.zeros((1, 3))
    described, identified = (armid.inverse_dynamics(arm, q, q, q) for arm in (result.described, result.robot))
    # The true arm is a tenth heavier than its description.
    assert identified[0, 1] == pytest.approx(1.1 * described[0, 1], rel=0.02)
    assert result.robot.joints[1].drive.coulomb == pytest.approx(1.5, abs=0.1)


def test_export_goes_by_the_suffix_and_the_gate(result, tmp_path):
    files = result.export(tmp_path / "arm.urdf")
    assert files == (tmp_path / "arm.urdf", tmp_path / "arm.joints.yaml")
    with pytest.raises(InputError, match="stands for no format"):
        result.export(tmp_path / "arm.step")
    failed = replace(result, checks=(*result.checks, replace(result.checks[0], passed=False, message="no good")))
    with pytest.raises(armid.ArmidError, match="no good"):
        failed.export(tmp_path / "bad.urdf")
    assert failed.verdict is Verdict.UNTRUSTED
    assert "UNVALIDATED" in failed.export(tmp_path / "bad.urdf", force=True)[0].name
    with pytest.raises(UntrustedError, match="no good"):
        failed.raise_if_untrusted()


def test_the_sum_knows_as_much_as_both_recordings_together(place):
    def of(train: list[str], held_out: list[str]) -> armid.Result:
        learned, tested = ([place / f"log{k}.csv" for k in part] for part in (train, held_out))
        return armid.identify(place / "elbow.yaml", learned, validate=tested, cutoff_hz=10.0, imperfections="none")

    both, together = of(["1"], ["3"]) + of(["2"], ["4"]), of(["1", "2"], ["3", "4"])
    ratio = both.estimate.standard_deviations / together.estimate.standard_deviations
    assert np.median(ratio) == pytest.approx(1.0, abs=0.15)


def test_information_adds_up(place, result, other):
    both = result + other
    together = armid.identify(
        place / "elbow.yaml",
        [place / "log1.csv", place / "log2.csv"],
        validate=[place / "log3.csv", place / "log4.csv"],
        cutoff_hz=result.conditioning.cutoff_hz,
    )
    assert both.information.count == pytest.approx(result.information.count + other.information.count)
    shift = (both.estimate.values - together.estimate.values) / together.estimate.standard_deviations
    assert np.abs(shift).max() < 0.3
    # What each recording alone leaves open about its sensors stays open in the sum; both together decide some of it.
    assert np.median(both.estimate.standard_deviations / together.estimate.standard_deviations) > 0.85
    assert np.all(both.estimate.standard_deviations < 1.1 * result.estimate.standard_deviations)
    assert both.verdict is Verdict.TRUSTED
    assert [log.name for log in both.provenance.train] == ["log1", "log2"]
    assert both.relative_error["held_out"] == pytest.approx(together.relative_error["held_out"], rel=0.1)
    assert "not-worse-than-nominal" in {check.code for check in both.checks}


def test_a_sum_survives_storage(result, other, tmp_path):
    both = result + other
    both.save(tmp_path / "both")
    again = armid.load_result(tmp_path / "both")
    assert plain(again.as_dict()) == plain(both.as_dict())
    with pytest.raises(InputError, match="log1"):
        again + result


def test_the_same_log_is_never_added_twice(place, result, tmp_path):
    with pytest.raises(InputError, match=r"log1.*learned from it already"):
        result + result
    with pytest.raises(InputError, match=r"log1.*learned from it already"):
        armid.identify(place / "elbow.yaml", place / "log1.csv", prior=result)
    copy = tmp_path / "renamed.csv"
    copy.write_bytes((place / "log1.csv").read_bytes())
    with pytest.raises(InputError, match="learned from it already"):
        armid.identify(place / "elbow.yaml", place / "log2.csv", validate=copy, prior=result)


def test_a_sum_without_a_motion_that_neither_saw_asks_to_be_validated(place, result):
    crossed = armid.identify(place / "elbow.yaml", place / "log3.csv", validate=place / "log1.csv")
    both = result + crossed
    assert both.verdict is Verdict.UNTRUSTED
    assert any("validate it" in reason for reason in both.reasons)


def test_results_of_other_models_do_not_add(place, result):
    plainer = armid.identify(place / "elbow.yaml", place / "log2.csv", friction="viscous,coulomb", sensitivity=False)
    with pytest.raises(InputError, match="other parameters"):
        result + plainer
    tilted = replace(result, described=result.described.with_gravity([0.0, 0.0, 9.81]))
    with pytest.raises(InputError, match="mountings differ"):
        result + tilted


def test_a_prior_is_more_information(place, result, other):
    continued = armid.identify(
        place / "elbow.yaml", place / "log2.csv", validate=place / "log4.csv", prior=result, sensitivity=False
    )
    both = result + other
    shift = (continued.estimate.values - both.estimate.values) / both.estimate.standard_deviations
    assert np.abs(shift).max() < 0.5
    assert continued.information.count == pytest.approx(both.information.count, rel=0.01)


def test_validation_is_an_answer(place, result, tmp_path):
    answer = armid.validate(result, place / "log2.csv")
    assert answer.verdict is Verdict.TRUSTED
    assert "held-out torque error" in answer.summary()
    assert "\n" not in repr(answer)
    assert answer.figures() == ("held-out",)
    assert answer.report(tmp_path / "page.html").exists()
    assert json.loads(answer.save(tmp_path)[0].read_text())["verdict"] == "trusted"
    result.save(tmp_path / "r")
    said = run("validate", tmp_path / "r", place / "log2.csv", "--json")
    assert {key: said[key] for key in answer.as_dict()} == json.loads(json.dumps(plain(answer.as_dict())))
    seen = armid.validate(result, place / "log1.csv")
    assert [check.subject for check in seen.checks if check.code == "never-seen"] == ["log1"]


def test_comparison_is_an_answer(place, result, other, tmp_path):
    answer = armid.compare(result, other)
    assert answer.verdict is Verdict.TRUSTED
    assert len(answer.rows) == 24
    assert answer.largest_difference < 6.0
    assert "\n" not in repr(answer)
    assert "held-out" in answer.figures()
    result.save(tmp_path / "a")
    other.save(tmp_path / "b")
    said = run("compare", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "c", "--json")
    assert said["largest_difference"] == pytest.approx(answer.largest_difference)
    assert Path(said["report"]).exists()
    renamed = replace(
        other,
        described=replace(other.described, joints=tuple(replace(j, name=f"x{j.name}") for j in other.described.joints)),
    )
    with pytest.raises(InputError, match="xwaist"):
        armid.compare(result, renamed)
    with pytest.raises(InputError, match="at least two"):
        armid.compare(result)


def test_far_estimates_are_said_to_disagree(result, other):
    values = np.array(other.estimate.values)
    values[3] += 50.0 * other.estimate.standard_deviations[3]
    answer = armid.compare(result, replace(other, estimate=replace(other.estimate, values=values)))
    failed = [check for check in answer.checks if not check.passed]
    assert failed
    assert other.estimate.names[3] in failed[0].message


def test_words_that_do_not_exist(place):
    for words in ({"method": "magic"}, {"friction": "sand"}, {"torques": "both sides"}, {"consistency": "sdp"}):
        with pytest.raises(UnknownNameError):
            armid.identify(place / "elbow.yaml", place / "log1.csv", **words)


def test_warnings_of_the_logs_are_printed(place):
    outcome = run("identify", place / "elbow.yaml", place / "log1.csv", "--out", place / "printed")
    assert "24 base parameters" in outcome.stdout
    assert "cutoff-chosen" in outcome.stderr


def test_thresholds_have_units_and_reasons():
    assert len({t.name for t in THRESHOLDS}) == len(THRESHOLDS)
    assert all(t.unit and t.reason for t in THRESHOLDS)


def test_structure_is_computed_once_and_every_log_conditioned_once(place, monkeypatch):
    calls = []
    real = structure.structure
    monkeypatch.setattr(structure, "structure", lambda *a, **k: calls.append(a) or real(*a, **k))
    armid.identify(place / "elbow.yaml", place / "log1.csv", validate=place / "log3.csv", sensitivity=False)
    assert len(calls) == 1


def test_runs_come_back_from_the_shelf_as_they_were(place):
    robot = load_robot(place / "elbow.yaml")
    train = [recording.open_recording(place / f"log{k}.csv", robot) for k in (1, 2)]
    settings = pipeline.Identification(effects=armid.Effects(viscous=True, coulomb=True))
    data = prepare.prepared(robot, train, [], settings)
    small = RunShelf(held_bytes=1000)
    for piece in data.train:
        small.append(piece)
    back = small.runs()
    assert isinstance(back, Runs)
    assert back.lengths == tuple(len(r) for r in data.train)
    for mine, stored in zip(data.train, back, strict=True):
        np.testing.assert_array_equal(mine.inputs, stored.inputs)
        np.testing.assert_array_equal(mine.y, stored.y)
        np.testing.assert_array_equal(mine.y_raw, stored.y_raw)
        assert (mine.name, mine.segments, mine.rate) == (stored.name, stored.segments, stored.rate)
    doubled = back.map(lambda r: replace(r, y=2.0 * r.y))
    np.testing.assert_array_equal(doubled[1].y, 2.0 * data.train[1].y)
    assert len(back[1:]) == 1
    one, two = information_of(data.train), information_of(back)
    np.testing.assert_allclose(one.stacked(), two.stacked(), rtol=1e-12, atol=1e-12)
    standard = np.ones(len(one.parameters))
    assert joint_errors(data.train, [], standard)[0] == joint_errors(back, [], standard)[0]


@pytest.mark.parametrize("held_bytes", [1000, 1 << 30], ids=["put aside", "in memory"])
def test_what_a_function_makes_of_runs_is_found_once(place, held_bytes):
    robot = load_robot(place / "elbow.yaml")
    train = [recording.open_recording(place / f"log{k}.csv", robot) for k in (1, 2)]
    data = prepare.prepared(robot, train, [], pipeline.Identification(effects=armid.Effects(viscous=True)))
    kept = RunShelf(held_bytes=held_bytes)
    for one in data.train:
        kept.append(one)
    runs, passes = kept.runs(), []

    def counted(one):
        passes.append(one.name)
        return one.information()

    first, second = summed(runs, counted), summed(runs, counted)
    assert len(passes) == 2
    np.testing.assert_array_equal(first.stacked(), second.stacked())
    changed = map_runs(runs, lambda one: replace(one, y=2.0 * one.y))
    assert summed(changed, counted).channels[0].factor[-1, -1] == pytest.approx(2.0 * first.channels[0].factor[-1, -1])


def test_thinned_pieces_of_one_log_are_one_run(place):
    robot = load_robot(place / "elbow.yaml")
    log = recording.open_recording(place / "log1.csv", robot)
    data = prepare.prepared(robot, [log], [], pipeline.Identification(effects=armid.Effects(viscous=True)))
    (whole,) = data.train
    half = len(whole) // 8 * 4
    pieces = [whole.window(0, half), whole.window(half, len(whole))]
    (thin,) = thinned_runs(pieces, len(whole) // 4)
    np.testing.assert_array_equal(thin.inputs, whole.inputs[::4])
    np.testing.assert_array_equal(thin.y, whole.y[::4])


def test_a_log_too_long_for_memory_gives_the_same_numbers(place, tmp_path, monkeypatch):
    robot = load_robot(place / "elbow.yaml")
    path = write_elbow_log(tmp_path / "long.csv", robot, 11, seconds=600.0)
    whole = armid.identify(robot, path, sensitivity=False)
    monkeypatch.setattr(recording, "HELD_BYTES", 1 << 20)
    monkeypatch.setattr(shelf.RunShelf.__init__, "__defaults__", (1 << 16,))
    parts = armid.identify(robot, path, sensitivity=False)
    assert parts.conditioning.samples_train == pytest.approx(whole.conditioning.samples_train, abs=2)
    assert parts.conditioning.presliding == whole.conditioning.presliding
    shift = (parts.estimate.values - whole.estimate.values) / whole.estimate.standard_deviations
    assert np.abs(shift).max() < 0.02
    np.testing.assert_allclose(parts.estimate.standard_deviations, whole.estimate.standard_deviations, rtol=0.02)
    assert parts.relative_error["held_out"] == pytest.approx(whole.relative_error["held_out"], rel=1e-3)
    assert parts.verdict is whole.verdict


def test_usable_base_counts_rows(place, result):
    few = replace(result.information, channels=tuple(replace(c, count=1.0) for c in result.information.channels))
    with pytest.raises(armid.ArmidError, match="rows for"):
        determined.usable_base((), few, result.estimate.base)
