"""Recorded velocity over the derivative of position: a planted clock and a planted scale are told apart and sized."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.errors import InputError
from armid.identification.stamped_clock import clock_fault, clock_record, stamped_clock
from armid.logs import Channel, Clock, Log, check_log
from armid.logs.health.velocity import velocity_ratios
from armid.logs.recording import open_recording
from support.recordings import arm, motion, recording

CLEAN = recording()
QD = Channel.VELOCITY


def with_velocity(log: Log, velocity: np.ndarray) -> Log:
    return replace(log, channels={**log.channels, QD: velocity})


def clocked(factor: float, log: Log = CLEAN) -> Log:
    return replace(log, time=log.time * factor, notes=())


def smoothed(values: np.ndarray, step: float, seconds: float) -> np.ndarray:
    """First-order low-pass, as drives have it on their velocity."""
    out = np.array(values)
    share = 1.0 - np.exp(-step / seconds)
    for k in range(1, len(out)):
        out[k] = out[k - 1] + share * (values[k] - out[k - 1])
    return out


@pytest.mark.parametrize("factor", [0.7, 0.98, 1.015, 1.1, 3.0])
def test_a_wrong_clock_is_sized(factor: float) -> None:
    found = velocity_ratios(clocked(factor), arm())
    assert found is not None
    assert found.clock is not None
    value, deviation = found.clock
    assert abs(value - (factor - 1.0)) < 3.0 * deviation < 0.02 * factor
    assert [n.code for n in check_log(clocked(factor), arm()).notes if "clock" in n.code] == ["clock-rate"]


@pytest.mark.parametrize("rate", [25.0, 100.0, 1000.0])
@pytest.mark.parametrize("lag", [0.0, 0.03])
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_sound_clock_is_silent_at_any_rate_with_smoothed_and_noisy_velocity(
    rate: float, lag: float, noise: float
) -> None:
    log = recording(rate=rate, seconds=20.0)
    qd = smoothed(log[QD], 1.0 / rate, lag) if lag else log[QD]
    rng = np.random.default_rng(0)
    found = velocity_ratios(with_velocity(log, qd + noise * rng.normal(size=qd.shape)), arm())
    assert found is not None
    assert found.clock is None
    assert not len(found.apart)
    assert np.nanmax(np.abs(found.ratio - 1.0)) < 0.01


def test_coarse_encoders_do_not_look_like_a_clock() -> None:
    q = np.round(CLEAN[Channel.POSITION] / 1e-3) * 1e-3
    log = replace(CLEAN, channels={**CLEAN.channels, Channel.POSITION: q})
    found = velocity_ratios(log, arm())
    assert found is not None
    assert found.clock is None
    assert not len(found.apart)


def test_one_joint_alone_is_its_own_scale() -> None:
    qd = np.array(CLEAN[QD])
    qd[:, 1] *= 1.03
    found = velocity_ratios(with_velocity(CLEAN, qd), arm())
    assert found is not None
    assert found.clock is None
    assert list(found.apart) == [1]
    notes = [n for n in check_log(with_velocity(CLEAN, qd), arm()).notes if n.code == "velocity-scale"]
    assert [n.subject for n in notes] == [CLEAN.joints[1]]


def test_without_velocity_or_with_a_clock_inferred_from_it_nothing_is_told() -> None:
    assert velocity_ratios(replace(CLEAN, clock=Clock.INFERRED), arm()) is None
    bare = {channel: values for channel, values in CLEAN.channels.items() if channel is not QD}
    assert velocity_ratios(replace(CLEAN, channels=bare), arm()) is None


def test_a_joint_at_rest_tells_nothing() -> None:
    q, qd = np.array(CLEAN[Channel.POSITION]), np.array(CLEAN[QD])
    q[:, 0], qd[:, 0] = 0.3, 0.0
    found = velocity_ratios(replace(CLEAN, channels={**CLEAN.channels, Channel.POSITION: q, QD: qd}), arm())
    assert found is not None
    assert np.isnan(found.ratio[0])
    assert not len(found.apart)


def test_the_fault_is_decisive_beyond_three_tolerances_and_gone_once_it_is_undone() -> None:
    small, large = (stamped_clock(arm(), [open_recording(clocked(f), arm())], None) for f in (1.02, 1.08))
    assert small is not None
    assert not clock_fault(small, corrected=False).large
    assert large is not None
    assert clock_fault(large, corrected=False).large
    assert clock_fault(large, corrected=False).words == "clock: {gain: 0.9259}"
    mixed = [open_recording(clocked(f), arm()) for f in (1.0, 1.08)]
    assert stamped_clock(arm(), mixed, None) is None
    undone = clock_record(arm(), large, recorded_velocity=False)
    assert stamped_clock(arm(), [open_recording(clocked(1.08), arm())], undone) is None


def test_the_words_for_the_mapping_undo_it(tmp_path) -> None:
    t, q, qd, _ = motion()
    rows = np.column_stack([1.25 * t, q, qd, q])
    np.savetxt(tmp_path / "log.csv", rows, delimiter=",")
    n = q.shape[1]
    mapping = tmp_path / "log.yaml"
    text = (
        "schema: armid.log/1\nfile: {path: log.csv, header: false, delimiter: ','}\n"
        f"clock: {{column: 1, gain: %s}}\nchannels:\n  position: {{columns: '2:{n + 1}'}}\n"
        f"  velocity: {{columns: '{n + 2}:{2 * n + 1}'}}\n  torque: {{columns: '{2 * n + 2}:{3 * n + 1}', side: link}}\n"
    )
    mapping.write_text(text % 0.8)
    np.testing.assert_allclose(armid.read_log(mapping, arm()).time, t - t[0], atol=1e-9)
    mapping.write_text(text % -1)
    with pytest.raises(InputError, match="clock gain"):
        armid.read_log(mapping, arm())


@pytest.mark.parametrize("rows", [2, 3, 4, 5, 8])
def test_positions_that_are_held_for_some_rows_say_nothing_of_the_clock(rows: int) -> None:
    log = recording(rate=125.0, seconds=30.0)
    held = log[Channel.POSITION][np.arange(len(log)) // rows * rows]
    found = velocity_ratios(replace(log, channels={**log.channels, Channel.POSITION: held}), arm())
    assert found is not None
    assert found.clock is None
    slow = velocity_ratios(clocked(1.1, replace(log, channels={**log.channels, Channel.POSITION: held})), arm())
    assert slow is not None
    assert slow.clock is None or abs(slow.clock[0] - 0.1) < 0.02
