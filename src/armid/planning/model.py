"""The torque model a motion is planned with: rows of the regressor, values for its columns, and how well they are known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only
from armid.errors import InputError
from armid.identifiability.base import BaseParameters
from armid.identification.result import Result
from armid.kernels.dynamics import states
from armid.kernels.evaluate import Restricted, evaluate_rows
from armid.kernels.source import RowSource
from armid.notes import Note, Severity
from armid.parameters.effects import Effects, TorqueSide
from armid.parameters.space import Parameter
from armid.robot.described import described_values
from armid.robot.robot import Robot
from armid.rows.torque import TorqueRows


class Role(StrEnum):
    """What a column of the regressor stands for."""

    RIGID = "rigid"
    """Links and rotors: what Proposition 1 of [Kolyubin2017] is about."""
    VISCOUS = "viscous"
    COULOMB = "coulomb"
    OFFSET = "offset"


@dataclass(frozen=True, eq=False, kw_only=True)
class TorqueModel:
    """`tau = A(q, qd, qdd) b`, torque of the drives as their limits see it.

    Args:
        robot: geometry, gravity and limits.
        source: rows restricted to the columns of `values`.
        values: base parameters (or standard ones), shape [r].
        covariance: of the values, shape [r, r]; zero for a model taken at its word.
        roles: of the columns, shape [r].
        channels: which rows of the source are the drives' torques, shape [n_joints].
        notes: what a reader of a plan should know about the model.
    """

    robot: Robot
    source: RowSource
    values: FloatArray
    covariance: FloatArray
    roles: tuple[Role, ...]
    channels: tuple[int, ...]
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", read_only(self.values))
        object.__setattr__(self, "covariance", read_only(self.covariance))

    @cached_property
    def covariance_factor(self) -> FloatArray:
        """F with covariance = F F^T, shape [r, r]."""
        values, vectors = np.linalg.eigh(self.covariance)
        return read_only(vectors * np.sqrt(np.maximum(values, 0.0)))

    def columns(self, role: Role) -> FloatArray:
        """One where a column has this role and zero elsewhere, shape [r]."""
        return np.array([float(own is role) for own in self.roles])

    def rows(self, q: npt.ArrayLike, qd: npt.ArrayLike, qdd: npt.ArrayLike) -> FloatArray:
        """A(q, qd, qdd), shape [n_samples, n_joints, r]."""
        inputs = np.hstack(states(self.robot, q=q, qd=qd, qdd=qdd))
        rows = evaluate_rows(self.source, inputs)
        return rows if len(self.channels) == rows.shape[1] else rows[:, list(self.channels)]

    def torque(self, q: npt.ArrayLike, qd: npt.ArrayLike, qdd: npt.ArrayLike) -> FloatArray:
        """[N m or N], shape [n_samples, n_joints]."""
        return np.asarray(self.rows(q, qd, qdd) @ self.values)


def model_of_result(result: Result, *, loaded: bool = True) -> TorqueModel:
    """The base parameters as estimated, with their covariance: all that planning needs ([Kolyubin2017] section 5).

    Args:
        result: of an identification of torque on either or both sides of the drives.
        loaded: whether the arm carries the payload of the loaded runs; only matters if there were any.

    Raises:
        InputError: a result about the drives alone, or with friction beyond viscous, Coulomb and offset.
    """
    if result.effects.torques is TorqueSide.DIFFERENCE:
        raise InputError("result", "it is about the drives alone", "identify with --torques link, motor or both")
    if result.effects.shapes:
        words = ", ".join(result.effects.shapes)
        raise InputError(
            "result",
            f"friction with {words}, which planning does not know",
            "identify with viscous,coulomb,offset for it",
        )
    rows = TorqueRows(result.robot, result.effects, loaded=loaded)
    e = result.estimate
    model = model_of_base(rows, e.base, e.values, covariance=e.covariance)
    return replace(model, notes=_side_notes(result.effects))


def _side_notes(effects: Effects) -> tuple[Note, ...]:
    """That torque after the transmissions knows nothing of the rotors, when the model is about that."""
    if effects.torques is not TorqueSide.LINK or effects.rotor_inertia:
        return ()
    text = "torque was measured after the transmissions, without the rotors; limits are compared with that torque"
    return (
        Note(
            "link-torque", Severity.INFO, f"{text} (identify with --torques motor or --rotor-inertia to include them)"
        ),
    )


def model_of_base(
    rows: TorqueRows, base: BaseParameters, values: npt.ArrayLike, *, covariance: npt.ArrayLike | None = None
) -> TorqueModel:
    """Base parameters of torque rows, in the leading columns of the regressor.

    Args:
        rows: of the robot with its effects.
        base: which combinations they are.
        values: shape [r].
        covariance: shape [r, r]; zero when None.
    """
    kept = tuple(int(k) for k in base.independent)
    doubt = np.zeros((len(kept), len(kept))) if covariance is None else np.asarray(covariance, dtype=np.float64)
    parameters = [rows.space.parameters[k] for k in kept]
    return TorqueModel(
        robot=rows.robot,
        source=Restricted(rows, kept),
        values=np.asarray(values),
        covariance=doubt,
        roles=_roles(parameters),
        channels=_torque_channels(rows),
    )


def model_of_robot(robot: Robot, *, effects: Effects | None = None) -> TorqueModel:
    """The description's own parameters, taken at their word.

    Args:
        robot: with inertial parameters and drives.
        effects: what of the drives counts; everything by default.
    """
    chosen = effects or Effects(viscous=True, coulomb=True, offset=True, rotor_inertia=True)
    rows = TorqueRows(robot, chosen)
    values = described_values(robot, rows.space)
    covariance = np.zeros((len(values), len(values)))
    return TorqueModel(
        robot=robot,
        source=rows,
        values=values,
        covariance=covariance,
        roles=_roles(rows.space.parameters),
        channels=_torque_channels(rows),
    )


def _torque_channels(rows: TorqueRows) -> tuple[int, ...]:
    """The drives' torques are the last rows: with both sides measured those of the motors, which the limits are about."""
    n = rows.robot.n_joints
    return tuple(range(len(rows.channels) - n, len(rows.channels)))


_FRICTION_ROLES = {role.value: role for role in Role if role is not Role.RIGID}


def _roles(parameters: Iterable[Parameter]) -> tuple[Role, ...]:
    """What each parameter stands for; friction of either side of a drive counts as friction."""
    return tuple(_FRICTION_ROLES.get(parameter.drive_quantity or "", Role.RIGID) for parameter in parameters)
