"""`armid.compare`: several identifications of one arm side by side; do they agree within their own uncertainty?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import hypot, isfinite, nan
from pathlib import Path
from typing import Any, ClassVar

from armid.documents import write_json
from armid.errors import InputError
from armid.estimation.estimate import Estimate
from armid.identification.result import Result, load_result
from armid.identification.thresholds import FAR_APART
from armid.notes import Note, Severity
from armid.outcome import Check, InputFile, Outcome, Provenance
from armid.page import Cell, Table

_SAME_COEFFICIENT = 1e-6
"""Relative difference up to which two coefficients of a combination are the same (a calibrated arm moves them a little)."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """One base parameter in several results.

    Args:
        name, unit: of the parameter.
        values, standard_deviations: one per result; NaN where it is not estimated, or stands for another combination.
        differences: from the first result in standard deviations of the difference; NaN where one of them is missing.
    """

    name: str
    unit: str
    values: tuple[float, ...]
    standard_deviations: tuple[float, ...]
    differences: tuple[float, ...]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ResultComparison(Outcome):
    """Results of one arm side by side.

    Args:
        names: of the results.
        results: the first is what the others are compared with.
        rows: their base parameters.
        checks: no parameter further apart than chance; a warning, for arms wear and logs differ.
        notes: what a reader must know.
        provenance: the results' folders.
    """

    _page: ClassVar[str] = "armid.report.comparison:comparison_report"

    names: tuple[str, ...]
    results: tuple[Result, ...]
    rows: tuple[Agreement, ...]
    checks: tuple[Check, ...] = ()
    notes: tuple[Note, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def largest_difference(self) -> float | None:
        """Of all parameters and results, in standard deviations; None when nothing could be compared."""
        return max((abs(d) for row in self.rows for d in row.differences if isfinite(d)), default=None)

    def as_dict(self) -> dict[str, Any]:
        return {
            "results": [
                {"name": n, "verdict": r.verdict, "relative_error_held_out": r.relative_error.get("held_out")}
                for n, r in zip(self.names, self.results, strict=True)
            ],
            "joints": [[joint.as_dict() for joint in r.joints] for r in self.results],
            "parameters": [
                {
                    "name": row.name,
                    "unit": row.unit,
                    "values": row.values,
                    "standard_deviations": row.standard_deviations,
                    "differences": row.differences,
                }
                for row in self.rows
            ],
            "largest_difference": self.largest_difference,
        }

    def _heading(self) -> str:
        return f"{self.results[0].described.name}: {len(self.results)} identifications compared"

    def _tables(self) -> tuple[Table, ...]:
        rows: list[tuple[Cell, ...]] = []
        for k, (name, result) in enumerate(zip(self.names, self.results, strict=True)):
            far = max((r for r in self.rows if isfinite(r.differences[k])), key=lambda r: abs(r.differences[k]))
            apart = f"{far.name} {far.differences[k]:+.1f} std. dev." if k else ""
            error = f"{100 * result.relative_error.get('held_out', nan):.2f} %"
            rows.append((name, str(result.verdict), error, len(result.estimate), apart))
        header = ("result", "verdict", "relative", "base parameters", "largest difference")
        return (Table(header, tuple(rows), caption="held-out torque error"),)

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes `comparison.json` and the page."""
        return (
            write_json(Path(folder) / "comparison.json", self.as_dict()),
            self.report(Path(folder) / "comparison.html"),
        )


def compare(*results: str | Path | Result) -> ResultComparison:
    """Puts identifications of one arm side by side: parameters with intervals, differences, held-out errors.

    Args:
        results: two or more, or their folders; the first is what the others are compared with.

    Raises:
        InputError: fewer than two, of different arms, or with nothing in common.
    """
    loaded = tuple(r if isinstance(r, Result) else load_result(r, traces=False) for r in results)
    rows = agreement(loaded)
    names = _short_names(results)
    joints = loaded[0].described.joint_names
    for name, other in zip(names, loaded, strict=True):
        if other.described.joint_names != joints:
            raise InputError(
                name,
                f"is about {other.described.name} with joints {', '.join(other.described.joint_names)}",
                f"compare identifications of {loaded[0].described.name}",
            )
    folders = [str(r) for r in results if not isinstance(r, Result)]
    return ResultComparison(
        names=tuple(names),
        results=loaded,
        rows=rows,
        checks=tuple(_agreement_check(name, k, rows) for k, name in enumerate(names) if k),
        notes=_description_notes(loaded),
        provenance=Provenance(inputs=tuple(InputFile(folder, "", "result") for folder in folders)),
    )


def _agreement_check(name: str, k: int, rows: Sequence[Agreement]) -> Check:
    """Whether a result agrees with the first within the uncertainty of both."""
    found = [row for row in rows if isfinite(row.differences[k])]
    far = max(found, key=lambda row: abs(row.differences[k]))
    apart = abs(far.differences[k])
    text = f"{name}: no parameter differs by more than {FAR_APART.value:g} standard deviations"
    if apart > FAR_APART.value:
        text = f"{name}: {far.name} differs by {apart:.1f} standard deviations, beyond chance"
    return Check(
        code="agreement",
        passed=apart <= FAR_APART.value,
        value=apart,
        limit=FAR_APART.value,
        message=text,
        subject=name,
        decisive=False,
    )


def _description_notes(results: Sequence[Result]) -> tuple[Note, ...]:
    """Said when the results rest on different descriptions of the arm."""
    if len({r.described.source.sha256 for r in results}) < 2:
        return ()
    text = "the descriptions differ: combinations with other lengths are not compared"
    return (Note("descriptions-differ", Severity.INFO, text),)


def _short_names(results: Sequence[str | Path | Result]) -> list[str]:
    """Names of the folders, or whole paths where those are not different; of results in memory their numbers."""
    folders = [None if isinstance(r, Result) else Path(r) for r in results]
    folders = [f.parent if f is not None and f.name == "result.json" else f for f in folders]
    names = [f"result {k + 1}" if f is None else f.resolve().name for k, f in enumerate(folders)]
    if len(set(names)) == len(names):
        return names
    whole = [f"result {k + 1}" if f is None else str(f) for k, f in enumerate(folders)]
    return [name if whole.count(name) == 1 else f"{name} ({i + 1})" for i, name in enumerate(whole)]


def agreement(results: Sequence[Result]) -> tuple[Agreement, ...]:
    """Base parameters of several results, those of the first in its order and then what only others have.

    A difference d of independent estimates with standard deviations s, t is d / sqrt(s^2 + t^2) standard deviations.

    Args:
        results: at least two, of the same arm; the first is what the others are compared with.

    Raises:
        InputError: fewer than two, or nothing in common.
    """
    if len(results) < 2:
        raise InputError("results", f"{len(results)} given", "at least two are needed for a comparison")
    names = tuple(dict.fromkeys(name for result in results for name in result.estimate.names))
    rows = tuple(row(name, [result.estimate for result in results]) for name in names)
    if not any(isfinite(d) for r in rows for d in r.differences[1:]):
        raise InputError("results", "they have no base parameter in common", "compare identifications of the same arm")
    return rows


def row(name: str, estimates: Sequence[Estimate]) -> Agreement:
    """One parameter; a result whose base parameter of that name means another combination counts as missing."""
    owner = next(e for e in estimates if name in e.names)
    terms = owner.base.terms(name)
    values, deviations = [], []
    for e in estimates:
        found = name in e.names and same_terms(terms, e.base.terms(name))
        k = e.names.index(name) if found else -1
        values.append(float(e.values[k]) if found else nan)
        deviations.append(float(e.standard_deviations[k]) if found else nan)
    differences = [
        (v - values[0]) / s if (s := hypot(d, deviations[0])) > 0.0 else nan
        for v, d in zip(values, deviations, strict=True)
    ]
    return Agreement(
        name=name,
        unit=owner.units[owner.names.index(name)],
        values=tuple(values),
        standard_deviations=tuple(deviations),
        differences=tuple(differences),
    )


def same_terms(a: dict[str, float], b: dict[str, float]) -> bool:
    """Whether two combinations of standard parameters are the same."""
    return a.keys() == b.keys() and all(abs(a[k] - b[k]) <= _SAME_COEFFICIENT * max(1.0, abs(a[k])) for k in a)
