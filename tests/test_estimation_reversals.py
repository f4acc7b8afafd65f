"""Near a joint's own reversal: classes of noise, and friction that turns around over a range of velocity."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import armid
import armid.logs.conditioning
from armid.estimation.covariance import AutocorrelatedNoise
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.recording import runs_of
from armid.estimation.reversals import class_names, classed_information, noise_along, reversal_times, row_classes
from armid.estimation.robust import RobustLeastSquares, Tukey
from armid.estimation.run import Run, information_of
from armid.identifiability.structure import structural_base
from armid.information.status import Status
from armid.information.storage import load, save
from armid.kernels.dynamics import inverse_dynamics
from armid.logs.conditioning import Conditioning
from armid.logs.log import Channel, Log
from armid.parameters.effects import effects_of
from armid.robot.load import load_robot
from armid.robot.robot import Robot

ARM = load_robot("cmu-dd-arm2")
EFFECTS = effects_of("viscous,coulomb")
VISCOUS, COULOMB, WIDTH = 0.8, 1.5, 0.010
SECONDS, RATE = 12.0, 500.0


def turning_motion(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Time, position, velocity, acceleration at 500 Hz of joints that linger at each reversal, as under a position controller.

    v = u - c tanh(u / c) follows a smooth u but for its crossings of zero, where it stays for a while.
    """
    fine = 8
    rng = np.random.default_rng(seed)
    t = np.arange(int(SECONDS * RATE * fine)) / (RATE * fine)
    frequency = 2.0 * np.pi * rng.uniform(0.2, 1.4, size=(ARM.n_joints, 3))
    phase = rng.uniform(0.0, 2.0 * np.pi, size=frequency.shape)
    angle = frequency * t[:, None, None] + phase
    u, slope = np.sin(angle).sum(axis=2), (frequency * np.cos(angle)).sum(axis=2)
    linger = 0.08
    v, a = u - linger * np.tanh(u / linger), slope * np.tanh(u / linger) ** 2
    q = np.vstack([np.zeros(ARM.n_joints), np.cumsum(0.5 * (v[1:] + v[:-1]), axis=0)]) / (RATE * fine)
    return t[::fine], q[::fine], v[::fine], a[::fine]


def turning_log(seed: int = 0, noise: float = 0.0) -> Log:
    """Torque of smooth Coulomb friction along that motion."""
    t, q, v, a = turning_motion(seed)
    tau = inverse_dynamics(ARM, q, v, a) + VISCOUS * v + COULOMB * np.tanh(v / WIDTH)
    tau += np.random.default_rng(seed).normal(0.0, noise, size=tau.shape) if noise else 0.0
    channels = {Channel.POSITION: q, Channel.LINK_TORQUE: tau}
    return Log(name=f"turning {seed}", joints=tuple(ARM.joint_names), time=t, channels=channels, named=True)


def planted_run(robot: Robot, seed: int, *, near: float) -> tuple[Run, np.ndarray]:
    """A run with white noise on the torque of its own rows, `near` times larger next to reversals; and its parameters."""
    samples = armid.logs.conditioning.condition(turning_log(seed), robot, Conditioning(cutoff=40.0))
    (run,) = runs_of(samples, robot, EFFECTS)
    truth = np.array([c.endswith("viscous") * VISCOUS + c.endswith("coulomb") * COULOMB for c in run.source.columns])
    rng = np.random.default_rng(seed + 100)
    classes = row_classes(run)
    assert classes is not None
    size = np.where(classes == 1, near, 1.0)
    return run.with_measured(run.predicted(truth) + 0.05 * size * rng.normal(size=run.y.shape)), truth


def test_a_reversal_lies_where_the_velocity_crosses_zero() -> None:
    qd = np.array([1.0, 0.5, -0.5, -1.0, -0.25, 0.75])
    assert reversal_times(qd) == pytest.approx([1.5, 4.25])
    assert reversal_times(qd, start=10) == pytest.approx([11.5, 14.25])
    assert len(reversal_times(np.ones(5))) == 0


def test_classes_are_times_to_the_nearest_reversal() -> None:
    run, _ = planted_run(ARM, 0, near=1.0)
    classes = row_classes(run)
    assert classes is not None
    away = np.abs(np.arange(len(run))[:, None] - run.reversals[1][None]).min(axis=1) / run.rate
    assert np.all(away[classes[:, 1] == 1] <= 0.025)
    assert np.all((away[classes[:, 1] == 2] > 0.025) & (away[classes[:, 1] == 2] <= 0.050))
    assert np.all(away[classes[:, 1] == 0] > 0.100)


def test_a_window_keeps_its_classes() -> None:
    run, _ = planted_run(ARM, 0, near=1.0)
    whole, part = row_classes(run), row_classes(run.window(700, 1400))
    assert whole is not None
    assert part is not None
    assert np.array_equal(part, whole[700:1400])


def test_classes_put_together_are_the_whole() -> None:
    run, _ = planted_run(ARM, 0, near=3.0)
    classed, whole = classed_information([run]), information_of([run])
    assert len(classed.channels) > len(whole.channels)
    pooled = classed.pooled()
    assert [c.name for c in pooled.channels] == [c.name for c in whole.channels]
    assert pooled.count == whole.count
    # Squares of the rows agree to round-off whatever the order they were added in.
    assert np.allclose(pooled.gram(), whole.gram(), rtol=1e-9, atol=1e-9 * np.abs(whole.gram()).max())


def test_classes_survive_storage(tmp_path: Path) -> None:
    run, _ = planted_run(ARM, 0, near=3.0)
    information = classed_information([run])
    save(information, tmp_path / "rows")
    again = load(tmp_path / "rows")
    assert [(c.name, c.whole) for c in again.channels] == [(c.name, c.whole) for c in information.channels]


def test_larger_noise_near_reversals_is_found_and_weighted() -> None:
    errors = {"classes": 0.0, "whole": 0.0}
    for seed in range(3):
        run, truth = planted_run(ARM, seed, near=8.0)
        base = structural_base(run.source)
        true = base.values(truth)
        both = {"classes": classed_information([run]), "whole": information_of([run])}
        for name, information in both.items():
            estimate = WeightedLeastSquares().fit(information, base)
            errors[name] += float(np.sum(((estimate.values - true) / np.abs(true).max()) ** 2))
            if name == "classes":
                far, nearest = (estimate.sigma[k] for k in class_names(run.channels[0])[:2])
                assert nearest / far == pytest.approx(8.0, rel=0.25)
                assert np.unique(noise_along(run, estimate.sigma)[:, 0]).size >= 2
    assert errors["classes"] < 0.8 * errors["whole"]


def test_classes_without_a_difference_share_one_noise() -> None:
    run, _ = planted_run(ARM, 0, near=1.0)
    estimate = WeightedLeastSquares().fit(classed_information([run]), structural_base(run.source))
    for channel in run.channels:
        shared = {estimate.sigma[name] for name in class_names(channel) if name in estimate.sigma}
        assert len(shared) == 1


def test_intervals_cover_when_noise_is_larger_near_reversals() -> None:
    hits = []
    for seed in range(4):
        run, truth = planted_run(ARM, seed, near=8.0)
        base = structural_base(run.source)
        estimate = WeightedLeastSquares().fit(classed_information([run]), base)
        low, high = AutocorrelatedNoise().apply(estimate, [run]).interval()
        true = base.values(truth)
        hits += list((low <= true) & (true <= high))
    # 95 % of some 60 intervals; 85 % lies more than three deviations below.
    assert np.mean(hits) > 0.85


@pytest.fixture(scope="module")
def identified() -> armid.Result:
    return armid.identify(
        ARM, turning_log(0, 0.02), validate=turning_log(1, 0.02), friction="viscous,coulomb", sensitivity=False
    )


def test_the_default_finds_that_friction_turns_around_over_a_range_of_velocity(identified: armid.Result) -> None:
    widths = identified.conditioning.friction_width
    assert all(width == pytest.approx(WIDTH, rel=0.6) for width in widths)  # candidates lie a factor of two apart
    friction = {name: value for name, value in zip(identified.estimate.names, identified.estimate.values, strict=True)}
    assert [friction[f"joint{j + 1}.coulomb"] for j in range(3)] == pytest.approx([COULOMB] * 3, rel=0.02)


def test_the_width_is_stored_and_used_again(identified: armid.Result, tmp_path: Path) -> None:
    identified.save(tmp_path / "result")
    again = armid.load_result(tmp_path / "result")
    assert again.shapes.widths == identified.shapes.widths
    validated = armid.validate(again, turning_log(1, 0.02))
    assert validated.relative_error == pytest.approx(identified.relative_error["held_out"], rel=0.05)


def test_the_search_for_smooth_friction_finds_a_planted_width() -> None:
    result = armid.identify(
        ARM,
        turning_log(0, 0.02),
        validate=turning_log(1, 0.02),
        friction="viscous,coulomb,smooth",
        sensitivity=False,
    )
    assert result.friction is not None
    for scale in result.friction.scales.values():
        assert scale.value == pytest.approx(WIDTH, rel=0.15)


def test_velocity_between_samples_knows_what_the_low_pass_took() -> None:
    log = turning_log(0)
    samples = armid.logs.conditioning.condition(log, ARM, Conditioning(cutoff=10.0))
    between = samples.velocities_between
    assert between is not None
    _, _, v, _ = turning_motion(0)
    truth = np.array([np.interp(samples.time, log.time, v[:, j]) for j in range(ARM.n_joints)]).T
    middle = between[:, between.shape[1] // 2]
    assert np.abs(middle - truth).max() < 0.5 * np.abs(samples.qd - truth).max()


def test_robust_weights_settle_or_say_what_to_do() -> None:
    run, _ = planted_run(ARM, 0, near=8.0)
    base = structural_base(run.source)
    settled = RobustLeastSquares(Tukey()).fit([run], base).estimate
    assert settled.status is Status.SOLVED
    hurried = RobustLeastSquares(Tukey(), iterations=1).fit([run], base).estimate
    (note,) = [note for note in hurried.notes if note.code == "not-converged"]
    assert "--method wls" in note.message


def test_a_joint_that_stands_still_stays_one_channel() -> None:
    run, _ = planted_run(ARM, 0, near=1.0)
    jitter = tuple(np.arange(len(run)) + 0.5 if c == 0 else times for c, times in enumerate(run.reversals))
    still = replace(run, reversals=jitter)
    information = classed_information([still])
    names = [channel.name for channel in information.channels]
    assert names[0] == run.channels[0]
    assert not set(class_names(run.channels[0])[1:]) & set(names)
    assert set(class_names(run.channels[1])[1:]) <= set(names)
    assert information.channels[0].count == len(run)
    sigma = {name: float(k + 1) for k, name in enumerate(names)}
    assert np.all(noise_along(still, sigma)[:, 0] == 1.0)


def test_rows_near_reversals_that_happen_to_fit_do_not_take_the_estimate_over() -> None:
    run, truth = planted_run(ARM, 0, near=0.0)
    base = structural_base(run.source)
    information = classed_information([run])
    estimate = WeightedLeastSquares().fit(information, base)
    for channel in run.channels:
        assert len({estimate.sigma[name] for name in class_names(channel) if name in estimate.sigma}) == 1
    # No row weighs more than far from reversals on the way there either: a few that are fitted exactly leave the others no say.
    values, sigma = WeightedLeastSquares().quick(information, base)
    assert all(sigma[name] >= sigma[c] for c in run.channels for name in class_names(c) if name in sigma)
    assert values == pytest.approx(base.values(truth), abs=0.05 * np.abs(truth).max())
