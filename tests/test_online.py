"""The recursive estimator: equal to the batch, forgetting only where excited, noticing changes, from a live stream."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import armid
from armid.errors import InputError, ShapeError, UnknownNameError
from armid.estimation.least_squares import GaussianPrior
from armid.estimation.recursive.estimator import ChangeDetection, RecursiveEstimator
from armid.estimation.recursive.forgetting import BLOCKS, ENOUGH, SHORTEST_BLOCK, Forgetting
from armid.estimation.recursive.kernels import CHUNK, QUAD, fold
from armid.identifiability.structure import structural_base
from armid.information.accumulate import accumulate
from armid.information.information import triangular
from armid.information.solve import solve_factor
from armid.information.status import EstimationError
from armid.kernels.evaluate import Restricted, evaluate_rows, reference_rows
from armid.kernels.single import SingleRows
from armid.logs.live.lines import read_stream
from armid.online.estimator import OnlineEstimator
from armid.online.state import online_checks
from armid.parameters.effects import Effects, TorqueSide
from armid.robot import Drive
from armid.robot.load import load_robot
from armid.rows.torque import TorqueRows
from armid.signals.causal import CausalDifferentiator, LocalPolynomial
from support.identified import trusted, untrusted
from support.outcomes import check_family, failing

ROBOT = load_robot("iiwa14")
SOURCE = TorqueRows(ROBOT, Effects(viscous=True, coulomb=True))
BASE = structural_base(SOURCE)
SIGMA = {name: 0.05 * (k + 1) for k, name in enumerate(SOURCE.channels)}


def motion(count: int, rate: float = 100.0, seed: int = 0) -> np.ndarray:
    """A lively motion of all joints with exact derivatives, shape [count, 21]."""
    rng = np.random.default_rng(seed)
    t = np.arange(count) / rate
    w, phase = rng.uniform(0.5, 4.0, (2, 3, 7))
    angle = t[:, np.newaxis, np.newaxis] * w + 6.0 * phase
    return np.hstack([(0.4 * f).sum(axis=1) for f in (np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle))])


def torque(x: np.ndarray, values: np.ndarray, noise: float = 0.0, seed: int = 1) -> np.ndarray:
    clean = evaluate_rows(SOURCE, x)[:, :, BASE.independent] @ values
    return clean + noise * np.random.default_rng(seed).normal(size=clean.shape)


VALUES = np.random.default_rng(5).normal(size=len(BASE))


@pytest.mark.parametrize(("p", "m"), [(57, 7), (10, 3), (1, 1), (13, 12), (3, 2)])
def test_fold_is_a_qr_update(p: int, m: int) -> None:
    rng = np.random.default_rng(p)
    W, m4 = -(-(p + 1) // CHUNK) * CHUNK, -(-m // QUAD) * QUAD
    F, rows = np.zeros((p + 1, W)), []
    for _ in range(max(30, p)):
        B = rng.normal(size=(m, p + 1))
        rows.append(B)
        A = np.zeros((p + 1, m4))
        A[:, :m] = B.T
        fold(F, A, np.full(p + 1, m4 // QUAD, dtype=np.intp), np.zeros(m4))
    assert np.allclose(np.triu(F[:, : p + 1]), triangular(np.vstack(rows)), atol=1e-12)


def weighted_rows(x: np.ndarray) -> np.ndarray:
    return evaluate_rows(SOURCE, x)[:, :, BASE.independent] / np.array(list(SIGMA.values()))[:, np.newaxis]


def test_forgetting_is_the_parallel_sum() -> None:
    """Information against the textbook formula with dense inverses; values against the weighted normal equations."""
    forgetting, rate = Forgetting(3.0), 100.0
    prior = GaussianPrior.independent(VALUES, np.full(len(BASE), 0.5))
    estimator = RecursiveEstimator(SOURCE, BASE, SIGMA, rate=rate, prior=prior, forgetting=forgetting)
    x = motion(400)
    y = torque(x, VALUES, 0.05)
    A = weighted_rows(x)
    block = round(rate * 3.0 / BLOCKS)
    kept, recent = np.exp(-block / (3.0 * rate)), np.exp(-block / (0.6 * rate))
    I, S, new = prior.root.T @ prior.root, np.zeros((len(BASE),) * 2), np.zeros((len(BASE),) * 2)
    for k in range(len(x)):
        estimator.update(x[k], y[k])
        new += A[k].T @ A[k]
        if (k + 1) % block == 0:
            I = I + new
            S = recent * S + new
            K = S * (1.0 - recent) / (1.0 - kept) / ENOUGH
            I = I - (1.0 + ENOUGH) * (1.0 - kept) * (I - I @ np.linalg.solve(I + K, I))
            new[:] = 0.0
    R = estimator.factor[:-1, :-1]
    assert np.allclose(R.T @ R, I + new, atol=1e-7 * np.abs(I).max())
    assert np.allclose(R @ estimator.values, estimator.factor[:-1, -1], atol=1e-8 * np.abs(R).max())


def restless(count: int, seed: int = 2) -> np.ndarray:
    """Unconnected states: every direction is excited all the time, none in bursts."""
    return np.random.default_rng(seed).normal(size=(count, 21))


def test_where_excitation_goes_on_forgetting_is_exponential() -> None:
    """Information settles at that of exponential forgetting, I = sum of kept^age row^T row, in every direction."""
    tau, rate = 3.0, 100.0
    x = restless(3000)
    estimator = RecursiveEstimator(SOURCE, BASE, SIGMA, rate=rate, forgetting=Forgetting(tau))
    A = weighted_rows(x)
    L = np.zeros((len(BASE),) * 2)
    for k, y in enumerate(torque(x, VALUES)):
        estimator.update(x[k], y)
        L = np.exp(-1.0 / (rate * tau)) * L + A[k].T @ A[k]
    R = estimator.factor[:-1, :-1]
    ratio = np.linalg.eigvals(np.linalg.solve(L, R.T @ R)).real
    assert ratio == pytest.approx(1.0, abs=0.15)
    assert np.allclose(estimator.values, VALUES, atol=1e-8)


def test_single_rows_are_the_rows() -> None:
    source = Restricted(SOURCE, tuple(int(i) for i in BASE.independent))
    x = motion(3)
    A = reference_rows(source, x)
    one = SingleRows(source)
    for i in range(3):
        assert np.allclose(one(x[i]), A[i][one.channels, one.columns], atol=1e-13)


def test_without_forgetting_it_equals_the_batch() -> None:
    x = motion(600)
    y = torque(x, VALUES, noise=0.2)
    estimator = RecursiveEstimator(SOURCE, BASE, SIGMA, rate=100.0)
    for row, tau in zip(x, y, strict=True):
        estimator.update(row, tau)
    weighted = accumulate(SOURCE, x, y).weighted({name: 1.0 / s for name, s in SIGMA.items()})
    batch = solve_factor(weighted.select(BASE.independent).stacked(), BASE.names)
    scale = np.abs(batch.values).max()
    assert np.abs(estimator.estimate().values - batch.values).max() < 1e-9 * scale
    assert np.abs(estimator.values - batch.values).max() < 1e-9 * scale
    assert estimator.count == 600 * 7
    assert estimator.excitation().frozen == ()


def test_a_prior_counts_as_data() -> None:
    prior = GaussianPrior.independent(VALUES + 1.0, np.full(len(BASE), 0.1))
    estimator = RecursiveEstimator(SOURCE, BASE, SIGMA, rate=100.0, prior=prior)
    assert np.allclose(estimator.values, VALUES + 1.0)
    x = motion(40)
    for row, tau in zip(x, torque(x, VALUES), strict=True):
        estimator.update(row, tau)
    rows = np.vstack([np.column_stack([prior.root, prior.root @ prior.values])])
    A = evaluate_rows(SOURCE, x)[:, :, BASE.independent] / np.array(list(SIGMA.values()))[:, np.newaxis]
    y = torque(x, VALUES) / np.array(list(SIGMA.values()))
    full = np.vstack([rows, np.column_stack([A.reshape(-1, len(BASE)), y.ravel()])])
    expected = np.linalg.lstsq(full[:, :-1], full[:, -1], rcond=None)[0]
    assert np.allclose(estimator.values, expected, atol=1e-9)


def test_forgetting_follows_a_slow_change() -> None:
    x = motion(4000)
    y = np.vstack([torque(x[:2000], VALUES, 0.05), torque(x[2000:], 1.1 * VALUES, 0.05)])
    estimators = {
        tau: RecursiveEstimator(SOURCE, BASE, SIGMA, rate=100.0, forgetting=Forgetting(tau)) for tau in (3.0, np.inf)
    }
    for estimator in estimators.values():
        for row, value in zip(x, y, strict=True):
            estimator.update(row, value)
    error = {tau: np.linalg.norm(e.values - 1.1 * VALUES) / np.linalg.norm(VALUES) for tau, e in estimators.items()}
    assert error[3.0] < 0.02 < error[np.inf]


def left_of_one(tau: float, rate: float) -> float:
    """What is left of one unit of information in a single direction whose excitation ends: the law of forgetting on numbers."""
    block = round(rate * max(tau / BLOCKS, SHORTEST_BLOCK))
    kept, recent = np.exp(-block / (rate * tau)), np.exp(-block / (rate * tau * Forgetting().horizon))
    information, usual = 1.0, 1.0
    for _ in range(2000):
        usual *= recent
        K = usual / ENOUGH
        information -= (1.0 + ENOUGH) * (1.0 - kept) * information * K / (information + K)
    closed_form = np.exp(-(1.0 + ENOUGH) * Forgetting().horizon * np.log((1.0 + ENOUGH) / ENOUGH))
    assert information == pytest.approx(closed_form, rel=0.3)
    return information


def test_standing_still_does_not_wind_up() -> None:
    """Twenty time constants at rest: directions that only motion shows keep a known share of their information, and their values.

    Plain forgetting would leave exp(-20) of it.
    """
    tau, rate = 2.0, 100.0
    x = restless(1500)
    estimator = RecursiveEstimator(SOURCE, BASE, SIGMA, rate=rate, forgetting=Forgetting(tau))
    for row, y in zip(x, torque(x, VALUES, 0.05), strict=True):
        estimator.update(row, y)
    before, R0 = estimator.values, estimator.factor[:-1, :-1]
    still = np.concatenate([x[-1, :7], np.zeros(14)])
    y = torque(still[np.newaxis], VALUES)[0]
    rng = np.random.default_rng(3)
    factors = []
    for k in range(4000):
        estimator.update(still, y + 0.05 * rng.normal(size=7))
        if k in (1999, 3999):
            factors.append(estimator.factor[:-1, :-1])
    # Directions in which there is no torque at this pose: what is left of their information.
    unseen = np.linalg.svd(weighted_rows(still[np.newaxis])[0])[2][7:].T
    left = [np.linalg.norm(R @ unseen, axis=0) ** 2 / np.linalg.norm(R0 @ unseen, axis=0) ** 2 for R in factors]
    assert left[1] == pytest.approx(left_of_one(tau, rate), rel=0.2)
    # And it is for good: nothing more is lost in the second half.
    assert left[1] == pytest.approx(left[0], rel=1e-3)
    assert np.abs(unseen.T @ (estimator.values - before)).max() < 0.02


def test_a_change_after_a_long_rest_is_learnt_as_after_none() -> None:
    """The arm is changed while it rests; moving again, it is learnt within a few time constants, without a jump on the way."""
    tau, rate = 2.0, 100.0
    x = motion(3000)
    changed = VALUES.copy()
    changed[BASE.index("link7.mx")] += 0.5
    still = np.concatenate([x[999, :7], np.zeros(14)])
    errors = {}
    for rest in (0, 4000):
        estimator = RecursiveEstimator(SOURCE, BASE, SIGMA, rate=rate, forgetting=Forgetting(tau))
        for row, y in zip(x[:1000], torque(x[:1000], VALUES, 0.02), strict=True):
            estimator.update(row, y)
        y = torque(still[np.newaxis], VALUES)[0]
        rng = np.random.default_rng(8)
        for _ in range(rest):
            estimator.update(still, y + 0.02 * rng.normal(size=7))
        assert np.abs(estimator.values - VALUES).max() < 0.2
        track = []
        for row, y in zip(x[1000:], torque(x[1000:], changed, 0.02, seed=2), strict=True):
            estimator.update(row, y)
            track.append(np.linalg.norm(estimator.values - changed) / np.linalg.norm(VALUES))
        assert max(track) < 1.0
        errors[rest] = track[-1]
    assert errors[4000] < 0.02
    assert errors[4000] < 2.0 * errors[0] + 1e-3


def test_parameters_nothing_excites_stay_where_they_started() -> None:
    start = np.full(len(BASE), 7.0)
    estimator = RecursiveEstimator(SOURCE, BASE, SIGMA, rate=100.0, start=start)
    x = motion(400)
    x[:, [4, 5, 6, 11, 12, 13, 18, 19, 20]] = 0.0
    for row, tau in zip(x, torque(x, VALUES), strict=True):
        estimator.update(row, tau)
    frozen = estimator.excitation().frozen
    assert "joint7.viscous" in frozen
    assert estimator.values[BASE.index("joint7.viscous")] == 7.0
    with pytest.raises(EstimationError, match="joint5"):
        estimator.estimate()


def test_a_change_is_noticed_soon_and_learnt() -> None:
    x = motion(3000)
    changed = VALUES.copy()
    changed[BASE.index("link7.mx")] += 0.5
    y = np.vstack([torque(x[:1800], VALUES, 0.05), torque(x[1800:], changed, 0.05, seed=2)])
    estimator = RecursiveEstimator(SOURCE, BASE, SIGMA, rate=100.0, detection=ChangeDetection())
    alarms = [k for k, (row, tau) in enumerate(zip(x, y, strict=True)) if estimator.update(row, tau)]
    assert len(alarms) == 1
    assert 1800 <= alarms[0] < 1900
    assert estimator.values[BASE.index("link7.mx")] == pytest.approx(changed[BASE.index("link7.mx")], abs=0.05)


def test_no_change_no_alarm() -> None:
    x = motion(3000, seed=4)
    estimator = RecursiveEstimator(SOURCE, BASE, SIGMA, rate=100.0, detection=ChangeDetection())
    assert not any(estimator.update(row, tau) for row, tau in zip(x, torque(x, VALUES, 0.05), strict=True))


def test_derivatives_from_the_past_are_exact_for_polynomials_and_late_by_the_stated_time() -> None:
    polynomial = LocalPolynomial(200.0, half_window=8, degree=4)
    differentiator = CausalDifferentiator(polynomial, 1, 1)
    c = np.random.default_rng(0).normal(size=5)
    p = np.polynomial.polynomial.Polynomial(c)
    for k in range(60):
        out = differentiator.push(np.array([p(k / 200.0)]), np.array([2.0 * p(k / 200.0)]))
        assert (out is None) == (k < 16)
    assert out is not None
    t = 59 / 200.0 - polynomial.delay
    assert polynomial.delay == pytest.approx(8 / 200.0)
    assert np.allclose(out[0], [p(t), p.deriv()(t), p.deriv(2)(t)], atol=1e-8)
    assert out[1][0] == pytest.approx(2.0 * p(t))


def test_five_points_and_a_parabola_give_the_formula_of_the_seed() -> None:
    weights = LocalPolynomial(500.0, half_window=2, degree=2).weights[1]
    assert np.allclose(weights, np.array([-2, -1, 0, 1, 2]) * 500.0 / 10.0)


def test_a_stream_of_json_lines_is_identified() -> None:
    """Positions and torques only; derivatives on the way; the answer is the batch's within what the delay filter does."""
    rate = 500.0
    x = motion(12000, rate=rate)
    y = torque(x, VALUES)
    online = OnlineEstimator(ROBOT, effects=Effects(viscous=True, coulomb=True), rate=rate, sigma=SIGMA, detection=None)
    lines = (json.dumps({"time": k / rate, "position": list(x[k, :7]), "torque": list(y[k])}) for k in range(len(x)))
    for sample in read_stream(lines, ROBOT, TorqueSide.LINK):
        online.update_positions(sample.q, sample.torque, time=sample.time)
    assert online.gaps == 0
    error = online.values - VALUES
    assert np.linalg.norm(error) < 0.02 * np.linalg.norm(VALUES)


def test_a_gap_restarts_the_window_and_old_samples_are_ignored() -> None:
    online = OnlineEstimator(ROBOT, effects=Effects(), rate=100.0, half_window=3)
    q, tau = np.zeros(7), np.zeros(7)
    moved = [online.update_positions(q, tau, time=0.01 * k) for k in range(8)]
    assert moved == [False] * 6 + [True] * 2
    assert not online.update_positions(q, tau, time=0.02)
    assert not online.update_positions(q, tau, time=5.0)
    assert online.gaps == 1
    assert failing(online.state()) == {"excited", "stream-whole"}


def friction_of(values: np.ndarray) -> np.ndarray:
    """Base values with positive friction, as an arm has it."""
    drives = {p.name for p in SOURCE.space.parameters if p.quantity in ("viscous", "coulomb")}
    return np.array([abs(v) if name in drives else v for name, v in zip(BASE.names, values, strict=True)])


def test_with_derivatives_it_equals_the_batch(tmp_path: Path) -> None:
    """Every sample counts once; values, intervals and verdict are those of least squares over all of them."""
    x = motion(3000)
    y = torque(x, friction_of(VALUES), noise=0.05)
    online = OnlineEstimator("iiwa14", rate=100.0, friction="viscous,coulomb")
    changes = [online.update(*np.split(row, 3), tau) for row, tau in zip(x, y, strict=True)]
    state = online.state()
    assert not any(changes)
    assert state.verdict == "trusted"
    assert state.samples == 3000
    batch = solve_factor(accumulate(Restricted(SOURCE, tuple(BASE.independent)), x, y).stacked(), BASE.names)
    assert np.allclose(list(state.values.values()), batch.values, atol=1e-8)
    sigma = np.sqrt(batch.energy / (3000 * 7 - len(BASE)))
    assert np.allclose(state.estimate.standard_deviations, sigma * np.sqrt(np.diag(batch.inverse)), rtol=1e-6)
    inside = [p.low < v < p.high for p, v in zip(state.parameters, friction_of(VALUES), strict=True)]
    assert 0.85 < np.mean(inside) <= 1.0
    check_family(state, tmp_path)


def test_intervals_of_a_smoothed_stream_hold_the_truth() -> None:
    """A window makes neighbours alike: each sample counts by what the smoothing leaves independent."""
    rate = 200.0
    x = motion(8000, rate=rate)
    truth = friction_of(VALUES)
    y = torque(x, truth, noise=0.5)
    online = OnlineEstimator(ROBOT, rate=rate, friction="viscous,coulomb", half_window=5)
    for row, tau in zip(x, y, strict=True):
        online.update_positions(row[:7], tau)
    score = (online.values - truth) / online.state().estimate.standard_deviations
    assert np.sqrt(np.mean(score**2)) < 1.6


def test_from_a_result_it_goes_on_where_that_ended(tmp_path: Path) -> None:
    result = trusted()
    result.save(tmp_path / "result")
    online = OnlineEstimator(result, rate=100.0)
    assert np.allclose(online.values, result.estimate.values)
    n = result.robot.n_joints
    source = TorqueRows(result.robot, result.effects)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3 * n))
    y = evaluate_rows(source, x) @ result.estimate.standard
    for row, tau in zip(x, y, strict=True):
        online.update(*np.split(row, 3), tau)
    state = online.state()
    assert np.allclose(online.values, result.estimate.values, atol=1e-6 * np.abs(result.estimate.values).max())
    assert (state.estimate.standard_deviations <= 1.001 * result.estimate.standard_deviations).all()
    assert state.provenance.settings["from_result"]
    from_folder = OnlineEstimator(str(tmp_path / "result"), rate=100.0)
    assert np.allclose(from_folder.values, result.estimate.values)
    assert "start-trusted" not in failing(state)
    assert "start-trusted" in failing(OnlineEstimator(untrusted(), rate=100.0).state())
    with pytest.raises(InputError, match="given with a result"):
        OnlineEstimator(result, friction="viscous")


def test_what_an_online_estimate_is_held_against() -> None:
    """Friction that drives is not to be trusted; changes, gaps and torque that is not explained are said."""
    x = motion(2000)
    driving = np.array(friction_of(VALUES))
    driving[BASE.index("joint3.viscous")] = -1.0
    online = OnlineEstimator(ROBOT, rate=100.0, friction="viscous,coulomb")
    for row, tau in zip(x, torque(x, driving, noise=0.05), strict=True):
        online.update(*np.split(row, 3), tau)
    assert failing(online.state()) == {"friction-opposes"}
    assert "joint3.viscous" in online.state().reasons[0]
    estimate = online.state().estimate
    checks = online_checks(estimate, SOURCE.space, frozen=(), relative_error=0.3, events=2, gaps=1)
    said = [c.code for c in checks if not c.passed and not c.decisive]
    assert said == ["torque-explained", "arm-unchanged", "stream-whole"]


def test_samples_of_the_wrong_kind_are_refused() -> None:
    online = OnlineEstimator(ROBOT, rate=100.0)
    zero = np.zeros(7)
    with pytest.raises(ShapeError, match="tau"):
        online.update(zero, zero, zero, np.zeros(6))
    with pytest.raises(ShapeError, match="q, qd, qdd"):
        online.update(zero, zero, np.zeros(6), zero)
    with pytest.raises(ShapeError, match="q has shape"):
        online.update_positions(np.zeros(6), zero)
    with pytest.raises(InputError, match="not finite"):
        online.update(zero, zero, np.full(7, np.nan), zero)
    assert online.state().samples == 0


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("hello", "line 2: 'hello'"),
        ("[1, 2]", "one JSON object"),
        ('{"position": [0], "torque": [0]}', "time is None"),
        ('{"time": 1, "position": [0, 1], "torque": [0, 0, 0, 0, 0, 0, 0]}', "position is"),
        ('{"time": 1, "position": {"joint1": 1}, "torque": [0, 0, 0, 0, 0, 0, 0]}', "no joint 'joint2'"),
        ('{"time": 1, "position": [0, 0, 0, 0, 0, 0, NaN], "torque": [0, 0, 0, 0, 0, 0, 0]}', "finite"),
    ],
)
def test_lines_that_are_no_samples_are_refused(line: str, match: str) -> None:
    zeros = "[0, 0, 0, 0, 0, 0, 0]"
    good = f'{{"time": 0, "position": {zeros}, "torque": {zeros}}}'
    bad = line.replace("joint1", ROBOT.joint_names[0])
    with pytest.raises(InputError, match=match.replace("joint2", ROBOT.joint_names[1])):
        list(read_stream([good, bad], ROBOT, TorqueSide.LINK))


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="time constant"):
        Forgetting(0.0)
    with pytest.raises(InputError, match="horizon"):
        Forgetting(1.0, horizon=0.0)
    with pytest.raises(InputError, match="rate"):
        RecursiveEstimator(SOURCE, BASE, SIGMA, rate=0.0)
    with pytest.raises(UnknownNameError, match="noise of channel"):
        RecursiveEstimator(SOURCE, BASE, {}, rate=100.0)
    with pytest.raises(InputError, match="half_window"):
        LocalPolynomial(100.0, half_window=1, degree=4)


def test_channels_that_do_not_count_leave_no_trace() -> None:
    x = motion(200)
    y = torque(x, VALUES, noise=0.1)
    counted = np.random.default_rng(0).random((200, 7)) < 0.7
    estimator = RecursiveEstimator(SOURCE, BASE, SIGMA, rate=100.0)
    for row, tau, use in zip(x, y, counted, strict=True):
        estimator.update(row, tau, use)
    sigma = np.array(list(SIGMA.values()))
    full = np.dstack([weighted_rows(x), y / sigma])[counted]
    assert np.allclose(
        np.abs(estimator.factor), np.abs(triangular(full)), atol=1e-9 * np.abs(full).max() * len(full) ** 0.5
    )
    assert estimator.count == np.count_nonzero(counted)


def test_joints_that_turn_back_within_the_window_are_known() -> None:
    """One joint keeps its direction, one turns back, one stands still."""
    polynomial = LocalPolynomial(200.0, half_window=6)
    differentiator = CausalDifferentiator(polynomial, 3, 1)
    seen = []
    for k in range(80):
        t = k / 200.0
        if differentiator.push(np.array([0.5 * t, np.cos(2 * np.pi * 2.5 * t), 0.3]), np.zeros(1)) is not None:
            seen.append(differentiator.one_way)
    array = np.array(seen)
    assert array[:, 0].all()
    assert not array[:, 2].any()
    # The cosine turns every 0.2 s, and the window is 0.06 s wide.
    middle = np.arange(12, 80) / 200.0 - polynomial.delay
    near = np.abs((middle + 0.1) % 0.2 - 0.1) < polynomial.delay
    assert not array[near, 1].any()
    assert array[np.abs((middle + 0.1) % 0.2 - 0.1) > 1.5 * polynomial.delay, 1].all()


def test_memory_does_not_grow() -> None:
    """A thousand samples later the estimator holds as many numbers as before."""
    estimator = RecursiveEstimator(SOURCE, BASE, SIGMA, rate=1000.0, forgetting=Forgetting(0.2))

    def held() -> int:
        owners = (estimator, estimator._fading)
        return sum(v.nbytes for o in owners for v in vars(o).values() if isinstance(v, np.ndarray))

    x = restless(1200)
    y = torque(x, VALUES)
    sizes = []
    for k in range(1200):
        estimator.update(x[k], y[k])
        if k in (100, 1199):
            sizes.append(held())
    assert sizes[0] == sizes[1]


def test_twenty_arms_that_do_not_change_raise_no_alarm() -> None:
    """Noise, friction that sticks for some samples where a joint turns back, directions first excited late: none is a change."""
    robot = load_robot("ur10e")
    drives = [replace(j, drive=Drive(rotor_inertia=0.3, viscous=2.0, coulomb=3.0)) for j in robot.joints]
    truth = replace(robot, joints=tuple(drives))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        t = np.arange(650) / 100.0
        w = 2.0 * np.pi / 6.0 * np.arange(1, 5)
        a, b = rng.normal(size=(2, 6, 4)) * 0.3
        # One joint stands still for half of the time.
        a[seed % 6], b[seed % 6] = 0.0, 0.0
        s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        q, qd, qdd = s @ a.T + c @ b.T, (c * w) @ a.T - (s * w) @ b.T, -(s * w**2) @ a.T - (c * w**2) @ b.T
        late = np.clip(t - 4.0, 0.0, None)
        q[:, seed % 6] += 0.1 * late**3 / (1.0 + late**2)
        qd = np.gradient(q, t, axis=0)
        qdd = np.gradient(qd, t, axis=0)
        tau = armid.inverse_dynamics(truth, q, qd, qdd, drives=True)
        sticks = np.abs(qd) < 0.02
        tau = np.where(sticks, tau - 3.0 * np.sign(qd), tau) + 0.1 * rng.normal(size=q.shape)
        online = armid.OnlineEstimator(robot, rate=100.0, rotor_inertia=True)
        for k in range(len(t)):
            online.update_positions(q[k] + 1e-5 * rng.normal(size=6), tau[k], time=float(t[k]))
        assert online.events == [], f"seed {seed}"


def test_an_exchange_under_way_is_finished_for_whoever_looks() -> None:
    """Spread over samples, an exchange leaves what it left when it was made at once."""
    x = motion(300)
    y = torque(x, VALUES, 0.05)
    looked, left = (RecursiveEstimator(SOURCE, BASE, SIGMA, rate=100.0, forgetting=Forgetting(20.0)) for _ in range(2))
    for k in range(len(x)):
        looked.update(x[k], y[k])
        left.update(x[k], y[k])
        assert looked.factor.shape == (len(BASE) + 1,) * 2
    assert np.allclose(looked.values, left.values, rtol=1e-6, atol=1e-8)
    assert looked.count == pytest.approx(left.count)
