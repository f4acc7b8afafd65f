"""The rigid-body functions that `armid` promises: the shape of the answer follows that of the question.

Samples [n_samples, n_joints] give an answer per sample; one sample [n_joints] gives one answer, without an axis for the samples.
Wherever a robot is taken, a name of the catalogue, the path of a description or a result may stand for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, cast

import numpy as np

from armid.answers import load_answer
from armid.arrays import FloatArray
from armid.kernels import dynamics, kinematics
from armid.robot.load import load_robot
from armid.robot.robot import Robot

P = ParamSpec("P")


class _Identified(Protocol):
    """What a result says of its arm, as described and as found."""

    @property
    def described(self) -> Robot: ...
    @property
    def robot(self) -> Robot: ...


RobotLike = Robot | str | Path | _Identified


def _one_or_many(
    function: Callable[Concatenate[Robot, P], FloatArray],
) -> Callable[Concatenate[RobotLike, P], FloatArray]:
    """The function for whatever names a robot, with an answer for one sample when one was given."""

    @wraps(function)
    def run(robot: RobotLike, *args: P.args, **options: P.kwargs) -> FloatArray:
        answers = function(robot if isinstance(robot, Robot) else _robot_of(robot), *args, **options)
        q = args[0] if args else options["q"]
        return answers[0] if np.ndim(q) == 1 and len(answers) == 1 else answers  # type: ignore[arg-type]

    return run  # type: ignore[return-value]  # `robot` may be named as well, which Concatenate cannot say


_of_catalogue: dict[str, Robot] = {}
"""By name: its descriptions never change, and a loop asks for the same one each time."""


def _robot_of(source: str | Path | _Identified) -> Robot:
    """The robot that a name, a path or a result stands for; of a result, the identified one."""
    if isinstance(source, str) and source in _of_catalogue:
        return _of_catalogue[source]
    if isinstance(source, str | Path) and (Path(source) / "result.json").is_file():
        source = load_answer(source)
    # Only a result has both: of other answers `robot` is the arm as it was described, and would be taken for what was found.
    if isinstance(getattr(source, "described", None), Robot):
        return cast(_Identified, source).robot
    robot = load_robot(cast(str, source))
    if robot.source.path == f"catalogue:{source}":
        _of_catalogue[str(source)] = robot
    return robot


inverse_dynamics = _one_or_many(dynamics.inverse_dynamics)
forward_dynamics = _one_or_many(dynamics.forward_dynamics)
mass_matrix = _one_or_many(dynamics.mass_matrix)
coriolis = _one_or_many(dynamics.coriolis)
gravity = _one_or_many(dynamics.gravity)
regressor = _one_or_many(dynamics.regressor)
forward_kinematics = _one_or_many(kinematics.forward_kinematics)
jacobian = _one_or_many(kinematics.jacobian)
