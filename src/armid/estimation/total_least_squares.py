"""Total least squares: noise in the rows as well as in the measured values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.estimate import Estimate
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.run import Run
from armid.identifiability.base import BaseParameters
from armid.information.information import Information, triangular
from armid.information.solve import reduced, smallest_solution, solve
from armid.information.status import EstimationError, Status


@dataclass(frozen=True, slots=True)
class TotalLeastSquares:
    """The smallest change of rows and values together that makes them fit, by the last singular vector of [A y].

    Noise of a row entry is taken proportional to `row_noise`, that of a value to the channel's noise; columns with zero
    row noise (offsets, signs) are exact and eliminated first: mixed LS-TLS, [VanHuffel1991] section 3.6.3.

    With all row noise zero it is weighted least squares.
    """

    def fit(
        self, information: Information, base: BaseParameters, row_noise: FloatArray, units: tuple[str, ...] = ()
    ) -> Estimate:
        """Args:
        information: over the standard parameters.
        base: what to estimate.
        row_noise: standard deviation of the entries of each base column, in units of the weighted rows
            (value noise is 1 after weighting), shape [r].
        units: of the base parameters.
        """
        start = WeightedLeastSquares().fit(information, base, units)
        rows = reduced(information, base).weighted({name: 1.0 / s for name, s in start.sigma.items()})
        values = mixed_total_least_squares(rows.stacked(), np.asarray(row_noise, dtype=np.float64))
        inverse = solve(rows).inverse
        # First-order covariance: the rows' noise adds to the values' through b.
        factor = 1.0 + float(np.sum((np.asarray(row_noise) * values) ** 2))
        return Estimate(
            base=base,
            units=start.units,
            values=values,
            covariance=factor * inverse,
            covariance_kind="per-channel",
            sigma=start.sigma,
            method="total least squares",
            status=Status.SOLVED,
        )


def mixed_total_least_squares(factor: FloatArray, row_noise: FloatArray) -> FloatArray:
    """Solution of [R z; 0 rho] with noise-free columns kept exact.

    Raises:
        EstimationError: the smallest singular value belongs to the rows alone (nongeneric problem).
    """
    noisy, exact = np.flatnonzero(row_noise > 0.0), np.flatnonzero(row_noise <= 0.0)
    order = np.concatenate([exact, noisy, [factor.shape[1] - 1]])
    T = triangular(factor[:, order])
    e = len(exact)
    values = np.zeros(factor.shape[1] - 1)
    tail = T[e:, e:]
    if len(noisy):
        # In units of noise every entry has the same variance, which is what the SVD assumes.
        D = np.concatenate([1.0 / row_noise[noisy], [1.0]])
        v = np.linalg.svd(tail * D)[2][-1] * D
        if abs(v[-1]) < 1e-10 * np.abs(v).max():
            raise EstimationError(Status.RANK_DEFICIENT, "total least squares: the rows are all noise")
        values[noisy] = -v[:-1] / v[-1]
    if e:
        rhs = T[:e, -1] - T[:e, e:-1] @ values[noisy]
        values[exact] = smallest_solution(T[:e, :e], rhs)
    return values


def row_noise(
    runs: Sequence[Run], base: BaseParameters, sigma: Mapping[str, float], motion_noise: FloatArray, *, seed: int = 0
) -> FloatArray:
    """Root mean square noise of the entries of every base column in weighted rows, shape [r].

    The motion is disturbed once by its own noise and the rows are compared: one draw over thousands of rows is their mean.

    Args:
        runs: whose rows are disturbed.
        base: which columns.
        sigma: noise of the channels, by which rows are divided.
        motion_noise: standard deviation of the first inputs (q, qd, qdd), shape [3 n_joints].
        seed: of the draw.
    """
    rng = np.random.default_rng(seed)
    energy, count = np.zeros(len(base)), 0
    for run in runs:
        inputs = np.array(run.inputs)
        inputs[:, : len(motion_noise)] += rng.normal(size=(len(run), len(motion_noise))) * motion_noise
        disturbed = replace(run, inputs=inputs)
        weight = np.array([1.0 / sigma[name] for name in run.channels])[:, np.newaxis]
        for (_, _, A), (_, _, B) in zip(run.blocks(), disturbed.blocks(), strict=True):
            difference = (B - A)[:, :, base.independent] * weight
            energy += np.sum(difference**2, axis=(0, 1))
            count += difference.shape[0] * difference.shape[1]
    return np.sqrt(energy / max(count, 1))
