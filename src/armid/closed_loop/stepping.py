"""The inner loops of the closed loop, compiled by numba: the motion itself, and its exact derivative.

One integration step of length h is the two-stage W-method ROS2 of [Verwer1999], in which only friction is implicit:

    a1 = M(q)^-1 (tau - n(q, v) - f(v))        g = 1 / (1 + gamma h f'(v) / m)
    k1 = g a1,  q2 = q + h v,  v2 = v + h k1
    a2 = M(q2)^-1 (tau - n(q2, v2) - f(v2))    k2 = g (a2 - 2 k1)
    q <- q + h (v + v2) / 2,  v <- v + h (3 k1 + k2) / 2

Of second order for any m; with m near the inertia of each axis stable however steep friction is near standstill. Without
friction it is Heun's method. The derivative is that of these very formulas, not of the differential equation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.kernels.numba_cache import compiled

GAMMA = 1.0 - np.sqrt(0.5)
"""Makes ROS2 damp infinitely fast modes completely."""

_FAST = {"reassoc", "contract", "nsz"}

_CORRUPT = -1
"""An inertia matrix that is not positive."""


@compiled(fastmath=_FAST)
def _acceleration(
    dynamics: Any,
    addresses: npt.NDArray[np.intp],
    inputs: FloatArray,
    packed: FloatArray,
    rotor: FloatArray,
    q: FloatArray,
    v: FloatArray,
    force: FloatArray,
    factor: FloatArray,
    a: FloatArray,
) -> bool:
    """M(q)^-1 (force - n(q, v)), with the Cholesky factor of M left behind; False when M is not positive."""
    n = len(q)
    for j in range(n):
        inputs[j, 0] = q[j]
        inputs[n + j, 0] = v[j]
    dynamics(addresses[0], addresses[1], 0, addresses[2], 1, 1)
    k = 0
    for i in range(n):
        for j in range(i + 1):
            s = packed[k + j] + (rotor[i] if i == j else 0.0)
            first_j = j * (j + 1) // 2
            for m in range(j):
                s -= factor[k + m] * factor[first_j + m]
            if i == j:
                if not s > 0.0:
                    return False
                factor[k + j] = np.sqrt(s)
            else:
                factor[k + j] = s / factor[first_j + j]
        k += i + 1
    for i in range(n):
        s = force[i] - packed[k + i]
        first = i * (i + 1) // 2
        for m in range(i):
            s -= factor[first + m] * a[m]
        a[i] = s / factor[first + i]
    for i in range(n - 1, -1, -1):
        s = a[i]
        for m in range(i + 1, n):
            s -= factor[m * (m + 1) // 2 + i] * a[m]
        a[i] = s / factor[i * (i + 1) // 2 + i]
    return True


@compiled(fastmath=_FAST)
def advance(
    dynamics: Any,
    addresses: npt.NDArray[np.intp],
    inputs: FloatArray,
    packed: FloatArray,
    drive: FloatArray,
    gains: FloatArray,
    timing: FloatArray,
    reference: FloatArray,
    forward: FloatArray,
    noise: FloatArray,
    state: FloatArray,
    queue: FloatArray,
    ticks: FloatArray,
    stages: FloatArray,
    factors: FloatArray,
) -> int:
    """Some control ticks of the loop.

    Args:
        dynamics: compiled M and n of one sample.
        addresses: of its inputs, its parameters and its outputs.
        inputs, packed: the buffers behind the addresses.
        drive: rows rotor inertia, viscous, Coulomb, offset, velocity scale, m of the docstring above; shape [6, n].
        gains: rows kp, kd, ki as torque per unit, share of a new difference in the derivative, torque limit; shape [5, n].
        timing: control rate, steps per tick, ticks since the start, farthest permitted error.
        reference, forward, noise: commanded position, feed-forward torque, error of the encoder at each tick, shape [k, n].
        state: rows q, v, last error, filtered derivative, integral; shape [5, n]; left as it is after the last tick.
        queue: torques under way to the drives, oldest first at the row given by the tick, shape [delay + 1, n].
        ticks: written: rows q, torque, error, derivative, 1 where within the torque limit; shape [k, 5, n].
        stages: written: q, v, a of both stages of every step, shape [3 n, 2 steps].
        factors: written: Cholesky factors likewise, shape [2 steps, n (n + 1) / 2].

    Returns:
        How many ticks went well; -1 minus that when an inertia matrix was not positive.
    """
    n = reference.shape[1]
    rate, substeps, begun, farthest = timing[0], int(timing[1]), int(timing[2]), timing[3]
    h = 1.0 / (rate * substeps)
    length = len(queue)
    q, v, last, filtered, integral = state[0], state[1], state[2], state[3], state[4]
    force, a1, a2 = np.empty(n), np.empty(n), np.empty(n)
    tau, g, k1, q2, v2 = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    s = 0
    for k in range(len(reference)):
        now = begun + k
        for j in range(n):
            e = reference[k, j] - (q[j] + noise[k, j])
            if not abs(e) < farthest:
                return k
            difference = (e - last[j]) * rate
            filtered[j] += gains[3, j] * (difference - filtered[j])
            last[j] = e
            u = gains[0, j] * e + gains[1, j] * filtered[j] + gains[2, j] * integral[j] + forward[k, j]
            integral[j] += e / rate
            inside = abs(u) <= gains[4, j]
            ticks[k, 2, j] = e
            ticks[k, 3, j] = filtered[j]
            ticks[k, 4, j] = 1.0 if inside else 0.0
            queue[now % length, j] = u if inside else np.copysign(gains[4, j], u)
            if now == 0:
                # Before the first torque arrives the drives hold what the controller would ask for.
                for row in range(1, length):
                    queue[row, j] = queue[0, j]
            tau[j] = queue[(now + 1) % length, j]
            ticks[k, 0, j] = q[j]
            ticks[k, 1, j] = tau[j]
        for _ in range(substeps):
            for j in range(n):
                t = np.tanh(v[j] / drive[4, j])
                slope = drive[1, j] + drive[2, j] * (1.0 - t * t) / drive[4, j]
                force[j] = tau[j] - drive[1, j] * v[j] - drive[2, j] * t - drive[3, j]
                g[j] = 1.0 / (1.0 + GAMMA * h * slope / drive[5, j])
            if not _acceleration(dynamics, addresses, inputs, packed, drive[0], q, v, force, factors[2 * s], a1):
                return _CORRUPT - k
            for j in range(n):
                k1[j] = g[j] * a1[j]
                q2[j] = q[j] + h * v[j]
                v2[j] = v[j] + h * k1[j]
                t = np.tanh(v2[j] / drive[4, j])
                force[j] = tau[j] - drive[1, j] * v2[j] - drive[2, j] * t - drive[3, j]
            if not _acceleration(dynamics, addresses, inputs, packed, drive[0], q2, v2, force, factors[2 * s + 1], a2):
                return _CORRUPT - k
            for j in range(n):
                for x, c in ((0, 2 * s), (1, 2 * s + 1)):
                    stages[j, c] = q[j] if x == 0 else q2[j]
                    stages[n + j, c] = v[j] if x == 0 else v2[j]
                    stages[2 * n + j, c] = a1[j] if x == 0 else a2[j]
                q[j] += 0.5 * h * (v[j] + v2[j])
                v[j] += 0.5 * h * (3.0 * k1[j] + g[j] * (a2[j] - 2.0 * k1[j]))
            s += 1
    return len(reference)


@compiled(fastmath=_FAST)
def _axpy(c: float, x: FloatArray, y: FloatArray) -> None:
    """Y += c x."""
    for k in range(len(y)):
        y[k] += c * x[k]


@compiled(fastmath=_FAST)
def _tangent_acceleration(
    A: FloatArray,
    column: int,
    rows: FloatArray,
    channels: npt.NDArray[np.intp],
    columns: npt.NDArray[np.intp],
    n_entries: int,
    stages: FloatArray,
    factor: FloatArray,
    drive: FloatArray,
    places: npt.NDArray[np.intp],
    S_tau: FloatArray,
    S_q: FloatArray,
    S_v: FloatArray,
) -> None:
    """Derivative of the acceleration at one stage: A = M^-1 (S_tau - Y - dn/dq S_q - (dn/dv + f') S_v).

    Args:
        A: written, shape [n, p].
        column: the stage.
        rows: entries of the rigid rows at (q, v, a), then dn/dq and dn/dv of the torque at (q, v, a), one column per stage.
        channels, columns: of the entries; columns in the parameter vector.
        n_entries: how many.
        stages, factor: of the motion.
        drive: see `advance`.
        places: columns of rotor inertia, viscous, Coulomb, offset; -1 without, shape [4, n].
        S_tau, S_q, S_v: derivatives of torque, position and velocity, shape [n, p].
    """
    n = len(S_q)
    for i in range(n):
        v, a = stages[n + i, column], stages[2 * n + i, column]
        t = np.tanh(v / drive[4, i])
        A[i] = S_tau[i]
        for j in range(n):
            _axpy(-rows[n_entries + i * n + j, column], S_q[j], A[i])
            slope = drive[1, i] + drive[2, i] * (1.0 - t * t) / drive[4, i] if i == j else 0.0
            _axpy(-rows[n_entries + n * n + i * n + j, column] - slope, S_v[j], A[i])
        for kind, value in ((0, a), (1, v), (2, t), (3, 1.0)):
            if places[kind, i] >= 0:
                A[i, places[kind, i]] -= value
    for k in range(n_entries):
        A[channels[k], columns[k]] -= rows[k, column]
    for i in range(n):
        first = i * (i + 1) // 2
        for m in range(i):
            _axpy(-factor[first + m], A[m], A[i])
        A[i] *= 1.0 / factor[first + i]
    for i in range(n - 1, -1, -1):
        for m in range(i + 1, n):
            _axpy(-factor[m * (m + 1) // 2 + i], A[m], A[i])
        A[i] *= 1.0 / factor[i * (i + 1) // 2 + i]


@compiled(fastmath=_FAST)
def _tangent_control(
    gains: FloatArray,
    gain_places: npt.NDArray[np.intp],
    rate: float,
    now: int,
    tick: FloatArray,
    integral: FloatArray,
    S: FloatArray,
    S_queue: FloatArray,
) -> None:
    """Derivative of what the controller asks for at one tick; arguments as of `advance_tangent`."""
    n, p = S.shape[1], S.shape[2]
    length = len(S_queue)
    for j in range(n):
        u = S_queue[now % length, j]
        inside = tick[4, j]
        for c in range(p):
            e = -S[0, j, c]
            difference = (e - S[2, j, c]) * rate
            S[3, j, c] += gains[3, j] * (difference - S[3, j, c])
            S[2, j, c] = e
            u[c] = inside * (gains[0, j] * e + gains[1, j] * S[3, j, c] + gains[2, j] * S[4, j, c])
            S[4, j, c] += e / rate
        for kind, value in ((0, tick[2, j]), (1, tick[3, j]), (2, integral[j])):
            if gain_places[kind, j] >= 0:
                u[gain_places[kind, j]] += inside * value
        if now == 0:
            for row in range(1, length):
                S_queue[row, j] = u


@compiled(fastmath=_FAST)
def _tangent_first(
    h: float,
    stage: FloatArray,
    drive: FloatArray,
    places: npt.NDArray[np.intp],
    A1: FloatArray,
    S_q: FloatArray,
    S_v: FloatArray,
    g: FloatArray,
    k1: FloatArray,
    dg: FloatArray,
    K1: FloatArray,
    S_q2: FloatArray,
    S_v2: FloatArray,
) -> None:
    """Derivatives of g, k1, q2 and v2 from that of a1; all but the first seven arguments are written."""
    n, p = S_q.shape
    for j in range(n):
        v, a, w = stage[n + j], stage[2 * n + j], drive[4, j]
        t = np.tanh(v / w)
        steep = (1.0 - t * t) / w
        g[j] = 1.0 / (1.0 + GAMMA * h * (drive[1, j] + drive[2, j] * steep) / drive[5, j])
        bend = -g[j] * g[j] * GAMMA * h / drive[5, j]
        k1[j] = g[j] * a
        curvature = bend * drive[2, j] * (-2.0 * t * steep / w)
        for c in range(p):
            dg[j, c] = curvature * S_v[j, c]
        if places[1, j] >= 0:
            dg[j, places[1, j]] += bend
        if places[2, j] >= 0:
            dg[j, places[2, j]] += bend * steep
        for c in range(p):
            K1[j, c] = g[j] * A1[j, c] + a * dg[j, c]
            S_q2[j, c] = S_q[j, c] + h * S_v[j, c]
            S_v2[j, c] = S_v[j, c] + h * K1[j, c]


@compiled(fastmath=_FAST)
def advance_tangent(
    rows: FloatArray,
    channels: npt.NDArray[np.intp],
    columns: npt.NDArray[np.intp],
    places: npt.NDArray[np.intp],
    gain_places: npt.NDArray[np.intp],
    drive: FloatArray,
    gains: FloatArray,
    timing: FloatArray,
    stride: int,
    integrals: FloatArray,
    ticks: FloatArray,
    stages: FloatArray,
    factors: FloatArray,
    S: FloatArray,
    S_queue: FloatArray,
    out: FloatArray,
) -> None:
    """The derivative of `advance` along the motion it left behind.

    Args:
        rows, channels, columns, places: see `_tangent_acceleration`.
        gain_places: columns of kp, kd, ki; -1 where known, shape [3, n].
        drive, gains, timing: see `advance`.
        stride: control ticks per sample that is wanted; the first tick of the motion is one.
        integrals: of the error before each tick, shape [k, n].
        ticks, stages, factors: written by `advance`.
        S: derivatives of q, v, last error, filtered derivative, integral; shape [5, n, p]; left as they are after the last tick.
        S_queue: of the torques under way, shape [delay + 1, n, p].
        out: written: derivatives of position and torque at the wanted samples, shape [samples, 2 n, p].
    """
    n, p = S.shape[1], S.shape[2]
    rate, substeps, begun = timing[0], int(timing[1]), int(timing[2])
    h = 1.0 / (rate * substeps)
    length = len(S_queue)
    room = np.empty((6, n, p))
    A1, A2, K1, S_q2, S_v2, dg = room[0], room[1], room[2], room[3], room[4], room[5]
    g, k1 = np.empty(n), np.empty(n)
    s, sample = 0, 0
    n_entries = len(channels)
    for k in range(len(ticks)):
        now = begun + k
        _tangent_control(gains, gain_places, rate, now, ticks[k], integrals[k], S, S_queue)
        S_tau = S_queue[(now + 1) % length]
        if now % stride == 0:
            for j in range(n):
                out[sample, j] = S[0, j]
                out[sample, n + j] = S_tau[j]
            sample += 1
        for _ in range(substeps):
            S_q, S_v = S[0], S[1]
            _tangent_acceleration(
                A1, 2 * s, rows, channels, columns, n_entries, stages, factors[2 * s], drive, places, S_tau, S_q, S_v
            )
            _tangent_first(h, stages[:, 2 * s], drive, places, A1, S_q, S_v, g, k1, dg, K1, S_q2, S_v2)
            _tangent_acceleration(
                A2,
                2 * s + 1,
                rows,
                channels,
                columns,
                n_entries,
                stages,
                factors[2 * s + 1],
                drive,
                places,
                S_tau,
                S_q2,
                S_v2,
            )
            for j in range(n):
                rest = stages[2 * n + j, 2 * s + 1] - 2.0 * k1[j]
                for c in range(p):
                    K2 = g[j] * (A2[j, c] - 2.0 * K1[j, c]) + rest * dg[j, c]
                    S_q[j, c] += 0.5 * h * (S_v[j, c] + S_v2[j, c])
                    S_v[j, c] += 0.5 * h * (3.0 * K1[j, c] + K2)
            s += 1
