"""Tails and quantiles of sums of a few squares, in closed form: they decide thresholds before any library of statistics loads."""

from __future__ import annotations

from functools import cache
from math import erfc, exp, inf, pi, sqrt

HALVINGS = 200
"""Of an interval: more than double precision can tell apart."""


def chi_square_tail(x: float, freedom: int) -> float:
    """Probability of a sum of squares of standard normal numbers above x ([Abramowitz1964] 26.4.4, 26.4.5).

    For up to some hundred degrees of freedom: terms of the sum underflow where x exceeds a thousand.
    """
    if x <= 0.0:
        return 1.0
    tail, term = (erfc(sqrt(x / 2.0)), sqrt(2.0 * x / pi) * exp(-x / 2.0)) if freedom % 2 else (0.0, exp(-x / 2.0))
    for k in range(2 + freedom % 2, freedom + 1, 2):
        tail += term
        term *= x / k
    return tail


@cache
def chi_square_above(probability: float, freedom: int) -> float:
    """What a sum of squares of standard normal numbers exceeds with this probability, by halving."""
    if probability <= 0.0:
        return inf
    low, high = 0.0, 1.0
    while chi_square_tail(high, freedom) > probability:
        low, high = high, 2.0 * high
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if chi_square_tail(middle, freedom) > probability else (low, middle)
    return 0.5 * (low + high)
