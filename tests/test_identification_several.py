"""Many logs: one that cannot be used does not stop the others, and like findings are one line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import armid
from armid.cli import application
from armid.errors import ArmidError, InputError
from armid.identification.several import mended
from armid.logs.log import Channel
from armid.logs.recording import open_recording
from armid.notes import Note, Severity, like_counted
from armid.robot.load import load_robot
from support.elbow_logs import ROBOT, write_elbow_log


def changed(path, source, change):
    """A log with its numbers changed in place: rows of time, q1..q3, tau1..tau3."""
    head, *_ = source.read_text().splitlines()
    values = np.loadtxt(source, delimiter=",", skiprows=1)
    change(values)
    np.savetxt(path, values, delimiter=",", header=head, comments="", fmt="%.12g")
    return path


def reversed_torque(values):
    values[:, -3:] *= -1.0


def frozen_torque(values):
    values[300:700, -2] = values[300, -2]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("several")
    (folder / "elbow.yaml").write_text(ROBOT)
    arm = load_robot(folder / "elbow.yaml")
    for seed in range(4):
        write_elbow_log(folder / f"good{seed}.csv", arm, seed, seconds=15.0)
    changed(folder / "reversed.csv", folder / "good0.csv", reversed_torque)
    changed(folder / "frozen.csv", folder / "good1.csv", frozen_torque)
    (folder / "torn.csv").write_text("not a log at all\n")
    return folder


def test_unusable_logs_are_set_aside_with_their_reason_and_stretches_are_cut(place):
    logs = [place / f"{name}.csv" for name in ("good0", "frozen", "good2", "good3", "torn", "reversed")]
    result = armid.identify(place / "elbow.yaml", logs, validate=place / "good1.csv", sensitivity=False)
    aside = {note.subject: note.message for note in result.notes if note.code == "log-set-aside"}
    assert set(aside) == {"torn.csv", "reversed.csv"}
    assert "torque-sign" in aside["reversed.csv"]
    (cut,) = (note for note in result.notes if note.code == "stretches-cut")
    assert cut.message.startswith("400 of 1500 rows")
    assert len(result.provenance.train) == 4
    assert str(result.verdict) == "trusted", result.reasons


def test_the_rest_is_identified_as_if_the_bad_logs_had_not_been_given(place):
    good = [place / f"good{k}.csv" for k in (0, 2, 3)]
    alone, beside = (
        armid.identify(place / "elbow.yaml", logs, validate=place / "good1.csv", sensitivity=False)
        for logs in (good, [*good, place / "reversed.csv"])
    )
    np.testing.assert_array_equal(alone.estimate.values, beside.estimate.values)


def test_strict_stops_at_the_first(place, tmp_path):
    logs = [place / f"{name}.csv" for name in ("good0", "good2", "good3", "reversed")]
    with pytest.raises(ArmidError, match="torque-sign"):
        armid.identify(place / "elbow.yaml", logs, strict=True)
    done = CliRunner().invoke(
        application(("identify",)),
        ["identify", str(place / "elbow.yaml"), *map(str, logs), "--strict", "--out", str(tmp_path / "out")],
    )
    assert done.exit_code == 1
    assert not (tmp_path / "out").exists()


def test_too_many_unusable_logs_have_a_common_cause(place):
    with pytest.raises(InputError, match=r"2 of 4 cannot be used; the first: reversed.*common cause"):
        armid.identify(
            place / "elbow.yaml",
            [place / "reversed.csv", place / "good2.csv", place / "torn.csv", place / "good3.csv"],
        )


def test_only_the_frozen_rows_are_cut(place):
    arm = load_robot(place / "elbow.yaml")
    recording, notes = mended(open_recording(place / "frozen.csv", arm), arm)
    assert [note.code for note in notes] == ["stretches-cut"]
    assert len(recording) == 1100
    whole = open_recording(place / "good1.csv", arm).log
    np.testing.assert_array_equal(recording.log[Channel.LINK_TORQUE][300:], whole[Channel.LINK_TORQUE][700:])


def test_like_findings_of_many_logs_are_one_line_with_a_count():
    many = [Note("gaps", Severity.WARNING, f"{k} gaps", f"log{k}.csv") for k in range(100)]
    few = [Note("coarse", Severity.INFO, "coarse", f"joint{k}") for k in range(7)]
    shown = like_counted([*many, *few])
    assert len(shown) == 8
    assert shown[0].message == "100 times; the first: 0 gaps"
    assert shown[1:] == tuple(few)


def test_the_command_says_it_once(place, tmp_path):
    logs = [str(place / f"{name}.csv") for name in ("good0", "good2", "good3", "reversed")]
    done = CliRunner().invoke(
        application(("identify",)),
        ["identify", str(place / "elbow.yaml"), *logs, "--json", "--out", str(tmp_path / "out")],
    )
    assert done.exit_code in (0, 3), done.output
    codes = [note["code"] for note in json.loads(done.stdout)["notes"]]
    assert codes.count("log-set-aside") == 1
