"""Lists of targets for a controller that only knows the nominal arm."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from armid.arrays import FloatArray
from armid.calibration.poses_table import PosesMapping, joint_columns, read_table, scale
from armid.calibration.read import read_poses
from armid.errors import InputError
from armid.kinematics.measurement import Observed
from armid.kinematics.rotations import rigid
from armid.robot.robot import JointKind, Robot


@dataclass(frozen=True, eq=False)
class Targets:
    """Where a nominal arm would be sent.

    Args:
        q: joint positions of the nominal arm [rad or m], shape [n, n_joints].
        poses: T_base_tip to reach, shape [n, 4, 4]; None to reach what the nominal arm would at q.
    """

    q: FloatArray
    poses: FloatArray | None = None


def read_targets(path: Path, robot: Robot, *, poses: bool = False) -> Targets:
    """Joint targets of a nominal arm, one per line.

    Args:
        path: columns as in a poses file (docs/formats.md): joint positions by name or `q1..qn`; with `poses` also position
            and orientation of the robot's tip in its base frame.
        robot: the arm.
        poses: read the poses to reach too. A file of measured poses is in a sensor's frame, so this is never guessed.

    Raises:
        InputError: naming the file, line and column; a position without an orientation is no pose.
    """
    table = read_table(path)
    slides = [joint.kind is JointKind.PRISMATIC for joint in robot.joints]
    names = joint_columns(table, robot.joint_names, PosesMapping())
    q = np.column_stack(
        [
            table.numbers(name) * scale(table, name, PosesMapping(), length=slide)
            for name, slide in zip(names, slides, strict=True)
        ]
    )
    if not np.isfinite(q).all():
        line = table.lines[int(np.flatnonzero(~np.isfinite(q).all(axis=1))[0])]
        raise InputError(f"{table.where}, line {line}", "a joint position is missing or not finite")
    if not poses:
        return Targets(q)
    (seen, *more) = read_poses(path, robot.joint_names, prismatic=slides).observations
    if more or seen.quantity is not Observed.POSE or len(seen) != len(q):
        raise InputError(path, "positions that are no poses", "every line needs x, y, z and an orientation")
    assert seen.rotation is not None
    assert seen.position is not None
    wanted = np.array([rigid(R, p) for R, p in zip(seen.rotation, seen.position, strict=True)])
    return Targets(q, wanted)
