"""The arm in motion: what was asked, what it really did, and what an ideal sensor would have read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only
from armid.notes import Note, Severity
from armid.robot.robot import Robot
from armid.simulation.controllers import Controller, PdGravity, check_gains
from armid.simulation.dynamics import RigidModel
from armid.simulation.engine import engine_warnings
from armid.simulation.faults import SimulationError, ending_fault, passing_fault
from armid.simulation.loop import Loop, Record, substeps_of
from armid.simulation.motions import CommandedMotion, Reference, sampled_reference
from armid.simulation.physics import OnFault, Physics
from armid.simulation.plant import Plant, build_plant


@dataclass(frozen=True, eq=False, kw_only=True)
class SimulatedRun:
    """What the arm really did; every array has one row per control tick, in drive coordinates.

    The equations of motion hold exactly in every row:
    `motor_torque = rigid + rotor_inertia * motor_qdd + friction + offset - external` (rigid drives), and
    `link_torque = rigid - external + sensed share of friction and offset`.

    Args:
        robot: the physical arm.
        plant: its MuJoCo model.
        time: [s], shape [n_ticks].
        command: what was asked for.
        q, qd, qdd: of the links, after the transmissions, shape [n_ticks, n_joints].
        motor_q, motor_qd, motor_qdd: of the rotors.
        motor_torque: delivered by the drives, after saturation [N m or N].
        link_torque: what an ideal joint torque sensor reads.
        rigid_torque: M qdd + c + g of the links and the payload.
        friction: total friction of every drive, as it acted.
        external_torque: of a person's hand.
        friction_scale: factor on viscous and Coulomb friction, shape [n_ticks, 2].
        faults: what happened on the way; one of severity error ended the motion.
    """

    robot: Robot
    plant: Plant
    time: FloatArray
    command: Reference
    q: FloatArray
    qd: FloatArray
    qdd: FloatArray
    motor_q: FloatArray
    motor_qd: FloatArray
    motor_qdd: FloatArray
    motor_torque: FloatArray
    link_torque: FloatArray
    rigid_torque: FloatArray
    friction: FloatArray
    external_torque: FloatArray
    friction_scale: FloatArray
    faults: tuple[Note, ...]

    @property
    def complete(self) -> bool:
        """Whether the motion was carried out to its end."""
        return not any(fault.severity is Severity.ERROR for fault in self.faults)


def run_motion(
    robot: Robot,
    motion: CommandedMotion,
    *,
    controller: Controller | None = None,
    physics: Physics | None = None,
    declared: Robot | None = None,
    start: npt.ArrayLike | None = None,
) -> SimulatedRun:
    """Runs a commanded motion on the simulated arm.

    Args:
        robot: the physical arm; its inertial parameters, drives and gravity are the truth.
        motion: commanded, in drive coordinates.
        controller: PD with gravity compensation by default.
        physics: how it is simulated.
        declared: the arm as its users believe it to be, which the controller's model and the limits come from.
        start: where the arm stands at rest, shape [n_joints]; by default it is already in the motion's first state.

    Raises:
        CommandError: a motion the arm cannot be asked to follow.
        GainError: gains that are unstable at this rate.
        SimulationError: a motion that had to be stopped, unless faults are to be recorded.
    """
    settings = physics or Physics()
    believed = declared or robot
    period = 1.0 / settings.control_rate_hz
    reference = sampled_reference(motion, believed, settings.control_rate_hz, start)
    plant = build_plant(
        settings.transmissions(robot),
        payload=settings.payload,
        elastic=settings.elastic,
        sensed_friction=settings.sensed_friction,
        locked=settings.locked,
        collisions=settings.collisions,
        step=settings.step,
    )
    substeps = substeps_of(plant, reference, settings)
    plant.set_step(period / substeps)
    law = (controller or PdGravity()).law(believed, plant, reference, period)
    check_gains(law, plant, reference, period)
    with engine_warnings():  # a state that is not finite is a fault of ours with a name
        record = Loop(plant, law, reference, settings, substeps).run()
    return _evaluate(plant, reference, record, settings)


def _evaluate(plant: Plant, reference: Reference, record: Record, settings: Physics) -> SimulatedRun:
    """Drive-side quantities from the raw record, by the balance of forces; [Kolyubin2017] models 1-3 give the sides."""
    if record.fault is not None and settings.on_fault is OnFault.RAISE:
        raise SimulationError(record.fault, float(reference.time[record.ticks]))
    keep = slice(0, record.ticks)
    robot, share = plant.robot, plant.sensed_friction
    L, S = plant.link_map, plant.motor_map
    x, v, a = record.x[keep], record.v[keep], record.a[keep]
    qd, qdd, motor_qd, motor_qdd = v @ L.T, a @ L.T, v @ S.T, a @ S.T
    torque, hand, scale = record.torque[keep], record.hand[keep], record.scale[keep]
    coulomb_link, coulomb_motor = _coulomb_torques(plant, record.constraint[keep])
    viscous, offset = np.where(plant.locked, 0.0, robot.drive("viscous")) * scale[:, :1], robot.drive("offset")
    friction_link = share * (viscous * qd) + coulomb_link
    friction_motor = (1.0 - share) * (viscous * motor_qd) + coulomb_motor
    link_torque = torque - plant.rotor_inertia * motor_qdd - friction_motor - (1.0 - share) * offset
    rigid = link_torque + hand - friction_link - share * offset
    if plant.locked.any():
        # A brake's reaction is a small difference of huge numbers in the balance; MuJoCo's recursion gives it exactly.
        qdd = np.where(plant.locked & ~plant.elastic, 0.0, qdd)
        motor_qdd = np.where(plant.locked, 0.0, motor_qdd)
        model = RigidModel(robot, plant.payload)
        reaction = np.array([model.inverse(*row) for row in zip(x @ L.T, qd, qdd, strict=True)]).reshape(qd.shape)
        rigid = np.where(plant.locked, reaction, rigid)
        link_torque = np.where(plant.locked, reaction - hand, link_torque)
    return SimulatedRun(
        robot=robot,
        plant=plant,
        time=read_only(reference.time[keep]),
        command=Reference(*(read_only(x[keep]) for x in (reference.time, reference.q, reference.qd, reference.qdd))),
        q=read_only(x @ L.T),
        qd=read_only(qd),
        qdd=read_only(qdd),
        motor_q=read_only(x @ S.T),
        motor_qd=read_only(motor_qd),
        motor_qdd=read_only(motor_qdd),
        motor_torque=read_only(torque),
        link_torque=read_only(link_torque),
        rigid_torque=read_only(rigid),
        friction=read_only(friction_link + friction_motor),
        external_torque=read_only(hand),
        friction_scale=read_only(scale),
        faults=tuple(_faults_of(plant, record, reference)),
    )


def _coulomb_torques(plant: Plant, constraint: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Dry friction as it acted on either side of the sensor, from MuJoCo's constraint forces, [n_ticks, n_joints]."""
    n, share = plant.robot.n_joints, plant.sensed_friction
    C = np.eye(n) if plant.robot.coupling is None else plant.robot.coupling
    output = -constraint[:, :n] @ C
    rotor = -constraint @ np.where(plant.elastic[:, np.newaxis], plant.motor_map, 0.0).T
    link = np.where(plant.elastic, output, share * output)
    return link, np.where(plant.elastic, rotor, (1.0 - share) * output)


def _faults_of(plant: Plant, record: Record, reference: Reference) -> list[Note]:
    """Everything worth a note, the one that ended the motion last."""
    notes = [
        passing_fault(
            "torque-saturated",
            f"joint {name} was asked for more than its torque limit in {int(count)} of {record.ticks} ticks",
            name,
        )
        for name, count in zip(plant.robot.joint_names, record.saturated, strict=True)
        if count
    ]
    if record.fault is not None:
        fault = record.fault
        notes.append(
            ending_fault(fault.code, f"after {reference.time[record.ticks]:.3f} s: {fault.message}", fault.subject)
        )
    return notes
