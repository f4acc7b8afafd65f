"""The loop of controller and physics, and its raw record."""

from __future__ import annotations

import mujoco
import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.notes import Note
from armid.simulation.controllers import Law, spread
from armid.simulation.motions import Reference
from armid.simulation.physics import Physics
from armid.simulation.plant import Plant
from armid.simulation.watch import Watch

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
    record.scale[:] = settings.drift.scales(reference.time[np.arange(n_ticks) // FRICTION_UPDATE * FRICTION_UPDATE])
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
