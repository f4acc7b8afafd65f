"""The fastest motion with bounded jerk: a sequence of quadratic programs over the squared speed.

On an eased path (see `EasedPath`) with e = sigma'^2 the joints' jerk is

    sqrt(e) (Phi' e'' / 2 + 3/2 Phi'' e' + Phi''' e),

so |..| <= limit / sqrt(e). The right-hand side is convex in e: its tangent at the last iterate lies below it, which
gives a linear constraint that can only be too strict. Torques and accelerations are linear in e and e' but for the
square root of viscous friction and the deviation of uncertain parameters, which are linearised there. The duration,
the integral of e^(-1/2), enters with its first two derivatives. Every iterate respects the jerk limits at the points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from armid.arrays import FloatArray
from armid.planning.constraints import Constraints
from armid.planning.time_law import TimeLaw

GROWTH = 2.8
"""Largest factor on e in one iteration; the jerk constraint's tangent ends at 3."""

SHRINK = 0.15
ITERATIONS = 40
CONVERGED = 2e-4
"""Relative gain in duration below which iterating ends."""

NEAR = 0.35
"""Rows using less than this share of their limit at the iterate are left out at first, and brought in when they matter."""


@dataclass(frozen=True, eq=False)
class JerkProblem:
    """Constraints of an eased path at points and between them.

    Args:
        nodes: at equally spaced points of the eased parameter, both ends included, n + 1 points.
        middles: half-way between them, n points.
        jerk: limits [rad/s^3 or m/s^3], shape [n_joints].
        speed_share, jerk_share: of the limits that may be used at the points, shapes [n + 1] and [n + 1, n_joints].
        channel_share: of the limits of torque and acceleration between them, shape [n, n_channels].
    """

    nodes: Constraints
    middles: Constraints
    jerk: FloatArray
    speed_share: FloatArray
    jerk_share: FloatArray
    channel_share: FloatArray

    @property
    def step(self) -> float:
        return 1.0 / (len(self.nodes.caps) - 1)

    def tightened(self, speed: FloatArray, jerk: FloatArray, channels: FloatArray) -> JerkProblem:
        """The same with less of each limit wherever a motion was found to use more than all of it between the points.

        Args:
            speed, jerk, channels: largest usage on each of the n intervals, shapes [n], [n, n_joints], [n, n_channels].
        """
        return replace(
            self,
            speed_share=self.speed_share / excess(at_points(speed)),
            jerk_share=self.jerk_share / excess(at_points(jerk)),
            channel_share=self.channel_share / excess(channels),
        )


def jerk_problem(nodes: Constraints, middles: Constraints, jerk: FloatArray) -> JerkProblem:
    """The problem with all of every limit free to use."""
    n, channels = middles.table.shape[:2]
    return JerkProblem(nodes, middles, jerk, np.ones(n + 1), np.ones((n + 1, len(jerk))), np.ones((n, channels)))


MOST_TIGHTENED = 1.1
"""A usage beyond this is not mended by tightening alone; slowing down takes care of the rest."""


def excess(usage: FloatArray) -> FloatArray:
    return np.clip(usage, 1.0, MOST_TIGHTENED)


def at_points(values: FloatArray) -> FloatArray:
    """The larger of the two intervals that meet at each point, shape [n + 1, ...]."""
    padded = np.concatenate([values[:1], values, values[-1:]])
    return np.maximum(padded[:-1], padded[1:])


def jerk_limited(problem: JerkProblem, start: FloatArray, *, iterations: int = ITERATIONS) -> FloatArray:
    """Squared speeds e at the points, shape [n + 1].

    Args:
        problem: constraints.
        start: squared speeds that respect the limits, shape [n + 1].
        iterations: at most.
    """
    e = np.array(start)
    duration = duration_of(e)
    for _ in range(iterations):
        new = improved(problem, e)
        gain = 1.0 - duration_of(new) / duration
        e, duration = new, duration_of(new)
        if gain < CONVERGED:
            break
    return e


def duration_of(e: FloatArray) -> float:
    """The integral of dsigma / sqrt(e) by the trapezoidal rule [s]."""
    f = 1.0 / np.sqrt(e)
    return float((f.sum() - 0.5 * (f[0] + f[-1])) / (len(e) - 1))


def improved(problem: JerkProblem, e: FloatArray) -> FloatArray:
    """One quadratic program around e, rows added until none that was left out is broken."""
    matrix, bound = linear_rows(problem, e)
    matrix = matrix @ sparse.diags(e)
    usage = (matrix @ np.ones(len(e))) / bound
    chosen = usage > NEAR
    for _ in range(6):
        ratio = solve(problem, e, matrix[chosen], bound[chosen])
        broken = ~chosen & (matrix @ ratio > bound * (1.0 + 1e-9))
        if not broken.any():
            break
        chosen |= broken
    return e * ratio


def solve(problem: JerkProblem, e: FloatArray, matrix: sparse.csr_matrix, bound: FloatArray) -> FloatArray:
    """The factor on e that minimises the duration's second-order model subject to `matrix @ factor <= bound`."""
    import clarabel

    n = len(e)
    weight = np.full(n, problem.step)
    weight[[0, -1]] *= 0.5
    c = weight / np.sqrt(e)
    cost = sparse.diags(0.75 * c, format="csc")
    linear = -0.5 * c - 0.75 * c
    caps = np.minimum(problem.nodes.caps * problem.speed_share**2 / e, GROWTH)
    identity = sparse.identity(n, format="csr")
    # Rows of unit size: the solver's tolerances are then shares of each limit.
    scale = sparse.diags(1.0 / bound)
    A = sparse.vstack([scale @ matrix, sparse.diags(1.0 / caps) @ identity, -identity], format="csc")
    b = np.concatenate([np.ones(len(bound)), np.ones(n), np.full(n, -SHRINK)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = 1e-6
    settings.tol_feas = 1e-8
    solution = clarabel.DefaultSolver(cost, linear, A, b, [clarabel.NonnegativeConeT(len(b))], settings).solve()
    ratio = np.asarray(solution.x)
    # Interior points end a little inside or outside; a failed solve leaves the iterate as it was.
    return np.clip(ratio, SHRINK, caps) if np.isfinite(ratio).all() else np.ones(n)


def linear_rows(problem: JerkProblem, e: FloatArray) -> tuple[sparse.csr_matrix, FloatArray]:
    """Rows with `matrix @ e <= bound`, linearised at e: torques and accelerations half-way, jerks at the points."""
    n, h = len(e), problem.step
    ones = np.ones(n - 1)
    slope = sparse.diags([-0.5 * ones / h, 0.5 * ones / h], [0, 1], shape=(n - 1, n), format="csr")
    mean = sparse.diags([0.5 * ones, 0.5 * ones], [0, 1], shape=(n - 1, n), format="csr")
    blocks, bounds = [], []
    for rows_u, rows_x, bound in channel_rows(problem.middles, problem.channel_share, slope @ e, mean @ e):
        blocks.append(sparse.diags(rows_u) @ slope + sparse.diags(rows_x) @ mean)
        bounds.append(bound)
    for block, bound in jerk_rows(problem, e):
        blocks.append(block)
        bounds.append(bound)
    return sparse.vstack(blocks, format="csr"), np.concatenate(bounds)


def channel_rows(
    at: Constraints, share: FloatArray, u: FloatArray, x: FloatArray
) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
    """For each side of each channel: coefficients of u and x and the bound, linearised at (u, x), each of shape [n]."""
    out = []
    root = np.sqrt(x)
    for k in range(at.table.shape[1]):
        a, b, v, high, low = at.table[:, k].T
        doubt, by_u, by_x = deviation(at, k, u, x)
        for sign, c in ((1.0, high), (-1.0, low)):
            # sqrt(x) is replaced by its tangent root / 2 + x / (2 root).
            rows_u = sign * a + by_u
            rows_x = sign * (b + 0.5 * v / root) + by_x
            constant = sign * (c + 0.5 * v * root) + doubt - by_u * u - by_x * x
            out.append((rows_u, rows_x, at.bounds[k] * share[:, k] - constant))
    return out


def deviation(at: Constraints, k: int, u: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """kappa deviations of channel k's torque and their derivatives by u and x, each of shape [n]."""
    if k >= at.variance.shape[1]:
        zero = np.zeros_like(u)
        return zero, zero, zero
    z = np.stack([u, x, np.sqrt(x), np.ones_like(x)], axis=1)
    Sz = np.einsum("nij,nj->ni", at.variance[:, k], z)
    size = np.sqrt(np.maximum((Sz * z).sum(axis=1), 1e-300))
    return at.kappa * size, at.kappa * Sz[:, 0] / size, at.kappa * (Sz[:, 1] + 0.5 * Sz[:, 2] / np.sqrt(x)) / size


def jerk_rows(problem: JerkProblem, e: FloatArray) -> list[tuple[sparse.csr_matrix, FloatArray]]:
    """For each side of each joint with a jerk limit."""
    n, h = len(e), problem.step
    ones = np.ones(n)
    first = sparse.diags([-0.5 * ones[1:] / h, 0.5 * ones[1:] / h], [-1, 1], shape=(n, n), format="csr")
    second = sparse.diags([ones[1:] / h**2, -2.0 * ones / h**2, ones[1:] / h**2], [-1, 0, 1], shape=(n, n), format="csr")
    _, d1, d2, d3 = problem.nodes.reduced.derivatives
    inverse = 1.0 / np.sqrt(e)
    out = []
    for j in np.flatnonzero(np.isfinite(problem.jerk)):
        # At the ends the first two derivatives of an eased path vanish, and with them the differences that leave the grid.
        row = sparse.diags(0.5 * d1[:, j]) @ second + sparse.diags(1.5 * d2[:, j]) @ first + sparse.diags(d3[:, j])
        limit = problem.jerk[j] * problem.jerk_share[:, j]
        tangent = sparse.diags(0.5 * limit * inverse**3)
        bound = 1.5 * limit * inverse
        out += [((sign * row + tangent).tocsr(), bound) for sign in (1.0, -1.0)]
    return out


def law_of(e: FloatArray) -> TimeLaw:
    """The time law of squared speeds at equally spaced points of an eased path, acceleration linear in time between them.

    Accelerations at the points are means of the constrained ones half-way, so that none is larger. Integrated twice
    they end within the grid's error of the path's end; scaling the parameter takes that away.
    """
    n = len(e) - 1
    h = 1.0 / n
    speed = np.sqrt(e)
    a = 0.5 * np.gradient(e, h, edge_order=2)
    # Corrected trapezoidal rule for the integral of 1 / speed, exact to fourth order.
    slope = -a / speed**3
    dt = 0.5 * h * (1.0 / speed[1:] + 1.0 / speed[:-1]) + h**2 / 12.0 * (slope[:-1] - slope[1:])
    v = speed[0] + np.concatenate([[0.0], np.cumsum(0.5 * dt * (a[1:] + a[:-1]))])
    steps = v[:-1] * dt + dt**2 * (2.0 * a[:-1] + a[1:]) / 6.0
    sigma = np.concatenate([[0.0], np.cumsum(steps)])
    zero = np.zeros(n)
    pieces = np.array([sigma[:-1], v[:-1] * dt, 0.5 * a[:-1] * dt**2, (a[1:] - a[:-1]) * dt**2 / 6.0, zero, zero])
    return TimeLaw(np.concatenate([[0.0], np.cumsum(dt)]), pieces / sigma[-1])
