"""Which standard parameters lead a base is a convention; what they can tell is not."""

from __future__ import annotations

import numpy as np
import pytest

import armid
from armid.errors import InputError, UnknownNameError
from armid.identifiability.base import base_parameters
from armid.identifiability.exchange import exchanged


@pytest.fixture
def rows() -> np.ndarray:
    rng = np.random.default_rng(3)
    A = rng.normal(size=(40, 4))
    return np.column_stack([A, A @ [1.0, 2.0, 0.0, 0.0], np.zeros(40), A[:, 2] - A[:, 3]])


def test_the_same_prediction_from_other_leading_parameters(rows: np.ndarray) -> None:
    base = base_parameters(rows)
    other = exchanged(base, ("parameter1", "parameter4"))
    assert not {"parameter1", "parameter4"} & set(other.names)
    assert len(other) == len(base) == 4
    pi = np.random.default_rng(0).normal(size=7)
    assert np.allclose(rows[:, other.independent] @ other.values(pi), rows @ pi)
    assert np.allclose(other.projection @ other.null_space, 0.0)
    assert other.categories == base.categories


def test_nothing_named_changes_nothing(rows: np.ndarray) -> None:
    base = base_parameters(rows)
    assert exchanged(base, ()) is base


def test_what_cannot_fall_out_is_named(rows: np.ndarray) -> None:
    base = base_parameters(np.column_stack([rows, np.arange(40.0)]))
    with pytest.raises(InputError, match="cannot fall out of the base"):
        exchanged(base, ("parameter8",))
    with pytest.raises(InputError, match="beside parameter1"):
        exchanged(base, ("parameter1", "parameter2"))
    with pytest.raises(UnknownNameError):
        exchanged(base, ("link9.mx",))


def test_the_four_of_kolyubin_fall_out_in_its_convention() -> None:
    """[Kolyubin2017] section 6.1: alpha0, d0, theta7 and r7."""
    published = ("sensor.alpha", "sensor.a", "link7.theta", "link7.d")
    found = armid.inspect("lwr4plus", quantity="pose", errors="described", without=",".join(published))
    assert set(found.base.parameters) - set(found.base.names) == set(published)
    assert found.base_parameters == 32
