"""`plan_sweep`: a campaign of frequency responses, and how good it will be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from armid.arrays import samples
from armid.errors import ArmidError, UnknownNameError
from armid.identification.inputs import RobotInput, files_of, robot_of
from armid.motions.postures import load_postures
from armid.motions.sample_table import save_csv
from armid.motions.sweep import Signal
from armid.notes import Note, Severity
from armid.outcome import Check, Outcome, Provenance
from armid.page import Table
from armid.response.axis_inertia import ExpectedAccuracy, expected_accuracy
from armid.response.plan import PlannedSweep, Site, SweepSettings, all_axes, sites_from, sweep_plan
from armid.robot.robot import Robot
from armid.scene import cell as cells
from armid.scene.cell import Cell, load_cell
from armid.scene.scene import build_scene
from armid.threads import one_blas_thread


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SweepCampaign(Outcome):
    """Motions to record, one axis at one pose each.

    Args:
        robot: the arm.
        sweeps: the motions.
        rate_hz: of the recording.
        accuracy: of predictions from all of them; None when they do not determine every parameter.
        checks: what the campaign was held against.
        notes: what a reader must know.
        provenance: inputs and settings.
    """

    _page: ClassVar[str] = "armid.report.response:campaign_page"

    robot: Robot
    sweeps: tuple[PlannedSweep, ...]
    rate_hz: float
    accuracy: ExpectedAccuracy | None
    checks: tuple[Check, ...] = ()
    notes: tuple[Note, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def minutes(self) -> float:
        """Of motion, without the ways between poses."""
        return sum(sweep.motion.duration for sweep in self.sweeps) / 60.0

    def as_dict(self) -> dict[str, Any]:
        return {
            "axes": [],
            "minutes": self.minutes,
            "expected_accuracy": [
                {"axis": name, "relative_deviation": typical, "worst_relative_deviation": worst}
                for name, typical, worst in self.accuracy_rows()
            ],
            "verdict": self.verdict,
            "reasons": self.reasons,
            "checks": [check.as_dict() for check in self.checks],
            "notes": [note.as_dict() for note in self.notes],
        }

    def accuracy_rows(self) -> list[tuple[str, float, float]]:
        """Per axis: how well its inertia will be predicted, typically and at the worst pose, relative."""
        if self.accuracy is None:
            return []
        rows = zip(self.robot.joint_names, self.accuracy.typical, self.accuracy.worst, strict=True)
        return [(name, float(typical), float(worst)) for name, typical, worst in rows]

    def _heading(self) -> str:
        return (
            f"{self.robot.name}: {len(self.sweeps)} motions, {self.minutes:.1f} minutes without the ways between them"
        )

    def _tables(self) -> tuple[Table, ...]:
        return (motions_table(self), *(accuracy_tables(self)))

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes one CSV per motion."""
        place = Path(folder)
        return tuple(
            save_csv(s.motion, place / f"{s.name}.csv", rate_hz=self.rate_hz, robot=self.robot) for s in self.sweeps
        )


def motions_table(campaign: SweepCampaign) -> Table:
    """How many motions every axis has, and how well each measures."""
    rows = []
    for k, name in enumerate(campaign.robot.joint_names):
        own = [sweep for sweep in campaign.sweeps if sweep.motion.axis == k]
        if own:
            rows.append(
                (name, len(own), sum(s.motion.duration for s in own), float(np.median([s.deviation for s in own])))
            )
    header = ("axis", "motions", "seconds", "typical deviation of the inertia, kg m^2 or kg")
    return Table(header, tuple(rows), digits=3)


def accuracy_tables(campaign: SweepCampaign) -> tuple[Table, ...]:
    """How well inertias will be predicted; none when the motions do not determine all of them."""
    rows = tuple((n, f"{100 * a:.2f} %", f"{100 * b:.2f} %") for n, a, b in campaign.accuracy_rows())
    return (Table(("axis", "inertia predicted to", "at the worst pose"), rows),) if rows else ()


@one_blas_thread
def plan_sweep(
    robot: RobotInput,
    poses: str | Path | npt.ArrayLike,
    *,
    axes: Sequence[str] | None = None,
    frequencies: Sequence[float] | None = None,
    chirp: bool = False,
    minutes: float | None = None,
    torque_noise: float = 3e-3,
    cell: str | Path | Cell | None = None,
    rate_hz: float = 1000.0,
    base: str | None = None,
    tip: str | None = None,
) -> SweepCampaign:
    """Motions for frequency responses at some poses, within limits and clear of the cell.

    Args:
        robot: the arm, or where its description is.
        poses: `poses.json` of `armid poses --for axis-inertia`, a CSV with columns q1..qn, or an array [rad or m] of shape
            [n_poses, n_joints].
        axes: joints to measure; all by default.
        frequencies: of the sines [Hz]; chosen by the limits by default.
        chirp: one chirp instead of sines.
        minutes: measuring time in all; 8 s per measurement by default.
        torque_noise: standard deviation per sample, as a fraction of the torque limit.
        cell: what to keep clear of: a cell, its file, or the name of one that comes along.
        rate_hz: of the recording.
        base, tip: links of a branched URDF between which the arm lies.

    Raises:
        InputError: no room, or a budget too small for the number of measurements.
        UnknownNameError: an axis or cell that does not exist.
    """
    arm = robot_of(robot, base=base, tip=tip)
    names = tuple(axes) if axes else arm.joint_names
    for name in names:
        arm.joint_index(name)
    settings = SweepSettings(
        frequencies=tuple(frequencies or ()),
        signal=Signal.CHIRP if chirp else Signal.SINES,
        rate_hz=rate_hz,
        minutes=minutes,
        torque_noise=torque_noise,
    )
    scene = build_scene(arm, _cell_of(cell), self_collision=True)
    sweeps = sweep_plan(arm, _sites(poses, arm, names), settings, scene=scene)
    accuracy, notes = _accuracy(arm, sweeps)
    chosen = {"axes": list(names), "chirp": chirp, "minutes": minutes, "torque_noise": torque_noise, "rate_hz": rate_hz}
    return SweepCampaign(
        robot=arm,
        sweeps=sweeps,
        rate_hz=rate_hz,
        accuracy=accuracy,
        checks=(_determines(len(sweeps), determined=accuracy is not None),),
        notes=notes,
        provenance=Provenance(inputs=files_of(arm), settings=chosen),
    )


def _determines(count: int, *, determined: bool) -> Check:
    """Whether so many measurements will tell every inertia."""
    missing = f"{count} measurements do not determine the inertia of every axis at every pose"
    return Check(
        code="campaign-determines",
        passed=determined,
        value=count,
        limit=1,
        message="the measurements determine the inertia of every axis at every pose" if determined else missing,
        decisive=False,
    )


def _sites(poses: str | Path | npt.ArrayLike, robot: Robot, axes: Sequence[str]) -> tuple[Site, ...]:
    if not isinstance(poses, str | Path):
        return all_axes(samples("poses", poses, robot.n_joints), axes)
    path = Path(poses)
    return sites_from(path, robot, axes) if path.suffix == ".json" else all_axes(load_postures(path, robot), axes)


def _cell_of(cell: str | Path | Cell | None) -> Cell | None:
    """A cell from a file, one of those in the package, or as it is."""
    if cell is None or isinstance(cell, Cell):
        return cell
    path = Path(cell)
    if path.suffix in (".yaml", ".yml") or path.exists():
        return load_cell(path)
    folder = Path(cells.__file__).parent / "cells"
    known = sorted(file.stem for file in folder.glob("*.yaml"))
    if str(cell) not in known:
        raise UnknownNameError("cell", str(cell), known)
    return load_cell(folder / f"{cell}.yaml")


def _accuracy(robot: Robot, sweeps: Sequence[PlannedSweep]) -> tuple[ExpectedAccuracy | None, tuple[Note, ...]]:
    """What predictions will be good to; nothing, with the reason, when some parameter is not determined."""
    poses, axes = [s.motion.pose for s in sweeps], [s.motion.axis for s in sweeps]
    try:
        return expected_accuracy(robot, poses, axes, [s.deviation for s in sweeps]), ()
    except ArmidError as problem:
        return None, (Note("accuracy-not-known", Severity.WARNING, str(problem)),)
