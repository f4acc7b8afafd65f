"""The watch, compiled: what a sample adds to its block, and a block to a Kalman filter of all states over all channels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.kernels.numba_cache import compiled


@compiled(nogil=True)
def predict(
    packed: FloatArray,
    channels: npt.NDArray[np.intp],
    columns: npt.NDArray[np.intp],
    parameters: FloatArray,
    coulomb: npt.NDArray[np.bool_],
    first: int,
    share: float,
    smooth: FloatArray,
    mean: FloatArray,
    load: FloatArray,
) -> None:
    """Torque of the arm it started from, and what a load on its last link adds, from the rows of a sample.

    Args:
        packed, channels, columns: entries of the rows.
        parameters: full parameter vector, shape [p].
        coulomb: whether each is Coulomb friction, shape [p].
        first: column of the last link's ten parameters.
        share: of the sample in its block.
        smooth: torque over the block without Coulomb friction [N m or N], shape [m]; added to.
        mean: all of it, shape [m]; added to.
        load: torque over the block per unit of the load's ten parameters, shape [m, 10]; added to.
    """
    for i in range(len(packed)):
        k, c = channels[i], columns[i]
        torque = share * packed[i] * parameters[c]
        mean[k] += torque
        if not coulomb[c]:
            smooth[k] += torque
        if first <= c < first + load.shape[1]:
            load[k, c - first] += share * packed[i]


@compiled(nogil=True)
def columns_of(
    torque: FloatArray,
    slope: FloatArray,
    jacobian: FloatArray,
    way: FloatArray,
    velocity: FloatArray,
    tilt: FloatArray,
    load: FloatArray,
    zeros: FloatArray,
    tolerance: FloatArray,
    state: FloatArray,
    places: npt.NDArray[np.intp],
    H: FloatArray,
    expected: FloatArray,
) -> None:
    """What every channel should read and its derivative by the states it depends on.

    A channel k of joint j reads, with sizes in their own units and the zeros z as they were last known well,

        (1 + gain) tau0(q - z) + offset - delay tau0' + coulomb sign(qd_j) + viscous qd_j
            - J_k (zero - z) + tilt . G_k + load . Y_k

    Products of two sizes are left out: linear, what is unknown stays unknown however far the states are from the truth.
    Friction is that of the last n channels: of two sides the one that feels all of it. Columns of a channel, in this order:
    gain, offset, delay, Coulomb, viscous [5], zeros [n], tilt [2], load [10].

    Args:
        torque: tau0(q - z) [N m or N], shape [m].
        slope: per second, Coulomb friction apart, shape [m].
        jacobian: derivative of tau0 by the positions, shape [n, at least m].
        way, velocity: sign of the velocity, and the velocity itself, shape [n].
        tilt: shape [2, m].
        load: shape [m, 10].
        zeros: z in tolerances, shape [n].
        tolerance: shape [N].
        state: in tolerances, shape [N].
        places: states that the columns belong to, shape [m, 17 + n].
        H: shape [m, 17 + n]; out.
        expected: shape [m]; out.
    """
    m, n = len(torque), len(velocity)
    for k in range(m):
        j = k % n
        H[k, 0] = torque[k]
        H[k, 1] = 1.0
        H[k, 2] = -slope[k]
        felt = k >= m - n
        H[k, 3] = way[j] if felt else 0.0
        H[k, 4] = velocity[j] if felt else 0.0
        for i in range(n):
            H[k, 5 + i] = -jacobian[i, k]
        for i in range(2):
            H[k, 5 + n + i] = tilt[i, k]
        for i in range(load.shape[1]):
            H[k, 7 + n + i] = load[k, i]
        expected[k] = torque[k]
        for a in range(H.shape[1]):
            H[k, a] *= tolerance[places[k, a]]
            expected[k] += H[k, a] * state[places[k, a]]
        for i in range(n):
            expected[k] -= H[k, 5 + i] * zeros[i]


@compiled(nogil=True)
def follow(
    error: FloatArray,
    H: FloatArray,
    places: npt.NDArray[np.intp],
    counted: npt.NDArray[np.bool_],
    variance: FloatArray,
    walk: FloatArray,
    state: FloatArray,
    covariance: FloatArray,
    left: FloatArray,
    score: FloatArray,
    room: FloatArray,
) -> None:
    """A step of the random walk and a measurement of every channel; state and covariance change in place.

    Args:
        error: measured less expected [N m or N], shape [m].
        H: derivatives by the states a channel depends on, shape [m, w].
        places: these states, shape [m, w].
        counted: channels that count, shape [m].
        variance: of the noise, shape [m].
        walk: variance that the states gain in a step, in tolerances squared, shape [N].
        state: in tolerances, shape [N].
        covariance: theirs, shape [N, N].
        left: error of every channel as those before it leave it [N m or N], shape [m]; out, of channels that count.
        score: its square over its variance, what is unknown of the states included, shape [m]; out likewise.
        room: shape [N].
    """
    N, before = len(state), state.copy()
    for i in range(N):
        covariance[i, i] += walk[i]
    for k in range(len(error)):
        if not counted[k]:
            continue
        room[:] = 0.0
        for a in range(H.shape[1]):
            h = H[k, a]
            row = covariance[places[k, a]]
            for i in range(N):
                room[i] += h * row[i]
        spread, left[k] = variance[k], error[k]
        for a in range(H.shape[1]):
            spread += H[k, a] * room[places[k, a]]
            left[k] -= H[k, a] * (state[places[k, a]] - before[places[k, a]])
        score[k] = left[k] * left[k] / spread
        for i in range(N):
            gain = room[i] / spread
            state[i] += gain * left[k]
            row = covariance[i]
            for b in range(N):
                row[b] -= gain * room[b]
