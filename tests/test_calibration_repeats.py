"""Poses that are visited again, programs that are run twice and slow motions: what is kept aside stands elsewhere."""

import numpy as np
import pytest

from armid.calibration.calibrate import calibrate
from armid.calibration.fit import fit
from armid.calibration.hold_out import cross_validate, folds_of, table_of
from armid.calibration.neighbours import distance_aside
from armid.kinematics.measurement import Measurements, Observations, Observed, joined
from tests.support.calibration_cells import Cell


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def gears(q):
    return 3e-4 * np.sin(3.0 * q + 0.5)


def of(q, **more):
    seen = Observations(quantity=Observed.POSITION, rows=np.arange(len(q)), position=np.zeros((len(q), 3)))
    return Measurements(q=q, observations=(seen,), **more)


def stated_and_true(cell, train, rng, folds=None):
    """Stated held-out mean over that of fresh poses, and how rows were kept aside."""
    found = fit(cell.robot, train)
    how, parts = folds_of(train, np.random.default_rng(0), folds)
    held, _ = cross_validate([found], lambda *_: 0, train, parts, how)
    fresh = cell.measured(500, rng, joints=gears)
    return held.after.position.mean() / table_of(found, found.after.values, fresh).position.mean(), how


def test_a_pose_visited_again_is_the_same_configuration(rng):
    q = rng.uniform(-1.5, 1.5, (12, 6))
    again = np.vstack([q + 1e-4 * rng.normal(size=q.shape) for _ in range(5)])
    np.testing.assert_array_equal(of(again).group, np.tile(np.arange(12), 5))
    assert of(again).n_equations == 180
    assert of(again).n_distinct_equations == 36


@pytest.mark.parametrize("size", [0.02, 0.1, 1.0])
def test_near_rows_are_all_found(rng, size):
    """Against every pair of rows, in crowds where many are near and slices and sorted neighbours are not the same."""
    q = np.vstack([centre + size * rng.normal(size=(40, 3)) for centre in rng.uniform(-1.5, 1.5, (12, 3))])
    apart = np.abs(q[:, np.newaxis] - q[np.newaxis]).max(axis=2)
    leader = np.full(len(q), -1)
    for row in range(len(q)):
        if leader[row] < 0:
            leader[(apart[row] <= 0.02) & (leader < 0)] = row
    np.testing.assert_array_equal(of(q).group, np.unique(leader, return_inverse=True)[1])


def test_equal_rows_and_groups_that_were_given_stay_as_they_were(rng):
    q = rng.uniform(-1.5, 1.5, (5, 6))[[3, 0, 3, 1, 0]]
    np.testing.assert_array_equal(of(q).group, [0, 1, 0, 2, 1])
    np.testing.assert_array_equal(of(q, groups=np.arange(5)).group, np.arange(5))


def test_near_is_measured_by_how_far_the_arm_moves_at_all():
    line = np.linspace(0.0, 1.0, 30)[:, np.newaxis] * np.ones(6)
    assert len(np.unique(of(line).group)) == 30
    assert len(np.unique(of(0.1 * line).group)) == 30


def test_a_slow_motion_is_cut_into_pieces_and_never_becomes_one_configuration():
    line = np.linspace(0.0, 2.0, 2001)[:, np.newaxis] * np.ones(6)
    group = of(line).group
    widths = [np.ptp(line[group == k, 0]) for k in np.unique(group)]
    assert 50 <= len(widths) <= 101
    assert max(widths) <= 0.04 + 1e-12


def test_a_program_that_was_run_on_two_days_is_one_set_of_configurations(rng):
    q = rng.uniform(-1.5, 1.5, (12, 6))
    both = joined([of(q), of(q[::-1] + 1e-4 * rng.normal(size=q.shape))])
    np.testing.assert_array_equal(both.group, [*range(12), *reversed(range(12))])
    named = joined([of(q, groups=np.repeat(np.arange(6), 2)), of(q)])
    np.testing.assert_array_equal(named.group, np.tile(np.repeat(np.arange(6), 2), 2))


def test_the_stated_error_of_poses_visited_again_is_that_of_other_poses():
    """Ten poses, five times each: with rows kept aside one by one a third of the true error was stated."""
    ratios = []
    for seed in range(4):
        cell, rng = Cell.drawn("ur10e", seed=seed, size=0.1), np.random.default_rng(seed)
        q = cell.poses(10, rng)
        q = np.vstack([q + 1e-4 * rng.normal(size=q.shape) for _ in range(5)])
        ratio, how = stated_and_true(cell, cell.measured(50, rng, q=q, joints=gears), rng)
        assert how == "leave-one-out over 10 configurations"
        ratios.append(np.log(ratio))
    assert abs(np.mean(ratios)) < 0.35  # Two deviations of the mean of four that scatter by 0.35, as few poses do.


def path(cell, rng, corners, count):
    from scipy.interpolate import CubicSpline

    return CubicSpline(np.arange(corners), cell.poses(corners, rng))(np.linspace(0.0, corners - 1.0, count))


def test_neighbours_of_a_slow_motion_are_kept_aside_together():
    """Random parts stated two thirds of the error elsewhere; where a path never goes no test of it can look."""
    ratios = []
    for seed in range(3):
        cell, rng = Cell.drawn("ur10e", seed=seed, size=0.1), np.random.default_rng(seed)
        train = cell.measured(150, rng, q=np.clip(path(cell, rng, 12, 150), -1.5, 1.5), joints=gears)
        (blocked, how), (scattered, _) = (stated_and_true(cell, train, rng, folds) for folds in (None, 10))
        assert how == "10-fold over 150 configurations of a motion, neighbours kept aside together"
        ratios.append((blocked, scattered))
    assert np.mean(ratios, axis=0)[1] < 0.75
    assert np.mean(ratios, axis=0)[0] > 0.8


@pytest.mark.parametrize("joints", [4, 6, 7])
@pytest.mark.parametrize("count", [20, 60, 250])
def test_independent_poses_are_no_motion(joints, count, rng):
    q = rng.uniform(-1.5, 1.5, (count, joints))
    assert "motion" not in folds_of(of(q), rng)[0]
    swept = np.zeros((10 * joints, joints))
    for k in range(joints):
        swept[10 * k : 10 * k + 10, k] = np.linspace(-1.5, 1.5, 10)
    assert "motion" not in folds_of(of(swept), rng)[0]


def test_distance_to_what_was_fitted():
    q = np.array([[0.0], [1.0], [2.0], [10.0]])
    aside = np.array([False, True, False, True])
    np.testing.assert_allclose(distance_aside(q, [aside]), np.median([1.0, 8.0]) / q.std())
    assert distance_aside(q, [np.ones(4, dtype=bool)]) == 0.0


def test_repeated_poses_are_few_and_said_to_be(rng):
    cell = Cell.drawn("ur10e", seed=2, size=0.1)
    q = np.repeat(cell.poses(6, rng), 10, axis=0) + 1e-4 * rng.normal(size=(60, 6))
    found = calibrate(cell.robot, cell.measured(60, rng, q=q, joints=gears), terms="offset")
    assert {note.code for note in found.notes} & {"few-equations", "few-configurations"}
    assert "6 configurations" in found.summary()


def test_held_out_rows_at_poses_that_were_fitted_are_told(rng):
    cell = Cell.drawn("ur10e", seed=4, size=0.1)
    q, other = cell.poses(25, rng), cell.poses(25, rng)
    train = cell.measured(25, rng, q=q, joints=gears)
    for held_out, told in ((np.vstack([q[:20] + 1e-4, other[:5]]), True), (other, False)):
        validate = cell.measured(25, rng, q=held_out, joints=gears)
        found = calibrate(cell.robot, train, validate=validate, terms="offset")
        notes = [note.message for note in found.notes if note.code == "repeated-configurations"]
        assert bool(notes) is told
        assert not told or notes[0].startswith("20 of 25 held-out configurations were fitted, too")
