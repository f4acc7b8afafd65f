"""Whether what a controller reports as gravity is gravity, of this arm, mounted as described.

g(q) is linear in the links' first moments for a given direction of gravity, and linear in that direction for given moments. A
direction that explains the data much better than the described one is the real one; data that no direction explains are something
else: torque of a moving arm, another arm, other units.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from armid.arrays import FloatArray
from armid.kernels.dynamics import gravity
from armid.kernels.evaluate import evaluate_rows
from armid.kernels.source import RowSource
from armid.outcome import Check
from armid.parameters.effects import Effects
from armid.recovery.samples import ControllerSamples
from armid.robot.robot import Robot
from armid.rows.gravity import GravityRows
from armid.rows.inertia_matrix import InertiaMatrixRows

_ROUND_OFF = 1e-6
"""Relative error of a fit that single precision on the wire explains."""

_CLEARLY_BETTER = 3.0
"""Ratio of errors from which another direction of gravity is the real one, and no accident of noise."""

FOREIGN = 0.05
"""Relative error of a fit: a controller that evaluates a model of this arm is never that far from every such model."""

_SLIGHT = np.deg2rad(3.0)
"""[rad] A base that was set up carelessly; beyond this it was mounted otherwise."""

_FROM_MOTION = 0.3
"""Share of what gravity does not explain that velocity and acceleration do: then it was no gravity vector."""

_OPPOSED = -0.7
"""Correlation with the description's gravity torques; masses that differ by half still agree in sign."""

_POSES = 120
"""Used for the search: enough for the few first moments, quick enough to try many directions."""


@dataclass(frozen=True, eq=False)
class Down:
    """The direction of gravity that explains the data best.

    Args:
        gravity: [m/s^2] in the base frame, shape [3]; of the two senses, which gravity alone cannot tell apart, the nearer one.
        error: relative error with it.
        error_described: with the description's own.
    """

    gravity: FloatArray
    error: float
    error_described: float

    def angle(self, described: FloatArray) -> float:
        """From the description's direction [rad]."""
        cosine = float(self.gravity @ described) / (np.linalg.norm(self.gravity) * np.linalg.norm(described))
        return float(np.arccos(np.clip(cosine, -1.0, 1.0)))


def _direction(robot: Robot, q: FloatArray, g: FloatArray) -> Down:
    """Searches all directions by variable projection: for each, the first moments follow by least squares."""
    from scipy.optimize import minimize

    described = np.array(robot.gravity)
    size = float(np.linalg.norm(described)) or 9.81
    A = np.stack([evaluate_rows(GravityRows(robot.with_gravity(size * e)), q) for e in np.eye(3)])
    A = A.reshape(3, -1, A.shape[-1])
    y = g.ravel()

    def error(d: FloatArray) -> float:
        return _relative_error(np.tensordot(d / np.linalg.norm(d), A, axes=(0, 0)), y)

    corners = [np.array(d, dtype=np.float64) for d in product((-1, 0, 1), repeat=3) if d > (0, 0, 0)]
    starts = sorted([described / size, *corners], key=error)[:2]
    best = min((minimize(error, d, method="Nelder-Mead", options=_SEARCH) for d in starts), key=lambda found: found.fun)
    down = best.x / np.linalg.norm(best.x)
    if down @ described < 0.0:
        down = -down
    return Down(size * down, float(best.fun), error(described / size))


_SEARCH = {"xatol": 1e-7, "fatol": 1e-12, "maxfev": 250}


def _relative_error(A: FloatArray, y: FloatArray) -> float:
    """|y - A A^+ y| / |y|."""
    U, s, _ = np.linalg.svd(A[:, np.abs(A).max(axis=0) > 0.0], full_matrices=False)
    U = U[:, s > 1e-9 * s[0]] if len(s) else U
    return float(np.linalg.norm(y - U @ (U.T @ y)) / max(float(np.linalg.norm(y)), 1e-300))


def suspicions(robot: Robot, samples: ControllerSamples, effects: Effects) -> list[Check]:
    """What speaks against the data being g(q) and M(q) of this arm, mounted as described, as checks that fail."""
    found: list[Check] = []
    if samples.gravity is not None and float(np.abs(samples.gravity).max(initial=0.0)) > 0.0:
        found += _gravity_suspicions(robot, samples, samples.gravity)
    if samples.inertia is not None:
        found += _inertia_suspicions(robot, samples, samples.inertia, effects)
    return found


def _suspicion(code: str, subject: str, value: float, limit: float, text: str, *, decisive: bool = True) -> Check:
    return Check(
        code=code,
        passed=False,
        value=value,
        limit=limit,
        message=f"{subject}: {text}",
        subject=subject,
        decisive=decisive,
    )


def _inertia_suspicions(robot: Robot, samples: ControllerSamples, M: FloatArray, effects: Effects) -> list[Check]:
    rows = InertiaMatrixRows(robot, effects)
    j, k = np.array(rows.entries).T
    error = _fit_error(rows, samples.q, M[:, j, k])
    if error < _ROUND_OFF:
        return []
    if not effects.rotor_inertia:
        with_rotors = InertiaMatrixRows(robot, Effects(rotor_inertia=True))
        ratio = error / max(_fit_error(with_rotors, samples.q, M[:, j, k]), 1e-15)
        if ratio > _CLEARLY_BETTER:
            text = f"rotor inertias on the diagonal explain it {ratio:.2g} times better: give --rotor-inertia"
            return [_suspicion("rotors-included", "inertia", ratio, _CLEARLY_BETTER, text)]
    if error > FOREIGN:
        text = "no arm of this geometry has these inertia matrices: other lengths or joint order, degrees, or another matrix"
        return [_suspicion("not-inertia", "inertia", error, FOREIGN, text)]
    return []


def _gravity_suspicions(robot: Robot, samples: ControllerSamples, g: FloatArray) -> list[Check]:
    correlation = _correlation(robot, samples.q, g)
    if correlation < _OPPOSED:
        text = "opposed to the description's own gravity torques: a reversed sign, or an arm that hangs; give --gravity"
        return [_suspicion("gravity-reversed", "gravity", correlation, _OPPOSED, text)]
    error = _fit_error(GravityRows(robot), samples.q, g)
    if error < _ROUND_OFF:
        return []
    moving = _motion_share(robot, samples, g)
    if moving > _FROM_MOTION:
        text = (
            f"velocity and acceleration explain {100 * moving:.0f} % of what gravity does not: torque read in motion; "
            "read the controller's gravity vector, or stand still"
        )
        return [_suspicion("not-static", "gravity", moving, _FROM_MOTION, text)]
    some = slice(None, None, max(1, len(samples) // _POSES))
    down = _direction(robot, samples.q[some], g[some])
    if down.error_described > _CLEARLY_BETTER * down.error and down.error < FOREIGN:
        return [_mounting(down, down.angle(np.array(robot.gravity)))]
    if error > FOREIGN:
        text = (
            f"no gravity vector of an arm of this geometry, whichever way is down: {100 * error:.2g} % are left. Torque "
            "of a moving arm or with friction, degrees, another joint order, or another arm"
        )
        return [_suspicion("not-gravity", "gravity", error, FOREIGN, text)]
    return []


def _correlation(robot: Robot, q: FloatArray, g: FloatArray) -> float:
    """With what the description's masses say; first moments of the other sign fit the data as well."""
    expected = gravity(robot, q)
    sizes = float(np.linalg.norm(expected)) * float(np.linalg.norm(g))
    return float(np.sum(expected * g)) / sizes if sizes > 0.0 else 0.0


def _mounting(down: Down, angle: float) -> Check:
    """Another direction of gravity than the description's."""
    vector = ", ".join(f"{x:.4g}" for x in down.gravity)
    ratio = down.error_described / max(down.error, 1e-15)
    words = f"gravity along ({vector}) m/s^2 explains the data {ratio:.2g} times better than the description's"
    if angle < _SLIGHT:
        text = f"the base is tilted by {np.rad2deg(angle):.2g} degrees: {words}; give it with --gravity"
        return _suspicion("tilted-base", "gravity", angle, _SLIGHT, text, decisive=False)
    text = f"mounted otherwise than described, {np.rad2deg(angle):.0f} degrees off: {words}; give it with --gravity"
    return _suspicion("mounting", "gravity", angle, _SLIGHT, text)


def _fit_error(rows: RowSource, q: FloatArray, y: FloatArray) -> float:
    """Relative error of the best fit, over some of the poses."""
    some = slice(None, None, max(1, len(q) // _POSES))
    A = evaluate_rows(rows, q[some])
    return _relative_error(A.reshape(-1, A.shape[-1]), y[some].ravel())


def _motion_share(robot: Robot, samples: ControllerSamples, g: FloatArray) -> float:
    """Which share of the error of the gravity fit follows velocity and acceleration; 0 when there is no clock to tell."""
    t = samples.time
    if t is None or len(t) < 10 or not (np.diff(t) > 0.0).all():
        return 0.0
    qd = np.gradient(samples.q, t, axis=0)
    qdd = np.gradient(qd, t, axis=0)
    A = evaluate_rows(GravityRows(robot), samples.q).reshape(g.size, -1)
    e = (g.ravel() - A @ np.linalg.lstsq(A, g.ravel(), rcond=None)[0]).reshape(g.shape)
    left = 0.0
    for j in range(g.shape[1]):
        B = np.column_stack([qd, qdd, np.sign(qd[:, j]), np.ones(len(qd))])
        B = B / np.maximum(np.linalg.norm(B, axis=0), 1e-300)
        left += float(np.sum((e[:, j] - B @ np.linalg.lstsq(B, e[:, j], rcond=1e-10)[0]) ** 2))
    return 1.0 - left / max(float(np.sum(e**2)), 1e-300)
