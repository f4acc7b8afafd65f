"""What a study leaves on disk: the table, every estimate, the motions and the calibration."""

from __future__ import annotations

import json
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from armid.calibration.correction import save_correction
from armid.motions.trajectory_files import save_trajectory
from armid.studies.kinematics.estimates import Case
from armid.studies.kinematics.study import Study

FORMAT = "armid-study/1"
TABLE = "study.json"


def study_table(study: Study) -> dict[str, Any]:
    """The outcome as plain values; relative numbers are fractions of the true value."""
    k = study.kinematics
    return {
        "format": FORMAT,
        "robot": study.robot.name,
        "deviations": study.real.origin,
        "base_parameters": len(study.base),
        "essential_parameters": int(study.essential.sum()),
        "position_error_before": k.position_before.as_dict(),
        "position_error_after": k.position_after.as_dict(),
        "orientation_error_before": k.orientation_before.as_dict(),
        "orientation_error_after": k.orientation_after.as_dict(),
        "poses": len(k.design.poses),
        "poses_condition_number": k.design.condition_number,
        "motions": [
            {"kind": m.name, "condition_number": m.condition_number, "seconds": m.trajectory.duration, "how": m.remark}
            for kind in study.motions
            for m in kind
        ],
        "cases": [case_summary(study, case) for case in study.cases],
        "median_change": {study.cases[i].motion: float(np.median(np.abs(study.changes(i)))) for i in (0, 1)},
        "parameters": [parameter_row(study, i) for i in range(len(study.base))],
        "settings": settings_of(study),
        "notes": [note.as_dict() for note in study.notes],
    }


def case_summary(study: Study, case: Case) -> dict[str, Any]:
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


def parameter_row(study: Study, i: int) -> dict[str, Any]:
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


def settings_of(study: Study) -> dict[str, Any]:
    """The settings as plain values."""
    values = {f.name: getattr(study.settings, f.name) for f in fields(study.settings)}
    return {name: plain(value) for name, value in values.items()}


def plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def write_study(study: Study, folder: Path) -> tuple[Path, ...]:
    """Writes everything but the page into an existing folder."""
    table = folder / TABLE
    table.write_text(json.dumps(study_table(study), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    arrays = folder / "estimates.npz"
    values: dict[str, Any] = {case.label.replace(" ", "_"): case.estimates for case in study.cases}
    values |= {"names": np.array(study.base.names), "truth": study.truth, "essential": study.essential}
    np.savez_compressed(arrays, **values)
    files = [table, arrays, save_correction(study.robot, study.kinematics.calibration.fit, folder / "correction.json")]
    for kind, stem in zip(study.motions, ("waypoints", "optimised"), strict=True):
        for i, motion in enumerate(kind):
            path = folder / f"{stem}{i + 1}.json"
            files.append(save_trajectory(motion.trajectory, path, robot=study.robot.name))
    return tuple(files)
