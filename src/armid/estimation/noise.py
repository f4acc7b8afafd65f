"""The noise of every channel as residuals show it: its memory, how large it is when, and what channels share.

Models are fitted to residuals of at most `_MOST_SAMPLES` samples, spread evenly over long motion: more would not change them, and
memory stays flat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.autoregression import Autoregression, impulse_response
from armid.estimation.reversals import noise_along
from armid.estimation.run import Run, each_run
from armid.estimation.runs import lengths_of

_MOST_SAMPLES = 1 << 16
"""Of all runs together, on which noise is modelled: a quarter of an hour and more at ordinary conditioned rates."""
_FORGOTTEN = 1e-3
"""Of the largest response: what is smaller no longer counts."""
_LONGEST_MEMORY = 4096
"""Samples; noise that remembers longer is a drift, and no log of an arm shows its size."""
_MOST_LAGS = 200
"""At which the correlation of innovations is looked at."""
_SMALLEST_SHARE = 0.05
"""Of the mean variance: what noise is left at standstill at least."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ResidualStretch:
    """Residuals of uniform sampling, whole again where a long motion was cut for memory.

    Args:
        residuals: in units of the noise of their rows, shape [n, channels].
        speeds: of each channel's own joint, absolute, shape [n, channels]; empty columns when the inputs have none.
        positions: of the joints, shape [n, n_joints]; zero columns when the inputs have none.
        rate: [Hz].
        alone: whether the motion is this stretch alone.
        share: of the motion that was looked at; the others resemble it.
    """

    residuals: FloatArray
    speeds: FloatArray
    positions: FloatArray
    rate: float
    alone: bool
    share: float = 1.0


@dataclass(frozen=True, eq=False, kw_only=True)
class _RunResiduals:
    """Residuals of one run in units of their noise, with the motion beside them."""

    residuals: FloatArray
    speeds: FloatArray
    positions: FloatArray
    segments: tuple[tuple[int, int], ...]
    rate: float
    continues: bool


@dataclass(frozen=True, eq=False)
class _Residuals:
    """Of a run, for given parameters; see `stretches_of`."""

    standard: FloatArray
    sigma: Mapping[str, float]

    def __call__(self, run: Run) -> _RunResiduals:
        return _RunResiduals(
            residuals=run.residuals(self.standard) / noise_along(run, self.sigma),
            speeds=own_speeds(run),
            positions=joint_positions(run),
            segments=run.segments,
            rate=run.rate,
            continues=run.continues,
        )


def stretches_of(runs: Sequence[Run], standard: FloatArray, sigma: Mapping[str, float]) -> tuple[ResidualStretch, ...]:
    """Residuals of full standard parameters, stretch by stretch; evenly spread runs of very long motion.

    Args:
        runs: the motions.
        standard: parameters, shape [p].
        sigma: noise by channel, in whose units residuals are given: near reversals they are larger, and have the same memory.
    """
    length = sum(lengths_of(runs))
    every = max(1, -(-length // _MOST_SAMPLES))
    pieces: list[list[tuple[FloatArray, FloatArray, FloatArray]]] = []
    rates: list[float] = []
    alone: list[bool] = []
    for run in each_run(runs[::every], _Residuals(standard, sigma)):
        for start, stop in run.segments:
            part = slice(start, stop)
            piece = run.residuals[part], run.speeds[part], run.positions[part]
            if run.continues and start == 0 and every == 1 and pieces:
                pieces[-1].append(piece)
                alone[-1] = alone[-1] and len(run.segments) == 1
            else:
                pieces.append([piece])
                rates.append(run.rate)
                alone.append(len(run.segments) == 1)
    return tuple(
        ResidualStretch(
            residuals=np.concatenate([p[0] for p in parts]),
            speeds=np.concatenate([p[1] for p in parts]),
            positions=np.concatenate([p[2] for p in parts]),
            rate=rate,
            alone=single,
            share=1.0 / every,
        )
        for parts, rate, single in zip(pieces, rates, alone, strict=True)
    )


def _input_places(run: Run) -> dict[str, int]:
    return {name: k for k, name in enumerate(run.source.inputs)}


def own_speeds(run: Run) -> FloatArray:
    """Absolute speed of every channel's own joint, shape [n, channels]; [n, 0] when the inputs hold no motion."""
    places = _input_places(run)
    n = sum(f"qdd{k + 1}" in places for k in range(len(places)))
    names = [f"qd{c % n + 1}" for c in range(len(run.channels))] if n else []
    if not names or any(name not in places for name in names):
        return np.empty((len(run), 0))
    return np.abs(run.inputs[:, [places[name] for name in names]])


def joint_positions(run: Run) -> FloatArray:
    """Positions of the joints, shape [n, n_joints]; [n, 0] when the inputs do not begin with them."""
    places = _input_places(run)
    n = sum(f"qdd{k + 1}" in places for k in range(len(places)))
    return run.inputs[:, :n] if n and run.source.inputs[0] == "q1" else np.empty((len(run), 0))


@dataclass(frozen=True, eq=False, kw_only=True)
class NoiseModel:
    """Noise of all channels, in units of the noise of their rows.

    Args:
        models: an autoregression per channel.
        correlation: of the innovations between channels, shape [channels, channels].
        constant, slope: variance of the innovations, a constant plus a multiple of the channel's own speed, shape [channels].
        floor: below which it does not fall, shape [channels].
    """

    models: tuple[Autoregression, ...]
    correlation: FloatArray
    constant: FloatArray
    slope: FloatArray
    floor: FloatArray

    def sizes(self, run: Run) -> FloatArray:
        """Standard deviation of the innovations along a run, shape [n_samples, channels]."""
        speeds = own_speeds(run)
        moving = self.slope * speeds if speeds.shape[1] else np.zeros((len(run), len(self.models)))
        return np.sqrt(np.maximum(self.constant + moving, self.floor))


def fitted_noise(stretches: Sequence[ResidualStretch], models: tuple[Autoregression, ...]) -> NoiseModel:
    """The noise that residuals show.

    Args:
        stretches: residuals of uniform sampling.
        models: of the noise of every channel.
    """
    n = stretches[0].residuals.shape[1]
    white = np.concatenate([innovations(s.residuals, models) for s in stretches])
    products = white.T @ white
    deviation = np.sqrt(np.maximum(np.diag(products), 1e-300))
    variances = np.array(
        [
            _variance_along(
                white[:, c],
                np.concatenate([s.speeds[:, c] for s in stretches]) if stretches[0].speeds.shape[1] else None,
                models[c].innovation ** 2,
            )
            for c in range(n)
        ]
    )
    return NoiseModel(
        models=models,
        correlation=products / np.outer(deviation, deviation),
        constant=variances[:, 0],
        slope=variances[:, 1],
        floor=variances[:, 2],
    )


def innovations(residuals: FloatArray, models: Sequence[Autoregression]) -> FloatArray:
    """Residuals freed of their memory, shape of the residuals; zero where the filter has not heard enough."""
    u = np.zeros(residuals.shape)
    for c, m in enumerate(models):
        u[m.order :, c] = np.convolve(residuals[:, c], m.coefficients)[m.order : len(residuals)]
    return u


def _variance_along(u: FloatArray, speed: FloatArray | None, mean: float) -> tuple[float, float, float]:
    """Variance of innovations u along a motion: constant, multiple of the speed, and smallest value.

    Non-negative multiples that explain the squares best, when they do so beyond chance (Bayesian information
    criterion over independent squares); else the same everywhere. Its mean over the motion is given.
    """
    size = max(float(np.mean(u**2)), 1e-300)
    if speed is None or not np.any(u):
        return mean, 0.0, 0.0
    squares = u**2 / size
    average = max(float(np.mean(speed)), 1e-300)
    constant, slope = _non_negative_pair(speed / average, squares)
    left = float(np.sum((squares - constant - slope * speed / average) ** 2))
    independent = len(u) / max(_squared_correlation_of(u), 1.0)
    gain = independent * np.log(float(np.sum((squares - 1.0) ** 2)) / max(left, 1e-300))
    if gain < np.log(max(independent, 2.0)):
        return mean, 0.0, 0.0
    fitted = np.maximum(constant + slope * speed / average, _SMALLEST_SHARE)
    scale = mean / max(float(fitted.mean()), 1e-300)
    return scale * constant, scale * slope / average, scale * _SMALLEST_SHARE


def _non_negative_pair(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Non-negative (a, b) with a + b x nearest to y."""
    mean_x, mean_y = float(np.mean(x)), float(np.mean(y))
    spread = float(np.mean((x - mean_x) ** 2))
    b = float(np.mean((x - mean_x) * (y - mean_y))) / spread if spread > 0.0 else 0.0
    a = mean_y - b * mean_x
    if b <= 0.0:
        return max(mean_y, 0.0), 0.0
    if a < 0.0:
        return 0.0, max(float(np.mean(x * y)) / max(float(np.mean(x * x)), 1e-300), 0.0)
    return a, b


def _squared_correlation_of(u: FloatArray) -> float:
    """Sum over lags of the squared autocorrelation of a sequence, beyond what white noise of its length shows."""
    size = 1 << (2 * len(u) - 1).bit_length()
    covariance = np.fft.irfft(np.abs(np.fft.rfft(u, size)) ** 2, size)[: min(len(u), _MOST_LAGS)]
    rho = covariance / max(float(covariance[0]), 1e-300)
    return 1.0 + 2.0 * float(np.sum(np.maximum(rho[1:] ** 2 - 2.0 / len(u), 0.0)))


def response_length(model: Autoregression) -> int:
    """Samples after which the noise has forgotten an innovation."""
    h = np.abs(impulse_response(model.coefficients))
    return min(int(np.flatnonzero(h > _FORGOTTEN * h.max())[-1]) + 1, _LONGEST_MEMORY)
