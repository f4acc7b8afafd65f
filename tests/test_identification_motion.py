"""Rest, repetition and extrapolation of motions, on runs made for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.arrays import FloatArray
from armid.estimation.recording import rows_of
from armid.estimation.run import Run
from armid.identification.motion import (
    MotionSums,
    SoughtWindows,
    at_rest,
    beyond_static,
    largest_speeds,
    on_grid,
    windows_of,
)
from armid.identification.moving import in_motion, moving_rows
from armid.identification.pipeline import run_identification
from armid.identification.result_tables import error_table
from armid.identification.settings import Identification
from armid.identification.torque_error import ErrorSums
from armid.logs import Channel, Log
from armid.outcome import Verdict
from armid.parameters.effects import Effects
from armid.robot.load import load_robot
from support.identified import EFFECTS, log, trusted, urdf_file

RATE = 100.0


def course(seed: int, seconds: float = 20.0, joints: int = 3) -> FloatArray:
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * RATE)) / RATE
    w = 2 * np.pi / 20.0 * np.arange(1, 6)
    a, b = rng.normal(size=(2, 5, joints)) / np.arange(1, 6)[:, np.newaxis]
    return np.sin(np.outer(t, w)) @ a + np.cos(np.outer(t, w)) @ b


def repeated_share(known: FloatArray, tested: FloatArray, *, rate: float = RATE) -> float:
    sought = SoughtWindows.among(windows_of(on_grid(rate, tested)), known.min(axis=0), known.max(axis=0))
    return float(np.mean(sought.within(on_grid(RATE, known)))) if sought.windows else np.nan


def test_a_motion_recorded_again_repeats_and_another_one_does_not() -> None:
    rng = np.random.default_rng(0)
    first = course(1)
    again = first + rng.normal(0, 1e-4, first.shape)
    assert repeated_share(first, again) == 1.0
    assert repeated_share(first, again[137:]) == 1.0  # rows cut off at the start
    assert repeated_share(first, course(2)) == 0.0
    assert repeated_share(first, first[::2]) == 0.0  # twice as fast is another motion
    half = np.concatenate([first[:1000], course(2)[:1000]])
    assert repeated_share(first, half) == pytest.approx(0.5, abs=0.15)
    assert np.isnan(repeated_share(first, np.zeros((500, 3))))


@pytest.mark.parametrize("rate", [RATE / 2, RATE / 3, 1.25 * RATE, 0.77 * RATE, 31.0])
def test_a_motion_at_another_rate_is_the_same_motion(rate: float) -> None:
    first = course(1)
    own = np.arange(len(first)) / RATE
    times = np.arange(0.0, own[-1], 1.0 / rate) + 0.3 / rate
    again = np.column_stack([np.interp(times, own, joint) for joint in first.T])
    assert repeated_share(first, again, rate=rate) == 1.0
    assert repeated_share(first, again, rate=1.5 * rate) == 0.0  # played faster it is another one


def resting_run(coulomb: float, held: float) -> tuple[Run, FloatArray]:
    """A motion that stops half-way, with a torque within friction held at rest; and its parameters."""
    robot = load_robot(str(urdf_file()))
    source = rows_of(robot, Effects(coulomb=True), True)
    t = np.arange(1000) / RATE
    q = np.where(t[:, np.newaxis] < 5.0, np.sin(2 * np.pi * t[:, np.newaxis] * [0.3, 0.5, 0.7]), [0.0, 0.0, 0.0])
    qd = np.gradient(q, 1 / RATE, axis=0)
    qd[495:] = 0.0
    inputs = np.column_stack([q, qd, np.zeros_like(q), np.sign(qd)])
    standard = np.array([coulomb if "coulomb" in name else 0.0 for name in source.columns])
    run = Run(name="rest", source=source, inputs=inputs, y=np.zeros((1000, 3)), rate=RATE)
    y = run.predicted(standard)
    y[500:] += held
    return replace(run, y=y), standard


def test_torque_held_at_rest_within_friction_is_no_error() -> None:
    run, standard = resting_run(coulomb=2.0, held=1.5)
    rest = at_rest(run, largest_speeds([run]))
    assert rest[520:].all()
    assert rest[:480].mean() < 0.05
    left = beyond_static(run, run.residuals(standard), standard, rest)
    np.testing.assert_allclose(left[rest.all(axis=1)], 0.0, atol=1e-9)
    run, standard = resting_run(coulomb=2.0, held=3.0)
    left = beyond_static(run, run.residuals(standard), standard, rest)
    np.testing.assert_allclose(left[500:], 1.0, atol=1e-9)


def resting_log(seed: int, share: float, *, hold: float = 0.0, weight: float = 0.0) -> Log:
    """The fixture's motion that stops after a part of the time; then friction holds a torque, or the weight is another."""
    robot = load_robot(str(urdf_file()))
    whole = log(robot, trusted().robot, seed=seed)
    stop = int((1.0 - share) * len(whole.time))
    rng = np.random.default_rng(seed)
    channels = dict(whole.channels)
    # A slow stop within half a second, then rest at the last pose.
    t = np.arange(len(whole.time))
    phase = np.minimum(t, stop + 25.0 * (1.0 - np.exp(-np.maximum(t - stop, 0) / 25.0)))
    for channel in (Channel.POSITION, Channel.LINK_TORQUE):
        values = np.column_stack([np.interp(phase, t, column) for column in np.asarray(channels[channel]).T])
        channels[channel] = values + rng.normal(0, 1e-5 if channel is Channel.POSITION else 0.05, values.shape)
    torque = np.array(channels[Channel.LINK_TORQUE])
    torque[stop + 150 :] += hold + weight
    return replace(whole, name=f"rest{seed}", channels={**channels, Channel.LINK_TORQUE: torque})


def test_a_held_out_motion_mostly_at_rest_neither_condemns_nor_hides() -> None:
    robot = load_robot(str(urdf_file()))
    train = log(robot, trusted().robot, seed=3)
    settings = Identification(effects=EFFECTS, sensitivity=False)
    held = run_identification(robot, [train], [resting_log(5, 0.6, hold=0.6)], settings)
    assert all(m.rest_share > 0.4 for m in held.evidence.held_out)  # type: ignore[union-attr]
    assert not [c for c in held.checks if c.code == "joint-at-rest"]
    wrong = run_identification(robot, [train], [resting_log(5, 0.6, weight=12.0)], settings)
    assert wrong.verdict is Verdict.UNTRUSTED
    assert "joint-at-rest" in [c.code for c in wrong.checks if not c.passed]


def a_run(n: int) -> Run:
    """Random motion of three joints, none of them slow for long."""
    rows = rows_of(load_robot(str(urdf_file())), Effects(), False)
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(n, len(rows.inputs)))
    inputs[:, 3:6] = np.copysign(1.0, inputs[:, 3:6])
    return Run(name="run", source=rows, inputs=inputs, y=rng.normal(size=(n, 3)), rate=100.0)


def test_rows_at_which_the_whole_arm_stands_still_are_left_out() -> None:
    run = a_run(600)
    n = 3
    inputs = np.array(run.inputs)
    inputs[100:300, n : 2 * n] = 0.0
    inputs[400:500, n] = 0.0  # one joint alone
    run = replace(run, inputs=inputs, segments=((0, 200), (200, 600)), reversals=(np.array([50.5, 250.5, 350.5]),) * n)
    kept = moving_rows(run, np.ones(n))
    np.testing.assert_array_equal(kept.y, np.concatenate([run.y[:100], run.y[300:]]))
    assert kept.segments == ((0, 100), (100, 400))
    assert kept.reversals[0].tolist() == [50.5, 150.5]
    assert moving_rows(kept, np.ones(n)) is kept


def test_pieces_at_rest_alone_are_as_good_as_gone_and_a_log_without_motion_stays() -> None:
    run = a_run(600)
    still = replace(run, inputs=np.where(np.arange(run.inputs.shape[1]) // 3 == 1, 0.0, run.inputs))
    assert [len(part) for part in in_motion((run, still))] == [600, 1]
    assert in_motion((still,))[0] is still
    short = a_run(200)
    assert in_motion((short, still))[1] is still


def test_what_friction_holds_after_a_training_motion_is_not_learnt() -> None:
    robot = load_robot(str(urdf_file()))
    settings = Identification(effects=EFFECTS, sensitivity=False)
    held_out = log(robot, trusted().robot, seed=5)
    little, much = (
        run_identification(robot, [resting_log(3, 0.6, hold=hold)], [held_out], settings).relative_error["held_out"]
        for hold in (0.6, 2.0)
    )
    assert much == pytest.approx(little, rel=1e-3)


@pytest.mark.parametrize(
    ("constant", "offset", "left"), [(10.0, 10.0, 0.0), (10.0, 16.0, 0.0), (10.0, 4.0, 6.0), (10.0, -4.0, 10.0)]
)
def test_torque_is_without_what_the_offset_makes_of_its_mean(constant: float, offset: float, left: float) -> None:
    source = rows_of(load_robot(str(urdf_file())), Effects(offset=True), False)
    run = a_run(600)
    y = run.y - run.y.mean(axis=0) + constant
    run = replace(run, source=source, inputs=run.inputs[:, : len(source.inputs)], y=y)
    standard = np.array([offset if name.endswith(".offset") else 0.0 for name in source.columns])
    sums = MotionSums(run.channels, np.ones(3), standard)
    for part in (run.window(0, 250), run.window(250, 600)):
        one = MotionSums(run.channels, np.ones(3), standard)
        one.add(part, part.residuals(standard))
        sums.merge(one)
    for joint, spread in zip(sums.joints(), y.std(axis=0), strict=True):
        assert joint.offset == pytest.approx(offset)
        assert joint.torque_moving == pytest.approx(np.hypot(spread, left))


def with_other_torque(whole: Log, constant: float) -> Log:
    """The waist's torque is another quantity: a constant and a wave that has nothing to do with its motion."""
    torque = np.array(whole[Channel.LINK_TORQUE])
    torque[:, 0] = constant + np.sin(2.0 * np.pi * 0.37 * whole.time)
    return replace(whole, channels={**whole.channels, Channel.LINK_TORQUE: torque})


@pytest.mark.parametrize("constant", [0.0, 10.0, 100.0])
def test_a_joint_is_not_explained_by_a_constant_that_no_body_makes(constant: float) -> None:
    robot = load_robot(str(urdf_file()))
    settings = Identification(effects=EFFECTS, sensitivity=False)
    one, other = (with_other_torque(log(robot, trusted().robot, seed=seed), constant) for seed in (3, 5))
    found = run_identification(robot, [one], [other], settings)
    assert "joint-unexplained" in [check.code for check in found.checks if check.subject == "waist"]
    assert found.verdict is Verdict.UNTRUSTED


def test_an_offset_beside_a_torque_that_is_explained_changes_no_verdict() -> None:
    robot = load_robot(str(urdf_file()))
    settings = Identification(effects=EFFECTS, sensitivity=False)

    def shifted(seed: int) -> Log:
        whole = log(robot, trusted().robot, seed=seed)
        return replace(whole, channels={**whole.channels, Channel.LINK_TORQUE: whole[Channel.LINK_TORQUE] + 30.0})

    found = run_identification(robot, [shifted(3)], [shifted(5)], settings)
    assert found.verdict is Verdict.TRUSTED
    assert {round(joint.offset / 30.0, 1) for joint in found.evidence.held_out} == {1.0}  # type: ignore[union-attr]


def test_errors_in_motion_are_told_in_recorded_units_as_all_errors_are() -> None:
    """A gain that was undone made the error in motion another one than the error of the same samples."""
    run, standard = resting_run(coulomb=0.0, held=0.0)
    inputs = np.array(run.inputs)
    inputs[495:, 3:6] = 1.0
    run = replace(run, inputs=inputs, torque_scale=(1.25, 1.0, 0.5))
    residual = np.tile([0.1, 0.2, 0.3], (len(run), 1))
    whole, moving = ErrorSums(run.channels), MotionSums(run.channels, largest_speeds([run]), standard)
    for sums in (whole, moving):
        sums.add(run, residual)
    assert all(one.rest_share == 0.0 for one in moving.joints())
    assert [one.rmse_moving for one in moving.joints()] == pytest.approx([e.rmse for e in whole.errors().values()])
    assert moving.joints()[2].rmse_moving == pytest.approx(0.15)


def test_the_relative_error_of_the_table_is_the_one_that_is_judged() -> None:
    """A joint that rests most of the time was listed with 87 % of its torque beside `trusted`."""
    result = trusted()
    assert result.evidence is not None
    first, *others = result.evidence.held_out
    resting = replace(first, rmse_moving=0.1, torque_moving=2.0, rest_share=0.9)
    wide = replace(result.joints[0], held_out=replace(result.joints[0].held_out, relative=0.87))
    known = replace(
        result, evidence=replace(result.evidence, held_out=(resting, *others)), joints=(wide, *result.joints[1:])
    )
    table = error_table(known, {})
    shown = dict(zip(table.header, table.rows[0], strict=True))
    assert shown["relative"] == "5.0 %"
    assert known.as_dict()["joints"][0]["relative_error_moving_held_out"] == pytest.approx(0.05)
    assert known.as_dict()["joints"][0]["relative_error_held_out"] == 0.87


def test_a_joint_that_never_moves_has_no_relative_error() -> None:
    result = trusted()
    assert result.evidence is not None
    first, *others = result.evidence.held_out
    still = replace(first, rmse_moving=np.nan, torque_moving=np.nan, rmse_rest=0.0, torque_rest=1.0, rest_share=1.0)
    table = error_table(replace(result, evidence=replace(result.evidence, held_out=(still, *others))), {})
    assert dict(zip(table.header, table.rows[0], strict=True))["relative"] == ""
