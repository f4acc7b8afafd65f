"""What the states that [Kolyubin2017] eq. 24 admits could give at best: a bound on its condition number for any motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.design.excitation import ExcitationProblem
from armid.design.statement import DesignSettings, excitation_problem
from armid.identifiability.base import BaseParameters
from armid.kernels.dynamics import mass_matrix
from armid.kernels.evaluate import Restricted, evaluate_rows
from armid.robot.load import load_robot
from armid.rows.nominal_torque import NominalTorque
from armid.scene.cell import cell_of
from armid.studies.goals import ARM, CELL, HARMONICS, PERIOD, model_two
from armid.studies.state_bound import best_weights, traces

_SLOWER = (1.0, 0.3, 0.03)
"""Shares of the velocity limits at which joints are sampled."""

_CLIMBS = 25
"""Random steps towards a state of smaller ratio."""

_KEPT = 900
"""States of largest weight that stay in the pool, and beside them a third as many new ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFront:
    """One round of the search.

    Args:
        condition_number: of the best weights found on the pool of states.
        pool_bound: below which no weights on the pool go.
        bound: the same over all states the search met; a motion below it has not been excluded by proof, but visits states
            that a search for exactly these did not find.
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


def state_front(*, rounds: int = 8, states: int = 1000, seed: int = 0) -> list[StateFront]:
    """The best weights on a pool of states, round by round with the states added that the bound asks for.

    Args:
        rounds: of the search.
        states: sampled at first.
        seed: of the sampling.
    """
    problem, base = goal_problem()
    source, rng = Restricted(problem.rows, tuple(int(i) for i in base.independent)), np.random.default_rng(seed)
    x = sampled_states(problem, states, rng)
    A, w = evaluate_rows(source, x), np.full(states, 1.0 / states)
    out = []
    for k in range(rounds):
        found = best_weights(A, start=w, steps=80, power=min(8.0 + 4.0 * k, 40.0))
        heavy = np.argsort(-found.weights)[:_KEPT]
        y = np.vstack([x[heavy[: _KEPT // 3]], sampled_states(problem, _KEPT // 6, rng)])
        y, ratio = _climbed(problem, source, y, found.P, found.Q, rng)
        out.append(
            StateFront(condition_number=found.condition_number, pool_bound=found.bound, bound=ratio.min() ** 0.5)
        )
        best = np.argsort(ratio)[: _KEPT // 3]
        x, w = np.vstack([x[heavy], y[best]]), found.weights[heavy]
        A = np.concatenate([A[heavy], evaluate_rows(source, y[best])])
        w = np.concatenate([0.9 * w / w.sum(), np.full(len(best), 0.1 / len(best))])
    return out


def admissible(problem: ExcitationProblem, x: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether states keep the limits of position, velocity, torque and place, shape [n_states]."""
    n, limits = problem.robot.n_joints, problem.limits
    torque = evaluate_rows(NominalTorque(problem.robot), x)[:, :, 0]
    kept = (np.abs(x[:, :n] - limits.middle) <= limits.half_range).all(axis=1)
    kept &= (np.abs(x[:, n : 2 * n]) <= limits.velocity).all(axis=1)
    kept &= (np.abs(torque) <= limits.torque).all(axis=1)
    return np.asarray(kept & (problem.scene.clearances(x[:, :n]).min(axis=1) >= 0.0))


def sampled_states(problem: ExcitationProblem, count: int, rng: np.random.Generator) -> FloatArray:
    """Admissible states, shape [count, 3 n]: accelerations are those that random torques within the limits make."""
    n, limits = problem.robot.n_joints, problem.limits
    out: list[FloatArray] = []
    while sum(map(len, out)) < count:
        shape = (max(2 * count, 300), n)
        q = limits.middle + limits.half_range * rng.uniform(-1.0, 1.0, shape)
        qd = limits.velocity * rng.uniform(-1.0, 1.0, shape) * rng.choice(_SLOWER, shape)
        x = np.hstack([q, qd, np.zeros(shape)])
        still = evaluate_rows(NominalTorque(problem.robot), x)[:, :, 0]
        asked = limits.torque * rng.uniform(-1.0, 1.0, shape) * rng.choice((1.0, 0.3, 0.1), shape)
        asked = np.where(rng.random(shape) < 0.3, still, asked)
        x[:, 2 * n :] = np.linalg.solve(mass_matrix(problem.robot, q), (asked - still)[:, :, np.newaxis])[:, :, 0]
        out.append(x[admissible(problem, x)])
    return np.vstack(out)[:count]


def _climbed(
    problem: ExcitationProblem,
    source: Restricted,
    x: FloatArray,
    P: FloatArray,
    Q: FloatArray,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """States moved towards a smaller tr(G P) / tr(G Q), and these ratios."""
    n, limits = problem.robot.n_joints, problem.limits
    stride = 0.3 * np.concatenate([limits.half_range, limits.velocity, np.full(n, 5.0)])
    x, ratio = np.array(x), _ratio(evaluate_rows(source, x), P, Q)
    for k in range(_CLIMBS):
        trial = x + rng.normal(size=x.shape) * stride * 0.6 ** (k // 8) * (rng.random(x.shape) < 0.3)
        fresh = np.where(admissible(problem, trial), _ratio(evaluate_rows(source, trial), P, Q), np.inf)
        better = fresh < ratio
        x[better], ratio[better] = trial[better], fresh[better]
    return x, ratio


def _ratio(rows: FloatArray, P: FloatArray, Q: FloatArray) -> FloatArray:
    return np.asarray(traces(rows, P) / np.maximum(traces(rows, Q), 1e-300))
