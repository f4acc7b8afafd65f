"""`armid.compare`: several identifications of one arm side by side; do they agree within their own uncertainty?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import hypot, isfinite, nan, sqrt
from pathlib import Path
from typing import Any, ClassVar

from armid.documents import write_json
from armid.errors import InputError
from armid.estimation.estimate import NORMAL_95, Estimate
from armid.identification.chosen import Parameters, chosen_estimate, standard_values
from armid.identification.combine import joint_errors, relative_error
from armid.identification.result import Result, load_result
from armid.identification.same_arm import check_same_arm
from armid.identification.thresholds import FAR_APART
from armid.notes import Note, Severity
from armid.outcome import Check, InputFile, Outcome, Provenance
from armid.page import Cell, Table
from armid.parameters.inertial import InertialIndex
from armid.parameters.space import Parameter, named_parameters
from armid.words import choice, several

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Differences of one class of parameters between two results, in standard deviations of the difference.

    Args:
        kind: class of the parameters; `all` for all of them.
        count: of parameters compared.
        beyond: share of them further apart than 1.96; chance alone gives 5 %.
        root_mean_square: of the differences; 1 when intervals are as wide as they should be.
        largest: absolute difference.
        parameter: whose it is.
    """

    kind: str
    count: int
    beyond: float
    root_mean_square: float
    largest: float
    parameter: str


ALL = "all"
"""Of a table of scores: all classes together."""


def parameter_class(parameter: Parameter) -> str:
    """Word for what a base parameter leads with: mass, first moment, inertia, or the quantity of a drive."""
    match parameter.component:
        case None:
            return parameter.quantity.removeprefix("motor_").replace("_", " ")
        case InertialIndex.MASS:
            return "mass"
        case InertialIndex.MX | InertialIndex.MY | InertialIndex.MZ:
            return "first moment"
        case _:
            return "inertia"


def scores(differences: Mapping[str, float]) -> tuple[Scores, ...]:
    """The table of differences by class of parameter, all of them last.

    Args:
        differences: by parameter, in standard deviations; those that are not finite are left out.
    """
    found: dict[str, dict[str, float]] = {}
    for parameter, (name, z) in zip(named_parameters(tuple(differences)), differences.items(), strict=True):
        if isfinite(z):
            found.setdefault(parameter_class(parameter), {})[name] = abs(z)
    if not found:
        return ()
    everything = {name: z for group in found.values() for name, z in group.items()}
    return tuple(_scores_of(kind, group) for kind, group in (*found.items(), (ALL, everything)))


def _scores_of(kind: str, sizes: Mapping[str, float]) -> Scores:
    far = max(sizes, key=lambda name: sizes[name])
    return Scores(
        kind=kind,
        count=len(sizes),
        beyond=sum(z > NORMAL_95 for z in sizes.values()) / len(sizes),
        root_mean_square=sqrt(sum(z * z for z in sizes.values()) / len(sizes)),
        largest=sizes[far],
        parameter=far,
    )


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
        parameters: which values are compared.
    """

    _page: ClassVar[str] = "armid.report.comparison:comparison_report"
    _loads: ClassVar[bool] = True

    names: tuple[str, ...]
    results: tuple[Result, ...]
    rows: tuple[Agreement, ...]
    checks: tuple[Check, ...] = ()
    notes: tuple[Note, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)
    parameters: Parameters = Parameters.BASE

    @property
    def largest_difference(self) -> float | None:
        """Of all parameters and results, in standard deviations; None when nothing could be compared."""
        return max((abs(d) for row in self.rows for d in row.differences if isfinite(d)), default=None)

    def scores(self, k: int) -> tuple[Scores, ...]:
        """How far result k is from the first, by class of parameter."""
        return scores({row.name: row.differences[k] for row in self.rows})

    def as_dict(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict.value,
            "scores": {name: [asdict(s) for s in self.scores(k)] for k, name in enumerate(self.names) if k},
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
        return (
            Table(header, tuple(rows), caption="held-out torque error"),
            *(self._score_table(k) for k in range(1, len(self.results))),
        )

    def _score_table(self, k: int) -> Table:
        """Differences from the first result by class of parameter."""
        header = ("parameters", "count", "beyond 1.96", "root mean square", "largest", "of")
        rows = tuple(
            (s.kind, s.count, f"{100 * s.beyond:.0f} %", f"{s.root_mean_square:.2f}", f"{s.largest:.1f}", s.parameter)
            for s in self.scores(k)
        )
        caption = (
            f"{self.names[k]} against {self.names[0]}, in deviations of the difference; by chance 5 % lie beyond 1.96"
        )
        return Table(header, rows, caption=caption)

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes `comparison.json` and the page."""
        return (
            write_json(Path(folder) / "comparison.json", self.as_dict()),
            self.report(Path(folder) / "comparison.html"),
        )


def compare(
    *results: str | Path | Result | Sequence[str | Path | Result], parameters: str | Parameters = Parameters.BASE
) -> ResultComparison:
    """Puts identifications of one arm side by side: parameters with intervals, differences, held-out errors.

    Args:
        results: two or more, or their folders, or one list of them; the first is what the others are compared with.
        parameters: all base parameters, or of every result its essential ones: of a reduced model those left out are zero
            without deviation, and errors are the reduced models'.

    Raises:
        InputError: fewer than two, of different arms, with nothing in common, or without essential parameters asked for.
    """
    if len(results) == 1 and isinstance(results[0], list | tuple):
        return compare(*results[0], parameters=parameters)
    meant = choice("parameters", parameters, Parameters)
    if meant is Parameters.CONSISTENT:
        hint = "base or essential; the page has the bodies beside them"
        raise InputError(
            "--parameters consistent", "bodies are in part regularisation and have no such intervals", hint
        )
    given = several("results", results, (str, Path, Result), "results or their folders, two or more")
    loaded = tuple(r if isinstance(r, Result) else load_result(r, traces=False) for r in given)
    names = _short_names(given)
    for name, other in zip(names, loaded, strict=True):
        check_same_arm(name, loaded[0].described, other.described)
    loaded = tuple(_reduced(result) for result in loaded) if meant is Parameters.ESSENTIAL else loaded
    rows = agreement(loaded)
    folders = [str(r) for r in given if not isinstance(r, Result)]
    return ResultComparison(
        names=tuple(names),
        results=loaded,
        rows=rows,
        checks=tuple(_agreement_check(name, k, rows) for k, name in enumerate(names) if k),
        notes=_description_notes(loaded),
        provenance=Provenance(inputs=tuple(InputFile(folder, "", "result") for folder in folders)),
        parameters=meant,
    )


def _reduced(result: Result) -> Result:
    """A result with the estimate and the errors of its reduced model, to be compared and not to be stored."""
    own = standard_values(result, Parameters.ESSENTIAL)
    held_out = result.held_out_information
    return replace(
        result,
        estimate=chosen_estimate(result, Parameters.ESSENTIAL),
        joints=joint_errors(result.information, held_out, own),
        relative_error={
            "train": relative_error(result.information, own),
            "held_out": nan if held_out is None else relative_error(held_out, own),
        },
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
