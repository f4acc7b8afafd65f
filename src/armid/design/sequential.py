"""Locked-joint experiment plans: from the tip to the base, one more joint moves in each.

[Khosla1985] section 3.1: with joints 1..i-1 locked, the torque of joint i contains only links i..n, and those beyond i are
known from the experiments before. Each experiment is an excitation of the arm that is left, standing on the locked ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.design.motion import FILE_RATE_HZ, Design
from armid.design.optimise import described_settings, design_excitation, robot_file
from armid.design.search import Budget
from armid.design.statement import DesignSettings, finite_vector
from armid.errors import InputError
from armid.identifiability.errors import NothingIdentifiableError
from armid.identifiability.structure import structural_base
from armid.motions.fourier import FourierTrajectory
from armid.motions.limits import InfeasibleError, motion_limits
from armid.motions.sample_table import save_csv
from armid.motions.trajectory_files import save_trajectory
from armid.notes import Note
from armid.outcome import Check, Outcome, Provenance
from armid.page import Table
from armid.robot.elementary import product
from armid.robot.robot import Frame, Robot
from armid.rows.torque import TorqueRows
from armid.scene.cell import Cell
from armid.scene.scene import build_scene
from armid.unfinished import UnfinishedWork

_POSES_TRIED = 200
"""Random poses of the locked joints among which the one that shows most parameters is taken."""


@dataclass(frozen=True, eq=False)
class LockedStage:
    """One experiment of the plan.

    Args:
        joint: the first joint that moves, 0-based.
        locked: positions of the joints before it, shape [joint].
        design: of the arm that is left.
        trajectory: of all joints, the locked ones standing still.
    """

    joint: int
    locked: FloatArray
    design: Design
    trajectory: FourierTrajectory


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SequentialDesign(Outcome):
    """A plan of locked-joint experiments, in the order they are run.

    Args:
        robot: the whole arm.
        stages: from the tip to the base.
        provenance: what it came from.
    """

    _page = "armid.report.design:sequential_report"

    robot: Robot
    stages: tuple[LockedStage, ...]
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def notes(self) -> tuple[Note, ...]:  # type: ignore[override]
        return _stage_notes(self.stages)

    @property
    def checks(self) -> tuple[Check, ...]:  # type: ignore[override]
        """Those of every experiment, each with its number as subject."""
        return tuple(
            replace(check, subject=f"experiment {k}", message=f"experiment {k}: {check.message}")
            for k, stage in enumerate(self.stages, start=1)
            for check in stage.design.checks
        )

    def _heading(self) -> str:
        seconds = sum(stage.trajectory.duration for stage in self.stages)
        return f"{self.robot.name}: {len(self.stages)} experiments with locked joints, {seconds:.1f} s"

    def _tables(self) -> tuple[Table, ...]:
        header = ("experiment", "moves from", "locked at [rad or m]", "base parameters", "condition number")
        rows = tuple(
            (
                k,
                stage.trajectory.joint_names[stage.joint],
                ", ".join(f"{q:.3f}" for q in stage.locked) or "none",
                len(stage.design.base),
                stage.design.condition_number,
            )
            for k, stage in enumerate(self.stages, start=1)
        )
        return (Table(header, rows),)

    def as_dict(self) -> dict[str, Any]:
        experiments = [
            stage.design.as_dict() | {"locked": stage.locked.tolist(), "first_moving_joint": stage.joint + 1}
            for stage in self.stages
        ]
        designs = [stage.design for stage in self.stages]
        kinds = designs[0].limit_usage
        return {
            "condition_number": max(design.condition_number for design in designs),
            "base_parameters": max(len(design.base) for design in designs),
            "feasible": all(design.certificate.feasible for design in designs),
            "limit_usage": {kind: max(design.limit_usage[kind] for design in designs) for kind in kinds},
            "seconds": sum(design.search.seconds for design in designs),
            "verdict": str(self.verdict),
            "reasons": list(self.reasons),
            "experiments": experiments,
            "notes": [note.as_dict() for note in self.notes],
        }

    def save(self, folder: str | Path, *, rate_hz: float = FILE_RATE_HZ) -> tuple[Path, ...]:
        """Writes `experiment1.json` (coefficients) and `experiment1.csv` (samples), and so on.

        Args:
            folder: created when missing.
            rate_hz: of the samples.
        """
        files: list[Path] = []
        for k, stage in enumerate(self.stages, start=1):
            place = Path(folder) / f"experiment{k}"
            files.append(save_trajectory(stage.trajectory, place.with_suffix(".json"), robot=stage.design.robot.name))
            files.append(save_csv(stage.trajectory, place.with_suffix(".csv"), rate_hz=rate_hz, robot=self.robot))
        return tuple(files)


def design_sequential(
    robot: Robot,
    settings: DesignSettings,
    *,
    cell: Cell | None = None,
    budget: Budget | None = None,
    seed: int = 0,
    kept: UnfinishedWork | None = None,
) -> SequentialDesign:
    """Experiments from the tip to the base.

    Args:
        robot: without coupling between drives.
        settings: for every experiment; only Fourier series.
        cell: obstacles and floor; regions are not carried over.
        budget: shared by all experiments.
        seed: of everything random.
        kept: where finished starts are kept, and found again after a kill.
    """
    if robot.coupling is not None:
        raise InputError("sequential", f"{robot.name} couples its drives", "locking one drive would not lock one joint")
    if settings.knots is not None or settings.home is not None or settings.goal_reserve:
        raise InputError("sequential", "splines, a home pose or goals", "plans consist of bare Fourier series")
    total = budget or Budget()
    share = replace(total, seconds=None if total.seconds is None else total.seconds / robot.n_joints)
    rng = np.random.default_rng([seed, 77])
    stages = []
    for joint in range(robot.n_joints - 1, -1, -1):
        locked = _locked_pose(robot, joint, settings, cell, rng)
        stages.append(_stage(robot, joint, locked, settings, cell, share, seed, kept))
    provenance = Provenance(inputs=(robot_file(robot),), settings=described_settings(settings), seed=seed)
    if kept is not None:
        first = stages[0]
        stages[0] = replace(first, design=replace(first.design, notes=(*first.design.notes, *kept.notes)))
    return SequentialDesign(robot=robot, stages=tuple(stages), provenance=provenance)


def _stage(
    robot: Robot,
    joint: int,
    locked: FloatArray,
    settings: DesignSettings,
    cell: Cell | None,
    budget: Budget,
    seed: int,
    kept: UnfinishedWork | None,
) -> LockedStage:
    """The experiment in which the joints from `joint` on move."""
    arm = _remaining_arm(robot, joint, locked)
    start = None if settings.start is None else finite_vector("start", settings.start, robot.n_joints)[joint:]
    own = replace(settings, start=start, noise=None)
    around = _cell_around(robot, joint, locked, cell)
    name = f"search from {robot.joint_names[joint]}"
    design = design_excitation(arm, own, cell=around, budget=budget, seed=seed, kept=kept, name=name)
    part = design.excitation
    assert isinstance(part, FourierTrajectory)
    still = np.zeros((joint, part.n_harmonics))
    full = FourierTrajectory(
        joint_names=robot.joint_names,
        period=part.period,
        offset=np.concatenate([locked, part.offset]),
        sine=np.vstack([still, part.sine]),
        cosine=np.vstack([still, part.cosine]),
        repetitions=settings.repetitions,
    )
    return LockedStage(joint, locked, design, full)


def _remaining_arm(robot: Robot, joint: int, locked: FloatArray) -> Robot:
    """The joints from `joint` on, standing where the locked ones hold them; gravity turned accordingly."""
    T = _locked_placement(robot, joint, locked)
    base = robot.link_names[joint - 1] if joint else robot.base
    frames = tuple(replace(f, link=f.link - joint) for f in robot.frames if f.link >= joint)
    return Robot(
        name=f"{robot.name} from {robot.joint_names[joint]}",
        joints=robot.joints[joint:],
        links=robot.links[joint:],
        frames=frames or (Frame("tip", robot.n_joints - joint),),
        gravity=T[:3, :3].T @ robot.gravity,
        base=base,
        geometry=robot.links[joint - 1].geometry if joint else robot.geometry,
        source=robot.source,
    )


def _locked_placement(robot: Robot, joint: int, locked: FloatArray) -> FloatArray:
    """T_base_link of the last locked link, shape [4, 4]."""
    T = np.eye(4)
    for k in range(joint):
        T = T @ product(robot.joints[k].transforms, float(locked[k]))
    return T


def _cell_around(robot: Robot, joint: int, locked: FloatArray, cell: Cell | None) -> Cell | None:
    """Obstacles, and the locked links, seen from the last locked link. A floor becomes a large box below it."""
    from armid.robot.geometry import Box, Capsule, Geometry
    from armid.robot.shapes import pose_along
    from armid.scene.capsules import link_capsules
    from armid.scene.cell import Obstacle

    space = cell or Cell()
    T = np.linalg.inv(_locked_placement(robot, joint, locked))
    solids = [Obstacle(o.name, Geometry(o.geometry.shape, T @ o.geometry.T_link_shape)) for o in space.obstacles]
    if space.floor is not None:
        below = np.eye(4)
        below[2, 3] = space.floor - 2.0
        solids.append(Obstacle("floor", Geometry(Box((20.0, 20.0, 4.0)), T @ below)))
    for capsule in link_capsules(robot)[0]:
        # The last locked link is the base of the arm that is left, and brings its own shapes.
        if capsule.link < joint:
            to_world = _locked_placement(robot, capsule.link, locked[: capsule.link])
            ends = [(T @ to_world @ np.append(p, 1.0))[:3] for p in (capsule.start, capsule.end)]
            length = float(np.linalg.norm(ends[1] - ends[0]))
            place = pose_along(*ends) if length > 0.0 else _at(ends[0])
            solids.append(Obstacle(capsule.name, Geometry(Capsule(capsule.radius, max(length, 1e-6)), place)))
    return Cell(obstacles=tuple(solids), regions=(), floor=None, margin=space.margin, description=space.description)


def _at(point: FloatArray) -> FloatArray:
    T = np.eye(4)
    T[:3, 3] = point
    return T


def _locked_pose(
    robot: Robot, joint: int, settings: DesignSettings, cell: Cell | None, rng: np.random.Generator
) -> FloatArray:
    """A free pose of the joints before `joint` in which the rest shows the most parameters; shape [joint].

    Which parameters gravity shows depends on how the remaining axes stand to it: about a vertical axis, none.
    """
    limits, _ = motion_limits(robot)
    if settings.start is not None:
        return finite_vector("start", settings.start, robot.n_joints)[:joint]
    scene = build_scene(robot, cell, self_collision=settings.self_collision)
    poses = rng.uniform(limits.within(0.3).lower, limits.within(0.3).upper, size=(_POSES_TRIED, robot.n_joints))
    poses[0] = limits.middle
    free = poses[scene.is_free(poses)]
    if not len(free):
        raise InfeasibleError(
            f"none of {_POSES_TRIED} poses is free of collision; {scene.worst(limits.middle)[1]} in the middle one"
        )
    counts = [_count_shown(robot, joint, pose[:joint], settings) for pose in free[:20]]
    best: FloatArray = free[int(np.argmax(counts))][:joint]
    return best


def _count_shown(robot: Robot, joint: int, locked: FloatArray, settings: DesignSettings) -> int:
    """How many base parameters the remaining arm has."""
    arm = _remaining_arm(robot, joint, locked)
    try:
        return len(structural_base(TorqueRows(arm, settings.effects)))
    except NothingIdentifiableError:
        return 0


def _stage_notes(stages: tuple[LockedStage, ...]) -> tuple[Note, ...]:
    """All notes of all experiments, each once."""
    seen: dict[str, Note] = {}
    for one in stages:
        for note in one.design.notes:
            seen.setdefault(note.message, note)
    return tuple(seen.values())
