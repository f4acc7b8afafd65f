"""Information: adds up, loses nothing, says the same by either way in, and survives storage."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armid.errors import InputError, NotFiniteError, ShapeError, UnknownNameError
from armid.information import storage
from armid.information.accumulate import FactorMethod, accumulate
from armid.information.information import (
    ChannelInformation,
    IncompatibleInformationError,
    Information,
    total,
    triangular,
    triangular_by_channel,
    with_reversed,
)
from armid.information.online import SlidingWindow, forgotten
from armid.information.solve import belief
from armid.information.solve import solve as exact_solve
from armid.information.weighing import Weighing
from armid.kernels.evaluate import Restricted, evaluate_rows
from armid.parameters.effects import Effects
from armid.rows.torque import TorqueRows
from support.chains import random_robot

EFFECTS = Effects(viscous=True, coulomb=True)


def independent(A: np.ndarray) -> tuple[int, ...]:
    """Columns of A that no earlier columns explain, by projection."""
    kept: list[int] = []
    scaled = A / np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    for k in range(A.shape[1]):
        if np.linalg.norm(A[:, k]) < 1e-9:
            continue
        rest = scaled[:, k] - (
            scaled[:, kept] @ np.linalg.lstsq(scaled[:, kept], scaled[:, k], rcond=None)[0] if kept else 0.0
        )
        if np.linalg.norm(rest) > 1e-9:
            kept.append(k)
    return tuple(kept)


class Problem:
    """Rows of a random arm over its independent columns, with noise."""

    def __init__(self, seed: int = 0, count: int = 6000) -> None:
        rng = np.random.default_rng(seed)
        full = TorqueRows(random_robot(rng, 4), EFFECTS)
        probe = evaluate_rows(full, rng.normal(size=(300, 12)))
        self.source = Restricted(full, independent(probe.reshape(-1, probe.shape[2])))
        self.x = rng.normal(size=(count, 12))
        self.A = evaluate_rows(self.source, self.x)
        self.pi = rng.normal(size=self.A.shape[2])
        self.y = self.A @ self.pi + 0.1 * rng.normal(size=(count, 4))

    @property
    def stacked(self) -> tuple[np.ndarray, np.ndarray]:
        return self.A.reshape(-1, self.A.shape[2]), self.y.reshape(-1)


def solve(information: Information) -> np.ndarray:
    F = information.stacked()
    return np.linalg.solve(F[:-1, :-1], F[:-1, -1])


@pytest.mark.parametrize("method", [FactorMethod.GRAM, FactorMethod.QR, FactorMethod.AUTO])
def test_solution_and_energy_equal_those_of_the_rows(method: FactorMethod) -> None:
    problem = Problem()
    information = accumulate(problem.source, problem.x, problem.y, method=method)
    W, y = problem.stacked
    b = solution = np.linalg.lstsq(W, y, rcond=None)[0]
    assert np.abs(solve(information) - b).max() < 1e-11 * np.abs(b).max()
    for k, channel in enumerate(information.channels):
        r = problem.y[:, k] - problem.A[:, k] @ solution
        assert channel.error_energy(solution) == pytest.approx(float(r @ r), rel=1e-10)
        assert channel.count == len(problem.x)
    assert np.abs(information.gram() - W.T @ W).max() < 1e-10 * np.abs(W.T @ W).max()


def test_auto_takes_gram_when_it_is_as_good_and_qr_when_not() -> None:
    problem = Problem()
    assert accumulate(problem.source, problem.x, problem.y).method == "gram"
    # The full set of columns is rank deficient: no Gram matrix can be trusted with that.
    full = problem.source.source
    assert accumulate(full, problem.x, problem.y).method == "qr"


class Scaled:
    """A source whose rows are a fixed linear map of random inputs, with a chosen condition number."""

    def __init__(self, condition: float, columns: int = 12) -> None:
        rng = np.random.default_rng(5)
        U, _ = np.linalg.qr(rng.normal(size=(columns, columns)))
        V, _ = np.linalg.qr(rng.normal(size=(columns, columns)))
        self.map = U @ np.diag(np.geomspace(1.0, 1.0 / condition, columns)) @ V
        self.channels = ("only",)
        self.columns = tuple(f"p{k}" for k in range(columns))
        self.inputs = tuple(f"x{k}" for k in range(columns))

    def rows(self, inputs, scalars):
        size = len(self.columns)
        row = {}
        for c in range(size):
            total = scalars.constant(0.0)
            for k in range(size):
                total = total + scalars.constant(float(self.map[k, c])) * inputs[k]
            row[c] = total
        return [row]


@pytest.mark.parametrize("method", [FactorMethod.GRAM, FactorMethod.QR])
def test_condition_a_million_against_extended_precision(method: FactorMethod) -> None:
    """Both ways give the parameters of an 80-bit Householder QR to 1e-9, and the condition number to 1e-3."""
    source = Scaled(1e6)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 12))
    A = evaluate_rows(source, x)[:, 0]
    y = A @ rng.normal(size=12) + 1e-3 * rng.normal(size=4000)
    information = accumulate(source, x, y[:, np.newaxis], method=method)
    expected = extended_least_squares(A, y)
    b = solve(information)
    assert np.linalg.norm(b - expected) < 1e-9 * np.linalg.norm(expected)
    F = accumulate(source, x, y[:, np.newaxis], method=FactorMethod.QR).stacked()[:-1, :-1]
    assert np.linalg.cond(F) == pytest.approx(np.linalg.cond(A), rel=1e-3)


def extended_least_squares(A: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Householder QR in 80-bit arithmetic."""
    W = np.column_stack([A, y]).astype(np.longdouble)
    columns = A.shape[1]
    for k in range(columns):
        v = W[k:, k].copy()
        v[0] += np.copysign(np.sqrt((v * v).sum()), v[0])
        W[k:, k:] -= np.outer(v, (2.0 / (v * v).sum()) * (v @ W[k:, k:]))
    b = np.zeros(columns, dtype=np.longdouble)
    for k in reversed(range(columns)):
        b[k] = (W[k, -1] - W[k, k + 1 : columns] @ b[k + 1 :]) / W[k, k]
    return b.astype(np.float64)


@pytest.mark.parametrize(("method", "tolerance"), [(FactorMethod.QR, 1e-9), (FactorMethod.GRAM, 1e-5)])
def test_pieces_add_up_in_any_order(method: FactorMethod, tolerance: float) -> None:
    """Differences in units of the standard deviation: pieces by Gram have each been corrected about their own solution."""
    problem = Problem(1)
    whole = accumulate(problem.source, problem.x, problem.y, method=FactorMethod.QR)
    parts = [
        accumulate(problem.source, problem.x[s], problem.y[s], method=method)
        for s in np.array_split(np.arange(6000), 5)
    ]
    forward = parts[0] + parts[1] + parts[2] + parts[3] + parts[4]
    backward = parts[4] + (parts[3] + (parts[2] + (parts[1] + parts[0])))
    deviation = 0.1 * np.sqrt(np.diag(np.linalg.inv(whole.gram())))
    for other in (forward, backward):
        assert other.count == whole.count
        assert np.abs((solve(other) - solve(whole)) / deviation).max() < tolerance
        assert np.abs(other.gram() - whole.gram()).max() < 1e-12 * np.abs(whole.gram()).max()


def test_many_pieces_are_the_sum_of_all_of_them_whatever_channels_they_have() -> None:
    """More pieces than are added at once, each with one channel less than the source."""
    problem = Problem(count=400)
    pieces = [
        accumulate(problem.source, x, y) for x, y in zip(np.split(problem.x, 20), np.split(problem.y, 20), strict=True)
    ]
    partial = [replace(piece, channels=piece.channels[1:] if k else piece.channels) for k, piece in enumerate(pieces)]
    whole = total(iter(partial))
    assert [c.count for c in whole.channels] == [20.0, 400.0, 400.0, 400.0]
    gram = sum(piece.gram() for piece in partial)
    np.testing.assert_allclose(whole.gram(), gram, rtol=1e-9, atol=1e-9 * np.abs(gram).max())
    with pytest.raises(IncompatibleInformationError):
        total([*pieces[:3], replace(pieces[3], parameters=pieces[3].parameters[::-1])])


def test_permuting_samples_changes_nothing() -> None:
    problem = Problem(2)
    order = np.random.default_rng(0).permutation(6000)
    a = accumulate(problem.source, problem.x, problem.y)
    b = accumulate(problem.source, problem.x[order], problem.y[order])
    deviation = 0.1 * np.sqrt(np.diag(np.linalg.inv(a.gram())))
    assert np.abs((solve(a) - solve(b)) / deviation).max() < 1e-7


def test_repeating_rows_is_weight_root_two() -> None:
    problem = Problem(3)
    once = accumulate(problem.source, problem.x, problem.y)
    twice = once + once
    weighted = once.weighted({channel.name: 2**0.5 for channel in once.channels})
    assert np.allclose(twice.stacked(), weighted.stacked(), rtol=1e-9, atol=1e-9)
    assert twice.count == 2 * once.count


def test_selecting_columns_is_dropping_them_from_the_rows() -> None:
    problem = Problem(4)
    kept = [7, 2, 11]
    part = accumulate(problem.source, problem.x, problem.y).select(kept)
    W, y = problem.stacked
    F = part.stacked()
    expected = triangular(np.column_stack([W[:, kept], y]))
    assert np.abs(F - expected).max() < 1e-9 * np.abs(expected).max()
    assert part.parameters == tuple(problem.source.columns[k] for k in kept)


def test_forgetting_equals_weighted_least_squares() -> None:
    problem = Problem(6, count=900)
    chunks = np.array_split(np.arange(900), 3)
    running = accumulate(problem.source, problem.x[chunks[0]], problem.y[chunks[0]])
    for chunk in chunks[1:]:
        running = forgotten(running, 0.5) + accumulate(problem.source, problem.x[chunk], problem.y[chunk])
    weight = np.repeat([0.25, 0.5, 1.0], 300) ** 0.5
    W = (problem.A * weight[:, None, None]).reshape(-1, problem.A.shape[2])
    b = np.linalg.lstsq(W, (problem.y * weight[:, None]).reshape(-1), rcond=None)[0]
    assert np.abs(solve(running) - b).max() < 1e-9
    assert running.channels[0].count == pytest.approx(525.0)


def test_window_forgets_whole_pieces() -> None:
    problem = Problem(7, count=900)
    parts = [accumulate(problem.source, problem.x[s], problem.y[s]) for s in np.array_split(np.arange(900), 3)]
    window = SlidingWindow(2)
    for part in parts:
        window = window.push(part)
    assert np.allclose(window.information.stacked(), (parts[1] + parts[2]).stacked())


def test_stored_and_loaded_is_the_same(tmp_path: Path) -> None:
    problem = Problem(8, count=700)
    information = accumulate(problem.source, problem.x, problem.y)
    storage.save(information, tmp_path / "run")
    again = storage.load(tmp_path / "run")
    assert again.parameters == information.parameters
    assert again.method == information.method
    assert np.array_equal(again.stacked(), information.stacked())
    (tmp_path / "run.npz").write_bytes(b"not a zip")
    with pytest.raises(InputError, match="stored information"):
        storage.load(tmp_path / "run")


def test_bad_input_is_named() -> None:
    problem = Problem(9, count=20)
    information = accumulate(problem.source, problem.x, problem.y)
    with pytest.raises(ShapeError, match="y has shape"):
        accumulate(problem.source, problem.x, problem.y[:10])
    x = problem.x.copy()
    x[3, 2] = np.nan
    with pytest.raises(
        NotFiniteError, match=r"inputs holds 1 value\(s\) that are not finite, the first at index \[3, 2\]"
    ):
        accumulate(problem.source, x, problem.y)
    with pytest.raises(UnknownNameError, match="no channel named 'j9'; there are: j1, j2"):
        information.channel("j9")
    with pytest.raises(IncompatibleInformationError):
        information + information.select([0, 1])
    with pytest.raises(InputError, match="forgetting factor"):
        forgotten(information, 1.5)


@pytest.mark.parametrize("believed", [False, True])
def test_weighing_channels_by_gram_matrices_gives_what_the_rows_give(believed: bool) -> None:
    """Energies, and how many parameters every channel pays for, against the QR of all weighted rows."""
    problem = Problem(count=600)
    rows = accumulate(problem.source, problem.x, problem.y)
    r = rows.n_parameters
    prior = belief(rows.parameters, problem.pi, 3.0 * np.eye(r)) if believed else None
    weights = dict(zip(problem.source.channels, (0.5, 20.0, 3.0, 7.0), strict=True))
    solution = exact_solve(rows, weights=weights, prior=prior)
    found = Weighing(rows, prior).residuals(np.array(list(weights.values())))
    assert found is not None
    np.testing.assert_allclose(found.energies, list(solution.energies.values()), rtol=1e-11)
    paid = [
        w**2 * np.trace(solution.inverse @ A.T @ A)
        for A, w in zip(problem.A.transpose(1, 0, 2), weights.values(), strict=True)
    ]
    np.testing.assert_allclose(found.leverages, paid, rtol=1e-8)
    if not believed:
        assert found.leverages.sum() == pytest.approx(r, rel=1e-9)


def test_weighing_leaves_what_gram_matrices_cannot_tell_to_the_rows() -> None:
    factor = triangular(np.array([[1.0, 1.0, 1.0], [0.0, 1e-7, 1.0], [1.0, 1.0, 2.0]]))
    rows = Information(("a", "b"), (ChannelInformation("c", np.arange(2), factor, 3.0),))
    assert Weighing(rows).residuals(np.ones(1)) is None
    unseen = Information(("a", "b"), (ChannelInformation("c", np.array([0]), np.eye(2), 3.0),))
    assert Weighing(unseen).residuals(np.ones(1)) is None


def test_reversed_measured_values_are_those_of_the_reversed_rows() -> None:
    problem = Problem(count=600)
    y = np.array(problem.y)
    y[:, 1] *= -1.0
    name = problem.source.channels[1]
    turned = with_reversed(accumulate(problem.source, problem.x, problem.y, method=FactorMethod.QR), name)
    anew = accumulate(problem.source, problem.x, y, method=FactorMethod.QR)
    for own, other in zip(turned.channels, anew.channels, strict=True):
        scale = np.abs(other.factor).max()
        np.testing.assert_allclose(own.factor, other.factor, rtol=0.0, atol=1e-10 * scale)


@pytest.mark.parametrize("samples", [3, 12, 200])
def test_reducing_every_channel_over_what_it_sees_gives_the_factor_of_all_rows(samples: int) -> None:
    rng = np.random.default_rng(samples)
    rows = rng.normal(size=(samples, 4, 15))
    for k in range(4):
        rows[:, k, 3 * k : 3 * k + 5] = 0.0
    expected = triangular(rows.reshape(-1, 15))
    np.testing.assert_allclose(triangular_by_channel(rows), expected, rtol=0.0, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize("shape", [(9, 4), (3, 7), (20_000, 9), (5_000, 60)])
def test_a_triangle_has_the_column_products_of_its_rows(shape: tuple[int, int]) -> None:
    A = np.random.default_rng(0).normal(size=shape)
    R = triangular(A)
    assert R.shape == (shape[1], shape[1])
    assert np.all(np.diag(R) >= 0.0)
    np.testing.assert_array_equal(R, np.triu(R))
    np.testing.assert_allclose(R.T @ R, A.T @ A, rtol=0.0, atol=1e-13 * np.abs(A.T @ A).max())
