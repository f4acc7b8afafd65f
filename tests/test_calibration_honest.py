"""Few poses, correlated residuals, and what no measurement knows: a calibration does not flatter itself."""

from dataclasses import replace

import numpy as np
import pytest

from armid.calibration.calibrate import calibrate
from armid.calibration.fit import fit
from armid.calibration.gauge import settled
from armid.calibration.intervals import spread_of
from armid.calibration.tool_error import error_table
from armid.kernels.kinematics import forward_kinematics
from armid.kinematics.calibrated import predicted_poses
from armid.kinematics.correction import load_correction
from armid.kinematics.measurement import Measurements, Observed
from armid.kinematics.rotations import rigid
from armid.rows.pose_residual import residuals
from tests.support.calibration_cells import Cell


@pytest.mark.parametrize("seed", [0, 1])
def test_eight_poses_do_not_pretend_to_have_no_noise(seed):
    cell, rng = Cell.drawn("ur10e", seed=seed, size=0.1), np.random.default_rng(seed)
    found = fit(cell.robot, cell.measured(8, rng, position=3e-4, orientation=6e-4))
    noise = found.after.noise.model
    assert 1e-4 < noise["sensor", "position"] < 9e-4
    assert 2e-4 < noise["sensor", "orientation"] < 2e-3
    test = cell.measured(200, rng, position=0.0, orientation=0.0)
    errors = [error_table(residuals(found.model, s.values, test)).position.mean() for s in (found.before, found.after)]
    assert errors[1] < errors[0]


def test_position_noise_does_not_collapse_where_orientation_shows_errors():
    """Exact positions beside turned orientations: weights may differ, but not without bound."""
    cell, rng = Cell.drawn("ur10e", seed=5), np.random.default_rng(5)
    found = fit(cell.robot, cell.measured(10, rng, position=1e-9, orientation=2e-3))
    ratio = found.after.noise.model["sensor", "position"] / found.after.noise.model["sensor", "orientation"]
    assert ratio > 0.02


def test_gear_errors_widen_the_intervals_to_what_halves_show():
    cell, rng = Cell.drawn("ur10e", seed=7, size=0.15), np.random.default_rng(7)
    measured = cell.measured(500, rng, joints=lambda q: 6e-4 * np.sin(2.0 * q + 0.5))
    low = measured.q[:, 2] < np.median(measured.q[:, 2])
    parts = []
    for mask in (low, ~low):
        m = measured.subset(mask)
        found = fit(cell.robot, m)
        parts.append((found.after.values, spread_of(found, m), found.after.selection.kept))
    (a, sa, ka), (b, sb, kb) = parts
    arm = fit(cell.robot, measured).model.names
    both = ka & kb & np.array([name.startswith(("link", "joint")) for name in arm])
    z = [
        (a - b)[both] / np.sqrt(np.diag(x) + np.diag(y))[both]
        for x, y in ((sa.plain, sb.plain), (sa.covariance(), sb.covariance()))
    ]
    plain, wide = (float(np.sqrt(np.mean(x**2))) for x in z)
    assert plain > 2.0
    assert wide < 1.5


@pytest.mark.parametrize("seed", [8, 9, 10])
def test_without_model_errors_the_intervals_hardly_widen(seed):
    """Bins of eight joints show variances by chance alone: no parameter is widened by that."""
    cell, rng = Cell.drawn("panda", seed=seed), np.random.default_rng(seed)
    m = cell.measured(150, rng)
    found = fit(cell.robot, m)
    spread = spread_of(found, m)
    kept = found.after.selection.kept
    wider = np.sqrt(np.diag(spread.covariance())[kept] / np.diag(spread.plain)[kept])
    assert wider.min() >= 1.0
    assert np.median(wider) < 1.25
    assert wider.max() < 1.6


def test_joints_moved_one_at_a_time_have_intervals_too():
    """Circle-point recordings hold every other joint at one value: quantiles of it are no bins."""
    cell, rng = Cell.drawn("panda", seed=13, size=0.1), np.random.default_rng(13)
    q = np.tile(cell.poses(1, rng), (7 * 6, 1))
    for k in range(7):
        q[6 * k : 6 * k + 6, k] = np.linspace(-1.5, 1.5, 6)
    m = cell.measured(len(q), rng, q=q)
    found = fit(cell.robot, m)
    spread = spread_of(found, m)
    assert spread.names[1:] == cell.robot.joint_names
    assert min(spread.bins) >= 3
    wider = np.diag(spread.covariance()) >= np.diag(spread.plain)
    assert wider.all()


def test_targets_of_one_configuration_share_its_errors():
    """Three markers on one tool at joints that err say less than three configurations: the intervals know."""
    cell, rng = Cell.drawn("ur10e", seed=12, size=0.1), np.random.default_rng(12)
    q = cell.poses(60, rng)
    error = 3e-4 * rng.normal(size=q.shape)
    seen = [
        cell.measured(60, rng, q=q, joints=lambda q: error, position=1e-5, tool=rigid(np.eye(3), at))
        for at in 0.05 * np.eye(3)
    ]
    observations = tuple(
        replace(m.observations[0], target=f"marker{k}", quantity=Observed.POSITION, rotation=None, sigma=None)
        for k, m in enumerate(seen)
    )
    m = Measurements(q=q, observations=observations)
    found = fit(cell.robot, m)
    spread, kept = spread_of(found, m), found.after.selection.kept
    wider = np.sqrt(np.diag(spread.covariance())[kept] / np.diag(spread.plain)[kept])
    assert np.median(wider) > 1.3


@pytest.mark.parametrize(("arm", "quantity"), [("ur10e", Observed.POSE), ("panda", Observed.POSITION)])
def test_base_and_flange_stay_where_they_are(arm, quantity, tmp_path):
    cell, rng = Cell.drawn(arm, seed=9), np.random.default_rng(9)
    m = cell.measured(60, rng, quantity=quantity)
    free = fit(cell.robot, m)
    fixed = settled(free, m)
    q = cell.poses(100, rng)
    before, after = (error_table(residuals(f.model, f.after.values, m)).main[0] for f in (free, fixed))
    np.testing.assert_allclose(after, before, atol=1e-9)
    nominal = forward_kinematics(cell.robot, q)[:, :3, 3]
    moved = [
        np.linalg.norm(predicted_poses(f.model, f.after.values, q)[:, :3, 3] - nominal, axis=1).mean()
        for f in (free, fixed)
    ]
    assert moved[1] <= moved[0] + 1e-6
    # A common rigid motion of the whole arm is all in the sensor: none is left between the two tips.
    left = (
        predicted_poses(fixed.model, fixed.after.values, m.q)[:, :3, 3] - forward_kinematics(cell.robot, m.q)[:, :3, 3]
    )
    assert np.linalg.norm(left.mean(axis=0)) < 2e-4


def test_the_correction_file_holds_the_settled_base(tmp_path):
    cell, rng = Cell.drawn("ur10e", seed=10), np.random.default_rng(10)
    found = calibrate(cell.robot, cell.measured(40, rng), terms="offset", folds=2)
    found.save(tmp_path)
    model, values = load_correction(tmp_path / "correction.json", cell.robot)
    q = cell.poses(20, rng)
    expected = predicted_poses(found.fit.model, found.fit.after.values, q)
    np.testing.assert_allclose(predicted_poses(model, values, q), expected, atol=1e-9)
    np.testing.assert_allclose(forward_kinematics(found.robot, q), expected, atol=1e-9)
    assert any(p.status == "gauge" for p in found.parameters)


def test_the_tip_is_as_uncertain_as_its_errors():
    cell = Cell.drawn("ur10e", seed=11, size=0.1)
    ratios = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        found = calibrate(cell.robot, cell.measured(30, rng), terms="offset", folds=2)
        truth = settled(fit(cell.robot, cell.measured(200, rng, position=1e-7, orientation=1e-7)), found.measurements)
        q = cell.poses(100, rng)
        away = [predicted_poses(f.model, f.after.values, q)[:, :3, 3] for f in (found.fit, truth)]
        ratios.append(np.sqrt(np.mean(np.sum((away[0] - away[1]) ** 2, axis=1))) / found.tip.mean)
    assert 0.4 < np.mean(ratios) < 1.6
