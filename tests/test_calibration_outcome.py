"""`armid.calibrate` and `armid.compensate` as people import them: paths or objects in, answers of one family out."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import armid
from armid.calibration.judge import judge
from armid.calibration.read import read_poses
from armid.cli import application
from armid.documents import plain
from armid.errors import InputError, UnknownNameError
from armid.kernels.kinematics import forward_kinematics
from armid.kinematics.calibrated import predicted_poses
from armid.kinematics.correction import read_correction
from armid.kinematics.rotations import quaternion_from_matrix
from armid.kinematics.words import Term
from armid.notes import Note, Severity
from armid.outcome import UntrustedError
from armid.parameters.effects import Effects
from armid.robot.load import load_robot
from armid.rows.quantity import Quantity, sources_for
from support.measured_arm import MeasuredArm

COLUMNS = ["x", "y", "z", "qw", "qx", "qy", "qz"]


def write_csv(path, header, rows):
    lines = [",".join(header), *(",".join(repr(float(x)) for x in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def poses(tmp_path_factory):
    """Measured poses of an arm with planted errors, and a file of joint targets."""
    folder = tmp_path_factory.mktemp("poses")
    arm = MeasuredArm(load_robot("ur10e"), np.random.default_rng(3))
    q = arm.configurations(40)
    T = arm.noisy(arm.Z @ arm.tool_in_base(q))
    joints = [f"q{i + 1}" for i in range(6)]
    rows = np.column_stack([q, T[:, :3, 3], quaternion_from_matrix(T[:, :3, :3])])
    write_csv(folder / "targets.csv", joints, np.random.default_rng(0).uniform(-1.5, -0.5, (5, 6)))
    return write_csv(folder / "poses.csv", [*joints, *COLUMNS], rows)


@pytest.fixture(scope="module")
def found(poses):
    return armid.calibrate("ur10e", poses, terms="offset", folds=4)


def test_paths_and_objects_give_the_same(poses, found):
    robot = armid.load_robot("ur10e")
    again = armid.calibrate(robot, read_poses(poses, robot.joint_names), terms=[Term.OFFSET], folds=4)
    np.testing.assert_array_equal(again.fit.after.values, found.fit.after.values)
    assert [file.role for file in found.provenance.inputs] == ["robot", "poses"]
    assert len(found.provenance.inputs[1].sha256) == 64


def test_answer_reads_as_a_table_a_line_and_plain_values(found):
    assert found.verdict is armid.Verdict.TRUSTED
    assert found.advice == "trusted"
    assert "\n" not in repr(found)
    assert len(repr(found)) < 250
    text = found.summary()
    assert "position, held out" in text
    assert "trusted" in text
    assert found.as_dict()["identified"] == len(found.identified) == 30
    assert found.parameters["joint3.offset"].status == "identified"
    assert np.isinf(found.parameters["link1.tx"].standard_deviation)
    assert found.parameters.sorted_by("standard_deviation")[0].name in found.identified
    assert "error-map" in found.figures()
    assert found.plot("histogram-position").data


def test_information_has_a_channel_for_each_kind_of_measurement(found):
    information = found.fit.after.information
    assert [channel.name for channel in information.channels] == ["sensor.position", "sensor.orientation"]
    assert information.parameters == found.identified
    assert information.count == found.measurements.n_equations


def test_saved_and_loaded(found, tmp_path):
    files = found.save(tmp_path / "calibrated")
    assert all(path.is_file() for path in files)
    stored = armid.load_calibration(tmp_path / "calibrated")
    assert stored.verdict is found.verdict
    assert stored.advice is found.advice
    assert stored.identified == found.identified
    assert list(stored.parameters) == list(found.parameters)
    assert {k: v for k, v in stored.as_dict().items() if k != "files"} == plain(found.as_dict())
    assert stored.errors["position_error_held_out"].mean == found.as_dict()["position_error_held_out"]["mean"]
    q = np.random.default_rng(0).uniform(-2, 2, (20, 6))
    np.testing.assert_allclose(forward_kinematics(stored.robot, q), forward_kinematics(found.robot, q), atol=1e-12)
    correction = stored.correction(found.nominal)
    expected = predicted_poses(found.fit.model, found.fit.after.values, q)
    np.testing.assert_allclose(predicted_poses(correction.model, correction.values, q), expected, atol=1e-12)
    for mine, its in zip(found.information.channels, stored.information.channels, strict=True):
        assert (mine.name, mine.count) == (its.name, its.count)
        np.testing.assert_array_equal(mine.factor, its.factor)
    assert stored.information.parameters == found.identified
    assert "\n" not in repr(stored)
    assert "position, held out" in stored.summary()
    assert stored.plot("mean-position").data
    assert stored.report(tmp_path / "stored.html").is_file()
    assert {path.name for path in stored.save(tmp_path / "copy")} == {path.name for path in files}
    with pytest.raises(InputError, match="expected a calibration folder"):
        armid.load_calibration(tmp_path)
    (tmp_path / "copy" / "calibration.json").write_text('{"format": "armid-calibration/1"}')
    with pytest.raises(InputError, match="parameters"):
        armid.load_calibration(tmp_path / "copy")


def test_export_is_gated(found, poses, tmp_path):
    assert "UNVALIDATED" not in found.export(tmp_path / "good.urdf").read_text()
    q = np.random.default_rng(1).uniform(-2, 2, (30, 6))
    T = forward_kinematics(found.nominal, q)
    T[:, :3, 3] += 5e-3 * np.random.default_rng(2).normal(size=(30, 3))
    rows = np.column_stack([q, T[:, :3, 3], quaternion_from_matrix(T[:, :3, :3])])
    noisy = write_csv(tmp_path / "noisy.csv", [*(f"q{i + 1}" for i in range(6)), *COLUMNS], rows)
    poor = armid.calibrate("ur10e", noisy, terms="offset", folds=3)
    assert poor.verdict is armid.Verdict.UNTRUSTED
    assert poor.advice == "no held-out gain"
    assert not next(check for check in poor.checks if check.code == "held-out-significance").passed
    with pytest.raises(UntrustedError, match="no held-out gain"):
        poor.export(tmp_path / "poor.urdf")
    for name in ("poor.urdf", "poor.yaml"):
        assert "UNVALIDATED" in poor.export(tmp_path / name, force=True).read_text()


def test_an_error_among_the_notes_makes_it_untrusted(found):
    notes = (Note("duplicated-target", Severity.ERROR, "half of the lines are copies"),)
    advice, checks = judge(found.held_out, None, notes, converged=True)
    assert advice == "untrusted"
    assert [check.code for check in checks if not check.passed] == ["duplicated-target"]


def test_command_line_prints_what_the_answer_says(poses, found, tmp_path):
    done = CliRunner().invoke(
        application(),
        ["calibrate", "ur10e", str(poses), "--terms", "offset", "--folds", "4", "--out", str(tmp_path), "--json"],
    )
    assert done.exit_code == 0, done.stderr
    data = json.loads(done.stdout)
    assert data.pop("seconds") > 0.0
    assert set(data.pop("files")) >= {"urdf", "yaml", "correction", "summary", "report"}
    assert data == plain(found.as_dict())


@pytest.mark.parametrize(
    "words", [{"model": "euler"}, {"terms": "offset,rust"}, {"setups": "ours"}, {"method": "guess"}, {"sensor": "eye"}]
)
def test_unknown_words_are_refused_with_those_there_are(poses, words):
    with pytest.raises(UnknownNameError, match=str(next(iter(words.values()))).rsplit(",", maxsplit=1)[-1]):
        armid.calibrate("ur10e", poses, **words)


def test_inspection_names_the_unknowns_of_a_calibration(found):
    """Every unknown of `inspect --quantity pose` is one of `calibrate`, and as many can be identified."""
    from armid.identifiability.structure import structural_base

    (source,) = sources_for(found.nominal, [Quantity.POSE], Effects())
    assert set(source.columns) <= set(found.fit.model.names)
    assert set(found.identified) <= set(source.columns)
    assert len(structural_base(source)) == len(found.identified)


def test_compensation_is_an_answer_too(poses, found, tmp_path):
    targets = poses.parent / "targets.csv"
    found.save(tmp_path / "c")
    answers = [
        armid.compensate("ur10e", correction, targets)
        for correction in (
            found,
            tmp_path / "c",
            str(tmp_path / "c" / "correction.json"),
            read_correction(tmp_path / "c" / "correction.json", found.nominal),
        )
    ]
    for answer in answers:
        np.testing.assert_allclose(answer.q, answers[0].q, atol=1e-10)
    first = answers[0]
    assert first.verdict is armid.Verdict.TRUSTED
    assert "\n" not in repr(first)
    assert "5 of 5 targets" in first.summary()
    assert first.plot("change").data
    assert first.save(tmp_path / "out")[0].name == "targets.csv"
    done = CliRunner().invoke(
        application(),
        ["compensate", "ur10e", str(tmp_path / "c"), str(targets), "--out", str(tmp_path / "cli"), "--json"],
    )
    assert done.exit_code == 0, done.stderr
    data = json.loads(done.stdout)
    assert {data.pop("file")} == set(data.pop("files"))
    assert data == plain(answers[1].as_dict())
    far = armid.compensate(found.nominal, found, [[7.0, -1.0, -1.0, -1.0, -1.0, -1.0]])
    assert [check.code for check in far.checks if not check.passed] == ["joint-limits"]
    assert far.verdict is armid.Verdict.UNTRUSTED


def test_targets_out_of_reach_are_not_to_be_trusted(found):
    from armid.calibration.targets import Targets

    T = forward_kinematics(found.nominal, np.zeros((1, 6)))
    T[0, :3, 3] += 20.0
    away = armid.compensate(found.nominal, found, Targets(np.zeros((1, 6)), T))
    assert next(check.code for check in away.checks if not check.passed) == "targets-reached"
    assert away.as_dict()["usable"] == 0


def test_targets_beyond_the_measured_ranges_are_told_from_the_stored_file_too(found, tmp_path):
    found.save(tmp_path / "c")
    highest = found.measurements.q.max(axis=0)
    inside, beyond = 0.9 * highest, highest + 0.5 * np.eye(6)[1]
    for correction in (found, tmp_path / "c"):
        assert not armid.compensate(found.nominal, correction, [inside]).notes
        (note,) = armid.compensate(found.nominal, correction, [beyond]).notes
        assert note.code == "beyond-range"
        assert found.nominal.joint_names[1] in note.message


def test_targets_of_an_untrusted_calibration_are_untrusted(found, tmp_path):
    found.save(tmp_path / "c")
    path = tmp_path / "c" / "correction.json"
    data = json.loads(path.read_text())
    assert data["advice"] == "trusted"
    path.write_text(json.dumps({**data, "advice": "no held-out gain"}))
    answer = armid.compensate(found.nominal, path, found.measurements.q[:2])
    assert answer.verdict is armid.Verdict.UNTRUSTED
    assert "no held-out gain" in answer.reasons[0]


def test_nothing_is_said_twice(found):
    """A finding that makes the answer untrusted is a reason, and not a note again."""
    from dataclasses import replace

    note = Note("frame-change", Severity.ERROR, "the recording contradicts itself")
    check = armid.Check(code=note.code, passed=False, value=1.0, limit=0.0, message=note.message)
    poor = replace(found, notes=(*found.notes, note), checks=(check, *found.checks))
    assert poor.summary().count(note.message) == 1
    assert poor._repr_html_().count(note.message) == 1
    assert note in poor.notes
    assert note not in poor.further_notes
