"""Evidence that a set of parameters is physical, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.consistency.bodies import Body, bodies_of
from armid.estimation.consistency.bounds import Bounds
from armid.estimation.consistency.consistent import Consistency, ConsistentEstimate, honest_information
from armid.estimation.consistency.mass_matrix_bound import mass_matrix_bound
from armid.estimation.consistency.prior import Prior
from armid.estimation.consistency.regularisers import PullBack
from armid.estimation.estimate import Estimate
from armid.estimation.status import EstimationError
from armid.kernels.dynamics import mass_matrix
from armid.parameters.inertial import N_INERTIAL, pseudo_inertia
from armid.robot.robot import Robot

CONFIGURATIONS = 2000
"""Random configurations at which M(q) is checked."""
WHOLE_TURN = np.pi
"""Range used for joints without position limits [rad, or m]."""


@dataclass(frozen=True, eq=False)
class Certificates:
    """What was checked.

    Args:
        pseudo_inertia: smallest eigenvalue of each body's pseudo-inertia.
        mass_matrix: smallest eigenvalue of M(q) (rotor inertias included) over the sampled configurations.
        configurations: how many were sampled.
        proven: M(q) is positive definite at *every* configuration, because `mass_matrix_bound` is.
        distance: squared Mahalanobis distance of the free estimate to the nearest physical one, with its covariance.
        distance_limit: 95 % quantile of that distance for a physical robot (chi-square; conservative: the nearest possible
            bodies are nearer than the true ones).
        torque_cost: root mean square torque error of the consistent over that of the free estimate, minus one, per channel.
        mass_matrix_bound: no configuration, within the limits or not, has a smaller eigenvalue of M(q); zero without proof.
        p_value: at most how often noise alone takes the free estimate of a physical robot this far from possible bodies.
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

    @property
    def free_estimate_is_physical(self) -> bool:
        """Whether noise alone explains how far the free estimate is from possible bodies."""
        return self.distance <= self.distance_limit

    @property
    def physical(self) -> bool:
        return all(value > 0.0 for value in self.pseudo_inertia.values()) and self.mass_matrix > 0.0


def certify(
    robot: Robot, consistent: ConsistentEstimate, free: Estimate, torque_cost: Mapping[str, float], *, seed: int = 0
) -> Certificates:
    """All certificates of a consistent estimate against the free one it came from."""
    from scipy.special import gammaincc, gammaincinv

    bound = proven_eigenvalue(robot, consistent.names, consistent.values)
    distance = distance_to_physical(free, consistent.prior)
    return Certificates(
        consistent.smallest_eigenvalues,
        smallest_mass_matrix_eigenvalue(robot, consistent.names, consistent.values, seed=seed),
        CONFIGURATIONS,
        bound > 0.0,
        distance,
        2.0 * float(gammaincinv(0.5 * len(free), 0.95)),
        dict(torque_cost),
        bound,
        float(gammaincc(0.5 * len(free), 0.5 * distance)),
    )


def random_configurations(robot: Robot, count: int, seed: int) -> FloatArray:
    """Uniform within the position limits, shape [count, n_joints], in drive coordinates."""
    lower, upper = robot.limit("lower"), robot.limit("upper")
    lower = np.where(np.isfinite(lower), lower, -WHOLE_TURN)
    upper = np.where(np.isfinite(upper), upper, WHOLE_TURN)
    return np.random.default_rng(seed).uniform(lower, upper, size=(count, robot.n_joints))


def smallest_mass_matrix_eigenvalue(
    robot: Robot, names: tuple[str, ...], values: FloatArray, *, seed: int = 0, count: int = CONFIGURATIONS
) -> float:
    """Of M(q) with rotor inertias over random configurations within the limits; the payload rides on the last link."""
    inertial = moving_bodies(robot, names, values, payload=True)
    rotor = np.diag(rotor_inertias(robot, names, values))
    M = mass_matrix(robot, random_configurations(robot, count, seed), inertial=inertial) + rotor
    return float(np.linalg.eigvalsh(M)[:, 0].min())


def proven_eigenvalue(robot: Robot, names: tuple[str, ...], values: FloatArray) -> float:
    """Below every eigenvalue of M(q), with a payload or without: a payload can only add to M(q)."""
    bodies = moving_bodies(robot, names, values, payload=False)
    return mass_matrix_bound(robot, bodies, rotor_inertias(robot, names, values))


def moving_bodies(robot: Robot, names: tuple[str, ...], values: FloatArray, *, payload: bool) -> FloatArray:
    """Ten parameters of every link, shape [10 n], the payload added to the last when asked for."""
    inertial = np.zeros(robot.n_joints * N_INERTIAL)
    for body in bodies_of(names):
        if body.owner.startswith("link") or payload:
            link = int(body.owner[4:]) - 1 if body.owner.startswith("link") else robot.n_joints - 1
            inertial[link * N_INERTIAL : (link + 1) * N_INERTIAL] += body.of(values)
    return inertial


def rotor_inertias(robot: Robot, names: tuple[str, ...], values: FloatArray) -> FloatArray:
    """[kg m^2, or kg], shape [n]; zero where they are no parameters."""
    known = dict(zip(names, values, strict=True))
    return np.array([known.get(f"joint{i + 1}.rotor_inertia", 0.0) for i in range(robot.n_joints)])


def distance_to_physical(free: Estimate, prior: Prior) -> float:
    """Squared Mahalanobis distance of the free base estimate to the set of possible bodies; infinite if the solver fails.

    minimise (b - P pi)^T C^-1 (b - P pi) over possible pi: a test of whether least squares was physical at all.
    """
    factor = honest_information(free).stacked()
    R, z = factor[:-1, :-1], factor[:-1, -1]
    # The pull only picks one of the equally near bodies; a millionth of a standard deviation does not move the answer.
    settings = Consistency(PullBack(1e-6), Bounds(margin=0.0))
    try:
        solution, units = settings.solve(R, z, prior, 0.0)
    except EstimationError:
        return inf
    miss = R @ (solution.v[: len(units)] * units) - z
    return float(miss @ miss)


def body_eigenvalues(bodies: tuple[Body, ...], values: FloatArray) -> dict[str, float]:
    """Smallest eigenvalue of every body's pseudo-inertia."""
    return {body.owner: float(np.linalg.eigvalsh(pseudo_inertia(body.of(values)))[0]) for body in bodies}
