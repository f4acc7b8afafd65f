"""Inertia, viscous friction, gravity and torque lag of one moving axis by one complex least-squares fit.

    tau(t + d) = J q'' + mu q' + c + g_1 cos q + g_2 sin q

holds exactly for an axis that turns alone: whatever hangs on it, gravity along it is one sine of its own angle. Modulating
functions turn it into complex equations at two groups of frequencies: around the excited ones, which give J, mu and d, and far
below them, which give the constant and gravity, so that J is not to be told apart from the slope of gravity by its frequency.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.response.modulation import Complex, Modulation, Moments, modulation, moments

_BESIDE = 5
"""Bins (of one over the window's length) on either side of a sine: two for the window's main lobe, the rest to see the noise."""

_SLOW_SHARE = 0.5
"""Of the slowest excited frequency: slower bins hold gravity and friction along the way."""

_MOST_SLOW = 24
"""Bins of the slow group: gravity along one turn needs few, and friction that changes with position lives above them."""

_CLEARLY_MORE = 1.6
"""Ratio of two standard deviations that ten rows each do not reach by chance; weights should not follow chance."""

_ROUNDS = 4
"""Of lag, damping and the two groups' noise; the lag is then good to a millionth of itself."""


@dataclass(frozen=True, slots=True)
class Excited:
    """Which frequencies an axis was excited with.

    Args:
        low, high: slowest and fastest [Hz].
        lines: single sines between them; empty for a chirp, which fills the band.
    """

    low: float
    high: float
    lines: tuple[float, ...] = ()

    @property
    def several(self) -> bool:
        """Whether viscous friction and lag, which differ in their frequency, can be told apart."""
        return self.high > 1.2 * self.low

    def bins(self, seconds: float) -> tuple[FloatArray, FloatArray]:
        """Frequencies of the slow and of the excited group [Hz]."""
        step = 1.0 / seconds
        slow: FloatArray = step * np.arange(min(int(_SLOW_SHARE * self.low * seconds), _MOST_SLOW) + 1.0)
        if not self.lines:
            return slow, np.asarray(np.arange(self.low, self.high + 0.5 * step, step), dtype=np.float64)
        around = np.concatenate([f + step * np.arange(-_BESIDE, _BESIDE + 1) for f in self.lines])
        return slow, np.asarray(np.unique(around[around > slow[-1] + 0.5 * step]), dtype=np.float64)


@dataclass(frozen=True, eq=False, kw_only=True)
class AxisFit:
    """What the equation of motion of one axis came out as.

    Args:
        inertia: [kg m^2 or kg]; other axes' motion taken out.
        viscous: [N m s/rad or N s/m].
        lag: of torque behind position [s]; zero when not fitted.
        gravity: coefficients of the gravity functions [N m or N].
        inertia_deviation, viscous_deviation: standard deviations.
        noise: of torque around the excited frequencies, as white noise per sample [N m or N].
        coupling: what the other axes' motion adds to the inertia, relative.
    """

    inertia: float
    viscous: float
    lag: float
    gravity: FloatArray
    inertia_deviation: float
    viscous_deviation: float
    noise: float
    coupling: float


def fit_axis(
    t: FloatArray,
    q: FloatArray,
    tau: FloatArray,
    gravity: FloatArray,
    excited: Excited,
    *,
    lag: bool = True,
    others: Sequence[tuple[FloatArray, FloatArray]] = (),
) -> AxisFit:
    """Fits the equation of motion of one axis.

    Args:
        t: [s], shape [n_samples].
        q: its position, shape [n_samples].
        tau: its torque, shape [n_samples].
        gravity: functions of position gravity is made of, shape [k, n_samples]; k may be zero.
        excited: frequencies.
        lag: whether torque may be late; needs frequencies apart.
        others: position and torque of the other axes, which should stand still, and give way a little.
    """
    groups = [modulation(t, excited.low, bins) for bins in excited.bins(float(t[-1] - t[0]))]
    parts = [moments(m, t, q, gravity) for m in groups]
    size, correlation = _row_correlation(groups, t)
    belongs = np.repeat([0, 1], [2 * len(m.frequencies) for m in groups])
    yielded = _given_way(groups[1], t, parts[1], others)
    late, sigma, damping = 0.0, np.ones(2), 0.0
    for _ in range(_ROUNDS):
        slow, fast = (m.functions(t - late) @ tau for m in groups)
        y = _stacked(slow, fast - yielded)
        A = np.vstack([_columns(part, damping, lag=lag) for part in parts])
        P = _weighted_inverse(A, 1.0 / (size * sigma[belongs]))
        x = P @ y
        H = np.eye(len(y)) - (A / size[:, np.newaxis]) @ (P * size)
        sigma = _group_noise((y - A @ x) / size, np.einsum("ij,jk,ik->i", H, correlation, H, optimize=True), belongs)
        late += float(x[2] / x[0]) if lag else 0.0
        damping = float(x[1] / x[0])
    coupling = float(np.linalg.norm(yielded) / np.linalg.norm(x[0] * parts[1].acceleration))
    spread = _deviations(P, groups, t - late, sigma)
    # Dry friction of the other axes may take any part of what their torque shows: the correction is as doubtful as large.
    spread[0] = np.hypot(spread[0], coupling * x[0] / 3.0**0.5)
    first = 4 if lag else 3
    return AxisFit(
        inertia=float(x[0]),
        viscous=float(x[1]),
        lag=late,
        gravity=x[first:],
        inertia_deviation=float(spread[0]),
        viscous_deviation=float(spread[1]),
        noise=float(sigma[1]),
        coupling=coupling,
    )


def _columns(m: Moments, damping: float, *, lag: bool) -> FloatArray:
    """Coefficients of J, mu, (J d), c and gravity in the real and imaginary parts, shape [2 m, p].

    A torque late by d is short of d times its derivative, J (q''' + damping q'') with damping = mu / J.
    """
    late = [-(m.jerk + damping * m.acceleration)] if lag else []
    parts = [m.acceleration, m.velocity, *late, m.constant, *m.gravity]
    return np.stack([_stacked(part) for part in parts], axis=1)


def _stacked(*parts: Complex) -> FloatArray:
    """Real and imaginary parts one below the other, group by group."""
    return np.concatenate([side for part in parts for side in (part.real, part.imag)])


def _row_correlation(groups: Sequence[Modulation], t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What white noise of one unit per sample makes of the rows: its size in each [n_rows], and their correlation."""
    rows = []
    for m in groups:
        phi = m.functions(t)
        rows += [phi.real, phi.imag]
    phi = np.vstack(rows)
    size = np.linalg.norm(phi, axis=1)
    # The imaginary part at 0 Hz is empty, and so is its row: it may have any size but zero.
    size = np.where(size > 1e-9 * size.max(), size, size.max())
    phi = phi / size[:, np.newaxis]
    return size, phi @ phi.T


def _weighted_inverse(A: FloatArray, weight: FloatArray) -> FloatArray:
    """P with x = P y the weighted least-squares solution, shape [p, n_rows]."""
    W = A * weight[:, np.newaxis]
    norms = np.linalg.norm(W, axis=0)
    if not (norms > 0.0).all():
        raise InputError("frequency response", "a signal without any motion", "record the excitation of one axis")
    return np.asarray(np.linalg.pinv(W / norms, rcond=1e-10) / norms[:, np.newaxis] * weight)


def _group_noise(residuals: FloatArray, left: FloatArray, belongs: npt.NDArray[np.intp]) -> FloatArray:
    """Noise per sample of the slow and the excited group; the same unless the slow one's is clearly more.

    Args:
        residuals: in units of what one unit of noise makes of each row, shape [n_rows].
        left: variance that the fit leaves of one unit of noise, shape [n_rows].
        belongs: 0 for a slow row, 1 for an excited one.
    """
    low, high = (
        float(np.linalg.norm(residuals[belongs == k]) / max(left[belongs == k].sum(), 1e-3) ** 0.5) for k in (0, 1)
    )
    return np.maximum([low if low > _CLEARLY_MORE * high else high, high], 1e-300)


def _deviations(P: FloatArray, groups: Sequence[Modulation], t: FloatArray, sigma: FloatArray) -> FloatArray:
    """Standard deviations of the solution: each parameter is a weighted sum of the torque samples, group by group."""
    variance, start = np.zeros(len(P)), 0
    for m, s in zip(groups, sigma, strict=True):
        phi, n = m.functions(t), len(m.frequencies)
        h = P[:, start : start + n] @ phi.real + P[:, start + n : start + 2 * n] @ phi.imag
        variance += s**2 * np.sum(h**2, axis=1)
        start += 2 * n
    return np.sqrt(variance)


def _given_way(m: Modulation, t: FloatArray, own: Moments, others: Sequence[tuple[FloatArray, FloatArray]]) -> Complex:
    """Torque in the axis from other axes that give way: sum of M_kj q_j'', shape [m].

    The controller of axis j holds against M_jk q_k'', which its recorded torque shows; M_kj is the same number. What is
    neglected is M_jj (q_j / q_k)^2, of second order in the small motion.
    """
    total = np.zeros_like(own.acceleration)
    A = np.stack([_stacked(own.acceleration), _stacked(own.velocity)], axis=1)
    second, zeroth = m.functions(t, 2), m.functions(t)
    for q, tau in others:
        shown = np.linalg.lstsq(A, _stacked(zeroth @ tau), rcond=None)[0]
        total += shown[0] * (second @ q)
    return total
