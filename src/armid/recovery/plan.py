"""Poses to read a controller's model at."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from armid.arrays import FloatArray
from armid.documents import new_file
from armid.errors import InputError
from armid.identifiability.structure import structural_base
from armid.identification.inputs import RobotInput, files_of, robot_of
from armid.information.accumulate import accumulate
from armid.information.information import total
from armid.information.solve import reduced, solve_factor
from armid.information.status import EstimationError
from armid.outcome import Check, Outcome, Provenance
from armid.page import Table
from armid.robot.robot import Robot
from armid.rows.gravity import GravityRows
from armid.rows.inertia_matrix import InertiaMatrixRows
from armid.scene.scene import build_scene
from armid.threads import one_blas_thread

_ROUNDS = 30
"""Draws of as many poses as wanted: an arm that is free in one of thirty random poses still gets its poses."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PosesToRead(Outcome):
    """Poses at which a controller's gravity vector and inertia matrix are to be read.

    Args:
        robot: the arm.
        poses: [rad or m], shape [n_poses, n_joints].
        condition_number_scaled: of all base parameters from readings at these poses; infinite when they do not determine them.
        checks: what they were held against.
        provenance: robot and seed.
    """

    _page: ClassVar[str] = "armid.report.recovery:poses_page"

    robot: Robot
    poses: FloatArray
    condition_number_scaled: float
    checks: tuple[Check, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    def as_dict(self) -> dict[str, Any]:
        return {
            "poses": len(self.poses),
            "condition_number_scaled": self.condition_number_scaled,
            "verdict": self.verdict,
            "reasons": self.reasons,
            "checks": [check.as_dict() for check in self.checks],
        }

    def _heading(self) -> str:
        return f"{self.robot.name}: {len(self.poses)} poses to read its controller at"

    def _tables(self) -> tuple[Table, ...]:
        low, high = self.poses.min(axis=0), self.poses.max(axis=0)
        rows = tuple((n, float(a), float(b)) for n, a, b in zip(self.robot.joint_names, low, high, strict=True))
        return (Table(("joint", "from rad or m", "to"), rows),)

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes `postures.csv`."""
        path = Path(folder) / "postures.csv"
        header = ",".join(f"q_{name}" for name in self.robot.joint_names)
        with new_file(path, text=True) as file:
            np.savetxt(file, self.poses, delimiter=",", header=header, comments="")
        return (path,)


@one_blas_thread
def plan_poses(
    robot: RobotInput, count: int, *, seed: int = 0, base: str | None = None, tip: str | None = None
) -> PosesToRead:
    """Random poses within the limits in which no links touch, [Gaz2014] sec. VI.

    Args:
        robot: the arm, or where its description is.
        count: how many.
        seed: of chance.
        base, tip: links of a branched URDF between which the arm lies.

    Raises:
        InputError: a joint without limits, or an arm that touches itself in almost every pose.
    """
    arm = robot_of(robot, base=base, tip=tip)
    poses = random_poses(arm, count, np.random.default_rng(seed), free=True)
    condition = _condition(arm, poses)
    check = Check(
        code="poses-suffice",
        passed=isfinite(condition),
        value=condition,
        limit=float("inf"),
        message=f"{count} poses do not determine all base parameters: read at more"
        if not isfinite(condition)
        else "the poses determine all base parameters",
    )
    provenance = Provenance(inputs=files_of(arm), settings={"poses": count}, seed=seed)
    return PosesToRead(
        robot=arm, poses=poses, condition_number_scaled=condition, checks=(check,), provenance=provenance
    )


def _condition(robot: Robot, poses: FloatArray) -> float:
    """Scaled condition number of gravity vectors and inertia matrices read at the poses; infinite when they do not suffice."""
    sources = (GravityRows(robot), InertiaMatrixRows(robot))
    base = structural_base(*sources, what="controller data")
    rows = total(accumulate(source, poses, np.zeros((len(poses), len(source.channels)))) for source in sources)
    try:
        return solve_factor(reduced(rows, base).stacked(), base.names).condition_number_scaled
    except EstimationError:
        return float("inf")


def random_poses(robot: Robot, count: int, rng: np.random.Generator, *, free: bool = False) -> FloatArray:
    """Uniform within the position limits, shape [count, n_joints]; [Gaz2014] sec. VI.

    Args:
        robot: its limits.
        count: how many.
        rng: chance.
        free: leave out poses in which links touch, by the shapes of the description.

    Raises:
        InputError: a joint without limits, or an arm that touches itself in almost every pose.
    """
    lower, upper = robot.limit("lower"), robot.limit("upper")
    if not (np.isfinite(lower) & np.isfinite(upper)).all():
        name = robot.joint_names[int(np.argmin(np.isfinite(lower) & np.isfinite(upper)))]
        raise InputError(
            f"joint {name!r}", "has no position limits to draw poses from", "add limits to the description"
        )
    if not free:
        return rng.uniform(lower, upper, size=(count, robot.n_joints))
    scene = build_scene(robot, None, self_collision=True)
    kept: list[FloatArray] = []
    for _ in range(_ROUNDS):
        poses = rng.uniform(lower, upper, size=(count, robot.n_joints))
        kept.append(poses[scene.is_free(poses)] if len(scene) else poses)
        if sum(map(len, kept)) >= count:
            return np.concatenate(kept)[:count]
    raise InputError(robot.name, f"links touch in almost all of {_ROUNDS * count} random poses", "check its shapes")
