"""The passes in the phase plane: admissible accelerations by brute force, start and end speeds, and their limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.planning import phase_plane
from armid.planning.constraints import Constraints, constraints_of, planning_limits
from armid.planning.errors import StuckError
from armid.planning.model import model_of_robot
from armid.planning.path import SplinePath
from armid.planning.reduced import reduced_dynamics
from armid.planning.timing import fastest
from support.planar import planar_arm

WAYPOINTS = np.array([[-0.8, 0.3], [0.2, 1.0], [0.9, 0.2], [0.3, -0.8]])


def problem(kappa: float = 0.0, points: int = 300) -> Constraints:
    robot = planar_arm(torque=(60.0, 20.0), acceleration=60.0)
    model = model_of_robot(robot)
    model = replace(model, covariance=np.diag((0.04 * model.values) ** 2))
    path = SplinePath(robot.joint_names, WAYPOINTS)
    reduced = reduced_dynamics(path, model, np.linspace(0.0, path.length, points))
    return constraints_of(reduced, planning_limits(robot)[0], kappa)


def allowed(at: Constraints, i: int, u: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Whether (u, x) keeps every limit at point i, computed from the definition."""
    ok = np.ones(len(u), dtype=bool)
    z = np.stack([u, x, np.sqrt(x), np.ones_like(x)])
    for k in range(at.table.shape[1]):
        a, b, v, high, low = at.table[i, k]
        doubt = 0.0
        if k < at.variance.shape[1]:
            doubt = at.kappa * np.sqrt(np.einsum("in,ij,jn->n", z, at.variance[i, k], z))
        value = a * u + b * x + v * np.sqrt(x)
        ok &= (value + high + doubt <= at.bounds[k]) & (value + low - doubt >= -at.bounds[k])
    return ok


@pytest.mark.parametrize("kappa", [0.0, 3.0])
def test_admissible_accelerations_by_brute_force(kappa: float) -> None:
    at = problem(kappa)
    theta = at.reduced.theta
    out, work = np.empty(2), np.empty(2)
    tried = np.linspace(-150.0, 150.0, 30001)
    rng = np.random.default_rng(0)
    seen = 0
    for i in rng.integers(0, len(theta) - 1, 40):
        step = theta[i + 1] - theta[i]
        x = rng.uniform(0.0, 0.7) * at.caps[i]
        phase_plane.accelerations(int(i), x, step, at.table, at.bounds, at.kappa**2, at.variance, out, work)
        after = x + 2.0 * step * tried
        ok = allowed(at, int(i), tried, np.full_like(tried, x)) & (after >= 0.0)
        ok[after >= 0.0] &= allowed(at, int(i) + 1, tried[after >= 0.0], after[after >= 0.0])
        if not ok.any():
            assert out[1] - out[0] < 0.05
            continue
        seen += 1
        low = max(out[0], -x / (2.0 * step))
        # The speed at the far end is found by two fixed-point steps.
        assert low == pytest.approx(tried[ok][0], abs=0.03, rel=5e-3)
        assert out[1] == pytest.approx(tried[ok][-1], abs=0.03, rel=5e-3)
    assert seen > 20


def test_doubt_narrows_what_is_admissible() -> None:
    out, work = np.empty(2), np.empty(2)
    widths = []
    for kappa in (0.0, 1.0, 3.0):
        at = problem(kappa)
        phase_plane.accelerations(100, 0.5, 1e-3, at.table, at.bounds, kappa**2, at.variance, out, work)
        widths.append(out[1] - out[0])
    assert widths[0] > widths[1] > widths[2] > 0.0


@pytest.mark.parametrize(("a", "d"), [(2.0, 3.0), (-2.0, 3.0), (0.1, 3.0), (-0.1, 3.0), (0.0, 1.0), (0.5, -1.0)])
def test_one_side_of_a_cone_by_brute_force(a: float, d: float) -> None:
    rng = np.random.default_rng(3)
    u = np.linspace(-50.0, 50.0, 200001)
    for _ in range(20):
        F = rng.normal(size=(2, 2))
        s2, s1, s0 = (F[:, 0] ** 2).sum(), 2.0 * (F[:, 0] * F[:, 1]).sum(), (F[:, 1] ** 2).sum()
        bounds = np.array([-50.0, 50.0])
        phase_plane.one_side(a, d, 0.49, s2, s1, s0, bounds)
        ok = 0.7 * np.sqrt(np.maximum(s2 * u**2 + s1 * u + s0, 0.0)) <= d - a * u
        if not ok.any():
            assert bounds[0] > bounds[1] - 2e-3
        else:
            assert bounds == pytest.approx([u[ok][0], u[ok][-1]], abs=2e-3)


def test_start_and_end_speeds_save_time() -> None:
    at = problem()
    rest, rolling = fastest(at), fastest(at, start_speed=0.5, end_speed=0.7)
    assert rolling.duration < rest.duration
    assert np.sqrt(rolling.x[[0, -1]]) == pytest.approx([0.5, 0.7], rel=1e-6)
    assert (rest.x <= rest.tops * (1.0 + 1e-9)).all()
    with pytest.raises(StuckError, match=r"0\.0 % of the path: a start at 100 is too fast"):
        fastest(at, start_speed=100.0)


def test_duration_shrinks_with_more_torque() -> None:
    at = problem()
    durations = [fastest(replace(at, bounds=at.bounds * factor)).duration for factor in (0.95, 1.0, 1.5, 3.0)]
    assert (np.diff(durations) < 0.0).all()
