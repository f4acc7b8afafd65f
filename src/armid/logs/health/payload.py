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
    EXPLAINS,
    LAST_LINK,
    MIN_JOINTS,
    MIN_SHARE,
)
from armid.logs.log import Channel
from armid.notes import Note, Severity
from armid.parameters.inertial import N_INERTIAL

_SAMPLES = 800


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Mass [kg] of a payload that would explain the torque, and the share of the unexplained power it leaves."""

    mass: float
    left: float


def payload_findings(view: Probe) -> Iterator[Note]:
    """A payload that the conditions of the run do not mention."""
    if not view.real or view.log.conditions.loaded or view.robot.n_joints < MIN_JOINTS:
        return
    found = _suspicion(view)
    masses = view.inertial[::N_INERTIAL]
    least = max(MIN_SHARE * float(masses.sum()), LAST_LINK * float(masses[-1]))
    if found is None or found.left > EXPLAINS or found.mass < least:
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


def _suspicion(view: Probe) -> Suspicion | None:
    """Fits one scale for the nominal arm, friction per joint, with and without a body on the last link."""
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
    return Suspicion(float(x[1] / x[0]), float(((loaded * weight) ** 2).sum()) / before)


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
