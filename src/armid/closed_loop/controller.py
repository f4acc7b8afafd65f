"""The controller of a recorded motion: independent joints, proportional, derivative and integral, with a feed-forward.

At every tick k of its clock, per joint,

    e_k = command - measured position         d_k = (e_k - e_{k-1}) * rate, low-passed when a cut-off is given
    u_k = torque_per_unit (kp e_k + kd d_k + ki sum_{i<k} e_i / rate) + feed-forward

within the torque limit; the drive applies u_k from `delay_s` later until the next one arrives. docs/formats.md has the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray, read_only
from armid.documents import read_yaml, yaml_values
from armid.errors import InputError
from armid.robot.robot import Robot

FORMAT = "armid-controller/1"
FRICTION_VELOCITY = 0.01
"""[rad/s or m/s]; Coulomb friction of the simulated arm is `coulomb * tanh(velocity / this)` unless the file says otherwise."""

_PER_JOINT = ("kp", "kd", "ki", "torque_per_unit", "torque_limit", "derivative_cutoff_hz", "friction_velocity")
_KEYS = ("format", "rate_hz", "delay_s", "feedforward", *_PER_JOINT)
_UNKNOWN = "unknown"
_WHOLE_TICKS = 1e-3
"""A delay may be off a whole number of ticks by this share of one: rounding in the file."""


@dataclass(frozen=True, eq=False, kw_only=True)
class JointController:
    """Gains and clock of a controller; arrays have shape [n].

    Args:
        rate: of its clock [Hz].
        kp, kd, ki: gains as torque per rad, per rad/s, per rad s (`torque_per_unit` included).
        delay_ticks: whole ticks from computing a torque to applying it.
        torque_limit: [N m or N]; infinite without one.
        derivative_cutoff: of the first-order low-pass on the derivative [Hz]; infinite without one.
        friction_velocity: over which the simulated Coulomb friction turns around [rad/s or m/s].
        feedforward: arm whose torque along the command is added (bodies, rotors, friction); None without.
        known: False when kp and kd are to be estimated together with the bodies.
    """

    rate: float
    kp: FloatArray
    kd: FloatArray
    ki: FloatArray
    delay_ticks: int = 0
    torque_limit: FloatArray = field(default_factory=lambda: np.empty(0))
    derivative_cutoff: FloatArray = field(default_factory=lambda: np.empty(0))
    friction_velocity: FloatArray = field(default_factory=lambda: np.empty(0))
    feedforward: Robot | None = None
    known: bool = True

    def __post_init__(self) -> None:
        n = len(self.kp)
        defaults = {"torque_limit": np.inf, "derivative_cutoff": np.inf, "friction_velocity": FRICTION_VELOCITY}
        for name, value in defaults.items():
            given = np.asarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, read_only(given if given.size else np.full(n, value)))
        for name in ("kp", "kd", "ki"):
            object.__setattr__(self, name, read_only(np.asarray(getattr(self, name), dtype=np.float64)))

    @property
    def n_joints(self) -> int:
        return len(self.kp)

    @property
    def gains(self) -> FloatArray:
        """Rows kp, kd, ki, shape [3, n]."""
        return np.array([self.kp, self.kd, self.ki])

    def with_torque_gains(self, gains: FloatArray) -> JointController:
        """The same with rows kp, kd, ki of the given array."""
        return replace(self, kp=gains[0], kd=gains[1], ki=gains[2])

    def gain_rows(self) -> FloatArray:
        """What the inner loop takes: kp, kd, ki, share of a new difference in the derivative, torque limit; shape [5, n]."""
        share = -np.expm1(-2.0 * np.pi * self.derivative_cutoff / self.rate)
        return np.array([self.kp, self.kd, self.ki, share, self.torque_limit])


def read_controller(path: str | Path, robot: Robot) -> JointController:
    """A controller file (docs/formats.md) for an arm.

    Raises:
        InputError: naming the file, the key, what was expected.
    """
    where = Path(path)
    values = read_yaml(where, "a controller file")
    return _controller(values, robot, str(where))


def catalogue_controller(robot: Robot) -> JointController | None:
    """The controller that comes with an arm of the catalogue; None without one."""
    if (
        not robot.name.replace("-", "").replace("_", "").isalnum()
    ):  # a name with slashes would lead out of the catalogue
        return None
    file = files(__package__).joinpath(f"{robot.name}.yaml")
    if not file.is_file():
        return None
    values = yaml_values(file.read_text(encoding="utf-8"), robot.name)
    return _controller(values, robot, robot.name)


def _controller(values: Mapping[str, Any], robot: Robot, where: str) -> JointController:
    unknown = sorted(set(values) - set(_KEYS))
    if unknown:
        raise InputError(where, f"unknown key {unknown[0]!r}", f"keys are {', '.join(_KEYS)}")
    if values.get("format") != FORMAT:
        raise InputError(where, f"format is {values.get('format')!r}", f"begin with 'format: {FORMAT}'")
    rate = _number(values.get("rate_hz"), f"{where}: rate_hz", "control ticks per second, e.g. 1000", smallest=1.0)
    names = robot.joint_names
    known = not any(values.get(key) == _UNKNOWN for key in ("kp", "kd"))
    gains = {key: _gain(values, key, names, where, known=known) for key in ("kp", "kd", "ki")}
    unit = _per_joint(values.get("torque_per_unit", 1.0), f"{where}: torque_per_unit", names)
    infinite: dict[str, FloatArray] = {}
    for key in ("torque_limit", "derivative_cutoff_hz", "friction_velocity"):
        if key in values:
            infinite[key.removesuffix("_hz")] = _positive(values[key], f"{where}: {key}", names)
    return JointController(
        rate=rate,
        kp=unit * gains["kp"],
        kd=unit * gains["kd"],
        ki=unit * gains["ki"],
        delay_ticks=_ticks(values.get("delay_s", 0.0), rate, where),
        feedforward=_feedforward(values.get("feedforward", "none"), robot, where),
        known=known,
        **infinite,
    )


def _gain(values: Mapping[str, Any], key: str, names: Sequence[str], where: str, *, known: bool) -> FloatArray:
    """One kind of gain; ki is zero and, when gains are not known, all are zero unless given."""
    given = values.get(key, 0.0 if key == "ki" else None)
    if given == _UNKNOWN or (given is None and not known):
        return np.zeros(len(names))
    if given is None:
        raise InputError(where, f"no {key}", f"give {key} per joint, or '{key}: {_UNKNOWN}' to have it estimated")
    return _per_joint(given, f"{where}: {key}", names)


def _per_joint(given: Any, where: str, names: Sequence[str]) -> FloatArray:
    """One number for all joints, a list in their order, or a mapping by name."""
    expected = f"expected a number, a list of {len(names)}, or one per joint: {', '.join(names)}"
    if isinstance(given, Mapping):
        if set(given) != set(names):
            odd = sorted(set(given) ^ set(names))
            raise InputError(where, f"{odd[0]} is {'missing' if odd[0] in names else 'no joint of this arm'}", expected)
        given = [given[name] for name in names]
    if isinstance(given, list):
        if len(given) != len(names):
            raise InputError(where, f"{len(given)} values", expected)
        return np.array([_number(x, where, expected) for x in given])
    return np.full(len(names), _number(given, where, expected))


def _positive(given: Any, where: str, names: Sequence[str]) -> FloatArray:
    values = _per_joint(given, where, names)
    if np.any(values <= 0.0):
        raise InputError(where, f"{values.min():g} is not positive", "leave the key out for none")
    return values


def _number(given: Any, where: str, expected: str, *, smallest: float = -np.inf) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not np.isfinite(given) or given < smallest:
        raise InputError(where, f"{given!r}", expected)
    return float(given)


def _ticks(given: Any, rate: float, where: str) -> int:
    """Whole control ticks of a delay."""
    delay = _number(
        given, f"{where}: delay_s", "seconds from computing a torque to applying it, 0 for none", smallest=0.0
    )
    ticks = delay * rate
    if abs(ticks - round(ticks)) > _WHOLE_TICKS:
        raise InputError(
            f"{where}: delay_s",
            f"{delay:g} s is {ticks:.3f} control ticks",
            f"a whole number of ticks of {1.0 / rate:g} s",
        )
    return round(ticks)


def _feedforward(given: Any, robot: Robot, where: str) -> Robot | None:
    """The arm whose torque is fed forward: `none`, `description`, or a robot file beside the controller file."""
    from armid.robot.load import load_robot

    match given:
        case "none":
            return None
        case "description":
            return robot
        case str():
            beside = Path(where).parent / given
            model = load_robot(str(beside) if beside.is_file() else given)
            if model.n_joints != robot.n_joints:
                raise InputError(f"{where}: feedforward", f"{model.n_joints} joints", f"the arm has {robot.n_joints}")
            return model
    raise InputError(f"{where}: feedforward", repr(given), "none, description, or a robot file")
