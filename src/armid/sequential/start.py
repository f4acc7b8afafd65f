"""Where a sequential identification starts, and which joints its plan locks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path

import numpy as np

from armid.arrays import FloatArray
from armid.documents import read_json
from armid.errors import InputError, UnknownNameError
from armid.motions.trajectory_files import load_trajectory
from armid.parameters.inertial import INERTIAL_NAMES, N_INERTIAL
from armid.parameters.space import ParameterSpace
from armid.robot.robot import Robot

_SAMPLES_OF_A_PLAN = 200
"""Instants of a planned motion looked at: a joint that stands still at all of them is locked."""

NOMINAL = "nominal"
"""The word for the description's own values."""


def starting_values(start: str | Path | Mapping[str, float] | None, robot: Robot, space: ParameterSpace) -> FloatArray:
    """A value for every standard parameter, shape [p].

    Args:
        start: JSON file or mapping from parameter name to number (zero where it is silent), `nominal` for the description's own
            values, or None for zero.
        robot: the arm.
        space: its standard parameters.

    Raises:
        InputError: not starting values.
        UnknownNameError: a parameter that does not exist.
    """
    if start is None:
        return np.zeros(len(space))
    if start == NOMINAL:
        return nominal_values(robot, space)
    values = start if isinstance(start, Mapping) else _read_start(Path(start))
    for name, value in values.items():
        if name not in space:
            raise UnknownNameError("parameter", name, space.names)
        if not isfinite(value):
            raise InputError(
                "start" if isinstance(start, Mapping) else start, f"{name} is {value}", "expected a number"
            )
    return np.array([values.get(name, 0.0) for name in space.names])


def _read_start(path: Path) -> dict[str, float]:
    what = 'starting values such as {"link1.mass": 10}'
    try:
        return {name: float(value) for name, value in read_json(path, what).items()}
    except (TypeError, ValueError) as problem:
        raise InputError(path, f"not starting values: {problem}", f"expected {what}") from None


def nominal_values(robot: Robot, space: ParameterSpace) -> FloatArray:
    """The description's own values of every standard parameter, shape [p]."""
    values = []
    for p in space.parameters:
        if p.quantity in INERTIAL_NAMES:
            values.append(robot.inertial[N_INERTIAL * p.body + INERTIAL_NAMES.index(p.quantity)])
        else:
            values.append(getattr(robot.joints[p.body].drive, p.quantity))
    return np.array(values, dtype=np.float64)


def locks_of(robot: Robot, count: int, plan: str | Path | None, locked: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Which joints have to stand still in each recording.

    Args:
        robot: the arm.
        count: of recordings.
        plan: folder of `armid design --sequential`, one experiment per recording.
        locked: in every recording.

    Raises:
        InputError: a plan of another number of experiments.
        UnknownNameError: a joint that does not exist.
    """
    for name in locked:
        robot.joint_index(name)
    if plan is None:
        return (tuple(locked),) * count
    planned = _planned_locks(Path(plan), robot)
    if len(planned) != count:
        raise InputError(plan, f"{len(planned)} experiments", f"{count} recordings were given; one each, in that order")
    return tuple((*names, *locked) for names in planned)


def _planned_locks(folder: Path, robot: Robot) -> tuple[tuple[str, ...], ...]:
    """Names of the joints that stand still in each experiment of a plan, in the order they are run.

    Raises:
        InputError: no plan there, or one of another robot.
    """
    paths = sorted(folder.glob("experiment*.json"), key=lambda path: int(path.stem.removeprefix("experiment")))
    if not paths:
        raise InputError(folder, "holds no experiment1.json, experiment2.json, ...", "a folder that armid design wrote")
    out = []
    for path in paths:
        motion = load_trajectory(path)
        if tuple(motion.joint_names) != robot.joint_names:
            raise InputError(
                path, f"joints {', '.join(motion.joint_names)}", f"{robot.name} has {', '.join(robot.joint_names)}"
            )
        q = motion.sample(np.linspace(0.0, motion.duration, _SAMPLES_OF_A_PLAN))[0]
        out.append(tuple(name for name, x in zip(robot.joint_names, q.T, strict=True) if np.ptp(x) == 0.0))
    return tuple(out)
