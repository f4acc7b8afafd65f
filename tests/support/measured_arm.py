"""A simulated arm that deviates from its description, and everything an instrument may say about it, written as files."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field

import numpy as np

from armid.calibration.start import ALL
from armid.kinematics.build import kinematic_model
from armid.kinematics.calibrated import predicted_poses
from armid.kinematics.model import ErrorModel, FrameModel
from armid.kinematics.rotations import inverse, rigid, rotation_exp
from armid.kinematics.words import Term
from armid.parameters.space import OwnerKind
from armid.robot.quaternion import quaternion_from_matrix
from armid.robot.robot import JointKind, Robot

POSITION_NOISE = 5e-5
ORIENTATION_NOISE = 1e-4


def some_frame(rng, reach):
    return rigid(rotation_exp(rng.normal(size=3)), reach * rng.normal(size=3))


@dataclass
class MeasuredArm:
    """The true arm behind a description; deviations are a fraction of the default tolerances."""

    robot: Robot
    rng: np.random.Generator
    terms: frozenset = frozenset({Term.OFFSET})
    size: float = 0.2
    tool: float = 0.1
    span: float = 2.0
    Z: np.ndarray = field(init=False)
    X: np.ndarray = field(init=False)

    def __post_init__(self):
        rng = self.rng
        self.Z, self.X = some_frame(rng, 1.0), some_frame(rng, self.tool)
        self.model = kinematic_model(
            self.robot,
            ErrorModel(terms=self.terms),
            setups={"sensor": FrameModel.around(self.Z, ALL, outside=True)},
            targets={"tool": FrameModel.around(self.X, ALL, outside=False)},
        )
        arm = self.model.owned(OwnerKind.LINK, OwnerKind.JOINT)
        self.values = np.where(arm, self.size * self.model.tolerances * rng.normal(size=len(arm)), 0.0)

    def configurations(self, count):
        lower, upper = self.robot.limit("lower"), self.robot.limit("upper")
        reach = np.array([self.span if j.kind is JointKind.REVOLUTE else 0.3 for j in self.robot.joints])
        lower, upper = np.maximum(lower, -reach), np.minimum(upper, reach)
        return self.rng.uniform(lower, upper, (count, self.robot.n_joints))

    def flange(self, q):
        """T_base_link of the last link of the true arm."""
        return (
            inverse(self.Z)
            @ predicted_poses(self.model, self.values, q, setup="sensor", target="tool")
            @ inverse(self.X)
        )

    def tool_in_base(self, q):
        return self.flange(q) @ self.X

    def position_jacobian(self, q):
        """Of the tool in the base, by central differences, shape [n, 3, n_joints]."""
        h = 1e-6
        moved = [[self.tool_in_base(q + s * h * e)[:, :3, 3] for s in (1, -1)] for e in np.eye(q.shape[1])]
        return np.stack([(a - b) / (2 * h) for a, b in moved], axis=-1)

    def noisy(self, T, *, position=POSITION_NOISE, orientation=ORIENTATION_NOISE):
        T = np.array(T)
        n = len(T)
        T[:, :3, 3] += position * self.rng.normal(size=(n, 3))
        T[:, :3, :3] = rotation_exp(orientation * self.rng.normal(size=(n, 3))) @ T[:, :3, :3]
        return T

    def joints(self, q):
        return {f"q{i + 1}": q[:, i] for i in range(q.shape[1])}

    def touching(self, q, constraint):
        """Configurations near q at which `constraint(positions of the tool in the base)` [n, k] vanishes."""
        for _ in range(40):
            p, J = self.tool_in_base(q)[:, :3, 3], self.position_jacobian(q)
            r = constraint(p)
            if np.abs(r).max() < 1e-10:
                break
            gradient = np.stack([(constraint(p + 1e-6 * e) - r) / 1e-6 for e in np.eye(3)], axis=-1)
            q = q - (np.linalg.pinv(gradient @ J, rcond=1e-3) @ r[..., None])[..., 0]
        good = np.abs(constraint(self.tool_in_base(q)[:, :3, 3])).max(axis=1) < 1e-9
        return q[good & (np.abs(q).max(axis=1) < 6.0)]


def pose_columns(T, suffix=""):
    return position_columns(T[:, :3, 3], suffix) | {
        f"q{c}{suffix}": x for c, x in zip("wxyz", quaternion_from_matrix(T[:, :3, :3]).T, strict=True)
    }


def position_columns(p, suffix=""):
    return {f"{c}{suffix}": p[:, i] for i, c in enumerate("xyz")}


def write_table(path, *parts):
    """Rows of several dicts of columns, one below the other; cells a part does not have stay empty."""
    header = list(dict.fromkeys(name for part in parts for name in part))
    with path.open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(header)
        for part in parts:
            columns = {name: np.asarray(values) for name, values in part.items()}
            for i in range(len(next(iter(columns.values())))):
                cells = [columns[name][i] if name in columns else "" for name in header]
                writer.writerow([repr(float(x)) if isinstance(x, float) else str(x) for x in cells])
    return path
