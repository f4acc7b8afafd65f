"""Torque against the weight of the arm: sign, unit, compensation, mounting, joint order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.logs.health.probe import Probe


@dataclass(frozen=True, eq=False)
class WeightFit:
    """Per joint, `torque = a weight + b inertia + viscous qd + coulomb sign(qd) + offset` with nominal weight and inertia.

    Args:
        weight: a, shape [n]; one for a perfect nominal arm and torque in N m.
        weight_correlation: partial correlation of torque with nominal weight, friction and inertia taken out, shape [n].
        weight_share: how much of the nominal torque's spread is weight that changes, shape [n].
        inertia: b, shape [n].
        inertia_correlation: partial correlation with nominal inertial torque, shape [n].
        coulomb_correlation: partial correlation with sign(qd), shape [n].
        weight_spread: standard deviation of nominal gravity torque [N m], shape [n].
        residual: standard deviation of what is left, shape [n].
        reversals: how often the joint changes direction, shape [n].
    """

    weight: FloatArray
    weight_correlation: FloatArray
    inertia: FloatArray
    inertia_correlation: FloatArray
    friction_correlation: FloatArray
    friction_spread: FloatArray
    weight_spread: FloatArray
    torque_spread: FloatArray
    residual: FloatArray
    reversals: FloatArray


def weight_fit(probe: Probe, weight: FloatArray | None = None) -> WeightFit:
    """Fits every joint; five unknowns each."""
    g = probe.weight() if weight is None else weight
    m = probe.inertia()
    rows = [_joint_fit(probe.torque[:, j], g[:, j], m[:, j], probe.samples.qd[:, j]) for j in range(g.shape[1])]
    return WeightFit(*(np.array(column) for column in zip(*rows, strict=True)))


def _joint_fit(tau: FloatArray, g: FloatArray, m: FloatArray, qd: FloatArray) -> tuple[float, ...]:
    """Slopes and partial correlations of one joint, in the order of `WeightFit`."""
    speed = float(np.abs(qd).max()) or 1.0
    smooth_sign = np.tanh(qd / (0.02 * speed))
    one = np.ones_like(tau)
    X = np.column_stack([g, m, qd, smooth_sign, one])
    scale = np.linalg.norm(X, axis=0)
    scale[scale == 0.0] = 1.0
    coefficients = np.linalg.lstsq(X / scale, tau, rcond=1e-8)[0] / scale
    residual = tau - X @ coefficients
    friction = X[:, 2:4] @ coefficients[2:4]
    return (
        float(coefficients[0]),
        _partial(tau, g, X[:, 1:]),
        float(coefficients[1]),
        _partial(tau, m, X[:, [0, 2, 3, 4]]),
        _partial(tau, smooth_sign, X[:, [0, 1, 4]]),
        float(friction.std()),
        float(g.std()),
        float(tau.std()),
        float(residual.std()),
        float(_reversals(qd)),
    )


_REST = 0.1
"""Of the largest speed: slower is no direction."""


def _reversals(qd: FloatArray) -> int:
    """How often a joint changes direction, pauses aside."""
    moving = qd[np.abs(qd) > _REST * float(np.abs(qd).max(initial=0.0))]
    return int((np.sign(moving[1:]) != np.sign(moving[:-1])).sum())


def _partial(y: FloatArray, x: FloatArray, others: FloatArray) -> float:
    """Correlation of y and x once both are rid of what the other columns explain; zero when nothing is left of one."""
    scale = np.linalg.norm(others, axis=0)
    Q, R = np.linalg.qr(others / np.where(scale > 0.0, scale, 1.0))
    keep = np.abs(np.diag(R)) > 1e-8
    Q = Q[:, keep]
    a, b = y - Q @ (Q.T @ y), x - Q @ (Q.T @ x)
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    # What remains of x must be more than rounding of what was there.
    if size == 0.0 or np.linalg.norm(b) < 1e-6 * np.linalg.norm(x):
        return 0.0
    return float(a @ b / size)
