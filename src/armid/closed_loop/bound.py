"""Smallest deviations any unbiased estimator can reach ([Kay1993]): with the loop known, and from position and torque alone."""

from __future__ import annotations

import numpy as np

from armid.arrays import FloatArray
from armid.closed_loop.fit import torque_rows
from armid.closed_loop.loop import LoopMotion
from armid.closed_loop.weighting import known_weighting, loop_response, smooth
from armid.information.information import triangular
from armid.kernels.dynamics import mass_matrix

_RUNS = 12
"""Pairs of simulations from which the loop's answer to its noise is taken for a bound."""


def loop_bound(
    motion: LoopMotion, values: FloatArray, position: FloatArray, torque: FloatArray, *, seed: int = 0
) -> FloatArray:
    """Covariance bound of base values when controller and command are known, shape [r, r].

    The noise of the encoders is fed back; its spectrum is that of simulated noise of the same size.

    Args:
        motion: the loop.
        values: true base values.
        position, torque: deviations of the noise [rad or m; N m or N], shape [n] each.
        seed: of the simulated noise.
    """
    response = loop_response(motion, values, None, noise=position, runs=_RUNS, seed=seed)
    weighting = known_weighting(response.spectrum, position, torque, motion.n_samples)
    slopes = np.concatenate([block.slopes for block in motion.blocks(values)])
    factor = triangular(np.vstack([triangular(rows) for rows in weighting.rows(slopes)]))
    T = np.linalg.inv(factor[:, : slopes.shape[2]])
    whole = np.asarray(T @ T.T, dtype=np.float64)
    return whole[: len(values), : len(values)]


def torque_bound(
    motion: LoopMotion, values: FloatArray, position: FloatArray, torque: FloatArray, *, seed: int = 0
) -> FloatArray:
    """Covariance bound of base values when nothing is known but measured position and torque, shape [r, r].

    The true motion is arbitrary, so that what is left of a sample is the error of its torque balance

        e = tau - (K + D d/dt + M d^2/dt^2) q      around the quiet motion

    with the derivatives of the measured positions at the rate of the log. Its noise is that of both sensors and, because the
    controller feeds the encoders' noise back many times per sample, torque that acts between the samples and is never seen.
    Its spectrum is that of simulated noise; friction's jump is left out.

    Args:
        motion: along which both are measured.
        values: true base values.
        position, torque: deviations of the noise [rad or m; N m or N], shape [n] each.
        seed: of the simulated noise.
    """
    rng = np.random.default_rng(seed)
    got = motion.simulate(values)
    K, D, M = _slopes(motion, values, got.motion)
    count, rate = len(got.position), motion.controller.rate / motion.stride
    taper = _taper(count)
    total: np.ndarray | float = 0.0
    for _ in range(_RUNS):
        drawn = position * rng.standard_normal(motion.reference.shape)
        up, down = (motion.simulate(values, noise=sign * drawn) for sign in (1.0, -1.0))
        seen = 0.5 * (up.position - down.position) + drawn[:: motion.stride]
        qd, qdd = _derivatives(seen * taper, rate)
        balance = (np.einsum("kij,kj->ki", A, x) for A, x in ((K, seen), (D, qd), (M, qdd)))
        error = np.fft.rfft(taper * (0.5 * (up.torque - down.torque) - sum(balance)), axis=0)
        total = total + error[:, :, None] * error[:, None, :].conj() / (count * np.mean(taper**2) * _RUNS)
    S = smooth(np.asarray(total)[np.newaxis])[0] + np.diag(torque**2)
    L = np.linalg.cholesky(S)
    rows = np.fft.rfft(torque_rows(motion, got.motion), axis=0) * np.sqrt(2.0 / count)
    rows[0] /= np.sqrt(2.0)
    white = np.linalg.solve(L, rows).reshape(-1, rows.shape[2])
    R = triangular(np.concatenate([white.real, white.imag]))
    T = np.linalg.inv(R)
    return np.asarray(T @ T.T, dtype=np.float64)


def _taper(count: int) -> FloatArray:
    """One in the middle, smoothly zero at both ends: derivatives by frequency need a motion that closes, shape [count, 1]."""
    ramp = max(2, count // 20)
    out = np.ones(count)
    out[:ramp] = 0.5 * (1.0 - np.cos(np.pi * np.arange(ramp) / ramp))
    out[-ramp:] = out[:ramp][::-1]
    return out[:, np.newaxis]


def _derivatives(values: FloatArray, rate: float) -> tuple[FloatArray, FloatArray]:
    """First and second derivative of the band-limited signal through samples."""
    F = np.fft.rfft(values, axis=0)
    w = 2.0 * np.pi * np.fft.rfftfreq(len(values), 1.0 / rate)[:, None]
    first, second = (np.fft.irfft(factor * F, n=len(values), axis=0) for factor in (1j * w, -(w**2)))
    return first, second


def _slopes(motion: LoopMotion, values: FloatArray, inputs: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Derivatives of the torque with respect to position, velocity and acceleration, shape [samples, n, n] each."""
    plant, n = motion.plant, motion.n
    columns = [np.ascontiguousarray(c) for c in inputs.T]
    out = plant.tangent_kernel.store(columns, plant.rigid_values(values))[len(plant.row_channels) :].T
    K, D = (out[:, k * n * n : (k + 1) * n * n].reshape(-1, n, n) for k in range(2))
    drive = plant.drive_values(values)
    inertial = np.zeros(10 * n)
    links, places = plant.rigid_columns
    inertial[list(links)] = values[list(places)]
    M = mass_matrix(plant.robot, inputs[:, :n], inertial=inertial) + np.diag(drive[0])
    return K, D + np.diag(drive[1]), M
