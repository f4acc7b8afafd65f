"""Contacts: stretches in which some joint passes its level, with time, joint, size, and the wrench that explains them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.kernels.kinematics import jacobian
from armid.observation.residuals import ObservedMotion
from armid.page import Table
from armid.robot.robot import Robot

APART = 0.1
"""[s] of silence that ends a contact."""

_WELL_CONDITIONED = 100.0
"""Condition number of the Jacobian (lengths in metres) beyond which no wrench is given."""

_FORCE_AT_TIP = 6
"""Joints that a wrench at the flange needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    """Something that pushed.

    Args:
        begins, ends: [s]; when it was known, not when it happened.
        joint: that stood out most.
        torque: largest external torque in it [N m or N].
        deviations: by how many of its own the joint stood out.
        joints: all that passed their levels.
        wrench: force [N] and moment [N m] at the flange in base axes, at the peak; None where the Jacobian does not allow it.
    """

    begins: float
    ends: float
    joint: str
    torque: float
    deviations: float
    joints: tuple[str, ...]
    wrench: tuple[float, ...] | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "begins": self.begins,
            "ends": self.ends,
            "joint": self.joint,
            "torque": self.torque,
            "deviations": self.deviations,
            "joints": list(self.joints),
            "wrench": None if self.wrench is None else list(self.wrench),
        }


def contacts_table(contacts: Sequence[Contact]) -> Table:
    """One row each, for people."""
    rows = tuple(
        (
            f"{c.begins:.3f}",
            f"{c.ends - c.begins:.3f}",
            c.joint,
            c.torque,
            c.deviations,
            ", ".join(c.joints),
            "" if c.wrench is None else ", ".join(f"{x:.3g}" for x in c.wrench),
        )
        for c in contacts
    )
    header = ("from [s]", "lasts [s]", "joint", "torque [N m or N]", "deviations", "all joints", "wrench [N, N m]")
    return Table(header, rows, caption="Contacts")


def contacts_along(
    robot: Robot, motion: ObservedMotion, external: FloatArray, deviation: FloatArray, threshold: FloatArray
) -> tuple[Contact, ...]:
    """Stretches in which some joint passes its level, those close to each other as one."""
    passed = np.abs(external) > threshold
    index = np.flatnonzero(passed.any(axis=1))
    if not len(index):
        return ()
    gap = max(int(APART / float(np.median(np.diff(motion.time)))), 1)
    pieces = np.split(index, np.flatnonzero(np.diff(index) > gap) + 1)
    return tuple(_contact(robot, motion, external, deviation, passed, piece) for piece in pieces)


def _contact(
    robot: Robot,
    motion: ObservedMotion,
    external: FloatArray,
    deviation: FloatArray,
    passed: np.ndarray[Any, np.dtype[np.bool_]],
    piece: np.ndarray[Any, np.dtype[np.intp]],
) -> Contact:
    z = np.abs(external[piece]) / deviation[piece]
    row, joint = (int(k) for k in np.unravel_index(int(z.argmax()), z.shape))
    peak = int(piece[row])
    names = robot.joint_names
    return Contact(
        begins=float(motion.time[piece[0]] + motion.delay),
        ends=float(motion.time[piece[-1]] + motion.delay),
        joint=names[joint],
        torque=float(external[peak, joint]),
        deviations=float(z[row, joint]),
        joints=tuple(name for name, any_ in zip(names, passed[piece].any(axis=0), strict=True) if any_),
        wrench=flange_wrench(robot, motion.q[peak], external[peak]),
    )


def flange_wrench(robot: Robot, q: FloatArray, external: FloatArray) -> tuple[float, ...] | None:
    """Force and moment at the flange that make this joint torque: tau = J^T F, in the least-squares sense."""
    if robot.n_joints < _FORCE_AT_TIP:
        return None
    J = jacobian(robot, q).reshape(6, -1)
    if np.linalg.cond(J) > _WELL_CONDITIONED:
        return None
    solution, *_ = np.linalg.lstsq(J.T, external, rcond=None)
    return tuple(float(x) for x in solution)
