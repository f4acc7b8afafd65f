"""From what the arm did to what its log says: sensors, clock, network, and the mistakes people make."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError, UnknownNameError
from armid.logs.log import Channel, Conditions, Log, LogSource
from armid.robot.robot import Robot
from armid.simulation.drift import FrictionDrift
from armid.simulation.dynamics import RigidModel
from armid.simulation.run import SimulatedRun
from armid.simulation.sensors import EncoderSide, Packets, RecordedVelocity, Sensors


@dataclass(frozen=True, kw_only=True)
class Mistakes:
    """What people get wrong about a log; none by default.

    Args:
        wrong_sign: joints whose torque is logged with the opposite sign.
        degrees: positions and velocities in degrees where radians are claimed (revolute joints).
        swapped: pairs of joints whose columns changed places.
        gravity_compensated: torque without what the controller's model says gravity needs.
        upside_down: the arm hangs from the ceiling while its description says it stands on the floor (or the reverse).
    """

    wrong_sign: tuple[str, ...] = ()
    degrees: bool = False
    swapped: tuple[tuple[str, str], ...] = ()
    gravity_compensated: bool = False
    upside_down: bool = False

    @property
    def codes(self) -> tuple[str, ...]:
        """Short names of the mistakes made, for the record."""
        flags = {
            "torque-sign": self.wrong_sign,
            "degrees": self.degrees,
            "joint-order": self.swapped,
            "gravity-compensated": self.gravity_compensated,
            "mounting": self.upside_down,
        }
        return tuple(code for code, made in flags.items() if made)


MISTAKE_WORDS = ("torque-sign", "degrees", "joint-order", "gravity-compensated", "mounting")
"""As in `Mistakes.codes`."""


def with_mistake(mistakes: Mistakes, text: str, robot: Robot) -> Mistakes:
    """One mistake more, from words: `torque-sign`, `torque-sign=joint2,joint4`, `joint-order=joint1,joint2`, `degrees`, ...

    Raises:
        UnknownNameError: no such mistake, or no such joint.
        InputError: not two joints to swap.
    """
    code, _, argument = text.partition("=")
    joints = tuple(name for name in argument.split(",") if name)
    for name in joints:
        robot.joint_index(name)
    match code:
        case "torque-sign":
            return replace(mistakes, wrong_sign=joints or robot.joint_names)
        case "degrees":
            return replace(mistakes, degrees=True)
        case "joint-order":
            if len(joints) != 2:
                raise InputError("mistake joint-order", f"{len(joints)} joints", "two joint names: joint-order=A,B")
            return replace(mistakes, swapped=((joints[0], joints[1]),))
        case "gravity-compensated":
            return replace(mistakes, gravity_compensated=True)
        case "mounting":
            return replace(mistakes, upside_down=True)
    raise UnknownNameError("mistake", code, MISTAKE_WORDS)


# One stream of random numbers per purpose: switching one sensor off leaves the others' noise as it was.
_STREAMS = ("clock", "position", "velocity", "torque", "motor", "current", "packets")


def measure(
    run: SimulatedRun,
    sensors: Sensors | None = None,
    *,
    mistakes: Mistakes | None = None,
    declared: Robot | None = None,
    seed: int = 0,
) -> Log:
    """The log of a run.

    Args:
        run: what the arm did.
        sensors: perfect by default.
        mistakes: made by whoever logged it; `upside_down` is about the arm itself and must be in the run already.
        declared: the arm as described, whose gravity a compensating controller takes off; the run's own by default.
        seed: of everything random here.
    """
    if len(run.time) < 2:
        raise InputError("run", f"{len(run.time)} sample(s)", "the motion was stopped before anything could be logged")
    settings, wrong = sensors or Sensors(), mistakes or Mistakes()
    rngs = dict(zip(_STREAMS, np.random.default_rng(seed).spawn(len(_STREAMS)), strict=True))
    rate = 1.0 / float(run.time[1] - run.time[0])
    true, stamps = settings.clock.instants(float(run.time[-1]), rate, rngs["clock"])
    channels = _read_channels(run, settings, wrong, declared or run.robot, true, rngs)
    channels = _make_mistakes(channels, run.robot, wrong)
    log = Log(
        name=f"simulated {run.robot.name}",
        joints=run.robot.joint_names,
        time=stamps,
        channels=channels,
        named=True,
        conditions=Conditions(payload=0.0 if run.plant.payload is None else float(run.plant.payload[0])),
        source=LogSource(reader=f"armid simulation, seed {seed}"),
    )
    return _carried(log, settings.packets, rngs["packets"])


def _read_channels(
    run: SimulatedRun,
    sensors: Sensors,
    mistakes: Mistakes,
    declared: Robot,
    true: FloatArray,
    rngs: dict[str, np.random.Generator],
) -> dict[Channel, FloatArray]:
    """Every channel's readings at the true instants, each as old as its lag."""
    lag = sensors.lag
    motor_side = sensors.position.side is EncoderSide.MOTOR
    q, qd = (run.motor_q, run.motor_qd) if motor_side else (run.q, run.qd)
    position = sensors.position.read(held(run.time, q, true - lag.position, qd), rngs["position"])
    channels = {
        Channel.POSITION: position,
        Channel.COMMANDED_POSITION: held(run.time, run.command.q, true, run.command.qd),
    }
    if run.plant.elastic.any() and not motor_side:
        # Arms with encoders on both sides of their transmissions; the motors' have errors of their own.
        own = rngs["position"].spawn(1)[0]
        theta = held(run.time, run.motor_q, true - lag.position, run.motor_qd)
        channels[Channel.MOTOR_POSITION] = sensors.position.read(theta, own)
    match sensors.velocity.source:
        case RecordedVelocity.MEASURED:
            channels[Channel.VELOCITY] = sensors.velocity.read(
                held(run.time, qd, true - lag.velocity), rngs["velocity"]
            )
        case RecordedVelocity.DIFFERENCED:
            channels[Channel.VELOCITY] = _backward_difference(true, position)
        case RecordedVelocity.NONE:
            pass
    link, motor = run.link_torque, run.motor_torque
    if mistakes.gravity_compensated:
        weight = RigidModel(declared).gravities(run.q)
        link, motor = link - weight, motor - weight
    channels[Channel.COMMANDED_TORQUE] = held(run.time, motor, true)
    link, motor = held(run.time, link, true - lag.torque), held(run.time, motor, true - lag.motor)
    if sensors.torque is not None:
        channels[Channel.LINK_TORQUE] = sensors.torque.read(link, rngs["torque"])
    if sensors.motor is not None:
        channels[Channel.MOTOR_TORQUE] = sensors.motor.read(motor, rngs["motor"])
    if sensors.current is not None:
        channels[Channel.CURRENT] = sensors.current.read(motor, rngs["current"])
    return channels


def held(time: FloatArray, values: FloatArray, at: FloatArray, slopes: FloatArray | None = None) -> FloatArray:
    """Values at other times: cubic through given slopes, else straight lines; the first value before the start.

    Args:
        time: even, shape [n].
        values: shape [n, n_joints].
        at: shape [m].
        slopes: derivatives of the values, shape [n, n_joints].
    """
    step = float(time[1] - time[0])
    place = np.clip((at - time[0]) / step, 0.0, len(time) - 1.0)
    nearest = np.round(place)
    place = np.where(np.abs(place - nearest) < 1e-6, nearest, place)
    i = np.minimum(place.astype(np.intp), len(time) - 2)
    u = (place - i)[:, np.newaxis]
    if not u.any():
        return values[i]
    a, b = values[i], values[i + 1]
    straight = a + u * (b - a)
    if slopes is None:
        return straight
    da, db = slopes[i] * step - (b - a), (b - a) - slopes[i + 1] * step
    return straight + u * (1.0 - u) * ((1.0 - u) * da + u * db)


def _backward_difference(time: FloatArray, q: FloatArray) -> FloatArray:
    """(q_k - q_{k-1}) / dt; the first sample repeats the second."""
    dt = np.diff(time)[:, np.newaxis]
    slope = np.diff(q, axis=0) / np.where(dt > 0.0, dt, np.inf)
    return np.vstack([slope[:1], slope])


def _carried(log: Log, packets: Packets, rng: np.random.Generator) -> Log:
    """The log after the network: some samples shown twice, some missing. The first always arrives."""
    draw = rng.random((2, len(log)))
    repeated, dropped = draw[0] < packets.repeated, draw[1] < packets.dropped
    repeated[0] = dropped[0] = False
    if repeated.any():
        source = np.maximum.accumulate(np.where(repeated, 0, np.arange(len(log))))
        log = replace(log, channels={channel: values[source] for channel, values in log.channels.items()})
    return log.selected(~dropped) if dropped.any() else log


def _make_mistakes(channels: dict[Channel, FloatArray], robot: Robot, mistakes: Mistakes) -> dict[Channel, FloatArray]:
    """The channels as somebody logged them wrongly."""
    out = dict(channels)
    flip = np.ones(robot.n_joints)
    flip[[robot.joint_index(name) for name in mistakes.wrong_sign]] = -1.0
    revolute = np.array([joint.kind.value == "revolute" for joint in robot.joints])
    scale = np.where(revolute & mistakes.degrees, 180.0 / np.pi, 1.0)
    order = np.arange(robot.n_joints)
    for one, other in mistakes.swapped:
        a, b = robot.joint_index(one), robot.joint_index(other)
        order[[a, b]] = order[[b, a]]
    for channel, values in channels.items():
        factor = flip if channel.is_torque else scale
        out[channel] = (values * factor)[:, order]
    return out


def hanging(robot: Robot) -> Robot:
    """The same arm with gravity reversed: on the ceiling instead of the floor."""
    return robot.with_gravity(-robot.gravity)


def temperatures(drift: FrictionDrift, log: Log) -> Log:
    """The log with the drives' temperature as a further channel [degrees Celsius]."""
    warm = drift.temperature(log.time - log.time[0])
    return replace(
        log, channels={**log.channels, Channel.TEMPERATURE: np.tile(warm[:, np.newaxis], (1, len(log.joints)))}
    )
