"""Measured minus predicted tool poses, points and distances as rows `r = D(x) delta`, linearised at the present geometry.

The parameters are those of the kinematic model (docs/conventions.md), `delta` a change of them. One residual belongs to one
sensor placement and one target; `parts` tells which of its rows are positions, orientations or distances: these are the channels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.kinematics.measurement import Measurements, Observations, Observed
from armid.kinematics.model import KinematicModel, at_setup, at_target, last_link, pose_and_derivative
from armid.kinematics.rotations import right_jacobian_inverse, rotation_log
from armid.kinematics.sag import holding_torque
from armid.parameters.space import OwnerKind

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Residual:
    """One set of observations against the model.

    Args:
        observations: which.
        r: measured minus predicted [m or rad], shape [channels, m]; along the observations' own axes where they have some.
    """

    observations: Observations
    r: FloatArray


@dataclass(frozen=True, eq=False)
class LinearResidual(Residual):
    """The same with its rows.

    Args:
        D: derivative of the *prediction* by the wanted parameters, shape [c, channels, m]; `r(x + dx) = r(x) - D^T dx`.
    """

    D: FloatArray

    @property
    def alone(self) -> Residual:
        """Without the rows, which are most of its memory."""
        return Residual(self.observations, self.r)


def parts(quantity: Observed) -> Sequence[tuple[str, slice]]:
    """The vectors within a residual that belong together: kind of channel, and which rows."""
    match quantity:
        case Observed.POSE:
            return (("position", slice(0, 3)), ("orientation", slice(3, 6)))
        case Observed.ORIENTATION:
            return (("orientation", slice(0, 3)),)
        case Observed.POSITION | Observed.POINT:
            return (("position", slice(0, 3)),)
        case Observed.PLANE:
            return (("position", slice(0, 1)),)
        case Observed.DISTANCE | Observed.LENGTH:
            return (("distance", slice(0, 1)),)


def residuals(
    model: KinematicModel, values: FloatArray, measurements: Measurements, *, wanted: Mask | None = None
) -> Iterator[LinearResidual]:
    """Residual of every set of observations.

    Position: difference in the sensor frame. Orientation: `log(R_measured R_predicted^T)`, the rotation vector that
    takes the prediction to the measurement, in sensor axes. Distance: difference of lengths.

    Args:
        model, values: the arm and its parameters, shape [p].
        measurements: what was observed.
        wanted: mask of the parameters whose derivative is needed.
    """
    torque = holding_torque(model, measurements)
    frames_alone = wanted is not None and not (wanted & model.owned(OwnerKind.LINK, OwnerKind.JOINT)).any()
    seen_from: dict[str, list[Observations]] = {}
    for o in measurements.observations:
        seen_from.setdefault(o.setup if o.quantity is not Observed.LENGTH else "", []).append(o)
    for setup, group in seen_from.items():
        if not setup:
            yield from (_length_residual(model, values, measurements, o, torque, wanted) for o in group)
            continue
        rows = np.concatenate([o.rows for o in group])
        # One target: its frame ends the chain. Several, or frames alone: the arm is gone through once for all of them.
        single = None if frames_alone or len(group) > 1 else group[0].target
        if frames_alone:
            assert wanted is not None
            R, p = (x[..., rows] for x in _arm_at_rest(model, values, measurements.q, torque))
            whole = at_setup(model, values, setup, (R, p), wanted=wanted)
        else:
            whole = pose_and_derivative(
                model,
                values,
                measurements.q[rows],
                setup,
                single,
                torque=None if torque is None else torque[rows],
                wanted=wanted,
            )
        start = 0
        for o in group:
            end = start + len(o)
            R, p, J = (x[..., start:end] for x in whole)
            if single is None:
                R, p, J = at_target(model, values, o.target, (R, p, J), wanted=wanted)
            yield LinearResidual(o, *along_axes(o, *_pose_residual(o, R, p, J)))
            start = end


_AT_REST: WeakKeyDictionary[KinematicModel, tuple[FloatArray, FloatArray, tuple[FloatArray, FloatArray]]] = (
    WeakKeyDictionary()
)
"""The last arm that stood still while frames were fitted: configurations, parameters of the arm, and where its last link was."""


def _arm_at_rest(
    model: KinematicModel, values: FloatArray, q: FloatArray, torque: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """R and p of the last link at all configurations; remembered while only sensor and tool frames change."""
    own = values[model.owned(OwnerKind.LINK, OwnerKind.JOINT)]
    known = _AT_REST.get(model)
    if known is None or known[0] is not q or not np.array_equal(known[1], own):
        known = (q, own, last_link(model, values, q, torque))
        _AT_REST[model] = known
    return known[2]


def along_axes(o: Observations, r: FloatArray, D: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Residual and derivative along the principal axes of each measurement's covariance."""
    if o.axes is None:
        return r, D
    return np.einsum("mij,jm->im", o.axes, r), np.einsum("mij,pjm->pim", o.axes, D)


def in_sensor_axes(o: Observations, r: FloatArray) -> FloatArray:
    """The residual of `along_axes` back in the sensor's axes, shape [channels, m]."""
    return r if o.axes is None else np.einsum("mji,jm->im", o.axes, r)


def _pose_residual(o: Observations, R: FloatArray, p: FloatArray, J: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Residual and derivative of everything seen from a sensor frame."""
    match o.quantity:
        case Observed.POINT:
            return -p, J[:, :3]
        case Observed.PLANE:
            return -p[2:], J[:, 2:3]
        case Observed.DISTANCE:
            assert o.distance is not None
            length = np.linalg.norm(p, axis=0)
            return (o.distance - length)[np.newaxis], np.einsum("cm,pcm->pm", p / length, J[:, :3])[:, np.newaxis]
    if o.riding:
        R, p, J = _from_the_arm(R, p, J)
    if o.quantity is Observed.POSITION:
        assert o.position is not None
        return o.position.T - p, J[:, :3]
    assert o.rotation is not None
    e = rotation_log(o.rotation @ np.ascontiguousarray(np.transpose(R, (2, 1, 0))))
    _rotate(right_jacobian_inverse(e), J[:, 3:])
    if o.quantity is Observed.ORIENTATION:
        return e.T, J[:, 3:]
    assert o.position is not None
    return np.concatenate([o.position.T - p, e.T]), J


def _from_the_arm(R: FloatArray, p: FloatArray, J: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The inverse pose and its derivative: what stands still, seen from what moves.

    With `R' = R^T`, `p' = -R^T p`: the twist (v, w) of the moving frame appears there as
    `v' = -R^T (v - w x p)` and `w' = -R^T w`.
    """
    back = np.ascontiguousarray(np.transpose(R, (2, 1, 0)))
    v, w = J[:, :3], J[:, 3:]
    turned = np.stack(
        [w[:, 1] * p[2] - w[:, 2] * p[1], w[:, 2] * p[0] - w[:, 0] * p[2], w[:, 0] * p[1] - w[:, 1] * p[0]], 1
    )
    moved = np.concatenate([-_rotated(back, v - turned), -_rotated(back, w)], axis=1)
    return np.transpose(R, (1, 0, 2)), -np.einsum("jin,jn->in", R, p), moved


def _rotate(matrices: FloatArray, J: FloatArray) -> None:
    """`matrices[m] @ J[:, :, m]` for every sample in place of J, shapes [m, 3, 3] and [p, 3, m].

    Parameter by parameter, which stays in the cache; lengths turn nothing, and their columns are left alone.
    """
    by_entry = np.ascontiguousarray(np.transpose(matrices, (1, 2, 0)))
    for column in J:
        if column.any():
            column[...] = np.einsum("ijm,jm->im", by_entry, column)


def _rotated(matrices: FloatArray, J: FloatArray) -> FloatArray:
    """`matrices[m] @ J[:, :, m]` for every sample, shape [m, 3, 3] and [p, 3, m] -> [p, 3, m]; contiguous in m."""
    by_entry = np.ascontiguousarray(np.transpose(matrices, (1, 2, 0)))
    out = np.empty_like(J)
    for i in range(3):
        np.multiply(J[:, 0], by_entry[i, 0], out=out[:, i])
        for j in (1, 2):
            out[:, i] += J[:, j] * by_entry[i, j]
    return out


def _length_residual(
    model: KinematicModel,
    values: FloatArray,
    measurements: Measurements,
    o: Observations,
    torque: FloatArray | None,
    wanted: Mask | None,
) -> LinearResidual:
    """Distance between the target's positions at two configurations; no sensor frame is involved."""
    assert o.other_rows is not None
    assert o.distance is not None
    ends = [
        pose_and_derivative(
            model,
            values,
            measurements.q[rows],
            None,
            o.target,
            torque=None if torque is None else torque[rows],
            wanted=wanted,
        )
        for rows in (o.rows, o.other_rows)
    ]
    d = ends[1][1] - ends[0][1]
    length = np.linalg.norm(d, axis=0)
    J = ends[1][2][:, :3] - ends[0][2][:, :3]
    return LinearResidual(o, (o.distance - length)[np.newaxis], np.einsum("cm,pcm->pm", d / length, J)[:, np.newaxis])
