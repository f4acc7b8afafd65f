"""A torque that stands still while its joint moves is named and cut; a coarse or slowly read one that repeats itself is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.identification.several import mended
from armid.logs import Channel, Log, check_log, open_recording
from armid.logs.health.bridged import bridged_stretches
from armid.logs.health.frozen import held_stretches
from armid.notes import Severity
from support.recordings import NAMES, arm, recording

TAU = Channel.LINK_TORQUE
ELBOW = 2
SENSORS = {
    "fine and fast": (1000.0, 0.0, 1),
    "fine and slow": (50.0, 0.0, 1),
    "coarse and fast": (1000.0, 0.5, 1),
    "coarse and slow": (50.0, 0.5, 1),
    "read five times as often as it measures": (1000.0, 0.0, 5),
    "coarse and read too often": (1000.0, 0.5, 5),
}
"""Rate [Hz], step [N m], rows that each measurement is held."""


def sensed(name: str, *, seed: int = 3, noise: float = 0.15) -> Log:
    """A clean log of 20 s as such a sensor gives it."""
    rate, step, hold = SENSORS[name]
    log = recording(rate=rate, seed=seed, torque_noise=noise)
    rows = np.arange(len(log)) // hold * hold
    tau = log[TAU][rows]
    return torques(log, np.round(tau / step) * step if step else tau)


def torques(log: Log, tau: np.ndarray) -> Log:
    return replace(log, channels={**log.channels, TAU: tau})


def held(log: Log, start: int, length: int) -> Log:
    tau = np.array(log[TAU])
    tau[start : start + length, ELBOW] = tau[start, ELBOW]
    return torques(log, tau)


def frozen(log: Log) -> list:
    return [note for note in check_log(log, arm()).notes if note.code == "frozen"]


@pytest.mark.parametrize("name", SENSORS)
@pytest.mark.parametrize("noise", [0.15, 0.0])
@pytest.mark.parametrize("seed", [3, 11, 12])
def test_a_clean_log_holds_nothing(name, noise, seed):
    log = sensed(name, seed=seed, noise=noise)
    assert [held_stretches(log, TAU, j) for j in range(len(NAMES))] == [[]] * len(NAMES)


@pytest.mark.parametrize(
    ("name", "share"),
    [(name, share) for name in SENSORS for share in (0.03, 0.1, 0.3) if name != "coarse and slow" or share == 0.3],
)
def test_a_stretch_is_found_where_it_is(name, share):
    log = sensed(name)
    start, length = len(log) // 5 * 2, int(share * len(log))
    found = held_stretches(held(log, start, length), TAU, ELBOW)
    assert len(found) == 1
    # Equal values before and after belong to it.
    assert found[0].start <= start
    assert found[0].start + found[0].length >= start + length
    assert found[0].length <= length + 20


def test_a_short_stretch_of_a_coarse_slow_sensor_is_not_told_from_chance():
    assert held_stretches(held(sensed("coarse and slow"), 400, 30), TAU, ELBOW) == []


@pytest.mark.parametrize(("length", "severity"), [(100, Severity.WARNING), (600, Severity.ERROR)])
def test_joint_time_and_share_are_named(length, severity):
    (note,) = frozen(held(sensed("fine and fast"), 8000, length))
    assert (note.subject, note.severity) == ("elbow", severity)
    assert (
        f"for {length} samples ({length / 1000:.3g} s, {length / 20000:.1%} of the log) from row 8001" in note.message
    )


def test_several_stretches_are_all_found_and_cut():
    log = held(held(sensed("fine and fast"), 4000, 150), 12000, 200)
    (note,) = frozen(log)
    assert "350 samples" in note.message
    assert "in 2 stretches, the first from row 4001" in note.message
    kept, notes = mended(open_recording(replace(log, checked=False), arm()), arm())
    assert [note.code for note in notes] == ["stretches-cut"]
    assert len(kept) == len(log) - 350
    assert frozen(kept.log) == []


def test_a_joint_at_rest_may_hold_its_torque():
    log = sensed("fine and fast")
    q = np.array(log[Channel.POSITION])
    q[8000:8600, ELBOW] = q[8000, ELBOW]
    still = replace(log, channels={**log.channels, Channel.POSITION: q})
    assert held_stretches(held(still, 8000, 600), TAU, ELBOW) == []


def test_a_sensor_that_loses_measurements_now_and_then_is_not_frozen():
    log = sensed("fine and fast")
    sample = np.arange(len(log)) // 5
    lost = np.random.default_rng(5).random(sample[-1] + 1) < 0.01
    last = np.maximum.accumulate(np.where(lost, 0, np.arange(len(lost))))
    late = torques(log, log[TAU][5 * last[sample]])
    assert all(held_stretches(late, TAU, j) == [] for j in range(len(NAMES)))


def test_rows_of_a_torque_cut_off_at_its_top_are_cut_and_counted():
    log = sensed("fine and fast")
    tau = np.array(log[TAU])
    top = np.quantile(np.abs(tau[:, ELBOW]), 0.9)
    tau[:, ELBOW] = np.clip(tau[:, ELBOW], -top, top)
    kept, notes = mended(open_recording(replace(torques(log, tau), checked=False), arm()), arm())
    (note,) = notes
    assert note.code == "stretches-cut"
    assert "saturated" in note.message
    assert len(kept) == len(log) - int(np.sum(np.abs(tau[:, ELBOW]) == top))
    assert not any(n.code == "saturated" for n in kept.notes)


def stuck(log: Log, start: int, length: int) -> Log:
    q = np.array(log[Channel.POSITION])
    q[start : start + length, ELBOW] = q[start, ELBOW]
    return replace(log, channels={Channel.POSITION: q, TAU: log[TAU]})


def test_a_position_that_leaves_one_value_in_a_leap_stood_still():
    log = sensed("fine and fast")
    (note,) = frozen(stuck(log, 8000, 400))
    assert note.subject == "elbow"
    assert "position holds one value for 400 samples from row 8001 and then jumps" in note.message
    (short,) = frozen(stuck(log, 8000, 100))  # shorter than a quarter of a second: the leap says it all the same
    assert "position holds one value for 100 samples from row 8001" in short.message
    assert frozen(stuck(log, 8000, 15)) == []  # fewer rows than count
    assert frozen(stuck(log, 0, 0)) == []


def test_a_joint_that_rests_and_sets_out_did_not_stand_still_by_itself():
    log = sensed("fine and fast")
    q = np.array(log[Channel.POSITION])
    turn = int(np.argmax(q[:, ELBOW]))  # at a turn it may wait as long as it likes
    waiting = np.concatenate([q[:turn, ELBOW], np.full(600, q[turn, ELBOW]), q[turn:, ELBOW]])[: len(q)]
    q[:, ELBOW] = waiting
    assert frozen(replace(log, channels={Channel.POSITION: q, TAU: log[TAU]})) == []


def test_a_coarse_torque_that_drops_out_in_a_tenth_of_its_rows_is_half_dead():
    log = sensed("coarse and fast")
    tau = np.array(log[TAU])
    assert not [note for note in check_log(log, arm()).notes if note.code == "half-dead"]
    tau[np.random.default_rng(7).random(len(tau)) < 0.1, ELBOW] = 0.0
    (note,) = (note for note in check_log(torques(log, tau), arm()).notes if note.code == "half-dead")
    assert note.subject == "elbow"


@pytest.mark.parametrize("reported", [True, False])
def test_a_model_of_the_controller_may_say_exactly_zero_where_the_drives_report(reported: bool) -> None:
    """Of a joint that stands still the commanded torque need not change; alone it is what must be believed."""
    log = recording(seed=3, torque_noise=0.15)
    side, model = Channel.CURRENT if reported else Channel.LINK_TORQUE, Channel.COMMANDED_TORQUE
    torque = next(log.channels[c] for c in log.torques)
    still = np.where(np.arange(torque.shape[1]) == 2, 0.0, torque)
    rest = {c: v for c, v in log.channels.items() if not c.is_torque}
    told = frozen(replace(log, channels={**rest, side: torque, model: still}))
    assert bool(told) is not reported


def filled(log: Log, starts: list[int], length: int) -> Log:
    """The same with samples of the elbow's torque lost, and filled in by straight lines."""
    tau = np.array(log[TAU])
    for start in starts:
        tau[start : start + length + 1, ELBOW] = np.linspace(*tau[[start, start + length], ELBOW], length + 1)
    return torques(log, tau)


@pytest.mark.parametrize("name", SENSORS)
@pytest.mark.parametrize("noise", [0.15, 0.0])
@pytest.mark.parametrize("seed", [3, 11, 12])
def test_no_clean_torque_runs_along_a_line(name, noise, seed):
    log = sensed(name, seed=seed, noise=noise)
    assert [bridged_stretches(log, TAU, j) for j in range(len(NAMES))] == [[]] * len(NAMES)


def test_where_a_smooth_torque_hardly_bends_is_no_line():
    log = sensed("fine and slow", noise=0.0)
    t = log.time - log.time[0]
    tau = np.array(log[TAU])
    tau[:, ELBOW] = np.sin(0.6 * t) + 0.2 * np.sin(1.1 * t)
    assert bridged_stretches(torques(log, tau), TAU, ELBOW) == []


@pytest.mark.parametrize(
    ("digits", "noise", "single"), [(None, 0.15, False), (4, 0.15, False), (None, 0.0, False), (None, 0.15, True)]
)
def test_lost_samples_that_were_filled_in_are_found(digits, noise, single):
    starts = [2000, 5000, 9000]
    log = filled(sensed("fine and fast", noise=noise), starts, 300)
    log = log if digits is None else torques(log, np.round(log[TAU], digits))
    log = torques(log, np.asarray(log[TAU].astype(np.float32), dtype=np.float64)) if single else log
    found = bridged_stretches(log, TAU, ELBOW)
    assert [abs(one.start - start) < 5 for one, start in zip(found, starts, strict=True)] == [True] * 3
    (note,) = (note for note in check_log(log, arm()).notes if note.code == "bridged")
    assert (note.subject, note.severity) == (NAMES[ELBOW], Severity.WARNING)
    assert "3 in 4.5% of the rows" in note.message


def test_a_recording_that_was_sampled_up_by_lines_is_none():
    slow = sensed("fine and slow")
    time = np.arange(slow.time[0], slow.time[-1], 1e-3)
    channels = {
        name: np.column_stack([np.interp(time, slow.time, column) for column in values.T])
        for name, values in slow.channels.items()
    }
    log = replace(slow, time=time, channels=channels)
    assert not any(bridged_stretches(log, TAU, j) for j in range(len(NAMES)))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308])
@pytest.mark.filterwarnings("error")
def test_what_is_no_number_is_on_no_line(value):
    log = filled(sensed("fine and fast"), [2000], 300)
    tau = np.array(log[TAU])
    tau[5000:5010, ELBOW] = value
    assert len(bridged_stretches(torques(log, tau), TAU, ELBOW)) == 1
    assert bridged_stretches(torques(log, np.full_like(tau, value)), TAU, ELBOW) == []
