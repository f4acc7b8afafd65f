"""A calibration read back from its folder: the arm, what was found, and whether to believe it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf, nan
from pathlib import Path
from typing import Any, ClassVar

from armid.calibration.contract import FORMAT, KINDS, error_table_of
from armid.calibration.files import CORRECTION, INFORMATION, ROBOT, SUMMARY
from armid.calibration.found import CalibratedParameter
from armid.calibration.hold_out import Advice
from armid.calibration.identifiable import ParameterStatus
from armid.calibration.tool_error import Statistics
from armid.documents import new_file, read_json, restored
from armid.information.information import Information
from armid.information.storage import load
from armid.kinematics.correction import Correction, read_correction
from armid.notes import Note, Severity
from armid.outcome import Check, InputFile, Listing, Outcome, Provenance
from armid.page import Table
from armid.robot.load import load_robot
from armid.robot.robot import Robot

_WHAT = "a calibration folder"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class StoredCalibration(Outcome):
    """What the folder of a calibration holds.

    Args:
        folder: where it was read from.
        robot: the calibrated arm.
        parameters: every unknown of the chosen model.
        errors: statistics of error norms [m, rad] by `position_error_held_out` and so on.
        advice: what to do with it.
        checks, notes, provenance: as they were stored.
        stored: the whole summary, as plain values.
    """

    _page: ClassVar[str] = "armid.report.calibration:stored_report"

    folder: Path
    robot: Robot
    parameters: Listing[CalibratedParameter]
    errors: Mapping[str, Statistics]
    advice: Advice
    checks: tuple[Check, ...]
    notes: tuple[Note, ...]
    provenance: Provenance
    stored: Mapping[str, Any]

    @property
    def identified(self) -> tuple[str, ...]:
        """Names of the fitted parameters."""
        return tuple(p.name for p in self.parameters if p.status is ParameterStatus.IDENTIFIED)

    @cached_property
    def information(self) -> Information:
        """What the measurements said about a change of the fitted parameters from what was found, by sensor and kind.

        Raises:
            InputError: the folder has none (written by an older version), or it is damaged.
        """
        return load(self.folder / INFORMATION)

    def correction(self, nominal: Robot) -> Correction:
        """Everything that was found, terms without a place in a robot file too, for the arm as described."""
        return read_correction(self.folder / CORRECTION, nominal)

    def _heading(self) -> str:
        return (
            f"{self.robot.name}: kinematic calibration, {len(self.identified)} of {len(self.parameters)} parameters, "
            f"{self.advice} (from {self.folder})"
        )

    def _tables(self) -> tuple[Table, ...]:
        return (error_table_of(self.errors),)

    def as_dict(self) -> dict[str, Any]:
        """What was stored."""
        return dict(self.stored)

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Copies every file of the folder."""
        target = Path(folder)
        files = sorted(path for path in self.folder.iterdir() if path.is_file() and not path.name.startswith("."))
        if target.resolve() != self.folder.resolve():
            for path in files:
                with new_file(target / path.name) as file:
                    file.write(path.read_bytes())
        return tuple(target / path.name for path in files)


def load_calibration(folder: str | Path) -> StoredCalibration:
    """The calibration in a folder that `Calibration.save` or `armid calibrate` wrote.

    Raises:
        InputError: not such a folder, or a file in it is damaged; names the field.
    """
    folder = Path(folder)
    path = folder / SUMMARY
    data = read_json(path, _WHAT, schema=FORMAT, key="format")
    robot = load_robot(folder / ROBOT)
    found: StoredCalibration = restored(path, data, lambda value: _stored(folder, robot, value), _WHAT)
    return found


def _stored(folder: Path, robot: Robot, data: dict[str, Any]) -> StoredCalibration:
    return StoredCalibration(
        folder=folder,
        robot=robot,
        parameters=Listing(_parameter(row) for row in data["parameters"]),
        errors={key: _statistics(value) for key, value in data.items() if _is_error(key)},
        advice=Advice(data["advice"]),
        checks=tuple(_check(check) for check in data["checks"]),
        notes=tuple(Note(**{**note, "severity": Severity(note["severity"])}) for note in data["notes"]),
        provenance=_provenance(data["provenance"]),
        stored=data,
    )


def _is_error(key: str) -> bool:
    return any(key.startswith(f"{kind}_error_") for kind in KINDS)


def _parameter(row: dict[str, Any]) -> CalibratedParameter:
    return CalibratedParameter(
        name=row["name"],
        value=float(row["value"]),
        unit=row["unit"],
        status=ParameterStatus(row["status"]),
        standard_deviation=_number(row["standard_deviation"], inf),
        tolerance=float(row["tolerance"]),
    )


def _statistics(value: dict[str, Any]) -> Statistics:
    mean, median, rms, largest = (_number(value[name], nan) for name in ("mean", "median", "rms", "max"))
    p95 = _number(value.get("p95"), nan)
    return Statistics(mean=mean, median=median, rms=rms, p95=p95, max=largest, count=int(value["count"]))


def _check(value: dict[str, Any]) -> Check:
    return Check(**{**value, "value": _number(value["value"], inf), "limit": _number(value["limit"], inf)})


def _number(value: float | None, missing: float) -> float:
    """A number that was not finite is stored as null."""
    return missing if value is None else float(value)


def _provenance(data: dict[str, Any]) -> Provenance:
    return Provenance(
        inputs=tuple(InputFile(**file) for file in data["inputs"]),
        settings=data["settings"],
        seed=data["seed"],
        command=data["command"],
        versions=data["versions"],
    )
