"""Rotations in batches: logarithm, its derivative, quaternions, Euler angles, means."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.robot.quaternion import quaternion_from_matrix

_SMALL_ANGLE = 1e-4
"""[rad] Below it series replace quotients whose numerator and denominator both vanish; the next term is below 1e-17."""


def _skew(v: FloatArray) -> FloatArray:
    """[v]x with `[v]x u = v x u`, shape [n, 3, 3]."""
    out = np.zeros((*v.shape[:-1], 3, 3))
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    out[..., 0, 1], out[..., 0, 2] = -z, y
    out[..., 1, 0], out[..., 1, 2] = z, -x
    out[..., 2, 0], out[..., 2, 1] = -y, x
    return out


def rotation_exp(v: npt.ArrayLike) -> FloatArray:
    """Rotation matrices of rotation vectors [rad], shape [n, 3] -> [n, 3, 3] (Rodrigues)."""
    w = np.asarray(v, dtype=np.float64)
    angle = np.linalg.norm(w, axis=-1)[..., np.newaxis, np.newaxis]
    safe = np.where(angle < _SMALL_ANGLE, 1.0, angle)
    a = np.where(angle < _SMALL_ANGLE, 1.0 - angle**2 / 6.0, np.sin(safe) / safe)
    b = np.where(angle < _SMALL_ANGLE, 0.5 - angle**2 / 24.0, (1.0 - np.cos(safe)) / safe**2)
    S = _skew(w)
    return np.eye(3) + a * S + b * (S @ S)


def rotation_log(R: FloatArray) -> FloatArray:
    """Rotation vectors [rad] of rotation matrices, shape [n, 3, 3] -> [n, 3]; angle in [0, pi].

    Through the quaternion, which keeps full precision at both 0 and pi.
    """
    quaternion = quaternion_from_matrix(R)
    vector = quaternion[..., 1:]
    length = np.linalg.norm(vector, axis=-1, keepdims=True)
    half = np.arctan2(length, quaternion[..., :1])
    return vector * np.where(length < _SMALL_ANGLE, 2.0, 2.0 * half / np.where(length < _SMALL_ANGLE, 1.0, length))


def right_jacobian_inverse(e: FloatArray) -> FloatArray:
    """Jr^-1(e) with `log(exp(e) exp(-w)) = e - Jr^-1(e) w` to first order, shape [n, 3] -> [n, 3, 3]."""
    angle = np.linalg.norm(e, axis=-1)[..., np.newaxis, np.newaxis]
    safe = np.where(angle < 0.01, 1.0, angle)
    # (1 + cos)/(2 a sin) = cot(a/2)/(2 a): stays finite up to 2 pi.
    c = np.where(angle < 0.01, 1.0 / 12.0 + angle**2 / 720.0, 1.0 / safe**2 - 1.0 / (2.0 * safe * np.tan(safe / 2.0)))
    S = _skew(e)
    return np.eye(3) + 0.5 * S + c * (S @ S)


def matrix_from_quaternion(quaternion: FloatArray) -> FloatArray:
    """Rotation matrices of unit quaternions w x y z, shape [n, 4] -> [n, 3, 3]."""
    w, v = quaternion[..., :1, np.newaxis], quaternion[..., 1:]
    S = _skew(v)
    return np.eye(3) + 2.0 * w * S + 2.0 * (S @ S)


def _axis_rotation(axis: str, angle: FloatArray) -> FloatArray:
    """Rotations about a coordinate axis (`x`, `y`, `z`), shape [n] -> [n, 3, 3]."""
    i = "xyz".index(axis)
    j, k = (i + 1) % 3, (i + 2) % 3
    out = np.zeros((*angle.shape, 3, 3))
    out[..., i, i] = 1.0
    out[..., j, j] = out[..., k, k] = np.cos(angle)
    out[..., k, j] = np.sin(angle)
    out[..., j, k] = -out[..., k, j]
    return out


def matrix_from_euler(angles: FloatArray, order: str = "xyz") -> FloatArray:
    """Rotation matrices of three angles [rad] about *fixed* axes applied in `order`, shape [n, 3] -> [n, 3, 3].

    `xyz` is the roll-pitch-yaw of URDF: `Rz(third) Ry(second) Rx(first)`. Upper case (`ZYX`) means moving axes.
    """
    first, second, third = (_axis_rotation(axis, angles[..., k]) for k, axis in enumerate(order.lower()))
    return first @ second @ third if order.isupper() else third @ second @ first


def nearest_rotation(M: FloatArray) -> FloatArray:
    """The rotation nearest to a matrix in the Frobenius norm, shape [..., 3, 3]."""
    U, _, Vt = np.linalg.svd(M)
    D = np.zeros_like(M)
    D[..., 0, 0] = D[..., 1, 1] = 1.0
    D[..., 2, 2] = np.linalg.det(U @ Vt)
    return U @ D @ Vt


def inverse(T: FloatArray) -> FloatArray:
    """Inverse of rigid transforms, shape [..., 4, 4]."""
    out = np.zeros_like(T)
    Rt = np.swapaxes(T[..., :3, :3], -1, -2)
    out[..., :3, :3] = Rt
    out[..., :3, 3] = -(Rt @ T[..., :3, 3:])[..., 0]
    out[..., 3, 3] = 1.0
    return out


def rigid(R: FloatArray, p: FloatArray) -> FloatArray:
    """Homogeneous matrices from rotations [..., 3, 3] and positions [..., 3]."""
    out = np.zeros((*R.shape[:-2], 4, 4))
    out[..., :3, :3] = R
    out[..., :3, 3] = p
    out[..., 3, 3] = 1.0
    return out
