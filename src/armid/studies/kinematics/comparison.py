"""The noun of the study: four ways to identify one arm, compared with the truth; and what it leaves on disk."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.documents import plain, write_arrays, write_json
from armid.errors import InputError
from armid.identifiability.base import BaseParameters
from armid.logs.samples import Samples
from armid.motions.trajectory_files import save_trajectory
from armid.notes import Note
from armid.outcome import Check, Outcome, Provenance
from armid.page import Table
from armid.parameters.effects import Effects, TorqueSide
from armid.robot.robot import Robot
from armid.studies.kinematics.calibrated import KinematicStep
from armid.studies.kinematics.estimates import Case
from armid.studies.kinematics.misbuilt import Misbuilt
from armid.studies.kinematics.motions import StudyMotion

_FORMAT = "armid-study/1"
TABLE = "study.json"


ESSENTIAL = 0.01
"""A parameter is essential when it makes up this share of some channel's torque in the held-out motion, root mean
square: what contributes less can be left out without anybody noticing. No motion that is compared has a say in it."""


@dataclass(frozen=True, kw_only=True)
class StudySettings:
    """What is compared, and how often.

    Args:
        motions: of each kind.
        repetitions: recordings of each motion, each identified by itself.
        seconds: length of the motions.
        starts: random starts of the search for the optimised motion.
        harmonics: of the optimised motion.
        trajectories: stored designs instead of a search.
        poses: measured for the calibration.
        position_noise, orientation_noise: of the tracker, per axis [m, rad]; 60 um over the 0.3 m of a fixture.
        variation: how far inertias and friction of the specimen are from their description, relative.
        payload: carried in half of the runs [kg]; none at zero; the published one for the published arm when None.
        torques: which side is measured; `both` is model 2 of the paper.
        cutoff: of the low-pass [Hz].
        correction: deviations of the real arm; published ones, or drawn, when None.
        seed: of everything random.
    """

    motions: int = 4
    repetitions: int = 3
    seconds: float = 25.0
    starts: int = 1
    harmonics: int = 10
    trajectories: tuple[Path, ...] = ()
    poses: int = 17
    position_noise: float = 60e-6
    orientation_noise: float = 200e-6
    variation: float = 0.2
    payload: float | None = None
    torques: TorqueSide = TorqueSide.BOTH
    cutoff: float = 10.0
    correction: Path | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("motions", "repetitions"):
            if getattr(self, name) < 2 and not (name == "motions" and self.motions == 1):
                raise InputError(name, f"{getattr(self, name)}", "two or more: a spread needs repetitions")
        if not self.seconds > 2.0:
            raise InputError("seconds", f"{self.seconds:g}", "motions of more than two seconds")
        if self.torques is TorqueSide.DIFFERENCE:
            raise InputError("torques", "difference", "link, motor or both: drives alone know nothing of kinematics")
        if self.payload is not None and not self.payload >= 0.0:
            raise InputError("payload", f"{self.payload:g} kg", "zero or more")

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        out: dict[str, Any] = plain({item.name: getattr(self, item.name) for item in fields(self)})
        return out


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Study(Outcome):
    """The outcome.

    Args:
        robot: as described.
        settings: of the study.
        real: the arm that was really there, geometry only.
        effects: what the models contain.
        base: the combinations that are compared, of the described arm.
        units: of each.
        truth: their true values, shape [r].
        essential: those that matter, shape [r].
        kinematics: the calibration.
        motions: through way-points, and optimised.
        cases: nominal with each motion, then calibrated with each.
        held_out: conditioned samples of the held-out motion.
        torque: its measured torque, shape [n_samples, n_channels].
        notes: what the reader must know.
        provenance: what it came from.
        workers, retries: of the cluster.
    """

    _page = "armid.report.study:study_report"
    _loads = True

    robot: Robot
    settings: StudySettings
    real: Misbuilt
    effects: Effects
    base: BaseParameters
    units: tuple[str, ...]
    truth: FloatArray
    essential: npt.NDArray[np.bool_]
    kinematics: KinematicStep
    motions: tuple[tuple[StudyMotion, ...], tuple[StudyMotion, ...]]
    cases: tuple[Case, Case, Case, Case]
    held_out: Samples
    torque: FloatArray
    notes: tuple[Note, ...]
    provenance: Provenance = field(default_factory=Provenance)
    workers: int = 1
    retries: int = 0

    def relative(self, values: FloatArray) -> FloatArray:
        """Something of every parameter in parts of its true value, of the essential ones."""
        return np.asarray(values[self.essential] / np.abs(self.truth[self.essential]))

    def changes(self, motion: int) -> FloatArray:
        """(calibrated - nominal) / |nominal| of the mean estimates with one motion, [Kolyubin2017] fig. 7; essential ones."""
        before, after = (self.cases[motion + k].mean[self.essential] for k in (0, 2))
        return np.asarray((after - before) / np.abs(before))

    @property
    def checks(self) -> tuple[Check, ...]:  # type: ignore[override]
        """Whether calibration and identification did what the comparison rests on, and what the comparison says."""
        return _study_checks(self)

    def _heading(self) -> str:
        return f"{self.robot.name}: {int(self.essential.sum())} essential of {len(self.base)} base parameters, medians"

    def _tables(self) -> tuple[Table, ...]:
        cells = ("median_relative_spread", "median_relative_error", "relative_error_held_out")
        rows = tuple(
            (case.kinematics, case.motion, *(f"{100 * summary[name]:.3f} %" for name in cells))
            for case in self.cases
            for summary in (_case_summary(self, case),)
        )
        k = self.kinematics
        tool = (("nominal", 1e3 * k.position_before.mean), ("calibrated", 1e3 * k.position_after.mean))
        return (
            Table(("kinematics", "motion", "spread", "error", "held-out torque"), rows),
            Table(("kinematics", "tool position error [mm]"), tool, caption="Mean at fresh poses"),
        )

    def as_dict(self) -> dict[str, Any]:
        k = self.kinematics
        return {
            "format": _FORMAT,
            "robot": self.robot.name,
            "deviations": self.real.origin,
            "base_parameters": len(self.base),
            "essential_parameters": int(self.essential.sum()),
            "position_error_before": k.position_before.as_dict(),
            "position_error_after": k.position_after.as_dict(),
            "orientation_error_before": k.orientation_before.as_dict(),
            "orientation_error_after": k.orientation_after.as_dict(),
            "poses": len(k.poses),
            "poses_condition_number": k.condition_number,
            "motions": [
                {
                    "kind": m.name,
                    "condition_number": m.condition_number,
                    "seconds": m.trajectory.duration,
                    "how": m.remark,
                }
                for kind in self.motions
                for m in kind
            ],
            "cases": [_case_summary(self, case) for case in self.cases],
            "median_change": {self.cases[i].motion: float(np.median(np.abs(self.changes(i)))) for i in (0, 1)},
            "parameters": [_parameter_row(self, i) for i in range(len(self.base))],
            "settings": self.settings.as_dict(),
            "workers": self.workers,
            "retries": self.retries,
            "verdict": str(self.verdict),
            "reasons": list(self.reasons),
            "notes": [note.as_dict() for note in self.notes],
        }

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes the table, every estimate, the motions, the calibration and the page; an earlier study there is replaced.

        Returns:
            `study.json`, `estimates.npz`, `correction.json`, the motions, and `report.html`.

        Raises:
            InputError: the folder cannot be written, or a file in it is not ours.
        """
        place = Path(folder)
        return (*_write_study(self, place), self.report(place / "report.html"))


def _study_checks(study: Study) -> tuple[Check, ...]:
    """What the comparison rests on, and whether it came out as published."""
    k, best = study.kinematics, study.cases[3]
    better, predicted = k.position_after.mean / k.position_before.mean, float(best.relative_error.mean())
    spreads = [float(np.median(study.relative(case.spread))) for case in study.cases]
    errors = [float(np.median(study.relative(case.error(study.truth)))) for case in study.cases]
    most = max(spreads[3] / min(spreads[:3]), errors[3] / min(errors[:3]))
    return (
        Check(
            code="calibration",
            passed=better < 1.0,
            value=better,
            limit=1.0,
            message="calibration brought the tool nearer"
            if better < 1.0
            else "calibration did not bring the tool nearer at fresh poses; measure more of them",
        ),
        Check(
            code="prediction",
            passed=predicted < 1.0,
            value=predicted,
            limit=1.0,
            message=f"{best.label} predicts held-out torque to {100 * predicted:.2f} %"
            if predicted < 1.0
            else f"{best.label} predicts held-out torque no better than nothing would",
        ),
        Check(
            code="as-published",
            passed=most <= 1.0,
            value=most,
            limit=1.0,
            message=f"{best.label} has the smallest spread and error"
            if most <= 1.0
            else f"{best.label} has not both the smallest spread and error: take more motions or repetitions",
            decisive=False,
        ),
    )


def _case_summary(study: Study, case: Case) -> dict[str, Any]:
    """Medians over the essential parameters, and held-out torque."""
    return {
        "case": case.label,
        "kinematics": case.kinematics,
        "motion": case.motion,
        "identifications": len(case.all),
        "median_relative_spread": float(np.median(study.relative(case.spread))),
        "median_relative_repeatability": float(np.median(study.relative(case.repeatability))),
        "median_relative_error": float(np.median(study.relative(case.error(study.truth)))),
        "median_relative_deviation_stated": float(np.median(study.relative(case.predicted))),
        "relative_error_held_out": float(case.relative_error.mean()),
        "rmse_held_out": case.rmse,
    }


def _parameter_row(study: Study, i: int) -> dict[str, Any]:
    """One base parameter of the described arm in the four cases."""
    return {
        "name": study.base.names[i],
        "unit": study.units[i],
        "truth": float(study.truth[i]),
        "essential": bool(study.essential[i]),
        **{
            case.label: {
                "mean": float(case.mean[i]),
                "standard_deviation": float(case.spread[i]),
                "repeatability": float(case.repeatability[i]),
                "stated": float(case.predicted[i]),
            }
            for case in study.cases
        },
    }


def _write_study(study: Study, folder: Path) -> tuple[Path, ...]:
    """Writes everything but the page into an existing folder."""
    table = write_json(folder / TABLE, study.as_dict())
    values: dict[str, Any] = {case.label.replace(" ", "_"): case.estimates for case in study.cases}
    values |= {"names": np.array(study.base.names), "truth": study.truth, "essential": study.essential}
    arrays = write_arrays(folder / "estimates.npz", values)
    files = [table, arrays, write_json(folder / "correction.json", study.kinematics.correction)]
    for kind, stem in zip(study.motions, ("waypoints", "optimised"), strict=True):
        for i, motion in enumerate(kind):
            path = folder / f"{stem}{i + 1}.json"
            files.append(save_trajectory(motion.trajectory, path, robot=study.robot.name))
    return tuple(files)
