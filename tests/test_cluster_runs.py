"""Sums along one tree, and runs that workers keep: the same passes, without a cluster."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from armid.cluster.tree import WIDTH, groups, is_branch, tree_sum
from armid.cluster.workers import InProcess
from armid.estimation import run_maker as conditioned
from armid.estimation.folds import left_out_logs, left_out_motions
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.reversals import classed_information
from armid.estimation.run import Run, each_run, gathered, information_of
from armid.estimation.runs import Pile, RunsElsewhere, lengths_of, map_runs
from armid.identifiability.base import base_parameters
from armid.information.information import total
from armid.logs.log import Conditions
from armid.robot.load import load_robot
from armid.rows.torque import TorqueRows
from support.elbow import fourier_motion
from support.elbow_logs import FRICTION, ROBOT


def by_levels(parts, plus):
    """Level by level: as a cluster does it."""
    while len(parts) > 1:
        parts = [own[0] if len(own) == 1 else plus(own) for own in groups(parts)]
    return parts[0]


def bracket(parts):
    return f"({''.join(parts)})"


@pytest.mark.parametrize("count", [*range(1, 40), 63, 64, 65, 200, 257])
def test_the_tree_is_that_of_a_cluster_and_groups_are_branches_of_it(count):
    names = [f"{k}," for k in range(count)]
    tree = tree_sum(iter(names), bracket)
    assert tree == by_levels(names, bracket)
    for size in (WIDTH, WIDTH**2):
        piles = [names[k : k + size] for k in range(0, count, size)]
        assert tree_sum([tree_sum(pile, bracket) for pile in piles], bracket) == tree
    assert [k for k in range(70) if is_branch(k)] == [1, 4, 16, 64]


def test_no_more_sums_are_held_than_the_tree_is_deep():
    alive = most = 0

    class Counted:
        def __init__(self):
            nonlocal alive, most
            alive += 1
            most = max(most, alive)

        def __del__(self):
            nonlocal alive
            alive -= 1

    tree_sum((Counted() for _ in range(1024)), lambda parts: Counted())
    assert most <= 5 * WIDTH


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "elbow.yaml"
    path.write_text(ROBOT)
    source = TorqueRows(load_robot(path), FRICTION)
    rng = np.random.default_rng(3)
    made = []
    for k, count in enumerate((300, 150, 400, 90, 210)):
        inputs = fourier_motion(rng, 3, count, 100.0)
        made.append(Run(name=f"log{k}", source=source, inputs=inputs, y=rng.normal(size=(count, 3)), rate=100.0))
    return tuple(made)


class Tree(InProcess):
    """Counts the sums that are formed where the runs are."""

    sums = 0

    def summed(self, *words):
        self.sums += 1
        return super().summed(*words)


def kept(runs, *, together=1):
    """The runs as workers keep them, some to a pile, beside another part that must not matter."""
    piles = [Pile(((), runs[k : k + together])) for k in range(0, len(runs), together)]
    return RunsElsewhere(Tree(), piles, [[len(run) for run in pile.parts[1]] for pile in piles], part=1)


@pytest.mark.parametrize("together", [1, 2, 3, 4])
def test_passes_over_kept_runs_are_those_over_the_runs(runs, together):
    there = kept(runs, together=together)
    assert lengths_of(there) == tuple(map(len, runs))
    assert [run.name for run in there] == [run.name for run in runs]
    assert list(each_run(there, _named, "abcde", range(5))) == list(map(_named, runs, "abcde", range(5)))
    assert gathered(there, _named, "".join, "abcde", range(5)) == "".join(map(_named, runs, "abcde", range(5)))
    assert there[3] is runs[3]
    assert [run.name for run in there[::2]] == ["log0", "log2", "log4"]
    for sums in (information_of, classed_information):
        for mine, theirs in zip(sums(runs).channels, sums(there).channels, strict=True):
            np.testing.assert_array_equal(mine.factor, theirs.factor)
    assert there._workers.sums == (3 if together in (1, 4) else 0)  # others are no branches of the tree
    doubled = map_runs(there, partial(_scaled, by=2.0))
    np.testing.assert_array_equal(doubled[4].y, 2.0 * runs[4].y)
    np.testing.assert_array_equal(there[4].y, runs[4].y)


@pytest.mark.parametrize("together", [1, 2])
def test_folds_of_kept_runs_are_those_of_the_runs(runs, together):
    source = runs[0].source
    rng = np.random.default_rng(5)
    truth = rng.normal(size=len(source.columns))
    measured = tuple(run.with_measured(run.predicted(truth) + 0.1 * rng.normal(size=run.y.shape)) for run in runs)
    information = information_of(measured)
    estimate = WeightedLeastSquares().fit(information, base_parameters(information, what="the torque"))
    for way in (left_out_logs, left_out_motions):
        here, there = way(measured, estimate), way(kept(measured, together=together), estimate)
        assert [fold.name for fold in here.folds] == [run.name for run in runs] == [fold.name for fold in there.folds]
        for k, (one, other) in enumerate(zip(here.folds, there.folds, strict=True)):
            np.testing.assert_array_equal(one.values, other.values)
            rest = information_of([run for i, run in enumerate(measured) if i != k])
            alone = WeightedLeastSquares().fit(rest, estimate.base).values
            np.testing.assert_allclose(one.values, alone, rtol=1e-6, atol=1e-9 * np.abs(alone).max())
    logs = left_out_logs(measured, estimate)
    assert left_out_motions(measured, estimate, logs) is logs


def _named(run, letter, number):
    return f"{run.name}{letter}{number}"


def _scaled(run, by):
    return run.with_measured(by * run.y)


def test_a_sum_along_the_tree_is_the_sum_one_after_the_other(runs):
    parts = [run.information() for run in runs]
    tree, chain = total(parts).gram(), parts[0] + parts[1] + parts[2] + parts[3] + parts[4]
    np.testing.assert_allclose(tree, chain.gram(), rtol=1e-12, atol=1e-12 * np.max(np.abs(tree)))
    assert tree_sum([1, 2, 3], sum) == 6


@pytest.mark.parametrize(
    ("recordings", "workers", "size"), [(1, 1, 1), (15, 1, 1), (16, 1, 4), (200, 2, 16), (200, 4, 4), (5000, 1000, 1)]
)
def test_groups_are_branches_and_every_worker_has_several(recordings, workers, size):
    assert conditioned.group_size(recordings, workers) == size


class Known:
    """As much of a recording as the choice of some looks at."""

    def __init__(self, payload):
        self.conditions = Conditions(payload=payload)


def test_choices_rest_on_a_bounded_number_of_recordings_with_every_payload():
    many = [Known(0.0) for _ in range(400)] + [Known(2.5) for _ in range(3)]
    chosen = conditioned._evenly_chosen(many)
    assert len(chosen) <= conditioned.CHOICE_RECORDINGS + 1
    assert {one.conditions.payload for one in chosen} == {0.0, 2.5}
    assert chosen[0] is many[0]
    assert conditioned._evenly_chosen(many[:32]) == many[:32]


def test_a_robot_that_travels_stays_one():
    import pickle

    robot = load_robot("cylindrical")
    source = TorqueRows(robot, FRICTION)
    again = pickle.loads(pickle.dumps(source))
    assert again.robot is robot
    assert again == source
