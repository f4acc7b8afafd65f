"""Evidence that a set of parameters is physical, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.bodies import bodies_of
from armid.consistency.consistent import ConsistentEstimate, parameter_scale
from armid.consistency.feasibility import feasibility
from armid.consistency.mass_matrix_bound import mass_matrix_bound
from armid.estimation.estimate import Estimate
from armid.information.solve import smallest_solution
from armid.kernels.dynamics import mass_matrix
from armid.parameters.inertial import N_INERTIAL
from armid.robot.robot import Robot

_CONFIGURATIONS = 2000
"""Random configurations at which M(q) is checked."""
_WHOLE_TURN = np.pi
"""Range used for joints without position limits [rad, or m]."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificates:
    """What was checked.

    Args:
        pseudo_inertia: smallest eigenvalue of each body's pseudo-inertia.
        mass_matrix: smallest eigenvalue of M(q) (rotor inertias included) over the sampled configurations.
        configurations: how many were sampled.
        proven: M(q) is positive definite at *every* configuration, because `mass_matrix_bound` is.
        distance: squared Mahalanobis distance of the unconstrained estimate to the nearest physical one, with its covariance.
        distance_limit: 95 % quantile of what noise alone can make of it, whatever the true bodies are; see `Feasibility`.
        torque_cost: root mean square torque error of the consistent over that of the unconstrained estimate, minus one, per
            channel.
        mass_matrix_bound: no configuration, within the limits or not, has a smaller eigenvalue of M(q); zero without proof.
        p_value: about how often noise alone takes the unconstrained estimate of a physical robot this far from possible
            bodies, given the constraints that bind.
        freedom: degrees of freedom behind it: constraints that bind and that base parameters see.
        free_mass_matrix_bound: the same as `mass_matrix_bound` for the unconstrained estimate, whose bodies need not be possible;
            zero without proof.
    """

    pseudo_inertia: Mapping[str, float]
    mass_matrix: float
    configurations: int
    proven: bool
    distance: float
    distance_limit: float
    torque_cost: Mapping[str, float]
    mass_matrix_bound: float = 0.0
    p_value: float = float("nan")
    freedom: int = 0
    free_mass_matrix_bound: float = 0.0

    @property
    def free_estimate_is_physical(self) -> bool:
        """Whether noise alone explains how far the unconstrained estimate is from possible bodies."""
        return self.distance <= self.distance_limit

    @property
    def physical(self) -> bool:
        return all(value > 0.0 for value in self.pseudo_inertia.values()) and self.mass_matrix > 0.0


def certify(
    robot: Robot, consistent: ConsistentEstimate, free: Estimate, torque_cost: Mapping[str, float], *, seed: int = 0
) -> Certificates:
    """All certificates of a consistent estimate against the free one it came from."""
    bound = proven_eigenvalue(robot, consistent.names, consistent.values)
    test = feasibility(free, consistent.prior)
    return Certificates(
        pseudo_inertia=consistent.smallest_eigenvalues,
        mass_matrix=smallest_mass_matrix_eigenvalue(robot, consistent.names, consistent.values, seed=seed),
        configurations=_CONFIGURATIONS,
        proven=bound > 0.0,
        distance=test.distance,
        distance_limit=test.limit,
        torque_cost=dict(torque_cost),
        mass_matrix_bound=bound,
        p_value=test.p_value,
        freedom=test.freedom,
        free_mass_matrix_bound=proven_eigenvalue(robot, consistent.names, nearest_standard(free, consistent)),
    )


def _random_configurations(robot: Robot, count: int, seed: int) -> FloatArray:
    """Uniform within the position limits, shape [count, n_joints], in drive coordinates."""
    lower, upper = robot.limit("lower"), robot.limit("upper")
    lower = np.where(np.isfinite(lower), lower, -_WHOLE_TURN)
    upper = np.where(np.isfinite(upper), upper, _WHOLE_TURN)
    return np.random.default_rng(seed).uniform(lower, upper, size=(count, robot.n_joints))


def smallest_mass_matrix_eigenvalue(
    robot: Robot, names: tuple[str, ...], values: FloatArray, *, seed: int = 0, count: int = _CONFIGURATIONS
) -> float:
    """Of M(q) with rotor inertias over random configurations within the limits; the payload rides on the last link."""
    inertial = _moving_bodies(robot, names, values, payload=True)
    rotor = np.diag(_rotor_inertias(robot, names, values))
    M = mass_matrix(robot, _random_configurations(robot, count, seed), inertial=inertial) + rotor
    return float(np.linalg.eigvalsh(M)[:, 0].min())


def proven_eigenvalue(robot: Robot, names: tuple[str, ...], values: FloatArray) -> float:
    """Below every eigenvalue of M(q), with a payload or without: a payload can only add to M(q)."""
    bodies = _moving_bodies(robot, names, values, payload=False)
    return mass_matrix_bound(robot, bodies, _rotor_inertias(robot, names, values))


def nearest_standard(free: Estimate, consistent: ConsistentEstimate) -> FloatArray:
    """Standard parameters with the unconstrained estimate's base parameters, as near to possible bodies as they allow, shape [p].

    M(q) depends on base parameters alone, so any such vector may carry the proof, and bodies that are almost possible do best.
    """
    scale = parameter_scale(consistent.prior)
    miss = free.values - free.base.values(consistent.values)
    return consistent.values + scale * smallest_solution(free.base.projection * scale, miss)


def _moving_bodies(robot: Robot, names: tuple[str, ...], values: FloatArray, *, payload: bool) -> FloatArray:
    """Ten parameters of every link, shape [10 n], the payload added to the last when asked for."""
    inertial = np.zeros(robot.n_joints * N_INERTIAL)
    for body in bodies_of(names):
        if body.link is not None or payload:
            link = robot.n_joints - 1 if body.link is None else body.link
            inertial[link * N_INERTIAL : (link + 1) * N_INERTIAL] += body.of(values)
    return inertial


def _rotor_inertias(robot: Robot, names: tuple[str, ...], values: FloatArray) -> FloatArray:
    """[kg m^2, or kg], shape [n]; zero where they are no parameters."""
    known = dict(zip(names, values, strict=True))
    return np.array([known.get(f"joint{i + 1}.rotor_inertia", 0.0) for i in range(robot.n_joints)])
