"""The choice between error models is made inside every training set, from errors with each configuration left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.calibration import calibrate as library
from armid.calibration import fit as fit_module
from armid.calibration.calibrate import calibrate
from armid.calibration.choose import choose, default_candidates
from armid.calibration.fit import fit, refit
from armid.calibration.hold_out import cross_validate, folds_of
from armid.calibration.leave_out import left_out_errors
from armid.calibration.tool_error import by_group
from armid.estimation.left_out import left_out
from armid.kinematics.measurement import Measurements, Observations, Observed
from armid.kinematics.model import ErrorModel
from armid.kinematics.words import Term
from armid.robot.load import load_robot
from armid.studies.replica import Disturbance, optimised_poses, replica
from support.calibration_cells import Cell
from support.measured_arm import MeasuredArm

RICH = frozenset({Term.OFFSET, Term.ECCENTRICITY})


def measured(arm, count):
    q = arm.configurations(count)
    T = arm.noisy(arm.Z @ arm.tool_in_base(q))
    return Measurements(
        q=q,
        observations=(
            Observations(quantity=Observed.POSE, rows=np.arange(count), position=T[:, :3, 3], rotation=T[:, :3, :3]),
        ),
    )


def test_left_out_rows_of_a_linear_problem_are_those_of_fitting_again():
    rng = np.random.default_rng(0)
    A, y, tolerance = rng.normal(size=(40, 6)), rng.normal(size=40), np.array([1.0, 2.0, 0.1, 5.0, 1.0, 0.5])
    group = rng.integers(0, 12, 40)

    def solved(rows):
        return np.linalg.solve(A[rows].T @ A[rows] + np.diag(tolerance**-2), A[rows].T @ y[rows])

    factor = np.linalg.qr(np.vstack([A, np.diag(1.0 / tolerance)]), mode="r")
    found = left_out(A, y - A @ solved(np.arange(40)), group, factor)
    for g in np.unique(group):
        inside = group == g
        np.testing.assert_allclose(found[inside], y[inside] - A[inside] @ solved(~inside), rtol=1e-9, atol=1e-12)


def test_left_out_errors_of_an_arm_are_those_of_leaving_one_out():
    arm = MeasuredArm(load_robot("ur10e"), np.random.default_rng(3))
    measurements = measured(arm, 25)
    found = fit(arm.robot, measurements, ErrorModel())
    quick = left_out_errors(found, measurements).position
    _, splits = folds_of(measurements, np.random.default_rng(0), 25)
    _, (slow,) = cross_validate([found], lambda fits, m: 0, measurements, splits, "each")
    again = np.empty(25)
    again[slow.after.position_rows] = slow.after.position
    assert quick.mean() == pytest.approx(again.mean(), rel=0.05)
    assert np.corrcoef(quick, again)[0, 1] > 0.9


def test_a_refit_does_not_remember_what_it_was_started_from():
    """Parts of a held-out test start from the fit to everything; a fit from nothing predicts the same."""
    arm = MeasuredArm(load_robot("ur10e"), np.random.default_rng(4))
    measurements = measured(arm, 40)
    whole = fit(arm.robot, measurements, ErrorModel())
    kept = np.arange(40) < 30
    warm, cold = refit(whole, measurements.subset(kept)), fit(arm.robot, measurements.subset(kept), ErrorModel())
    a, b = (left_out_errors(f, measurements.subset(kept)).position.mean() for f in (warm, cold))
    assert a == pytest.approx(b, rel=0.02)


@pytest.mark.parametrize(("terms", "expected"), [(frozenset({Term.OFFSET}), 0), (RICH, 1)])
def test_richer_models_are_taken_when_the_arm_has_what_they_describe(terms, expected):
    candidates = default_candidates(load_robot("ur10e"))[0], ErrorModel(terms=RICH)
    for seed in range(3):
        arm = MeasuredArm(load_robot("ur10e"), np.random.default_rng((seed, 7)), terms=terms)
        measurements = measured(arm, 50)
        fits = [fit(arm.robot, measurements, errors) for errors in candidates]
        assert choose(fits, measurements) == expected


def test_held_out_parts_see_neither_fit_nor_choice(monkeypatch):
    """Every choice of the held-out test is made on a training set; the final one on everything."""
    arm = MeasuredArm(load_robot("ur10e"), np.random.default_rng(5), terms=RICH)
    measurements = measured(arm, 40)
    seen = []

    def watched(fits, m):
        seen.append(set(map(bytes, m.q)))
        return choose(fits, m)

    monkeypatch.setattr(library, "choose", watched)
    candidates = default_candidates(arm.robot)[0], ErrorModel(terms=RICH)
    result = calibrate(arm.robot, measurements, candidates=candidates, folds=4)
    assert [len(s) for s in seen] == [40, 30, 30, 30, 30]
    assert set.intersection(*seen[1:]) == set()
    assert result.fit.errors.terms == RICH
    note = next(n for n in result.notes if n.code == "error-models")
    assert "chosen within each training set" in note.message
    assert by_group(*result.held_out.after.main, measurements).mean() < 3e-4


def test_compliance_of_kolyubins_arm_is_found_without_asking():
    """Twice its 17 poses of a sagging arm, nothing told: the richer model wins and the noise is reached."""
    rng = np.random.default_rng(6)
    arm = replica(Disturbance(1e-4, 3e-4), rng=rng)
    poses = np.vstack([optimised_poses(0), optimised_poses(1)])
    result = calibrate(arm.robot, arm.measured(poses, rng), folds=3)
    assert Term.COMPLIANCE in result.fit.errors.terms
    assert result.held_out.after.position.mean() < 0.3e-3 < 1e-3 < result.held_out_geometric.after.position.mean()


def test_a_fit_by_way_of_a_part_ends_where_the_whole_does(monkeypatch):
    cell, rng = Cell.drawn("ur10e", seed=4), np.random.default_rng(4)
    m = cell.measured(400, rng, joints=lambda q: 3e-4 * np.sin(2.0 * q))
    whole = fit(cell.robot, m)
    monkeypatch.setattr(fit_module, "_MANY", 300)
    monkeypatch.setattr(fit_module, "_PART", 50)
    assert len(fit_module.part_to_start_from(m).q) == 50
    quick = fit(cell.robot, m)
    kept = whole.after.selection.kept
    assert quick.after.converged
    np.testing.assert_array_equal(quick.after.selection.kept, kept)
    apart = (quick.after.values - whole.after.values)[kept] / np.sqrt(np.diag(whole.after.covariance))[kept]
    assert np.abs(apart).max() < 0.1  # Weights are settled to one per cent.
    # A sensor that saw little would be missing from the part: everything is fitted at once.
    (o,) = m.observations
    rare = o.take(np.arange(400) >= 397, np.arange(400))
    both = replace(m, observations=(o.take(np.arange(400) < 397, np.arange(400)), replace(rare, setup="rare")))
    assert fit_module.part_to_start_from(both) is both
