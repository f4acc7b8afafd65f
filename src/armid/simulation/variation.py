"""A robot of the same type as described, but another specimen: 20 % from robot to robot are common ([Kolyubin2017])."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armid.arrays import FloatArray
from armid.parameters.inertial import from_log_cholesky, inertial_problem, to_log_cholesky
from armid.robot.robot import Drive, Robot

_VARIED = ("rotor_inertia", "viscous", "coulomb", "offset")


def varied(robot: Robot, amount: float, rng: np.random.Generator) -> Robot:
    """The same arm with other, always possible, inertial parameters and drives.

    Inertias move in log-Cholesky coordinates, so every body stays a body; drives are multiplied by log-normal factors.

    Args:
        robot: as described.
        amount: relative standard deviation, 0.2 for 20 %.
        rng: the source of chance.
    """
    links = tuple(
        replace(link, inertial=None if link.inertial is None else _vary_body(link.inertial, amount, rng))
        for link in robot.links
    )
    joints = tuple(replace(joint, drive=_vary_drive(joint.drive, amount, rng)) for joint in robot.joints)
    return replace(robot, links=links, joints=joints)


def _vary_body(ten: FloatArray, amount: float, rng: np.random.Generator) -> FloatArray:
    """Another body; one that is degenerate (a point, a rod) or impossible is only scaled."""
    kick = rng.standard_normal(10)
    try:
        if inertial_problem(ten) is not None:
            raise np.linalg.LinAlgError
        theta = to_log_cholesky(ten)
    except np.linalg.LinAlgError:
        return ten * float(np.exp(amount * kick[0]))
    # U is scaled by e^alpha as a whole, mass by its square; off-diagonal entries move in proportion to their rows.
    size = np.exp(theta[1:4])
    scale = np.concatenate([[0.5], np.full(3, 0.5), 0.5 * size[[0, 1, 0]], 0.5 * size])
    return from_log_cholesky(theta + amount * kick * scale)


def _vary_drive(drive: Drive, amount: float, rng: np.random.Generator) -> Drive:
    factors = np.exp(amount * rng.standard_normal(len(_VARIED)))
    return replace(drive, **{name: getattr(drive, name) * float(f) for name, f in zip(_VARIED, factors, strict=True)})
