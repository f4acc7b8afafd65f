"""The essential parameters of [Kolyubin2017] table 4 among our base parameters of its model 2."""

from __future__ import annotations

import numpy as np

from armid.identifiability.structure import structural_base
from armid.kernels.evaluate import Restricted, evaluate_rows
from armid.parameters.effects import PayloadRuns
from armid.robot.load import load_robot
from armid.rows.torque import TorqueRows
from armid.studies.goal_states import admissible, goal_problem, sampled_states
from armid.studies.goals import ARM, ESSENTIAL, GoalPoint, _both_runs, model_two
from armid.studies.state_bound import best_weights


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


def test_no_motion_whatever_has_a_condition_number_below_fifteen() -> None:
    """Gravity on link 2 and the offsets of one joint alone: two numbers that no motion changes."""
    problem, base = goal_problem()
    x = np.random.default_rng(0).normal(size=(40, 21)) * 3.0  # any states, admissible or not
    A = evaluate_rows(Restricted(problem.rows, tuple(int(i) for i in base.independent)), x)
    heavy = A[:, :, [base.names.index("link2.mx"), base.names.index("link2.my")]]
    assert np.allclose((heavy**2).sum(axis=(1, 2)), 2.0 * 9.81**2)
    light = A[:, :, [base.names.index("joint1.offset"), base.names.index("joint1.motor_offset")]]
    assert np.allclose(np.einsum("nci,ncj->nij", light, light), [[2.0, 1.0], [1.0, 1.0]])
    least = 9.81**2 / ((3.0 - 5.0**0.5) / 2.0)
    assert round(least**0.5, 1) == 15.9
    assert np.linalg.cond(A.reshape(-1, 92)) >= least**0.5
