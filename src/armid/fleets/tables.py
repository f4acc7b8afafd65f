"""Tables of a fleet as files that other programs read: Parquet, or CSV where pyarrow is not installed."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.documents import new_file

if TYPE_CHECKING:
    from armid.fleets.fleet import Fleet

Columns = Mapping[str, Sequence[Any]]


def write_tables(fleet: Fleet, folder: Path) -> tuple[Path, ...]:
    """Writes `visits`, `parameters`, `spread` and `drift`; those that are empty are left out."""
    tables = {
        "visits": _visits(fleet),
        "parameters": _parameters(fleet),
        "spread": _spread(fleet),
        "drift": _drift(fleet),
    }
    return tuple(_write(folder, name, columns) for name, columns in tables.items() if columns and len(_first(columns)))


def _first(columns: Columns) -> Sequence[Any]:
    return next(iter(columns.values()))


def _visits(fleet: Fleet) -> Columns:
    found = fleet.visits
    return {
        "arm": [one.visit.arm for one in found],
        "date": [one.visit.date for one in found],
        "verdict": [one.verdict for one in found],
        "used": [one.counts for one in found],
        "relative_error_held_out": [one.relative_error for one in found],
        "reason": [one.reasons[0] if one.reasons else "" for one in found],
        "logs": [len(one.visit.logs) for one in found],
        "logs_set_aside": [len(one.set_aside) for one in found],
        "payload": [one.visit.payload for one in found],
        "remarks": [one.visit.remarks for one in found],
        "seconds": [one.seconds for one in found],
    }


def _parameters(fleet: Fleet) -> Columns:
    """One row per arm, date and base parameter: the visit's own values."""
    rows = [
        (one.visit.arm, one.visit.date, name, float(v), float(d), unit, one.counts)
        for one in fleet.visits
        for name, v, d, unit in zip(one.names, one.values, one.deviations, one.units, strict=True)
    ]
    names = ("arm", "date", "parameter", "value", "standard_deviation", "unit", "used")
    return {name: [row[k] for row in rows] for k, name in enumerate(names)}


def _spread(fleet: Fleet) -> Columns:
    """Mean and spread, and beside them every arm as the fleet and its own recordings together have it."""
    p = fleet.population
    if p is None:
        return {}
    arms = fleet.shrunk_values()
    low, high = p.spread_interval()
    out: dict[str, Sequence[Any]] = {
        "parameter": list(p.names),
        "unit": list(p.units),
        "mean": p.mean.tolist(),
        "mean_standard_deviation": p.deviations.tolist(),
        "spread": p.spread.tolist(),
        "spread_low": low.tolist(),
        "spread_high": high.tolist(),
    }
    for arm, (values, deviations) in arms.items():
        out[f"{arm}"], out[f"{arm}_standard_deviation"] = values.tolist(), deviations.tolist()
    return out


def _drift(fleet: Fleet) -> Columns:
    rows = [one.as_dict() for one in fleet.drift]
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ()) if name != "interval"}


def _write(folder: Path, name: str, columns: Columns) -> Path:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        path = folder / f"{name}.csv"
        with new_file(path, text=True) as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
        return path
    path = folder / f"{name}.parquet"
    with new_file(path) as file:
        pyarrow.parquet.write_table(pyarrow.table({key: list(values) for key, values in columns.items()}), file)
    return path
