"""Any arm with standard parameters as a MuJoCo model. MuJoCo does the physics; nothing of our own recursion is used.

Generalised coordinates x: one hinge or slide per joint (the links' side), and one more per elastic drive (its rotor).
Two constant matrices say everything about transmissions:

    q     = link_map  x      positions after the transmissions, drive coordinates
    theta = motor_map x      positions of the rotors, drive coordinates; equal to q where a drive is rigid

and by virtual work a torque acts as `motor_map^T tau`, an outer torque as `link_map^T tau`. With a coupling C the
joints turn by C q, so link_map is C^-1 on the joints' coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only
from armid.errors import InputError, MissingDependencyError, RobotError
from armid.parameters.inertial import N_INERTIAL, inertial_problem
from armid.robot.robot import Robot
from armid.simulation.arm_spec import arm_spec, centre_and_moments, compiled, inertial_of
from armid.simulation.engine import engine_warnings

try:
    import mujoco
except ImportError:
    raise MissingDependencyError("mujoco", "the embedded robot and shapes of links", "sim") from None

_BRAKE_INERTIA = 1e9
"""[kg m^2] Rotor inertia of a locked drive: 100 N m moves it by 1e-7 rad/s^2, and the state is put back every step."""

_SMALLEST_MASS = 1e-12
"""[kg, kg m^2] MuJoCo refuses a moving body without mass; this is far below what any arm could feel."""

_FRICTION_IMPEDANCE = 0.9999
"""The hardest friction MuJoCo allows: a stuck joint creeps with 1e-4 of the acceleration it would have when free."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Plant:
    """An arm as MuJoCo sees it.

    Args:
        robot: the physical arm, whose inertial parameters and drives are the truth.
        payload: ten standard parameters in the last link's frame, or None.
        sensed_friction: share of friction and offset on the links' side of the joint torque sensor, shape [n_joints].
        model: the compiled MuJoCo model.
        link_map, motor_map: see above, shape [n_joints, n_coordinates].
        elastic: which drives have a rotor coordinate of their own, shape [n_joints].
        rotor_inertia: of each drive, a locked one's brake included [kg m^2 or kg], shape [n_joints].
        locked: which drives are held by a brake, shape [n_joints].
    """

    robot: Robot
    payload: FloatArray | None
    sensed_friction: FloatArray
    model: Any
    link_map: FloatArray
    motor_map: FloatArray
    elastic: npt.NDArray[np.bool_]
    rotor_inertia: FloatArray
    locked: npt.NDArray[np.bool_]

    @property
    def n_coordinates(self) -> int:
        return int(self.model.nv)

    def at(self, q: FloatArray) -> FloatArray:
        """Coordinates x of an arm standing at drive positions q with unloaded transmissions."""
        x: FloatArray = np.linalg.lstsq(np.vstack([self.link_map, self.motor_map]), np.concatenate([q, q]), rcond=None)[
            0
        ]
        return x

    def set_step(self, step: float) -> None:
        """Integration step [s]. Friction sticks when it can stop the drive within one step, and slides otherwise."""
        m = self.model
        m.opt.timestep = step
        for solref, solimp in ((m.dof_solref, m.dof_solimp), (m.tendon_solref_fri, m.tendon_solimp_fri)):
            solref[:] = (2.0 * step, 1.0)
            solimp[:, :2] = _FRICTION_IMPEDANCE

    def linearised(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A and B of x'' for state (x, x') around rest at q, torque as input; gravity and dry friction left out.

        Returns:
            A, shape [2 n_coordinates, 2 n_coordinates], and B, shape [2 n_coordinates, n_joints].
        """
        m, nv, drive = self.model, self.n_coordinates, self.robot.drive
        data = mujoco.MjData(m)
        data.qpos[:] = self.at(q)
        mujoco.mj_fwdPosition(m, data)
        M = np.empty((nv, nv))
        mujoco.mj_fullM(m, data, M)
        spring = self.motor_map - self.link_map
        stiffness = np.where(self.elastic, np.nan_to_num(drive("stiffness"), posinf=0.0), 0.0)
        damping = np.where(self.elastic, drive("damping"), 0.0)
        share = np.where(self.elastic, self.sensed_friction, 1.0)
        viscous = (self.link_map.T * (share * drive("viscous"))) @ self.link_map
        viscous = viscous + (self.motor_map.T * ((1.0 - share) * drive("viscous"))) @ self.motor_map
        A = np.zeros((2 * nv, 2 * nv))
        A[:nv, nv:] = np.eye(nv)
        A[nv:, :nv] = -np.linalg.solve(M, (spring.T * stiffness) @ spring)
        A[nv:, nv:] = -np.linalg.solve(M, (spring.T * damping) @ spring + viscous)
        B = np.vstack([np.zeros((nv, self.robot.n_joints)), np.linalg.solve(M, self.motor_map.T)])
        return A, B

    def set_friction(self, viscous: FloatArray, coulomb: FloatArray) -> None:
        """Friction of every drive, shape [n_joints], put on either side of the torque sensor."""
        m, share = self.model, self.sensed_friction
        # A brake leaves nothing for friction to do.
        viscous, coulomb = (np.where(self.locked, 0.0, x) for x in (viscous, coulomb))
        for i in range(self.robot.n_joints):
            output = float(share[i]) if self.elastic[i] else 1.0
            damping, loss, output_index = _output_friction(self, i)
            damping[output_index] = output * viscous[i]
            loss[output_index] = output * coulomb[i]
            if self.elastic[i]:
                dof = int(m.joint(f"rotor{i}").dofadr[0])
                m.dof_damping[dof] = (1.0 - share[i]) * viscous[i]
                m.dof_frictionloss[dof] = (1.0 - share[i]) * coulomb[i]


def _output_friction(plant: Plant, i: int) -> tuple[FloatArray, FloatArray, int]:
    """The arrays of damping and friction loss that act on drive i's output, and its place in them."""
    m = plant.model
    if plant.robot.coupling is None:
        return m.dof_damping, m.dof_frictionloss, i
    return m.tendon_damping, m.tendon_frictionloss, int(m.tendon(f"drive{i}").id)


def sensed_shares(robot: Robot, given: float | None) -> FloatArray:
    """Share of friction that each joint torque sensor feels: as given, or as the arm's description says."""
    return robot.drive("sensed_friction") if given is None else np.full(robot.n_joints, float(given))


def build_plant(
    robot: Robot,
    *,
    payload: npt.ArrayLike | None = None,
    elastic: bool = False,
    sensed_friction: float | None = None,
    locked: tuple[str, ...] = (),
    collisions: bool = True,
    step: float = 1e-3,
) -> Plant:
    """A MuJoCo model of the arm.

    Args:
        robot: geometry, gravity, coupling, inertial parameters, drives; every number is taken as true.
        payload: ten standard parameters of a body fixed to the last link, in that link's frame.
        elastic: give every drive of finite stiffness a rotor of its own behind a spring and a damper
            ([Gaz2014] eqs. 1-3: the rotor's kinetic energy is that of its own spin).
        sensed_friction: share of friction and offset on the links' side of the joint torque sensor, 0 to 1; the robot's own
            when None.
        locked: names of joints held by a brake.
        collisions: give the links the shapes of the description.
        step: of the integration [s].

    Raises:
        RobotError: when the parameters are not those of an arm that can move.
    """
    if sensed_friction is not None and not 0.0 <= sensed_friction <= 1.0:
        raise InputError("sensed_friction", f"{sensed_friction:g}", "a share between 0 and 1")
    rotors = np.array([elastic and np.isfinite(joint.drive.stiffness) for joint in robot.joints], dtype=bool)
    held = np.zeros(robot.n_joints, dtype=bool)
    held[[robot.joint_index(name) for name in locked]] = True
    load = None if payload is None else _check_payload(payload)
    spec = arm_spec(robot, load, rotors, collisions=collisions)
    spec.option.timestep = step
    model = compiled(spec, robot)
    link_map, motor_map = _transmission_maps(robot, model, rotors)
    inertia = np.where(held, _BRAKE_INERTIA, robot.drive("rotor_inertia"))
    plant = Plant(
        robot=robot,
        payload=load,
        sensed_friction=read_only(sensed_shares(robot, sensed_friction)),
        model=model,
        link_map=read_only(link_map),
        motor_map=read_only(motor_map),
        elastic=rotors,
        rotor_inertia=read_only(inertia),
        locked=held,
    )
    _write_inertias(plant)
    _write_drives(plant)
    with engine_warnings():
        mujoco.mj_setConst(model, mujoco.MjData(model))
        # The friction solver's tolerance is relative to this; a brake's inertia must not loosen it.
        model.stat.meaninertia = min(float(model.stat.meaninertia), 1.0)
        _check_mass_matrix(plant)
    return plant


def _check_payload(payload: npt.ArrayLike) -> FloatArray:
    values = read_only(payload)
    if values.shape != (N_INERTIAL,):
        raise InputError(
            "payload", f"{values.size} numbers", "ten standard parameters: mass mx my mz Ixx Ixy Ixz Iyy Iyz Izz"
        )
    problem = inertial_problem(values)
    if problem:
        raise InputError("payload", problem, "inertia is about the last link's origin, not the centre of mass")
    return values


def _transmission_maps(robot: Robot, model: Any, rotors: npt.NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    n = robot.n_joints
    link_map = np.zeros((n, int(model.nv)))
    dofs = [int(model.joint(f"joint{i}").dofadr[0]) for i in range(n)]
    assert dofs == list(range(n)), "joints come first"
    link_map[:, :n] = np.eye(n) if robot.coupling is None else np.linalg.inv(robot.coupling)
    motor_map = link_map.copy()
    for i in np.flatnonzero(rotors):
        motor_map[i] = 0.0
        motor_map[i, int(model.joint(f"rotor{i}").dofadr[0])] = 1.0
    return link_map, motor_map


def _write_inertias(plant: Plant) -> None:
    """Masses and principal moments, exactly as given."""
    m, robot = plant.model, plant.robot
    bodies = {f"link{i}": inertial_of(robot, i) for i in range(robot.n_joints)}
    if plant.payload is not None:
        bodies["payload"] = plant.payload
    for name, ten in bodies.items():
        mass, _, moments, _ = centre_and_moments(ten)
        body = m.body(name).id
        m.body_mass[body] = mass
        m.body_inertia[body] = moments
    for i in np.flatnonzero(plant.elastic):
        # Its inertia is the armature; the body itself weighs nothing.
        body = m.body(f"rotor{i}").id
        m.body_mass[body] = _SMALLEST_MASS
        m.body_inertia[body] = _SMALLEST_MASS


def _write_drives(plant: Plant) -> None:
    """Rotor inertia, stiffness and friction."""
    m, robot = plant.model, plant.robot
    for i, joint in enumerate(robot.joints):
        if plant.elastic[i]:
            m.dof_armature[int(m.joint(f"rotor{i}").dofadr[0])] = plant.rotor_inertia[i]
            spring = m.tendon(f"spring{i}").id
            m.tendon_stiffness[spring] = joint.drive.stiffness
            m.tendon_damping[spring] = joint.drive.damping
        elif robot.coupling is None:
            m.dof_armature[i] = plant.rotor_inertia[i]
        else:
            m.tendon_armature[m.tendon(f"drive{i}").id] = plant.rotor_inertia[i]
    plant.set_step(float(m.opt.timestep))
    plant.set_friction(robot.drive("viscous"), robot.drive("coulomb"))


_POSTURES_TRIED = 10


def _check_mass_matrix(plant: Plant) -> None:
    """An arm whose mass matrix is not positive definite cannot be moved; says which links are to blame."""
    m = plant.model
    rng = np.random.default_rng(0)
    data = mujoco.MjData(m)
    M = np.empty((m.nv, m.nv))
    for _ in range(_POSTURES_TRIED):
        data.qpos[:] = rng.uniform(-np.pi, np.pi, m.nv)
        mujoco.mj_fwdPosition(m, data)
        mujoco.mj_fullM(m, data, M)
        smallest = float(np.linalg.eigvalsh(M)[0])
        if not smallest > 0.0:
            bad = [link.name for link in plant.robot.links if not link.is_sound]
            raise RobotError(
                plant.robot.name,
                f"its mass matrix is not positive definite (smallest eigenvalue {smallest:g})",
                f"impossible inertial parameters of {', '.join(bad)}"
                if bad
                else "a joint moves no mass; give it a rotor inertia",
            )
