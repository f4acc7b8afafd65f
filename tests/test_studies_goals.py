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
    found = best_weights(rows, steps=20, power=8.0)
    assert found.bound <= found.condition_number < np.linalg.cond(rows.reshape(-1, 92))
