"""Logs of known arms under a joint controller, with friction that no linear law has: for tables of accuracy.

An arm moves in MuJoCo at several steps per tick of its controller: position error and its one-step difference times gains, with
the weight and inertia of the command fed forward. Friction acts outside the model: Coulomb's turned around over a range of
velocity (`tanh`), with a hump near standstill (`stribeck`), or over a distance of contact (`presliding`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from armid.kernels.dynamics import inverse_dynamics
from armid.logs.log import Channel, Log
from armid.robot.load import load_robot
from armid.robot.robot import Robot

LAWS = ("tanh", "stribeck", "presliding")
ARMS = ("tx40-birdy", "ur10e", "panda", "iiwa14")
NOISE = {"low": (1e-4, 0.2), "standard": (1e-3, 0.5), "high": (5e-3, 1.0)}
"""Standard deviation of positions [deg] and of torque [% of the joint's root mean square]."""
WIDTH = 0.01
"""[rad/s] of `tanh`, and of the step under a Stribeck hump."""
DISTANCE = 1e-3
"""[rad] of presliding."""
HUMP, HUMP_WIDTH = 0.4, 0.05
"""Of Coulomb friction, and [rad/s]: a Stribeck hump."""
BANDWIDTH = 8.0
"""[Hz] of the position loop."""
INTEGRATION_HZ = 4000.0
"""Of the integration, at least; friction of the stiffest joint here relaxes within 0.3 ms."""
SECONDS, RAMP = 10.0, 1.0
"""[s] of motion, and until it has begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One log.

    Args:
        arm: name of the catalogue.
        law: of friction.
        noise: word of `NOISE`.
        harmonics: of the motion, of 0.1 Hz each: 5 is slow, 15 fast.
        control_hz: rate of the controller; the log has 1 kHz at most.
        seed: of motion, friction and noise.
    """

    arm: str
    law: str
    noise: str
    harmonics: int
    control_hz: float
    seed: int


def arm_with_friction(name: str, rng: np.random.Generator) -> Robot:
    """The catalogue's arm with friction and offsets drawn in proportion to what its joints carry."""
    robot = load_robot(name)
    robot = replace(robot, coupling=None) if robot.coupling is not None else robot
    weight = np.maximum(np.array([joint.limits.torque or 50.0 for joint in robot.joints]), 1.0)
    joints = []
    for joint, size in zip(robot.joints, weight, strict=True):
        drive = replace(
            joint.drive,
            viscous=float(size * rng.uniform(0.01, 0.04)),
            coulomb=float(size * rng.uniform(0.02, 0.06)),
            offset=float(size * rng.normal(0.0, 0.005)),
            rotor_inertia=max(joint.drive.rotor_inertia, 0.002 * float(size)),
            stiffness=np.inf,
        )
        joints.append(replace(joint, drive=drive))
    return replace(robot, joints=tuple(joints))


def command(robot: Robot, setting: Setting, rng: np.random.Generator) -> Callable[[np.ndarray], tuple[np.ndarray, ...]]:
    """Position, velocity, acceleration of a Fourier motion that begins at rest, within limits of position and velocity."""
    k = np.arange(1, setting.harmonics + 1)
    w = 2.0 * np.pi * 0.1 * k
    a, b = rng.normal(size=(2, robot.n_joints, setting.harmonics)) / k
    lower, upper = (np.clip([getattr(j.limits, s) for j in robot.joints], -2.5, 2.5) for s in ("lower", "upper"))
    fastest = np.clip([j.limits.velocity for j in robot.joints], 0.1, 2.5)

    def free(t: np.ndarray) -> tuple[np.ndarray, ...]:
        s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        return s @ (a / w).T - c @ (b / w).T, c @ a.T + s @ b.T, -s @ (a * w).T + c @ (b * w).T

    q, qd, _ = free(np.arange(0.0, 10.0, 0.005))
    middle, half = 0.5 * (q.max(axis=0) + q.min(axis=0)), 0.5 * np.ptp(q, axis=0)
    size = 0.7 * np.minimum(0.5 * (upper - lower) / half, fastest / np.abs(qd).max(axis=0))

    def motion(t: np.ndarray) -> tuple[np.ndarray, ...]:
        x = np.clip(t / RAMP, 0.0, 1.0)
        r = (10.0 * x**3 - 15.0 * x**4 + 6.0 * x**5)[:, None]
        rd = ((30.0 * x**2 - 60.0 * x**3 + 30.0 * x**4) / RAMP)[:, None]
        rdd = ((60.0 * x - 180.0 * x**2 + 120.0 * x**3) / RAMP**2)[:, None]
        q, qd, qdd = free(t)
        q = q - middle
        return (
            0.5 * (lower + upper) + size * r * q,
            size * (r * qd + rd * q),
            size * (r * qdd + 2.0 * rd * qd + rdd * q),
        )

    return motion


def planted_log(setting: Setting) -> tuple[Robot, Log]:
    """The arm as it is, and its log."""
    import mujoco

    from armid.simulation.plant import build_plant

    rng = np.random.default_rng(setting.seed)
    robot = arm_with_friction(setting.arm, rng)
    motion = command(robot, setting, rng)
    frictionless = replace(
        robot,
        joints=tuple(replace(j, drive=replace(j.drive, viscous=0.0, coulomb=0.0, offset=0.0)) for j in robot.joints),
    )
    substeps = max(round(INTEGRATION_HZ / setting.control_hz), 1)
    step = 1.0 / (setting.control_hz * substeps)
    model = build_plant(frictionless, collisions=False, step=step).model
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    data = mujoco.MjData(model)
    ticks = int(SECONDS * setting.control_hz)
    wanted, wanted_velocity, wanted_acceleration = motion(np.arange(ticks) / setting.control_hz)
    forward = inverse_dynamics(frictionless, wanted, wanted_velocity, wanted_acceleration)
    data.qpos[:] = wanted[0]
    mujoco.mj_forward(model, data)
    M = np.empty((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    w = 2.0 * np.pi * BANDWIDTH
    stiffness, damping = np.diag(M) * w**2, 1.4 * np.diag(M) * w
    degrees, share = NOISE[setting.noise]
    seen_noise = rng.normal(0.0, np.deg2rad(degrees), size=wanted.shape)
    viscous, coulomb, offset = (robot.drive(q) for q in ("viscous", "coulomb", "offset"))
    contact = np.zeros(robot.n_joints)
    every = max(round(setting.control_hz / 1000.0), 1)
    positions, torques = [], []
    before = data.qpos + seen_noise[0]
    for k in range(ticks):
        seen = data.qpos + seen_noise[k]
        velocity = (seen - before) * setting.control_hz
        before = seen
        tau = forward[k] + stiffness * (wanted[k] - seen) + damping * (wanted_velocity[k] - velocity)
        if k % every == 0:
            positions.append(seen)
            torques.append(tau)
        for _ in range(substeps):
            v = data.qvel
            if setting.law == "presliding":
                contact += v * (step / DISTANCE) * (1.0 - np.sign(v) * contact)
                friction = coulomb * contact
            else:
                hump = HUMP * np.exp(-((v / HUMP_WIDTH) ** 2)) if setting.law == "stribeck" else 0.0
                friction = coulomb * (1.0 + hump) * np.tanh(v / WIDTH)
            data.qfrc_applied[:] = tau - viscous * v - friction - offset
            mujoco.mj_step(model, data)
    tau = np.array(torques)
    tau += rng.normal(size=tau.shape) * (0.01 * share * np.sqrt(np.mean(tau**2, axis=0)))
    channels = {Channel.POSITION: np.array(positions), Channel.LINK_TORQUE: tau}
    time = np.arange(len(tau)) * every / setting.control_hz
    log = Log(
        name=f"{setting.arm} {setting.seed}", joints=tuple(robot.joint_names), time=time, channels=channels, named=True
    )
    return robot, log
