"""Units people write, as factors to SI."""

from __future__ import annotations

from math import pi

from armid.errors import UnknownNameError
from armid.logs.log import Channel

ANGLE = {"rad": 1.0, "deg": pi / 180.0, "mrad": 1e-3, "rev": 2.0 * pi, "m": 1.0, "mm": 1e-3}
RATE = {
    **{f"{name}/s": value for name, value in ANGLE.items()},
    "rpm": 2.0 * pi / 60.0,
}
CHANGE = {f"{name}/s^2": value for name, value in ANGLE.items()}
FORCE = {"Nm": 1.0, "N": 1.0, "mNm": 1e-3, "kNm": 1e3, "Ncm": 1e-2, "kN": 1e3, "permille": 1e-3, "percent": 1e-2}
"""Shares of a rated torque need that torque: `rated` of the channel."""
SHARES = ("permille", "percent")
CURRENT = {"A": 1.0, "mA": 1e-3, "permille": 1e-3, "percent": 1e-2, "pu": 1.0}
TIME = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0}
_TEMPERATURE = {"degC": 1.0}

UNITS: dict[Channel, dict[str, float]] = {
    Channel.POSITION: ANGLE,
    Channel.MOTOR_POSITION: ANGLE,
    Channel.COMMANDED_POSITION: ANGLE,
    Channel.VELOCITY: RATE,
    Channel.ACCELERATION: CHANGE,
    Channel.LINK_TORQUE: FORCE,
    Channel.MOTOR_TORQUE: FORCE,
    Channel.COMMANDED_TORQUE: FORCE,
    Channel.EXTERNAL_TORQUE: FORCE,
    Channel.CURRENT: CURRENT,
    Channel.TEMPERATURE: _TEMPERATURE,
}

ALIASES = {
    "n m": "Nm",
    "n*m": "Nm",
    "n.m": "Nm",
    "newton metre": "Nm",
    "degree": "deg",
    "degrees": "deg",
    "°": "deg",
    "grad": "deg",
    "degré": "deg",
    "degrés": "deg",
    "grados": "deg",
    "gradi": "deg",
    "promille": "permille",
    "prozent": "percent",
    "u/min": "rpm",
    "tr/min": "rpm",
    "grad/s": "deg/s",
    "sekunden": "s",
    "millisekunden": "ms",
    "radian": "rad",
    "radians": "rad",
    "ampere": "A",
    "amps": "A",
    "amp": "A",
    "‰": "permille",
    "%": "percent",
    "seconds": "s",
    "sec": "s",
    "second": "s",
    "millisecond": "ms",
    "milliseconds": "ms",
    "msec": "ms",
    "µs": "us",
    "usec": "us",
    "nsec": "ns",
    "nanoseconds": "ns",
    "microseconds": "us",
    "celsius": "degC",
    "°c": "degC",
    "1/min": "rpm",
    "rad/s2": "rad/s^2",
    "deg/s2": "deg/s^2",
    "°/s": "deg/s",
    "nm": "Nm",
    "mnm": "mNm",
}


def canonical(unit: str) -> str:
    """The spelling the tables use."""
    text = unit.strip()
    return ALIASES.get(text.lower(), text) if text not in ("N", "A", "m", "Nm", "mNm") else text


def factor(channel: Channel, unit: str) -> float:
    """What a value in this unit is multiplied by.

    Raises:
        UnknownNameError: not a unit of this channel; the message lists those that are.
    """
    table = UNITS[channel]
    name = canonical(unit)
    if name not in table:
        raise UnknownNameError(f"unit of {channel.value}", unit, table)
    return table[name]


def seconds(unit: str) -> float:
    """What a time in this unit is multiplied by."""
    name = canonical(unit)
    if name not in TIME:
        raise UnknownNameError("unit of time", unit, TIME)
    return TIME[name]
