"""Sensor models: each with stated errors that can be switched off, and a seed of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from math import inf

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError, ShapeError

PerJoint = float | tuple[float, ...]
"""One number for all joints, or one per joint."""


class EncoderSide(StrEnum):
    """Where a position is measured."""

    LINK = "link"
    MOTOR = "motor"


class RecordedVelocity(StrEnum):
    """Where a recorded velocity comes from."""

    MEASURED = "measured"
    """A tachometer: the true velocity, with this sensor's noise and resolution."""
    DIFFERENCED = "differenced"
    """What many controllers report: the backward difference of the measured position."""
    NONE = "none"


def per_joint(name: str, value: PerJoint, n: int) -> FloatArray:
    """Shape [n]."""
    array = np.broadcast_to(np.asarray(value, dtype=np.float64), (n,)) if np.ndim(value) == 0 else np.asarray(value)
    if array.shape != (n,):
        raise ShapeError(name, array.shape, f"one number, or [{n}]")
    if np.isnan(array).any():
        raise InputError(name, "not a number", "one number, or one per joint")
    return np.asarray(array, dtype=np.float64)


def quantised(values: FloatArray, resolution: FloatArray) -> FloatArray:
    """Rounded to multiples of the resolution, where there is one."""
    grain = np.where(resolution > 0.0, resolution, 1.0)
    return np.where(resolution > 0.0, np.round(values / grain) * grain, values)


def _noisy(values: FloatArray, deviation: FloatArray, rng: np.random.Generator) -> FloatArray:
    """With white Gaussian noise of the given standard deviation per column."""
    return values + rng.standard_normal(values.shape) * deviation


@dataclass(frozen=True)
class PositionSensor:
    """reading = round((q + noise) / resolution) * resolution.

    Args:
        resolution: smallest step [rad or m]; 0 for none.
        noise: standard deviation [rad or m].
        side: links or rotors, which differ when transmissions are elastic.
    """

    resolution: PerJoint = 0.0
    noise: PerJoint = 0.0
    side: EncoderSide = EncoderSide.LINK

    def read(self, q: FloatArray, rng: np.random.Generator) -> FloatArray:
        n = q.shape[1]
        return quantised(_noisy(q, per_joint("noise", self.noise, n), rng), per_joint("resolution", self.resolution, n))


@dataclass(frozen=True)
class VelocitySensor:
    """A measured or a differenced velocity.

    Args:
        source: see `RecordedVelocity`; noise and resolution belong to a measured one.
        resolution: [rad/s or m/s].
        noise: standard deviation [rad/s or m/s].
    """

    source: RecordedVelocity = RecordedVelocity.MEASURED
    resolution: PerJoint = 0.0
    noise: PerJoint = 0.0

    def read(self, qd: FloatArray, rng: np.random.Generator) -> FloatArray:
        n = qd.shape[1]
        return quantised(
            _noisy(qd, per_joint("noise", self.noise, n), rng), per_joint("resolution", self.resolution, n)
        )


@dataclass(frozen=True, kw_only=True)
class TorqueSensor:
    """reading = clip(round((gain * tau + offset + noise) / resolution) * resolution, +-saturation).

    Args:
        noise: standard deviation [N m or N].
        resolution: [N m or N]; 0 for none.
        saturation: largest magnitude it can show [N m or N].
        offset: [N m or N].
        gain: 1 for a calibrated sensor.
    """

    noise: PerJoint = 0.0
    resolution: PerJoint = 0.0
    saturation: PerJoint = inf
    offset: PerJoint = 0.0
    gain: PerJoint = 1.0

    def read(self, torque: FloatArray, rng: np.random.Generator) -> FloatArray:
        n = torque.shape[1]
        value = {
            name: per_joint(name, getattr(self, name), n)
            for name in ("noise", "resolution", "saturation", "offset", "gain")
        }
        raw = quantised(_noisy(value["gain"] * torque + value["offset"], value["noise"], rng), value["resolution"])
        return np.clip(raw, -value["saturation"], value["saturation"])


@dataclass(frozen=True)
class CurrentSensor:
    """Motor current: torque / torque_constant, read with noise, resolution, saturation and offset in ampere.

    Args:
        torque_constant: joint torque per ampere, gear included [N m/A or N/A].
        sensor: errors, in ampere.
    """

    torque_constant: PerJoint
    sensor: TorqueSensor = field(default_factory=TorqueSensor)

    def read(self, torque: FloatArray, rng: np.random.Generator) -> FloatArray:
        constant = per_joint("torque_constant", self.torque_constant, torque.shape[1])
        if not (constant != 0.0).all():
            raise InputError("torque_constant", "0 N m/A", "torque per ampere, gear included")
        return self.sensor.read(torque / constant, rng)


@dataclass(frozen=True)
class SampleClock:
    """When samples are taken, and what time they are stamped with.

    Args:
        rate_hz: of the log; the controller's own when None.
        jitter: standard deviation of the instants around the even grid [s]; at most 0.4 of a period is used.
        honest: stamp the true instants; otherwise the even grid, as loggers that count samples do.
        start: stamp of the first sample [s].
    """

    rate_hz: float | None = None
    jitter: float = 0.0
    honest: bool = True
    start: float = 0.0

    FASTEST = 1e5
    """[Hz]; no logger of an arm is as fast, and the log would fill the memory."""
    LARGEST_SHIFT = 0.4
    """Of a period: instants never change places."""

    def instants(self, end: float, control_rate_hz: float, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """True sampling instants within [0, end], and their stamps [s]."""
        rate = self.rate_hz or control_rate_hz
        if not 0.0 < rate <= self.FASTEST:
            raise InputError("rate_hz", f"{rate:g}", f"a positive rate, at most {self.FASTEST:g} Hz")
        grid = np.arange(int(np.floor(end * rate + 1e-9)) + 1) / rate
        shift = np.clip(
            self.jitter * rng.standard_normal(len(grid)), -self.LARGEST_SHIFT / rate, self.LARGEST_SHIFT / rate
        )
        true = np.clip(grid + shift, 0.0, end) if self.jitter else grid
        return true, self.start + (true if self.honest else grid)


@dataclass(frozen=True)
class ChannelLag:
    """How old each channel's value is when it is stamped [s]; channels that differ are out of step."""

    position: float = 0.0
    velocity: float = 0.0
    torque: float = 0.0
    motor: float = 0.0


@dataclass(frozen=True)
class Packets:
    """What the network does.

    Args:
        dropped: probability that a sample is missing from the log.
        repeated: probability that a sample shows the values of the one before under its own time.
    """

    dropped: float = 0.0
    repeated: float = 0.0

    def __post_init__(self) -> None:
        for name in ("dropped", "repeated"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise InputError(name, f"{getattr(self, name)}", "a probability below 1")


@dataclass(frozen=True, kw_only=True)
class Sensors:
    """Everything between the arm and its log. The default is perfect.

    Args:
        position, velocity: of the joints.
        torque: joint torque sensors, None when the arm has none.
        motor: motor torque, None when not logged.
        current: motor current, None when not logged.
        clock, lag, packets: how samples are taken and carried.
    """

    position: PositionSensor = field(default_factory=PositionSensor)
    velocity: VelocitySensor = field(default_factory=VelocitySensor)
    torque: TorqueSensor | None = field(default_factory=TorqueSensor)
    motor: TorqueSensor | None = field(default_factory=TorqueSensor)
    current: CurrentSensor | None = None
    clock: SampleClock = field(default_factory=SampleClock)
    lag: ChannelLag = field(default_factory=ChannelLag)
    packets: Packets = field(default_factory=Packets)


def typical_sensors(torque_limit: FloatArray) -> Sensors:
    """A good collaborative arm: 20-bit encoders, differenced velocity, torque noise of 0.1 % of the limit.

    Args:
        torque_limit: [N m or N], shape [n_joints], of `torque_limits` where a description gives none; 100 where infinite or zero.
    """
    limit = np.where(np.isfinite(torque_limit) & (torque_limit > 0.0), torque_limit, 100.0)
    noise = tuple(float(x) for x in 1e-3 * limit)
    resolution = tuple(float(x) for x in limit / 2**15)
    torque = TorqueSensor(noise=noise, resolution=resolution, saturation=tuple(float(x) for x in 1.2 * limit))
    encoder = 2.0 * np.pi / 2**20
    return Sensors(
        position=PositionSensor(resolution=encoder, noise=encoder),
        velocity=VelocitySensor(source=RecordedVelocity.DIFFERENCED),
        torque=torque,
        motor=TorqueSensor(noise=tuple(3.0 * x for x in noise), resolution=resolution),
    )
