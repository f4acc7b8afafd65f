"""A log as an answer: read and checked in one call, and one way to be read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.errors import UnknownNameError
from armid.logs import Channel, Clock, Conditions
from armid.logs import recording as recordings
from armid.logs.check import CheckedLogs
from armid.logs.conditioning import stream as streaming
from armid.outcome import UntrustedError, Verdict
from support.recordings import arm, recording

TAU = Channel.LINK_TORQUE


@pytest.fixture(scope="module")
def sound():
    return armid.check_log(recording(), arm())


@pytest.fixture(scope="module")
def reversed_():
    log = recording()
    return armid.check_log(replace(log, channels={**log.channels, TAU: -log[TAU]}), arm())


def test_a_sound_log_is_trusted(sound):
    assert sound.ok
    assert sound.verdict is Verdict.TRUSTED
    assert sound.raise_if_untrusted() is sound
    assert [check.code for check in sound.checks] == ["health"]


def test_an_error_is_a_failed_check(reversed_):
    assert not reversed_.ok
    assert reversed_.verdict is Verdict.UNTRUSTED
    assert {check.code for check in reversed_.checks} == {"torque-sign"}
    assert all(not check.passed and check.decisive for check in reversed_.checks)
    with pytest.raises(UntrustedError, match="torque-sign"):
        reversed_.raise_if_untrusted()


def test_a_log_nobody_checked_has_no_verdict_to_show():
    log = recording()
    assert log.checks == ()
    assert "trusted" not in repr(log)


def test_printing_lists_what_was_found(reversed_):
    text = str(reversed_)
    assert "Notes:\n[1]" in text
    assert "error torque-sign" in text
    assert "untrusted" in text
    assert "torque-sign" in reversed_._repr_html_()


def test_repr_is_one_line(sound, reversed_):
    for log in (sound, reversed_):
        assert "\n" not in repr(log)
        assert len(repr(log)) < 200


def test_figures_are_drawn(sound):
    assert set(sound.figures()) == {"position", "velocity", "torque.link", "steps"}
    figure = sound.plot("torque")
    assert [trace.name for trace in figure.data] == list(sound.joints)
    with pytest.raises(UnknownNameError, match="position"):
        sound.plot("temperature")


def test_the_page_is_written(reversed_, tmp_path):
    page = reversed_.report(tmp_path / "log.html").read_text()
    assert "torque-sign" in page
    assert "untrusted" in page


def test_a_saved_log_is_read_back(tmp_path):
    log = recording(seconds=10.0)
    more = {
        channel: np.full(log[TAU].shape, k + 1.0) + log[TAU]
        for k, channel in enumerate(Channel)
        if channel not in (Channel.CURRENT, *log.channels)
    }
    whole = replace(log, channels={**log.channels, **more})
    (path,) = whole.save(tmp_path / "saved.npz")
    back = armid.read_log(path, arm())
    assert set(back.channels) == set(whole.channels)
    np.testing.assert_array_equal(back.time, whole.time)
    for channel in whole.channels:
        np.testing.assert_array_equal(back[channel], whole[channel])


def test_names_of_joints_are_saved_and_decide(tmp_path):
    log = recording(seconds=10.0)
    turned = replace(
        log, joints=log.joints[::-1], channels={channel: values[:, ::-1] for channel, values in log.channels.items()}
    )
    (path,) = turned.save(tmp_path)
    back = armid.read_log(path, arm())
    assert back.joints == log.joints
    np.testing.assert_array_equal(back[TAU], log[TAU])


def test_conditions_are_saved_in_a_mapping(tmp_path):
    log = replace(recording(seconds=10.0), conditions=Conditions(payload=1.5, mounting=(0.0, 0.0, 9.81)))
    arrays, mapping = log.save(tmp_path)
    assert arrays.name == f"{log.name}.npz"
    assert armid.read_log(mapping, arm()).conditions == log.conditions


def test_a_log_without_a_clock_is_saved_without_one(tmp_path):
    log = replace(recording(seconds=10.0), clock=Clock.UNKNOWN)
    still = replace(log, channels={c: v for c, v in log.channels.items() if c is not Channel.VELOCITY})
    (path,) = still.save(tmp_path)
    assert armid.read_log(path, arm()).clock is Clock.UNKNOWN


def test_paths_and_objects_give_the_same(tmp_path):
    (path,) = recording().save(tmp_path / "log.npz")
    read = armid.read_log(path, arm())
    assert read.checked
    assert {n.code for n in armid.check_log(read, arm()).notes} == {n.code for n in read.notes}
    assert armid.check_log(str(path), arm()).as_dict() == read.as_dict()


def test_several_logs_are_one_answer(sound, reversed_, tmp_path):
    both = CheckedLogs(logs=(sound, replace(reversed_, name="other")))
    assert not both.ok
    assert both.verdict is Verdict.UNTRUSTED
    found = both.as_dict()
    assert [log["name"] for log in found["logs"]] == [sound.name, "other"]
    assert {problem["log"] for problem in found["problems"]} == {"other"}
    assert "other: not to be used as it is" in both.summary()
    (path,) = both.save(tmp_path)
    assert path.name == "check.json"
    assert armid.load_robot  # the robot may be a name or a path as well


def test_a_long_log_is_checked_in_pieces_and_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(recordings, "HELD_BYTES", 10_000)
    monkeypatch.setattr(recordings, "PIECE_ROWS", 3000)
    monkeypatch.setattr(streaming, "CHUNK_ROWS", 3000)
    log = recording(seconds=60.0)
    (path,) = log.save(tmp_path / "long.npz")
    checked = armid.check_log(path, arm())
    assert len(checked) == 3000
    assert checked.total is not None
    assert checked.total.rows == len(log)
    assert checked.as_dict()["logs"][0]["samples"] == len(log)
    assert checked.ok
    assert len(armid.read_log(path, arm())) == len(log)
    reversed_ = replace(log, channels={**log.channels, TAU: -log[TAU]})
    (other,) = reversed_.save(tmp_path / "reversed.npz")
    assert {note.code for note in armid.check_log(other, arm()).errors} == {"torque-sign"}
