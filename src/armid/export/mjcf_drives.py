"""Drives as MuJoCo reads them out of an exported MJCF file."""

from __future__ import annotations

import numpy as np

from armid.robot.robot import Drive, Robot


def mjcf_drives(robot: Robot, text: str) -> dict[str, Drive]:
    """Rotor inertia, friction and offset of every joint, from the compiled model; of the drives' tendons where they are coupled.

    Args:
        robot: what the file should say.
        text: of the file.
    """
    import mujoco

    model = mujoco.MjModel.from_xml_string(text)
    places = [model.joint(joint.name).id for joint in robot.joints]
    # Of a spring that is far away: minus what it pulls with.
    pulls = np.array([-model.jnt_stiffness[k] * model.qpos_spring[model.jnt_qposadr[k]] for k in places])
    offsets = pulls if robot.coupling is None else robot.coupling.T @ pulls
    found = {}
    for joint, offset in zip(robot.joints, offsets, strict=True):
        if robot.coupling is None:
            at = int(model.joint(joint.name).dofadr[0])
            values = model.dof_armature[at], model.dof_damping[at], model.dof_frictionloss[at]
        else:
            at = model.tendon(f"drive_{joint.name}").id
            values = model.tendon_armature[at], model.tendon_damping[at], model.tendon_frictionloss[at]
        rotor, viscous, coulomb = (float(value) for value in values)
        found[joint.name] = Drive(rotor_inertia=rotor, viscous=viscous, coulomb=coulomb, offset=float(offset))
    return found
