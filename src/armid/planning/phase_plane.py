"""Fastest speed along a path within limits on torque and acceleration: reachability in the plane (x = theta'^2, u = theta'').

Backwards from the end, the set of speeds from which the end can be reached; forwards from the start, the largest
acceleration that stays inside ([Pham2018], TOPP-RA). Per limited channel and point the constraint is

    | a u + b x + v sqrt(x) + c | + kappa * deviation(u, x, sqrt(x), 1)  <=  limit

Viscous friction makes it curved in x and the parameters' covariance makes it a cone, which a linear program does not
cover; but for a given x both are solved for u in closed form. The acceleration is constant between points and both
ends of every interval are constrained, so that nothing chatters where a coefficient passes zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from armid.kernels.numba_cache import compiled

_SCAN = 8
"""Speeds tried from below before bisecting: finds the first gap if friction should make one."""

_BISECTIONS = 32
_ROOT_ITERATIONS = 2
"""sqrt(x) at the far end of an interval depends on u itself; each pass shrinks the error by the change across the interval."""

SMALL = 1e-12
"""Relative size of a coefficient that counts as zero."""


@compiled(nogil=True)
def _clip(
    a: float, high: float, low: float, limit: float, k2: float, s2: float, s1: float, s0: float, bounds: Any
) -> None:
    """Narrows bounds = (L, U) to the u with |a u + m| + kappa sqrt(s2 u^2 + s1 u + s0) <= limit, m between low and high."""
    if k2 <= 0.0:
        if abs(a) * 1e6 < SMALL * limit:
            if high > limit or low < -limit:
                bounds[0], bounds[1] = 1.0, -1.0
            return
        upper, lower = (limit - high) / a, (-limit - low) / a
        if a < 0.0:
            upper, lower = lower, upper
        bounds[0], bounds[1] = max(bounds[0], lower), min(bounds[1], upper)
        return
    one_side(a, limit - high, k2, s2, s1, s0, bounds)
    one_side(-a, limit + low, k2, s2, s1, s0, bounds)


@compiled(nogil=True)
def one_side(a: float, d: float, k2: float, s2: float, s1: float, s0: float, bounds: Any) -> None:
    """Narrows bounds to the u with sqrt(k2 (s2 u^2 + s1 u + s0)) <= d - a u."""
    A, B, C = k2 * s2 - a * a, k2 * s1 + 2.0 * a * d, k2 * s0 - d * d
    if abs(A) <= SMALL * (k2 * s2 + a * a):
        if abs(B) > 0.0:
            root = -C / B
            if B > 0.0:
                bounds[1] = min(bounds[1], root)
            else:
                bounds[0] = max(bounds[0], root)
        elif C > 0.0 or d < 0.0:
            bounds[0], bounds[1] = 1.0, -1.0
        return
    discriminant = B * B - 4.0 * A * C
    if discriminant < 0.0:
        if A > 0.0:
            bounds[0], bounds[1] = 1.0, -1.0
            return
        discriminant = 0.0
    # The larger root in size first, without cancellation; the other from the product of both.
    big = -0.5 * (B + (np.sqrt(discriminant) if B >= 0.0 else -np.sqrt(discriminant)))
    r1 = big / A
    r2 = C / big if big != 0.0 else r1
    first, second = min(r1, r2), max(r1, r2)
    if A > 0.0:
        if d - a * 0.5 * (first + second) < 0.0:
            bounds[0], bounds[1] = 1.0, -1.0
            return
        bounds[0], bounds[1] = max(bounds[0], first), min(bounds[1], second)
    elif a > 0.0:
        bounds[1] = min(bounds[1], first)
    else:
        bounds[0] = max(bounds[0], second)


@compiled(nogil=True)
def _at_point(
    i: int, x: float, root: float, slope: float, table: Any, limits: Any, k2: float, S: Any, bounds: Any
) -> None:
    """Narrows bounds by all channels of point i, where theta'^2 is x + slope u and theta' is `root`."""
    for j in range(table.shape[1]):
        a, b, v, high, low = table[i, j, 0], table[i, j, 1], table[i, j, 2], table[i, j, 3], table[i, j, 4]
        s2, s1, s0 = 0.0, 0.0, 0.0
        k = k2 if j < S.shape[1] else 0.0
        if k > 0.0:
            c = S[i, j]
            s2 = c[0, 0] + 2.0 * slope * c[0, 1] + slope * slope * c[1, 1]
            s1 = 2.0 * (
                x * (c[0, 1] + slope * c[1, 1]) + root * (c[0, 2] + slope * c[1, 2]) + c[0, 3] + slope * c[1, 3]
            )
            s0 = x * x * c[1, 1] + root * root * c[2, 2] + c[3, 3]
            s0 += 2.0 * (x * root * c[1, 2] + x * c[1, 3] + root * c[2, 3])
        m = b * x + v * root
        _clip(a + slope * b, m + high, m + low, limits[j], k, s2, s1, max(s0, 0.0), bounds)


@compiled(nogil=True)
def accelerations(
    i: int, x: float, step: float, table: Any, limits: Any, k2: float, S: Any, out: Any, work: Any
) -> None:
    """Fills out = (L, U) with the accelerations on the interval after point i that keep all limits at both of its ends."""
    out[0], out[1] = -np.inf, np.inf
    _at_point(i, x, np.sqrt(x), 0.0, table, limits, k2, S, out)
    own_low, own_high = out[0], out[1]
    if own_low > own_high:
        return
    # The least and the largest u see different speeds at the far end.
    for side in range(2):
        root = np.sqrt(x)
        for _ in range(_ROOT_ITERATIONS):
            work[0], work[1] = own_low, own_high
            _at_point(i + 1, x, root, 2.0 * step, table, limits, k2, S, work)
            if work[0] > work[1]:
                break
            root = np.sqrt(max(x + 2.0 * step * min(max(work[side], -1e12), 1e12), 0.0))
        if work[0] > work[1]:
            out[0], out[1] = 1.0, -1.0
            return
        out[side] = work[side]


@compiled(nogil=True)
def _reaches(
    i: int, x: float, top: float, step: float, table: Any, limits: Any, k2: float, S: Any, out: Any, work: Any
) -> bool:
    """Whether some admissible acceleration leads from x at point i to at most `top` at the next."""
    accelerations(i, x, step, table, limits, k2, S, out, work)
    return out[0] <= out[1] and x + 2.0 * step * out[0] <= top and x + 2.0 * step * out[1] >= 0.0


@compiled(nogil=True)
def _highest(
    i: int, cap: float, top: float, step: float, table: Any, limits: Any, k2: float, S: Any, out: Any, work: Any
) -> float:
    """Largest x up to `cap` such that all speeds below it reach the next point's set; negative when there is none."""
    if not _reaches(i, 0.0, top, step, table, limits, k2, S, out, work):
        return -1.0
    good, bad = 0.0, -1.0
    for k in range(1, _SCAN + 1):
        x = cap * (k / _SCAN) ** 2
        if not _reaches(i, x, top, step, table, limits, k2, S, out, work):
            bad = x
            break
        good = x
    if bad < 0.0:
        return cap
    for _ in range(_BISECTIONS):
        x = 0.5 * (good + bad)
        if _reaches(i, x, top, step, table, limits, k2, S, out, work):
            good = x
        else:
            bad = x
    return good


@compiled(nogil=True)
def backward(
    caps: Any, last: int, end: float, theta: Any, table: Any, limits: Any, k2: float, S: Any, tops: Any
) -> int:
    """Fills tops[:last + 1] from `end` at point `last`; returns -1, or the point where no speed is possible."""
    out, work = np.empty(2), np.empty(2)
    tops[last] = end
    for i in range(last - 1, -1, -1):
        step = theta[i + 1] - theta[i]
        tops[i] = _highest(i, caps[i], tops[i + 1], step, table, limits, k2, S, out, work)
        if tops[i] < 0.0:
            return i
    return -1


@compiled(nogil=True)
def forward(start: float, theta: Any, table: Any, limits: Any, k2: float, S: Any, tops: Any, x: Any, u: Any) -> int:
    """Fills x and u with the fastest motion below `tops`; returns -1, or the point where it cannot go on."""
    out, work = np.empty(2), np.empty(2)
    x[0] = start
    for i in range(len(theta) - 1):
        step = theta[i + 1] - theta[i]
        accelerations(i, x[i], step, table, limits, k2, S, out, work)
        wanted = min(out[1], (tops[i + 1] - x[i]) / (2.0 * step))
        if out[0] > out[1] or wanted < out[0] - 1e-6 * (1.0 + abs(out[0])):
            return i
        x[i + 1] = max(x[i] + 2.0 * step * wanted, 0.0)
        u[i] = (x[i + 1] - x[i]) / (2.0 * step)
        if x[i + 1] <= 0.0 and i + 2 < len(theta):
            return i + 1
    return -1
