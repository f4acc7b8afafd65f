"""A recorded recursion run over a few samples by NumPy: the same numbers as the recursion itself, in few places."""

from __future__ import annotations

import numpy as np
import pytest

from armid.kernels.evaluate import CompiledRows, evaluate_rows, reference_rows
from armid.parameters.effects import Effects
from armid.recursion.replay import Replay
from armid.recursion.tape import Tape
from armid.rows.gravity import GravityRows
from armid.rows.torque import TorqueRows
from support.chains import random_robot


@pytest.mark.parametrize("kind", [TorqueRows, GravityRows])
@pytest.mark.parametrize("samples", [1, 2, 300])
def test_rows_at_a_few_samples_are_those_of_the_recursion(kind: type, samples: int) -> None:
    source = kind(random_robot(np.random.default_rng(samples), 5), Effects(rotor_inertia=True))
    x = np.random.default_rng(0).normal(size=(samples, len(source.inputs)))
    expected = reference_rows(source, x)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(CompiledRows(source).few(x), expected, rtol=0.0, atol=1e-13 * scale)
    np.testing.assert_allclose(evaluate_rows(source, x), expected, rtol=0.0, atol=1e-13 * scale)


def test_every_operation_of_a_tape_is_replayed_with_numbers_shared_by_all_samples() -> None:
    tape = Tape()
    x, y, k = tape.input(0), tape.input(1), tape.uniform(0)
    outputs = [tape.sin(x) * k - tape.cos(y), -(x + y), tape.sign(x) * 3.0, tape.node(2.5), x, k]
    a, b = np.random.default_rng(1).normal(size=(2, 9))
    found = Replay(tape, outputs)([a, b], [0.7])
    expected = [np.sin(a) * 0.7 - np.cos(b), -(a + b), 3.0 * np.sign(a), np.full(9, 2.5), a, np.full(9, 0.7)]
    for own, value in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.broadcast_to(own, 9), value, rtol=1e-15)


def test_values_that_nobody_needs_any_more_give_their_place_away() -> None:
    tape = Tape()
    x = tape.input(0)
    for _ in range(200):
        x = tape.sin(x * 1.01 + 0.1)
    replay = Replay(tape, [x])
    assert len(replay([np.zeros(3)])) == 1
    assert replay.places < 10
