"""An excitation problem, and its value with exact gradient on a grid of instants.

Coefficients -> motion -> rows of the base parameters -> Gram matrix -> criterion, and the same way back: the
criterion's derivative by G gives the cotangent `2 A S`, the compiled adjoint takes it to the motion, the basis to the
coefficients. Constraints enter as an augmented Lagrangian, so that one gradient serves all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.design.analytic import AnalyticBounds
from armid.design.goals import Goals
from armid.design.grid_rows import GridRows
from armid.errors import InputError
from armid.identifiability.smooth import Merit, gram_condition_number
from armid.kernels.evaluate import Restricted
from armid.motions.basis import N_DERIVATIVES, Basis, FourierBasis, anchor_of, search_grid
from armid.motions.limits import MotionLimits
from armid.robot.robot import Robot
from armid.rows.nominal_torque import NominalTorque
from armid.rows.torque import TorqueRows
from armid.scene.scene import Scene

_CLEARANCE_SCALE = 0.1
"""[m or rad] a clearance is divided by, so that its violations weigh like a tenth of a joint's range."""


_GOAL_POWER = 80.0
"""With 57 parameters the smooth condition number is then at most a tenth too large."""

_SIGN_WIDTH = 0.03
"""Fraction of the velocity limit over which sign(qd) is rounded off inside the search. A jump has no slope: without
rounding, line searches run into steps that the gradient did not announce. Reported figures use the true sign."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ExcitationProblem:
    """What is to be excited, and what must be kept.

    Args:
        robot: nominal parameters give the torques; its payload is part of its last link.
        rows: torque rows of what will be estimated.
        columns: independent columns, the base parameters.
        limits: margins already taken off; infinite where a limit does not count.
        scene: clearances to keep.
        quality: what is improved.
        weights: one per channel, 1/sigma of its noise; ones when all joints are equally noisy.
        goals: of several objectives at once; none for the quality alone.
        analytic: whether the sums of amplitudes must keep position and velocity limits too; Fourier series only.
    """

    robot: Robot
    rows: TorqueRows
    columns: tuple[int, ...]
    limits: MotionLimits
    scene: Scene
    quality: Merit = field(default_factory=Merit)
    weights: FloatArray | None = None
    goals: Goals | None = None
    analytic: bool = False

    @property
    def source(self) -> Restricted:
        return Restricted(self.rows, self.columns)

    @property
    def channel_weights(self) -> FloatArray:
        return np.ones(len(self.rows.channels)) if self.weights is None else self.weights

    @property
    def needs_torque(self) -> bool:
        return bool(np.isfinite(self.limits.torque).any()) or self.goals is not None


@dataclass(eq=False)
class Multipliers:
    """Prices of the constraints: usage [5 n, N], clearance [N, m], analytic bounds [2 n]; and the penalty's weight."""

    usage: FloatArray
    clearance: FloatArray
    analytic: FloatArray
    penalty: float


@dataclass(frozen=True, eq=False)
class MotionProbe:
    """One motion looked at closely.

    Args:
        condition_number: on the grid.
        usage: worst ratio to a limit, 1 at the limit.
        clearance: smallest one [m]; infinite when there is none to keep.
        objective: what the search minimises, without prices.
    """

    condition_number: float
    usage: float
    clearance: float
    objective: float

    @property
    def violation(self) -> float:
        """How far the worst constraint is broken, in the units of the search; zero or less when none is."""
        return max(self.usage - 1.0, -self.clearance / _CLEARANCE_SCALE)


class ExcitationGrid:
    """A problem on a grid of instants, with buffers for evaluating it again and again.

    Args:
        problem: what is asked.
        basis: family of motions.
        count: instants, whole blocks of the kernels.
    """

    def __init__(self, problem: ExcitationProblem, basis: Basis, count: int) -> None:
        self.problem, self.basis, self.count = problem, basis, count
        n = problem.robot.n_joints
        self.n, self.size = n, basis.size * n
        # [4, size, N]: transposed once, so that motions come out with one contiguous row per joint.
        self.phi = np.ascontiguousarray(basis.matrices(search_grid(basis.period, count)).transpose(0, 2, 1))
        self.anchor = anchor_of(basis, n)[:, np.newaxis]
        limits = problem.limits
        self.stretch = np.minimum(limits.half_range, 2.0 * np.pi)
        self.scale = np.concatenate(
            [limits.half_range, limits.velocity, limits.acceleration, limits.jerk, limits.torque]
        )[:, np.newaxis]
        self.middle = limits.middle[:, np.newaxis]
        self.rows = GridRows(problem.source, count)
        self.slices, self.columns = self.rows.channel_slices, self.rows.channel_columns
        self.torque = GridRows(NominalTorque(problem.robot), count) if problem.needs_torque else None
        # A joint that carries no mass, such as that of an undescribed flange, has no torque at all and no entry.
        self.felt = [] if self.torque is None else [k for k, c in enumerate(self.torque.channel_columns) if len(c)]
        self.analytic = analytic_bounds(problem, basis)
        self.signs = _coulomb_entries(problem, self.columns)
        self.width = _SIGN_WIDTH * np.where(np.isfinite(limits.velocity), limits.velocity, 1.0)
        self.quality = problem.quality
        self.evaluations = 0

    def sharpen(self, power: float) -> None:
        """Sets how closely the criterion follows its largest and smallest singular value.

        The smooth condition number is up to r^(2/p) too large: harmless when it is only minimised, not when it is
        compared with a goal.
        """
        least = _GOAL_POWER if self.problem.goals is not None else 0.0
        self.quality = replace(self.quality, power=max(power, least))

    def multipliers(self, penalty: float) -> Multipliers:
        """No prices yet."""
        return Multipliers(
            np.zeros((5 * self.n, self.count)),
            np.zeros((self.count, len(self.problem.scene))),
            np.zeros(2 * self.n),
            penalty,
        )

    def coefficients(self, y: FloatArray) -> FloatArray:
        """Basis coefficients of search variables, shape [size, n_joints]: variables are in units of joint ranges."""
        return y.reshape(-1, self.n) * self.stretch

    def variables(self, coefficients: FloatArray) -> FloatArray:
        """The inverse of `coefficients`, flat."""
        return (coefficients / self.stretch).ravel()

    def motion(self, y: FloatArray) -> FloatArray:
        """Positions, velocities, accelerations, jerks, shape [4, n_joints, N]."""
        moved = self.coefficients(y).T @ self.phi
        moved[0] += self.anchor
        return moved

    def usage(self, motion: FloatArray) -> FloatArray:
        """Every limited quantity over its limit, shape [5 n, N]; the torque rows need `torque` evaluated."""
        values = np.concatenate([motion[0] - self.middle, motion[1], motion[2], motion[3], self.torques()])
        return values / self.scale

    def torques(self) -> FloatArray:
        """Torque of the described arm as last evaluated [N m or N], shape [n_joints, N]; zeros where none is asked for."""
        torque = np.zeros((self.n, self.count))
        if self.torque is not None:
            torque[self.felt] = self.torque.entries
        return torque

    def load(self, motion: FloatArray) -> None:
        """Runs the compiled rows and torques on a motion."""
        n = self.n
        for rows in (self.rows, self.torque):
            if rows is not None:
                rows.x[:] = motion[:3].reshape(3 * n, -1)
                rows.evaluate()

    def round_signs(self, motion: FloatArray) -> None:
        """Replaces sign(qd) by tanh(qd / width) in the rows last evaluated."""
        for entry, joint in self.signs:
            np.tanh(motion[1, joint] / self.width[joint], out=self.rows.entries[entry])

    def gram(self) -> FloatArray:
        """A^T A / N of the weighted rows last evaluated, shape [r, r]."""
        r = len(self.problem.columns)
        G = np.zeros((r, r))
        for part, columns, weight in zip(self.slices, self.columns, self.problem.channel_weights, strict=True):
            P = self.rows.entries[part]
            G[columns[:, np.newaxis], columns] += (weight**2 / self.count) * (P @ P.T)
        return G

    def objective(self) -> tuple[float, FloatArray, FloatArray | None]:
        """Value of the rows and torques last evaluated, its derivative by G, and by torque."""
        value, S = self.quality(self.gram())
        if self.problem.goals is None:
            return value, S, None
        return self.problem.goals.combined(value, S, self.torques())

    def evaluate(self, y: FloatArray, prices: Multipliers) -> tuple[float, FloatArray]:
        """Augmented Lagrangian and its gradient."""
        self.evaluations += 1
        motion = self.motion(y)
        self.load(motion)
        self.round_signs(motion)
        value, S, by_torque = self.objective()
        bar = np.zeros_like(motion)
        self._pull_rows(S, bar)
        value += self._pull_usage(motion, prices, by_torque, bar)
        if len(self.problem.scene):
            value += self._pull_clearance(motion[0], prices, bar)
        gradient = np.zeros((self.basis.size, self.n))
        for order in range(N_DERIVATIVES):
            gradient += self.phi[order] @ bar[order].T
        if self.analytic is not None:
            value += self._pull_analytic(self.analytic, y, prices, gradient)
        return value, (gradient * self.stretch).ravel()

    def _pull_rows(self, S: FloatArray, bar: FloatArray) -> None:
        """Adds the criterion's derivative by the motion: the cotangent of the rows is 2 A S."""
        for part, columns, weight in zip(self.slices, self.columns, self.problem.channel_weights, strict=True):
            scaled = (2.0 * weight**2 / self.count) * S[columns[:, np.newaxis], columns]
            np.matmul(scaled, self.rows.entries[part], out=self.rows.bar[part])
        self.rows.pull_back()
        bar[:3] += self.rows.x_bar.reshape(3, self.n, -1)
        for entry, joint in self.signs:
            slope = (1.0 - self.rows.entries[entry] ** 2) / self.width[joint]
            bar[1, joint] += self.rows.bar[entry] * slope

    def _pull_usage(
        self, motion: FloatArray, prices: Multipliers, by_torque: FloatArray | None, bar: FloatArray
    ) -> float:
        """Adds the price of limits: rho/2 (dist(u + lambda/rho, [-1, 1])^2 - (lambda/rho)^2), averaged over instants."""
        rho, n = prices.penalty, self.n
        shifted = self.usage(motion) + prices.usage / rho
        excess = shifted - np.clip(shifted, -1.0, 1.0)
        value = (
            rho
            / 2
            / self.count
            * (float(np.vdot(excess, excess)) - float(np.vdot(prices.usage, prices.usage)) / rho**2)
        )
        slope = (rho / self.count) * excess / self.scale
        bar += slope[: 4 * n].reshape(N_DERIVATIVES, n, -1)
        torque_slope = slope[4 * n :] if by_torque is None else slope[4 * n :] + by_torque
        if self.torque is not None and torque_slope.any():
            self.torque.bar[:] = torque_slope[self.felt]
            self.torque.pull_back()
            bar[:3] += self.torque.x_bar.reshape(3, n, -1)
        return value

    def _pull_clearance(self, q: FloatArray, prices: Multipliers, bar: FloatArray) -> float:
        """Adds the price of clearances below zero."""
        rho, scene = prices.penalty, self.problem.scene
        short = np.maximum(prices.clearance / rho - scene.clearances(q.T, guided=True) / _CLEARANCE_SCALE, 0.0)
        value = (
            rho
            / 2
            / self.count
            * (float(np.vdot(short, short)) - float(np.vdot(prices.clearance, prices.clearance)) / rho**2)
        )
        if short.any():
            bar[0] += scene.gradient(q.T, (-rho / self.count / _CLEARANCE_SCALE) * short, guided=True).T
        return value

    def _pull_analytic(self, bounds: AnalyticBounds, y: FloatArray, prices: Multipliers, gradient: FloatArray) -> float:
        """Adds the price of sums of amplitudes beyond their limits."""
        rho, coefficients = prices.penalty, self.coefficients(y)
        over = np.maximum(bounds.usage(coefficients) - 1.0 + prices.analytic / rho, 0.0)
        gradient += bounds.pull(rho * over, coefficients)
        return rho / 2 * (float(over @ over) - float(prices.analytic @ prices.analytic) / rho**2)

    def raised(self, y: FloatArray, prices: Multipliers, penalty: float) -> Multipliers:
        """Prices after a minimisation: what the penalty paid becomes the multiplier."""
        motion = self.motion(y)
        self.load(motion)
        shifted = self.usage(motion) + prices.usage / prices.penalty
        usage = prices.penalty * (shifted - np.clip(shifted, -1.0, 1.0))
        clearance = prices.clearance
        if len(self.problem.scene):
            values = self.problem.scene.clearances(motion[0].T, guided=True) / _CLEARANCE_SCALE
            clearance = np.maximum(prices.clearance - prices.penalty * values, 0.0)
        analytic = prices.analytic
        if self.analytic is not None:
            over = self.analytic.usage(self.coefficients(y)) - 1.0
            analytic = np.maximum(prices.analytic + prices.penalty * over, 0.0)
        return Multipliers(usage, clearance, analytic, penalty)

    def worst_usage(self, y: FloatArray, motion: FloatArray) -> float:
        """Largest ratio to a limit, analytic bounds included."""
        worst = float(np.abs(self.usage(motion)).max())
        return worst if self.analytic is None else max(worst, float(self.analytic.usage(self.coefficients(y)).max()))

    def probe(self, y: FloatArray) -> MotionProbe:
        """Condition number (unweighted) and worst constraint of a motion on this grid."""
        motion = self.motion(y)
        self.load(motion)
        objective, _, _ = self.objective()
        G = np.zeros((len(self.problem.columns),) * 2)
        for part, columns in zip(self.slices, self.columns, strict=True):
            P = self.rows.entries[part]
            G[columns[:, np.newaxis], columns] += P @ P.T
        clearance = float("inf")
        if len(self.problem.scene):
            clearance = float(self.problem.scene.clearances(motion[0].T).min())
        return MotionProbe(gram_condition_number(G), self.worst_usage(y, motion), clearance, objective)


def analytic_bounds(problem: ExcitationProblem, basis: Basis) -> AnalyticBounds | None:
    """The bounds on sums of amplitudes, when they are asked for."""
    if not problem.analytic:
        return None
    if not isinstance(basis, FourierBasis):
        raise InputError("analytic bounds", f"a {type(basis).__name__}", "they are about Fourier series")
    return AnalyticBounds(basis, problem.limits)


def _coulomb_entries(problem: ExcitationProblem, columns: Sequence[npt.NDArray[np.intp]]) -> list[tuple[int, int]]:
    """Which rows of the packed entries are sign(qd) of a joint, and of which joint."""
    names, space = problem.source.columns, problem.rows.space
    out, first = [], 0
    for seen in columns:
        for place, column in enumerate(seen):
            if names[int(column)].endswith("coulomb"):
                out.append((first + place, space.parameters[problem.columns[int(column)]].body))
        first += len(seen)
    return out
