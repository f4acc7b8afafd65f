"""A number below every eigenvalue of M(q) at every configuration: proof that an arm of possible bodies can be simulated.

Kinetic energy is a quadratic form in the links' twists, each in its own frame, with constant matrices; only how joint
velocities make twists depends on q. Three facts about a joint hold with constants whatever its position is, because the wrenches
in them look the same from both links:

* its velocity is the difference of two functionals of its links' twists, qd = g V: of a revolute joint the couple along its
  axis, of a prismatic one the force along it;
* some functionals of the two twists are equal, 0 = F V: links of a revolute joint do not slide along its axis, those of
  a prismatic one do not turn;
* mass along the axis of a revolute joint may be counted with either link. Such transfers y change the matrices and not the
  energy (the regroupings of [Gautier1991]; those of prismatic joints change nothing once links do not turn).

The first link moves against a base at rest and has one twist only. Therefore, with S the block diagonal matrix of the links'
6 x 6 inertias, Z a basis of the twists with F V = 0, N_k the transfers, D the rotor inertias and C the coupling of drives
(qd = C qd_drive),

    Z^T (S + sum y_k N_k + G^T C^-T (D - lambda 1) C^-1 G) Z >= 0   implies   M(q) >= lambda 1   for every q.        (1)

The largest lambda is a small semidefinite program in (lambda, y), solved by Newton steps on a barrier. Whatever y they end
at, the lambda that is reported is computed anew from it by a Cholesky factor, with the rounding of its own arithmetic taken
off the form: a proof, however good the search was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from armid.arrays import FloatArray
from armid.parameters.inertial import N_INERTIAL, from_pseudo_inertia, skew, tensor
from armid.robot.robot import Joint, JointKind, Robot

_ROUNDING = 1000.0 * float(np.finfo(np.float64).eps)
"""Relative to the sizes of all that was added up; no sum or product here loses more."""
_GAP = 0.01
"""Relative; how far below the best lambda of (1) the search may stop."""
_SHARPENING = 10.0
"""Of the barrier from round to round."""
_MOST_STEPS = 150
_LIFTED = 1.2
"""Of the way up, in units of it, at which the form is positive definite with some room."""
_WEAK_PULL = 1e-6
"""On transfers that change nothing, so that they stay where they are."""


@dataclass(frozen=True, eq=False, kw_only=True)
class EnergyForm:
    """Everything constant in (1), reduced to the twists that joints allow.

    Args:
        inertia: Z^T S Z, shape [k, k].
        transfers: Z^T N Z of every transfer, shape [m, k, k].
        sizes: norms of S and of every N, shape [1 + m].
        rates: G Z, joint velocities of those twists, shape [n, k].
        rotor: rotor inertias of the drives, shape [n].
        coupling: C, shape [n, n].
    """

    inertia: FloatArray
    transfers: FloatArray
    sizes: FloatArray
    rates: FloatArray
    rotor: FloatArray
    coupling: FloatArray

    @property
    def drive_rates(self) -> FloatArray:
        return np.asarray(np.linalg.solve(self.coupling, self.rates), dtype=np.float64)

    @property
    def full(self) -> FloatArray:
        """The form without lambda and transfers, shape [k, k]."""
        g = self.drive_rates
        return self.inertia + g.T @ (self.rotor[:, np.newaxis] * g)

    def moved(self, y: FloatArray) -> EnergyForm:
        """The same form with these transfers made, and their rounding remembered."""
        sizes = np.append(self.sizes @ np.append(1.0, np.abs(y)), self.sizes[1:])
        return replace(self, inertia=self.inertia + np.einsum("k,kij->ij", y, self.transfers), sizes=sizes)

    def root(self, y: FloatArray) -> FloatArray:
        """Cholesky factor of the form without lambda, less its rounding; LinAlgError when it is not positive definite."""
        S = self.full + np.einsum("k,kij->ij", y, self.transfers)
        size = self.sizes @ np.append(1.0, np.abs(y)) + np.linalg.norm(self.full - self.inertia)
        return np.asarray(np.linalg.cholesky(S - _ROUNDING * size * np.eye(len(S))), dtype=np.float64)

    def constant_bound(self, y: FloatArray) -> FloatArray:
        """B with M(q) + rotors >= B for every q, in drive coordinates, shape [n, n]: (g A^-1 g^T)^-1 with A = L L^T."""
        half = np.linalg.solve(self.root(y), self.drive_rates.T)
        return np.asarray(np.linalg.inv(half.T @ half), dtype=np.float64)

    def proven(self, y: FloatArray) -> float:
        """The largest lambda of (1) for these transfers; zero when there is none."""
        try:
            half = np.linalg.solve(self.root(y), self.drive_rates.T)
        except np.linalg.LinAlgError:
            return 0.0
        return (1.0 - _ROUNDING) / float(np.linalg.norm(half, 2)) ** 2


def mass_matrix_bound(robot: Robot, inertial: FloatArray, rotor: FloatArray) -> float:
    """A number below the smallest eigenvalue of M(q), rotors included, at every configuration; zero without proof.

    Args:
        robot: geometry and coupling of its drives.
        inertial: ten parameters of every link, shape [10 n].
        rotor: rotor inertias [kg m^2, or kg], shape [n].
    """
    form = energy_form(robot, inertial, rotor)
    none = np.zeros(len(form.transfers))
    if form.proven(none) == 0.0:
        # Links that are no bodies by themselves, as of an unconstrained estimate, may be with what their neighbours lend them.
        form = form.moved(_positive_transfers(form))
    plain = form.proven(none)
    return max(plain, form.proven(best_transfers(form, plain))) if plain > 0.0 else 0.0


def energy_form(robot: Robot, inertial: FloatArray, rotor: FloatArray) -> EnergyForm:
    """The constants of (1) for an arm."""
    n = robot.n_joints
    S = np.zeros((6 * n, 6 * n))
    for i, ten in enumerate(inertial.reshape(-1, N_INERTIAL)):
        S[block(i), block(i)] = spatial_inertia(ten)
    G, F, transfers = np.zeros((n, 6 * n)), [], []
    for i, joint in enumerate(robot.joints):
        facts = joint_facts(joint)
        G[i, block(i)] = facts.own.rate
        if i == 0:
            # The base is at rest: the first link has no twist but its joint's, whatever mass lies on the axis.
            F.append(np.pad(_kernel(facts.own.screw[np.newaxis]).T, ((0, 0), (0, 6 * n - 6))))
            continue
        none = np.zeros((len(facts.own.equal), 6 * n))
        none[:, block(i)], none[:, block(i - 1)] = facts.own.equal, -facts.before.equal
        F.append(none)
        G[i, block(i - 1)] = -facts.before.rate
        for mine, theirs in zip(facts.own.shared, facts.before.shared, strict=True):
            N = np.zeros((6 * n, 6 * n))
            N[block(i), block(i)], N[block(i - 1), block(i - 1)] = mine, -theirs
            transfers.append(N)
    Z = _kernel(np.vstack(F))
    C = np.eye(n) if robot.coupling is None else robot.coupling
    moved = np.array(transfers).reshape(-1, 6 * n, 6 * n)
    sizes = np.append(np.linalg.norm(S), np.linalg.norm(moved, axis=(1, 2)))
    return EnergyForm(inertia=Z.T @ S @ Z, transfers=Z.T @ moved @ Z, sizes=sizes, rates=G @ Z, rotor=rotor, coupling=C)


def block(link: int) -> slice:
    return slice(6 * link, 6 * link + 6)


def _kernel(F: FloatArray) -> FloatArray:
    """An orthonormal basis of F V = 0, shape [columns, k]; the rows of F are independent."""
    Q = np.linalg.qr(F.T, mode="complete")[0]
    return np.asarray(Q[:, len(F) :], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class JointSide:
    """The facts of a joint seen from one of its links.

    Args:
        rate: functional of its twist (angular, linear) whose difference is the joint velocity, shape [6].
        equal: functionals that agree on both sides, shape [k, 6].
        shared: 6 x 6 inertias that may be counted with either side, shape [m, 6, 6].
        screw: the twist of one side against the other at unit joint velocity, shape [6].
    """

    rate: FloatArray
    equal: FloatArray
    shared: FloatArray
    screw: FloatArray


@dataclass(frozen=True, eq=False)
class JointFacts:
    """Both sides of a joint: the link it moves and the one before."""

    own: JointSide
    before: JointSide


def joint_facts(joint: Joint) -> JointFacts:
    T_parent_joint, T_joint_link = joint.around_variable()
    variable = joint.transforms[joint.variable_index]
    e = variable.sign * np.eye(3)[variable.motion.axis]
    T_link_joint = np.asarray(np.linalg.inv(T_joint_link), dtype=np.float64)
    return JointFacts(side(joint.kind, e, T_link_joint), side(joint.kind, e, T_parent_joint))


def side(kind: JointKind, e: FloatArray, T: FloatArray) -> JointSide:
    """The facts in a link's frame; T from the joint's frame to it, e the joint's axis there."""
    a, p = T[:3, :3] @ e, T[:3, 3]
    force, couple = np.concatenate([np.cross(p, a), a]), np.concatenate([a, np.zeros(3)])
    if kind is JointKind.REVOLUTE:
        # Mass along the axis: (x, 1)(x, 1)^T of its points x = s e spans these three.
        u, v = np.append(e, 0.0), np.eye(4)[3]
        masses = [np.outer(u, u), np.outer(u, v) + np.outer(v, u), np.outer(v, v)]
        shared = np.array([spatial_inertia(from_pseudo_inertia(T @ P @ T.T)) for P in masses])
        return JointSide(couple, force[np.newaxis], shared, np.concatenate([a, np.cross(p, a)]))
    turning = np.column_stack([T[:3, :3].T, np.zeros((3, 3))])
    return JointSide(force, turning, np.empty((0, 6, 6)), np.concatenate([np.zeros(3), a]))


def spatial_inertia(ten: FloatArray) -> FloatArray:
    """[[I, skew(h)], [skew(h)^T, m 1]] about the link frame: (w, v)^T of it (w, v) is twice the kinetic energy."""
    S = np.empty((6, 6))
    S[:3, :3], S[3:, 3:] = tensor(ten[4:]), ten[0] * np.eye(3)
    S[:3, 3:] = skew(ten[1:4])
    S[3:, :3] = S[:3, 3:].T
    return S


def best_transfers(form: EnergyForm, plain: float) -> FloatArray:
    """The y of (1) with about the largest lambda.

    Args:
        form: constants.
        plain: lambda without transfers, positive; the unit of lambda.
    """
    L = form.root(np.zeros(len(form.transfers)))
    g = form.drive_rates
    return _climbed(form, L, plain * g.T @ g, inf)


def _positive_transfers(form: EnergyForm) -> FloatArray:
    """Transfers y that make the form positive definite, as far as there are any: its smallest eigenvalue lifted above zero."""
    S = form.full
    # One below the lowest eigenvalue in units of a typical one; lifted by that much and as much again, it is positive.
    lift = -float(np.linalg.eigvalsh(S)[0]) + 0.01 * float(np.mean(np.abs(np.diag(S)))) or 1.0
    L = np.asarray(np.linalg.cholesky(S + lift * np.eye(len(S))), dtype=np.float64)
    return _climbed(form, L, lift * np.eye(len(S)), _LIFTED)


def _climbed(form: EnergyForm, L: FloatArray, unit: FloatArray, enough: float) -> FloatArray:
    """Transfers y with about the largest v such that L L^T + sum y_k N_k - v unit >= 0, or with v large enough.

    Newton's method on t v + log det, t growing. Seen from L L^T everything is of order one, however flat a link is.
    """
    W = np.linalg.inv(L)
    N = W @ form.transfers @ W.T
    sizes = np.maximum(np.linalg.norm(N, axis=(1, 2)), 1e-9 * form.sizes[1:])
    F = np.concatenate([N / sizes[:, np.newaxis, np.newaxis], -(W @ unit @ W.T)[np.newaxis]])
    v, t = np.zeros(len(F)), 1.0
    for _ in range(_MOST_STEPS):
        step, decrement = _newton_step(F, v, t)
        v = v + _backtracked(F, v, step) * step
        if v[-1] > enough:
            break
        if decrement < 0.1:
            if len(W) / t < _GAP * v[-1]:
                break
            t *= _SHARPENING
    return np.asarray(v[:-1] / sizes, dtype=np.float64)


def _newton_step(F: FloatArray, v: FloatArray, t: float) -> tuple[FloatArray, float]:
    """The step of minimising -t v_last - log det X + a weak pull on the others, X = 1 + sum v_k F_k; and its decrement."""
    X = np.linalg.inv(np.eye(F.shape[1]) + _weighted(F, v))
    XF = X @ F
    gradient = -np.trace(XF, axis1=1, axis2=2)
    gradient[:-1] += _WEAK_PULL * v[:-1]
    gradient[-1] -= t
    H = XF.reshape(len(v), -1) @ XF.transpose(0, 2, 1).reshape(len(v), -1).T  # traces of the products of two
    H[np.diag_indices(len(v))] += _WEAK_PULL
    step = -np.linalg.solve(H, gradient)
    return step, float(-gradient @ step)


def _backtracked(F: FloatArray, v: FloatArray, step: FloatArray) -> float:
    """How much of a step keeps X positive definite with some room, at most all of it."""
    X = np.eye(F.shape[1]) + _weighted(F, v)
    root = np.linalg.inv(np.linalg.cholesky(X))
    lowest = float(np.linalg.eigvalsh(root @ _weighted(F, step) @ root.T)[0])
    return min(1.0, 0.7 / -lowest) if lowest < 0.0 else 1.0


def _weighted(F: FloatArray, v: FloatArray) -> FloatArray:
    """Sum of v_k F_k."""
    return np.asarray(np.tensordot(v, F, 1), dtype=np.float64)
