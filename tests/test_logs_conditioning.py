from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.signal
from hypothesis import given, settings
from hypothesis import strategies as st

from armid.errors import ArmidError, InputError, ShapeError, UnknownNameError
from armid.kernels.evaluate import evaluate_rows
from armid.logs import (
    Channel,
    Clock,
    Conditioning,
    Differentiator,
    Log,
    Samples,
    Segment,
    VelocitySource,
    concatenated,
    condition,
    detected_period,
    matched,
)
from armid.logs.conditioning import LowPass, derivatives, filtered_rows, low_pass
from armid.logs.conditioning.spectrum import chosen_cutoff, spectrum
from armid.logs.conditioning.uniform import stale_rows
from armid.parameters.effects import Effects, TorqueSide
from armid.rows.torque import TorqueRows
from support.recordings import NAMES, arm, motion, recording

Q, QD, TAU = Channel.POSITION, Channel.VELOCITY, Channel.LINK_TORQUE


def truth_at(samples: Samples, seed: int = 3, rate: float = 200.0, seconds: float = 20.0):
    """q, qd, qdd of the noiseless motion at the samples' instants."""
    t, *values = motion(seconds + 1.0, rate * 50, seed=seed)
    index = np.rint(samples.time * rate * 50).astype(int)
    assert np.abs(t[index] - samples.time).max() < 1e-4
    return [v[index] for v in values]


# Filters


@pytest.mark.parametrize("order", [1, 2, 4, 20])
def test_low_pass_has_no_phase_and_half_amplitude_at_the_cut_off(order):
    rate, fc = 1000.0, 3.0
    t = np.arange(40_000) / rate
    middle = slice(15_000, 25_000)
    for f in (0.5, 3.0, 9.0):
        y = low_pass(np.sin(2 * np.pi * f * t)[:, np.newaxis], LowPass(rate, fc, order))[middle, 0]
        basis = np.column_stack([np.sin(2 * np.pi * f * t), np.cos(2 * np.pi * f * t)])[middle]
        gain, phase = np.linalg.lstsq(basis, y, rcond=None)[0]
        assert gain == pytest.approx(1.0 / (1.0 + (f / fc) ** (2 * order)), abs=2e-3)
        assert phase == pytest.approx(0.0, abs=1e-4)


def test_periodic_low_pass_is_the_infinite_repetition():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    filter = LowPass(100.0, 4.0, 4)
    many = low_pass(np.tile(x, (9, 1)), filter)[1600:2000]
    np.testing.assert_allclose(low_pass(x, filter, periodic=True), many, atol=1e-8)


def test_infinite_cut_off_changes_nothing():
    x = np.random.default_rng(0).normal(size=(100, 2))
    assert low_pass(x, LowPass(100.0, np.inf)) is x


def test_filtering_rows_and_torque_alike_keeps_the_parameters():
    robot = arm()
    source = TorqueRows(robot, Effects(viscous=True, coulomb=True, offset=True, rotor_inertia=True))
    _, q, qd, qdd = motion(20.0, 200.0)
    A = evaluate_rows(source, np.hstack([q, qd, qdd]))
    pi = np.random.default_rng(1).normal(size=A.shape[2])
    segments = (Segment(start=0, stop=1500), Segment(start=1500, stop=4000))
    filter = LowPass(200.0, 3.0)
    both = filtered_rows(A, segments, filter, every=10)
    np.testing.assert_allclose(both @ pi, filtered_rows(A @ pi, segments, filter, every=10), atol=1e-9)
    # Filtering torque alone does not: the corner of sign(qd) is gone on one side only.
    assert np.abs(A[::10][:400] @ pi - filtered_rows(A @ pi, segments, filter, every=10)).max() > 0.1
    with pytest.raises(ShapeError):
        filtered_rows(A[:10], segments, filter)


# Differentiators


@pytest.mark.parametrize(
    ("method", "tolerance"),
    [
        (Differentiator.CENTRAL, 6e-3),
        (Differentiator.CENTRAL_8, 1e-9),
        (Differentiator.LEAST_SQUARES, 2e-2),
        (Differentiator.SAVITZKY_GOLAY, 1e-2),
        (Differentiator.SPLINE, 2e-2),
    ],
)
def test_derivatives_of_a_sine(method, tolerance):
    rate, w = 200.0, 2 * np.pi * 1.5
    t = np.arange(800) / rate
    x = np.column_stack([np.sin(w * t), np.cos(w * t)])
    first, second = derivatives(x, rate, method, cutoff=10.0)
    inside = slice(100, -100)
    np.testing.assert_allclose(
        first[inside] / w, np.column_stack([np.cos(w * t), -np.sin(w * t)])[inside], atol=tolerance
    )
    np.testing.assert_allclose(second[inside] / w**2, -x[inside], atol=2 * tolerance)
    kept = derivatives(x, rate, method, cutoff=10.0, keep=slice(7, 700, 9))
    np.testing.assert_array_equal(kept[0], first[7:700:9])
    np.testing.assert_array_equal(kept[1], second[7:700:9])


def test_spectral_derivative_is_exact_for_whole_periods():
    t = np.arange(500) / 50.0
    x = np.column_stack([np.sin(2 * np.pi * 0.3 * t), np.cos(2 * np.pi * 2.0 * t)])
    first, second = derivatives(x, 50.0, Differentiator.SPECTRAL)
    w = 2 * np.pi * np.array([0.3, 2.0])
    np.testing.assert_allclose(second, -(w**2) * x, atol=1e-9)
    np.testing.assert_allclose(first[:, 0], w[0] * np.cos(w[0] * t), atol=1e-10)


def test_five_point_filter_is_the_slope_of_the_fitted_parabola():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 1))
    first, _ = derivatives(x, 1.0, Differentiator.LEAST_SQUARES)
    for k in range(2, 38):
        slope = np.polyfit(np.arange(-2, 3), x[k - 2 : k + 3, 0], 2)[1]
        assert first[k, 0] == pytest.approx(slope, abs=1e-12)


def test_causal_derivatives_are_the_same_four_samples_later():
    x = np.random.default_rng(0).normal(size=(60, 2))
    late = derivatives(x, 10.0, Differentiator.LEAST_SQUARES_CAUSAL)
    now = derivatives(x, 10.0, Differentiator.LEAST_SQUARES)
    for a, b in zip(late, now, strict=True):
        np.testing.assert_allclose(a[8:-8], b[4:-12], atol=1e-12)


# The whole


@pytest.mark.parametrize("method", [m for m in Differentiator if m is not Differentiator.SPECTRAL])
def test_conditioned_samples_are_close_to_the_truth(method):
    samples = condition(recording(), arm(), Conditioning(differentiator=method))
    q, qd, qdd = truth_at(samples)
    assert np.abs(samples.q - q).max() < 2e-4
    assert np.abs(samples.qd - qd).max() < 0.02 * np.abs(qd).max()
    assert np.abs(samples.qdd - qdd).max() < 0.05 * np.abs(qdd).max()


def test_measured_velocity_is_used_when_asked_for():
    log = recording()
    samples = condition(log, arm(), Conditioning(velocity=VelocitySource.MEASURED))
    _, qd, qdd = truth_at(samples)
    assert np.abs(samples.qd - qd).max() < 5e-3
    assert np.abs(samples.qdd - qdd).max() < 0.05 * np.abs(qdd).max()
    without = replace(log, channels={c: v for c, v in log.channels.items() if c is not QD})
    with pytest.raises(InputError, match="no usable velocity"):
        condition(without, arm(), Conditioning(velocity=VelocitySource.MEASURED))


def test_cut_off_is_chosen_from_the_motion_and_stated():
    for rate in (100.0, 1000.0):
        samples = condition(recording(rate=rate), arm())
        # Five harmonics of 0.1 Hz: the band ends near 0.5 Hz.
        assert 3.0 < samples.cutoff_hz < 7.0
        note = next(n for n in samples.notes if n.code == "cutoff-chosen")
        assert f"{samples.cutoff_hz:.3g} Hz" in note.message
        assert samples.rate == pytest.approx(8 * samples.cutoff_hz, rel=0.3)
    assert condition(recording(), arm(), Conditioning(cutoff=9.0)).cutoff_hz == 9.0


def test_noise_does_not_widen_the_band():
    _, q, _, _ = motion(30.0, 500.0)
    rng = np.random.default_rng(0)
    quiet, loud = (chosen_cutoff(q + rng.normal(0, s, q.shape), 500.0).cutoff for s in (1e-6, 3e-4))
    assert loud == pytest.approx(quiet, rel=0.2)


def test_noise_levels_are_those_put_in():
    samples = condition(recording(position_noise=5e-5, torque_noise=0.3), arm())
    np.testing.assert_allclose(samples.noise[Q], 5e-5, rtol=0.2)
    np.testing.assert_allclose(samples.noise[TAU], 0.3, rtol=0.2)


def test_white_noise_spectrum():
    x = np.random.default_rng(0).normal(0, 2.0, (20_000, 1))
    assert spectrum(x, 100.0).noise[0] == pytest.approx(2.0, rel=0.1)


def test_jittered_clock_is_resampled():
    t, q, _, _ = motion(21.0, 20_000.0)
    rng = np.random.default_rng(0)
    pick = np.sort(rng.choice(len(t) // 20, 3000, replace=False)) * 20
    log = Log(name="jitter", joints=NAMES, time=t[pick], channels={Q: q[pick], TAU: np.cos(q[pick])})
    samples = condition(log, arm(), Conditioning(cutoff=5.0))
    assert np.allclose(np.diff(samples.time), 1 / samples.rate, rtol=1e-6)
    whole = condition(
        Log(name="even", joints=NAMES, time=t[::100], channels={Q: q[::100], TAU: np.cos(q[::100])}),
        arm(),
        Conditioning(cutoff=5.0, rate=np.inf),
    )
    for j in range(4):
        np.testing.assert_allclose(samples.qdd[:, j], np.interp(samples.time, whole.time, whole.qdd[:, j]), atol=0.03)


def test_stamps_that_jitter_around_even_samples_are_ignored():
    log = recording()
    rng = np.random.default_rng(0)
    shaken = replace(log, time=log.time + rng.uniform(-1e-3, 1e-3, len(log)))
    samples = condition(shaken, arm())
    assert any(n.code == "stamp-jitter-ignored" for n in samples.notes)
    _, _, qdd = truth_at(condition(log, arm(), Conditioning(cutoff=5.0)))
    again = condition(shaken, arm(), Conditioning(cutoff=5.0))
    count = min(len(again), len(qdd))
    assert np.abs(again.qdd[:count] - qdd[:count]).max() < 0.1 * np.abs(qdd).max()


def test_a_reader_that_polls_a_controller_is_put_back_on_its_ticks():
    """Some samples twice, some missed, stamps of the reader's own loop: time runs in ticks of one millisecond."""
    rng = np.random.default_rng(0)
    t, q, qd, qdd = motion(21.0, 1000.0)
    stamps = np.cumsum(rng.uniform(0.75e-3, 1.3e-3, 19_000))
    row = np.floor(stamps * 1000.0).astype(int)
    log = Log(
        name="polled",
        joints=NAMES,
        time=stamps,
        channels={Q: np.round(q[row], 6), QD: np.round(qd[row], 6), TAU: np.cos(q[row])},
    )
    samples = condition(log, arm(), Conditioning(cutoff=20.0))
    assert any(n.code == "stamp-jitter-ignored" and "1 ms" in n.message for n in samples.notes)
    assert samples.noise[Q].max() < 5e-6
    # Stamps come half a tick after the sample on average; against the truth shifted by the best constant, nothing is left.
    shift = min(
        (np.abs(samples.qdd[:, 0] - np.interp(samples.time - d, t, qdd[:, 0])).max(), d)
        for d in np.arange(0, 1e-3, 1e-4)
    )
    assert shift[0] < 0.01 * np.abs(qdd[:, 0]).max()


def test_gaps_split_and_are_never_bridged():
    log = recording()
    keep = np.ones(len(log), dtype=bool)
    keep[1500:1900] = False
    samples = condition(log.selected(keep), arm())
    assert len(samples.segments) == 2
    first, second = samples.segments
    assert samples.time[first.stop - 1] < log.time[1500] < log.time[1899] < samples.time[second.start]
    assert any(n.code == "split-at-gaps" for n in samples.notes)


def test_stale_rows_are_short_runs_only():
    x = np.array([[0.0], [1.0], [1.0], [2.0], [3.0], [3.0], [3.0], [3.0], [3.0], [4.0]])
    assert stale_rows(x).tolist() == [False, False, True, False, False, False, False, False, False, False]


def test_repeated_periods_are_averaged_with_variance():
    rng = np.random.default_rng(0)
    t, q, _, qdd = motion(40.0, 200.0)
    tau = np.cos(q)
    log = Log(
        name="repeated",
        joints=NAMES,
        time=t,
        channels={Q: q + rng.normal(0, 1e-4, q.shape), TAU: tau + rng.normal(0, 0.2, q.shape)},
    )
    assert detected_period(log) == pytest.approx(10.0, abs=0.02)
    samples = condition(log, arm(), Conditioning(period=10.0, cutoff=np.inf, rate=np.inf))
    assert len(samples) == 2000
    # The mean of four has a quarter of the variance, and the scatter says so.
    np.testing.assert_allclose(samples.variances[TAU].mean(axis=0), 0.2**2 / 4, rtol=0.1)
    assert np.std(samples.torques[TAU] - tau[:2000]) == pytest.approx(0.1, rel=0.05)
    exact = condition(
        log, arm(), Conditioning(period=10.0, cutoff=5.0, differentiator=Differentiator.SPECTRAL, rate=np.inf)
    )
    np.testing.assert_allclose(exact.qdd, qdd[:2000], atol=0.05 * np.abs(qdd).max())
    assert detected_period(recording(seconds=12.0)) is None


def test_thesis_pipeline_order_twenty():
    """Averaging, zero-phase Butterworth of order 20 at 3 and 3.5 Hz, central differences [[Halper2024]]."""
    t, q, _, qdd = motion(40.0, 1000.0)
    log = Log(name="thesis", joints=NAMES, time=t, channels={Q: q, TAU: np.cos(q)})
    settings = Conditioning(cutoff=3.0, torque_cutoff=3.5, order=20, differentiator=Differentiator.CENTRAL, period=10.0)
    samples = condition(log, arm(), settings)
    index = np.rint(samples.time * 1000).astype(int)
    np.testing.assert_allclose(samples.qdd, qdd[index], atol=2e-3 * np.abs(qdd).max())


def test_filter_agrees_with_scipy_on_the_inside():
    x = np.random.default_rng(0).normal(size=(5000, 1))
    sos = scipy.signal.butter(6, 4.0, fs=200.0, output="sos")
    ours = low_pass(x, LowPass(200.0, 4.0, 6))
    np.testing.assert_allclose(ours[1000:-1000, 0], scipy.signal.sosfiltfilt(sos, x[:, 0])[1000:-1000], atol=1e-9)


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        ({"cutoff": -1.0}, "cutoff"),
        ({"order": 0}, "order"),
        ({"order": 99}, "order"),
        ({"rate": 0.0}, "rate"),
        ({"trim": -1.0}, "trim"),
        ({"torque_delay": 5.0}, "torque_delay"),
        ({"cutoff": float("nan")}, "cutoff"),
        ({"differentiator": Differentiator.SPECTRAL}, "period"),
    ],
)
def test_bad_settings_are_refused(bad, match):
    with pytest.raises(InputError, match=match):
        Conditioning(**bad)


def test_too_short_or_without_clock_or_torque():
    log = recording()
    with pytest.raises(InputError, match="no clock"):
        condition(replace(log, clock=Clock.UNKNOWN), arm())
    with pytest.raises(InputError, match="no torque"):
        condition(replace(log, channels={Q: log[Q]}), arm())
    with pytest.raises(InputError, match="shorter than 3 periods"):
        condition(log.rows(0, 50), arm(), Conditioning(cutoff=2.0))
    with pytest.raises(InputError, match="no stretch"):
        condition(log.rows(0, 5), arm())


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_strange_logs_are_conditioned_or_refused(data):
    extreme = st.sampled_from([0.0, 1.0, np.nan, np.inf, -np.inf, 1e150, -1e300, 57.3])
    base = recording(seconds=3.0, rate=50.0)
    arrays = {"time": np.array(base.time), **{c: np.array(v) for c, v in base.channels.items()}}
    for array in arrays.values():
        for _ in range(data.draw(st.integers(0, 3))):
            start = data.draw(st.integers(0, len(array) - 1))
            stop = data.draw(st.sampled_from([start + 1, start + 40, len(array)]))
            array[start:stop] = data.draw(extreme)
    time = arrays.pop("time")
    try:
        samples = condition(Log(name="strange", joints=NAMES, time=time, channels=arrays), arm())
    except ArmidError as error:
        assert str(error)  # noqa: PT017
    else:
        assert np.isfinite(samples.inputs()).all()


# Types


def test_logs_and_samples_cannot_be_written_to():
    log = recording()
    samples = condition(log, arm())
    for array in (log.time, log[Q], samples.q, samples.qdd, samples.torques[TAU], samples.weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(TypeError):
        log.channels[Q] = log[Q]
    for name in ("q", "qd", "qdd"):
        assert getattr(samples, name).flags.f_contiguous


def test_inputs_are_those_of_the_torque_rows():
    samples = condition(recording(), arm())
    x = samples.inputs()
    assert x.flags.f_contiguous
    assert x.shape == (len(samples), 12)
    np.testing.assert_array_equal(x, np.hstack([samples.q, samples.qd, samples.qdd]))
    A = evaluate_rows(TorqueRows(arm()), x)
    assert A.shape[1] == samples.torque().shape[1]


def test_torque_by_side():
    log = recording()
    both = replace(log, channels={**log.channels, Channel.MOTOR_TORQUE: log[TAU] * 2})
    samples = condition(both, arm())
    np.testing.assert_allclose(samples.torque(TorqueSide.MOTOR), 2 * samples.torque(TorqueSide.LINK), atol=1e-9)
    assert samples.torque(TorqueSide.BOTH).shape == (len(samples), 8)
    np.testing.assert_allclose(samples.torque(TorqueSide.DIFFERENCE), samples.torque(), atol=1e-9)
    one = condition(log, arm())
    np.testing.assert_array_equal(one.torque(TorqueSide.MOTOR), one.torque(TorqueSide.LINK))
    with pytest.raises(InputError, match="needs link and motor"):
        one.torque(TorqueSide.BOTH)
    assert one.torque(raw=True).std() > one.torque().std()


def test_samples_of_several_logs_stay_apart():
    a, b = (
        condition(recording(), arm(), Conditioning(cutoff=5.0)),
        condition(recording(seed=5), arm(), Conditioning(cutoff=5.0)),
    )
    whole = concatenated([a, b])
    assert [len(s) for s in whole.segments] == [len(a), len(b)]
    np.testing.assert_array_equal(whole.window(len(a), len(whole)).qdd, b.qdd)
    cut = whole.window(len(a) - 10, len(a) + 10)
    assert [(s.start, s.stop) for s in cut.segments] == [(0, 10), (10, 20)]
    other = condition(replace(recording(), joints=("a", "b", "c", "d"), named=False), arm(), Conditioning(cutoff=5.0))
    assert other.joints == NAMES
    with pytest.raises(ArmidError, match="joints"):
        concatenated([a, replace(b, joints=("a", "b", "c", "d"))])


def test_split_keeps_a_motion_on_one_side():
    log = recording()
    first, last = log.split(0.6)
    assert len(first) + len(last) == len(log)
    assert first.time[-1] < last.time[0]
    assert first.time[-1] == pytest.approx(12.0, abs=0.01)
    for fraction in (0.0, 1.0, -1.0):
        with pytest.raises(InputError, match="between 0 and 1"):
            log.split(fraction)


def test_joints_are_matched_by_name():
    log = recording()
    order = [2, 0, 3, 1]
    shuffled = replace(
        log, joints=tuple(NAMES[i] for i in order), channels={c: v[:, order] for c, v in log.channels.items()}
    )
    again = matched(shuffled, arm())
    np.testing.assert_array_equal(again[Q], log[Q])
    assert again.notes[0].code == "joint-order-by-name"
    with pytest.raises(InputError, match="no joint named 'waist'"):
        matched(replace(log, joints=("a", "b", "c", "d")), arm())
    with pytest.raises(InputError, match="columns per channel"):
        matched(Log(name="x", joints=("a",), time=log.time, channels={Q: log[Q][:, :1]}), arm())
    with pytest.raises(UnknownNameError, match="position"):
        log[Channel.CURRENT]
