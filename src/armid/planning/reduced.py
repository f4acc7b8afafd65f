"""Dynamics along a path, from the regressor and the base parameters alone: [Kolyubin2017] Proposition 1.

    tau = A(theta) theta'' + B(theta) theta'^2 + Gamma(theta) + friction                                (29)

    Gamma = w(theta, 0, 0) chi,  B = w(theta, 1, 0) chi - Gamma,  A = w(theta, 1, 1) chi - B - Gamma    (30-32)

with w the base regressor without friction at q = Phi, qd = Phi' theta', qdd = Phi'' theta'^2 + Phi' theta'' (33).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only
from armid.errors import ShapeError
from armid.planning.model import Role, TorqueModel
from armid.planning.path import Derivatives, Path


@dataclass(frozen=True, eq=False, kw_only=True)
class ReducedDynamics:
    """The terms of eq. 29 at parameters of a path, as rows over the model's columns and as torques.

    The three evaluations of the regressor are kept, each of shape [n_points, n_joints, r]; everything else follows.

    Args:
        path: the path.
        model: what it was computed with.
        theta: parameters, shape [n_points].
        derivatives: Phi and its derivatives there.
        still, steady, both: rows at (theta, 0, 0), (theta, 1, 0), (theta, 1, 1).
    """

    path: Path
    model: TorqueModel
    theta: FloatArray
    derivatives: Derivatives
    still: FloatArray
    steady: FloatArray
    both: FloatArray

    def _torque(self, rows: FloatArray, role: Role) -> FloatArray:
        # The kernels store samples last; multiplying in that order spares a copy of all rows.
        chosen = self.model.values * self.model.columns(role)
        return np.asarray((chosen @ rows.transpose(1, 2, 0)).T)

    @cached_property
    def Gamma(self) -> FloatArray:
        """Eq. 30: torque against gravity [N m or N], shape [n_points, n_joints]."""
        return read_only(self._torque(self.still, Role.RIGID))

    @cached_property
    def B(self) -> FloatArray:
        """Eq. 31: torque per unit of theta'^2."""
        return read_only(self._torque(self.steady, Role.RIGID) - self.Gamma)

    @cached_property
    def A(self) -> FloatArray:
        """Eq. 32: torque per unit of theta''."""
        return read_only(self._torque(self.both, Role.RIGID) - self.B - self.Gamma)

    @cached_property
    def viscous(self) -> FloatArray:
        """Torque per unit of theta' [N m s]."""
        return read_only(self._torque(self.steady, Role.VISCOUS))

    @cached_property
    def coulomb(self) -> FloatArray:
        """Torque while theta grows [N m or N]; the opposite while it falls."""
        return read_only(self._torque(self.steady, Role.COULOMB))

    @cached_property
    def offset(self) -> FloatArray:
        return read_only(self._torque(self.steady, Role.OFFSET))

    def rows_by_term(self) -> FloatArray:
        """Rows per unit of theta'', theta'^2, theta' and of what remains while theta grows, [n_points, n_joints, 4, r]."""
        rigid, viscous = self.model.columns(Role.RIGID), self.model.columns(Role.VISCOUS)
        signed = self.model.columns(Role.COULOMB) + self.model.columns(Role.OFFSET)
        terms = (
            (self.both - self.steady) * rigid,
            (self.steady - self.still) * rigid,
            self.steady * viscous,
            self.still * rigid + self.steady * signed,
        )
        return np.stack(terms, axis=2)

    def torque(self, speed: npt.ArrayLike, acceleration: npt.ArrayLike, *, friction: bool = True) -> FloatArray:
        """Eq. 29 with friction added back with its sign, shape [n_points, n_joints].

        Args:
            speed, acceleration: theta', theta'', shape [n_points].
            friction: whether viscous and Coulomb friction and offset count.
        """
        v = np.asarray(speed, dtype=np.float64)[:, np.newaxis]
        a = np.asarray(acceleration, dtype=np.float64)[:, np.newaxis]
        rigid = self.A * a + self.B * v**2 + self.Gamma
        return rigid + self.viscous * v + self.coulomb * np.sign(v) + self.offset if friction else rigid

    def combined(self, weights: npt.ArrayLike) -> ScalarDynamics:
        """Eq. 28 of any linear combination of the rows of eq. 29.

        Args:
            weights: one per joint, shape [n_joints]; or one set per point, shape [n_points, n_joints].
        """
        w = np.asarray(weights, dtype=np.float64)
        if w.shape not in ((self.A.shape[1],), self.A.shape):
            raise ShapeError("weights", w.shape, f"[{self.A.shape[1]}] or {list(self.A.shape)}")
        terms = (self.A, self.B, self.Gamma, self.viscous, self.coulomb, self.offset)
        return ScalarDynamics(self.theta, *((term * w).sum(axis=1) for term in terms))

    def passive(self, joint: str) -> ScalarDynamics:
        """Eq. 28 of one joint: with no drive there, u = 0 and theta moves by itself."""
        return self.combined(np.eye(self.A.shape[1])[self.model.robot.joint_index(joint)])

    def projected(self) -> ScalarDynamics:
        """Eq. 28 along the path itself: weights Phi', so that alpha is the kinetic energy's mass and u the driving force."""
        return self.combined(self.derivatives[1])


@dataclass(frozen=True, eq=False)
class ScalarDynamics:
    """alpha theta'' + beta theta'^2 + gamma + viscous theta' + coulomb sign(theta') + offset = u: eq. 28 with friction.

    Args:
        theta: ascending parameters, shape [n].
        alpha, beta, gamma, viscous, coulomb, offset: shape [n].
    """

    theta: FloatArray
    alpha: FloatArray
    beta: FloatArray
    gamma: FloatArray
    viscous: FloatArray
    coulomb: FloatArray
    offset: FloatArray

    def __post_init__(self) -> None:
        for name in ("theta", "alpha", "beta", "gamma", "viscous", "coulomb", "offset"):
            object.__setattr__(self, name, read_only(getattr(self, name)))


def reduced_dynamics(path: Path, model: TorqueModel, theta: npt.ArrayLike) -> ReducedDynamics:
    """Eqs. 30-32 at many parameters with one call of the compiled regressor.

    Args:
        path: of the model's joints, in their order.
        model: regressor, values, covariance.
        theta: parameters, shape [n_points].
    """
    at = np.atleast_1d(np.asarray(theta, dtype=np.float64))
    derivatives = path.derivatives(at)
    q, first, second, _ = derivatives
    zero = np.zeros_like(q)
    rows = model.rows(np.tile(q, (3, 1)), np.vstack([zero, first, first]), np.vstack([zero, second, second + first]))
    still, steady, both = np.split(rows, 3)
    return ReducedDynamics(
        path=path, model=model, theta=read_only(at), derivatives=derivatives, still=still, steady=steady, both=both
    )
