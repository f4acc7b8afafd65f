"""Measurement poses for kinematic calibration, axis inertias and gravity: the function behind `armid poses`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy.typing as npt

from armid.design.asked import joint_values, number_list
from armid.design.pose_candidates import PoseMethod, PoseSettings, Purpose
from armid.design.pose_design import PoseDesign
from armid.design.pose_list import read_pose_list
from armid.design.pose_pool import Spread
from armid.design.pose_search import design_poses, source_of
from armid.documents import plain
from armid.motions.limits_file import with_limits
from armid.motions.trajectory_files import input_of
from armid.outcome import InputFile, Provenance
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.rows.pose import ChainErrors
from armid.scene.cell import Cell, cell_of
from armid.threads import one_blas_thread
from armid.words import choice, whole_number


@one_blas_thread
def choose_poses(
    robot: str | Path | Robot,
    purpose: str | Purpose,
    *,
    count: int | None = None,
    frame: str | None = None,
    errors: str | ChainErrors | None = None,
    cell: str | Path | Cell | None = None,
    method: str | PoseMethod = PoseMethod.BEST,
    spread: str | Spread = Spread.RANDOM,
    pool: str | int | Sequence[int] | None = None,
    starts: int = 4,
    margin: float = 0.02,
    self_collision: bool = True,
    reference: str | npt.ArrayLike | None = None,
    transitions: bool = True,
    from_file: str | Path | None = None,
    limits_file: str | Path | None = None,
    seed: int = 0,
    base: str | None = None,
    tip: str | None = None,
) -> PoseDesign:
    """Measurement poses that determine the parameters well, within limits, cell and visibility.

    Args:
        robot: URDF or YAML path, catalogue name, or a robot.
        purpose: calibration, axis-inertia or gravity.
        count: of poses; 17 for calibration and 30 for gravity when None. For axis inertias the target matrix decides it,
            except for the method `prediction`, which counts measurements of one axis each.
        frame: tracked by the instrument; the tip when None. Calibration only.
        errors: which constants are in question: described or complete; what the description calls for when None.
            Calibration only.
        cell: file, name, or a cell: obstacles, and regions the tracked frame must stay in.
        method: best, target ([RWTH2021]), exchange, tabu, multi-start or prediction.
        spread: of the pool: random, uniform or weighted.
        pool: poses generated; per axis with commas for axis inertias; values per joint when not random.
        starts: of exchanges and descents.
        margin: fraction of every position limit left unused.
        self_collision: whether the arm keeps clear of itself.
        reference: pose of the joints that do not matter [rad or m], shape [n_joints]; found when None. Axis inertias only.
        transitions: whether ways between the poses are sought and checked.
        from_file: the user's own list of joint positions, to choose from (docs/formats.md); poses are generated when None.
        limits_file: limits the description does not give, or narrower ones (docs/formats.md).
        seed: of everything random.
        base, tip: links of a URDF where the arm begins and ends.

    Raises:
        InfeasibleError: too few poses keep the clearances; says which one fails most often.
        InputError: something asked for that cannot be.
    """
    wanted = choice("purpose", purpose, Purpose)
    settings = PoseSettings(
        count=None if count is None else whole_number("count", count),
        frame=frame,
        errors=None if errors is None else choice("errors", errors, ChainErrors),
        method=choice("method", method, PoseMethod),
        spread=choice("spread", spread, Spread),
        pool=None if pool is None else tuple(int(x) for x in number_list("pool", pool)),
        starts=whole_number("starts", starts),
        margin=margin,
        self_collision=self_collision,
        transitions=transitions,
    )
    arm = robot if isinstance(robot, Robot) else load_robot(robot, base=base, tip=tip)
    arm = with_limits(arm, limits_file)
    settings = replace(settings, reference=joint_values("reference", reference, arm.n_joints))
    listed = None if from_file is None else read_pose_list(from_file, arm)
    found = design_poses(arm, wanted, settings, cell=cell_of(cell), listed=listed, seed=seed)
    inputs = [InputFile(arm.source.path, arm.source.sha256, "robot")]
    inputs += [] if from_file is None else input_of(from_file, "poses")
    inputs += [] if limits_file is None else input_of(limits_file, "limits")
    return replace(found, provenance=Provenance(inputs=tuple(inputs), settings=plain(asdict(settings)), seed=seed))


__all__ = ["PoseDesign", "PoseMethod", "PoseSettings", "Purpose", "choose_poses", "design_poses", "source_of"]
