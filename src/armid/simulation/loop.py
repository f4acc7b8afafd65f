"""The loop of controller and physics, and its raw record."""

from __future__ import annotations

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError, MissingDependencyError
from armid.notes import Note
from armid.simulation.controllers import Law, spread
from armid.simulation.feedback import Encoders
from armid.simulation.motions import Reference
from armid.simulation.physics import Physics
from armid.simulation.plant import Plant
from armid.simulation.watch import Watch

try:
    import mujoco
except ImportError:
    raise MissingDependencyError("mujoco", "the embedded robot and shapes of links", "sim") from None

_RESOLVED = 0.7
"""Fourth-order Runge-Kutta is stable up to 2.8 rad per step of the fastest vibration; here it is accurate to 1e-3."""

_MOST_SUBSTEPS = 200


def substeps_of(plant: Plant, reference: Reference, settings: Physics) -> int:
    """Integration steps per control period: short enough for the settings and for the stiffest transmission."""
    period = 1.0 / settings.control_rate_hz
    fastest = max(float(np.abs(np.linalg.eigvals(plant.linearised(q)[0])).max()) for q in spread(reference.q))
    count = max(1, int(np.ceil(period / settings.step - 1e-9)), int(np.ceil(period * fastest / _RESOLVED)))
    if count > _MOST_SUBSTEPS:
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


_FRICTION_UPDATE = 100
"""Ticks between updates of a drifting friction: temperatures change over minutes."""


class Loop:
    """One motion under way: read the rotors, ask the controller, step the physics, write down what happened."""

    def __init__(self, plant: Plant, law: Law, reference: Reference, settings: Physics, substeps: int) -> None:
        self.plant, self.law, self.settings, self.substeps = plant, law, settings, range(substeps)
        self.ticks, n = reference.q.shape
        self.data = mujoco.MjData(plant.model)
        self.data.qpos[:] = plant.at(reference.q[0])
        self.data.qvel[:] = plant.at(np.where(plant.locked, 0.0, reference.qd[0]))
        self.torque_limit = plant.robot.limit("torque")
        self.limited = bool(np.isfinite(self.torque_limit).any())
        self.braked = bool(plant.locked.any())
        self.brake_position = reference.q[0][plant.locked]
        self.brake_map = np.linalg.pinv(plant.motor_map)[:, plant.locked]
        self.offset = _offset_force(plant)
        # Without coupling and springs coordinates and drive positions are the same numbers.
        self.direct = plant.n_coordinates == n and plant.robot.coupling is None
        period = 1.0 / settings.control_rate_hz
        self.encoders = (
            None
            if settings.feedback is None
            else Encoders(settings.feedback, reference.q[0], reference.qd[0], self.ticks, period)
        )
        self.watch = Watch(plant, law, reference, settings)
        self.record = Record(self.ticks, plant.n_coordinates, n)
        updated = reference.time[np.arange(self.ticks) // _FRICTION_UPDATE * _FRICTION_UPDATE]
        self.record.scale[:] = settings.drift.scales(updated)

    def run(self) -> Record:
        """The whole motion, or as much of it as goes well."""
        m, data, record, S = self.plant.model, self.data, self.record, self.plant.motor_map
        qpos, qvel, qacc, constraint = data.qpos, data.qvel, data.qacc, data.qfrc_constraint
        forward, step = mujoco.mj_forward, mujoco.mj_step
        drifting = self.settings.drift.active
        for k in range(self.ticks):
            if drifting and k % _FRICTION_UPDATE == 0:
                self.update_friction(k)
            q, qd = (qpos, qvel) if self.direct else (S @ qpos, S @ qvel)
            seen = (q, qd) if self.encoders is None else self.encoders.read(k, q)
            record.torque[k] = torque = self.drive_torque(k, *seen)
            data.qfrc_applied[:] = self.force(k, q, qd, torque)
            forward(m, data)
            record.x[k], record.v[k], record.a[k], record.constraint[k] = qpos, qvel, qacc, constraint
            fault = self.watch.fault(k, q, qd, data)
            if fault is not None:
                record.fault, record.ticks = fault, k
                break
            for _ in self.substeps:
                step(m, data)
            if self.braked:
                self.put_back()
        return record

    def drive_torque(self, k: int, q: FloatArray, qd: FloatArray) -> FloatArray:
        """What the controller asks for, as far as the drives can give it."""
        torque = self.law.torque(k, q, qd)
        if self.braked:
            torque = np.where(self.plant.locked, 0.0, torque)
        if self.limited:
            asked, torque = torque, np.clip(torque, -self.torque_limit, self.torque_limit)
            self.record.saturated += asked != torque
        return torque

    def force(self, k: int, q: FloatArray, qd: FloatArray, torque: FloatArray) -> FloatArray:
        """Generalised force of drives, offsets and a person's hand."""
        force: FloatArray = (torque if self.direct else self.plant.motor_map.T @ torque) + self.offset
        if self.law.hand is None:
            return force
        self.record.hand[k] = hand = self.law.hand(k, q, qd)
        return force + self.plant.link_map.T @ hand

    def update_friction(self, k: int) -> None:
        viscous, coulomb = self.record.scale[k]
        robot = self.plant.robot
        self.plant.set_friction(viscous * robot.drive("viscous"), coulomb * robot.drive("coulomb"))

    def put_back(self) -> None:
        """Locked drives to where they stood: a brake does not creep."""
        S, locked, data = self.plant.motor_map, self.plant.locked, self.data
        data.qpos[:] += self.brake_map @ (self.brake_position - S[locked] @ data.qpos)
        data.qvel[:] -= self.brake_map @ (S[locked] @ data.qvel)


def _offset_force(plant: Plant) -> FloatArray:
    """Constant offsets of the drives as generalised force, on both sides of the torque sensor."""
    offset, share = plant.robot.drive("offset"), plant.sensed_friction
    force: FloatArray = -plant.link_map.T @ (share * offset) - plant.motor_map.T @ ((1.0 - share) * offset)
    return force
