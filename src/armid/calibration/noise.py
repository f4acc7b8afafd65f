"""How far measurements stray: the instrument's own noise plus what the model leaves out, per sensor and kind.

`sigma^2 = sigma_instrument^2 + sigma_model^2`. The first comes with the data (zero where unknown), the second is
estimated from the residuals, one number per sensor and kind of channel, so that position is weighed against orientation
by variances the data themselves show.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from math import sqrt

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.quantiles import chi_square_above, chi_square_tail
from armid.kinematics.measurement import Observations
from armid.rows.pose_residual import Residual, parts

_FLOOR = 1e-6
"""[m or rad] Smallest standard deviation: no arm repeats better, and weights stay comparable in noise-free simulations."""

Component = tuple[str, str]
"""Sensor placement, and `position`, `orientation` or `distance`."""


@dataclass(frozen=True)
class InstrumentNoise:
    """Estimated standard deviation of each component [m or rad]."""

    model: Mapping[Component, float] = field(default_factory=dict)

    def sigma(self, o: Observations) -> FloatArray:
        """Total standard deviation per channel, shape [channels, m]."""
        out = np.array(o.noise.T) ** 2
        for part, channels in parts(o.quantity):
            out[channels] += self.model.get((o.setup, part), 0.0) ** 2
        return np.sqrt(np.maximum(out, _FLOOR**2))


@dataclass(frozen=True, slots=True)
class VectorLoss:
    """Huber's loss on the length of each whitened vector: quadratic up to a threshold, linear beyond.

    Args:
        probability: of a Gaussian vector to exceed the threshold; 0 makes it plain least squares.
    """

    probability: float = 0.05

    def threshold(self, dimension: int) -> float:
        """Length of a whitened vector of that dimension where the loss turns linear."""
        return threshold(self.probability, dimension)

    def weights(self, length: FloatArray, dimension: int) -> FloatArray:
        """Factor on each whitened vector: `min(1, k / length)` under the square root."""
        k = self.threshold(dimension)
        return np.sqrt(np.minimum(1.0, k / np.maximum(length, 1e-300)))

    def cost(self, length: FloatArray, dimension: int) -> float:
        k = self.threshold(dimension)
        if np.isinf(k):
            return float(length @ length)
        return float(np.where(length <= k, length**2, 2.0 * k * length - k**2).sum())


@cache
def threshold(probability: float, dimension: int) -> float:
    """Length that a unit Gaussian vector exceeds with this probability."""
    return sqrt(chi_square_above(probability, dimension))


@cache
def clipped_mean(k: float, dimension: int) -> float:
    """E[min(|z|, k)^2] of a unit Gaussian vector: makes the robust variance right when there are no outliers."""
    if np.isinf(k):
        return float(dimension)
    below = 1.0 - chi_square_tail(k**2, dimension + 2)
    return dimension * below + k**2 * chi_square_tail(k**2, dimension)


def lengths(vectors: FloatArray) -> FloatArray:
    """Euclidean lengths of vectors stored as columns, shape [d, m] -> [m]."""
    total = vectors[0] ** 2
    for row in vectors[1:]:
        total += row**2
    return np.sqrt(total)


_LEAST_FREEDOM = 0.02
"""Smallest share of a channel's equations that counts as left over: below it residuals say nothing, and a quotient only amplifies
rounding."""
LEVER = 0.5
"""[m] Distance of the tool from the joints that turn it, for an arm of about a metre: what is left out of a model turns as much
as it moves, by this lever."""
_LEVER_COUNTS = 3.0
"""Equations that the lever counts as: less than one pose has. With eight poses a channel keeps some six equations for its noise,
which show it to a factor of two; with fifty the lever has no say."""
_RATIO = 20.0
"""How far position and orientation noise may be from that lever: between a tracker's ball (10 um against 0.5 mrad) and a camera
that sees distances badly."""


def estimated_noise(
    residuals: Iterable[Residual], noise: InstrumentNoise, loss: VectorLoss, used: Mapping[Component, float]
) -> InstrumentNoise:
    """The noise model that these residuals show (Huber's proposal 2, with the degrees of freedom the fit used up).

    Args:
        residuals: of the fit.
        noise: it was weighted by.
        loss: on the whitened vectors.
        used: degrees of freedom that the fit took from each component: the trace of its leverage.
    """
    squares: dict[Component, float] = {}
    equations: dict[Component, float] = {}
    vectors: dict[Component, float] = {}
    instrument: dict[Component, float] = {}
    for residual in residuals:
        o = residual.observations
        sigma = noise.sigma(o)
        for part, channels in parts(o.quantity):
            key, d = (o.setup, part), channels.stop - channels.start
            k = loss.threshold(d)
            z = np.minimum(lengths(residual.r[channels] / sigma[channels]), k)
            mean = float(np.mean(z**2)) / clipped_mean(k, d) * float(np.mean(sigma[channels] ** 2))
            squares[key] = squares.get(key, 0.0) + mean * len(o)
            instrument[key] = instrument.get(key, 0.0) + float(np.mean(o.noise.T[channels] ** 2)) * len(o)
            equations[key] = equations.get(key, 0.0) + d * len(o)
            vectors[key] = vectors.get(key, 0.0) + len(o)
    out, left = {}, {}
    for key, total in squares.items():
        freedom = max(_LEAST_FREEDOM, 1.0 - used.get(key, 0.0) / equations[key])
        out[key] = float(np.sqrt(max(total / freedom - instrument[key], 0.0) / vectors[key]))
        left[key] = freedom * equations[key]
    known = {key: instrument[key] / vectors[key] for key in vectors}
    return InstrumentNoise(_bounded(_drawn_together(out, known, left), known))


_OTHER = {"position": "orientation", "orientation": "position"}


def _drawn_together(
    found: dict[Component, float], instrument: Mapping[Component, float], left: Mapping[Component, float]
) -> dict[Component, float]:
    """The same with position and orientation of one sensor drawn towards the lever by as much as `_LEVER_COUNTS` equations.

    Args:
        found: estimated standard deviations [m or rad].
        instrument: mean variances of the instruments themselves.
        left: equations of each component that the fit left over.
    """
    out = dict(found)
    for (setup, part), own in found.items():
        other = (setup, _OTHER.get(part, ""))
        if other not in found:
            continue
        known = instrument[setup, part]
        expected = (found[other] ** 2 + instrument[other]) * (LEVER if part == "position" else 1.0 / LEVER) ** 2
        n = left[setup, part]
        variance = (n * (own**2 + known) + _LEVER_COUNTS * expected) / (n + _LEVER_COUNTS)
        out[setup, part] = float(np.sqrt(max(variance - known, 0.0)))
    return out


def _bounded(found: dict[Component, float], instrument: Mapping[Component, float]) -> dict[Component, float]:
    """The same with position and orientation of one sensor within a plausible ratio: the smaller one is raised."""
    out = dict(found)
    for (setup, part), own in found.items():
        other = (setup, _OTHER.get(part, ""))
        if other not in found:
            continue
        total = np.sqrt(found[other] ** 2 + instrument[other])
        least = total * (LEVER if part == "position" else 1.0 / LEVER) / _RATIO
        if own**2 + instrument[setup, part] < least**2:
            out[setup, part] = float(np.sqrt(least**2 - instrument[setup, part]))
    return out
