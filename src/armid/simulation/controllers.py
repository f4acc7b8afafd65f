"""Controllers: settings first, then a law bound to one arm and one reference, called at every tick.

Every law sees the rotors' positions and velocities in drive coordinates, as a real drive does, and answers with the
drives' torques.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import expm

from armid.arrays import FloatArray
from armid.robot.robot import Robot
from armid.simulation.dynamics import RigidModel
from armid.simulation.faults import GainError
from armid.simulation.motions import Reference
from armid.simulation.plant import Plant
from armid.simulation.sensors import PerJoint, per_joint

_UNSTABLE_RADIUS = 1.0 + 1e-6
"""Round-off of a loop that neither grows nor shrinks (a locked or hand-guided joint) stays below this."""

TorqueLaw = Callable[[int, FloatArray, FloatArray], FloatArray]
"""(tick, theta [n], thetad [n]) -> torque [n]."""


@dataclass(frozen=True, kw_only=True)
class Law:
    """A controller bound to an arm and a reference.

    Args:
        torque: of the drives.
        hand: torque of a person's hand on the joints, or None.
        tracks: whether the arm is meant to stay near the reference.
        stiffness, damping: what the law feeds back around a position [n], each of shape [n, n].
    """

    torque: TorqueLaw
    hand: TorqueLaw | None
    tracks: bool
    stiffness: Callable[[FloatArray], FloatArray]
    damping: Callable[[FloatArray], FloatArray]


class Controller(Protocol):
    """Settings of a controller."""

    def law(self, robot: Robot, plant: Plant, reference: Reference, period: float) -> Law:
        """The law that moves `plant` along `reference`; `robot` is the arm as declared, which it believes in."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class PdGravity:
    """tau = Kp (q_ref - q) + Kd (qd_ref - qd) + g(q) + friction of the commanded motion.

    Args:
        kp: [N m/rad or N/m]; chosen from the mass matrix and `frequency_hz` when None.
        kd: [N m s/rad or N s/m]; critically damped when None.
        frequency_hz: of the closed loop, for gains that are chosen.
        friction: feed the model's friction at the commanded velocity forward, as industrial controllers do.
        model: the arm the controller believes in; the declared one when None.
    """

    kp: PerJoint | None = None
    kd: PerJoint | None = None
    frequency_hz: float = 10.0
    friction: bool = True
    model: Robot | None = None

    def law(self, robot: Robot, plant: Plant, reference: Reference, period: float) -> Law:
        known = RigidModel(self.model or robot)
        forward = _friction_feedforward(known.robot, reference) if self.friction else np.zeros_like(reference.qd)
        kp, kd = self.gains(known, plant, reference, period)
        q_ref, qd_ref = reference.q, reference.qd
        gravity = known.gravity

        def torque(k: int, q: FloatArray, qd: FloatArray) -> FloatArray:
            return kp * (q_ref[k] - q) + kd * (qd_ref[k] - qd) + gravity(q) + forward[k]

        return Law(
            torque=torque, hand=None, tracks=True, stiffness=lambda _: np.diag(kp), damping=lambda _: np.diag(kd)
        )

    def gains(
        self, known: RigidModel, plant: Plant, reference: Reference, period: float
    ) -> tuple[FloatArray, FloatArray]:
        """Those given, or critically damped ones at the highest frequency up to `frequency_hz` that is stable."""
        n = plant.robot.n_joints
        if self.kp is not None and self.kd is not None:
            return per_joint("kp", self.kp, n), per_joint("kd", self.kd, n)
        postures = spread(reference.q)
        inertia = np.mean([np.diag(known.mass_matrix(q, rotors=True)) for q in postures], axis=0)
        omega = 2.0 * np.pi * self.frequency_hz
        postures = np.vstack([postures, lightest(known, reference.q, inertia)])
        while True:
            kp = inertia * omega**2 if self.kp is None else per_joint("kp", self.kp, n)
            kd = 2.0 * np.sqrt(kp * inertia) if self.kd is None else per_joint("kd", self.kd, n)
            worst = max(_closed_loop_radius(plant, q, np.diag(kp), np.diag(kd), period) for q in postures)
            if worst < _UNSTABLE_RADIUS or self.kp is not None or omega < _SLOWEST_LOOP:
                return kp, kd
            omega *= 0.7


_SLOWEST_LOOP = 2.0
"""[rad/s] Slower than this an arm no longer follows; unstable gains are then left to the check that names them."""


@dataclass(frozen=True, eq=False)
class ComputedTorque:
    """tau = M(q) (qdd_ref + 2 w (qd_ref - qd) + w^2 (q_ref - q)) + c(q, qd) + g(q) + drive torques, [Khosla1985].

    Args:
        frequency_hz: of the closed loop, critically damped.
        model: the arm the controller believes in, right or wrong; the declared one when None.
    """

    frequency_hz: float = 8.0
    model: Robot | None = None

    def law(self, robot: Robot, plant: Plant, reference: Reference, period: float) -> Law:
        believed = self.model or robot
        known = RigidModel(believed)
        omega = 2.0 * np.pi * self.frequency_hz
        q_ref, qd_ref, qdd_ref = reference.q, reference.qd, reference.qdd
        rotor, friction = believed.drive("rotor_inertia"), _friction_feedforward(believed, reference)
        inverse = known.inverse

        def torque(k: int, q: FloatArray, qd: FloatArray) -> FloatArray:
            a = qdd_ref[k] + 2.0 * omega * (qd_ref[k] - qd) + omega**2 * (q_ref[k] - q)
            return inverse(q, qd, a) + rotor * a + friction[k]

        def stiffness(q: FloatArray) -> FloatArray:
            return omega**2 * known.mass_matrix(q, rotors=True)

        return Law(
            torque=torque, hand=None, tracks=True, stiffness=stiffness, damping=lambda q: stiffness(q) * (2.0 / omega)
        )


@dataclass(frozen=True, eq=False)
class HandGuiding:
    """The drives carry the weight, tau = g(q) - D qd, and a person pulls the arm along the motion with a soft hand.

    Args:
        damping_hz: of the drives' damping, as a rate relative to the arm's own inertia [1/s].
        hand_frequency_hz: how stiffly the hand holds on to the motion, as a frequency with the arm's own inertia.
        model: the arm the controller believes in; the declared one when None.
    """

    damping_hz: float = 0.3
    hand_frequency_hz: float = 1.0
    model: Robot | None = None

    def law(self, robot: Robot, plant: Plant, reference: Reference, period: float) -> Law:
        known = RigidModel(self.model or robot)
        inertia = np.mean([np.diag(known.mass_matrix(q, rotors=True)) for q in spread(reference.q)], axis=0)
        drag = 2.0 * np.pi * self.damping_hz * inertia
        omega = 2.0 * np.pi * self.hand_frequency_hz
        pull, steady = inertia * omega**2, 2.0 * inertia * omega
        q_ref, qd_ref = reference.q, reference.qd
        gravity = known.gravity

        def torque(_: int, q: FloatArray, qd: FloatArray) -> FloatArray:
            return gravity(q) - drag * qd

        def hand(k: int, q: FloatArray, qd: FloatArray) -> FloatArray:
            return pull * (q_ref[k] - q) + steady * (qd_ref[k] - qd)

        n = len(inertia)
        return Law(
            torque=torque,
            hand=hand,
            tracks=False,
            stiffness=lambda _: np.zeros((n, n)),
            damping=lambda _: np.diag(drag),
        )


def _friction_feedforward(robot: Robot, reference: Reference) -> FloatArray:
    """Friction and offset of the commanded motion, not of the measured one: its sign does not chatter at rest."""
    drive = robot.drive
    forward: FloatArray = drive("viscous") * reference.qd + drive("coulomb") * np.sign(reference.qd) + drive("offset")
    return forward


_POSTURES_CHECKED = 8
"""Enough to see the inertia matrix change along a motion."""

_POSTURES_WEIGHED = 200
"""Enough to meet the moment an arm folds together: fifty a period of the fastest harmonic in use."""

_LIGHTEST_KEPT = 3


def spread(q: FloatArray) -> FloatArray:
    """A few postures spread over a motion."""
    return q[np.linspace(0, len(q) - 1, _POSTURES_CHECKED).astype(int)]


def lightest(known: RigidModel, q: FloatArray, damping: FloatArray) -> FloatArray:
    """The postures of a motion where damping [n_joints] acts on the least inertia: the largest eigenvalue of M^-1 D.

    A loop sampled too slowly goes unstable there first; a folded arm can weigh a thirtieth of what it does stretched.
    """
    moved = np.flatnonzero(damping > 0.0)
    tried = q[np.unique(np.linspace(0, len(q) - 1, _POSTURES_WEIGHED).astype(int))]
    M = np.array([known.mass_matrix(row, rotors=True)[np.ix_(moved, moved)] for row in tried])
    # The smallest eigenvalue of D^-1/2 M D^-1/2 is one over the largest of M^-1 D.
    scale = 1.0 / np.sqrt(damping[moved])
    smallest = np.linalg.eigvalsh(scale[:, np.newaxis] * M * scale)[:, :1].sum(axis=1)
    return tried[np.argsort(smallest)[:_LIGHTEST_KEPT]]


def _closed_loop_radius(plant: Plant, q: FloatArray, Kp: FloatArray, Kd: FloatArray, period: float) -> float:
    """Spectral radius of one control period around rest at q: torque held, arm linearised without gravity.

    With x' = A x + B u between ticks and u = -K x at them, x_{k+1} = (Phi - Gamma K) x_k. Below 1 errors die out.
    """
    A, B = plant.linearised(q)
    states, inputs = B.shape
    held = np.zeros((states + inputs, states + inputs))
    held[:states, :states], held[:states, states:] = A, B
    step = expm(held * period)
    free = ~plant.locked
    K = np.hstack([Kp @ plant.motor_map, Kd @ plant.motor_map])[free]
    closed = step[:states, :states] - step[:states, states:][:, free] @ K
    return float(np.abs(np.linalg.eigvals(closed)).max())


def check_gains(law: Law, plant: Plant, reference: Reference, period: float) -> None:
    """Refuses gains that cannot work at this rate, before anything moves."""
    damping = np.diag(law.damping(reference.q[0]))
    light = lightest(RigidModel(plant.robot), reference.q, np.where(plant.locked, 0.0, damping))
    for q in np.vstack([spread(reference.q), light]):
        radius = _closed_loop_radius(plant, q, law.stiffness(q), law.damping(q), period)
        if not radius < _UNSTABLE_RADIUS:
            raise GainError(radius, period)
