"""The arm in motion: controller, physics and what they really did, tick by tick."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only
from armid.errors import InputError
from armid.notes import Note, Severity
from armid.robot.robot import Robot
from armid.simulation.controllers import Controller, Law, PdGravity, check_gains, spread
from armid.simulation.drift import FrictionDrift
from armid.simulation.faults import SimulationError, noticed, stopped
from armid.simulation.motions import Motion, Reference, sampled_reference
from armid.simulation.plant import Plant, build_plant


class OnFault(StrEnum):
    """What to do when a motion has to be stopped."""

    RAISE = "raise"
    RECORD = "record"
    """Keep what was measured until then, with the fault in the record."""


@dataclass(frozen=True, eq=False)
class Physics:
    """How the arm is simulated.

    Args:
        step: longest integration step [s]; shortened to fit the control period a whole number of times, and further
            when a transmission is so stiff that it would not be resolved.
        control_rate_hz: of the controller and of the record.
        elastic: simulate transmissions of finite stiffness.
        sensed_friction: share of friction and offset on the links' side of the joint torque sensor, 0 to 1.
        drift: how friction changes as the drives warm up.
        payload: ten standard parameters of a body fixed to the last link, in its frame, or None.
        locked: names of joints held by their brakes.
        collisions: stop when links touch each other or the base.
        tracking_limit: stop when a joint is further than this from its command [rad or m].
        on_fault: raise, or keep the record until then.
    """

    step: float = 1e-3
    control_rate_hz: float = 1000.0
    elastic: bool = False
    sensed_friction: float = 1.0
    drift: FrictionDrift = field(default_factory=FrictionDrift)
    payload: FloatArray | None = None
    locked: tuple[str, ...] = ()
    collisions: bool = True
    tracking_limit: float = 0.5
    on_fault: OnFault = OnFault.RAISE

    def __post_init__(self) -> None:
        for name in ("step", "control_rate_hz", "tracking_limit"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0.0):
                raise InputError(name, f"{value}", "a positive number")


@dataclass(frozen=True, eq=False)
class Run:
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


def simulate(
    robot: Robot,
    motion: Motion,
    *,
    controller: Controller | None = None,
    physics: Physics | None = None,
    declared: Robot | None = None,
    start: npt.ArrayLike | None = None,
) -> Run:
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
        robot,
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
    record = moved(plant, law, reference, settings, substeps)
    return evaluated(plant, reference, record, settings)


RESOLVED = 0.7
"""Fourth-order Runge-Kutta is stable up to 2.8 rad per step of the fastest vibration; here it is accurate to 1e-3."""

MOST_SUBSTEPS = 200


def substeps_of(plant: Plant, reference: Reference, settings: Physics) -> int:
    """Integration steps per control period: short enough for the settings and for the stiffest transmission."""
    period = 1.0 / settings.control_rate_hz
    fastest = max(float(np.abs(np.linalg.eigvals(plant.linearised(q)[0])).max()) for q in spread(reference.q))
    count = max(1, int(np.ceil(period / settings.step - 1e-9)), int(np.ceil(period * fastest / RESOLVED)))
    if count > MOST_SUBSTEPS:
        raise InputError(
            plant.robot.name,
            f"a vibration of {fastest / (2.0 * np.pi):.3g} Hz needs {count} integration steps per control period",
            "lower the stiffness or damping, or give the tiny inertia behind it a rotor",
        )
    return count


class Record:
    """Raw rows written during a motion, in the plant's generalised coordinates."""

    def __init__(self, ticks: int, coordinates: int, joints: int) -> None:
        self.x, self.v, self.a, self.constraint = (np.zeros((ticks, coordinates)) for _ in range(4))
        self.torque, self.hand = np.zeros((ticks, joints)), np.zeros((ticks, joints))
        self.scale = np.ones((ticks, 2))
        self.saturated = np.zeros(joints, dtype=np.int64)
        self.ticks = ticks
        self.fault: Note | None = None


FRICTION_UPDATE = 100
"""Ticks between updates of a drifting friction: temperatures change over minutes."""


def moved(plant: Plant, law: Law, reference: Reference, settings: Physics, substeps: int) -> Record:
    """The loop: read the rotors, ask the controller, step the physics, write down what happened."""
    m = plant.model
    data = mujoco.MjData(m)
    n_ticks, n = reference.q.shape
    record = Record(n_ticks, plant.n_coordinates, n)
    record.scale[:] = settings.drift.scales(reference.time)
    data.qpos[:] = plant.at(reference.q[0])
    data.qvel[:] = plant.at(np.where(plant.locked, 0.0, reference.qd[0]))
    torque_limit = np.where(np.isfinite(plant.robot.limit("torque")), plant.robot.limit("torque"), np.inf)
    limited = bool(np.isfinite(torque_limit).any())
    motor_map, constant = plant.motor_map, offset_force(plant)
    direct = plant.n_coordinates == n and plant.robot.coupling is None
    rest = plant.at(reference.q[0])
    locked = plant.locked if plant.locked.any() else None
    watch = Watch(plant, law, reference, settings)
    viscous, coulomb = plant.robot.drive("viscous"), plant.robot.drive("coulomb")
    forward, step, steps = mujoco.mj_forward, mujoco.mj_step, range(substeps)
    qpos, qvel, qacc, applied, constraint = data.qpos, data.qvel, data.qacc, data.qfrc_applied, data.qfrc_constraint
    for k in range(n_ticks):
        if settings.drift.active and k % FRICTION_UPDATE == 0:
            plant.set_friction(viscous * record.scale[k, 0], coulomb * record.scale[k, 1])
        q, qd = (qpos, qvel) if direct else (motor_map @ qpos, motor_map @ qvel)
        tau = law.torque(k, q, qd)
        if locked is not None:
            tau = np.where(locked, 0.0, tau)
        if limited:
            clipped = np.clip(tau, -torque_limit, torque_limit)
            record.saturated += clipped != tau
            tau = clipped
        force = (tau if direct else motor_map.T @ tau) + constant
        if law.hand is not None:
            record.hand[k] = hand = law.hand(k, q, qd)
            force = force + plant.link_map.T @ hand
        applied[:] = force
        forward(m, data)
        record.x[k], record.v[k], record.a[k], record.constraint[k] = qpos, qvel, qacc, constraint
        record.torque[k] = tau
        fault = watch.fault(k, q, qd, data)
        if fault is not None:
            record.fault, record.ticks = fault, k
            break
        for _ in steps:
            step(m, data)
        if locked is not None:
            held = np.abs(motor_map[locked]).sum(axis=0) > 0.0
            qpos[held], qvel[held] = rest[held], 0.0
    return record


def offset_force(plant: Plant) -> FloatArray:
    """Constant offsets of the drives as generalised force, on both sides of the torque sensor."""
    offset, share = plant.robot.drive("offset"), plant.sensed_friction
    force: FloatArray = -plant.link_map.T @ (share * offset) - plant.motor_map.T @ ((1.0 - share) * offset)
    return force


class Watch:
    """Looks at every tick for reasons to stop."""

    POSITION_SLACK = 0.02
    """[rad or m] An arm under control overshoots a limit by less than this."""
    SPEED_FACTOR = 5.0
    """A joint this many times faster than anything commanded, plus 10 rad/s, is out of control."""

    def __init__(self, plant: Plant, law: Law, reference: Reference, settings: Physics) -> None:
        robot = plant.robot
        self.plant, self.names = plant, robot.joint_names
        self.q_ref, self.time = reference.q, reference.time
        self.lower, self.upper = robot.limit("lower") - self.POSITION_SLACK, robot.limit("upper") + self.POSITION_SLACK
        self.reach = np.where(plant.locked, np.inf, settings.tracking_limit if law.tracks else np.inf)
        self.speed = self.SPEED_FACTOR * float(np.abs(reference.qd).max()) + 10.0
        self.collisions = settings.collisions and bool(plant.model.ngeom)

    def fault(self, k: int, q: FloatArray, qd: FloatArray, data: Any) -> Note | None:
        """The reason to stop at tick k, or None."""
        # Written so that NaN fails every comparison.
        with np.errstate(invalid="ignore"):
            if (
                ((q >= self.lower) & (q <= self.upper) & (np.abs(q - self.q_ref[k]) <= self.reach)).all()
                and (np.abs(qd) <= self.speed).all()
                and not (self.collisions and data.ncon)
                and np.isfinite(data.qacc.sum())
            ):
                return None
        return self.named_fault(k, q, qd, data)

    def named_fault(self, k: int, q: FloatArray, qd: FloatArray, data: Any) -> Note:
        finite = np.isfinite(q) & np.isfinite(qd)
        if not finite.all() or not np.isfinite(data.qacc).all():
            name = self.names[int(np.argmin(finite))]
            return stopped("diverged", f"joint {name} has no finite state (unstable gains, or too long a step)", name)
        if self.collisions and data.ncon:
            return self.collision(data)
        fast = int(np.argmax(np.abs(qd)))
        if abs(qd[fast]) > self.speed:
            return stopped(
                "diverged", f"joint {self.names[fast]} runs away at {qd[fast]:.3g} per s (unstable gains?)", self.names[fast]
            )
        beyond = np.maximum(self.lower - q, q - self.upper)
        worst = int(np.argmax(beyond))
        if beyond[worst] > 0.0:
            return stopped(
                "position-limit", f"joint {self.names[worst]} left its limits: {q[worst]:.4g}", self.names[worst]
            )
        gap = np.abs(q - self.q_ref[k])
        worst = int(np.argmax(gap - self.reach))
        return stopped(
            "tracking-lost",
            f"joint {self.names[worst]} is {gap[worst]:.3g} away from its command "
            "(gains too low, torque limit reached, or a wrong model)",
            self.names[worst],
        )

    def collision(self, data: Any) -> Note:
        bodies = self.plant.model.geom_bodyid[data.contact.geom[0]]
        links = (self.plant.robot.base, *self.plant.robot.link_names)
        one, other = (links[int(b)] if b < len(links) else "payload" for b in bodies)
        return stopped("collision", f"{one} touches {other}", one)


def evaluated(plant: Plant, reference: Reference, record: Record, settings: Physics) -> Run:
    """Drive-side quantities from the raw record, by the balance of forces; [Kolyubin2017] models 1-3 give the sides."""
    if record.fault is not None and settings.on_fault is OnFault.RAISE:
        raise SimulationError(record.fault, float(reference.time[record.ticks]))
    keep = slice(0, record.ticks)
    robot, share = plant.robot, plant.sensed_friction
    L, S = plant.link_map, plant.motor_map
    x, v, a = record.x[keep], record.v[keep], record.a[keep]
    qd, qdd, motor_qd, motor_qdd = v @ L.T, a @ L.T, v @ S.T, a @ S.T
    torque, hand, scale = record.torque[keep], record.hand[keep], record.scale[keep]
    coulomb_link, coulomb_motor = coulomb_torques(plant, record.constraint[keep])
    viscous, offset = np.where(plant.locked, 0.0, robot.drive("viscous")) * scale[:, :1], robot.drive("offset")
    friction_link = share * (viscous * qd) + coulomb_link
    friction_motor = (1.0 - share) * (viscous * motor_qd) + coulomb_motor
    link_torque = torque - plant.rotor_inertia * motor_qdd - friction_motor - (1.0 - share) * offset
    rigid = link_torque + hand - friction_link - share * offset
    return Run(
        robot,
        plant,
        read_only(reference.time[keep]),
        Reference(*(read_only(x[keep]) for x in (reference.time, reference.q, reference.qd, reference.qdd))),
        *(read_only(y) for y in (x @ L.T, qd, qdd, x @ S.T, motor_qd, motor_qdd, torque, link_torque, rigid)),
        friction=read_only(friction_link + friction_motor),
        external_torque=read_only(hand),
        friction_scale=read_only(scale),
        faults=tuple(faults_of(plant, record, reference)),
    )


def coulomb_torques(plant: Plant, constraint: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Dry friction as it acted on either side of the sensor, from MuJoCo's constraint forces, [n_ticks, n_joints]."""
    n, share = plant.robot.n_joints, plant.sensed_friction
    C = np.eye(n) if plant.robot.coupling is None else plant.robot.coupling
    output = -constraint[:, :n] @ C
    rotor = -constraint @ np.where(plant.elastic[:, np.newaxis], plant.motor_map, 0.0).T
    link = np.where(plant.elastic, output, share * output)
    return link, np.where(plant.elastic, rotor, (1.0 - share) * output)


def faults_of(plant: Plant, record: Record, reference: Reference) -> list[Note]:
    """Everything worth a note, the one that ended the motion last."""
    notes = [
        noticed(
            "torque-saturated",
            f"joint {name} was asked for more than its torque limit in {int(count)} of {record.ticks} ticks",
            name,
        )
        for name, count in zip(plant.robot.joint_names, record.saturated, strict=True)
        if count
    ]
    if record.fault is not None:
        fault = record.fault
        notes.append(stopped(fault.code, f"after {reference.time[record.ticks]:.3f} s: {fault.message}", fault.subject))
    return notes
