"""Forgetting only what is learnt anew.

Plain exponential forgetting, information <- kept * information + new, loses everything about directions that nothing
excites any more: the estimator winds up, and the next noise throws it about. Here information is lost only in directions in
which new information came in lately. With I the information, S what came in within a short horizon, e a small number, and
K = S * (time constant / horizon) / e, which is I / e wherever excitation goes on as before:

    I <- I - (1 + e) (1 - kept) (I : K),       I : K = (I^-1 + K^-1)^-1 = I - I (I + K)^-1 I

The parallel sum I : K is a smooth minimum of two matrices ([Anderson1969]). Where excitation goes on, the loss is (1 - kept) I:
plain exponential forgetting. Where there is none, K = 0, nothing is lost. When excitation ends, forgetting goes on for a few
horizons, until K is small, and then stops: about exp(-(1 + e) horizon / time constant * log((1 + e) / e)), a quarter, is left.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from math import exp, inf, isfinite

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs

from armid.arrays import FloatArray
from armid.errors import InputError

ENOUGH = 2e-3
"""e: share of the usual excitation from which on a direction counts as excited. Motion comes in bursts, each direction in its
turn: with 1 a changed arm was learnt ten times more slowly than by plain forgetting, with this in the same time."""

BLOCKS = 40
"""Per time constant: information is exchanged this often, so that the loss of one exchange is a twentieth at most."""

SHORTEST_BLOCK = 0.05
"""[s] Between exchanges: their cost, some ten updates, then hardly shows."""

COLUMNS = 16
"""Solved for at a time, so that no sample waits long for an exchange."""

_RIDGE = 1e-10
"""Of the scaled matrix: directions with less information than that have none. Above the round-off of the differences of Gram
matrices that S is made of, which `1 / ENOUGH` and the horizon multiply by some thousands."""


@dataclass(frozen=True, slots=True)
class Forgetting:
    """How fast old samples lose weight.

    Args:
        time_constant: [s] after which a sample's weight is 1/e where excitation goes on; infinite: never.
        horizon: over which excitation is looked for, relative to the time constant. Longer ones follow a motion with long
            pauses better, shorter ones stop forgetting sooner.
    """

    time_constant: float = inf
    horizon: float = 0.2

    def __post_init__(self) -> None:
        if not self.time_constant > 0.0:
            raise InputError("forgetting", f"time constant {self.time_constant} s", "a positive time, or infinity")
        if not 0.0 < self.horizon <= 1.0:
            raise InputError("forgetting", f"horizon {self.horizon} of the time constant", "a share above 0, at most 1")


@dataclass(eq=False, kw_only=True)
class Fading:
    """The state of forgetting: what came in lately.

    Args:
        block: samples between two exchanges.
        kept: factor on the information in one block where excitation goes on.
        recent: factor on what came in lately, per block.
        gain: time constant / horizon, for blocks.
        base: information after the last exchange, shape [p, p].
        lately: S, shape [p, p].
    """

    block: int
    kept: float
    recent: float
    gain: float
    base: FloatArray
    lately: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.lately = np.zeros_like(self.base)

    @classmethod
    def of(cls, forgetting: Forgetting, rate: float, R: FloatArray) -> Fading | None:
        """For a sampling rate [Hz] and the factor of what is known already; None when nothing is forgotten."""
        tau = forgetting.time_constant
        if not isfinite(tau):
            return None
        block = max(1, round(rate * max(tau / BLOCKS, SHORTEST_BLOCK)))
        kept, recent = exp(-block / (rate * tau)), exp(-block / (rate * tau * forgetting.horizon))
        return cls(block=block, kept=kept, recent=recent, gain=(1.0 - recent) / (1.0 - kept), base=R.T @ R)

    @property
    def loss(self) -> float:
        """Share of the information that one exchange takes away before it gives some back."""
        return min((1.0 + ENOUGH) * (1.0 - self.kept), 1.0)

    def step(self, R: FloatArray) -> tuple[FloatArray, float]:
        """One exchange.

        Args:
            R: factor of the information now, upper triangular, shape [p, p].

        Returns:
            Rows Y and a factor c so that the information becomes c I + Y^T Y.
        """
        parts = self.parts(R)
        while True:
            try:
                next(parts)
            except StopIteration as done:
                return np.asarray(done.value), 1.0 - self.loss

    def parts(self, R: FloatArray) -> Generator[None, None, FloatArray]:
        """The same in parts of similar length, one per `next`; the rows Y are what it returns."""
        information = R.T @ R
        yield
        self.lately *= self.recent
        self.lately += information - self.base
        total = information + self.gain / ENOUGH * self.lately
        yield
        scale = 1.0 / np.sqrt(np.maximum(np.diag(total), np.finfo(float).tiny))
        total *= scale
        total *= scale[:, np.newaxis]
        yield
        L = _ridged_cholesky(total)
        yield
        p = len(information)
        right = np.multiply(information, scale[:, np.newaxis], order="F")
        rows = np.empty((p, p))
        for start in range(0, p, COLUMNS):
            part = slice(start, start + COLUMNS)
            # (information scaled on both sides) over the scale of its columns again: only the rows' scale is left.
            rows[:, part] = self.loss**0.5 * dtrtrs(L, right[:, part], lower=1)[0]
            yield
        self.base = (1.0 - self.loss) * information + rows.T @ rows
        return rows

    def scale(self, factor: float) -> None:
        """After all information was multiplied by a factor."""
        self.base *= factor
        self.lately *= factor


def _ridged_cholesky(A: FloatArray) -> FloatArray:
    """Lower factor of a scaled matrix that is positive semi-definite but for round-off; LAPACK without a wrapper's checks."""
    ridge = _RIDGE
    while True:
        raised = np.array(A, order="F")
        raised[np.diag_indices(len(A))] += ridge
        L, failed = dpotrf(raised, lower=1, overwrite_a=1, clean=1)
        if not failed:
            return np.asarray(L)
        # Round-off of an ill-conditioned difference: weaker directions than this are not known anyway.
        ridge *= 100.0
