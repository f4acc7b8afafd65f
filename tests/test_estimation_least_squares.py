"""The least-squares family against constructed problems, each other and their limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armid.closed_loop.bodies import nearest_bodies
from armid.consistency.prior import nominal_prior
from armid.errors import InputError, UnknownNameError
from armid.estimation.covariance import textbook_deviations
from armid.estimation.essential import BackwardElimination, Rule
from armid.estimation.estimate import identification_notes
from armid.estimation.folds import k_fold, leave_one_out, motions
from armid.estimation.instrumental import InstrumentalVariables
from armid.estimation.least_squares import (
    GaussianPrior,
    OrdinaryLeastSquares,
    Ridge,
    TorqueError,
    WeightedLeastSquares,
)
from armid.estimation.robust import Huber, RobustLeastSquares, Tukey
from armid.estimation.run import Run, information_of
from armid.estimation.total_least_squares import TotalLeastSquares, mixed_total_least_squares
from armid.identification.closed_loop import ClosedLoop
from armid.information.information import triangular
from armid.information.status import EstimationError, Status
from armid.kernels.evaluate import evaluate_rows
from support.elbow import case, coloured

SIGMA = np.array([0.5, 0.2, 0.05])


@pytest.fixture(scope="module")
def arm():
    return case()


@pytest.fixture(scope="module")
def noisy(arm):
    return arm.run(np.random.default_rng(0).normal(size=arm.clean.shape) * SIGMA)


def dense(arm, run):
    return arm.rows[:, :, arm.base.independent].reshape(-1, len(arm.base)), run.y.ravel()


def test_ordinary_least_squares_is_numpy_lstsq(arm, noisy):
    A, y = dense(arm, noisy)
    expected, energy, *_ = np.linalg.lstsq(A, y)
    estimate = OrdinaryLeastSquares().fit(information_of([noisy]), arm.base)
    assert np.allclose(estimate.values, expected, rtol=1e-9, atol=1e-11)
    covariance = energy[0] / (len(y) - len(expected)) * np.linalg.inv(A.T @ A)
    assert np.allclose(estimate.covariance, covariance, rtol=1e-7)


def test_noise_free_rows_give_the_truth_back(arm):
    estimate = WeightedLeastSquares().fit(information_of([arm.run()]), arm.base)
    assert np.allclose(estimate.values, arm.truth, atol=1e-9)


def test_weights_settle_at_the_noise_of_each_channel_and_beat_equal_weights(arm, noisy):
    weighted = WeightedLeastSquares().fit(information_of([noisy]), arm.base)
    assert list(weighted.sigma.values()) == pytest.approx(SIGMA, rel=0.06)
    A, y = dense(arm, noisy)
    w = np.tile(1.0 / np.array(list(weighted.sigma.values())), len(noisy))
    expected = np.linalg.lstsq(A * w[:, None], y * w)[0]
    assert np.allclose(weighted.values, expected, rtol=1e-6, atol=1e-9)
    plain = OrdinaryLeastSquares().fit(information_of([noisy]), arm.base)
    assert np.trace(weighted.covariance) < np.trace(plain.covariance)


def test_a_duplicated_run_changes_nothing_but_halves_the_variance(arm, noisy):
    once = WeightedLeastSquares().fit(information_of([noisy]), arm.base)
    twice = WeightedLeastSquares().fit(information_of([noisy, replace(noisy, name="again")]), arm.base)
    assert np.allclose(once.values, twice.values, rtol=1e-4, atol=1e-5)
    assert np.allclose(np.diag(once.covariance) / np.diag(twice.covariance), 2.0, rtol=0.03)


def test_samples_can_be_permuted(arm, noisy):
    order = np.random.default_rng(1).permutation(len(noisy))
    shuffled = Run(name="shuffled", source=noisy.source, inputs=noisy.inputs[order], y=noisy.y[order])
    a, b = (WeightedLeastSquares().fit(information_of([run]), arm.base) for run in (noisy, shuffled))
    assert np.allclose(a.values, b.values, rtol=1e-7, atol=1e-9)


def test_ridge_goes_from_data_to_nominal(arm, noisy):
    information, nominal = information_of([noisy]), arm.truth * 1.3
    scale = np.maximum(np.abs(arm.truth), 0.1)
    free = WeightedLeastSquares().fit(information, arm.base)
    weak = Ridge(1e-9).fit(information, arm.base, nominal, scale)
    strong = Ridge(1e12).fit(information, arm.base, nominal, scale)
    assert np.allclose(weak.values, free.values, atol=1e-5)
    assert np.allclose(strong.values, nominal, atol=1e-5)
    assert np.all(np.diag(strong.covariance) < np.diag(free.covariance))


def test_torque_error_model_without_prior_is_least_squares(arm, noisy):
    information = information_of([noisy])
    free = WeightedLeastSquares().fit(information, arm.base)
    error = TorqueError().fit(information, arm.base, arm.truth * 0.7)
    assert np.allclose(error.values, free.values, rtol=1e-5, atol=1e-7)
    held = TorqueError(relative_deviation=1e-9, smallest=1e-12).fit(information, arm.base, arm.truth * 0.7)
    assert np.allclose(held.values, arm.truth * 0.7, rtol=1e-5, atol=1e-6)


def test_an_earlier_result_as_prior_acts_like_its_data(arm):
    rng = np.random.default_rng(2)
    first, second = (arm.run(rng.normal(size=arm.clean.shape) * SIGMA) for _ in range(2))
    earlier = WeightedLeastSquares().fit(information_of([first]), arm.base)
    both = WeightedLeastSquares().fit(information_of([first, second]), arm.base)
    updated = WeightedLeastSquares().fit(information_of([second]), arm.base, prior=GaussianPrior.from_estimate(earlier))
    # Sigmas are estimated from one run here and from two there: a few per cent of a standard deviation.
    assert np.max(np.abs(updated.values - both.values) / both.standard_deviations) < 0.3
    assert np.allclose(updated.standard_deviations, both.standard_deviations, rtol=0.05)


@pytest.mark.parametrize("loss", [Huber(1e6), Tukey(1e6)])
def test_robust_with_a_huge_threshold_is_weighted_least_squares(arm, noisy, loss):
    fit = RobustLeastSquares(loss).fit([noisy], arm.base).estimate
    plain = WeightedLeastSquares().fit(information_of([noisy]), arm.base)
    assert np.max(np.abs(fit.values - plain.values) / plain.standard_deviations) < 0.2


@pytest.mark.parametrize("loss", [Huber(), Tukey()])
def test_robust_fit_survives_and_names_outliers(arm, noisy, loss):
    y = np.array(noisy.y)
    y[200:260, 1] += 20.0
    y[700, 0] -= 500.0
    spoiled = noisy.with_measured(y)
    plain = WeightedLeastSquares().fit(information_of([spoiled]), arm.base)
    fit = RobustLeastSquares(loss).fit([spoiled], arm.base)
    deviations = WeightedLeastSquares().fit(information_of([noisy]), arm.base).standard_deviations
    off = [np.sqrt(np.mean(((e.values - arm.truth) / deviations) ** 2)) for e in (plain, fit.estimate)]
    assert off[1] < 2.0 < off[0]
    assert any(a <= 205 and b >= 255 for a, b in fit.distrusted(0, 1))
    assert (700, 701) in fit.distrusted(0, 0)
    assert {note.subject for note in fit.estimate.notes if note.code == "distrusted-rows"} >= {"j1", "j2"}


def test_total_least_squares_removes_the_bias_of_noisy_rows():
    rng = np.random.default_rng(4)
    A = rng.normal(size=(20000, 3))
    b = np.array([1.0, -2.0, 0.5])
    noise = np.array([0.5, 0.5, 0.0])
    y = A @ b + rng.normal(size=20000)
    factor = triangular(np.column_stack([A + rng.normal(size=A.shape) * noise, y]))
    plain = np.linalg.lstsq(factor[:, :-1], factor[:, -1])[0]
    found = mixed_total_least_squares(factor, noise)
    assert np.abs(plain - b).max() > 0.3
    assert found == pytest.approx(b, abs=0.05)


def test_total_least_squares_without_row_noise_is_weighted_least_squares(arm, noisy):
    information = information_of([noisy])
    total = TotalLeastSquares().fit(information, arm.base, np.zeros(len(arm.base)))
    plain = WeightedLeastSquares().fit(information, arm.base)
    assert np.allclose(total.values, plain.values, rtol=1e-6, atol=1e-8)


def test_instruments_remove_the_bias_of_a_noisy_motion(arm):
    # Noise in the acceleration only: rows are linear in it, so instruments are exactly unbiased.
    rng = np.random.default_rng(5)
    inputs = arm.inputs + rng.normal(size=arm.inputs.shape) * np.repeat([0.0, 0.0, 3.0], 3)
    run = Run(
        name="noisy motion",
        source=arm.source,
        inputs=inputs,
        y=arm.clean + rng.normal(size=arm.clean.shape) * 0.05,
        rate=arm.rate,
    )
    plain = WeightedLeastSquares().fit(information_of([run]), arm.base)
    fit = InstrumentalVariables().fit([run], arm.base, lambda values, run: arm.inputs)
    assert fit.status is Status.SOLVED
    off = [np.linalg.norm(e.values - arm.truth) for e in (plain, fit)]
    assert off[1] < 0.5 * off[0]


def test_the_closed_loop_instrument_follows_its_command_and_removes_bias_too():
    small = case(5, count=300, rate=60.0)
    bodies = nearest_bodies(small.base, nominal_prior(small.robot, small.source.columns))
    loop = ClosedLoop(base=small.base, commanded={"loop": small.inputs}, bodies=bodies, substeps=3)
    rng = np.random.default_rng(9)
    inputs = small.inputs + rng.normal(size=small.inputs.shape) * np.repeat([0.0, 0.0, 4.0], 3)
    run = Run(
        name="loop",
        source=small.source,
        inputs=inputs,
        y=small.clean + rng.normal(size=small.clean.shape) * 0.05,
        rate=60.0,
    )
    simulated = loop(small.truth, run)
    assert np.abs(simulated[:, :3] - small.inputs[:, :3]).max() < 0.02
    plain = WeightedLeastSquares().fit(information_of([run]), small.base)
    fit = InstrumentalVariables(iterations=2).fit([run], small.base, loop)
    inertial = [i for i, name in enumerate(small.base.names) if ".I" in name]
    off = [np.linalg.norm((e.values - small.truth)[inertial]) for e in (plain, fit)]
    assert off[1] < 0.8 * off[0]


def test_elimination_keeps_what_matters_and_prices_each_removal(arm, noisy):
    pi = np.array(arm.standard)
    gone = [name for name in arm.source.columns if name.endswith((".offset", ".Ixy"))]
    for name in gone:
        pi[arm.source.columns.index(name)] = 0.0
    rng = np.random.default_rng(6)
    runs = [replace(noisy, y=arm.rows @ pi + rng.normal(size=arm.clean.shape) * SIGMA) for _ in range(2)]
    train, held = (run.information() for run in runs)
    estimate = WeightedLeastSquares().fit(train, arm.base)
    essential = BackwardElimination().fit(train, estimate, held)
    removed = {step.name for step in essential.removals}
    assert removed
    assert set(essential.names).isdisjoint(removed)
    assert len(removed & {n for n in gone if n in arm.base.names}) >= 3
    assert all(step.held_out_error < 1.02 and step.p_value > 0.05 for step in essential.removals)
    assert "significant" in essential.stopped


def test_parameters_are_kept_and_dropped_by_hand_at_a_price(arm, noisy):
    """[Kolyubin2017] chose its 44 by hand; what is named goes first, what is protected stays, everything has its price."""
    pi = np.where([name.endswith(".offset") for name in arm.source.columns], 0.0, arm.standard)
    rng = np.random.default_rng(6)
    runs = [replace(noisy, y=arm.rows @ pi + rng.normal(size=arm.clean.shape) * SIGMA) for _ in range(2)]
    train, held = (run.information() for run in runs)
    estimate = WeightedLeastSquares().fit(train, arm.base)
    strongest = estimate.names[int(np.argmax(np.abs(estimate.values) / estimate.standard_deviations))]
    by_hand = BackwardElimination(rule=Rule.HAND, drop=(strongest,)).fit(train, estimate, held)
    assert [step.name for step in by_hand.removals] == [strongest]
    assert by_hand.removals[0].held_out_error > 1.5
    assert len(by_hand.names) == len(estimate) - 1
    free = BackwardElimination().fit(train, estimate, held)
    first = free.removals[0].name
    kept = BackwardElimination(keep=(first,)).fit(train, estimate, held)
    assert first in kept.names
    offsets = BackwardElimination(rule=Rule.HAND, drop=("joint*.offset",)).fit(train, estimate, held)
    assert {step.name for step in offsets.removals} == {n for n in estimate.names if n.endswith(".offset")}
    with pytest.raises(UnknownNameError, match="nothing"):
        BackwardElimination(drop=("nothing",)).fit(train, estimate, held)
    with pytest.raises(InputError, match="kept and to be dropped"):
        BackwardElimination(keep=(first,), drop=(first,)).fit(train, estimate, held)


def test_leaving_a_file_out_shows_the_odd_one(arm):
    rng = np.random.default_rng(7)
    runs = [arm.run(rng.normal(size=arm.clean.shape) * SIGMA, f"run {k}") for k in range(3)]
    odd = replace(runs[2], y=runs[2].y + 0.5 * np.sign(arm.inputs[:, 3:6]))
    estimate = WeightedLeastSquares().fit(information_of([*runs[:2], odd]), arm.base)
    folds = leave_one_out([*runs[:2], odd], estimate)
    assert max(folds, key=lambda f: np.abs(f.shift).max()).name == "run 2"
    assert all(0.0 < error < 1.0 for fold in folds for error in fold.relative_error.values())


def rested(arm, rng, count, name):
    """One log with several motions and rests between them."""
    still = int(0.6 * arm.rate)
    length = len(arm.inputs) // count
    inputs, clean = [], []
    for k in range(count):
        part = slice(k * length, (k + 1) * length)
        rest = np.repeat(arm.inputs[part][-1:] * np.repeat([1.0, 0.0, 0.0], 3), still, axis=0)
        inputs += [arm.inputs[part], rest]
        clean += [arm.clean[part], evaluate_rows(arm.source, rest) @ arm.standard]
    y = np.vstack(clean)
    return Run(
        name=name, source=arm.source, inputs=np.vstack(inputs), y=y + rng.normal(size=y.shape) * SIGMA, rate=arm.rate
    )


@pytest.mark.parametrize(("count", "k"), [(3, 3), (14, 10)])
def test_one_log_with_several_motions_is_cross_validated_by_motion(count, k):
    arm = case(count=5600, rate=100.0)
    run = rested(arm, np.random.default_rng(3), count, "log")
    parts = motions([run])
    assert len(parts) == count
    assert sum(len(part) for part in parts) == len(run)
    estimate = WeightedLeastSquares().fit(information_of([run]), arm.base)
    found = k_fold(parts, estimate)
    assert found.k == k
    assert sorted(name for fold in found.folds for name in fold.motions) == sorted(part.name for part in parts)
    # The same by hand for one fold: fit without its motions, predict them.
    fold = found.folds[1]
    others = [part for part in parts if part.name not in fold.motions]
    left = [part for part in parts if part.name in fold.motions]
    by_hand = WeightedLeastSquares().fit(information_of(others), arm.base)
    assert np.allclose(fold.values, by_hand.values, rtol=1e-8, atol=1e-10)
    error = np.vstack([part.residuals(by_hand.standard) for part in left])
    size = np.vstack([part.y for part in left])
    expected = np.linalg.norm(error, axis=0) / np.linalg.norm(size, axis=0)
    assert list(fold.relative_error.values()) == pytest.approx(expected, rel=1e-6)
    # A motion never seen is predicted about as well as one that was.
    seen = np.linalg.norm(run.residuals(estimate.standard), axis=0) / np.linalg.norm(run.y, axis=0)
    assert np.all(np.array(list(found.relative_error.values())) < 1.5 * seen)
    assert len(motions([arm.run()])) == 1


def test_textbook_deviations_are_those_of_the_works_equations(arm):
    """[Halper2024] eqs. 2.43-2.47 on the stacked rows; fewer rows than parameters have none."""
    run = arm.run(coloured(np.random.default_rng(8), arm.clean.shape, SIGMA))
    estimate = OrdinaryLeastSquares().fit(information_of([run]), arm.base)
    A = evaluate_rows(arm.source, arm.inputs)[:, :, arm.base.independent].reshape(-1, len(arm.base))
    variance = np.sum((run.y.ravel() - A @ estimate.values) ** 2) / (len(A) - len(arm.base))
    expected = np.sqrt(variance * np.diag(np.linalg.inv(A.T @ A)))
    assert textbook_deviations(information_of([run]), estimate) == pytest.approx(expected, rel=1e-6)
    short = Run(name="short", source=arm.source, inputs=arm.inputs[:3], y=arm.clean[:3])
    assert np.isnan(textbook_deviations(short.information(), estimate)).all()


def test_poorly_identified_parameters_are_flagged(arm):
    run = arm.run(coloured(np.random.default_rng(8), arm.clean.shape, 20 * SIGMA))
    estimate = WeightedLeastSquares().fit(information_of([run]), arm.base)
    rsd = estimate.relative_standard_deviations
    flagged = estimate.poorly_identified
    assert set(flagged["relative-to-best"]) == {n for n, r in zip(arm.base.names, rsd) if r > 10 * rsd.min()}
    assert {note.subject for note in identification_notes(estimate)} >= set(flagged["interval-holds-zero"])


def test_too_few_rows_and_lost_rank_are_refused_by_name(arm):
    short = Run(name="short", source=arm.source, inputs=arm.inputs[:3], y=arm.clean[:3])
    with pytest.raises(EstimationError, match=r"9 rows for .* parameters"):
        WeightedLeastSquares().fit(short.information(), arm.base)
    still = np.zeros_like(arm.inputs)
    frozen = Run(name="frozen", source=arm.source, inputs=still, y=arm.clean)
    with pytest.raises(EstimationError, match=r"cannot be told apart|do not contain"):
        WeightedLeastSquares().fit(frozen.information(), arm.base)
