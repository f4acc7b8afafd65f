"""Excitation: gradients by finite differences, criteria in their limits, the search, and the published trajectory."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace

import numpy as np
import pytest

from armid.design.augmented import EXPLORE, Schedule, minimised
from armid.design.candidate import shrunk
from armid.design.certificate import certify
from armid.design.excitation import ExcitationGrid, ExcitationProblem
from armid.design.grid_rows import GridRows
from armid.design.optimise import design_excitation
from armid.design.search import Budget, _serve, search
from armid.design.search_files import load_search, save_search
from armid.design.sequential import design_sequential
from armid.design.statement import DesignSettings, excitation_problem, harmonics_for, with_payload
from armid.errors import InputError, UnknownNameError
from armid.identifiability.expectation import (
    assumed_noise,
    condition_numbers,
    deviation_scale,
    excitation_information,
    nominal_base,
    trajectory_condition,
)
from armid.identifiability.smooth import Merit, SmoothCriterion, gram_condition_number
from armid.identifiability.structure import structural_base
from armid.kernels.dynamics import inverse_dynamics
from armid.kernels.evaluate import evaluate_rows
from armid.kernels.gradients import rows_vjp
from armid.kernels.lanes import BLOCK
from armid.motions.basis import FourierBasis, SplineBasis
from armid.motions.fourier import FourierTrajectory
from armid.motions.limits import InfeasibleError, motion_limits
from armid.motions.trajectory import SequenceTrajectory
from armid.parameters.effects import Effects
from armid.robot import Robot
from armid.robot.load import load_robot
from armid.robot.robot import Drive
from armid.rows.nominal_torque import NominalTorque
from armid.scene.cell import Cell, parse_cell

FRICTION = Effects(viscous=True, coulomb=True)


def short_arm(joints: int = 3) -> Robot:
    """The last joints of an iiwa: small, with shapes and torque limits."""
    arm = load_robot("iiwa14")
    frames = tuple(replace(f, link=joints) for f in arm.frames if f.link == 7)
    return Robot(
        name="wrist",
        joints=arm.joints[-joints:],
        links=arm.links[-joints:],
        frames=frames,
        gravity=np.array([3.0, 2.0, -9.0]),
    )


@pytest.fixture(scope="module")
def problem() -> ExcitationProblem:
    settings = DesignSettings(effects=FRICTION)
    return excitation_problem(load_robot("iiwa14"), settings, parse_cell("{format: armid-cell/1, floor: 0.0}"))[0]


def directional(function, y, direction, h=1e-6):
    return (function(y + h * direction) - function(y - h * direction)) / (2 * h)


@pytest.mark.parametrize("criterion", list(SmoothCriterion))
def test_criterion_gradients(criterion):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 8)) * np.geomspace(1, 20, 8)
    quality = Merit(criterion, 6.0, scale=rng.uniform(0.5, 2.0, 8))
    E = rng.normal(size=(8, 8))
    E = E + E.T
    G = A.T @ A
    _, S = quality(G)
    assert directional(lambda G: quality(G)[0], G, E, 1e-5) == pytest.approx(float((S * E).sum()), rel=1e-6)
    many = np.stack([G, 2 * G + np.eye(8)])
    np.testing.assert_allclose(quality.values(many), [quality(one)[0] for one in many], rtol=1e-12)


def test_criteria_in_their_limits():
    A = np.random.default_rng(1).normal(size=(40, 6))
    s = np.linalg.svd(A, compute_uv=False)
    G = A.T @ A
    assert np.exp(Merit(SmoothCriterion.CONDITION, 4000.0)(G)[0]) == pytest.approx(s[0] / s[-1], rel=1e-3)
    assert np.exp(-Merit(SmoothCriterion.SMALLEST, 4000.0)(G)[0]) == pytest.approx(s[-1], rel=1e-3)
    assert Merit(SmoothCriterion.LOG_DET)(G)[0] == pytest.approx(-np.log(s).mean())
    worst = np.sqrt(np.diag(np.linalg.inv(G))).max()
    assert np.exp(Merit(SmoothCriterion.WORST_DEVIATION, 4000.0)(G)[0]) == pytest.approx(worst, rel=1e-3)
    assert gram_condition_number(G) == pytest.approx(s[0] / s[-1])
    assert gram_condition_number(np.diag([1.0, 0.0])) == np.inf


@pytest.mark.parametrize("case", ["all constraints", "goals", "log-det with weights", "fixed start", "analytic bounds"])
def test_gradient_of_the_lagrangian(problem, case):
    rng = np.random.default_rng(2)
    own, start = problem, None
    if case == "goals":
        settings = DesignSettings(effects=FRICTION, goal_condition=35.0, goal_reserve={"joint6": 0.9, "joint7": 0.8})
        own = excitation_problem(problem.robot, settings, None)[0]
    if case == "log-det with weights":
        own = replace(problem, quality=Merit(SmoothCriterion.LOG_DET), weights=rng.uniform(0.5, 2.0, 7))
    if case == "analytic bounds":
        own = replace(problem, analytic=True)
    if case == "fixed start":
        start = np.array([0.1, -0.4, 0.2, 0.9, 0.0, 0.3, 0.0])
    basis = FourierBasis(10.0, 4, start)
    grid = ExcitationGrid(own, basis, 128)
    # Twice as large as the limits allow, so that every kind of constraint is broken somewhere.
    y = 2.0 * grid.variables(basis.random(own.limits, rng))
    prices = grid.multipliers(7.0)
    prices.usage[:] = 0.2 * rng.normal(size=prices.usage.shape)
    prices.analytic[:] = rng.uniform(0.0, 0.5, size=14)
    prices.clearance[:] = 0.2 * np.abs(rng.normal(size=prices.clearance.shape))
    _, gradient = grid.evaluate(y, prices)
    for _ in range(3):
        d = rng.normal(size=y.shape)
        numeric = directional(lambda y: grid.evaluate(y, prices)[0], y, d, 1e-7)
        assert numeric == pytest.approx(float(gradient @ d), rel=2e-5, abs=1e-5)


@pytest.mark.parametrize(
    "basis",
    [
        FourierBasis(8.0, 3),
        FourierBasis(8.0, 3, np.array([0.3, -0.2])),
        SplineBasis(8.0, 7),
        SplineBasis(8.0, 7, np.array([0.3, -0.2])),
    ],
)
def test_bases_give_the_trajectories_they_stand_for(basis):
    limits = motion_limits(load_robot("iiwa14"))[0]
    two = replace(
        limits,
        **{
            name: getattr(limits, name)[:2] for name in ("lower", "upper", "velocity", "acceleration", "jerk", "torque")
        },
    )
    c = basis.random(two, np.random.default_rng(0))
    trajectory = basis.trajectory(c, ("a", "b"))
    t = np.linspace(0.0, 8.0, 33)
    P = basis.matrices(t)
    anchor = np.zeros(2) if basis.start is None else basis.start
    for order, values in enumerate((*trajectory.sample(t), trajectory.jerk(t))):
        np.testing.assert_allclose(P[order] @ c + (anchor if order == 0 else 0.0), values, atol=1e-9)
    q, qd, qdd = trajectory.sample(np.array([0.0, 8.0]))
    np.testing.assert_allclose(qd, 0.0, atol=1e-9)
    np.testing.assert_allclose(qdd, 0.0, atol=1e-8)
    if basis.start is not None:
        np.testing.assert_allclose(q[0], basis.start)
    used = np.abs(trajectory.sample(t)[1]).max(axis=0) / two.velocity
    assert (used > 0.05).all()


def test_shrinking_scales_rates_and_keeps_the_start(problem):
    rng = np.random.default_rng(3)
    for start in (None, np.full(7, 0.2)):
        basis = FourierBasis(10.0, 4, start)
        c = basis.random(problem.limits, rng)
        before, after = (basis.trajectory(x, problem.robot.joint_names) for x in (c, shrunk(basis, c, problem, 0.9)))
        t = np.linspace(0, 10, 50)
        np.testing.assert_allclose(after.sample(t)[1], 0.9 * before.sample(t)[1], atol=1e-9)
        centre = problem.limits.middle if start is None else start
        np.testing.assert_allclose(after.sample(t)[0] - centre, 0.9 * (before.sample(t)[0] - centre), atol=1e-9)


def test_nominal_torque_is_inverse_dynamics_and_differentiable():
    robot = load_robot("lwr4plus")
    x = np.random.default_rng(4).normal(size=(5, 21))
    q, qd, qdd = x[:, :7], x[:, 7:14], x[:, 14:]
    source = NominalTorque(robot)
    np.testing.assert_allclose(
        evaluate_rows(source, x)[:, :, 0], inverse_dynamics(robot, q, qd, qdd, drives=True), atol=1e-10
    )
    bar = np.random.default_rng(5).normal(size=(5, 7, 1))
    d = np.random.default_rng(6).normal(size=x.shape)
    numeric = directional(lambda x: (evaluate_rows(source, x) * bar).sum(), x, d)
    assert numeric == pytest.approx(float((rows_vjp(source, x, bar) * d).sum()), rel=1e-6)


def test_a_payload_changes_the_torques_as_its_weight_does():
    robot = load_robot("lwr4plus")
    loaded = with_payload(robot, 3.28, [0.0, 0.0, 0.0])
    q = np.random.default_rng(7).uniform(-1, 1, size=(4, 7))
    zero = np.zeros_like(q)
    from armid.kernels.kinematics import jacobian

    extra = inverse_dynamics(loaded, q, zero, zero) - inverse_dynamics(robot, q, zero, zero)
    J = jacobian(robot, q)
    np.testing.assert_allclose(extra, -np.einsum("sij,i->sj", J[:, :3], 3.28 * robot.gravity), atol=1e-9)


def test_a_descent_improves_and_respects_its_deadline(problem):
    basis = FourierBasis(20.0, 5)
    grid = ExcitationGrid(problem, basis, 128)
    y = grid.variables(basis.random(problem.limits, np.random.default_rng(0)))
    before = grid.probe(y)
    end = minimised(grid, y, EXPLORE)
    assert end.probe.condition_number < 0.5 * before.condition_number
    assert end.probe.violation < 0.05
    stopped = minimised(grid, y, Schedule(5, 100), deadline=0.0)
    assert not stopped.finished
    np.testing.assert_array_equal(stopped.variables, y)


@pytest.fixture(scope="module")
def wrist_design():
    return design_excitation(
        short_arm(),
        DesignSettings(periods=(6.0,), harmonics=3, home=[0.3, 0.2, 0.0], repetitions=2),
        budget=Budget(None, starts=3, workers=1),
        seed=1,
    )


def test_design_is_certified_and_complete(wrist_design):
    design = wrist_design
    assert design.certificate.feasible
    assert design.certificate.violations == ()
    assert isinstance(design.trajectory, SequenceTrajectory)
    for t in (0.0, design.trajectory.duration):
        q, qd, _ = design.trajectory.sample(t)
        np.testing.assert_allclose(q[0], [0.3, 0.2, 0.0], atol=1e-9)
        np.testing.assert_allclose(qd, 0.0, atol=1e-9)
    # Limits, checked the pedestrian way on the robot's own numbers with their 5 % margin.
    t = np.arange(0.0, design.trajectory.duration, 0.0013)
    q, qd, qdd = design.trajectory.sample(t)
    robot = design.robot
    assert (q <= 0.95 * robot.limit("upper") + 1e-9).all()
    assert (np.abs(qd) <= 0.95 * robot.limit("velocity") + 1e-9).all()
    assert (np.abs(qdd) <= 0.95 * robot.limit("acceleration") + 1e-9).all()
    torque = inverse_dynamics(robot, q, qd, qdd, drives=True)
    assert (np.abs(torque) <= 0.95 * robot.limit("torque") + 1e-6).all()
    for name, values in (
        ("velocity", np.abs(qd) / robot.limit("velocity")),
        ("torque", np.abs(torque) / robot.limit("torque")),
    ):
        assert design.limit_usage[name] == pytest.approx(values.max(), rel=2e-3)
        assert design.limit_usage[name] >= values.max()


def test_condition_number_is_that_of_the_stacked_regressor(wrist_design):
    design = wrist_design
    t = np.arange(600) * 0.01
    from armid.rows.torque import TorqueRows

    A = evaluate_rows(TorqueRows(design.robot, design.settings.effects), np.hstack(design.excitation.sample(t)))
    W = A.reshape(-1, A.shape[2])[:, design.base.independent]
    assert design.condition_number == pytest.approx(np.linalg.cond(W), rel=1e-9)
    assert design.condition_number_scaled == pytest.approx(np.linalg.cond(W / np.linalg.norm(W, axis=0)), rel=1e-9)
    noise = 0.005 * design.robot.limit("torque")
    weighted = (A / noise[:, np.newaxis]).reshape(-1, A.shape[2])[:, design.base.independent]
    np.testing.assert_allclose(design.deviations, np.sqrt(np.diag(np.linalg.inv(weighted.T @ weighted))), rtol=1e-6)


def test_search_repeats_exactly_for_a_seed_whatever_the_workers(wrist_design, tmp_path):
    settings = DesignSettings(periods=(6.0,), harmonics=3)
    problem = excitation_problem(wrist_design.robot, settings, None)[0]
    bases = (FourierBasis(6.0, 3),)
    one = wrist_design.search
    two = search(problem, bases, Budget(None, starts=3, workers=2), seed=1)
    np.testing.assert_array_equal(one.best.coefficients, two.best.coefficients)
    again = load_search(save_search(one, tmp_path / "s.json"), bases, 3)
    resumed = search(problem, bases, Budget(None, starts=1, workers=1), seed=1, resume=again)
    assert resumed.best.objective <= one.best.objective + 1e-6
    with pytest.raises(InputError, match="another period"):
        load_search(tmp_path / "s.json", (FourierBasis(6.0, 4),), 3)


def test_time_budget_is_kept(wrist_design):
    problem = excitation_problem(wrist_design.robot, DesignSettings(periods=(6.0,), harmonics=3), None)[0]
    seen = []
    found = search(problem, (FourierBasis(6.0, 3), FourierBasis(9.0, 3)), Budget(2.0, workers=1), watch=seen.append)
    assert found.seconds < 4.0
    assert found.best.feasible
    assert seen
    assert found.history
    assert found.history[-1][1] == found.best.condition_number


def test_no_time_at_all_still_gives_a_motion(wrist_design):
    problem = excitation_problem(wrist_design.robot, DesignSettings(periods=(6.0,), harmonics=3), None)[0]
    found = search(problem, (FourierBasis(6.0, 3),), Budget(1e-9, workers=1))
    assert found.explored == 0
    assert found.best.feasible


def test_a_process_that_is_ready_when_the_search_is_over_says_nothing(wrist_design, monkeypatch):
    problem = excitation_problem(wrist_design.robot, DesignSettings(periods=(6.0,), harmonics=3), None)[0]
    monkeypatch.setattr("signal.signal", lambda *_: None)
    ours, theirs = multiprocessing.Pipe()
    ours.close()
    _serve(theirs, problem, (FourierBasis(6.0, 3),), seed=0)  # a broken pipe would be raised here


@pytest.mark.parametrize(
    ("half_range", "velocity", "acceleration", "resonance", "expected"),
    [
        (2.0, 2.0, 8.0, None, 10),  # 0.16 Hz: three harmonics would do, ten bend the motion
        (0.1, 1.1, 4.4, None, 22),  # 1.06 Hz by acceleration: the quill of a SCARA
        (0.05, 2.0, 100.0, None, 25),  # 6.4 Hz: as many as searching can bear
        (0.1, 1.1, 4.4, 0.8, 15),  # and below a resonance
    ],
)
def test_as_many_harmonics_as_the_quickest_joint_can_use(half_range, velocity, acceleration, resonance, expected):
    arm = short_arm()
    quick = replace(
        arm.joints[1],
        limits=replace(
            arm.joints[1].limits, lower=-half_range, upper=half_range, velocity=velocity, acceleration=acceleration
        ),
    )
    slow = [replace(j, limits=replace(j.limits, velocity=0.5, acceleration=2.0)) for j in arm.joints]
    arm = replace(arm, joints=(slow[0], quick, slow[2]))
    assert harmonics_for(arm, (20.0,), resonance) == expected


def without_torque_limits(arm: Robot) -> Robot:
    """And without drives, so that torque is that of the links."""
    joints = (replace(j, limits=replace(j.limits, torque=np.inf), drive=Drive()) for j in arm.joints)
    return replace(arm, joints=tuple(joints))


def test_noise_where_no_torque_limit_is_described_follows_what_the_links_need():
    arm = without_torque_limits(short_arm())
    noise = assumed_noise(arm, 3)
    assert (noise > 0.0).all()
    heavier = assumed_noise(arm.with_inertial(10.0 * arm.inertial), 3)
    np.testing.assert_allclose(heavier, 10.0 * noise, rtol=1e-9)
    np.testing.assert_array_equal(assumed_noise(short_arm(), 3), 0.005 * short_arm().limit("torque"))


def test_links_without_mass_are_named_where_torque_is_limited():
    arm = short_arm()
    arm = replace(arm, links=(arm.links[0], replace(arm.links[1], inertial=None), arm.links[2]))
    notes = excitation_problem(arm, DesignSettings(), None)[2]
    (note,) = [note for note in notes if note.code == "torque-partly-checked"]
    assert arm.links[1].name in note.message


def test_interruption_keeps_the_best(wrist_design):
    problem = excitation_problem(wrist_design.robot, DesignSettings(periods=(6.0,), harmonics=3), None)[0]

    def impatient(progress):
        if progress.explored == 2:
            raise KeyboardInterrupt

    found = search(problem, (FourierBasis(6.0, 3),), Budget(None, starts=50, workers=1), watch=impatient)
    assert found.interrupted
    assert found.explored == 2
    assert found.best.certificate is not None


def test_splines_too():
    design = design_excitation(
        short_arm(2), DesignSettings(periods=(8.0,), knots=9), budget=Budget(None, starts=2, workers=1)
    )
    assert design.certificate.feasible
    assert design.condition_number < 200.0


def test_goals_trade_the_condition_number_for_torque():
    robot = with_payload(short_arm(), 2.0, [0.05, 0.0, 0.05])
    name = robot.joint_names[1]
    common = {"periods": (6.0,), "harmonics": 3}
    alone = design_excitation(robot, DesignSettings(**common), budget=Budget(None, starts=2, workers=1))
    t = np.arange(600) * 0.01
    own = (
        np.abs(inverse_dynamics(robot, *alone.excitation.sample(t), drives=True)[:, 1]).mean()
        / robot.limit("torque")[1]
    )
    wanted = 1.0 - 1.15 * own
    goals = DesignSettings(**common, goal_condition=1.5 * alone.condition_number, goal_reserve={name: wanted})
    found = design_excitation(robot, goals, budget=Budget(None, starts=2, workers=1))
    missed_alone = (1.0 - own - wanted) / wanted
    assert found.misses.max() < 0.7 * missed_alone
    mean = (
        np.abs(inverse_dynamics(robot, *found.excitation.sample(t), drives=True)[:, 1]).mean()
        / robot.limit("torque")[1]
    )
    assert found.misses[1] == pytest.approx((1.0 - mean - wanted) / wanted, abs=1e-6)
    assert mean > 1.05 * own


def test_locked_joint_plan():
    robot = short_arm()
    stages = design_sequential(
        robot, DesignSettings(periods=(6.0,), harmonics=3), budget=Budget(None, starts=1, workers=1)
    ).stages
    assert [stage.joint for stage in stages] == [2, 1, 0]
    for stage in stages:
        q, qd, _ = stage.trajectory.sample(np.linspace(0, 6, 40))
        np.testing.assert_allclose(q[:, : stage.joint], np.tile(stage.locked, (40, 1)), atol=1e-12)
        assert (np.abs(qd[:, : stage.joint]) == 0.0).all()
        assert (np.abs(qd[:, stage.joint :]).max(axis=0) > 0.05).all()
        assert stage.design.certificate.feasible
        # Torques of the moving joints are those of the whole arm.
        full = inverse_dynamics(robot, *stage.trajectory.sample(np.array([1.0, 2.0])))
        part = inverse_dynamics(stage.design.robot, *stage.design.excitation.sample(np.array([1.0, 2.0])))
        np.testing.assert_allclose(full[:, stage.joint :], part, atol=1e-9)
    counts = [len(stage.design.base) for stage in stages]
    assert counts == sorted(counts)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"start": [0.0, 9.0, 0.0]}, InfeasibleError, r"start pose: joint6 at 9.0000 is .* outside"),
        ({"periods": (1.0,), "resonance_hz": 2.0}, InfeasibleError, r"1 Hz above the resonance .* at most 2 harmonics"),
        ({"periods": (-1.0,)}, InputError, "positive"),
        ({"margin": 1.5}, InputError, "margin"),
        ({"limits": frozenset(("colour",))}, UnknownNameError, "colour"),
        ({"goal_condition": 30.0}, InputError, "a condition number alone"),
        ({"noise": [1.0]}, Exception, "noise"),
        ({"harmonics": 0}, InputError, "harmonics"),
    ],
)
def test_bad_input_is_named(changes, error, message):
    with pytest.raises(error, match=message):
        design_excitation(
            short_arm(), replace(DesignSettings(harmonics=3), **changes), budget=Budget(None, starts=1, workers=1)
        )


def test_a_start_in_collision_is_named():
    cell = parse_cell(
        "format: armid-cell/1\nobstacles: [{name: block, box: {size: [0.3, 0.3, 0.3]}, xyz: [0, 0, 0.4]}]"
    )
    arm = load_robot("iiwa14")
    with pytest.raises(InfeasibleError, match=r"start pose is in collision: link\d and block, 0\.\d+ m too close"):
        design_excitation(arm, DesignSettings(start=np.zeros(7)), cell=cell, budget=Budget(1.0, workers=1))


def test_impossible_surroundings_are_reported_not_returned():
    cell = Cell(floor=2.0)
    with pytest.raises(
        InfeasibleError,
        match=r"none of 20000 random poses is free.* and the floor too close in 100 % .* \d\.\d+ m at best",
    ):
        design_excitation(
            load_robot("iiwa14"), DesignSettings(harmonics=3), cell=cell, budget=Budget(None, starts=1, workers=1)
        )


def test_limits_that_do_not_count_are_still_reported():
    settings = DesignSettings(periods=(3.0,), harmonics=3, limits=frozenset(("position", "velocity")), margin=0.0)
    design = design_excitation(short_arm(2), settings, budget=Budget(None, starts=1, workers=1))
    assert design.certificate.feasible
    assert design.limit_usage["jerk"] > 0.0


def test_nominal_base_values_predict_the_torque(problem):
    robot = problem.robot
    base = structural_base(problem.rows)
    x = np.random.default_rng(8).normal(size=(6, 21))
    A = evaluate_rows(problem.source, x)
    expected = inverse_dynamics(robot, x[:, :7], x[:, 7:14], x[:, 14:])
    drives = robot.drive("viscous") * x[:, 7:14] + robot.drive("coulomb") * np.sign(x[:, 7:14])
    np.testing.assert_allclose(A @ nominal_base(robot, problem.rows, base), expected + drives, atol=1e-8)
    assert (deviation_scale(robot, problem.rows, base) > 0.0).all()


def test_certificate_agrees_with_a_dense_look(problem):
    basis = FourierBasis(10.0, 5)
    rng = np.random.default_rng(9)
    trajectory = basis.trajectory(basis.random(problem.limits, rng), problem.robot.joint_names)
    proof = certify(trajectory, problem.robot, problem.limits, problem.scene)
    t = rng.uniform(0.0, 10.0, 20000)
    q, qd, qdd = trajectory.sample(t)
    usage = {
        "position": np.abs(q - problem.limits.middle) / problem.limits.half_range,
        "velocity": np.abs(qd) / problem.limits.velocity,
        "acceleration": np.abs(qdd) / problem.limits.acceleration,
        "jerk": np.abs(trajectory.jerk(t)) / problem.limits.jerk,
        "torque": np.abs(inverse_dynamics(problem.robot, q, qd, qdd, drives=True)) / problem.limits.torque,
    }
    for name, values in usage.items():
        assert (values.max(axis=0) <= proof.usage[name] + 1e-12).all(), name
        assert (proof.usage[name] <= values.max(axis=0) * 1.01 + 1e-3).all(), name
    dense = problem.scene.clearances(q).min()
    assert proof.clearance <= dense
    assert proof.clearance >= min(dense, 0.0) - 2e-3


def test_certificate_sees_what_happens_between_samples():
    """A fast arm passes a thin post between two 10 ms samples: samples alone would call it free."""
    arm = load_robot("iiwa14")
    one = Robot(name="fast", joints=arm.joints[1:2], links=arm.links[1:2], frames=arm.frames[:0])
    from armid.scene.scene import build_scene

    reach = build_scene(one, Cell(floor=-9.0)).capsules[-1]
    far = reach.end if np.linalg.norm(reach.end) > np.linalg.norm(reach.start) else reach.start
    t_hit, speed = 0.505, 60.0
    motion = FourierTrajectory(("joint2",), 2 * np.pi * 2.0 / speed, np.zeros(1), np.array([[2.0]]), np.zeros((1, 1)))
    from armid.kernels.kinematics import forward_kinematics

    T = forward_kinematics(one, motion.sample(t_hit)[0])[0]
    post = (T @ np.append(far * (1 + (reach.radius + 0.006) / np.linalg.norm(far)), 1.0))[:3]
    cell = parse_cell(
        "format: armid-cell/1\nmargin: 0.0\nobstacles: [{name: post, sphere: {radius: 0.007}, xyz: "
        f"[{post[0]}, {post[1]}, {post[2]}]}}]"
    )
    scene = build_scene(one, cell)
    limits = motion_limits(one)[0].but(velocity=1e3, acceleration=1e5, jerk=1e7, torque=np.inf)
    assert scene.clearances(motion.sample(t_hit)[0]).min() < 0.0
    proof = certify(motion, one, limits, scene)
    assert proof.clearance < 0.0
    assert not proof.feasible


THESIS_A = """-0.00437 0.00450 -0.48108 -0.38535 -0.31150 -0.01783 -0.03516
-0.62028 0.53270 0.20123 0.00163 0.39644 -0.97910 0.05008
0.01104 -0.01662 0.01383 -0.01261 -0.03152 0.00268 0.12333
0.00621 -0.43165 0.01188 0.61809 -0.06543 0.03933 -0.04052
0.65089 -0.09040 0.30624 -0.00794 0.51263 -0.00515 -0.01269
-0.00740 -0.00206 -0.00066 -0.06088 -0.30772 0.01090 -0.00299
-0.01111 -0.00327 -0.00206 -0.14301 -0.00729 0.04044 -0.01498
-0.00142 0.00137 0.00002 -0.00730 -0.06771 0.16152 -0.01108
-0.00244 0.00523 -0.02635 -0.00264 -0.11498 0.71862 -0.01839
-0.02111 0.00021 -0.02305 0.00000 -0.00291 0.02859 -0.03760"""
THESIS_B = """0.00560 0.01689 0.19887 0.01563 0.17841 -0.01337 0.41560
-0.06165 -0.11657 -0.30741 -0.00663 -0.44345 0.01059 -0.36439
-0.01263 -0.01822 0.01997 -0.00010 0.00280 0.01044 -0.72843
0.00086 0.40579 0.00432 -0.07209 0.00087 0.02059 -0.12088
0.20832 -0.27007 -0.41027 0.00076 0.18801 -0.00293 0.02384
0.00879 0.00209 0.00581 0.00010 0.09186 0.00116 0.00527
-0.04198 -0.00198 0.02527 0.03555 -0.00920 0.01342 0.04237
-0.02403 -0.00112 0.01892 0.00340 -0.01634 0.02934 0.02719
-0.01637 0.00121 0.09176 0.00065 -0.06588 -0.06231 0.06407
-0.03088 -0.00025 0.12012 -0.00000 -0.00066 0.01183 0.17404"""


def test_the_published_iiwa_trajectory():
    """Condition number 63 as designed over 20 s, 113 to 114 when slowed to the 27 s the robot needed; thesis table A.1."""
    from armid.motions.fourier import from_velocity_form

    robot = load_robot("iiwa14")
    a, b = (
        np.array([[float(x) for x in line.split()] for line in text.splitlines()]).T for text in (THESIS_A, THESIS_B)
    )
    trajectory = from_velocity_form(robot.joint_names, 20.0, a, b)
    assert trajectory_condition(robot, FRICTION, trajectory) == pytest.approx(63.0, abs=1.0)
    assert trajectory_condition(robot, FRICTION, trajectory.slowed(27.0 / 20.0)) == pytest.approx(113.6, abs=1.0)
    rows = excitation_problem(robot, DesignSettings(effects=FRICTION), None)[0].rows
    information = excitation_information(rows, trajectory)
    assert condition_numbers(information, structural_base(rows))[1] < 63.0


def test_a_goal_for_the_condition_number_is_found_when_none_is_given():
    robot = short_arm(2)
    settings = DesignSettings(periods=(6.0,), harmonics=3, goal_reserve={robot.joint_names[0]: 0.99})
    found = design_excitation(robot, settings, budget=Budget(None, starts=1, workers=1))
    assert found.settings.goal_condition is not None
    assert found.misses.shape == (2,)


def test_the_design_beats_random_waypoints(wrist_design):
    assert wrist_design.condition_number < wrist_design.baseline


def test_real_shapes_are_checked_where_capsules_were_not(tmp_path):
    from armid.robot.geometry import Box, Geometry, Mesh
    from armid.scene.hulls import hull_check

    robot = load_robot("iiwa14")
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * 0.04
    (tmp_path / "cube.obj").write_text("".join(f"v {p[0]} {p[1]} {p[2]}\n" for p in corners))

    def dressed(shape):
        return replace(
            robot, links=tuple(replace(link, geometry=(Geometry(shape),)) for link in robot.links), geometry=()
        )

    as_mesh, as_box = dressed(Mesh(str(tmp_path / "cube.obj"))), dressed(Box((0.08, 0.08, 0.08)))
    motion = FourierTrajectory(robot.joint_names, 4.0, np.full(7, 0.3), np.full((7, 1), 0.5), np.zeros((7, 1)))
    mesh, box = hull_check(as_mesh, motion, rate_hz=10.0), hull_check(as_box, motion, rate_hz=10.0)
    assert mesh.distance == pytest.approx(box.distance, abs=1e-5)
    assert mesh.pair == box.pair
    assert hull_check(dressed(Box((0.9, 0.9, 0.9))), motion, rate_hz=10.0).distance < 0.0
    gone = hull_check(dressed(Mesh(str(tmp_path / "gone.obj"))), motion, rate_hz=10.0)
    assert gone.distance == np.inf
    assert len(gone.missing) == 7


def test_analytic_bounds_are_kept_when_asked_for():
    from armid.motions.fourier import published_bounds

    robot = short_arm(2)
    budget = Budget(None, starts=1, workers=1)
    settings = DesignSettings(periods=(6.0,), harmonics=4, margin=0.0, self_collision=False)
    limits = motion_limits(robot)[0]
    for analytic in (True, False):
        found = design_excitation(robot, replace(settings, analytic=analytic), budget=budget).excitation
        room = limits.half_range - np.abs(found.offset - limits.middle)
        usage = published_bounds(found, room, limits.velocity)
        assert (max(float(u.max()) for u in usage.values()) <= 1.0 + 1e-9) == analytic
    with pytest.raises(InputError, match="Fourier series"):
        design_excitation(robot, replace(settings, knots=6, analytic=True), budget=budget)


def test_a_motion_far_beyond_its_limits_is_shrunk_into_them(problem):
    from armid.design.candidate import Candidate, Workshop

    basis = FourierBasis(20.0, 5, np.zeros(7))
    free = replace(problem, scene=replace(problem.scene, table=np.zeros((0, 7)), names=()))
    c = 5.0 * basis.random(free.limits, np.random.default_rng(4))
    found = Workshop(free, (basis,), 0).certified(Candidate(start=0, family=0, coefficients=c))
    assert found.feasible
    assert 0.99 < found.certificate.kinematic_worst < 1.0


def test_the_torque_of_an_arm_without_mass_is_zero_and_writes_nowhere():
    arm = without_torque_limits(short_arm()).with_inertial(np.zeros(30))
    x = np.random.default_rng(0).normal(size=(100, 9))
    np.testing.assert_array_equal(evaluate_rows(NominalTorque(arm), x), 0.0)
    grid = GridRows(NominalTorque(arm), 2 * BLOCK)
    grid.evaluate()
    assert grid.entries.shape == (0, 2 * BLOCK)


@pytest.mark.parametrize("described", [0, 2], ids=["no link", "all but the last link"])
def test_arms_with_joints_that_carry_no_described_mass_get_a_motion(described: int):
    arm = short_arm()
    links = tuple(replace(link, inertial=link.inertial if k < described else None) for k, link in enumerate(arm.links))
    arm = replace(arm, links=links, joints=tuple(replace(j, drive=Drive()) for j in arm.joints))
    settings = DesignSettings(periods=(6.0,), harmonics=3)
    design = design_excitation(arm, settings, budget=Budget(None, starts=1, workers=1))
    assert design.certificate.feasible
    assert any(note.code in ("torque-unchecked", "torque-partly-checked") for note in design.notes)
