"""The arm inside a closed loop: inertia, bias torque and their exact derivatives, compiled from the recorded recursion."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.identifiability.base import BaseParameters
from armid.kernels.compiled import Kernel, compile_plan
from armid.kernels.evaluate import CompiledRows, Restricted, compiled_rows
from armid.kernels.ir import Finish, KernelPlan
from armid.kernels.machine import load
from armid.kernels.rigid import RigidRows
from armid.kernels.single import single_text
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide
from armid.parameters.inertial import N_INERTIAL
from armid.parameters.space import OwnerKind
from armid.recursion import dynamics
from armid.recursion.motion import drive_coordinates, geometric_coordinates
from armid.recursion.tape import Node, Tape, vector_jacobian
from armid.robot.robot import Robot
from armid.rows.torque import TorqueRows

DRIVE_QUANTITIES = ("rotor_inertia", "viscous", "coulomb", "offset")
"""What a drive adds to the rigid torque, in the order of the inner loops."""


@dataclass(frozen=True, eq=False)
class LoopPlant:
    """The torque model `tau = A(q, qd, qdd) b` of base parameters b, made ready to be integrated.

    The dependent standard parameters are zero: base parameters decide the torque of every motion, hence also M and n.

    Args:
        source: rows of joint torque.
        base: its base parameters.

    Raises:
        InputError: torque that is not one channel per drive, a payload, or a shape of friction that is not simulated.
    """

    source: TorqueRows
    base: BaseParameters

    def __post_init__(self) -> None:
        effects = self.source.effects
        if effects.torques in (TorqueSide.BOTH, TorqueSide.DIFFERENCE) or effects.payload is not PayloadRuns.NONE:
            raise InputError(
                "closed loop",
                "is simulated with one torque per joint and no payload",
                "leave --payload and --torques out",
            )
        shapes = [word for word in effects.shapes if word != "smooth"]
        if shapes:
            raise InputError(
                "--friction",
                f"{', '.join(shapes)} is not simulated in the loop",
                "use viscous, coulomb, offset, smooth",
            )

    @property
    def robot(self) -> Robot:
        return self.source.robot

    @property
    def effects(self) -> Effects:
        return self.source.effects

    @cached_property
    def drive_places(self) -> npt.NDArray[np.intp]:
        """Where each quantity of each drive stands among the base parameters; -1 where it is not, shape [4, n]."""
        place = {column: k for k, column in enumerate(self.base.independent)}
        n = self.robot.n_joints
        out = np.full((len(DRIVE_QUANTITIES), n), -1, dtype=np.intp)
        for row, quantity in enumerate(DRIVE_QUANTITIES):
            for i in range(n):
                column = self.source.space.find(OwnerKind.JOINT, i, quantity)
                if column is not None:
                    out[row, i] = place.get(column, -1)
        return out

    def drive_values(self, values: FloatArray) -> FloatArray:
        """Rotor inertia, viscous, Coulomb and offset of every drive, shape [4, n]."""
        return np.where(self.drive_places >= 0, values[self.drive_places], 0.0)

    @cached_property
    def rigid_columns(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Base parameters that are columns of links: their columns `10 link + k`, and their places among the base parameters."""
        n = self.robot.n_joints
        starts = {self.source.space.start(OwnerKind.LINK, i): i for i in range(n)}
        columns, places = [], []
        for place, column in enumerate(self.base.independent):
            for start, link in starts.items():
                if start <= column < start + N_INERTIAL:
                    columns.append(N_INERTIAL * link + int(column) - start)
                    places.append(place)
        return tuple(columns), tuple(places)

    def rigid_values(self, values: FloatArray) -> FloatArray:
        """What the compiled code takes: values of the links' base parameters."""
        return np.ascontiguousarray(values[list(self.rigid_columns[1])])

    def _links(self, tape: Tape) -> list[list[Node]]:
        """Ten parameters per link, those that are not base parameters zero."""
        place = {column: k for k, column in enumerate(self.rigid_columns[0])}
        return [
            [
                tape.uniform(place[N_INERTIAL * i + k]) if N_INERTIAL * i + k in place else tape.constant(0.0)
                for k in range(N_INERTIAL)
            ]
            for i in range(self.robot.n_joints)
        ]

    @cached_property
    def step_text(self) -> str:
        """Module that computes, from q and v of one sample, the lower triangle of M row by row, then n(q, v)."""
        tape, n = Tape(), self.robot.n_joints
        q, v = ([tape.input(k * n + j) for j in range(n)] for k in range(2))
        x, xd = (geometric_coordinates(self.robot, values, tape) for values in (q, v))
        links = self._links(tape)
        M = self._both_sides(dynamics.mass_matrix(self.robot, x, links, tape), tape)
        still = [tape.constant(0.0)] * n
        torque = dynamics.inverse_dynamics(self.robot, x, xd, still, links, tape)
        bias = drive_coordinates(self.robot, torque, tape)
        lower = [M[i][j] for i in range(n) for j in range(i + 1)]
        return single_text(tape, tuple(tape.node(value) for value in (*lower, *bias)))

    def _both_sides(self, M: Sequence[Sequence[Node]], tape: Tape) -> list[list[Node]]:
        """C^T M C with the coupling C."""
        if self.robot.coupling is None:
            return [list(row) for row in M]
        half = [drive_coordinates(self.robot, row, tape) for row in M]
        n = len(half)
        columns = [drive_coordinates(self.robot, [half[i][j] for i in range(n)], tape) for j in range(n)]
        return [[columns[j][i] for j in range(n)] for i in range(n)]

    @cached_property
    def _step(self) -> Any:
        return load(self.step_text)

    @property
    def step_address(self) -> int:
        """Address of the compiled step."""
        return int(ctypes.cast(self._step.call, ctypes.c_void_p).value or 0)

    @property
    def n_packed(self) -> int:
        n = self.robot.n_joints
        return n * (n + 1) // 2 + n

    @cached_property
    def rigid_rows(self) -> CompiledRows:
        """Rows of the links' base parameters."""
        return compiled_rows(Restricted(RigidRows(self.robot), self.rigid_columns[0]))

    @cached_property
    def row_columns(self) -> npt.NDArray[np.intp]:
        """Place among the base parameters of every entry of the rigid rows."""
        places = np.array(self.rigid_columns[1], dtype=np.intp)
        return places[[column for _, column in self.rigid_rows.entries]]

    @cached_property
    def row_channels(self) -> npt.NDArray[np.intp]:
        return np.array([channel for channel, _ in self.rigid_rows.entries], dtype=np.intp)

    @cached_property
    def tangent_kernel(self) -> Kernel:
        """Over samples (q, v, a): entries of the rigid rows, then d tau/dq and d tau/dv of the rigid torque, each row by row."""
        tape, n = Tape(), self.robot.n_joints
        q, v, a = ([tape.input(k * n + j) for j in range(n)] for k in range(3))
        x, xd, xdd = (geometric_coordinates(self.robot, values, tape) for values in (q, v, a))
        rows = self.rigid_rows.source.rows([*q, *v, *a], tape)
        entries = [tape.node(rows[i][c]) for i, c in self.rigid_rows.entries]
        torque = dynamics.inverse_dynamics(self.robot, x, xd, xdd, self._links(tape), tape)
        one = tape.constant(1.0)
        slopes = [
            vector_jacobian(tape, [tape.node(tau)], [one], [*q, *v])
            for tau in drive_coordinates(self.robot, torque, tape)
        ]
        wanted = [*entries, *(s for row in slopes for s in row[:n]), *(s for row in slopes for s in row[n:])]
        return compile_plan(KernelPlan(tape, (tuple(wanted),), Finish.STORE))
