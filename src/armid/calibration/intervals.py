"""How far the found values may be off when residuals are no independent noise.

What a model leaves out (gear errors, sag, drift) follows the joints and the clock: neighbours share it, and the plain
covariance counts them as independent. Scores `g = A^T r` of rows that share a bin of one joint, or of the recording, are
therefore added before they are squared. A joint's gear error is shared along that joint alone, drift along the recording:
their contributions add up ([Cameron2011], clustering in several ways),

    V = C + (V_rows - V_single) + sum over ways of (V_way - V_rows),   V_way = C (sum over its bins of g_bin g_bin^T) C,

where V_rows adds what was seen at one configuration (several targets share its joint errors) and V_single adds nothing.

Eight bins show a variance to no better than half of itself, and seven or eight ways add up that much chance. The sum is therefore
shrunk towards its mean over all parameters of the arm, or of the frames, which is known far better: as much as its scatter over
the parameters is what chance alone would give ([Smyth2004]), and not at all where parameters differ by more. It is never below
the plain covariance C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.calibration.fit import KinematicFit
from armid.calibration.leave_out import fit_weights
from armid.calibration.solve import FitSolution
from armid.information.information import triangular
from armid.kinematics.measurement import Measurements
from armid.parameters.space import OwnerKind
from armid.rows.pose_residual import residuals

_BINS = 8
"""Bins of a joint's range and of the recording: wide enough to hold a gear's or a morning's error together, enough of them to
see its spread."""
_STILL = 1e-3
"""[rad or m] A joint that moves less is no way to part rows."""
_PER_BIN = 3
"""Configurations that a bin holds at least."""
_FEWEST_BINS = 3
"""Bins below which their sums show no spread."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class ClusteredSpread:
    """Variances of everything that depends on the parameters, with correlated residuals.

    Args:
        plain: covariance C of all parameters when residuals are independent, shape [p, p]; zero rows where held.
        arm: mask of the parameters of links and joints; the others are of frames, shape [p].
        single: square-root factor of the variance from single measurements, shape [p, k] with k at most p or their number.
        rows: the same from configurations, whatever was seen there.
        ways: the same from the bins of every way to part them, shape [p, bins] each.
        names: of the ways.
        bins: of every way.
        redrawn: factors like `ways`, from fits to redrawn bins; empty when there were none.
    """

    plain: FloatArray
    arm: npt.NDArray[np.bool_]
    single: FloatArray
    rows: FloatArray
    ways: tuple[FloatArray, ...]
    names: tuple[str, ...]
    bins: tuple[int, ...]
    redrawn: tuple[FloatArray, ...] = ()

    def variance(self, directions: FloatArray) -> FloatArray:
        """Of linear combinations of the parameters, shape [m, p] -> [m]."""
        plain = np.einsum("mp,pq,mq->m", directions, self.plain, directions, optimize=True)
        each = [self.ways, *([self.redrawn] if self.redrawn else [])]
        wider = [self._wider(ways, directions, plain) for ways in each]
        return plain * (1.0 + np.max([np.zeros(len(plain)), *wider], axis=0))

    def covariance(self) -> FloatArray:
        """Of all parameters: the plain correlations with the wider standard deviations, shape [p, p]."""
        plain = np.diag(self.plain)
        held = plain <= 0.0
        wider = np.sqrt(self.variance(np.eye(len(plain))) / np.where(held, 1.0, plain))
        wider[held] = 0.0
        return self.plain * np.outer(wider, wider)

    def _wider(self, ways: Sequence[FloatArray], directions: FloatArray, plain: FloatArray) -> FloatArray:
        """What these ways add to the plain variance of each direction, shrunk towards what they add on the whole."""
        raw = self._excess(ways, directions, plain)
        known = np.diag(self.plain) > 0.0
        framed = np.any(directions[:, known & ~self.arm] != 0.0, axis=1)
        out = np.array(raw)
        for of, kept in ((~framed, known & self.arm), (framed, known & ~self.arm)):
            if of.any() and kept.any():
                mean, share = self._pooled(ways, kept)
                out[of] = mean + share * (raw[of] - mean)
        return out

    def _excess(self, ways: Sequence[FloatArray], directions: FloatArray, plain: FloatArray) -> FloatArray:
        """What configurations and bins show beyond single measurements, over the plain variance of each direction."""
        single, rows, *each = (np.sum((directions @ f) ** 2, axis=1) for f in (self.single, self.rows, *ways))
        more = sum((way - rows for way in each), rows - single)
        return np.asarray(more / np.where(plain > 0.0, plain, 1.0))

    def _pooled(self, ways: Sequence[FloatArray], kept: npt.NDArray[np.bool_]) -> tuple[float, float]:
        """The mean excess over some parameters, and the share of what single ones deviate from it that is not chance."""
        W, p = whitener(self.plain, kept), int(kept.sum())
        single, rows, *each = (float(np.sum((W @ f) ** 2)) / p for f in (self.single, self.rows, *ways))
        mean = rows - single + sum(way - rows for way in each)
        chance = sum(2.0 / (count - 1) * max(way, rows) ** 2 for way, count in zip(each, self.bins, strict=True))
        found = self._excess(ways, np.eye(len(kept))[kept], np.diag(self.plain)[kept])
        scatter = float(np.mean((found - mean) ** 2))
        return mean, max(0.0, 1.0 - chance / scatter) if scatter > 0.0 else 0.0


_DEPENDENT = 1e-10
"""Relative variance below which a direction of correlated parameters is round-off."""


def whitener(C: FloatArray, kept: npt.NDArray[np.bool_]) -> FloatArray:
    """W with `W C W^T = I` for some of the parameters, shape [k, p]; zero columns for the others."""
    sigma = np.sqrt(np.diag(C)[kept])
    values, vectors = np.linalg.eigh(C[np.ix_(kept, kept)] / np.outer(sigma, sigma))
    good = values > _DEPENDENT
    out = np.zeros((int(good.sum()), len(kept)))
    out[:, kept] = (vectors[:, good] / np.sqrt(values[good])).T / sigma
    return out


def spread_of(fit: KinematicFit, measurements: Measurements) -> ClusteredSpread:
    """Variances of the fitted parameters with residuals that follow joints, recording and setup.

    Args:
        fit: to these measurements.
        measurements: what was fitted.
    """
    solution = fit.after
    kept = np.flatnonzero(solution.selection.kept)
    size = len(solution.values)
    scores, seen = _scores(fit, measurements)
    inside = solution.covariance[np.ix_(kept, kept)]
    lift = np.sqrt(_freedom(solution, measurements))

    def factor(labels: npt.NDArray[np.intp]) -> FloatArray:
        count = int(labels.max()) + 1
        sums = np.zeros((count, len(kept)))
        np.add.at(sums, labels, scores)
        out = np.zeros((size, count))
        out[kept] = lift * np.sqrt(count / max(count - 1, 1)) * (inside @ sums.T)
        # Only sums of squares are asked for: a triangle says the same as thousands of columns.
        return out if count <= size else triangular(out.T).T

    ways = bins_of(fit, measurements)
    group = np.unique(measurements.group, return_inverse=True)[1].astype(np.intp)
    rows = factor(group[seen])
    return ClusteredSpread(
        plain=solution.covariance,
        arm=fit.model.owned(OwnerKind.LINK, OwnerKind.JOINT),
        single=rows if len(np.unique(group)) == len(seen) else factor(np.arange(len(seen), dtype=np.intp)),
        rows=rows,
        ways=tuple(factor(labels[seen]) for labels in ways.values()),
        names=tuple(ways),
        bins=tuple(int(labels.max()) + 1 for labels in ways.values()),
    )


def with_intervals(fit: KinematicFit, spread: ClusteredSpread) -> KinematicFit:
    """The fit with standard deviations that allow for correlated residuals."""
    return replace(fit, after=replace(fit.after, covariance=spread.covariance()))


def _scores(fit: KinematicFit, measurements: Measurements) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """Weighted `A^T r` of every measurement, shape [m, kept], and its configuration, shape [m]."""
    scores, seen = [], []
    for r in residuals(fit.model, fit.after.values, measurements, wanted=fit.after.selection.kept):
        w = fit_weights(fit, r)
        scores.append(np.einsum("pcm,cm->mp", r.D * w, r.r * w, optimize=True))
        seen.append(np.asarray(r.observations.rows, dtype=np.intp))
    return np.concatenate(scores), np.concatenate(seen)


def _freedom(solution: FitSolution, measurements: Measurements) -> float:
    """What squares of residuals fall short of squares of errors by."""
    n = measurements.n_equations
    return n / max(n - float(solution.selection.kept.sum()), 0.1 * n)


def bins_of(fit: KinematicFit, measurements: Measurements) -> dict[str, npt.NDArray[np.intp]]:
    """Ways to part the configurations into bins that share what the model leaves out, as a bin per configuration."""
    groups, first = np.unique(measurements.group, return_index=True)
    order = first[np.searchsorted(groups, measurements.group)].astype(np.float64)
    bins = min(_BINS, len(groups) // _PER_BIN)
    if bins < _FEWEST_BINS:
        return {}
    out = {"recording": _binned(order, bins)}
    for name, q in zip(fit.model.robot.joint_names, measurements.q.T, strict=True):
        if np.ptp(q) > _STILL:
            out[name] = _binned(q, bins)
    return {name: labels for name, labels in out.items() if labels.max() + 1 >= _FEWEST_BINS}


def _binned(values: FloatArray, bins: int) -> npt.NDArray[np.intp]:
    """Bins of about equal counts; of different values where one of them is so common that it would fill several.

    A recording that moves one joint at a time holds every other joint at one value in most rows.
    """
    inner = np.linspace(0.0, 1.0, bins + 1)[1:-1]
    edges = np.quantile(values, inner)
    if len(np.unique(edges)) < len(edges):
        edges = np.quantile(np.unique(values), inner)
    labels = np.searchsorted(edges, values, side="right")
    return np.unique(labels, return_inverse=True)[1].astype(np.intp)
