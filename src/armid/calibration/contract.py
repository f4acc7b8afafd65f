"""A calibration as plain values for programs and as tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import degrees
from typing import TYPE_CHECKING, Any

import numpy as np

from armid.calibration.enough import PoseCount
from armid.calibration.found import strong_correlations
from armid.calibration.gauge import TipUncertainty
from armid.calibration.hold_out import HeldOut
from armid.calibration.identifiable import ParameterStatus
from armid.calibration.judge import outlier_runs
from armid.calibration.solve import channel_name
from armid.calibration.tool_error import Statistics, statistics
from armid.kinematics.calibrated import frame_matrix
from armid.page import Cell, Table

if TYPE_CHECKING:
    from armid.calibration.calibrate import Calibration

FORMAT = "armid-calibration/1"
KINDS = ("position", "orientation")


def error_statistics(calibration: Calibration) -> dict[str, Statistics]:
    """`position_error_before` and so on: statistics of error norms [m, rad]."""
    held, blocked = calibration.held_out, calibration.held_out_blocked
    tables = {
        "before": calibration.errors_before,
        "after": calibration.errors_after,
        "held_out": held.after,
        "held_out_before": held.before,
        "held_out_geometric": calibration.held_out_geometric.after,
        **({} if blocked is None else {"held_out_blocked": blocked.after}),
    }
    return {
        f"{kind}_error_{name}": statistics(table.position if kind == KINDS[0] else table.orientation)
        for name, table in tables.items()
        for kind in KINDS
    }


def contract(calibration: Calibration) -> dict[str, Any]:
    """The result as plain data; the keys of the command contract and more."""
    held, solution, model = calibration.held_out, calibration.fit.after, calibration.fit.model
    return {
        "format": FORMAT,
        "robot": calibration.nominal.name,
        "workers": calibration.workers,
        "retries": calibration.retries,
        **{name: found.as_dict() for name, found in error_statistics(calibration).items()},
        "held_out_method": held.method,
        "held_out_refitted": list(held.refitted),
        "held_out_interval": list(held.interval),
        "held_out_blocked_method": "" if calibration.held_out_blocked is None else calibration.held_out_blocked.method,
        "gain": held.gain,
        "paired_t": held.t,
        "configurations": len(np.unique(calibration.measurements.group)),
        "equations": calibration.measurements.n_equations,
        "parameters": calibration.parameters.as_dicts(),
        "identified": len(calibration.identified),
        "identified_names": list(calibration.identified),
        "weak": list(calibration.with_status(ParameterStatus.WEAK)),
        "redundant": list(calibration.with_status(ParameterStatus.REDUNDANT)),
        "correlations": [asdict(pair) for pair in strong_correlations(calibration.fit)],
        "geometry": str(calibration.fit.errors.geometry),
        "terms": sorted(str(t) for t in calibration.fit.errors.terms),
        "noise": {channel_name(*component): value for component, value in solution.noise.model.items()},
        "T_sensor_base": {n: frame_matrix(s, solution.values).tolist() for n, s in model.setups.items()},
        "T_link_target": {n: frame_matrix(s, solution.values).tolist() for n, s in model.targets.items()},
        "tip_uncertainty": asdict(calibration.tip),
        "outliers": [
            {"row": x.label, "target": x.target, "kind": x.kind, "error": x.error, "sigmas": x.sigmas}
            for x in calibration.outliers
        ],
        "outlier_runs": [[x.label for x in run] for run in outlier_runs(calibration.outliers)],
        "residual_patterns": dict(calibration.patterns),
        "trends": _trends(calibration),
        "iterations": solution.iterations,
        "converged": solution.converged,
        "verdict": str(calibration.verdict),
        "advice": str(calibration.advice),
        "reasons": list(calibration.reasons),
        "checks": [check.as_dict() for check in calibration.checks],
        "notes": [note.as_dict() for note in calibration.notes],
        "provenance": calibration.provenance.as_dict(),
        **({"enough": [asdict(row) for row in calibration.enough]} if calibration.enough else {}),
    }


def _trends(calibration: Calibration) -> dict[str, float]:
    """Correlation of the remaining position error with temperature and time, where they were recorded."""
    after, out = calibration.errors_after, {}
    for name, values in calibration.measurements.conditions.items():
        x = values[after.position_rows]
        if len(x) > 2 and np.ptp(x) > 0.0 and np.ptp(after.position) > 0.0:
            out[name] = float(np.corrcoef(x, after.position)[0, 1])
    return out


def main_error(held_out: HeldOut) -> tuple[float, float, str]:
    """Held-out means before and after, and their unit: mm, or mrad when no position was measured."""
    unit = "mm" if len(held_out.after.position) else "mrad"
    return 1e3 * float(held_out.before.main[0].mean()), 1e3 * float(held_out.after.main[0].mean()), unit


SHOWN = ("before", "after", "held_out_before", "held_out", "held_out_blocked")
"""Errors that people are shown first."""


def error_table_of(errors: Mapping[str, Statistics], told: str = "") -> Table:
    """Mean, root mean square, 95 % quantile and largest errors in mm and degrees.

    Args:
        errors: by name.
        told: how the held-out rows were kept aside, and what was fitted to which of them.
    """
    rows: list[tuple[Cell, ...]] = []
    for kind, unit, factor in (("position", "mm", 1e3), ("orientation", "deg", degrees(1.0))):
        for name in SHOWN:
            found = errors.get(f"{kind}_error_{name}")
            if found is not None and found.count:
                numbers = (factor * x for x in (found.mean, found.rms, found.p95, found.max))
                rows.append((f"{kind}, {name.replace('_', ' ')}", *numbers, unit))
    return Table(
        ("error", "mean", "rms", "p95", "max", "unit"), tuple(rows), caption=f"held out: {told}" if told else ""
    )


def tip_table(tip: TipUncertainty) -> Table:
    """How far the tip may be off."""
    return Table(
        ("mean", "p95", "max", "unit"),
        ((1e3 * tip.mean, 1e3 * tip.p95, 1e3 * tip.max, "mm"),),
        caption="Standard deviation of the tip in the base frame, over the measured joint ranges; how base and flange sit on the "
        "arm is taken from its description, since sensors and targets of unknown place do not show it.",
    )


def enough_table(rows: Sequence[PoseCount], unit: str) -> Table:
    """Error against the number of configurations."""
    return Table(
        ("configurations", "predicted", "predicted, with noise", "observed"),
        tuple((r.configurations, 1e3 * r.predicted, 1e3 * r.predicted_total, 1e3 * r.observed) for r in rows),
        caption=f"how many configurations are enough: mean error at the others, {unit}",
    )
