"""Positions that leap between two rows: missing rows, slipped encoders and folded angles are found, clean motion is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.arrays import FloatArray
from armid.logs import Channel, Log, check_log
from armid.notes import Note, Severity
from support.recordings import arm, recording

CODE = "position-leap"
Q = Channel.POSITION


def with_positions(q: FloatArray, log: Log) -> Log:
    return replace(log, channels={**log.channels, Q: q}, notes=())


def leap(log: Log) -> Note | None:
    found = [note for note in check_log(log, arm()).notes if note.code == CODE]
    assert len(found) < 2  # one finding says it all
    return found[0] if found else None


def without_rows(log: Log, first: int, count: int) -> Log:
    """Rows lost behind stamps that go on evenly."""
    kept = np.delete(np.arange(len(log)), np.arange(first, first + count))
    channels = {channel: values[kept] for channel, values in log.channels.items()}
    return replace(log, time=log.time[: len(kept)], channels=channels, notes=())


@pytest.mark.parametrize("rate", [50.0, 250.0, 1000.0])
@pytest.mark.parametrize("seconds", [0.3, 2.0])
def test_rows_that_are_missing_behind_even_stamps_are_found(rate: float, seconds: float) -> None:
    log = recording(rate=rate, seconds=20.0)
    found = leap(without_rows(log, int(8.0 * rate), int(seconds * rate)))
    assert found is not None
    assert found.severity is Severity.ERROR
    assert f"between rows {int(8.0 * rate)} and {int(8.0 * rate) + 1}" in found.message
    assert "rows are missing" in found.message


@pytest.mark.parametrize("degrees", [3.0, 20.0])
def test_an_encoder_that_slips_is_found_by_name_and_size(degrees: float) -> None:
    log = recording(rate=250.0)
    q = np.array(log[Q])
    q[2000:, 2] += np.radians(degrees)
    found = leap(with_positions(q, log))
    assert found is not None
    assert found.severity is Severity.ERROR
    assert found.subject == log.joints[2]
    assert f"leaps by {degrees:.3g}" in found.message or abs(float(found.message.split()[4]) - degrees) < 0.05 * degrees
    assert "its encoder slipped" in found.message


def test_angles_folded_into_one_turn_are_told_from_an_encoder_that_slipped() -> None:
    log = recording(rate=250.0)
    q = np.array(log[Q])
    middle = float(np.median(q[:, 0]))
    q[:, 0] = np.where(q[:, 0] > middle, q[:, 0] - 2.0 * np.pi, q[:, 0])
    found = leap(with_positions(q, log))
    assert found is not None
    assert "folded into one turn" in found.message


@pytest.mark.parametrize("rows", [2, 3, 4, 8])
def test_positions_that_are_held_do_not_leap(rows: int) -> None:
    log = recording(rate=250.0)
    held = np.arange(len(log)) // rows * rows
    assert leap(with_positions(log[Q][held], log)) is None  # polled too often
    q = np.array(log[Q])
    q[:, 1] = q[held, 1]
    assert leap(with_positions(q, log)) is None  # one encoder that is read too seldom


@pytest.mark.parametrize("rate", [50.0, 250.0, 1000.0])
@pytest.mark.parametrize("step", [0.0, 2e-4, 2e-3])
@pytest.mark.parametrize("jitter", [0.0, 0.1])
def test_clean_motion_does_not_leap_however_coarse_the_encoder_and_uneven_the_clock(
    rate: float, step: float, jitter: float
) -> None:
    log = recording(rate=rate, seconds=20.0)
    rng = np.random.default_rng(0)
    q = np.rint(log[Q] / step) * step if step else log[Q]
    time = np.sort(log.time + jitter / rate * rng.normal(size=len(log)))
    assert leap(replace(with_positions(q, log), time=time)) is None


def test_a_packet_that_is_lost_in_slow_motion_is_not_worth_a_word() -> None:
    log = recording(rate=250.0)
    speed = np.abs(np.gradient(log[Q], axis=0)).max(axis=1)
    slow = 1000 + int(np.argmin(speed[1000:3000]))
    assert leap(without_rows(log, slow, 1)) is None


def test_rows_left_out_where_the_clock_restarts_are_no_leap() -> None:
    log = recording(rate=250.0)
    time = np.array(log.time)
    time[len(log) // 2 :] -= 2.0
    assert leap(replace(log, time=time)) is None
