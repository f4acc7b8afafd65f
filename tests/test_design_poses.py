"""Pose design: [RWTH2021]'s algorithms against printed matrices and a naive copy, exchange against brute force, travel."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from math import prod

import numpy as np
import pytest

from armid.design.approach import NoTransitionError, edge_is_free, safe_transition, safe_waypoints
from armid.design.certificate import certify
from armid.design.pose_pool import Spread, free_poses, generate_poses, grid_values, reference_pose
from armid.design.pose_refine import refined_poses, set_value
from armid.design.pose_selection import Pool, exchange, multi_start_exchange, tabu_search
from armid.design.poses import PoseMethod, PoseSettings, Purpose, design_poses
from armid.design.target_matrix import rated_selection, safe_condition, target_matrix, undominated
from armid.design.travel import route, travel_order, travel_times
from armid.errors import InputError
from armid.identifiability.smooth import Merit, SmoothCriterion
from armid.identifiability.structure import structural_base
from armid.kernels.evaluate import Restricted, evaluate_rows
from armid.motions.limits import InfeasibleError, motion_limits
from armid.robot.load import load_robot
from armid.rows.gravity import GravityRows
from armid.scene.cell import parse_cell
from armid.scene.scene import build_scene

WALL = "format: armid-cell/1\nobstacles: [{name: wall, box: {size: [0.05, 1.0, 0.9]}, xyz: [0.45, 0, 0.55]}]"


@pytest.mark.parametrize("spread", [Spread.UNIFORM, Spread.WEIGHTED])
@pytest.mark.parametrize(("total", "varying"), [(50_000, 5), (20_000, 7), (10_000, 1), (100, 12)])
def test_a_grid_has_as_many_poses_as_asked_for_at_most(spread, total, varying):
    steps = grid_values(spread, total, varying)
    assert min(steps) >= 2
    assert prod(steps) <= max(total, 2**varying)
    assert list(steps) == sorted(steps, reverse=True)
    assert spread is Spread.WEIGHTED or len(set(steps)) == 1


def test_a_grid_beyond_counting_is_refused():
    """50,000 values of five joints: more combinations than a machine word counts."""
    limits = motion_limits(load_robot("mabi-max100"))[0]
    with pytest.raises(InputError, match="combinations"):
        generate_poses(limits.middle, limits, Spread.UNIFORM, 50_000, fixed=1)


def test_ideal_targets_of_axis_five():
    """Condition numbers 3.7321 and 1.5811 of eqs. 27 and 28, and the target of eq. 29 from the true extrema."""
    square = np.array([[1, 0, 1], [0, 1, 1], [0, 0, 1]], dtype=float)
    both = np.array([[1, 0, 1], [-1, 0, 1], [0, 1, 1], [0, -1, 1], [0, 0, 1]], dtype=float)
    assert safe_condition(square) == pytest.approx(3.7321, abs=5e-5)
    assert safe_condition(both) == pytest.approx(1.5811, abs=5e-5)
    q6 = np.radians(np.linspace(-181, 181, 3621))
    values = np.column_stack([np.cos(q6) * np.sin(q6), np.cos(q6) ** 2, np.ones_like(q6)])
    expected = np.array([[0.5, 0, 1], [-0.5, 0, 1], [0, 1, 1], [0, 0, 1]])
    np.testing.assert_allclose(target_matrix(values), expected, atol=1e-6)
    # A coarse pool misses the extrema; rounding to one decimal, as the work does, restores eq. 29 and its 2.934.
    coarse = values[::170]
    assert safe_condition(target_matrix(coarse)) != pytest.approx(2.934, abs=5e-4)
    np.testing.assert_allclose(target_matrix(coarse, decimals=1), expected, atol=1e-12)
    assert safe_condition(expected) == pytest.approx(2.934, abs=5e-4)


def naive_rating(values: np.ndarray, target: np.ndarray, penalties: int) -> tuple[float, np.ndarray]:
    """Algorithm 5.3 line by line."""
    best = (np.inf, None)
    for penalty in np.linspace(0, 1, penalties):
        chosen = []
        for row in target:
            A = values @ row - row.sum()
            B = np.linalg.norm(values - row, axis=1)
            chosen.append(int(np.argmax(A - penalty * B)))
        condition = safe_condition(values[chosen])
        if condition < best[0]:
            best = (condition, np.array(chosen))
    return best


@pytest.mark.parametrize("seed", range(4))
def test_rating_equals_the_algorithm_as_printed(seed):
    rng = np.random.default_rng(seed)
    q = rng.uniform(-2, 2, size=(400, 2))
    values = np.column_stack([np.sin(q[:, 0]), np.cos(q[:, 1]) ** 2, np.sin(q[:, 0] + q[:, 1]), np.ones(400)])
    target = target_matrix(values)
    condition, chosen = naive_rating(values, target, 41)
    ours = rated_selection(values, target, 41)
    assert ours.condition_number == pytest.approx(condition)
    np.testing.assert_allclose(values[ours.chosen], values[chosen])


def test_undominated_keeps_every_maximiser():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=300), rng.uniform(0, 2, size=300)
    front = set(undominated(A, B).tolist())
    for penalty in np.linspace(0, 1, 50):
        assert int(np.argmax(A - penalty * B)) in front


def test_generated_poses_vary_only_the_joints_that_matter():
    limits = motion_limits(load_robot("mabi-max100"))[0]
    reference = limits.middle + 0.1
    rng = np.random.default_rng(0)
    random = generate_poses(reference, limits, Spread.RANDOM, 500, fixed=3, rng=rng)
    assert random.shape == (500, 6)
    assert (random[:, :3] == reference[:3]).all()
    assert (np.ptp(random[:, 3:], axis=0) > 0.9 * np.ptp([limits.lower, limits.upper], axis=0)[3:]).all()
    uniform = generate_poses(reference, limits, Spread.UNIFORM, 5, fixed=4)
    assert uniform.shape == (25, 6)
    weighted = generate_poses(reference, limits, Spread.WEIGHTED, (3, 7), fixed=4)
    assert weighted.shape == (21, 6)
    assert len(np.unique(weighted[:, 5])) == 7
    np.testing.assert_allclose(np.unique(uniform[:, 4]), np.linspace(limits.lower[4], limits.upper[4], 5))
    assert generate_poses(reference, limits, Spread.RANDOM, 9, fixed=6, rng=rng).shape == (1, 6)


@pytest.mark.parametrize(
    ("count", "message"), [((3,), "one for each of 2"), ((0, 4), "combinations"), ((10**4, 10**4), "at most")]
)
def test_bad_pools_are_named(count, message):
    limits = motion_limits(load_robot("mabi-max100"))[0]
    with pytest.raises(InputError, match=message):
        generate_poses(limits.middle, limits, Spread.WEIGHTED, count, fixed=4)


def test_filter_keeps_exactly_the_free_poses():
    robot = load_robot("iiwa14")
    scene = build_scene(robot, parse_cell(WALL))
    q = np.random.default_rng(1).uniform(-2, 2, size=(9000, 7))
    free = free_poses(scene, q)
    np.testing.assert_array_equal(free, q[(scene.clearances(q) >= 0).all(axis=1)])
    assert 0 < len(free) < len(q)


def test_reference_pose_is_free_or_the_reason_is_named():
    robot = load_robot("iiwa14")
    limits = motion_limits(robot)[0]
    scene = build_scene(robot, parse_cell(WALL))
    assert scene.is_free(reference_pose(scene, limits, 3, np.random.default_rng(0)))[0]
    buried = build_scene(robot, parse_cell("{format: armid-cell/1, floor: 3.0}"))
    with pytest.raises(InfeasibleError, match="and the floor misses"):
        reference_pose(buried, limits, 3, np.random.default_rng(0))


def small_pool(rng: np.random.Generator, count: int = 4) -> Pool:
    blocks = rng.normal(size=(12, 2, 5)) * np.geomspace(1, 8, 5)
    return Pool(blocks, np.zeros(12, dtype=np.intp), (count,))


@pytest.mark.parametrize("seed", range(4))
def test_exchange_finds_the_best_of_all_choices(seed):
    rng = np.random.default_rng(seed)
    pool = small_pool(rng)
    quality = Merit(SmoothCriterion.CONDITION, 30.0)
    everything = [quality(pool.gram(np.array(c)))[0] for c in combinations(range(12), 4)]
    _, value = multi_start_exchange(pool, quality, starts=10, rng=rng)
    # Repeating a pose is allowed, so the exchange may do better than any choice of distinct ones.
    assert value <= min(everything) + 0.05
    start = pool.random(rng)
    before = quality(pool.gram(start))[0]
    assert exchange(pool, start, quality)[1] <= before
    assert tabu_search(pool, start, quality, iterations=60, tenure=4, rng=rng)[1] <= before


def test_quotas_of_groups_are_kept():
    rng = np.random.default_rng(5)
    pool = Pool(rng.normal(size=(60, 1, 6)), np.repeat([0, 1, 2], 20).astype(np.intp), (4, 3, 5))
    chosen, _ = multi_start_exchange(pool, Merit(SmoothCriterion.CONDITION, 20.0), starts=2, rng=rng)
    assert np.bincount(pool.groups[chosen]).tolist() == [4, 3, 5]


def test_refinement_has_the_right_gradient_never_worsens_and_stays_free():
    robot = load_robot("iiwa14")
    source = GravityRows(robot)
    rows = Restricted(source, tuple(int(i) for i in structural_base(source).independent))
    limits = motion_limits(robot)[0]
    scene = build_scene(robot, parse_cell(WALL))
    rng = np.random.default_rng(6)
    poses = free_poses(scene, rng.uniform(limits.lower, limits.upper, size=(200, 7)))[:8]
    channels = np.ones((8, 7))
    quality = Merit(SmoothCriterion.CONDITION, 8.0)
    value, gradient = set_value(rows, poses, channels, quality)
    d, h = rng.normal(size=poses.shape), 1e-6
    numeric = (
        set_value(rows, poses + h * d, channels, quality)[0] - set_value(rows, poses - h * d, channels, quality)[0]
    ) / (2 * h)
    assert numeric == pytest.approx(float((gradient * d).sum()), rel=1e-5)
    movable = np.ones_like(poses)
    movable[:, 0] = 0.0
    better = refined_poses(rows, poses, channels, quality, limits, scene, movable=movable)
    assert set_value(rows, better, channels, quality)[0] < value
    assert scene.is_free(better).all()
    np.testing.assert_array_equal(better[:, 0], poses[:, 0])
    assert ((better >= limits.lower) & (better <= limits.upper)).all()


@pytest.fixture(scope="module")
def mabi():
    from armid.scene.cell import cell_of as named_cell

    settings = PoseSettings(pool=(3000, 2500, 2000, 1500, 800), starts=1, tabu_steps=100, transitions=False)
    return design_poses(
        load_robot("mabi-max100"), Purpose.AXIS_INERTIA, settings, cell=named_cell("mabi-max100"), seed=3
    )


def test_axis_inertia_poses_of_the_mabi_arm(mabi):
    """32 base parameters, 27 19 17 7 3 1 per axis; the exchange at least halves the condition number of its algorithm."""
    assert len(mabi.base) == 32
    assert [axis.base_parameters for axis in mabi.axes] == [27, 19, 17, 7, 3, 1]
    for axis in mabi.axes:
        assert axis.condition <= axis.initial_condition * 1.0001 or axis.base_parameters == 1
        assert 0 < axis.free <= axis.generated
    assert mabi.methods["target matrix"] < mabi.initial_condition_number
    assert mabi.methods["exchange"] < 0.5 * mabi.methods["target matrix"]
    assert mabi.methods["refined"] <= mabi.methods["exchange"]
    assert mabi.condition_number == pytest.approx(min(mabi.methods.values()))


def test_rows_of_axis_inertia_poses_give_the_reported_condition(mabi):
    from armid.rows.axis_inertia import AxisInertiaRows

    A = evaluate_rows(AxisInertiaRows(mabi.robot), mabi.poses)[:, :, mabi.base.independent]
    assert (mabi.channels.sum(axis=1) == 1).all()
    rows = A[mabi.channels]
    assert np.linalg.cond(rows) == pytest.approx(mabi.condition_number)
    s = np.linalg.svd(rows, compute_uv=False)
    assert mabi.observability["O2"] == pytest.approx(s[-1] / s[0])
    assert mabi.observability["O3"] == pytest.approx(s[-1])


def test_calibration_poses_keep_visibility_and_distance():
    """17 poses for the LWR4+ within table 1 of [Kolyubin2017]."""
    from armid.kernels.kinematics import forward_kinematics
    from armid.scene.cell import cell_of as named_cell

    robot = load_robot("lwr4plus")
    settings = PoseSettings(frame="led_fixture", pool=(4000,), starts=1, tabu_steps=100)
    found = design_poses(robot, Purpose.CALIBRATION, settings, cell=named_cell("lwr4plus-tracker"), seed=1)
    assert found.poses.shape == (17, 7)
    assert found.condition_number < 0.6 * found.initial_condition_number
    assert set(found.methods) == {"exchange", "tabu", "multi-start", "refined"}
    T = forward_kinematics(robot, found.poses, "led_fixture")
    assert (np.hypot(T[:, 0, 3], T[:, 1, 3]) >= 0.2 - 1e-9).all()
    assert (T[:, 2, 3] >= -0.1 - 1e-9).all()
    pitch = np.arctan2(-T[:, 2, 0], np.hypot(T[:, 2, 1], T[:, 2, 2]))
    roll = np.arctan2(T[:, 2, 1], T[:, 2, 2])
    assert (np.abs(pitch) <= np.pi / 4 + 1e-9).all()
    assert ((roll >= np.radians(-80) - 1e-9) & (roll <= np.radians(70) + 1e-9)).all()
    assert found.transitions is not None
    np.testing.assert_allclose(found.transitions.waypoints[list(found.stops)], found.poses)


@pytest.mark.parametrize("method", [PoseMethod.EXCHANGE, PoseMethod.TABU, PoseMethod.MULTI_START])
def test_gravity_poses_by_every_method(method):
    settings = PoseSettings(method=method, pool=(1500,), starts=1, tabu_steps=100, count=12, transitions=False)
    found = design_poses(load_robot("panda"), Purpose.GRAVITY, settings, seed=2)
    assert len(found.poses) == 12
    assert found.condition_number < found.initial_condition_number
    again = design_poses(load_robot("panda"), Purpose.GRAVITY, settings, seed=2)
    np.testing.assert_array_equal(found.poses, again.poses)


def test_bad_requests_are_named():
    with pytest.raises(InputError, match="need at least"):
        design_poses(load_robot("lwr4plus"), Purpose.CALIBRATION, PoseSettings(count=3))
    with pytest.raises(InputError, match="axis inertias"):
        design_poses(
            load_robot("panda"), Purpose.GRAVITY, PoseSettings(method=PoseMethod.TARGET, pool=(200,), count=12)
        )
    with pytest.raises(
        InfeasibleError, match=r"only 0 of 300 poses are free, 12 are needed; most often broken: .* the floor"
    ):
        design_poses(
            load_robot("panda"),
            Purpose.GRAVITY,
            PoseSettings(pool=(300,), count=12),
            cell=parse_cell("{format: armid-cell/1, floor: 3}"),
        )


def test_travel_order_is_near_the_best_of_all():
    from itertools import permutations

    robot = load_robot("iiwa14")
    limits = motion_limits(robot)[0]
    poses = np.random.default_rng(7).uniform(limits.lower, limits.upper, size=(7, 7))
    D = travel_times(poses, limits)
    scene = replace(build_scene(robot), table=np.zeros((0, 7)), names=())

    def length(order):
        return sum(D[a, b] for a, b in pairwise(order))

    order = travel_order(poses, limits, scene)
    assert sorted(order.tolist()) == list(range(7))
    assert order[0] == 0
    best = min(length((0, *rest)) for rest in permutations(range(1, 7)))
    assert length(order.tolist()) <= 1.1 * best


def test_transitions_go_around_obstacles():
    robot = load_robot("iiwa14")
    limits = motion_limits(robot)[0].within(0.05)
    wall = "format: armid-cell/1\nobstacles: [{name: wall, box: {size: [0.7, 0.05, 0.9]}, xyz: [0.55, 0, 0.4]}]"
    scene = build_scene(robot, parse_cell(wall))
    a = np.array([-0.9, 1.2, 0.0, -0.6, 0.0, 0.3, 0.0])
    b = a * np.array([-1, 1, 1, 1, 1, 1, 1])
    assert scene.is_free(np.vstack([a, b])).all()
    assert not edge_is_free(scene, a, b)
    rng = np.random.default_rng(8)
    path = safe_waypoints(scene, a, b, limits, rng)
    assert len(path) > 2
    for p, q in pairwise(path):
        assert edge_is_free(scene, p, q)
    motion = safe_transition(robot, a, b, limits, scene, rng=rng)
    assert certify(motion, robot, limits, scene).feasible
    whole, stops, problems = route(robot, np.vstack([a, b, a]), limits, scene, rng)
    assert problems == ()
    assert whole is not None
    np.testing.assert_allclose(whole.waypoints[list(stops)], [a, b, a])
    with pytest.raises(NoTransitionError, match=r"start pose .* is not free"):
        safe_waypoints(scene, np.array([0.0, 1.2, 0, -0.6, 0, 0.3, 0]), b, limits, rng)
