"""The noun of measurement poses: where to measure, in which order, and how well that determines the parameters."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.design.pose_candidates import AxisPoses, PoseMethod, Purpose
from armid.documents import new_file, plain, read_text, write_json
from armid.errors import InputError
from armid.identifiability.base import BaseParameters
from armid.identifiability.rank import STRUCTURAL_TOLERANCE
from armid.motions.trajectory_files import save_trajectory
from armid.motions.transition import TransitionTrajectory
from armid.notes import Note
from armid.outcome import Check, Outcome, Provenance
from armid.page import Table
from armid.robot.robot import Robot

_FORMAT = "armid-poses"
_VERSION = 1

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PoseDesign(Outcome):
    """Poses to measure at, in the order to visit them.

    Args:
        robot: the arm.
        purpose: what is measured.
        method: how they were chosen.
        poses: [rad or m], shape [n_poses, n_joints].
        channels: which channels are measured at each, shape [n_poses, n_channels] of booleans.
        channel_names: of its columns.
        base: the parameters they determine.
        condition_number: 2-norm, SI units.
        condition_number_scaled: with columns scaled to unit norm.
        initial_condition_number: of as many random free poses, the median of several draws.
        random_condition_numbers: of those draws, in order, all under the same limits and visibility; empty for axis inertias.
        observability: O1..O5.
        methods: condition number reached by each method tried.
        axes: per axis, for axis inertias.
        generated, free: size of the pool before and after the filter.
        transitions: a free motion through all poses; None when not asked for.
        stops: way-point of each pose in it.
        notes: what the reader must know.
        provenance: what it came from.
    """

    _page = "armid.report.poses:poses_report"
    _loads = True

    robot: Robot
    purpose: Purpose
    method: PoseMethod
    poses: FloatArray
    channels: npt.NDArray[np.bool_]
    channel_names: tuple[str, ...]
    base: BaseParameters
    condition_number: float
    condition_number_scaled: float
    initial_condition_number: float
    random_condition_numbers: tuple[float, ...] = ()
    observability: dict[str, float]
    methods: dict[str, float]
    axes: tuple[AxisPoses, ...]
    generated: int
    free: int
    transitions: TransitionTrajectory | None
    stops: tuple[int, ...]
    notes: tuple[Note, ...]
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def checks(self) -> tuple[Check, ...]:  # type: ignore[override]
        """Whether the poses show every parameter, and better than random ones would."""
        least = 1.0 / self.condition_number_scaled
        rank = Check(
            code="rank",
            passed=least > STRUCTURAL_TOLERANCE,
            value=least,
            limit=STRUCTURAL_TOLERANCE,
            message=f"the poses show all {len(self.base)} base parameters"
            if least > STRUCTURAL_TOLERANCE
            else f"{len(self.poses)} poses do not show all {len(self.base)} base parameters; take more of them",
        )
        if self.method is PoseMethod.PREDICTION:  # improves the error of predictions, not the condition number
            return (rank,)
        return rank, self._gain_check()

    def _gain_check(self) -> Check:
        """Whether the choice beats the best of the random draws, under the same limits and visibility."""
        draws = self.random_condition_numbers
        gain = (draws[0] if draws else self.initial_condition_number) / self.condition_number
        passed = gain >= 1.0 - _ROUNDING
        random = f"the best of {len(draws)} random draws" if draws else "as many random poses"
        return Check(
            code="better-than-random",
            passed=passed,
            value=gain,
            limit=1.0,
            message=f"the choice beats {random} under the same limits and visibility"
            if gain > 1.0 + _ROUNDING
            else f"the choice is no better than {random} under the same limits and visibility: nothing better was found",
            decisive=False,
        )

    @property
    def measured(self) -> tuple[tuple[str, ...], ...]:
        """Names of the channels measured at each pose."""
        return tuple(
            tuple(name for name, on in zip(self.channel_names, row, strict=True) if on) for row in self.channels
        )

    def _heading(self) -> str:
        return (
            f"{self.robot.name}, {self.purpose}: {len(self.poses)} poses for {len(self.base)} base parameters, condition "
            f"number {self.condition_number:.4g} (random poses {self.initial_condition_number:.4g})"
        )

    def _tables(self) -> tuple[Table, ...]:
        methods = Table(
            ("method", "condition number"),
            tuple(self.methods.items()),
            caption=f"{self.free} of {self.generated} generated poses are free",
        )
        merit = Table(
            tuple(self.observability), (tuple(self.observability.values()),), caption="Observability", digits=3
        )
        return (methods, *((_axis_table(self.axes),) if self.axes else ()), merit)

    def as_dict(self) -> dict[str, Any]:
        out: dict[str, Any] = plain(
            {
                "robot": self.robot.name,
                "purpose": self.purpose,
                "condition_number": self.condition_number,
                "initial_condition_number": self.initial_condition_number,
                "random_condition_numbers": self.random_condition_numbers,
                "observability": self.observability,
                "base_parameters": len(self.base),
                "poses": self.poses,
                "methods": self.methods,
                "axes": [_axis_dict(axis) for axis in self.axes],
                "generated": self.generated,
                "free": self.free,
                "travel_seconds": None if self.transitions is None else self.transitions.duration,
                "verdict": self.verdict,
                "reasons": self.reasons,
                "notes": [note.as_dict() for note in self.notes],
            }
        )
        return out

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes `poses.csv` in the order of the visit, `poses.json` with everything, and `transitions.json`, the motion."""
        place = Path(folder)
        files = [place / "poses.csv"]
        with new_file(files[0]) as file:
            header = ",".join(self.robot.joint_names)
            np.savetxt(file, self.poses, fmt="%.9g", delimiter=",", header=header, comments="")
        details = {
            "format": _FORMAT,
            "version": _VERSION,
            "robot": self.robot.name,
            "purpose": self.purpose,
            "joint_names": self.robot.joint_names,
            "poses": self.poses,
            "measured": self.measured,
            "methods": self.methods,
            "base_parameters": self.base.names,
            "stops": self.stops,
        }
        files.append(write_json(place / "poses.json", details, indent=None))
        if self.transitions is not None:
            files.append(save_trajectory(self.transitions, place / "transitions.json", robot=self.robot.name))
        return tuple(files)


_WHAT = "a trajectory of `armid design` or poses of `armid poses`"


def load_poses(path: Path, robot: Robot) -> FloatArray | None:
    """Poses [rad or m] from either file of `PoseDesign.save`, shape [n_poses, n_joints]; None when it is something else.

    Raises:
        InputError: not text, or rows that are no pose of this robot.
    """
    text = read_text(path, _WHAT)
    try:
        if path.suffix == ".csv":
            head, *lines = text.splitlines() or [""]
            if head.split(",") != list(robot.joint_names):
                return None
            return _checked_poses([[float(x) for x in line.split(",")] for line in lines if line.strip()], robot, path)
        values = json.loads(text)
    except json.JSONDecodeError:
        return None
    except ValueError as problem:
        raise InputError(path, f"not a table of numbers: {problem}") from None
    if not isinstance(values, dict) or values.get("format") != _FORMAT:
        return None
    return _checked_poses(values.get("poses"), robot, path)


def _checked_poses(poses: Any, robot: Robot, path: Path) -> FloatArray:
    """At least one row of finite numbers, one for each joint."""
    rows = poses if isinstance(poses, list) else []
    good = [
        row
        for row in rows
        if isinstance(row, list)
        and len(row) == robot.n_joints
        and all(isinstance(x, int | float) and isfinite(x) for x in row)
    ]
    if not rows or len(good) < len(rows):
        raise InputError(
            path, f"{len(rows) - len(good)} of {len(rows)} rows are no pose", f"{robot.n_joints} finite numbers each"
        )
    return np.array(good, dtype=np.float64)


def _axis_dict(axis: AxisPoses) -> dict[str, Any]:
    names = {
        "target_condition": "target_condition_number",
        "rounded_condition": "rounded_condition_number",
        "initial_condition": "initial_condition_number",
        "condition": "condition_number",
    }
    return {names.get(name, name): value for name, value in asdict(axis).items()}


def _axis_table(axes: tuple[AxisPoses, ...]) -> Table:
    """What the target matrix gave for each axis, as table 6.2 of [RWTH2021] lists it."""
    rows = tuple(
        (
            k,
            axis.base_parameters,
            axis.target_condition,
            axis.rounded_condition,
            axis.initial_condition,
            axis.condition,
            axis.penalty,
            f"{axis.free}/{axis.generated}",
        )
        for k, axis in enumerate(axes, start=1)
    )
    return Table(
        ("axis", "parameters", "ideal", "rounded", "random", "rated", "penalty", "free"),
        rows,
        caption="Condition numbers; rounded: of the ideal to one decimal, as [RWTH2021] does",
    )
