"""What a calibration leaves on disk."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from armid.calibration.calibrate import Calibration
from armid.calibration.correction import save_correction
from armid.calibration.hold_out import Advice
from armid.calibration.identifiable import ParameterStatus
from armid.calibration.tool_error import ErrorTable, statistics
from armid.kinematics.calibrated import frame_matrix, needs_correction_file
from armid.kinematics.tables import COLUMNS, denavit_tables
from armid.robot.robot import Robot
from armid.robot.urdf.write import new_urdf, updated_urdf
from armid.robot.yaml_write import to_yaml
from armid.rows.pose_residual import in_sensor_axes, parts

FORMAT = "armid-calibration/1"
STRONGLY = 0.9
"""Correlation from which on two parameters are listed as hard to tell apart."""


def summary(calibration: Calibration) -> dict[str, Any]:
    """The result as plain data; the keys of the command contract and more."""
    held, simple = calibration.held_out, calibration.held_out_geometric
    before, after = calibration.errors_before, calibration.errors_after
    out: dict[str, Any] = {"format": FORMAT, "robot": calibration.nominal.name}
    for name, table in (
        ("before", before),
        ("after", after),
        ("held_out", held.after),
        ("held_out_before", held.before),
        ("held_out_geometric", simple.after),
    ):
        out[f"position_error_{name}"] = statistics(table.position).as_dict()
        out[f"orientation_error_{name}"] = statistics(table.orientation).as_dict()
    solution, model = calibration.fit.after, calibration.fit.model
    return out | {
        "held_out_method": held.method,
        "gain": held.gain,
        "paired_t": held.t,
        "configurations": len(np.unique(calibration.measurements.group)),
        "equations": calibration.measurements.n_equations,
        "parameters": parameter_rows(calibration),
        "identified": len(calibration.identified),
        "identified_names": list(calibration.identified),
        "weak": list(calibration.held_at_nominal(ParameterStatus.WEAK)),
        "redundant": list(calibration.held_at_nominal(ParameterStatus.REDUNDANT)),
        "correlations": strong_correlations(calibration),
        "geometry": str(calibration.fit.errors.geometry),
        "terms": sorted(str(t) for t in calibration.fit.errors.terms),
        "noise": {f"{setup}.{part}": value for (setup, part), value in solution.noise.model.items()},
        "T_sensor_base": {n: frame_matrix(s, solution.values).tolist() for n, s in model.setups.items()},
        "T_link_target": {n: frame_matrix(s, solution.values).tolist() for n, s in model.targets.items()},
        "outliers": [
            {"row": x.label, "target": x.target, "kind": x.kind, "error": x.error, "sigmas": x.sigmas}
            for x in calibration.outliers
        ],
        "trends": trends(calibration, after),
        "iterations": solution.iterations,
        "converged": solution.converged,
        "verdict": str(calibration.verdict),
        "reasons": list(calibration.reasons),
        "notes": [note.as_dict() for note in calibration.notes],
    }


def parameter_rows(calibration: Calibration) -> list[dict[str, Any]]:
    """Every parameter with value, unit, uncertainty, tolerance and what became of it."""
    fit = calibration.fit
    sigma = np.sqrt(np.diag(fit.after.covariance))
    return [
        {
            "name": p.name,
            "value": float(fit.after.values[i]),
            "unit": p.unit,
            "status": str(status),
            "standard_deviation": float(sigma[i]) if fit.after.selection.kept[i] else float("inf"),
            "tolerance": p.tolerance,
        }
        for i, (p, status) in enumerate(zip(fit.model.parameters, fit.after.selection.status, strict=True))
    ]


def strong_correlations(calibration: Calibration) -> list[dict[str, Any]]:
    """Pairs of fitted parameters that the data can hardly tell apart."""
    fit = calibration.fit
    kept = np.flatnonzero(fit.after.selection.kept)
    C = fit.after.covariance[np.ix_(kept, kept)]
    d = np.sqrt(np.diag(C))
    R = C / np.outer(d, d)
    pairs = [(i, j) for i, j in np.argwhere(np.triu(np.abs(R), 1) > STRONGLY)]
    pairs.sort(key=lambda ij: -abs(R[ij[0], ij[1]]))
    return [
        {"a": fit.model.names[kept[i]], "b": fit.model.names[kept[j]], "correlation": float(R[i, j])} for i, j in pairs
    ]


def trends(calibration: Calibration, after: ErrorTable) -> dict[str, float]:
    """Correlation of the remaining position error with temperature and time, where they were recorded."""
    out = {}
    for name, values in calibration.measurements.conditions.items():
        x = values[after.position_rows]
        if len(x) > 2 and np.ptp(x) > 0.0 and np.ptp(after.position) > 0.0:
            out[name] = float(np.corrcoef(x, after.position)[0, 1])
    return out


def write_files(calibration: Calibration, out: Path, *, source: str = "") -> dict[str, Path]:
    """Write the calibrated robot, the correction, tables, residuals and the summary.

    Args:
        calibration: what to write.
        out: folder; made when missing.
        source: the description the robot was read from; a URDF is updated in place rather than written anew.
    """
    out.mkdir(parents=True, exist_ok=True)
    files = robot_files(calibration.robot, out, source, warning=warning_of(calibration))
    files["correction"] = save_correction(calibration.nominal, calibration.fit, out / "correction.json")
    files["residuals"] = write_residuals(calibration, out / "residuals.csv")
    for name, modified in (("mdh", True), ("dh", False)):
        files[name] = write_table(calibration.nominal, calibration.robot, out / f"{name}.csv", modified=modified)
    files["summary"] = out / "calibration.json"
    return files


def warning_of(calibration: Calibration) -> str:
    """What a description must carry when held-out errors do not speak for it; empty when they do."""
    if calibration.verdict is Advice.TRUSTED:
        return ""
    return f"UNVALIDATED: {calibration.verdict}; keep the nominal links"


def robot_files(robot: Robot, out: Path, source: str, *, warning: str = "") -> dict[str, Path]:
    """The calibrated arm as URDF and as our own YAML, with a warning on top where it needs one."""
    path = Path(source)
    if source and path.suffix.lower() in (".urdf", ".xml") and path.is_file():
        text = updated_urdf(path.read_text(encoding="utf-8"), robot, where=path.name)
    else:
        text = new_urdf(robot)
    files = {"urdf": out / "calibrated.urdf", "yaml": out / "calibrated.yaml"}
    if warning:
        # Nothing may stand before an XML declaration.
        head = text[: text.index("?>") + 2] if text.lstrip().startswith("<?xml") else ""
        text = f"{head}\n<!-- {warning} -->{text[len(head) :]}"
    files["urdf"].write_text(text, encoding="utf-8")
    files["yaml"].write_text((f"# {warning}\n" if warning else "") + to_yaml(robot), encoding="utf-8")
    return files


def write_residuals(calibration: Calibration, path: Path) -> Path:
    """One line per measured vector: where it came from, its error before and after, in m or rad and in sigmas."""
    fit, measurements = calibration.fit, calibration.measurements
    conditions = list(measurements.conditions)
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(["row", "setup", "target", "kind", "before", "after", "sigmas", "dx", "dy", "dz", *conditions])
        for before, after in zip(fit.before.residuals, fit.after.residuals, strict=True):
            o = after.observations
            sigma = fit.after.noise.sigma(o)
            for part, channels in parts(o.quantity):
                z = np.linalg.norm(after.r[channels] / sigma[channels], axis=0)
                b, a = (in_sensor_axes(o, x.r)[channels] for x in (before, after))
                for i, row in enumerate(o.rows):
                    vector = [f"{v:.9g}" for v in a[:, i]] + [""] * (3 - len(a))
                    writer.writerow(
                        [
                            measurements.labels[row],
                            o.setup,
                            o.target,
                            part,
                            f"{np.linalg.norm(b[:, i]):.9g}",
                            f"{np.linalg.norm(a[:, i]):.9g}",
                            f"{z[i]:.3f}",
                            *vector,
                            *(f"{measurements.conditions[c][row]:.9g}" for c in conditions),
                        ]
                    )
    return path


def write_table(nominal: Robot, calibrated: Robot, path: Path, *, modified: bool) -> Path:
    """Denavit-Hartenberg numbers from base to tip, nominal beside calibrated."""
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(["row", *COLUMNS, *(f"{c}_calibrated" for c in COLUMNS)])
        for old, new in zip(*denavit_tables(nominal, calibrated, modified=modified), strict=True):
            writer.writerow([old.name, *(repr(getattr(row, c)) for row in (old, new) for c in COLUMNS)])
    return path


__all__ = ["needs_correction_file", "summary", "write_files"]
