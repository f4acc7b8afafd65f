"""The fastest motion with bounded jerk: a sequence of quadratic programs over the squared speed.

On an eased path (see `EasedPath`) with e = sigma'^2 the joints' jerk is

    sqrt(e) (Phi' e'' / 2 + 3/2 Phi'' e' + Phi''' e),

so |..| <= limit / sqrt(e). The right-hand side is convex in e: its tangent at the last iterate lies below it, which
gives a linear constraint that can only be too strict. Torques and accelerations are linear in e and e' but for the
square root of viscous friction and the deviation of uncertain parameters, which are linearised there. The duration,
the integral of e^(-1/2), enters with its first two derivatives. e is a cubic B-spline; limits are imposed at sites.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.interpolate import BSpline

from armid.arrays import FloatArray
from armid.planning.constraints import Constraints
from armid.planning.time_law import TimeLaw, through_states

_GROWTH = 2.8
"""Largest factor on e in one iteration; the jerk constraint's tangent ends at 3."""

_SHRINK = 0.15
_ITERATIONS = 40
_CONVERGED = 3e-4
"""Relative gain in duration below which iterating ends."""

FAR, BOLD = 0.01, 0.3
"""While an iteration still gains more than this, the duration's curvature counts only so much: far from the end of the
iteration the tangents of the limits, not the model of the duration, say how far to go."""

_NEAR = 0.35
"""Rows using less than this share of their limit at the iterate are left out, and kept from then on once they matter."""

_ATTEMPTS = 5
"""Solves per iteration: all but the last with few rows, the last with all of them."""

_FINE_INTERVALS = 8
"""Intervals at either end with twice the sites: an eased path changes fast there."""

_MOST_TIGHTENED = 1.1
"""A usage beyond this is not mended by tightening alone; slowing down takes care of the rest."""

_WIDTH = 4
"""Control points that matter at any place of a cubic spline."""

_GAUSS_POINTS = 4


def sites_of(intervals: int) -> FloatArray:
    """Where limits are imposed: ends and middles of all intervals, quarters of those near the ends."""
    h = 1.0 / intervals
    coarse = np.arange(2 * intervals + 1) / 2.0
    fine = np.arange(min(_FINE_INTERVALS, intervals // 2)) + 0.25
    quarters = np.concatenate([fine, fine + 0.5])
    return np.sort(np.concatenate([coarse, quarters, intervals - quarters])) * h


@dataclass(frozen=True, eq=False, kw_only=True)
class JerkProblem:
    """Constraints of an eased path at sites.

    Args:
        intervals: of the spline e(sigma), equally spaced.
        at: constraints at `sites_of(intervals)`.
        jerk: limits [rad/s^3 or m/s^3], shape [n_joints].
        speed_share, jerk_share, channel_share: of the limits that may be used at the sites, shapes [n_sites],
            [n_sites, n_joints], [n_sites, n_channels].
    """

    intervals: int
    at: Constraints
    jerk: FloatArray
    speed_share: FloatArray
    jerk_share: FloatArray
    channel_share: FloatArray

    def tightened(self, speed: FloatArray, jerk: FloatArray, channels: FloatArray) -> JerkProblem:
        """The same with less of each limit around intervals where a motion was found to use more than all of it.

        Args:
            speed, jerk, channels: largest usage on each interval, shapes [n], [n, n_joints], [n, n_channels].
        """
        place = self.at.reduced.theta * self.intervals
        before = np.clip(np.ceil(place).astype(int) - 1, 0, self.intervals - 1)
        after = np.clip(np.floor(place).astype(int), 0, self.intervals - 1)

        def excess(usage: FloatArray) -> FloatArray:
            return np.clip(np.maximum(usage[before], usage[after]), 1.0, _MOST_TIGHTENED)

        return replace(
            self,
            speed_share=self.speed_share / excess(speed),
            jerk_share=self.jerk_share / excess(jerk),
            channel_share=self.channel_share / excess(channels),
        )


def jerk_problem(intervals: int, at: Constraints, jerk: FloatArray) -> JerkProblem:
    """The problem with all of every limit free to use."""
    n = len(at.caps)
    return JerkProblem(
        intervals=intervals,
        at=at,
        jerk=jerk,
        speed_share=np.ones(n),
        jerk_share=np.ones((n, len(jerk))),
        channel_share=np.ones((n, at.table.shape[1])),
    )


def _spline_of(control: FloatArray) -> BSpline:
    """e(sigma) on [0, 1] from its control points, shape [intervals + 3]."""
    intervals = len(control) - 3
    return BSpline((np.arange(intervals + 7) - 3.0) / intervals, control, 3)


def _basis(sigma: FloatArray, intervals: int) -> tuple[npt.NDArray[np.intp], FloatArray]:
    """First control point that matters at each place, and the weights of it and the next three in e, e', e''.

    Returns:
        Shapes [n] and [3, n, 4].
    """
    first = np.clip(np.floor(sigma * intervals).astype(np.intp), 0, intervals - 1)
    s = sigma * intervals - first
    r = 1.0 - s
    value = [r**3, 3 * s**3 - 6 * s**2 + 4, 3 * r**3 - 6 * r**2 + 4, s**3]
    slope = [-3 * r**2, 9 * s**2 - 12 * s, -9 * r**2 + 12 * r, 3 * s**2]
    curve = [6 * r, 18 * s - 12, 18 * r - 12, 6 * s]
    weights = [np.stack(w, axis=1) * intervals**k / 6.0 for k, w in enumerate((value, slope, curve))]
    return first, np.array(weights)


def jerk_limited(problem: JerkProblem, start: FloatArray, *, iterations: int = _ITERATIONS) -> FloatArray:
    """Control points of e, shape [intervals + 3].

    Args:
        problem: constraints.
        start: control points of a motion that respects the limits.
        iterations: at most.
    """
    control = np.array(start)
    duration, gain = _duration_of(control), 1.0
    kept = np.zeros(0, dtype=np.bool_)
    for _ in range(iterations):
        control, kept = _improve(problem, control, kept, BOLD if gain > FAR else 1.0)
        before, duration = duration, _duration_of(control)
        gain = 1.0 - duration / before
        if abs(gain) < _CONVERGED:
            break
    return control


def _duration_of(control: FloatArray) -> float:
    """The integral of dsigma / sqrt(e) [s]."""
    return float(_interval_times(control).sum())


def _interval_times(control: FloatArray) -> FloatArray:
    """Time spent on each interval, shape [intervals]."""
    n = len(control) - 3
    nodes, weights = np.polynomial.legendre.leggauss(_GAUSS_POINTS)
    inside = (np.arange(n)[:, np.newaxis] + 0.5 * (nodes + 1.0)) / n
    return np.asarray(0.5 / n * (weights / np.sqrt(_spline_of(control)(inside))).sum(axis=1))


def _improve(
    problem: JerkProblem, control: FloatArray, kept: npt.NDArray[np.bool_], curved: float
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """One quadratic program around the control points, solved again with rows that were left out and turn out broken.

    Args:
        problem: constraints.
        control: control points.
        kept: rows to include whatever they use, shape [n_rows] or empty.
        curved: share of the duration's curvature that counts.

    Returns:
        New control points, and the rows to keep from now on.
    """
    first, coefficients, bound = _linear_rows(problem, control)
    place = first[:, np.newaxis] + np.arange(_WIDTH)
    coefficients = coefficients * control[place] / bound[:, np.newaxis]
    used = coefficients.sum(axis=1) > _NEAR
    kept = _leading_rows(problem, len(used)) if not len(kept) else kept
    ratio = np.ones(len(control))
    for attempt in range(_ATTEMPTS):
        chosen = used | kept if attempt + 1 < _ATTEMPTS else np.ones_like(used)
        ratio = _solve(control, _banded(first[chosen], coefficients[chosen], len(control)), curved)
        broken = ((coefficients * ratio[place]).sum(axis=1) > 1.0 + 1e-6) & ~chosen
        if not broken.any():
            break
        kept = kept | broken
    return control * ratio, kept


def _leading_rows(problem: JerkProblem, count: int) -> npt.NDArray[np.bool_]:
    """Rows of the joint whose jerk limit bounds e'' most at each site, out of `count` rows in the order of `_linear_rows`."""
    limited = np.flatnonzero(np.isfinite(problem.jerk))
    steepness = np.abs(problem.at.reduced.derivatives[1][:, limited]) / problem.jerk[limited]
    leading = np.argmax(steepness, axis=1) == np.arange(len(limited))[:, np.newaxis]
    rows = np.repeat(leading, 2, axis=0).ravel()
    return np.concatenate([np.zeros(count - len(rows), dtype=np.bool_), rows])


def _banded(first: npt.NDArray[np.intp], values: FloatArray, columns: int) -> sparse.csr_matrix:
    """A sparse matrix whose rows hold four values from a first column on."""
    indices = (first[:, np.newaxis] + np.arange(_WIDTH)).ravel()
    starts = np.arange(len(first) + 1) * _WIDTH
    return sparse.csr_matrix((values.ravel(), indices, starts), shape=(len(first), columns))


def _solve(control: FloatArray, matrix: sparse.csr_matrix, curved: float) -> FloatArray:
    """The factors on the control points that minimise the duration's second-order model with `matrix @ factors <= 1`.

    Args:
        control: control points.
        matrix: rows of limits, in units of each limit.
        curved: share of the model's curvature that counts.
    """
    import clarabel

    m = len(control)
    intervals = m - 3
    sigma = np.linspace(0.0, 1.0, intervals + 1)
    first, weights = _basis(sigma, intervals)
    value = _banded(first, weights[0] * control[first[:, np.newaxis] + np.arange(_WIDTH)], m)
    e = np.asarray(value @ np.ones(m))
    share = np.full(intervals + 1, 1.0 / intervals)
    share[[0, -1]] *= 0.5
    # f(e + d) = e^(-1/2) - d e^(-3/2) / 2 + 3 d^2 e^(-5/2) / 8, with d = value @ (factors - 1).
    gradient, curvature = -0.5 * share * e**-1.5, curved * 0.75 * share * e**-2.5
    cost = sparse.triu(value.T @ sparse.diags(curvature) @ value, format="csc")
    linear = value.T @ (gradient - curvature * e)
    identity = sparse.identity(m, format="csr")
    A = sparse.vstack([matrix, identity / _GROWTH, -identity], format="csc")
    b = np.concatenate([np.ones(matrix.shape[0] + m), np.full(m, -_SHRINK)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = 1e-6
    settings.tol_feas = 1e-8
    solution = clarabel.DefaultSolver(cost, linear, A, b, [clarabel.NonnegativeConeT(len(b))], settings).solve()
    factors = np.asarray(solution.x)
    # A failed solve leaves the iterate as it was; its limits hold.
    return np.clip(factors, _SHRINK, _GROWTH) if np.isfinite(factors).all() else np.ones(m)


def _linear_rows(problem: JerkProblem, control: FloatArray) -> tuple[npt.NDArray[np.intp], FloatArray, FloatArray]:
    """All rows linearised at the control points: first control point, four coefficients, bound; one per limit, side and site."""
    first, weights = _basis(problem.at.reduced.theta, problem.intervals)
    around = control[first[:, np.newaxis] + np.arange(_WIDTH)]
    e, slope = (weights[0] * around).sum(axis=1), (weights[1] * around).sum(axis=1)
    rows = [_speed_rows(problem), *_channel_rows(problem, 0.5 * slope, e), *_jerk_rows(problem, e)]
    terms = np.array([row[:3] for row in rows])
    coefficients = np.einsum("rks,ksw->rsw", terms, weights).reshape(-1, _WIDTH)
    bounds = np.concatenate([row[3] for row in rows])
    return np.tile(first, len(rows)), coefficients, bounds


Row = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Coefficients of e, e', e'' and the bound at every site, each of shape [n_sites]."""


def _speed_rows(problem: JerkProblem) -> Row:
    """Velocity limits."""
    caps = problem.at.caps * problem.speed_share**2
    zero = np.zeros_like(caps)
    # At the very ends an eased path has no slope and any speed will do.
    return np.where(np.isfinite(caps), 1.0, 0.0), zero, zero, np.where(np.isfinite(caps), caps, 1.0)


def _channel_rows(problem: JerkProblem, u: FloatArray, e: FloatArray) -> list[Row]:
    """Both sides of every limited torque and acceleration, linearised at sigma'' = u and sigma'^2 = e."""
    at, zero, root = problem.at, np.zeros_like(e), np.sqrt(e)
    out: list[Row] = []
    for k in range(at.table.shape[1]):
        a, b, v, high, low = at.table[:, k].T
        doubt, by_u, by_e = _deviation(at, k, u, e)
        for sign, c in ((1.0, high), (-1.0, low)):
            # sqrt(e) is replaced by its tangent root / 2 + e / (2 root).
            constant = sign * (c + 0.5 * v * root) + doubt - by_u * u - by_e * e
            bound = at.bounds[k] * problem.channel_share[:, k] - constant
            out.append((sign * (b + 0.5 * v / root) + by_e, 0.5 * (sign * a + by_u), zero, bound))
    return out


def _deviation(at: Constraints, k: int, u: FloatArray, e: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """So many deviations (kappa) of channel k's torque and their derivatives by u and e, each of shape [n_sites]."""
    if k >= at.variance.shape[1]:
        zero = np.zeros_like(u)
        return zero, zero, zero
    root = np.sqrt(e)
    z = np.stack([u, e, root, np.ones_like(e)], axis=1)
    Sz = np.einsum("nij,nj->ni", at.variance[:, k], z)
    size = np.sqrt(np.maximum((Sz * z).sum(axis=1), 1e-300))
    return at.kappa * size, at.kappa * Sz[:, 0] / size, at.kappa * (Sz[:, 1] + 0.5 * Sz[:, 2] / root) / size


def _jerk_rows(problem: JerkProblem, e: FloatArray) -> list[Row]:
    """Both sides of every limited jerk."""
    _, d1, d2, d3 = problem.at.reduced.derivatives
    inverse = 1.0 / np.sqrt(e)
    out: list[Row] = []
    for j in np.flatnonzero(np.isfinite(problem.jerk)):
        limit = problem.jerk[j] * problem.jerk_share[:, j]
        # limit / sqrt(e) is replaced by its tangent limit (3 - e / e0) / (2 sqrt(e0)), which lies below it.
        out += [
            (
                sign * d3[:, j] + 0.5 * limit * inverse**3,
                sign * 1.5 * d2[:, j],
                sign * 0.5 * d1[:, j],
                1.5 * limit * inverse,
            )
            for sign in (1.0, -1.0)
        ]
    return out


def law_of(control: FloatArray) -> TimeLaw:
    """The time law of e(sigma): sigma' = sqrt(e) and sigma'' = e'/2 at the ends of the intervals, quintic between."""
    spline = _spline_of(control)
    sigma = np.linspace(0.0, 1.0, len(control) - 2)
    time = np.concatenate([[0.0], np.cumsum(_interval_times(control))])
    return through_states(time, sigma, np.sqrt(spline(sigma)), 0.5 * spline(sigma, 1))
