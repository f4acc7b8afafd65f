"""Quantiles of the normal, Student's and the chi-square distribution, without loading a statistics library for a few numbers."""

from __future__ import annotations

from math import atan, exp, inf, isinf, lgamma, log, pi
from statistics import NormalDist

MANY = 1e7
"""Degrees of freedom from which on Student's distribution is the normal one to seven digits."""

TOLERANCE = 1e-13
"""Relative, of the quantile."""


def normal_quantile(p: float) -> float:
    """Of the standard normal distribution, p in (0, 1)."""
    return NormalDist().inv_cdf(p)


def student_quantile(p: float, freedom: float) -> float:
    """Of Student's distribution, p in (0, 1), any positive degrees of freedom.

    Newton's steps on the distribution from the normal quantile; the density is known exactly, the distribution by the
    regularised incomplete beta function.
    """
    if p == 0.5:
        return 0.0
    if p < 0.5:
        return -student_quantile(1.0 - p, freedom)
    if freedom > MANY or isinf(freedom):
        return normal_quantile(p)
    low, high = 0.0, inf
    x = normal_quantile(p)
    for _ in range(200):
        error = student_distribution(x, freedom) - p
        low, high = (x, high) if error < 0.0 else (low, x)
        step = x - error / student_density(x, freedom)
        new = step if low < step < high else (2.0 * x + 1.0 if isinf(high) else 0.5 * (low + high))
        if abs(new - x) <= TOLERANCE * max(abs(x), 1e-300):
            return new
        x = new
    return x


def student_density(x: float, freedom: float) -> float:
    """At x."""
    scale = lgamma(0.5 * (freedom + 1.0)) - lgamma(0.5 * freedom) - 0.5 * log(freedom * pi)
    return exp(scale - 0.5 * (freedom + 1.0) * log(1.0 + x * x / freedom))


def student_distribution(x: float, freedom: float) -> float:
    """Probability of a value below x."""
    if freedom == 1.0:
        return 0.5 + atan(x) / pi
    tail = 0.5 * incomplete_beta(0.5 * freedom, 0.5, freedom / (freedom + x * x))
    return 1.0 - tail if x > 0.0 else tail


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised I_x(a, b), by the continued fraction that converges quickly on its side of the mean."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - incomplete_beta(b, a, 1.0 - x)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1.0 - x)) / a
    return front / _fraction(a, b, x)


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


def chi_square_tail(x: float, freedom: float) -> float:
    """Probability of a value above x under the chi-square distribution with so many degrees of freedom."""
    return incomplete_gamma(0.5 * freedom, 0.5 * x)


def chi_square_quantile(p: float, freedom: float) -> float:
    """Of the chi-square distribution, p in (0, 1): bisection between bounds that hold it, to round-off."""
    low, high = 0.0, max(freedom, 1.0)
    while chi_square_tail(high, freedom) > 1.0 - p:
        low, high = high, 2.0 * high
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if chi_square_tail(middle, freedom) > 1.0 - p else (low, middle)
    return 0.5 * (low + high)


def incomplete_gamma(a: float, x: float) -> float:
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
