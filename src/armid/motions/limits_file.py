"""Limits a description cannot hold, or holds too widely, from a small file (docs/formats.md) or from words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from armid.documents import read_text
from armid.errors import InputError
from armid.robot.document import Field, document
from armid.robot.robot import Limits, Robot
from armid.words import numbers

_FORMAT = "armid-limits/1"

KINDS = ("lower", "upper", "velocity", "acceleration", "jerk", "torque")
"""Of limits, as fields of `robot.Limits`."""

OwnLimits = Mapping[str, Mapping[str, float]]
"""Joint -> kind -> value in SI units."""


def load_limits(path: str | Path, robot: Robot) -> OwnLimits:
    """Limits of a file, for the joints of a robot.

    Raises:
        InputError: naming the field, what is wrong with it and what was expected.
    """
    where = str(path)
    text = read_text(Path(path), "a limits file (docs/formats.md)")
    top = Field(document(text, where), f"{where}:").keys(("format", "all", "joints"))
    if "format" not in top:
        raise InputError(where, "key 'format' is missing", f"write `format: {_FORMAT}` as the first line")
    top["format"].choice((_FORMAT,))
    common = _kinds(top["all"]) if "all" in top else {}
    own = top["joints"].keys(robot.joint_names) if "joints" in top else {}
    return {name: common | (_kinds(own[name]) if name in own else {}) for name in robot.joint_names}


def _kinds(entry: Field) -> dict[str, float]:
    return {kind: field.number() for kind, field in entry.keys(KINDS).items()}


def with_limits(
    robot: Robot,
    limits_file: str | Path | None = None,
    *,
    max_acceleration: str | npt.ArrayLike | None = None,
    max_jerk: str | npt.ArrayLike | None = None,
    max_torque: str | npt.ArrayLike | None = None,
) -> Robot:
    """The arm with limits of its user's: those of a file, and then those given directly.

    Positions and velocities may only become narrower: wider ones than the maker's are an error.

    Args:
        robot: with the limits of its description.
        limits_file: YAML; none when None.
        max_acceleration: [rad/s^2 or m/s^2], one number for all joints or one each, shape [n_joints].
        max_jerk: [rad/s^3 or m/s^3], likewise.
        max_torque: [N m or N], likewise.

    Raises:
        InputError: a limit that is not positive, wider than the description's, or for a joint that does not exist.
    """
    own = {name: dict(values) for name, values in (load_limits(limits_file, robot) if limits_file else {}).items()}
    for kind, given in (("acceleration", max_acceleration), ("jerk", max_jerk), ("torque", max_torque)):
        if given is None:
            continue
        for name, value in zip(robot.joint_names, _one_each(f"max {kind}", given, robot.n_joints), strict=True):
            own.setdefault(name, {})[kind] = value
    if not own:
        return robot
    joints = tuple(
        replace(joint, limits=_narrowed(joint.name, joint.limits, own.get(joint.name, {}))) for joint in robot.joints
    )
    return replace(robot, joints=joints)


def _one_each(where: str, given: str | npt.ArrayLike, count: int) -> tuple[float, ...]:
    """One number for all joints, or one each."""
    if isinstance(given, str):
        values = numbers(where, given, 1 if "," not in given else count, "10 or one per joint with commas")
    else:
        values = tuple(float(x) for x in np.atleast_1d(np.asarray(given, dtype=np.float64)))
    if len(values) not in (1, count):
        raise InputError(where, f"{len(values)} numbers", f"one for all joints, or {count}")
    return values * count if len(values) == 1 else values


def _narrowed(name: str, described: Limits, own: Mapping[str, float]) -> Limits:
    """A joint's limits with its user's in their place."""
    limits = replace(described, **own)
    for kind in ("velocity", "acceleration", "jerk", "torque"):
        if not getattr(limits, kind) > 0.0:
            raise InputError(f"{kind} limit of {name}", f"{getattr(limits, kind):g}", "must be positive")
    if limits.lower < described.lower or limits.upper > described.upper or limits.velocity > described.velocity:
        raise InputError(
            f"limits of {name}",
            "wider than those of the description",
            "positions and velocities can only be narrowed; correct the description if it is wrong",
        )
    if not limits.lower < limits.upper:
        raise InputError(f"positions of {name}", f"{limits.lower:g} to {limits.upper:g}", "lower must be below upper")
    return limits
