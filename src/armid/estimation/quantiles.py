"""Tails and quantiles of the normal, Student's, the chi-square and Fisher's F distribution.

They decide thresholds at the start of a fit; SciPy's own take a fifth of a second to import and agree to round-off.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import atan, erfc, exp, inf, isinf, lgamma, log, pi, sqrt
from statistics import NormalDist

MANY = 1e7
"""Degrees of freedom from which on Student's distribution is the normal one to seven digits."""

_STEPS = 200
"""Of a search, at most; a dozen are usual."""
_SETTLED = 1e-13
"""Relative change of a quantile, or difference of its probability from the one wanted, that ends a search: what is less is
round-off of the tail."""
_TINY = 1e-300
"""Stands for a probability that is zero in double precision."""


def normal_quantile(p: float) -> float:
    """Of the standard normal distribution, p in (0, 1)."""
    return NormalDist().inv_cdf(p)


def _normal_tail(x: float) -> float:
    """Probability of a standard normal number above x."""
    return 0.5 * erfc(x / sqrt(2.0))


def chi_square_tail(x: float, freedom: float) -> float:
    """Probability of a sum of `freedom` squares of standard normal numbers above x."""
    return _incomplete_gamma(0.5 * freedom, 0.5 * x)


@cache
def chi_square_above(probability: float, freedom: float) -> float:
    """What a sum of squares of standard normal numbers exceeds with this probability."""
    return _crossing(lambda x: chi_square_tail(x, freedom), probability)


def chi_square_quantile(p: float, freedom: float) -> float:
    """Of the chi-square distribution, p in (0, 1)."""
    return chi_square_above(1.0 - p, freedom)


def _student_tail(t: float, freedom: float) -> float:
    """Probability of Student's t above a positive t, any positive degrees of freedom."""
    if freedom > MANY:
        return _normal_tail(t)
    if freedom == 1.0:
        return atan(1.0 / t) / pi if t > 0.0 else 0.5
    return 0.5 * _incomplete_beta(0.5 * freedom, 0.5, freedom / (freedom + t * t))


@cache
def _student_above(probability: float, freedom: float) -> float:
    """What Student's t exceeds with this probability, at most one half."""
    return _crossing(lambda t: _student_tail(t, freedom), probability)


def student_quantile(p: float, freedom: float) -> float:
    """Of Student's distribution, p in (0, 1), any positive degrees of freedom."""
    return _student_above(1.0 - p, freedom) if p > 0.5 else -_student_above(p, freedom)


@cache
def fisher_above(probability: float, above: float, below: float) -> float:
    """What the ratio of two mean squares exceeds with this probability.

    Args:
        probability: in (0, 1).
        above, below: degrees of freedom of the numerator and the denominator.
    """
    return _crossing(
        lambda ratio: _incomplete_beta(0.5 * below, 0.5 * above, below / (below + above * ratio)), probability
    )


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised I_x(a, b), by the continued fraction that converges quickly on its side of the mean."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _incomplete_beta(b, a, 1.0 - x)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1.0 - x)) / a
    return front / _fraction(a, b, x)


def _incomplete_gamma(a: float, x: float) -> float:
    """Regularised upper Q(a, x): by its series below the mean, by its continued fraction above."""
    if x <= 0.0 or isinf(x):
        return 1.0 if x <= 0.0 else 0.0
    front = exp(a * log(x) - x - lgamma(a))
    if x < a + 1.0:
        term = total = 1.0 / a
        k = a
        while abs(term) > 1e-17 * abs(total):
            k += 1.0
            term *= x / k
            total += term
        return 1.0 - front * total
    tiny = 1e-300
    b = x + 1.0 - a
    c, d = 1.0 / tiny, 1.0 / b
    f = d
    for k in range(1, 100_000):
        an = -k * (k - a)
        b += 2.0
        d = 1.0 / (an * d + b or tiny)
        c = b + an / c or tiny
        f *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return front * f


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function by Lentz's recursion."""
    tiny = 1e-300
    f, c, d = 1.0, 1.0, 0.0
    for k in range(1, 10_000):
        m = k // 2
        if k % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1.0 / (1.0 + term * d or tiny)
        c = 1.0 + term / c or tiny
        f *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return f


def _crossing(tail: Callable[[float], float], probability: float) -> float:
    """Where a falling tail has this probability: bracketed, then by false position on its logarithm (Illinois)."""
    if probability <= 0.0:
        return inf

    def excess(x: float) -> float:
        return log(max(tail(x), _TINY) / probability)

    low, high = 0.0, 1.0
    above, below = excess(low), excess(high)
    if above <= 0.0:
        return low
    while below > 0.0:
        low, high, above, below = high, 2.0 * high, below, excess(2.0 * high)
    middle, value = high, 0.0
    for _ in range(_STEPS):
        before, last, middle = middle, value, high - below * (high - low) / (below - above)
        value = excess(middle)
        if abs(value) < _SETTLED or abs(middle - before) < _SETTLED * middle:
            break
        # An end that stays twice counts half, or it would stay for ever.
        if value > 0.0:
            low, above, below = middle, value, 0.5 * below if last > 0.0 else below
        else:
            high, below, above = middle, value, 0.5 * above if last < 0.0 else above
    return middle
