"""Is the mass matrix positive definite? Along a motion, and over the whole joint space ([Halper2024] section 4.3).

Possible bodies make M(q) positive definite everywhere. Base parameters estimated without constraints need not; there
the question is worth asking. A search finds where it fails; `mass_matrix_bound` of the estimation often proves that it does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.kernels.dynamics import mass_matrix
from armid.parameters.inertial import N_INERTIAL
from armid.parameters.space import named_parameter
from armid.robot.robot import Robot

_SAMPLES = 2000
"""Random configurations the search starts with: enough for seven joints to land near every basin that is not tiny."""
_KEPT = 8
"""Worst configurations that are followed downhill."""
_TRIES = 24
"""Random neighbours of each of them per round."""
_ROUNDS = 14
_SHRINKAGE = 0.65
"""Of the neighbourhood per round: after all rounds it is a four hundredth of the joint range."""
_WHOLE_TURN = np.pi
"""Range searched of joints without position limits [rad or m]."""


@dataclass(frozen=True, eq=False)
class Positivity:
    """The worst that was found.

    Args:
        smallest: eigenvalue of M(q) [kg m^2; kg or kg m for prismatic joints].
        configuration: where, drive coordinates [rad or m], shape [n_joints].
        configurations: how many were looked at.
    """

    smallest: float
    configuration: FloatArray
    configurations: int

    @property
    def positive(self) -> bool:
        return self.smallest > 0.0


def positivity_along(robot: Robot, q: npt.ArrayLike) -> Positivity:
    """Smallest eigenvalue of M(q), rotors included, along a motion.

    Args:
        robot: with the parameters in question.
        q: drive positions [rad or m], shape [n_samples, n_joints].
    """
    positions = samples("q", q, robot.n_joints)
    values = smallest_eigenvalues(robot, positions)
    worst = int(np.argmin(values))
    return Positivity(float(values[worst]), positions[worst].copy(), len(positions))


def positivity_over(robot: Robot, *, seed: int = 0) -> Positivity:
    """Searches the joint range for the smallest eigenvalue of M(q): random configurations, the worst followed downhill.

    Args:
        robot: with the parameters in question; joints without limits are searched over a turn either way.
        seed: of the random configurations.
    """
    rng = np.random.default_rng(seed)
    lower, upper = _joint_range(robot)
    q = rng.uniform(lower, upper, size=(_SAMPLES, robot.n_joints))
    values = smallest_eigenvalues(robot, q)
    kept = np.argsort(values)[:_KEPT]
    best, height, count = q[kept], values[kept], _SAMPLES
    radius = 0.5 * (upper - lower)
    for _ in range(_ROUNDS):
        radius = _SHRINKAGE * radius
        near = best[:, np.newaxis] + radius * rng.uniform(-1.0, 1.0, size=(len(best), _TRIES, robot.n_joints))
        near = np.clip(near, lower, upper)
        found = smallest_eigenvalues(robot, near.reshape(-1, robot.n_joints)).reshape(len(best), _TRIES)
        count += found.size
        choice = np.argmin(found, axis=1)
        lowest = found[np.arange(len(best)), choice]
        better = lowest < height
        best = np.where(better[:, np.newaxis], near[np.arange(len(best)), choice], best)
        height = np.where(better, lowest, height)
    worst = int(np.argmin(height))
    return Positivity(float(height[worst]), best[worst], count)


def smallest_eigenvalues(robot: Robot, q: FloatArray) -> FloatArray:
    """Of M(q) with rotor inertias at every configuration, shape [n_samples]."""
    M = mass_matrix(robot, q) + np.diag(robot.drive("rotor_inertia"))
    return np.asarray(np.linalg.eigvalsh(M)[:, 0])


def _joint_range(robot: Robot) -> tuple[FloatArray, FloatArray]:
    """Position limits, with a turn either way where there are none."""
    lower, upper = robot.limit("lower"), robot.limit("upper")
    return np.where(np.isfinite(lower), lower, -_WHOLE_TURN), np.where(np.isfinite(upper), upper, _WHOLE_TURN)


def with_standard(robot: Robot, values: Mapping[str, float]) -> Robot:
    """The arm with exactly these standard parameters, zero where none is named; a payload rides on the last link.

    A drive has one friction: where both sides of the transmission were told apart, it is their sum, as the motor feels it.
    Base parameters in their leading columns move the arm as the true bodies do, although no body has such values.
    """
    inertial = np.zeros((robot.n_joints, N_INERTIAL))
    drives = [dict.fromkeys(_DRIVE_QUANTITIES, 0.0) for _ in robot.joints]
    for name, value in values.items():
        parameter = named_parameter(name)
        if parameter.component is not None:
            inertial[parameter.body if parameter.of_link else -1, parameter.component] += value
        elif parameter.of_joint and parameter.drive_quantity is not None:
            drives[parameter.body][parameter.drive_quantity] += float(value)
    joints = tuple(
        replace(joint, drive=replace(joint.drive, **drive)) for joint, drive in zip(robot.joints, drives, strict=True)
    )
    return replace(robot.with_inertial(inertial), joints=joints)


_DRIVE_QUANTITIES = ("rotor_inertia", "viscous", "coulomb", "offset")
