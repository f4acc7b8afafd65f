"""Synthetic recordings with known truth, for tests of logs."""

from __future__ import annotations

import numpy as np

from armid.kernels.dynamics import inverse_dynamics
from armid.logs import Channel, Clock, Log
from armid.parameters.inertial import from_centre_of_mass
from armid.robot import Drive, Elementary, Joint, JointKind, Limits, Link, Move, Robot

NAMES = ("waist", "shoulder", "elbow", "wrist")


def arm(*, inertials: bool = True) -> Robot:
    """Four joints z y y x: waist, shoulder and elbow carry weight, masses as of a small industrial arm."""
    axes = (Move.RZ, Move.RY, Move.RY, Move.RX)
    lengths = (0.35, 0.4, 0.35, 0.15)
    masses = (8.0, 6.0, 3.5, 1.5)
    joints, links = [], []
    for i, (axis, name) in enumerate(zip(axes, NAMES, strict=True)):
        move = (Elementary(motion=Move.TZ, value=lengths[i - 1]),) if i else (Elementary(motion=Move.TZ, value=0.2),)
        joints.append(
            Joint(
                name=name,
                kind=JointKind.REVOLUTE,
                transforms=(*move, Elementary(motion=axis, variable=True)),
                limits=Limits(lower=-2.8, upper=2.8, velocity=3.0, torque=200.0),
                drive=Drive(rotor_inertia=0.3, viscous=1.5, coulomb=2.0, offset=0.3),
            )
        )
        own = from_centre_of_mass(masses[i], [0.03, 0.02, lengths[i] / 2], np.diag([0.05, 0.05, 0.01]) * masses[i] / 3)
        links.append(Link(f"link{i + 1}", own if inertials else None))
    return Robot(name="testarm", joints=tuple(joints), links=tuple(links))


def motion(seconds: float = 20.0, rate: float = 200.0, *, seed: int = 3, period: float = 10.0):
    """Time, q, qd, qdd of a Fourier motion with five harmonics."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * rate)) / rate
    w = 2 * np.pi / period * np.arange(1, 6)
    n = len(NAMES)
    a, b = rng.normal(size=(2, n, 5)) * 0.35 / np.sqrt(np.arange(1, 6))
    q0 = rng.uniform(-0.5, 0.5, n)
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    q = q0 + s @ a.T + c @ b.T
    qd = (c * w) @ a.T - (s * w) @ b.T
    qdd = -(s * w**2) @ a.T - (c * w**2) @ b.T
    return t, q, qd, qdd


def recording(
    robot: Robot | None = None,
    *,
    seconds: float = 20.0,
    rate: float = 200.0,
    seed: int = 3,
    position_noise: float = 2e-5,
    torque_noise: float = 0.15,
    friction: bool = True,
) -> Log:
    """A clean log of the arm with measurement noise."""
    robot = robot or arm()
    truth = arm()
    t, q, qd, qdd = motion(seconds, rate, seed=seed)
    tau = inverse_dynamics(truth, q, qd, qdd, drives=friction)
    rng = np.random.default_rng(seed + 1)
    return Log(
        name="synthetic",
        joints=NAMES,
        time=t,
        channels={
            Channel.POSITION: q + rng.normal(0, position_noise, q.shape),
            Channel.VELOCITY: qd + rng.normal(0, 1e-3, q.shape),
            Channel.LINK_TORQUE: tau + rng.normal(0, torque_noise, q.shape),
        },
        named=True,
        clock=Clock.COLUMN,
    )
