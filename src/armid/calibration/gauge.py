"""What no measurement knows: where base and sensor are as a whole.

A sensor that may stand anywhere sees the same when the whole arm is moved and the sensor with it. Of all these equal answers the
one is kept in which the tip moves least from where the nominal arm has it: base and flange stay where they are, and only what
the measurements show enters the calibrated arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.calibration.fit import KinematicFit
from armid.calibration.identifiable import ParameterStatus
from armid.calibration.intervals import ClusteredSpread
from armid.calibration.noise import LEVER
from armid.kernels.kinematics import forward_kinematics
from armid.kinematics.calibrated import frame_matrix, predicted_poses
from armid.kinematics.encoders import without_encoder_terms
from armid.kinematics.measurement import Measurements
from armid.kinematics.model import KinematicModel, Slot, TermBasis, pose_and_derivative
from armid.kinematics.rotations import inverse, rigid, rotation_exp, rotation_log
from armid.kinematics.sag import gravity_torque
from armid.robot.elementary import Elementary, Move, product

_MANY = 300
"""Configurations that stand for the workspace."""
_ROUNDS = 6
"""Newton steps on six small numbers; each squares the error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TipUncertainty:
    """Standard deviation of the tip's position in the base frame over the workspace [m], root of the trace of its covariance.

    Args:
        mean, p95, max: over configurations within the joint ranges that were measured.
    """

    mean: float
    p95: float
    max: float


def settled(fit: KinematicFit, measurements: Measurements) -> KinematicFit:
    """The same fit with base and flange where the nominal arm has them; residuals do not change.

    Nothing is done where a sensor's frame is not free in all six directions, or the first link has no six constants to hold
    the motion: there the measurements, or the form of the tables, say where the base is.
    """
    first = _first_link(fit.model)
    if first is None or not all(_free_in_front(slots) for slots in fit.model.setups.values()):
        return fit
    G = _least_motion(fit, _some(measurements.q))
    values = np.array(fit.after.values)
    front, owners = first
    here = product(front)
    _put(values, owners, inverse(here) @ G @ here @ _chain(owners, values))
    for slots in fit.model.setups.values():
        T = frame_matrix(slots, values) @ inverse(G)
        rest = product(slot.element for slot in slots[6:])
        _put(values, [(s.element, s.parameter, 1.0) for s in slots[:6] if s.parameter is not None], T @ inverse(rest))
    selection = fit.after.selection
    moved = {k for _, k, _ in owners if not selection.kept[k]}
    status = tuple(ParameterStatus.GAUGE if k in moved else s for k, s in enumerate(selection.status))
    return replace(fit, after=replace(fit.after, values=values, selection=replace(selection, status=status)))


_Owned = Sequence[tuple[Elementary, int, float]]
"""Elementary motions with the parameter that each carries, and its sign."""


def _first_link(model: KinematicModel) -> tuple[list[Elementary], list[tuple[Elementary, int, float]]] | None:
    """What stands before the constants of the first joint, and the six motions that its constants and zero can make."""
    slots = model.links[0]
    k = next(i for i, slot in enumerate(slots) if slot.joint is not None)
    small = [s for s in slots[:k] if s.parameter is not None]
    zero = next((t.parameter for t in model.terms if t.joint == 0 and t.basis is TermBasis.ONE), None)
    if len(small) != 5 or zero is None or slots[k - 5 : k] != tuple(small):
        return None
    own = slots[k].element
    owners = [(s.element, int(s.parameter), 1.0) for s in small if s.parameter is not None]
    return [s.element for s in slots[: k - 5]], [*owners, (Elementary(motion=own.motion), zero, float(own.sign))]


def _free_in_front(slots: tuple[Slot, ...]) -> bool:
    """Whether a frame begins with all six small motions."""
    free = {slot.element.motion for slot in slots[:6] if slot.parameter is not None and slot.element.value == 0.0}
    return len(free) == len(Move)


def _chain(owners: _Owned, values: FloatArray) -> FloatArray:
    return product(replace(e, value=e.value + sign * float(values[k])) for e, k, sign in owners)


def _put(values: FloatArray, owners: _Owned, wanted: FloatArray) -> None:
    """Give six parameters the values with which their chain is the wanted frame."""
    index = [k for _, k, _ in owners]
    for _ in range(_ROUNDS):
        T = _chain(owners, values)
        e = _twist(wanted @ inverse(T))
        J = np.empty((6, 6))
        for column, k in enumerate(index):
            there = np.array(values)
            there[k] += _STEP
            J[:, column] = _twist(_chain(owners, there) @ inverse(T)) / _STEP
        values[index] += np.linalg.solve(J, e)


_STEP = 1e-6
"""[m or rad] Of the differences that stand for derivatives: errors of a thousandth of a millionth are squared away."""


def _twist(T: FloatArray) -> FloatArray:
    return np.concatenate([T[:3, 3], rotation_log(T[np.newaxis, :3, :3])[0]])


def _some(q: FloatArray) -> FloatArray:
    return q[:: max(1, len(q) // _MANY)]


def _least_motion(fit: KinematicFit, q: FloatArray) -> FloatArray:
    """The rigid motion of the calibrated arm after which its tip is nearest to the nominal one's.

    Of the arm's own geometry: what encoders and sag add follows the configuration and is no motion of the base.
    """
    wanted = forward_kinematics(fit.model.robot, q)
    T = predicted_poses(fit.model, without_encoder_terms(fit.model, fit.after.values), q)
    G = np.eye(4)
    for _ in range(3):
        now = G @ T
        turn = rotation_log(wanted[:, :3, :3] @ np.swapaxes(now[:, :3, :3], 1, 2))
        away = np.hstack([wanted[:, :3, 3] - now[:, :3, 3], LEVER * turn])
        g = np.linalg.lstsq(_rigid_basis(now[:, :3, 3]).reshape(-1, 6), away.ravel(), rcond=1e-9)[0]
        G = rigid(rotation_exp(g[3:]), np.asarray(g[:3], dtype=np.float64)) @ G
    return G


def _rigid_basis(p: FloatArray) -> FloatArray:
    """How points and (by the lever) orientations move with a rigid motion, shape [n, 6, 6]."""
    out = np.zeros((len(p), 6, 6))
    out[:, :3, :3], out[:, 3:, 3:] = np.eye(3), LEVER * np.eye(3)
    for i, axis in enumerate(np.eye(3)):
        out[:, :3, 3 + i] = np.cross(axis, p)
    return out


def tip_uncertainty(
    fit: KinematicFit, spread: ClusteredSpread, measurements: Measurements, *, seed: int
) -> TipUncertainty:
    """How far the tip may be off in the base frame, over configurations within the measured joint ranges.

    Args:
        fit: with base and flange settled.
        spread: of its parameters.
        measurements: what was fitted.
        seed: of the configurations.
    """
    seen = _some(measurements.q)
    low, high = np.quantile(measurements.q, (0.02, 0.98), axis=0)
    drawn = np.random.default_rng(seed).uniform(low, high, (_MANY, measurements.q.shape[1]))
    J, p = _tip_jacobian(fit, seen)
    rigidly = np.linalg.lstsq(_rigid_basis(p).reshape(-1, 6), J.reshape(-1, J.shape[2]), rcond=1e-9)[0]
    J, p = _tip_jacobian(fit, drawn)
    left = (J - _rigid_basis(p) @ rigidly)[:, :3]
    sigma = np.sqrt(spread.variance(left.reshape(-1, left.shape[2])).reshape(len(left), 3).sum(axis=1))
    return TipUncertainty(mean=float(sigma.mean()), p95=float(np.quantile(sigma, 0.95)), max=float(sigma.max()))


def _tip_jacobian(fit: KinematicFit, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Derivative of the tip's position and (by the lever) orientation in the base frame, shape [n, 6, p], and its position."""
    model, values = fit.model, fit.after.values
    R, p, J = pose_and_derivative(model, values, q, None, None, torque=gravity_torque(model, q))
    tip = model.robot.tip.T_link_frame[:3, 3]
    lever = np.einsum("ijn,j->in", R, tip)
    turned = np.cross(np.moveaxis(J[:, 3:], 1, -1), lever.T[np.newaxis])
    out = np.concatenate([np.moveaxis(J[:, :3], 1, -1) + turned, LEVER * np.moveaxis(J[:, 3:], 1, -1)], axis=2)
    return np.moveaxis(out, 0, -1), (p + lever).T
