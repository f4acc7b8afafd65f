"""Comparing two models joint by joint: alarms when one is worse, silent when chance explains it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from armid.estimation.run import Run
from armid.identification.comparison import TOLERATED, BlockSquares, compared, stacked
from armid.identification.metrics import CONSISTENT, NOMINAL, RIGID, Predicted
from armid.identification.torque_error import ErrorSums
from armid.kernels.source import Row
from armid.recursion.scalars import Scalar, Scalars


@dataclass(frozen=True)
class Lines:
    """y_c = a_c x, one parameter per channel."""

    channels: tuple[str, ...] = ("first", "second")
    columns: tuple[str, ...] = ("a", "b")
    inputs: tuple[str, ...] = ("x",)

    def rows(self, inputs: Sequence[Scalar], scalars: Scalars) -> list[Row]:
        return [{0: inputs[0]}, {1: inputs[0]}]


def run(rng: np.random.Generator, *, seconds: float = 20.0, noise: float = 0.1) -> Run:
    x = np.sin(np.linspace(0.0, 40.0, int(seconds * 100)))[:, None]
    # Noise correlated over a tenth of a second, as residuals of arms are.
    e = np.apply_along_axis(
        lambda c: np.convolve(c, np.ones(10) / np.sqrt(10), "same"), 0, rng.normal(size=(len(x), 2))
    )
    return Run(name="r", source=Lines(), inputs=x, y=x * [1.0, 1.0] + noise * e, rate=100.0)


def test_a_worse_joint_is_named() -> None:
    first, second = compared([run(np.random.default_rng(0))], np.array([1.0, 1.3]), np.array([1.0, 1.0]))
    assert not first.worse
    assert second.worse
    assert second.rmse > TOLERATED * second.rmse_other


@pytest.mark.parametrize(("wrong", "worse"), [(1.004, False), (1.03, True)])
def test_next_to_an_exact_description_only_what_matters_counts(wrong: float, worse: bool) -> None:
    """Quiet sensors: 0.4 % of the torque is many times the noise that the exact description leaves, and does not matter."""
    exact = np.ones(2)
    quiet = run(np.random.default_rng(4), noise=1e-4)
    models = {CONSISTENT: np.array([1.0, wrong]), NOMINAL: exact, RIGID: exact}
    sums = {name: ErrorSums(quiet.channels) for name in models}
    blocks = {name: BlockSquares(quiet.channels) for name in (*models, "torque")}
    for name, values in models.items():
        sums[name].add(quiet, quiet.residuals(values))
        blocks[name].add(quiet, quiet.residuals(values))
    torque = blocks.pop("torque")
    torque.add(quiet, quiet.y)
    first, second = Predicted(sums=sums, blocks=blocks, mean=np.zeros(2), torque=torque).against_description()
    assert second.rmse > 2.0 * second.rmse_other
    assert not first.worse
    assert second.worse is worse


def test_errors_agree_with_residuals() -> None:
    a, b = run(np.random.default_rng(1)), run(np.random.default_rng(2), seconds=7.3)
    found = compared([a, b], np.array([1.1, 0.9]), np.array([1.0, 1.0]))
    every = np.vstack([r.residuals(np.array([1.1, 0.9])) for r in (a, b)])
    assert [c.rmse for c in found] == pytest.approx(list(np.sqrt((every**2).mean(axis=0))))
    assert stacked(found)[0] == pytest.approx(np.sqrt((every**2).mean()))


def test_false_alarms_are_rare() -> None:
    """Both models equally wrong, in opposite directions: alarms only by chance, in at most about one of a hundred."""
    alarms = sum(
        any(c.worse for c in compared([run(np.random.default_rng(s))], np.full(2, 1.03), np.full(2, 0.97)))
        for s in range(100)
    )
    assert alarms <= 2


def test_too_little_motion_proves_nothing() -> None:
    short = run(np.random.default_rng(0), seconds=1.5)
    assert not any(c.worse for c in compared([short], np.array([3.0, 3.0]), np.array([1.0, 1.0])))


def test_nothing_held_out() -> None:
    assert compared([], np.ones(2), np.ones(2)) == ()
    assert all(np.isnan(stacked(())))
