"""Tails and quantiles of a few distributions with whole degrees of freedom, in closed form.

They decide thresholds at the start of a fit; SciPy's own take a fifth of a second to import and agree to round-off.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import atan, cos, erfc, exp, inf, pi, sin, sqrt

HALVINGS = 200
"""Of an interval: more than double precision can tell apart."""


def normal_tail(x: float) -> float:
    """Probability of a standard normal number above x."""
    return 0.5 * erfc(x / sqrt(2.0))


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
    """What a sum of squares of standard normal numbers exceeds with this probability."""
    return _crossing(lambda x: chi_square_tail(x, freedom), probability)


def student_tail(t: float, freedom: int) -> float:
    """Probability of Student's t above a positive t ([Abramowitz1964] 26.7.3, 26.7.4)."""
    angle = atan(t / sqrt(freedom))
    c = cos(angle) ** 2
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    total = 0.0 if freedom == 1 else term
    for k in range(2 + odd, freedom - 1, 2):
        term *= c * (k - 1) / k
        total += term
    inside = 2.0 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
    return 0.5 * (1.0 - inside)


@cache
def student_above(probability: float, freedom: int) -> float:
    """What Student's t exceeds with this probability below one half."""
    return _crossing(lambda t: student_tail(t, freedom), probability)


def _crossing(tail: Callable[[float], float], probability: float) -> float:
    """Where a falling tail has this probability, by halving."""
    if probability <= 0.0:
        return inf
    low, high = 0.0, 1.0
    while tail(high) > probability:
        low, high = high, 2.0 * high
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if tail(middle) > probability else (low, middle)
    return 0.5 * (low + high)
