"""Imperfections beside the parameters: columns are derivatives, random effects are a ridge, planted truth is recovered."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import armid
from armid.arrays import FloatArray
from armid.errors import InputError, UnknownNameError
from armid.estimation.imperfections import (
    BlockFactors,
    Effect,
    beyond_chance,
    block_spreads,
    correlation_length,
    falls,
    widening,
)
from armid.estimation.recording import runs_of
from armid.estimation.run import Run
from armid.identification.candidates import share_of_channels
from armid.identification.faults import Answer
from armid.identification.metrics import nominal_standard
from armid.identification.pipeline import run_identification
from armid.identification.result import Result
from armid.identification.sensor_file import read_sensors, sensor_text
from armid.identification.sensors import Imperfections, Sized, motion_of
from armid.identification.settings import Identification, Method
from armid.identification.tolerances import ImperfectionTolerances, tolerances_of
from armid.information.information import triangular
from armid.kernels.dynamics import inverse_dynamics
from armid.kernels.evaluate import evaluate_rows
from armid.kernels.gradients import prediction_jacobian
from armid.logs import Channel, Clock, Log
from armid.logs.check import check_log
from armid.logs.conditioning import Conditioning, condition
from armid.parameters.effects import Effects, TorqueSide
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.rows.imperfections import (
    KINDS,
    SINE,
    ColumnReference,
    Columns,
    Family,
    Imperfection,
    imperfections,
    level_axes,
)
from armid.rows.torque import TorqueRows
from armid.simulation.variation import varied
from support.identified import EFFECTS, log, urdf_file


def specimen() -> tuple[Robot, Robot]:
    """The described arm, and one that differs from it by a fifth."""
    robot = load_robot(str(urdf_file()))
    truth = varied(robot, 0.2, np.random.default_rng(1))
    drives = [replace(j, drive=replace(j.drive, rotor_inertia=0.2, offset=0.1)) for j in robot.joints]
    return robot, replace(truth, joints=tuple(drives))


def spoiled(
    clean: Log,
    *,
    gain: float = 0.0,
    zero: float = 0.0,
    scale: float = 0.0,
    delay: float = 0.0,
    clock: float = 0.0,
    joint: int = 1,
) -> Log:
    """The recording as imperfect sensors of a joint, the shoulder, and an imperfect clock would have made it."""
    channels = dict(clean.channels)
    torque, q = (np.array(channels[c]) for c in (Channel.LINK_TORQUE, Channel.POSITION))
    torque[:, joint] = np.interp(clean.time - delay, clean.time, torque[:, joint]) * (1.0 + gain)
    q[:, joint] = (1.0 + scale) * q[:, joint] + zero
    stamps = clean.time * (1.0 + clock)
    return replace(clean, time=stamps, channels={**channels, Channel.LINK_TORQUE: torque, Channel.POSITION: q})


def identified(
    *, imperfections: ImperfectionTolerances | None = None, correct: bool = False, joint: int = 1, **fault: float
) -> Result:
    robot, truth = specimen()
    logs = [spoiled(log(robot, truth, seed=seed), joint=joint, **fault) for seed in (3, 5)]
    settings = Identification(
        effects=EFFECTS,
        sensitivity=False,
        imperfections=imperfections or ImperfectionTolerances(),
        correct=correct,
    )
    return run_identification(robot, logs[:1], logs[1:], settings)


@cache
def clean() -> Result:
    """Of recordings in which nothing is wrong."""
    return identified()


def a_run(name: str = "trio", n: int = 40, effects: Effects | None = None) -> tuple[Run, FloatArray]:
    """Random motion of an arm, and random parameters."""
    robot = load_robot(str(urdf_file())) if name == "trio" else load_robot(name)
    model = effects or Effects(viscous=True, coulomb=True, offset=True)
    rows = TorqueRows(robot, model)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3 * robot.n_joints))
    pi = rng.normal(size=len(rows.columns))
    return Run(name="run", source=rows, inputs=x, y=evaluate_rows(rows, x) @ pi, rate=100.0), pi


def reference_of(run: Run, pi: FloatArray, *, recorded_velocity: bool = False) -> ColumnReference:
    n = len(run.channels)
    ones = np.ones(n)
    return ColumnReference(
        standard=pi,
        speed=2.0 * ones,
        load=5.0 * ones,
        size=ones,
        acceleration=ones,
        recorded_velocity=recorded_velocity,
    )


@pytest.mark.parametrize(
    ("name", "effects"),
    [
        ("trio", Effects(viscous=True, coulomb=True, offset=True, rotor_inertia=True)),
        ("cylindrical", Effects(viscous=True, coulomb=True)),
        ("tx40", Effects(viscous=True, coulomb=True, rotor_inertia=True, torques=TorqueSide.MOTOR)),
    ],
)
def test_the_jacobian_of_the_prediction_is_that_of_finite_differences(name: str, effects: Effects) -> None:
    run, pi = a_run(name, effects=effects)
    J = prediction_jacobian(run.source, run.inputs, pi)
    h = 1e-6
    for k in range(run.inputs.shape[1]):
        step = np.zeros(run.inputs.shape[1])
        step[k] = h
        up, down = (evaluate_rows(run.source, run.inputs + s * step) @ pi for s in (1.0, -1.0))
        # Central differences of values up to 1e2 lose eight digits.
        np.testing.assert_allclose(J[:, :, k], (up - down) / (2.0 * h), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("recorded_velocity", [False, True])
@pytest.mark.parametrize(
    "family", [Family.GAIN, Family.ZERO, Family.SCALE, Family.GEAR_RATIO, Family.CLOCK, Family.ECCENTRICITY]
)
def test_columns_are_what_undoing_takes_away(family: Family, recorded_velocity: bool) -> None:
    run, pi = a_run()
    reference = reference_of(run, pi, recorded_velocity=recorded_velocity)
    robot = run.source.robot  # type: ignore[attr-defined]
    for item in imperfections(robot, Effects(viscous=True), reference, [family]):
        h = 1e-6
        found = Imperfections(
            joints=run.channels, sizes=(Sized(item, h, 0.0),), names=run.source.columns, reference=reference
        )
        moved = found.corrected(run)
        change = (run.y - moved.y + evaluate_rows(run.source, moved.inputs) @ pi - run.y) / h
        Z = Columns(motion_of(run), reference).of([item])[:, :, 0]
        np.testing.assert_allclose(Z, change, rtol=1e-4, atol=1e-3)


def test_motion_of_one_joint_that_came_late_is_moved_back_and_its_column_is_the_derivative_of_that() -> None:
    run, pi = a_run()
    n, t, late = len(run.channels), np.arange(400.0)[:, np.newaxis] / 1000.0, 0.004
    speed = np.linspace(7.0, 11.0, n)

    def motion(late_by: float) -> FloatArray:
        at = t - late_by * (np.arange(n) == 1)
        return np.hstack([np.sin(speed * at), speed * np.cos(speed * at), -(speed**2) * np.sin(speed * at)])

    y = evaluate_rows(run.source, motion(0.0)) @ pi
    recorded = replace(run, inputs=motion(late), y=y, segments=((0, 400),), rate=1000.0)
    reference = reference_of(run, pi)
    item = next(
        i
        for i in imperfections(run.source.robot, EFFECTS, reference, [Family.ENCODER_DELAY])  # type: ignore[attr-defined]
        if i.joint == 1
    )
    found = Imperfections(
        joints=run.channels, sizes=(Sized(item, late, 0.0),), names=run.source.columns, reference=reference
    )
    # A spline through samples of 1 kHz, and beyond the last one the acceleration that was.
    undone = found.corrected(recorded).inputs
    np.testing.assert_allclose(undone[:-5], motion(0.0)[:-5], atol=1e-5)
    np.testing.assert_allclose(undone[:, : 2 * n], motion(0.0)[:, : 2 * n], atol=0.01)
    column = Columns(motion_of(recorded), reference).of([item])[5:-5, :, 0]
    h = 1e-5
    change = evaluate_rows(run.source, motion(late - h)) @ pi - evaluate_rows(run.source, motion(late + h)) @ pi
    np.testing.assert_allclose(column, change[5:-5] / (2.0 * h), rtol=1e-3, atol=1e-2 * np.abs(column).max())


def test_what_hysteresis_follows_does_not_move_with_noise_of_the_acceleration() -> None:
    # It would agree with what that noise leaves of the torque, and sound sensors would lag.
    run, pi = a_run()
    n = len(run.channels)
    inputs = np.array(run.inputs)
    inputs[:, 2 * n :] += np.random.default_rng(1).normal(size=inputs[:, 2 * n :].shape)
    reference = reference_of(run, pi)
    items = imperfections(run.source.robot, EFFECTS, reference, [Family.HYSTERESIS])  # type: ignore[attr-defined]
    clean, noisy = (Columns(motion_of(one), reference).of(items) for one in (run, replace(run, inputs=inputs)))
    assert np.ptp(clean) > 0.5
    assert noisy == pytest.approx(clean)


def test_a_tilted_base_is_gravity_turned() -> None:
    run, pi = a_run()
    robot = run.source.robot  # type: ignore[attr-defined]
    reference = reference_of(run, pi)
    items = imperfections(robot, run.source.effects, reference, [Family.TILT])  # type: ignore[attr-defined]
    Z = Columns(motion_of(run), reference).of(items)
    # Gravity points down: the first axis across it, turned by one radian to first order.
    for k, item in enumerate(items):
        assert item.unit == "rad"
        axis = level_axes(robot.gravity)[k]
        h = 1e-6
        turned = TorqueRows(robot.with_gravity(robot.gravity + h * np.cross(axis, robot.gravity)), run.source.effects)  # type: ignore[attr-defined]
        change = (evaluate_rows(turned, run.inputs) - evaluate_rows(run.source, run.inputs)) @ pi / h
        np.testing.assert_allclose(Z[:, :, k], change, rtol=1e-6, atol=1e-6)


def test_missing_weight_is_gravity_of_the_arm_itself() -> None:
    run, pi = a_run()
    robot = run.source.robot  # type: ignore[attr-defined]
    reference = reference_of(run, pi)
    (item,) = imperfections(robot, run.source.effects, reference, [Family.WEIGHT])  # type: ignore[attr-defined]
    floating = TorqueRows(robot.with_gravity(np.zeros(3)), run.source.effects)  # type: ignore[attr-defined]
    change = (evaluate_rows(floating, run.inputs) - evaluate_rows(run.source, run.inputs)) @ pi
    np.testing.assert_allclose(Columns(motion_of(run), reference).of([item])[:, :, 0], change, rtol=1e-9, atol=1e-9)
    assert not imperfections(robot.with_gravity(np.zeros(3)), EFFECTS, reference, [Family.WEIGHT])


def test_shapes_of_friction_stay_what_they_were_beyond_the_training() -> None:
    run, pi = a_run()
    n = len(run.channels)
    item = Imperfection(family=Family.CUBIC, joint=0, unit="N m", tolerance=1.0)
    fast = np.array(run.inputs)
    fast[:, n] = [2.0, 20.0] * (len(fast) // 2)
    columns = Columns(motion_of(replace(run, inputs=fast)), reference_of(run, pi))
    np.testing.assert_array_equal(columns.of([item])[:, 0, 0], 1.0)
    # Taken without the linear friction that stands in for it in training, too.
    apart = replace(item, linear=(0.3, 0.2, 0.1))
    np.testing.assert_allclose(columns.of([apart])[:, 0, 0], 1.0 - 0.3 * 2.0 - 0.2 - 0.1, rtol=1e-12)


def poor_log(robot: Robot, truth: Robot, *, seed: int, speed: float) -> Log:
    """A small, slow motion of an arm whose friction humps near standstill and whose drives pull with their angle."""
    rng = np.random.default_rng(seed)
    t = np.arange(2000) / 100.0
    w = speed * 2 * np.pi / 20.0 * np.arange(1, 5)
    a, b = rng.normal(size=(2, robot.n_joints, 4)) * 0.2 / np.arange(1, 5)
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    q, qd = s @ a.T + c @ b.T, (c * w) @ a.T - (s * w) @ b.T
    torque = inverse_dynamics(truth, q, qd, -(s * w**2) @ a.T - (c * w**2) @ b.T, drives=True)
    torque += 0.4 * np.sign(qd) * np.exp(-np.abs(qd) / 0.05) + 0.3 * np.sin(q)
    channels = {
        Channel.POSITION: q + rng.normal(0, 2e-5, q.shape),
        Channel.LINK_TORQUE: torque + rng.normal(0, 0.05, q.shape),
    }
    name = f"run{seed} at {speed:g}"
    raw = Log(name=name, joints=robot.joint_names, time=t, channels=channels, named=True, clock=Clock.COLUMN)
    return check_log(raw, robot)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_from_a_poor_motion_twice_the_speed_is_predicted_no_worse_with_them(seed: int) -> None:
    robot, truth = specimen()
    slow, fast = poor_log(robot, truth, seed=seed, speed=1.0), poor_log(robot, truth, seed=seed + 10, speed=2.0)
    beside, without = (
        run_identification(
            robot, [slow], [fast], Identification(effects=EFFECTS, sensitivity=False, imperfections=tolerances)
        )
        for tolerances in (ImperfectionTolerances(), ImperfectionTolerances(families=()))
    )
    assert beside.condition_number > 1000.0
    assert beside.imperfections is not None
    assert beside.relative_error["held_out"] < without.relative_error["held_out"]


@pytest.mark.parametrize("seed", range(4))
def test_a_poor_motion_of_a_sound_arm_hardly_makes_families_up(seed: int) -> None:
    robot, truth = specimen()
    poor, rich = small_log(robot, truth, seed=seed, size=0.15), small_log(robot, truth, seed=100 + seed, size=0.5)
    beside, without = (
        run_identification(
            robot, [poor], [rich], Identification(effects=EFFECTS, sensitivity=False, imperfections=tolerances)
        )
        for tolerances in (ImperfectionTolerances(), ImperfectionTolerances(families=()))
    )
    assert beside.condition_number > 1000.0
    assert beside.relative_error["held_out"] < 1.1 * without.relative_error["held_out"]


def small_log(robot: Robot, truth: Robot, *, seed: int, size: float) -> Log:
    """Ten seconds of a sound arm with linear friction, moving by so many radians."""
    rng = np.random.default_rng(seed)
    t, w = np.arange(1000) / 100.0, 2 * np.pi / 10.0 * np.arange(1, 4)
    a, b = rng.normal(size=(2, robot.n_joints, 3)) * size / np.arange(1, 4)
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    q, qd = rng.uniform(-0.5, 0.5, robot.n_joints) + s @ a.T + c @ b.T, (c * w) @ a.T - (s * w) @ b.T
    torque = inverse_dynamics(truth, q, qd, -(s * w**2) @ a.T - (c * w**2) @ b.T, drives=True)
    channels = {
        Channel.POSITION: q + rng.normal(0, 2e-5, q.shape),
        Channel.LINK_TORQUE: torque + rng.normal(0, 0.01 * torque.std(axis=0).max(), q.shape),
    }
    raw = Log(name=f"small {seed}", joints=robot.joint_names, time=t, channels=channels, named=True, clock=Clock.COLUMN)
    return check_log(raw, robot)


def test_random_effects_are_a_ridge_with_free_base_parameters() -> None:
    rng = np.random.default_rng(2)
    A, Z, y = rng.normal(size=(60, 4)), rng.normal(size=(60, 3)), rng.normal(size=60)
    tolerances = np.array([0.1, 0.5, 2.0])
    parts = [triangular(np.column_stack([A, Z, y])[k::5]) for k in range(5)]
    blocks = BlockFactors(4, parts, tolerances)
    effect = Effect("all", np.arange(3))
    fit = blocks.fit([(effect, 3.0)])
    ridge = np.block([[A, Z], [np.zeros((3, 4)), np.diag(1.0 / (3.0 * tolerances))]])
    both = np.linalg.lstsq(ridge, np.concatenate([y, np.zeros(3)]), rcond=None)[0]
    # A belief of 1e-6 of its column stands behind every base parameter.
    np.testing.assert_allclose(fit.values, both[4:], rtol=1e-8)
    np.testing.assert_allclose(fit.covariance, np.linalg.inv(ridge.T @ ridge)[4:, 4:], rtol=1e-8)
    left = np.linalg.lstsq(fit.marginal[:, :-1], fit.marginal[:, -1], rcond=None)[0]
    np.testing.assert_allclose(left, both[:4], rtol=1e-8)
    total = 0.0
    for k in range(5):
        out = np.arange(60) % 5 == k
        rows = np.vstack([np.column_stack([A, Z])[~out], ridge[60:]])
        s = np.linalg.lstsq(rows, np.concatenate([y[~out], np.zeros(3)]), rcond=None)[0]
        total += float(np.sum((y[out] - np.column_stack([A, Z])[out] @ s) ** 2))
    assert blocks.crossed([(effect, 3.0)]).sum() == pytest.approx(total, rel=1e-8)
    # How likely y is as noise and random effects, what base parameters can fit projected away.
    Q = np.linalg.qr(A, mode="complete")[0][:, 4:]
    projected, z = Q.T @ Z * (3.0 * tolerances), Q.T @ y
    spread = projected @ projected.T + np.eye(56)
    likelier = 0.5 * (z @ z - z @ np.linalg.solve(spread, z) - np.linalg.slogdet(spread)[1])
    assert blocks.evidence([(effect, 3.0)]) == pytest.approx(likelier, rel=1e-6)


@pytest.mark.parametrize("late", ["friction", "torque"])
def test_what_friction_explains_as_well_is_no_delay(late: str) -> None:
    """Two columns that do nearly the same; the second also moves what a base parameter stands for."""
    chosen = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A, friction, inertia = rng.normal(size=(500, 2)), rng.normal(size=500), rng.normal(size=500)
        torque = friction + 0.3 * A[:, 0] + (0.6 if late == "torque" else 0.05) * inertia
        y = A @ [1.0, -2.0] + 0.4 * (torque if late == "torque" else friction) + rng.normal(size=500)
        rows = np.column_stack([A, friction, torque, y])
        blocks = BlockFactors(2, [triangular(rows[k * 100 : (k + 1) * 100]) for k in range(5)], np.full(2, 0.3))
        rival = Effect("reversal", np.array([0]))
        found = blocks.choose([rival, Effect("delay", np.array([1]), rival=rival)])
        chosen.append([effect.family for effect, _, _ in found])
    if late == "friction":
        assert chosen.count(["reversal"]) >= 19
    else:
        assert sum("delay" in families for families in chosen) >= 17


@pytest.mark.parametrize(("elsewhere", "chosen"), [(0.2, []), (2.0, ["gain"])])
def test_what_two_blocks_of_five_gain_is_not_chosen(elsewhere: float, chosen: list[str]) -> None:
    """Their errors decide the sum over blocks, by which the family pays; of the other three they say nothing."""
    rng = np.random.default_rng(6)
    A, z = rng.normal(size=(200, 2)), rng.normal(size=200)
    loud = np.arange(200) < 80
    z *= np.where(loud, 2.0, elsewhere)
    y = A @ [1.0, -2.0] + np.where(loud | (elsewhere > 1.0), z, 0.0) + 0.5 * rng.normal(size=200)
    rows = np.column_stack([A, z, y])
    blocks = BlockFactors(2, [triangular(rows[k * 40 : (k + 1) * 40]) for k in range(5)], np.ones(1))
    effect = Effect("gain", np.array([0]))
    assert falls(blocks.crossed([]), blocks.crossed([(effect, 1.0)]))
    assert [own.family for own, _, _ in blocks.choose([effect])] == chosen


@pytest.mark.parametrize(
    ("left", "surely"),
    [([0.5, 0.6, 0.4, 0.5, 0.6], True), ([0.001, 0.01, 1.0, 1.1, 1.0], False), ([1.0] * 5, False)],
)
def test_errors_of_blocks_fall_beyond_chance_where_every_block_says_so(left: list[float], surely: bool) -> None:
    """In whatever unit each has them: a block in which a parameter is hardly known has errors thousands of times larger."""
    errors = np.array([1.0, 1e6, 3.0, 1.0, 1e9])
    assert beyond_chance(errors, errors * left) == surely


def test_spreads_are_those_of_fits_without_each_block() -> None:
    rng = np.random.default_rng(4)
    base, k, blocks = 3, 2, 6
    rows = rng.normal(size=(blocks, 40, base + k + 1))
    belief = np.zeros((1, base + k + 1))
    belief[0, 2] = 5.0
    sizes = []
    for left in range(blocks):
        kept = np.vstack([*(rows[i] for i in range(blocks) if i != left), belief])
        sizes.append([np.linalg.lstsq(kept[:, [0, 1, 2, base + j]], kept[:, -1], rcond=None)[0][3] for j in range(k)])
    deviations = np.sqrt((blocks - 1) * np.var(sizes, axis=0))
    found = block_spreads(base, [triangular(block) for block in rows], belief)
    np.testing.assert_allclose(found, deviations, rtol=1e-6)


def test_white_residuals_count_every_row() -> None:
    rng = np.random.default_rng(0)
    white = rng.normal(size=4000)
    assert correlation_length(white) == pytest.approx(1.0, abs=0.2)
    smooth = np.convolve(white, np.ones(10) / np.sqrt(10), mode="same")
    assert correlation_length(smooth) == pytest.approx(10.0, rel=0.2)


def test_a_clean_recording_needs_nothing_of_its_sensors() -> None:
    clean, plain = identified(), identified(imperfections=ImperfectionTolerances(families=()))
    # What derived velocities leave at reversals may be taken out, when it pays.
    assert clean.imperfections is None or {use.family for use in clean.imperfections.families} == {Family.REVERSAL}
    assert clean.relative_error["held_out"] < 1.05 * plain.relative_error["held_out"]


def test_a_gain_is_found_and_the_model_is_as_good_as_without_it() -> None:
    clean = identified()
    plain = identified(gain=0.1, imperfections=ImperfectionTolerances(families=()))
    healed = identified(gain=0.1)
    assert plain.imperfections is None
    assert plain.relative_error["held_out"] > 1.2 * clean.relative_error["held_out"]
    assert healed.relative_error["held_out"] < 1.05 * clean.relative_error["held_out"]
    assert healed.imperfections is not None
    gains = healed.imperfections.per_joint(Family.GAIN)
    # What all sensors share cannot be told from heavier bodies: only differences are.
    assert gains[1] - gains[[0, 2]].mean() == pytest.approx(0.1, abs=0.02)


def test_a_delay_is_found() -> None:
    found = identified(delay=0.005).imperfections
    assert found is not None
    assert found.size(Family.DELAY, 1) == pytest.approx(0.005, abs=0.001)


def turning_late(clean: Log, truth: Robot, lag: float) -> Log:
    """The recording of an arm whose Coulomb friction turns around so much later than its velocity [s]."""
    v = np.gradient(np.array(clean.channels[Channel.POSITION]), clean.time, axis=0)
    late = np.column_stack([np.interp(clean.time - lag, clean.time, column) for column in v.T])
    friction = truth.drive("coulomb") * (np.sign(late) - np.sign(v))
    torque = np.array(clean.channels[Channel.LINK_TORQUE]) + friction
    return replace(clean, channels={**clean.channels, Channel.LINK_TORQUE: torque})


@pytest.mark.parametrize("lag", [-0.02, 0.02])
def test_friction_that_turns_around_late_is_no_delay_of_a_sensor(lag: float) -> None:
    robot, truth = specimen()
    logs = [turning_late(log(robot, truth, seed=seed), truth, lag) for seed in (3, 5)]
    result = run_identification(robot, logs[:1], logs[1:], Identification(effects=EFFECTS, sensitivity=False))
    assert not [fault for fault in result.faults if fault.answer is Answer.FOUND]
    assert result.imperfections is None or not np.any(result.imperfections.per_joint(Family.DELAY))
    if lag < 0.0:  # What turns around late is presliding already.
        assert result.imperfections is not None
        assert np.all(result.imperfections.per_joint(Family.REVERSAL) < 0.25 * lag)


def test_friction_that_turns_around_late_is_coulomb_friction_moved() -> None:
    run, pi = a_run(n=400)
    t = np.arange(400) / run.rate
    n = len(run.channels)
    x = np.array(run.inputs)
    x[:, n : 2 * n] = np.tanh(5.0 * np.sin(2.0 * np.pi * 0.5 * t))[:, np.newaxis]
    reference = reference_of(run, pi)
    item = Imperfection(family=Family.REVERSAL, joint=1, unit="s", tolerance=0.003)
    Z = Columns(motion_of(replace(run, inputs=x)), reference).of([item])[:, :, 0]
    coulomb = pi[run.source.columns.index("joint2.coulomb")]
    moved = -coulomb * np.gradient(np.sign(x[:, n + 1]), 1.0 / run.rate)
    np.testing.assert_allclose(Z[:, 1], moved, rtol=1e-12)
    assert not np.any(Z[:, [0, 2]])


def test_intervals_are_wider_with_what_could_be_wrong() -> None:
    plain = identified(gain=0.1, imperfections=ImperfectionTolerances(families=()))
    healed = identified(gain=0.1)
    relative = healed.estimate.standard_deviations / np.abs(healed.estimate.values)
    assert np.median(relative) < np.median(plain.estimate.standard_deviations / np.abs(plain.estimate.values)) * 10
    assert np.all(np.linalg.eigvalsh(healed.estimate.covariance) > 0.0)


def test_intervals_hold_linear_friction_that_keeps_its_share_of_a_shape() -> None:
    rng = np.random.default_rng(7)
    v = rng.uniform(-1.0, 1.0, size=400)
    A, shape = np.column_stack([v, np.sign(v), np.ones_like(v)]), np.sign(v) * np.exp(-np.abs(v) / 0.3)
    L = np.linalg.lstsq(A, shape, rcond=None)[0][:, np.newaxis]
    b, tolerance, effect = np.array([2.0, 1.0, 0.3]), 0.5, Effect("stribeck", np.array([0]))
    old, new = [], []
    for _ in range(400):
        y = A @ b + shape * rng.normal(0.0, tolerance) + rng.normal(size=len(v)) * 0.3
        rows = np.column_stack([A, shape - A @ L[:, 0], y]) / 0.3
        fit = BlockFactors(3, [triangular(rows)], np.array([tolerance])).fit([(effect, 1.0)])
        error = np.linalg.lstsq(A, y - (shape - A @ L[:, 0]) * fit.values[0], rcond=None)[0] - b
        noise, shift = 0.3**2 * np.linalg.inv(A.T @ A), -fit.base_shift
        for scores, linear in ((old, 0.0 * L), (new, L)):
            covariance = noise + widening(shift, linear, fit.covariance, fit.values)
            scores.append(error / np.sqrt(np.diag(covariance)))
    assert np.all(np.mean(np.abs(old) < 1.96, axis=0)[:2] < 0.6)
    assert np.all(np.mean(np.abs(new) < 1.96, axis=0) > 0.92)


def humped(clean: Log, height: float) -> Log:
    """The recording with friction of every joint that humps near standstill, by this many newton metres."""
    v = np.gradient(np.array(clean.channels[Channel.POSITION]), clean.time, axis=0)
    hump = height * np.tanh(v / 0.01) * np.exp(-np.abs(v) / (0.1 * np.abs(v).max(axis=0)))
    return replace(clean, channels={**clean.channels, Channel.LINK_TORQUE: clean.channels[Channel.LINK_TORQUE] + hump})


@pytest.mark.parametrize("height", [-0.8, 0.8])
def test_planted_friction_is_within_its_interval_whatever_its_shape(height: float) -> None:
    robot, truth = specimen()
    logs = [humped(log(robot, truth, seed=seed), height) for seed in (3, 5)]
    result = run_identification(robot, logs[:1], logs[1:], Identification(effects=EFFECTS, sensitivity=False))
    estimate = result.estimate
    error = estimate.values - estimate.base.values(nominal_standard(truth, estimate.base.parameters))
    friction = [k for k, name in enumerate(estimate.names) if name.endswith((".viscous", ".coulomb"))]
    assert result.imperfections is not None
    assert Family.STRIBECK in {use.family for use in result.imperfections.families}
    assert len(friction) == 6
    # Linear friction did keep a share: more than noise lets it be off.
    assert np.abs(error[[k for k in friction if estimate.names[k].endswith(".coulomb")]]).min() > 0.04
    assert np.abs(error[friction] / estimate.standard_deviations[friction]).max() < 2.6
    assert np.mean(np.abs(error[friction] / estimate.standard_deviations[friction]) < 1.96) > 0.8


def test_a_stored_result_frees_other_recordings_from_them(tmp_path) -> None:
    result = identified(gain=0.1)
    result.save(tmp_path / "stored")
    again = armid.load_result(tmp_path / "stored")
    robot, truth = specimen()
    third = spoiled(log(robot, truth, seed=9), gain=0.1)
    samples = condition(third, robot, Conditioning(cutoff=result.conditioning.cutoff_hz))
    (run,) = runs_of(samples, robot, EFFECTS, shapes=result.shapes)
    assert again.imperfections is not None
    assert result.imperfections is not None
    np.testing.assert_allclose(again.imperfections.corrected(run).y, result.imperfections.corrected(run).y, rtol=1e-12)
    assert armid.validate(again, third).relative_error < 1.3 * result.relative_error["held_out"]


def test_every_family_has_a_tolerance_and_a_unit() -> None:
    assert set(KINDS) == set(Family)
    assert all(kind.tolerance > 0.0 and kind.unit for kind in KINDS.values())


def test_tolerances_of_torque_and_rotors_grow_with_the_arm() -> None:
    run, pi = a_run()
    small = reference_of(run, pi)
    large = replace(small, size=100.0 * small.size, acceleration=0.5 * small.acceleration)
    robot = run.source.robot  # type: ignore[attr-defined]
    effects = Effects(viscous=True, coulomb=True)
    for family, factor in ((Family.ROTOR, 200.0), (Family.STRIBECK, 100.0), (Family.DRIFT, 100.0), (Family.GAIN, 1.0)):
        ours, theirs = (imperfections(robot, effects, reference, [family])[0] for reference in (small, large))
        assert theirs.tolerance == pytest.approx(factor * ours.tolerance)


def test_words_say_which_families_and_how_large() -> None:
    assert tolerances_of("none").families == ()
    said = tolerances_of("gain,zero", ["gain=2%", "zero=0.5deg,delay=2ms"])
    assert said.families == (Family.GAIN, Family.ZERO)
    assert said.base == pytest.approx({Family.GAIN: 0.02, Family.ZERO: np.radians(0.5), Family.DELAY: 0.002})
    item = Imperfection(family=Family.GAIN, joint=0, unit="1", tolerance=0.05)
    assert said.applied(item).tolerance == pytest.approx(0.02)


@pytest.mark.parametrize("text", ["gain", "gain=", "gain=-1%", "gain=much"])
def test_a_tolerance_without_a_size_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="gain=2%"):
        tolerances_of("all", text)


def test_an_unknown_family_is_refused_with_those_that_exist() -> None:
    with pytest.raises(UnknownNameError, match="stribeck"):
        tolerances_of("gains")


def test_a_larger_fault_is_surer() -> None:
    # Beside its own residuals both would be as many deviations from zero.
    small, large = (identified(gain=size).faults["gain of shoulder"] for size in (0.15, 0.6))
    assert small.answer is Answer.FOUND
    assert large.answer is Answer.FOUND
    assert large.estimate / large.standard_deviation > 2.0 * small.estimate / small.standard_deviation


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("gain of shoulder", {"gain": 0.3}),
        ("zero of shoulder", {"zero": float(np.radians(10.0))}),
        ("scale of shoulder", {"scale": 0.1}),
        ("clock", {"clock": -0.1}),
        ("delay of shoulder", {"delay": 0.04}),
        ("delay of shoulder", {"delay": 0.1}),
    ],
)
def test_a_large_fault_is_found_sized_and_can_be_undone(name: str, fault: dict[str, float]) -> None:
    planted = next(iter(fault.values()))
    result = identified(**fault)
    found = [f for f in result.faults if f.answer is Answer.FOUND]
    assert found[0].name == name
    assert found[0].large
    assert found[0].low < planted < found[0].high
    assert found[0].held_out_change < 0.0
    assert found[0].words
    again = identified(correct=True, **fault)
    assert again.faults[name].corrected
    assert again.relative_error["held_out"] < 1.1 * clean().relative_error["held_out"]


def test_a_clock_that_runs_fast_may_be_missing_weight_and_neither_is_undone_unasked() -> None:
    """Without velocities both are the same to the torque, and the description here is too far off to tell."""
    faults = identified(clock=0.1, correct=True).faults
    assert faults["clock"].answer is Answer.FOUND
    assert "weight" in faults["clock"].rivals
    assert not faults["clock"].corrected
    assert "as much as clock" in faults["weight"].experiment


def test_a_drift_is_held_against_the_noise_without_it() -> None:
    """The larger of two is as sure as the smaller, and both are sized."""
    robot, truth = specimen()
    clean, other = (log(robot, truth, seed=seed) for seed in (3, 5))
    sure = []
    for size in (2.0, 8.0):
        torque = np.array(clean[Channel.LINK_TORQUE])
        torque[:, 1] += size * (clean.time / clean.time[-1] - 0.5)
        drifting = replace(clean, channels={**clean.channels, Channel.LINK_TORQUE: torque})
        settings = Identification(effects=EFFECTS, sensitivity=False, imperfections=ImperfectionTolerances(families=()))
        found = run_identification(robot, [drifting], [other], settings).faults["drift of shoulder"]
        assert found.answer is Answer.FOUND
        # Ends of a recording are trimmed, and the drift of what is left is smaller.
        assert 0.9 * size < found.estimate < 1.02 * size
        sure.append(found.estimate / found.standard_deviation)
    assert sure[1] > sure[0]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("gain of elbow", {"gain": 0.1}),
        ("zero of elbow", {"zero": float(np.radians(2.0))}),
        ("scale of elbow", {"scale": 0.02}),
        ("clock", {"clock": 0.02}),
    ],
)
def test_a_fault_of_twice_its_tolerance_is_not_excluded(name: str, fault: dict[str, float]) -> None:
    told = identified(joint=2, **fault).faults[name]
    assert told.answer is not Answer.EXCLUDED or told.bound > next(iter(fault.values()))


def test_faults_are_looked_for_whatever_the_method_and_friction() -> None:
    robot, truth = specimen()
    logs = [spoiled(log(robot, truth, seed=seed), gain=0.3) for seed in (3, 5)]
    plain = Identification(effects=EFFECTS, sensitivity=False)
    shaped = replace(EFFECTS, asymmetric=True)
    for settings in (replace(plain, method=Method.HUBER), replace(plain, effects=shaped)):
        faults = run_identification(robot, logs[:1], logs[1:], settings).faults
        assert faults["gain of shoulder"].answer is Answer.FOUND


def test_a_clean_recording_has_bounds_and_what_it_cannot_tell() -> None:
    faults = clean().faults
    assert not [f for f in faults if f.answer is Answer.FOUND]
    # A vertical first axis: its zero turns the whole arm in the room and no torque changes.
    assert faults["zero of waist"].answer is Answer.UNDECIDABLE
    assert "reference" in faults["zero of waist"].experiment
    assert faults["common gain"].answer is Answer.UNDECIDABLE
    excluded = faults["gain of shoulder"]
    assert excluded.answer is Answer.EXCLUDED
    assert excluded.bound < 3 * 0.05


def test_corrections_in_a_row_are_undone_in_a_row() -> None:
    run, pi = a_run()
    reference = reference_of(run, pi)
    item = Imperfection(family=Family.GAIN, joint=0, unit="1", tolerance=0.05)
    one = Imperfections(
        joints=run.channels, sizes=(Sized(item, 0.5, 0.0),), names=run.source.columns, reference=reference
    )
    two = replace(one, before=one)
    np.testing.assert_allclose(two.corrected(run).y[:, 0], run.y[:, 0] / 1.5**2, rtol=1e-12)
    assert two.corrected(run).torque_scale[0] == pytest.approx(1.5**2)
    assert Imperfections.from_dict(two.as_dict()).before is not None


def test_files_and_predictions_say_what_recordings_were_freed_from(tmp_path) -> None:
    result = identified(gain=0.1)
    assert result.imperfections is not None
    said = result.imperfections.sentences()
    assert "gain of shoulder" in said[0]
    result.save(tmp_path / "result")
    robot, truth = specimen()
    other = armid.validate(str(tmp_path / "result"), spoiled(log(robot, truth, seed=9), gain=0.1))
    assert other.as_dict()["freed_from"] == list(said)
    assert "gain of shoulder" in other.summary()
    written = result.export(tmp_path / "arm.urdf", force=True)
    text = "".join(path.read_text() for path in tmp_path.glob("arm*.urdf"))
    assert "gain of shoulder" in text, written


def test_a_sensor_file_is_written_read_and_undone(tmp_path) -> None:
    run, pi = a_run()
    robot = run.source.robot  # type: ignore[attr-defined]
    items = [
        Imperfection(family=Family.GAIN, joint=1, unit="1", tolerance=0.05),
        Imperfection(family=Family.ZERO, joint=2, unit="rad", tolerance=0.02),
    ]
    found = Imperfections(
        joints=run.channels,
        sizes=(Sized(items[0], 0.1, 0.01), Sized(items[1], 0.02, 0.001)),
        names=run.source.columns,
        reference=reference_of(run, pi),
    )
    path = tmp_path / "sensors.yaml"
    path.write_text(sensor_text(replace(found, before=found)))
    again = read_sensors(path, robot)
    assert again.size(Family.GAIN, 1) == pytest.approx(1.1**2 - 1.0)
    assert again.size(Family.ZERO, 2) == pytest.approx(0.04)
    np.testing.assert_allclose(again.corrected(run).y, replace(found, before=found).corrected(run).y, rtol=1e-5)
    path.write_text("schema: armid.sensors/1\njoints:\n  nobody: {gain: 0.1}\n")
    with pytest.raises(UnknownNameError, match="shoulder"):
        read_sensors(path, robot)
    path.write_text("schema: armid.sensors/1\njoints:\n  waist: {gain: much}\n")
    with pytest.raises(InputError, match="gain of waist"):
        read_sensors(path, robot)


def test_a_delay_of_a_sensor_file_moves_the_recorded_torque(tmp_path) -> None:
    run, _ = a_run(n=400)
    t = np.arange(400) / run.rate
    y = np.column_stack([np.sin(t)] * len(run.channels))
    path = tmp_path / "sensors.yaml"
    path.write_text("schema: armid.sensors/1\njoints:\n  waist: {delay: 0.01}\n")
    moved = read_sensors(path, run.source.robot).corrected(replace(run, y=y))  # type: ignore[attr-defined]
    np.testing.assert_allclose(moved.y[5:-5, 0], np.sin(t[5:-5] + 0.01), atol=1e-4)
    np.testing.assert_array_equal(moved.y[:, 1], y[:, 1])


def test_an_encoder_out_of_round_in_a_sensor_file_is_made_round(tmp_path) -> None:
    run, pi = a_run()
    robot, n = run.source.robot, len(run.channels)  # type: ignore[attr-defined]
    item = Imperfection(family=Family.ECCENTRICITY, joint=1, part=SINE, unit="rad", tolerance=0.01)
    found = Imperfections(
        joints=run.channels, sizes=(Sized(item, 0.1, 0.01),), names=run.source.columns, reference=reference_of(run, pi)
    )
    q, qd, qdd = np.array(run.inputs[:, 1 : 3 * n : n]).T
    read = np.array(run.inputs)
    read[:, 1 : 3 * n : n] = np.column_stack(
        [
            q + 0.1 * np.sin(q),
            qd * (1.0 + 0.1 * np.cos(q)),
            qdd * (1.0 + 0.1 * np.cos(q)) - 0.1 * np.sin(q) * qd**2,
        ]
    )
    path = tmp_path / "sensors.yaml"
    path.write_text(sensor_text(found))
    again = read_sensors(path, robot).corrected(replace(run, inputs=read))
    np.testing.assert_allclose(again.inputs[:, : 3 * n], run.inputs[:, : 3 * n], atol=1e-9)


@pytest.mark.parametrize("late", [-0.1, 0.004, 0.25])
def test_torque_that_was_late_is_moved_back_exactly_to_the_last_sample(late: float) -> None:
    """Inside from what was recorded, at the ends from the model; straight lines or the first order would miss by far."""
    run, pi = a_run(n=400)
    t = np.arange(400) / run.rate

    def along(times: FloatArray) -> tuple[FloatArray, FloatArray]:
        waves = np.sin(np.outer(times, np.linspace(1.0, 3.0, run.inputs.shape[1])) + np.arange(run.inputs.shape[1]))
        return waves, evaluate_rows(TorqueRows(run.source.robot, Effects()), waves) @ pi[:n_links]  # type: ignore[attr-defined]

    n_links = len(TorqueRows(run.source.robot, Effects()).columns)  # type: ignore[attr-defined]
    waves, torque = along(t)
    recorded = np.array(torque)
    recorded[:, 1] = along(t - late)[1][:, 1]
    source = TorqueRows(run.source.robot, Effects())  # type: ignore[attr-defined]
    run = Run(
        name="run",
        source=source,
        inputs=waves,
        y=recorded,
        y_raw=recorded,
        rate=run.rate,
        segments=((0, 150), (150, 400)),
    )
    item = Imperfection(family=Family.DELAY, joint=1, unit="s", tolerance=0.003)
    found = Imperfections(
        joints=run.channels,
        sizes=(Sized(item, late, 0.0),),
        names=source.columns,
        reference=reference_of(run, pi[:n_links]),
        moves=True,
    )
    moved = found.corrected(run)
    np.testing.assert_allclose(moved.y, torque, atol=1e-4 * np.abs(torque).max())
    np.testing.assert_array_equal(moved.y, moved.y_raw)


def test_one_joint_of_fourteen_must_explain_half_of_what_one_of_seven_must() -> None:
    assert [share_of_channels(count) for count in (2, 7, 14)] == [1.0, 1.0, 0.5]
