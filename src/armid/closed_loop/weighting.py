"""Noise of position and torque in a closed loop, and rows divided by it.

The controller reads the noisy position, so that its noise n moves the arm: measured position and torque differ from those of
a noise-free run by correlated, coloured noise. Per joint and frequency the pair (position, torque) has the spectral matrix

    S(f) = sigma_q^2 H(f) + diag(0, sigma_tau^2)

with H found by simulating the loop with small noise in its encoders (fed back), or H = diag(1, 0) where the noise entered
only the log. The sigmas are those of largest likelihood (Whittle); the likelier of the two kinds is taken. What the model of the
noise does not explain enters as a level per band of frequencies, measured on the residuals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.closed_loop.loop import LoopBlock, LoopMotion, Start

ComplexArray = np.ndarray

_PROBE = 1e-7
"""[rad or m]; simulated noise of the encoders: small enough that the loop answers linearly, large against round-off."""
_SMOOTH = 0.05
"""Spectra are averaged over this share of the frequency to either side."""
_FEWEST_BINS = 2
"""And over at least so many lines to either side: with eight runs 40 products, and the 2 x 2 matrix is good to a few per cent."""
_BAND = 96
"""Lines per band in which the level of the residuals is measured: its deviation is then 10 %, and a fit of fifty parameters
to twelve channels lowers it by less than that."""
_TINY = 1e-30


@dataclass(frozen=True, eq=False, kw_only=True)
class Weighting:
    """Whitens position and torque errors of one motion.

    Args:
        roots: inverse Cholesky factor of S(f) of every joint, shape [n, frequencies, 2, 2]; zero for a channel that is not used.
        samples: of the motion.
        position_noise, torque_noise: sigmas, shape [n] each.
        fed_back: whether the noise of the positions entered the loop.
        log_likelihood: of the residuals under S.
    """

    roots: ComplexArray
    samples: int
    position_noise: FloatArray
    torque_noise: FloatArray
    fed_back: bool
    log_likelihood: float

    def rows(self, values: FloatArray) -> list[FloatArray]:
        """Whitened real rows per joint.

        Args:
            values: position errors, then torque errors of the joints, shape [samples, 2 n, ...].
        """
        n = len(self.roots)
        scale = np.sqrt(2.0 / self.samples) * np.ones(len(self.roots[0]))
        scale[0] /= np.sqrt(2.0)
        if self.samples % 2 == 0:
            scale[-1] /= np.sqrt(2.0)
        out = []
        for j in range(n):
            pair = np.fft.rfft(values[:, [j, n + j]], axis=0)
            white = np.einsum("fab,fb...->fa...", self.roots[j] * scale[:, None, None], pair)
            flat = white.reshape(-1, *white.shape[2:])
            out.append(np.concatenate([flat.real, flat.imag]))
        return out


def white_weighting(residuals: FloatArray, used: FloatArray) -> Weighting:
    """Every channel by its own level.

    Args:
        residuals: shape [samples, 2 n].
        used: 1 for channels that count, 0 for others, shape [2 n].
    """
    count, n = len(residuals), residuals.shape[1] // 2
    sigma = np.maximum(np.sqrt(np.mean(residuals**2, axis=0)), _TINY)
    frequencies = count // 2 + 1
    roots = np.zeros((n, frequencies, 2, 2), dtype=np.complex128)
    for j in range(n):
        roots[j, :, 0, 0] = used[j] / sigma[j]
        roots[j, :, 1, 1] = used[n + j] / sigma[n + j]
    return Weighting(
        roots=roots,
        samples=count,
        position_noise=sigma[:n],
        torque_noise=sigma[n:],
        fed_back=False,
        log_likelihood=-np.inf,
    )


@dataclass(frozen=True, eq=False)
class LoopResponse:
    """What noise in the encoders does to a loop.

    Args:
        spectrum: H(f) per joint for noise of deviation 1 at every control tick, shape [n, frequencies, 2, 2].
        shift: mean change of position and torque, shape [samples, 2 n]: the noise dithers the velocity, which rounds friction
            off near standstill; it does not average out.
    """

    spectrum: ComplexArray
    shift: FloatArray


def loop_response(
    motion: LoopMotion,
    values: FloatArray,
    start: Start | None,
    *,
    noise: FloatArray | None = None,
    runs: int = 8,
    seed: int = 0,
) -> LoopResponse:
    """The response of a loop to encoder noise, by simulation.

    Every run is simulated with its noise and with the negative of it: half the difference is the linear answer, half the sum
    beyond the quiet motion is the shift.

    Args:
        motion: the loop.
        values: base values.
        start: initial state.
        noise: deviation of the noise [rad or m], shape [n]; by default so small that the answer is linear.
        runs: pairs of simulations to average over.
        seed: of their noise.
    """
    rng = np.random.default_rng(seed)
    level = np.full(motion.n, _PROBE) if noise is None else noise
    quiet = _seen(motion.simulate(values, start=start))
    total: ComplexArray | float = 0.0
    shift = np.zeros_like(quiet)
    scale = np.tile(level, 2)
    for _ in range(runs):
        drawn = level * rng.standard_normal(motion.reference.shape)
        own = np.hstack([drawn[:: motion.stride], np.zeros((motion.n_samples, motion.n))])
        up, down = (
            _seen(motion.simulate(values, start=start, noise=sign * drawn)) + sign * own for sign in (1.0, -1.0)
        )
        total = total + periodogram(0.5 * (up - down) / scale)
        shift += (0.5 * (up + down) - quiet) / runs
    return LoopResponse(smooth(np.asarray(total) / runs), shift)


def _seen(block: LoopBlock) -> FloatArray:
    """Position and torque side by side."""
    return np.hstack([block.position, block.torque])


def periodogram(errors: FloatArray) -> ComplexArray:
    """Products of position and torque of every joint over the number of samples, shape [n, frequencies, 2, 2]."""
    count, n = len(errors), errors.shape[1] // 2
    X = np.fft.rfft(errors, axis=0)
    pairs = np.stack([X[:, :n].T, X[:, n:].T], axis=-1)
    return pairs[..., :, None] * pairs[..., None, :].conj() / count


def smooth(S: ComplexArray) -> ComplexArray:
    """Averages along frequency over windows that widen with it; the line at zero, where a mean stands, is left out."""
    lines = S.shape[1]
    half = np.maximum(_FEWEST_BINS, (_SMOOTH * np.arange(lines)).astype(int))
    low, high = np.maximum(1, np.arange(lines) - half), np.minimum(lines, np.arange(lines) + half + 1)
    sums = np.concatenate([np.zeros_like(S[:, :1]), np.cumsum(S, axis=1)], axis=1)
    return (sums[:, high] - sums[:, low]) / (high - low)[None, :, None, None]


def fitted_weighting(residuals: FloatArray, response: ComplexArray | None, used: FloatArray) -> Weighting:
    """The weighting of largest likelihood for these residuals.

    Args:
        residuals: of position and torque, shape [samples, 2 n].
        response: H(f) of the loop; None to take the noise as not fed back.
        used: 1 for channels that count, shape [2 n].
    """
    n = residuals.shape[1] // 2
    lines = len(residuals) // 2 + 1
    seen = periodogram(residuals)
    plain = np.zeros((n, lines, 2, 2), dtype=np.complex128)
    plain[..., 0, 0] = 1.0
    candidates = [(False, plain)] if response is None else [(False, plain), (True, response)]
    best: tuple[float, bool, list[tuple[ComplexArray, float, float]]] | None = None
    for fed_back, H in candidates:
        joints = [_joint_spectrum(seen[j], H[j], used[[j, n + j]]) for j in range(n)]
        likelihood = sum(joint[3] for joint in joints)
        if best is None or likelihood > best[0]:
            best = (likelihood, fed_back, [joint[:3] for joint in joints])
    assert best is not None
    likelihood, fed_back, parts = best
    roots = np.array([_levelled(S, seen[j], used[[j, n + j]]) for j, (S, _, _) in enumerate(parts)])
    return Weighting(
        roots=roots,
        samples=len(residuals),
        position_noise=np.array([q for _, q, _ in parts]),
        torque_noise=np.array([t for _, _, t in parts]),
        fed_back=fed_back,
        log_likelihood=likelihood,
    )


def known_weighting(response: ComplexArray, position: FloatArray, torque: FloatArray, samples: int) -> Weighting:
    """The weighting for noise that is known, as a bound needs it."""
    S = position[:, None, None, None] ** 2 * response
    S[..., 1, 1] += torque[:, None] ** 2
    roots = np.array([_inverse_root(_safe(s), np.ones(2)) for s in S])
    return Weighting(
        roots=roots, samples=samples, position_noise=position, torque_noise=torque, fed_back=True, log_likelihood=0.0
    )


def _joint_spectrum(seen: ComplexArray, H: ComplexArray, used: FloatArray) -> tuple[ComplexArray, float, float, float]:
    """S of one joint with the sigmas of largest likelihood, and that likelihood."""
    from scipy.optimize import minimize

    level = np.sqrt(np.maximum(np.real(np.mean(seen, axis=0)[[0, 1], [0, 1]]), _TINY))
    shape = np.sqrt(np.maximum(np.real(np.mean(H, axis=0)[0, 0]), _TINY))

    def spectrum(x: FloatArray) -> ComplexArray:
        S = np.exp(2.0 * x[0]) * H
        S[:, 1, 1] += np.exp(2.0 * x[1])
        return _safe(S)

    def cost(x: FloatArray) -> float:
        return -whittle(spectrum(x), seen, used)

    start = np.log([level[0] / shape, 0.5 * level[1]])
    found = minimize(cost, start, method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-2, "maxiter": 200})
    sigma = np.exp(found.x)
    return spectrum(found.x), float(sigma[0]), float(sigma[1]), -float(found.fun)


def _safe(S: ComplexArray) -> ComplexArray:
    """S with a determinant that is a number: a rounding of its diagonal added."""
    out = S.copy()
    for k in range(2):
        out[..., k, k] = np.real(out[..., k, k]) * (1.0 + 1e-9) + _TINY
    return out


def whittle(S: ComplexArray, seen: ComplexArray, used: FloatArray) -> float:
    """Log-likelihood of a periodogram under S, up to a constant: - sum log det S + tr S^-1 I."""
    if not used.all():
        k = int(np.argmax(used))
        own, got = np.real(S[:, k, k]), np.real(seen[:, k, k])
        return -float(np.sum(np.log(own) + got / own))
    a, d, b = np.real(S[:, 0, 0]), np.real(S[:, 1, 1]), S[:, 0, 1]
    determinant = a * d - np.abs(b) ** 2
    if not np.all(determinant > 0.0):
        return -np.inf
    trace = d * np.real(seen[:, 0, 0]) + a * np.real(seen[:, 1, 1]) - 2.0 * np.real(b * seen[:, 1, 0])
    return -float(np.sum(np.log(determinant) + trace / determinant))


def _inverse_root(S: ComplexArray, used: FloatArray) -> ComplexArray:
    """Lower-triangular L^-1 with L L^H = S where both channels count; one over the root of its own entry else."""
    if used.all():
        return np.linalg.inv(np.linalg.cholesky(S))
    out = np.zeros_like(S)
    for k in range(2):
        if used[k]:
            out[:, k, k] = 1.0 / np.sqrt(np.real(S[:, k, k]))
    return out


def _levelled(S: ComplexArray, seen: ComplexArray, used: FloatArray) -> ComplexArray:
    """Inverse roots of S times the level of the residuals in every band."""
    root = _inverse_root(S, used)
    white = root @ seen @ np.conj(np.swapaxes(root, -1, -2))
    for band in _bands(len(S)):
        E = np.mean(white[band], axis=0)
        E[~used.astype(bool), ~used.astype(bool)] = 1.0
        L = np.linalg.cholesky(0.5 * (E + E.conj().T) + 1e-12 * np.eye(2))
        root[band] = np.linalg.inv(L) @ root[band]
    return root


def _bands(lines: int) -> Sequence[slice]:
    """Bands of at least `_BAND` lines, each half as wide again as the one before; the line at zero belongs to the first."""
    out, first, width = [], 0, _BAND
    while first < lines:
        last = min(first + width, lines)
        if lines - last < width:
            last = lines
        out.append(slice(first, last))
        first, width = last, width * 3 // 2
    return out
