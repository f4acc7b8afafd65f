"""What the states that [Kolyubin2017] eq. 24 admits could give at best: a bound on its condition number for any motion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.design.excitation import ExcitationProblem
from armid.design.statement import DesignSettings, excitation_problem, with_payload
from armid.identifiability.base import BaseParameters
from armid.kernels.dynamics import mass_matrix
from armid.kernels.evaluate import Restricted, evaluate_rows
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.rows.nominal_torque import NominalTorque
from armid.scene.cell import cell_of
from armid.studies.goals import ARM, CELL, HARMONICS, PAYLOAD_CENTRE, PAYLOAD_KG, PERIOD, RESERVE, model_two
from armid.studies.state_bound import StateBound, best_weights, ratios, traces

_SLOWER = (1.0, 0.3, 0.03)
"""Shares of the velocity limits at which joints are sampled."""

_CLIMBS = 200
"""Random steps towards a state of smaller ratio."""

_KEPT = 350
"""States of largest weight that stay in the pool: a few more than have any."""

_ADDED = 300
"""States that the search for small ratios adds in a round, from somewhat more attempts."""

_BANK = 1000
"""States whose joints are tried in others."""

_LEAST = 1e-5
"""Weight that every state of the pool starts with: an interior-point method begins inside."""


_GOAL_JOINTS = ("joint6", "joint7")
"""Whose mean reserves are goals: the last ones."""

_ALIKE = (3.0 - 5.0**0.5) / 2.0
"""Smallest eigenvalue of [[2, 1], [1, 1]]: of two columns, one in the torque of one side of the drives, one in both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFront:
    """One round of the search.

    Args:
        condition_number: of the best weights found on the pool of states.
        pool_bound: below which no weights on the pool go.
        bound: the same over all states the search met; a motion below it has not been excluded by proof, but visits states
            that a search for exactly these did not find. NaN with a balance, which no such search bounds.
    """

    condition_number: float
    pool_bound: float
    bound: float


def goal_problem() -> tuple[ExcitationProblem, BaseParameters]:
    """Eq. 24 without its goals: model 2 of the unloaded arm, its limits of position, velocity, torque and place."""
    settings = DesignSettings(
        effects=model_two(),
        periods=(PERIOD,),
        harmonics=HARMONICS,
        margin=0.0,
        limits=frozenset({"position", "velocity", "torque"}),
        self_collision=False,
    )
    cell = cell_of(CELL)
    assert cell is not None
    problem, base, _ = excitation_problem(load_robot(ARM), settings, cell)
    return problem, base


def bound_of_every_motion(robot: Robot) -> float:
    """The condition number over the base parameters of model 2 that no motion within the velocity limits goes below.

    Two directions, whatever the states. Gravity on the first moments mx and my of link 2, behind a vertical and a horizontal
    axis, has 2 g^2 per sample in the torques of both sides together: the largest eigenvalue of the mean Gram matrix is at least
    g^2. Felt by one torque and by both, two columns alike have the Gram matrix [[2, 1], [1, 1]] times their mean square, of
    smallest eigenvalue (3 - sqrt 5) / 2. Viscous and Coulomb friction of a joint of velocity limit V in the direction (2, -V)
    have (2 |qd| - V)^2 / (4 + V^2), at most V^2 / (4 + V^2) for |qd| between 0 and V: the smallest eigenvalue is at most the
    product of both.

    Args:
        robot: whose slowest joint counts.
    """
    g = float(np.linalg.norm(robot.gravity))
    V = float(robot.limit("velocity").min())
    return g * float(np.sqrt((1.0 + 4.0 / V**2) / _ALIKE))


def state_front(
    *, rounds: int = 4, states: int = 700, seed: int = 0, hz: float = np.inf, joined: bool = False
) -> Iterator[StateFront]:
    """The best weights on a pool of states, round by round with the states added that the bound asks for.

    Args:
        rounds: of the search.
        states: sampled at first.
        seed: of the sampling.
        hz: highest frequency of the motions to bound; without it motions of any shape.
        joined: ask of the weights what every periodic motion has (`motion_balance`), and the mean reserves of the goals.
    """
    problem, base = goal_problem()
    rows, rng = _ReversibleRows(problem, base, joined=joined), np.random.default_rng(seed)
    x = sampled_states(problem, states, rng, hz=hz)
    w = np.full(states, 1.0 / states)
    for _ in range(rounds):
        found = rows.best(x, w)
        heavy = np.argsort(-found.weights)[:_KEPT]
        y = np.vstack([x[heavy[: 2 * _ADDED // 3]], sampled_states(problem, _ADDED // 2, rng, hz=hz)])
        y, ratio = _climbed(problem, rows, y, found, rng, hz)
        bound = np.nan if joined else float(ratio.min()) ** 0.5
        yield StateFront(condition_number=found.condition_number, pool_bound=found.bound, bound=bound)
        best = np.argsort(ratio)[:_ADDED]
        kept = found.weights[heavy]
        x = np.vstack([x[heavy], y[best]])
        w = np.concatenate([0.9 * kept / kept.sum() + _LEAST, np.full(len(best), 0.1 / len(best))])


class _ReversibleRows:
    """Rows of states and of the same states run backwards, as twice as many channels.

    Backwards velocities change their sign and so do columns of friction, nothing else; the mean of both Gram matrices has no
    entries between friction and the rest, and its condition number is at most that of either. So the best weights are among
    those that count a state and its reverse alike, and a bound for these holds for all.
    """

    def __init__(self, problem: ExcitationProblem, base: BaseParameters, *, joined: bool = False) -> None:
        self.source = Restricted(problem.rows, tuple(int(i) for i in base.independent))
        self.odd = np.array([name.endswith(("viscous", "coulomb")) for name in base.names])
        self.problem, self.joined = problem, joined
        self.loaded = with_payload(problem.robot, PAYLOAD_KG, PAYLOAD_CENTRE)

    def __call__(self, x: FloatArray) -> FloatArray:
        A = evaluate_rows(self.source, x)
        return np.concatenate([A * self.odd, A * ~self.odd], axis=1)

    def balance(self, x: FloatArray) -> FloatArray:
        """What has no mean over a motion that attains the reserves, shape [n_states, k]; the last two columns at most none."""
        if not self.joined:
            return np.zeros((len(x), 0))
        torque = np.abs(evaluate_rows(NominalTorque(self.loaded), x)[:, -len(_GOAL_JOINTS) :, 0])
        reserve = 1.0 - torque / self.loaded.limit("torque")[-len(_GOAL_JOINTS) :]
        return np.hstack([motion_balance(x, self.problem.limits.middle), reserve - RESERVE])

    def best(self, x: FloatArray, start: FloatArray) -> StateBound:
        """The best weights on states; what is left of a reserve's goal is the weight of a state without rows."""
        if not self.joined:
            return best_weights(self(x), start=start)
        rows, balance, k = self(x), self.balance(x), len(_GOAL_JOINTS)
        left = np.hstack([np.zeros((k, balance.shape[1] - k)), 0.1 * np.eye(k)])
        start = np.concatenate([start, np.full(k, float(start.mean()))])
        found = best_weights(
            np.concatenate([rows, np.zeros((k, *rows.shape[1:]))]), balance=np.vstack([balance, left]), start=start
        )
        return replace(found, weights=found.weights[:-k])

    def price(self, x: FloatArray, found: StateBound) -> FloatArray:
        """Of every state: how little its weight costs, shape [n_states].

        The ratio whose smallest value bounds all weights. With a balance it is below zero for many states and says little:
        instead of it then what a unit of weight adds to the Lagrangian (the reduced cost of a linear program).
        """
        rows = self(x)
        if not self.joined:
            return ratios(rows, found.P, found.Q)
        cost = traces(rows, found.P) + self.balance(x) @ found.y
        return np.asarray(cost - found.condition_number**2 * traces(rows, found.Q))


def motion_balance(x: FloatArray, middle: FloatArray) -> FloatArray:
    """Rates of change of functions of (q, qd), which have no mean over any periodic motion, shape [n_states, k].

    Of qd_j, q_i qd_j, q_j^2 qd_j, qd_j |qd_j|, qd_j^3. Functions even in qd have rates that run backwards cancel anyway.

    Args:
        x: states, shape [n_states, 3 n].
        middle: positions to count q from, shape [n].
    """
    q, qd, qdd = np.split(x, 3, axis=1)
    q = q - middle
    pairs = qd[:, :, np.newaxis] * qd[:, np.newaxis, :] + q[:, :, np.newaxis] * qdd[:, np.newaxis, :]
    square = 2.0 * q * qd**2 + q**2 * qdd
    return np.hstack([qdd, pairs.reshape(len(x), -1), square, np.abs(qd) * qdd, qd**2 * qdd])


def admissible(problem: ExcitationProblem, x: FloatArray, *, hz: float = np.inf) -> npt.NDArray[np.bool_]:
    """Whether states keep the limits of position, velocity, torque and place, shape [n_states].

    A sum of harmonics up to the angular frequency W that keeps |f| <= c has f'^2 + W^2 f^2 <= W^2 c^2 everywhere (Szego's form of
    Bernstein's inequality). With a highest frequency that is asked of positions and of velocities.
    """
    n, limits = problem.robot.n_joints, problem.limits
    torque = evaluate_rows(NominalTorque(problem.robot), x)[:, :, 0]
    kept = (np.abs(x[:, :n] - limits.middle) <= limits.half_range).all(axis=1)
    kept &= (np.abs(x[:, n : 2 * n]) <= limits.velocity).all(axis=1)
    kept &= (np.abs(torque) <= limits.torque).all(axis=1)
    if np.isfinite(hz):
        W = 2.0 * np.pi * hz
        kept &= ((x[:, n : 2 * n] / W) ** 2 + (x[:, :n] - limits.middle) ** 2 <= limits.half_range**2).all(axis=1)
        kept &= ((x[:, 2 * n :] / W) ** 2 + x[:, n : 2 * n] ** 2 <= limits.velocity**2).all(axis=1)
    return np.asarray(kept & (problem.scene.clearances(x[:, :n]).min(axis=1) >= 0.0))


def sampled_states(
    problem: ExcitationProblem, count: int, rng: np.random.Generator, *, hz: float = np.inf
) -> FloatArray:
    """Admissible states, shape [count, 3 n]: accelerations of random torques, or those that a highest frequency allows."""
    out: list[FloatArray] = []
    while sum(map(len, out)) < count:
        size = max(2 * count, 300)
        x = _driven_states(problem, size, rng) if np.isinf(hz) else _slow_states(problem, size, rng, hz)
        out.append(x[admissible(problem, x, hz=hz)])
    return np.vstack(out)[:count]


def _driven_states(problem: ExcitationProblem, count: int, rng: np.random.Generator) -> FloatArray:
    """States that random torques make."""
    n, limits = problem.robot.n_joints, problem.limits
    shape = (count, n)
    q = limits.middle + limits.half_range * rng.uniform(-1.0, 1.0, shape)
    qd = limits.velocity * rng.uniform(-1.0, 1.0, shape) * rng.choice(_SLOWER, shape)
    x = np.hstack([q, qd, np.zeros(shape)])
    still = evaluate_rows(NominalTorque(problem.robot), x)[:, :, 0]
    asked = limits.torque * rng.uniform(-1.0, 1.0, shape) * rng.choice((1.0, 0.3, 0.1), shape)
    asked = np.where(rng.random(shape) < 0.3, still, asked)
    x[:, 2 * n :] = np.linalg.solve(mass_matrix(problem.robot, q), (asked - still)[:, :, np.newaxis])[:, :, 0]
    return x


def _slow_states(problem: ExcitationProblem, count: int, rng: np.random.Generator, hz: float) -> FloatArray:
    """States of joints that no harmonic above a frequency moves."""
    limits, W = problem.limits, 2.0 * np.pi * hz
    shape = (count, problem.robot.n_joints)
    q = limits.half_range * rng.uniform(-1.0, 1.0, shape)
    top = np.minimum(limits.velocity, W * np.sqrt(limits.half_range**2 - q**2))
    qd = top * rng.uniform(-1.0, 1.0, shape) * rng.choice((1.0, 0.3), shape)
    most = W * np.sqrt(limits.velocity**2 - qd**2)
    qdd = most * rng.uniform(-1.0, 1.0, shape) * rng.choice((1.0, 0.3, 0.1), shape)
    return np.hstack([limits.middle + q, qd, qdd])


def _climbed(
    problem: ExcitationProblem,
    rows: _ReversibleRows,
    x: FloatArray,
    found: StateBound,
    rng: np.random.Generator,
    hz: float,
) -> tuple[FloatArray, FloatArray]:
    """States moved towards a smaller price, and these prices: small steps, and exchanges of one joint."""
    n, limits = problem.robot.n_joints, problem.limits
    fast = 5.0 if np.isinf(hz) else np.pi * hz * limits.velocity
    stride = 0.3 * np.concatenate([limits.half_range, limits.velocity, np.broadcast_to(fast, n)])
    x, size, bank = np.array(x), np.ones(len(x)), sampled_states(problem, _BANK, rng, hz=hz)
    ratio = rows.price(x, found)
    for k in range(_CLIMBS):
        if k % 2:
            trial = _exchanged(x, bank[rng.integers(0, len(bank), len(x))], rng)
        else:
            few = rng.random(x.shape) < rng.choice((0.05, 0.15, 0.4))
            trial = x + rng.normal(size=x.shape) * stride * size[:, np.newaxis] * few
        fresh = np.full(len(x), np.inf)
        kept = admissible(problem, trial, hz=hz)
        if kept.any():
            fresh[kept] = rows.price(trial[kept], found)
        better = fresh < ratio
        x[better], ratio[better] = trial[better], fresh[better]
        size = np.clip(np.where(better, 1.5 * size, 0.95 * size), 0.01, 1.0)
    return x, ratio


def _exchanged(x: FloatArray, others: FloatArray, rng: np.random.Generator) -> FloatArray:
    """One joint of every state moves as it does in another state."""
    n = x.shape[1] // 3
    out, joint, every = np.array(x), rng.integers(0, n, len(x)), np.arange(len(x))
    for k in range(3):
        out[every, k * n + joint] = others[every, k * n + joint]
    return out
