"""Something in the hand: a payload nobody mentioned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.kernels.dynamics import regressor
from armid.logs.health.findings import finding
from armid.logs.health.probe import Probe
from armid.logs.health.thresholds import (
    DESCRIBED,
    EXPLAINS,
    LAST_LINK,
    MIN_JOINTS,
    MIN_SHARE,
    PAYLOAD_ODDS,
)
from armid.logs.log import Channel
from armid.notes import Note, Severity
from armid.parameters.inertial import N_INERTIAL

_SAMPLES = 800

_SHARES = np.geomspace(0.02, 1.0, 30)
"""Of `payload-described`, by which a description may be off."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Mass [kg] of a payload that would explain the torque.

    Args:
        mass: of it [kg].
        left: share of the unexplained power that it leaves.
        odds: logarithm of how much likelier the torque is with it than with errors of the description alone.
    """

    mass: float
    left: float
    odds: float


def payload_findings(view: Probe) -> Iterator[Note]:
    """A payload that the conditions of the run do not mention."""
    if not view.real or view.log.conditions.loaded or view.robot.n_joints < MIN_JOINTS:
        return
    masses = view.inertial[::N_INERTIAL]
    found = _suspicion(view, max(MIN_SHARE * float(masses.sum()), LAST_LINK * float(masses[-1])))
    if found is None or found.odds < PAYLOAD_ODDS:
        return
    # Gains of the drives differ, so currents do not say how heavy it is.
    payload = "a payload" if view.channel is Channel.CURRENT else f"a payload of about {found.mass:.2g} kg"
    yield finding(
        "payload-suspected",
        Severity.WARNING,
        view.log.name,
        f"{payload} explains {1.0 - found.left:.0%} of what the nominal arm leaves unexplained",
        "say what was carried (`payload` in the conditions of the mapping), or take it off",
    )


def _suspicion(view: Probe, least: float) -> Suspicion | None:
    """Fits one scale for the nominal arm, friction per joint, with and without a body on the last link.

    Args:
        view: of the log.
        least: mass of a payload that is worth looking at [kg].

    Returns:
        None where the body explains too little, or weighs less.
    """
    s = view.samples
    pick = np.unique(np.linspace(0, len(s) - 1, min(len(s), _SAMPLES)).astype(int))
    if len(pick) < 100:
        return None
    q, qd, qdd, tau = s.q[pick], s.qd[pick], s.qdd[pick], view.torque[pick]
    Y = regressor(view.robot, q, qd, qdd)
    nominal = (Y @ view.inertial)[:, :, np.newaxis]
    # Mass and first moments of a body on the last link; its inertia hardly shows in slow motion.
    body = Y[:, :, -N_INERTIAL : -N_INERTIAL + 4]
    drives = _drive_columns(qd, qdd)
    weight = 1.0 / np.maximum(tau.std(axis=0), 1e-12)
    for _ in range(2):
        _, residual = _weighted_fit(np.concatenate([nominal, drives], axis=2), tau, weight)
        weight = 1.0 / np.maximum(np.sqrt((residual**2).mean(axis=0)), 1e-9 * np.maximum(tau.std(axis=0), 1e-12))
    x, loaded = _weighted_fit(np.concatenate([nominal, body, drives], axis=2), tau, weight)
    before = float(((residual * weight) ** 2).sum())
    if x[0] <= 0.0 or before <= 0.0:
        return None
    mass, left = float(x[1] / x[0]), float(((loaded * weight) ** 2).sum()) / before
    if left > EXPLAINS or mass < least:
        return None
    errors = Y @ _description_errors(view.inertial) * x[0]
    free = np.concatenate([nominal, drives], axis=2)
    return Suspicion(mass=mass, left=left, odds=_odds(free, Y[:, :, -N_INERTIAL:], errors, tau, weight))


def _odds(free: FloatArray, body: FloatArray, errors: FloatArray, tau: FloatArray, weight: FloatArray) -> float:
    """Logarithm of how much likelier the torque is with a payload than without, beside errors of the description.

        tau = free x + body m + errors d + noise,    d ~ N(0, s^2),  noise ~ N(0, sigma^2)

    With x eliminated the covariance is diagonal along the principal directions of the errors; m and s <= 1 are the likeliest. So
    errors of the description count by what the torque itself shows of them: where a body explains all of it there are few, where
    much is left beside it there are many, of which one may look like a body.

    Args:
        free: columns of anything, shape [n_samples, n_joints, k].
        body: of the payload.
        errors: of a description that is off by `payload-described`.
        tau: measured, shape [n_samples, n_joints].
        weight: of every joint's rows.
    """
    A = np.concatenate([free, body, errors, tau[:, :, np.newaxis]], axis=2) * weight[:, np.newaxis]
    rows = A.reshape(-1, A.shape[2])
    R = np.asarray(np.linalg.qr(rows, mode="r"), dtype=np.float64)
    p, q = free.shape[2], free.shape[2] + body.shape[2]
    noise = max(float(R[-1, -1] ** 2) / max(len(rows) - rows.shape[1], 1), 1e-12)
    U, size, _ = np.linalg.svd(R[p:-1, q:-1])
    b, y = U.T @ R[p:-1, p:q], U.T @ R[p:-1, -1]
    b = b / np.maximum(np.linalg.norm(b, axis=0), 1e-300)
    power = np.concatenate([size**2, np.zeros(len(y) - len(size))])
    without, with_it = -np.inf, -np.inf
    for share in _SHARES:
        deviation = np.sqrt(noise + share**2 * power)
        m = np.linalg.lstsq(b / deviation[:, np.newaxis], y / deviation, rcond=1e-9)[0]
        without = max(without, _log_likelihood(y, deviation))
        with_it = max(with_it, _log_likelihood(y - b @ m, deviation))
    return with_it - without


def _log_likelihood(left: FloatArray, deviation: FloatArray) -> float:
    """Of independent normal errors, but for a constant."""
    return -0.5 * float(((left / deviation) ** 2).sum()) - float(np.log(deviation).sum())


def _description_errors(inertial: FloatArray) -> FloatArray:
    """Changes of the parameters as a description may be off, one column each, shape [10 n, 10 n].

    Of every link all ten with its mass m by a share of themselves, its centre of mass by that share of its radius of gyration r,
    and every entry of its inertia by that share of m r^2.
    """
    n = len(inertial) // N_INERTIAL
    out = np.zeros((N_INERTIAL * n, N_INERTIAL * n))
    for i in range(n):
        at = N_INERTIAL * i
        own = inertial[at : at + N_INERTIAL]
        m = max(float(own[0]), 1e-12)
        # Of the frame's inertia what the distance of the centre of mass makes is taken out.
        about_centre = float(own[4] + own[7] + own[9]) - 2.0 * float(own[1:4] @ own[1:4]) / m
        radius = float(np.sqrt(max(0.5 * about_centre / m, 0.0)))
        out[at : at + N_INERTIAL, at] = DESCRIBED * own
        first, second = at + np.arange(1, 4), at + np.arange(4, N_INERTIAL)
        out[first, first] = DESCRIBED * m * radius
        out[second, second] = DESCRIBED * m * radius**2
    return out


def _drive_columns(qd: FloatArray, qdd: FloatArray) -> FloatArray:
    """Viscous, Coulomb, rotor inertia and offset of every joint, shape [n_samples, n, 4 n]."""
    count, n = qd.shape
    out = np.zeros((count, n, 4 * n))
    for j in range(n):
        smooth = np.tanh(qd[:, j] / max(0.02 * float(np.abs(qd[:, j]).max()), 1e-12))
        out[:, j, 4 * j : 4 * j + 4] = np.column_stack([qd[:, j], smooth, qdd[:, j], np.ones(count)])
    return out


def _weighted_fit(A: FloatArray, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Parameters and residuals [n_samples, n] of rows weighted per joint."""
    rows = (A * weight[:, np.newaxis]).reshape(-1, A.shape[2])
    scale = np.linalg.norm(rows, axis=0)
    scale[scale == 0.0] = 1.0
    x = np.asarray(np.linalg.lstsq(rows / scale, (y * weight).ravel(), rcond=1e-9)[0], dtype=np.float64) / scale
    return x, y - A @ x
