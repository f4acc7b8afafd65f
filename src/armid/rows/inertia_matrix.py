"""Inertia matrices as a source of rows: what a controller reports at a pose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from armid.kernels.rigid import combined_row
from armid.kernels.source import Row
from armid.parameters.space import ROTOR_INERTIA, OwnerKind, ParameterSpace
from armid.recursion.dynamics import inertia_matrix_columns
from armid.recursion.motion import geometric_coordinates
from armid.recursion.scalars import Scalar, Scalars
from armid.robot.robot import Robot
from armid.rows.at_pose import AtPose
from armid.rows.link_columns import link_row


@dataclass(frozen=True)
class InertiaMatrixRows(AtPose):
    """Rows of the upper triangle of `M(q) = A(q) pi`, one channel per entry; [Gaz2014] eq. 18.

    With rotor inertia among the effects it is added to the diagonal.
    """

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        """Row and column of each channel, 0-based."""
        n = self.robot.n_joints
        return tuple((j, k) for j in range(n) for k in range(j, n))

    @property
    def channels(self) -> tuple[str, ...]:
        return tuple(f"M_{j + 1}_{k + 1}" for j, k in self.entries)

    def rows(self, inputs: Sequence[Scalar], scalars: Scalars) -> list[Row]:
        M = inertia_matrix_rows(self.robot, self.space, inputs, scalars, loaded=self.loaded)
        return [M[j][k] for j, k in self.entries]


def inertia_matrix_rows(
    robot: Robot, space: ParameterSpace, inputs: Sequence[Scalar], scalars: Scalars, *, loaded: bool
) -> list[list[Row]]:
    """Every entry of the drives' inertia matrix C^T M(C q) C, rotors on the diagonal where the space has them."""
    n, C = robot.n_joints, robot.coupling
    q = geometric_coordinates(robot, inputs, scalars)
    M = [[link_row(space, entry, loaded=loaded) for entry in row] for row in inertia_matrix_columns(robot, q, scalars)]
    if C is not None:
        half = [[combined_row(list(C[:, k]), row, scalars) for k in range(n)] for row in M]
        M = [[combined_row(list(C[:, j]), [half[i][k] for i in range(n)], scalars) for k in range(n)] for j in range(n)]
    for i in range(n):
        column = space.find(OwnerKind.JOINT, i, ROTOR_INERTIA)
        if column is not None:
            M[i][i] = M[i][i] | {column: scalars.constant(1.0)}
    return M
