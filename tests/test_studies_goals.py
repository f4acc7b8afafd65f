"""The essential parameters of [Kolyubin2017] table 4 among our base parameters of its model 2."""

from __future__ import annotations

import numpy as np

from armid.identifiability.structure import structural_base
from armid.kernels.evaluate import Restricted, evaluate_rows
from armid.motions.basis import FourierBasis
from armid.motions.fourier import FourierTrajectory
from armid.parameters.effects import PayloadRuns
from armid.robot.load import load_robot
from armid.rows.torque import TorqueRows
from armid.studies.goal_states import admissible, bound_of_every_motion, goal_problem, motion_balance, sampled_states
from armid.studies.goals import ARM, ESSENTIAL, GoalPoint, _both_runs, model_two
from armid.studies.state_bound import best_weights
from armid.studies.stop_and_go import descended, stop_and_go


def test_table_four_names_base_parameters_of_both_runs_together() -> None:
    effects = model_two(PayloadRuns.BOTH)
    base = structural_base(*(TorqueRows(load_robot(ARM), effects, loaded=loaded) for loaded in (False, True)))
    assert len(base) == 102
    assert len(set(ESSENTIAL)) == 44
    assert set(ESSENTIAL) <= set(base.names)


def test_fewer_columns_are_never_worse_conditioned() -> None:
    x = np.random.default_rng(0).uniform(-1.0, 1.0, size=(60, 21))
    A, names = _both_runs(load_robot(ARM), x)
    assert A.shape == (2 * 60 * 14, 102)
    assert np.linalg.cond(A[:, [names.index(name) for name in ESSENTIAL]]) < np.linalg.cond(A)


def test_attained_means_both_goals_within_all_limits() -> None:
    point = GoalPoint(
        asked=30.0,
        essential=True,
        condition_number=146.0,
        together=150.0,
        essentials=29.9,
        reserve=(0.887, 0.886),
        feasible=True,
    )
    assert point.attained
    for change in ({"essentials": 36.0}, {"reserve": (0.91, 0.8)}, {"feasible": False}):
        fields = {name: getattr(point, name) for name in GoalPoint.__dataclass_fields__}
        assert not GoalPoint(**{**fields, **change}).attained


def test_states_of_the_goals_are_admissible_and_bound_every_choice_of_them() -> None:
    """Two rounds of few states: the bound lies below the best weights, and weights beat the states taken alike."""
    problem, base = goal_problem()
    x = sampled_states(problem, 120, np.random.default_rng(0))
    assert admissible(problem, x).all()
    faster = np.array(x)
    faster[:, 7:14] *= 100.0
    assert not admissible(problem, faster).any()
    rows = evaluate_rows(Restricted(problem.rows, tuple(int(i) for i in base.independent)), x)
    found = best_weights(rows)
    assert found.bound <= found.condition_number < np.linalg.cond(rows.reshape(-1, 92))


def test_states_of_a_motion_without_higher_harmonics_are_admissible_at_its_highest_frequency() -> None:
    """Szego's inequality, on a sum of harmonics up to 1 Hz; at a tenth of that frequency most of its states are not."""
    problem, _ = goal_problem()
    rng, limits, t = np.random.default_rng(1), problem.limits, np.linspace(0.0, 10.0, 2001)[:, np.newaxis, np.newaxis]
    a, b = rng.normal(size=(2, 7, 10)) / np.arange(1, 11)
    w = 0.2 * np.pi * np.arange(1, 11)
    c, s = np.cos(w * t), np.sin(w * t)
    parts = ((a * c + b * s).sum(2), (w * (b * c - a * s)).sum(2), (-(w**2) * (a * c + b * s)).sum(2))
    scale = 0.99 * np.minimum(limits.half_range / np.abs(parts[0]).max(0), limits.velocity / np.abs(parts[1]).max(0))
    x = np.hstack([limits.middle + scale * parts[0], scale * parts[1], scale * parts[2]])
    free = admissible(problem, x)
    assert free.any()
    assert (admissible(problem, x, hz=1.0) == free).all()
    assert admissible(problem, x, hz=0.1).sum() < 0.1 * free.sum()
    assert admissible(problem, sampled_states(problem, 30, rng, hz=1.0), hz=1.0).all()


def test_no_motion_within_the_velocity_limits_is_below_what_two_directions_allow() -> None:
    """Gravity on link 2, and friction of the slowest joint where viscous and Coulomb friction can least be told apart."""
    problem, base = goal_problem()
    arm, V = problem.robot, float(problem.limits.velocity.min())
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 21)) * 3.0  # any positions and accelerations, admissible or not
    x[:, 7:14] = problem.limits.velocity * rng.choice([-1.0, 1.0], (400, 7)) * rng.uniform(0.0, 1.0, (400, 7)) ** 0.2
    A = evaluate_rows(Restricted(problem.rows, tuple(int(i) for i in base.independent)), x)

    def columns(*names: str) -> np.ndarray:
        return A[:, :, [base.names.index(name) for name in names]]

    heavy = columns("link2.mx", "link2.my")
    assert np.allclose((heavy**2).sum(axis=(1, 2)), 2.0 * 9.81**2)
    slowest = int(np.argmin(problem.limits.velocity)) + 1
    names = [f"joint{slowest}.{side}{law}" for side in ("", "motor_") for law in ("viscous", "coulomb")]
    golden = (1.0 + 5.0**0.5) / 2.0
    direction = np.kron([1.0, -golden], [2.0, -V])  # least felt of both sides, and of both laws of friction
    light = columns(*names) @ (direction / np.linalg.norm(direction))
    least = (3.0 - 5.0**0.5) / 2.0 * V**2 / (4.0 + V**2)
    assert (light**2).sum(axis=1).max() <= least * (1.0 + 1e-9)
    assert (light**2).sum(axis=1).max() > 0.9 * least
    bound = bound_of_every_motion(arm)
    assert np.isclose(bound, (9.81**2 / least) ** 0.5)
    assert 24.0 < bound < 24.3
    assert np.linalg.cond(A.reshape(-1, 92)) >= bound


def test_starts_that_stop_and_go_keep_limits_and_tell_viscous_from_coulomb_friction_better_than_random_ones() -> None:
    problem, _ = goal_problem()
    limits, basis = problem.limits, FourierBasis(30.0, 90)
    P = basis.matrices(np.linspace(0.0, 30.0, 3000, endpoint=False))

    def apart(coefficients: np.ndarray) -> float:
        """Smallest eigenvalue of viscous and Coulomb friction, mean over the joints."""
        speed = np.abs(P[1] @ coefficients)
        grams = np.array([[[np.mean(v**2), v.mean()], [v.mean(), 1.0]] for v in speed.T])
        return float(np.linalg.eigvalsh(grams)[:, 0].mean())

    starts = [stop_and_go(basis, limits, np.random.default_rng(seed)) for seed in range(5)]
    for start in starts:
        assert (np.abs(P[0] @ start - limits.middle) <= limits.half_range * 1.01).all()
        assert (np.abs(P[1] @ start) <= limits.velocity * 1.01).all()
    random = [basis.random(limits, np.random.default_rng(seed)) for seed in range(5)]
    assert np.mean([apart(start) for start in starts]) > 1.5 * np.mean([apart(start) for start in random])


def test_a_descent_from_such_a_start_is_certified_and_far_better_than_the_start() -> None:
    problem, base = goal_problem()
    basis = FourierBasis(10.0, 8)
    found = descended(problem, basis, 0)
    assert found.feasible
    start = stop_and_go(basis, problem.limits, np.random.default_rng(0))

    def condition(coefficients: np.ndarray) -> float:
        q, qd, qdd, _ = basis.matrices(np.linspace(0.0, 10.0, 800, endpoint=False)) @ coefficients
        source = Restricted(problem.rows, tuple(int(i) for i in base.independent))
        return float(np.linalg.cond(evaluate_rows(source, np.hstack([q, qd, qdd])).reshape(-1, len(base))))

    assert condition(found.coefficients) < 0.5 * condition(start)


def test_what_balances_over_a_motion_has_no_mean_over_a_periodic_one() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 3, 4))
    motion = FourierTrajectory(("a", "b", "c"), 2.0, rng.normal(size=3), a, b)
    q, qd, qdd = motion.sample(np.arange(0.0, 2.0, 1e-3))
    balance = motion_balance(np.hstack([q, qd, qdd]), np.array([0.1, -0.2, 0.3]))
    assert balance.shape[1] == 3 + 9 + 3 + 3 + 3
    assert np.abs(balance.mean(axis=0) / balance.std(axis=0)).max() < 1e-5
