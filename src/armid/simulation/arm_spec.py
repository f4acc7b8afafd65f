"""The arm's bodies, joints, tendons and shapes, as MuJoCo wants them described."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import InputError, MissingDependencyError, RobotError
from armid.parameters.inertial import tensor, to_centre_of_mass
from armid.robot.robot import Joint, JointKind, Robot
from armid.simulation.shapes import add_shapes, overlapping_bodies, pose_fields

try:
    import mujoco
except ImportError:
    raise MissingDependencyError("mujoco", "the embedded robot and shapes of links", "sim") from None


def arm_spec(robot: Robot, payload: FloatArray | None, rotors: npt.NDArray[np.bool_], *, collisions: bool) -> Any:
    """Bodies, joints, tendons and shapes; a body's frame stands at its joint's variable."""
    spec = mujoco.MjSpec()
    spec.option.gravity = robot.gravity
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_RK4
    spec.option.tolerance = 1e-14
    # MuJoCo's own recovery from a blow-up is a silent reset to the initial state.
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    body, T_parent_link = spec.worldbody, np.eye(4)
    if collisions:
        add_shapes(spec, body, robot.geometry, np.eye(4))
    for i, (joint, link) in enumerate(zip(robot.joints, robot.links, strict=True)):
        before, after = joint.around_variable()
        ten = inertial_of(robot, i)
        body = body.add_body(name=f"link{i}", **pose_fields(T_parent_link @ before), **_inertia_frame(ten, after))
        _add_joint(body, joint, f"joint{i}")
        if collisions:
            add_shapes(spec, body, link.geometry, after)
        T_parent_link = after
    body.add_site(name="tip", **pose_fields(T_parent_link @ robot.tip.T_link_frame))
    if payload is not None:
        body.add_body(name="payload", **_inertia_frame(payload, T_parent_link))
    for i in map(int, np.flatnonzero(rotors)):
        rotor = spec.worldbody.add_body(name=f"rotor{i}", mass=1.0, inertia=[1.0] * 3, explicitinertial=True)
        kind = robot.joints[i].kind
        rotor.add_joint(name=f"rotor{i}", type=_joint_type(kind), axis=[0.0, 0.0, 1.0])
    _add_transmissions(spec, robot, rotors)
    return spec


def _joint_type(kind: JointKind) -> Any:
    return mujoco.mjtJoint.mjJNT_SLIDE if kind is JointKind.PRISMATIC else mujoco.mjtJoint.mjJNT_HINGE


def _add_joint(body: Any, joint: Joint, name: str) -> None:
    variable = joint.transforms[joint.variable_index]
    axis = np.zeros(3)
    axis[variable.motion.axis] = variable.sign
    body.add_joint(name=name, type=_joint_type(joint.kind), axis=axis)


def inertial_of(robot: Robot, i: int) -> FloatArray:
    ten = robot.links[i].inertial
    if ten is None:
        raise _without_inertia(robot)
    return ten


def _without_inertia(robot: Robot) -> RobotError:
    """Every link that needs values, not the first alone, and what can be done without them."""
    bare = [repr(link.name) for link in robot.links if link.inertial is None]
    one = len(bare) == 1
    where, problem = f"link{'' if one else 's'} {', '.join(bare)}", f"{'has' if one else 'have'} no inertial parameters"
    wanted = "a moving arm needs mass and inertia: <inertial> in a URDF, `inertial:` in a robot YAML; "
    if len(bare) == robot.n_joints:
        every = "; no link that moves has any" if not one else ""
        return RobotError(
            where, problem + every, wanted + "`armid simulate --record tracker` measures poses without them"
        )
    rest = f"; {robot.n_joints - len(bare)} of the {robot.n_joints} links that move have them"
    way_out = (
        "`armid simulate`, and `rotor_ratio=` of `armid.simulate`, take these links as without mass on assumed rotors"
    )
    return RobotError(where, problem + rest, wanted + way_out)


def centre_and_moments(ten: FloatArray) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """Mass, centre of mass, principal moments and axes (columns, right-handed) of a body."""
    if ten[0] == 0.0:
        if ten[1:4].any():
            raise InputError("inertial parameters", "a first moment without mass", "give the body a mass")
        mass, centre, I = 0.0, np.zeros(3), tensor(ten[4:])
    else:
        mass, centre, I = to_centre_of_mass(ten)
    moments, axes = np.linalg.eigh(I)
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    return mass, centre, moments, axes


def _inertia_frame(ten: FloatArray, T_body_link: FloatArray) -> dict[str, Any]:
    """Where the principal axes stand. Masses and moments are written after compilation, exactly as given."""
    _, centre, _, axes = centre_and_moments(ten)
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = axes, centre
    place = pose_fields(T_body_link @ T)
    return {"ipos": place["pos"], "iquat": place["quat"], "mass": 1.0, "inertia": [1.0] * 3, "explicitinertial": True}


def _add_transmissions(spec: Any, robot: Robot, rotors: npt.NDArray[np.bool_]) -> None:
    """Coupled drives as fixed tendons of length q_i = (C^-1 x)_i, springs as tendons of length theta_i - q_i."""
    n = robot.n_joints
    C = np.eye(n) if robot.coupling is None else robot.coupling
    D = np.linalg.inv(C)
    for i in range(n):
        weights = {f"joint{k}": float(D[i, k]) for k in range(n) if D[i, k] != 0.0}
        if robot.coupling is not None:
            _fixed_tendon(spec, f"drive{i}", weights)
        if rotors[i]:
            spring = _fixed_tendon(spec, f"spring{i}", {f"rotor{i}": 1.0} | {k: -w for k, w in weights.items()})
            spring.springlength = [0.0, 0.0]


def _fixed_tendon(spec: Any, name: str, weights: dict[str, float]) -> Any:
    tendon = spec.add_tendon(name=name)
    for joint, weight in weights.items():
        tendon.wrap_joint(joint, weight)
    return tendon


def compiled(spec: Any, robot: Robot) -> Any:
    """The compiled model, without contact between bodies that overlap by design."""
    try:
        model = spec.compile()
        if model.ngeom:
            pairs = overlapping_bodies(model, *_posture_range(robot, int(model.nv)))
            pairs |= {(0, 1)}
            for one, other in sorted(pairs):
                spec.add_exclude(bodyname1=model.body(one).name, bodyname2=model.body(other).name)
            model = spec.compile()
    except ValueError as error:
        raise RobotError(robot.name, f"MuJoCo cannot build this arm: {str(error).splitlines()[0]}") from None
    return model


def _posture_range(robot: Robot, coordinates: int) -> tuple[FloatArray, FloatArray]:
    """Positions to try when looking for overlapping shapes; rotors of elastic drives carry no shape."""
    lower, upper = np.zeros(coordinates), np.zeros(coordinates)
    n = robot.n_joints
    reach = np.array([np.pi if joint.kind is JointKind.REVOLUTE else 0.5 for joint in robot.joints])
    lower[:n] = np.maximum(robot.limit("lower"), -reach)
    upper[:n] = np.maximum(np.minimum(robot.limit("upper"), reach), lower[:n])
    return lower, upper
