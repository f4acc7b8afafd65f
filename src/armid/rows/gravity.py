"""Gravity vectors as a source of rows: what a controller reports, or torque at rest without friction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armid.kernels.rigid import combined_row
from armid.kernels.source import Row
from armid.recursion.dynamics import regressor
from armid.recursion.motion import geometric_coordinates
from armid.recursion.scalars import GRAVITY, Scalar, Scalars
from armid.rows.at_pose import AtPose
from armid.rows.link_columns import link_row


@dataclass(frozen=True)
class GravityRows(AtPose):
    """Rows of `g(q) = A(q) pi`, one channel per drive; [Gaz2014] eq. 17. Nothing but the links enters."""

    @property
    def channels(self) -> tuple[str, ...]:
        return tuple(f"{name}:gravity" for name in self.robot.joint_names)

    def gravity(self, scalars: Scalars) -> list[Scalar]:
        """Gravity as direction times a magnitude that closed forms may keep as a symbol."""
        magnitude = float(np.linalg.norm(self.robot.gravity))
        if magnitude == 0.0:
            return [scalars.constant(0.0)] * 3
        g = scalars.constant(magnitude, GRAVITY)
        return [scalars.constant(float(x) / magnitude) * g for x in self.robot.gravity]

    def rows(self, inputs: Sequence[Scalar], scalars: Scalars) -> list[Row]:
        n, C = self.robot.n_joints, self.robot.coupling
        rest = [scalars.constant(0.0)] * n
        q = geometric_coordinates(self.robot, inputs, scalars)
        rows = [
            link_row(self.space, entries, loaded=self.loaded)
            for entries in regressor(self.robot, q, rest, rest, scalars, gravity=self.gravity(scalars))
        ]
        return rows if C is None else [combined_row(list(C[:, i]), rows, scalars) for i in range(n)]
