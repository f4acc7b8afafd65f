"""Filters, splines and spectra of our own give what SciPy's do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import interpolate, signal

from armid.errors import InputError
from armid.logs.conditioning.spectrum import averaged_periodogram
from armid.signals.filters import LowPass, low_pass
from armid.signals.recursive import LANES, packed, unpacked
from armid.signals.spline import CubicSpline
from support.recordings import recording


def walk(count, width, seed=0):
    return np.cumsum(np.random.default_rng(seed).normal(size=(count, width)), axis=0)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 8, 12, 20])
@pytest.mark.parametrize("ratio", [0.002, 0.05, 0.3, 0.45])
def test_sections_have_the_response_of_scipys(order, ratio):
    ours = LowPass(1000.0, 1000.0 * ratio, order).sections
    theirs = signal.butter(order, 1000.0 * ratio, fs=1000.0, output="sos")
    assert ours.shape == theirs.shape
    # Gain is measured where the filter passes something: far above, both are rounding of zero.
    _, h = signal.sosfreqz(ours, np.linspace(0.0, 3.0 * ratio, 200) * np.pi, fs=2 * np.pi)
    _, g = signal.sosfreqz(theirs, np.linspace(0.0, 3.0 * ratio, 200) * np.pi, fs=2 * np.pi)
    np.testing.assert_allclose(h, g, atol=1e-8)


@pytest.mark.parametrize("order", [1, 2, 4, 5, 12])
@pytest.mark.parametrize("cutoff", [0.8, 4.0, 40.0])
@pytest.mark.parametrize("width", [1, 7, 8, 17])
def test_filtering_there_and_back_is_scipys(order, cutoff, width):
    x = walk(3000, width)
    filter = LowPass(200.0, cutoff, order)
    sections = signal.butter(order, cutoff, fs=200.0, output="sos")
    expected = signal.sosfiltfilt(sections, x, axis=0, padlen=min(2998, filter.settling))
    np.testing.assert_allclose(low_pass(x, filter), expected, atol=1e-8 * np.abs(x).max())


@pytest.mark.parametrize("count", [2, 3, 10, 100])
def test_short_signals_are_filtered_too(count):
    x = walk(count, 3)
    filter = LowPass(200.0, 4.0)
    sections = signal.butter(4, 4.0, fs=200.0, output="sos")
    expected = signal.sosfiltfilt(sections, x, axis=0, padlen=max(0, min(count - 2, filter.settling)))
    np.testing.assert_allclose(low_pass(x, filter), expected, atol=1e-9 * np.abs(x).max())


def test_a_whole_period_is_filtered_around_its_end():
    x = walk(500, 3) - np.linspace(0.0, 1.0, 500)[:, np.newaxis] * walk(500, 3)[-1]
    filter = LowPass(200.0, 4.0)
    many = low_pass(np.tile(x, (9, 1)), filter)[2000:2500]
    np.testing.assert_allclose(low_pass(x, filter, periodic=True), many, atol=1e-8)


def test_shape_is_kept_and_columns_are_contiguous():
    x = walk(400, 12).reshape(400, 3, 4)
    out = low_pass(x, LowPass(200.0, 4.0))
    assert out.shape == x.shape
    np.testing.assert_allclose(out.reshape(400, 12), low_pass(x.reshape(400, 12), LowPass(200.0, 4.0)), atol=1e-12)
    assert low_pass(walk(400, 12), LowPass(200.0, 4.0)).flags.f_contiguous


def test_a_constant_stays():
    x = np.full((1000, 2), 3.0)
    np.testing.assert_allclose(low_pass(x, LowPass(1000.0, 2.0, 12)), x, rtol=1e-9)


@pytest.mark.parametrize("count", [4, 5, 50, 3000])
@pytest.mark.parametrize("width", [1, 7, 9])
def test_splines_are_scipys(count, width):
    rng = np.random.default_rng(1)
    x = np.cumsum(rng.uniform(0.2, 3.0, count))
    y = rng.normal(size=(count, width))
    at = np.linspace(x[0] - 0.5, x[-1] + 0.5, 1000)
    expected = interpolate.CubicSpline(x, y, axis=0)(at)
    np.testing.assert_allclose(CubicSpline.through(x, y)(at), expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("x", [[0.0, 1.0, 2.0], [0.0, 1.0, 1.0, 2.0]])
def test_a_spline_needs_four_increasing_places(x):
    with pytest.raises(InputError, match="four or more"):
        CubicSpline.through(np.array(x), np.zeros((len(x), 1)))


@pytest.mark.parametrize("length", [64, 255, 1000])
def test_spectra_are_scipys(length):
    x = walk(1000, 3)
    f, power = signal.welch(x, fs=50.0, nperseg=length, detrend="constant", axis=0)
    own_f, own = averaged_periodogram(x, 50.0, length)
    np.testing.assert_allclose(own_f, f, rtol=1e-12)
    np.testing.assert_allclose(own, power, rtol=1e-9, atol=1e-12 * power.max())


def test_packs_are_the_columns():
    x = walk(30, LANES + 3)
    np.testing.assert_array_equal(unpacked(packed(x), LANES + 3), x)


def test_reading_checking_and_conditioning_loads_no_scipy(tmp_path):
    (path,) = recording().save(tmp_path / "log.npz")
    code = (
        "import sys, armid\n"
        "from support.recordings import arm\n"
        f"log = armid.read_log({str(path)!r}, arm())\n"
        "from armid.logs import condition\n"
        "condition(log, arm())\n"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    places = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert not {"scipy", "numba"} & set(out.stdout.split())
