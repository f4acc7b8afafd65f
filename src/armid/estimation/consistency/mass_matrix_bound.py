"""A constant matrix below M(q) at every configuration: proof that an arm of possible bodies has a positive mass matrix.

Joint i's velocity is the difference of two constant functionals of the twists of the links it joins:

    qd_i = w_i . V_i - w'_i . V_{i-1}                                                                               (1)

A revolute joint's is the couple along its axis; any force along the axis may be added, because links do not slide along
it. A prismatic joint's is the force along its axis; any couple may be added, because links do not turn. These
wrenches look the same from either link whatever the joint position: (1) holds with constants in link coordinates.
Whitened by the links' 6 x 6 inertias L_i L_i^T, (1) reads qd = W u with |u|^2 = qd^T M(q) qd, twice the kinetic energy. So
W is a left inverse of the whitened Jacobian whatever q is, and the pseudo-inverse is the smallest of those:

    M(q)^-1 <= W W^T,   M(q) >= (W W^T)^-1        for every q                                                   (2)

W W^T is tridiagonal; it exists as long as every link's pseudo-inertia is positive definite. The wrenches that may be added
are chosen to make its largest eigenvalue small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.parameters.inertial import N_INERTIAL, skew, tensor
from armid.robot.robot import Joint, JointKind, Robot

ROUNDING = 100.0 * float(np.finfo(np.float64).eps)
"""Relative to the condition of the matrices; taken off the bound for the rounding of its own arithmetic."""
STEPS = 60
"""Of the search for good wrenches; whatever it finds is a proof, so it need not be the best."""


@dataclass(frozen=True, eq=False)
class Functional:
    """Equation (1) of one joint: wrenches (couple, force) about the frames of its link and of the one before.

    Args:
        own, before: acting on V_i and V_{i-1}, shape [6].
        free_own, free_before: wrenches that may be added to both, shape [k, 6].
    """

    own: FloatArray
    before: FloatArray
    free_own: FloatArray
    free_before: FloatArray


def mass_matrix_bound(robot: Robot, inertial: FloatArray, rotor: FloatArray) -> float:
    """A number below the smallest eigenvalue of M(q), rotors included, at every configuration; zero without proof.

    Args:
        robot: geometry and coupling of its drives.
        inertial: ten parameters of every link, shape [10 n].
        rotor: rotor inertias [kg m^2, or kg], shape [n].
    """
    B = constant_lower_bound(robot, inertial)
    if B is None:
        return 0.0
    C = np.eye(robot.n_joints) if robot.coupling is None else robot.coupling
    eigenvalues = np.linalg.eigvalsh(C.T @ B @ C + np.diag(rotor))
    worst = max(np.linalg.cond(spatial_inertia(ten)) for ten in inertial.reshape(-1, N_INERTIAL))
    return max(float(eigenvalues[0] * (1.0 - ROUNDING * worst) - ROUNDING * eigenvalues[-1]), 0.0)


def constant_lower_bound(robot: Robot, inertial: FloatArray) -> FloatArray | None:
    """(W W^T)^-1 of (2) in joint coordinates without rotors, shape [n, n]; None when a link is no body with volume."""
    try:
        inertias = [spatial_inertia(ten) for ten in inertial.reshape(-1, N_INERTIAL)]
        roots = [np.asarray(np.linalg.cholesky(S), dtype=np.float64) for S in inertias]
    except np.linalg.LinAlgError:
        return None
    W, free = left_inverse(robot, roots)
    W = with_least_norm(W, free)
    return np.asarray(np.linalg.inv(W @ W.T), dtype=np.float64)


def spatial_inertia(ten: FloatArray) -> FloatArray:
    """[[I, skew(h)], [skew(h)^T, m 1]] about the link frame: (w, v)^T of it (w, v) is twice the kinetic energy."""
    S = np.empty((6, 6))
    S[:3, :3], S[3:, 3:] = tensor(ten[4:]), ten[0] * np.eye(3)
    S[:3, 3:] = skew(ten[1:4])
    S[3:, :3] = S[:3, 3:].T
    return S


def functional(joint: Joint) -> Functional:
    """Equation (1) of a joint."""
    T_parent_joint, T_joint_link = joint.around_variable()
    variable = joint.transforms[joint.variable_index]
    e = variable.sign * np.eye(3)[variable.motion.axis]
    R, t = T_joint_link[:3, :3], T_joint_link[:3, 3]
    # The joint's axis, seen from the link it moves and from the one before: direction and a point on it.
    axes = ((R.T @ e, -R.T @ t, R.T), (T_parent_joint[:3, :3] @ e, T_parent_joint[:3, 3], T_parent_joint[:3, :3]))
    wrenches, free = [], []
    for a, p, turn in axes:
        force, couple = np.concatenate([np.cross(p, a), a]), np.concatenate([a, np.zeros(3)])
        if joint.kind is JointKind.REVOLUTE:
            wrenches.append(couple)
            free.append(force[np.newaxis])
        else:
            wrenches.append(force)
            free.append(np.column_stack([turn.T, np.zeros((3, 3))]))
    return Functional(wrenches[0], wrenches[1], free[0], free[1])


def left_inverse(robot: Robot, roots: list[FloatArray]) -> tuple[FloatArray, list[FloatArray]]:
    """W with nothing added, shape [n, 6 n], and per joint the rows that may be added to its row, shape [k, 6 n]."""
    n = robot.n_joints
    W, free = np.zeros((n, 6 * n)), []
    for i, joint in enumerate(robot.joints):
        f = functional(joint)
        more = np.zeros((len(f.free_own), 6 * n))
        for link, sign, own, other in ((i, 1.0, f.own, f.free_own), (i - 1, -1.0, f.before, f.free_before)):
            if link >= 0:
                place = slice(6 * link, 6 * link + 6)
                W[i, place] = sign * np.linalg.solve(roots[link], own)
                more[:, place] = sign * np.linalg.solve(roots[link], other.T).T
        free.append(more)
    return W, free


def with_least_norm(W: FloatArray, free: list[FloatArray]) -> FloatArray:
    """W with wrenches added that make its norm small: first every row its shortest, then against the worst direction."""
    W = np.array(W)
    for i, more in enumerate(free):
        W[i] -= np.linalg.lstsq(more.T, W[i], rcond=None)[0] @ more
    best, norm = W, np.linalg.norm(W, 2)
    # Subgradient steps on the largest singular value; each row moves within what may be added to it.
    for k in range(STEPS):
        U, s, Vt = np.linalg.svd(W, full_matrices=False)
        if s[0] < norm:
            best, norm = np.array(W), s[0]
        step = np.zeros_like(W)
        for i, more in enumerate(free):
            basis = np.linalg.qr(more.T)[0]
            step[i] = basis @ (basis.T @ (U[i, 0] * Vt[0]))
        size = np.linalg.norm(step)
        if size < 1e-12:
            break
        W = W - 0.3 * s[0] / (k + 1.0) * step / size
    return best
