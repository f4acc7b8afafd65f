"""The corrected arm, and what a robot description cannot hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armid.arrays import FloatArray
from armid.kernels.kinematics import forward_kinematics
from armid.kinematics.model import KinematicModel, Slot, TermBasis, joint_coordinates
from armid.kinematics.sag import gravity_torque
from armid.robot.elementary import Elementary, product
from armid.robot.robot import Frame, Robot

_IN_COUPLING = (TermBasis.POSITION, TermBasis.OTHER)


def calibrated_robot(model: KinematicModel, values: FloatArray) -> Robot:
    """The nominal arm with link constants, joint zeros, gains and couplings replaced; other terms cannot be held.

    Zeros are folded into the constant of each joint's variable, gains and couplings into the coupling matrix.
    """
    robot = model.robot
    zeros = np.zeros(robot.n_joints)
    coupling = np.eye(robot.n_joints) if robot.coupling is None else np.array(robot.coupling)
    for term in model.terms:
        if term.basis is TermBasis.ONE:
            zeros[term.joint] += values[term.parameter]
        elif term.basis in _IN_COUPLING:
            other = term.joint if term.basis is TermBasis.POSITION else term.other
            coupling[term.joint, other] += values[term.parameter]
    joints = tuple(
        replace(joint, transforms=folded(slots, values, float(zero)))
        for joint, slots, zero in zip(robot.joints, model.links, zeros, strict=True)
    )
    return replace(robot, joints=joints, coupling=coupling)


def folded(slots: tuple[Slot, ...], values: FloatArray, zero: float) -> tuple[Elementary, ...]:
    """The transforms of one joint with its corrections; inserted ones that stayed at zero are left out."""
    out = []
    for slot in slots:
        element, change = slot.element, 0.0 if slot.parameter is None else float(values[slot.parameter])
        if element.variable:
            element = replace(element, value=element.value + element.sign * zero)
        elif change != 0.0:
            element = replace(element, value=element.value + change)
        elif slot.parameter is not None and element.value == 0.0 and element.symbol is None:
            continue
        out.append(element)
    return tuple(out)


def frame_matrix(slots: tuple[Slot, ...], values: FloatArray) -> FloatArray:
    """Homogeneous matrix of a sensor's or target's chain at given parameters."""
    return product(
        replace(s.element, value=s.element.value + (0.0 if s.parameter is None else float(values[s.parameter])))
        for s in slots
    )


def predicted_poses(
    model: KinematicModel, values: FloatArray, q: FloatArray, *, setup: str | None = None, target: str | None = None
) -> FloatArray:
    """Where the model with all its terms puts the target (or the robot's tip), shape [n, 4, 4].

    Args:
        model, values: the arm and its parameters.
        q: drive positions, shape [n, n_joints].
        setup: seen from this sensor; from the base by default.
        target: a target's name; the robot's own tip by default.
    """
    moved = joint_coordinates(model, values, q, gravity_torque(model, q))
    # Everything that acts between drive and joint is in `moved`; what is left is plain geometry.
    plain = replace(calibrated_robot(model, _zeroed_terms(model, values)), coupling=None)
    tip = plain.tip if target is None else Frame("target", plain.n_joints)
    T = forward_kinematics(plain, moved, tip)
    if target is not None:
        T = T @ frame_matrix(model.targets[target], values)
    return T if setup is None else frame_matrix(model.setups[setup], values) @ T


def _zeroed_terms(model: KinematicModel, values: FloatArray) -> FloatArray:
    """The parameters without the joint terms."""
    out = np.array(values)
    for term in model.terms:
        out[term.parameter] = 0.0
    return out
