"""The rigid-body functions that `armid` promises: the shape of the answer follows that of the question.

Samples [n_samples, n_joints] give an answer per sample; one sample [n_joints] gives one answer, without an axis for the samples.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.kernels import dynamics, kinematics
from armid.robot.robot import Robot

F = TypeVar("F", bound=Callable[..., FloatArray])


def _one_or_many(function: F) -> F:
    """The function, with an answer for one sample when one was given."""

    @wraps(function)
    def run(robot: Robot, q: npt.ArrayLike, *args: Any, **options: Any) -> FloatArray:
        answers = function(robot, q, *args, **options)
        return answers[0] if np.ndim(q) == 1 and len(answers) == 1 else answers

    return cast(F, run)


inverse_dynamics = _one_or_many(dynamics.inverse_dynamics)
forward_dynamics = _one_or_many(dynamics.forward_dynamics)
mass_matrix = _one_or_many(dynamics.mass_matrix)
coriolis = _one_or_many(dynamics.coriolis)
gravity = _one_or_many(dynamics.gravity)
regressor = _one_or_many(dynamics.regressor)
forward_kinematics = _one_or_many(kinematics.forward_kinematics)
jacobian = _one_or_many(kinematics.jacobian)
