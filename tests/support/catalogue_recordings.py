"""Recordings of catalogue robots as they come from a lab: masses other than the description's, friction, noise, resolution."""

from __future__ import annotations

from functools import cache

import numpy as np

from armid.kernels.dynamics import inverse_dynamics
from armid.logs import Channel, Clock, Log
from armid.logs.health.nominal import has_inertials, rods
from armid.robot import JointKind, Robot
from armid.robot.load import load_robot

MASS_ERROR = 0.15
"""Standard deviation of the logarithm of a link's mass over the description's."""


@cache
def catalogue(name: str) -> Robot:
    return load_robot(name)


def excitation(robot: Robot, rng: np.random.Generator, seconds: float, rate: float, period: float = 10.0):
    """Time, q, qd, qdd of a Fourier motion within the limits."""
    revolute = np.array([joint.kind is JointKind.REVOLUTE for joint in robot.joints])
    low, high = np.maximum(robot.limit("lower"), -2.5), np.minimum(robot.limit("upper"), 2.5)
    middle = (low + high) / 2.0 + rng.uniform(-0.1, 0.1, robot.n_joints) * (high - low)
    t = np.arange(round(seconds * rate)) / rate
    w = 2.0 * np.pi / period * np.arange(1, 6)
    a, b = rng.normal(size=(2, robot.n_joints, 5)) / np.sqrt(np.arange(1, 6))
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    q, qd = s @ a.T + c @ b.T, (c * w) @ a.T - (s * w) @ b.T
    room = 0.85 * np.minimum(high - middle, middle - low) / np.abs(q).max(axis=0)
    speed = np.where(revolute, 1.5, 0.4) / np.abs(qd).max(axis=0)
    size = np.minimum(room, speed)
    return t, middle + size * q, size * qd, size * (-(s * w**2) @ a.T - (c * w**2) @ b.T)


def lab_recording(
    name: str,
    seed: int = 0,
    *,
    rate: float = 250.0,
    seconds: float = 15.0,
    noise: float = 1.0,
    friction: float = 1.0,
    gravity: np.ndarray | None = None,
    payload: np.ndarray | None = None,
    lag: float = 0.0,
    channel: Channel = Channel.LINK_TORQUE,
) -> Log:
    """A log with nothing wrong, unless lag [s], payload (ten numbers on the last link) or gravity [m/s^2] make it so.

    Position noise is 2 microradians times `noise` on encoders of 20 bits, torque noise 0.4 % of the range times `noise` on
    12 bits.
    """
    robot, rng = catalogue(name), np.random.default_rng(seed)
    t, q, qd, qdd = excitation(robot, rng, seconds + 1.0, rate)
    nominal = np.array(robot.inertial if has_inertials(robot) else rods(robot)).reshape(-1, 10)
    truth = (nominal * np.exp(rng.normal(0.0, MASS_ERROR, (len(nominal), 1)))).ravel()
    if payload is not None:
        truth[-10:] += payload
    tau = inverse_dynamics(robot if gravity is None else robot.with_gravity(gravity), q, qd, qdd, inertial=truth)
    size = np.maximum(np.abs(tau).max(axis=0), 0.02 * np.abs(tau).max())
    coulomb, viscous = friction * rng.uniform(0.04, 0.15, (2, robot.n_joints)) * size
    tau = tau + coulomb * np.tanh(200.0 * qd / np.abs(qd).max(axis=0)) + viscous * qd / np.abs(qd).max(axis=0)
    if lag:
        tau = np.column_stack([np.interp(t - lag, t, column) for column in tau.T])
    keep = slice(round(0.5 * rate), round((0.5 + seconds) * rate))
    q, qd, tau = q[keep], qd[keep], tau[keep]
    encoder = 2.0 * np.pi / 2**20
    measured = {
        Channel.POSITION: np.round((q + rng.normal(0.0, 2e-6 * noise, q.shape)) / encoder) * encoder,
        Channel.VELOCITY: qd + rng.normal(0.0, 1e-3 * noise, q.shape),
        channel: np.round((tau + rng.normal(0.0, 4e-3 * noise, q.shape) * size) / size * 2**12) * size / 2**12,
    }
    return Log(
        name=f"{name}-{seed}",
        joints=robot.joint_names,
        time=t[: len(q)],
        channels=measured,
        named=True,
        clock=Clock.COLUMN,
    )
