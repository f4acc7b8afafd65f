"""What a calibration leaves on disk."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armid.calibration.contract import contract
from armid.calibration.correction import save_correction
from armid.documents import read_text, write_json, write_text
from armid.information.storage import save
from armid.kinematics.calibrated import frame_matrix
from armid.kinematics.tables import COLUMNS, TableRow, denavit_tables, frame_rows
from armid.outcome import Verdict
from armid.robot.urdf.text import xml_comment
from armid.robot.urdf.write import new_urdf, updated_urdf
from armid.robot.yaml_write import to_yaml
from armid.rows.pose_residual import in_sensor_axes, parts

if TYPE_CHECKING:
    from armid.calibration.calibrate import Calibration

URDF = (".urdf", ".xml")
SUMMARY, CORRECTION, ROBOT, INFORMATION = "calibration.json", "correction.json", "calibrated.yaml", "information"
"""Files by which a stored calibration is read again."""


def write_files(calibration: Calibration, folder: Path) -> dict[str, Path]:
    """Writes the calibrated robot, the correction, its Information, tables, residuals, the report and the summary.

    Args:
        calibration: what to write.
        folder: made when missing.

    Returns:
        What each file is, and where.
    """
    files = {name: export_robot(calibration, folder / f"calibrated.{name}") for name in ("urdf", "yaml")}
    files["correction"] = save_correction(
        calibration.nominal,
        calibration.fit,
        folder / CORRECTION,
        measured=calibration.measurements.q,
        advice=str(calibration.advice),
    )
    files["information"], files["factors"] = save(calibration.information, folder / INFORMATION)
    files["residuals"] = write_text(folder / "residuals.csv", _residual_lines(calibration))
    for name, modified in (("mdh", True), ("dh", False)):
        files[name] = write_text(folder / f"{name}.csv", _table_lines(calibration, modified=modified))
    if calibration.compensation is not None:
        (files["targets"],) = calibration.compensation.save(folder)
    files["report"] = calibration.report(folder / "report.html")
    files["summary"] = folder / SUMMARY
    write_json(files["summary"], {**contract(calibration), "files": {name: str(path) for name, path in files.items()}})
    return files


def export_robot(calibration: Calibration, path: Path) -> Path:
    """The calibrated arm as URDF, or as our own YAML by the suffix, with a warning on top where it needs one.

    A description that came from a URDF file is updated rather than written anew, so that meshes and limits stay.
    """
    warning = _warning_of(calibration)
    if path.suffix.lower() in (".yaml", ".yml"):
        return write_text(path, (f"# {warning}\n" if warning else "") + to_yaml(calibration.robot))
    source = Path(calibration.nominal.source.path)
    if source.suffix.lower() in URDF and source.is_file():
        text = updated_urdf(read_text(source, "a robot description"), calibration.robot, where=source.name)
    else:
        text = new_urdf(calibration.robot)
    if warning:
        # Nothing may stand before an XML declaration.
        head = text[: text.index("?>") + 2] if text.lstrip().startswith("<?xml") else ""
        text = f"{head}\n{xml_comment(warning)}{text[len(head) :]}"
    return write_text(path, text)


def _warning_of(calibration: Calibration) -> str:
    """What a description must carry when held-out errors do not speak for it; empty when they do."""
    if calibration.verdict is Verdict.TRUSTED:
        return ""
    return f"UNVALIDATED: {calibration.advice}; keep the nominal links"


def _residual_lines(calibration: Calibration) -> str:
    """One line per measured vector: where it came from, its error before and after, in m or rad and in sigmas."""
    fit, measurements = calibration.fit, calibration.measurements
    conditions = list(measurements.conditions)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["row", "setup", "target", "kind", "before", "after", "sigmas", "dx", "dy", "dz", *conditions])
    for before, after in zip(fit.before.residuals, fit.after.residuals, strict=True):
        o = after.observations
        sigma = fit.after.noise.sigma(o)
        for part, channels in parts(o.quantity):
            z = np.linalg.norm(after.r[channels] / sigma[channels], axis=0)
            b, a = (in_sensor_axes(o, x.r)[channels] for x in (before, after))
            sizes = (_cells(np.linalg.norm(b, axis=0)), _cells(np.linalg.norm(a, axis=0)), _cells(z, ".3f"))
            blank = [""] * len(o)
            vectors = [*(_cells(row) for row in a), *([blank] * (3 - len(a)))]
            named = [[measurements.labels[i] for i in o.rows], [o.setup] * len(o), [o.target] * len(o), [part] * len(o)]
            beside = [_cells(measurements.conditions[name][o.rows]) for name in conditions]
            writer.writerows(zip(*named, *sizes, *vectors, *beside, strict=True))
    return out.getvalue()


def _cells(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], form: str = ".9g") -> list[str]:
    return [format(value, form) for value in values.tolist()]


def _table_lines(calibration: Calibration, *, modified: bool) -> str:
    """Denavit-Hartenberg numbers from base to tip, nominal beside calibrated; sensors before and targets after them."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["row", *COLUMNS, *(f"{c}_calibrated" for c in COLUMNS)])
    before, after = _frame_lines(calibration, modified=modified)
    blank = [""] * len(COLUMNS)
    writer.writerows([row.name, *blank, *_numbers(row)] for row in before)
    for old, new in zip(*denavit_tables(calibration.nominal, calibration.robot, modified=modified), strict=True):
        writer.writerow([old.name, *_numbers(old), *_numbers(new)])
    writer.writerows([row.name, *blank, *_numbers(row)] for row in after)
    return out.getvalue()


def _numbers(row: TableRow) -> list[str]:
    return [repr(getattr(row, c)) for c in COLUMNS]


def _frame_lines(calibration: Calibration, *, modified: bool) -> tuple[list[TableRow], list[TableRow]]:
    """Two rows per sensor (T_sensor_base) and per target (T_tip_target), of the fit that the tables hold."""
    fit, tip = calibration.geometric, calibration.nominal.tip
    sensors, targets = (
        {name: frame_matrix(slots, fit.after.values) for name, slots in frames.items()}
        for frames in (fit.model.setups, fit.model.targets)
    )
    before = [row for name, T in sensors.items() for row in frame_rows(f"sensor {name}", T, modified=modified)]
    if tip.link != calibration.nominal.n_joints:  # The tip is on another link than the targets: no chain leads to them.
        return before, []
    T_tip_link = np.linalg.inv(tip.T_link_frame)
    after = [
        row for name, T in targets.items() for row in frame_rows(f"target {name}", T_tip_link @ T, modified=modified)
    ]
    return before, after
