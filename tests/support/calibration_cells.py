"""A simulated calibration cell: an arm with planted errors, a tracker, a tool, and whatever is to go wrong with them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from armid.calibration.start import ALL
from armid.kinematics.build import kinematic_model
from armid.kinematics.calibrated import predicted_poses
from armid.kinematics.measurement import Measurements, Observations, Observed
from armid.kinematics.model import ErrorModel, FrameModel, KinematicModel
from armid.kinematics.rotations import rigid, rotation_exp
from armid.kinematics.words import Term
from armid.parameters.space import OwnerKind
from armid.robot.load import load_robot
from armid.robot.robot import Robot


@dataclass(frozen=True, eq=False)
class Cell:
    """The real arm (`model` at `values`) beside its description."""

    robot: Robot
    model: KinematicModel
    values: np.ndarray

    @classmethod
    def drawn(cls, name, *, seed=0, size=0.3, terms=frozenset({Term.OFFSET})):
        rng = np.random.default_rng(seed)
        robot = load_robot(name) if isinstance(name, str) else name
        Z = rigid(rotation_exp(rng.normal(size=3)), 2.0 * rng.normal(size=3))
        X = rigid(rotation_exp(rng.normal(size=3)), 0.1 * rng.normal(size=3))
        model = kinematic_model(
            robot,
            ErrorModel(terms=terms),
            setups={"sensor": FrameModel.around(Z, ALL, outside=True)},
            targets={"tool": FrameModel.around(X, ALL, outside=False)},
        )
        arm = model.owned(OwnerKind.LINK, OwnerKind.JOINT)
        return cls(robot, model, np.where(arm, size * model.tolerances * rng.normal(size=len(arm)), 0.0))

    def poses(self, count, rng, reach=1.5):
        return rng.uniform(-reach, reach, (count, self.robot.n_joints))

    def measured(
        self,
        count,
        rng,
        *,
        q=None,
        position=1e-4,
        orientation=1e-4,
        tool=None,
        joints=None,
        quantity=Observed.POSE,
        conditions=None,
    ):
        """What the tracker says; `joints` adds to the joint positions what no model has, `tool` moves the target on the tool."""
        q = self.poses(count, rng) if q is None else q
        real = q if joints is None else q + joints(q)
        T = predicted_poses(self.model, self.values, real, setup="sensor", target="tool")
        if tool is not None:
            T = T @ tool
        p = T[:, :3, 3] + position * rng.normal(size=(len(q), 3))
        R = rotation_exp(orientation * rng.normal(size=(len(q), 3))) @ T[:, :3, :3]
        seen = Observations(
            quantity=quantity,
            rows=np.arange(len(q)),
            position=p if quantity.has_position else None,
            rotation=R if quantity.has_orientation else None,
        )
        return Measurements(q=q, observations=(seen,), conditions=conditions or {})

    @staticmethod
    def seen_from(measurements, T):
        """The same, seen from a sensor that stands elsewhere; T may differ from row to row."""
        T = np.broadcast_to(T, (len(measurements.q), 4, 4))
        return replace(
            measurements,
            observations=tuple(
                replace(
                    o,
                    position=None
                    if o.position is None
                    else np.einsum("nij,nj->ni", T[o.rows, :3, :3], o.position) + T[o.rows, :3, 3],
                    rotation=None if o.rotation is None else T[o.rows, :3, :3] @ o.rotation,
                )
                for o in measurements.observations
            ),
        )
