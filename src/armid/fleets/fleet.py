"""`armid.fleet`: many arms on many dates to their spread, their changes, and which of them need service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from armid.apart import refuse_inputs_within
from armid.arrays import FloatArray
from armid.cluster.workers import Workers, open_workers
from armid.documents import read_json, write_json
from armid.errors import InputError
from armid.estimation.population import FEWEST_ARMS, Population, Told, fit_population, shrunk, told_by
from armid.fleets.drift import FALSE_ALARMS, Drift, drifts
from armid.fleets.sharpened import sharpened_courses
from armid.fleets.table import Visit, read_visits
from armid.fleets.tables import write_tables
from armid.fleets.visit import VisitResult, VisitTask, identify_visit
from armid.notes import Note, Severity
from armid.outcome import Check, InputFile, Outcome, Provenance
from armid.page import Cell, Table
from armid.parameters.effects import DEFAULT_FRICTION
from armid.parameters.space import named_parameter
from armid.robot.load import load_robot
from armid.unfinished import question_digest
from armid.words import several

Progress = Callable[[str], None]

_SCHEMA = "armid.fleet/1"
_VISITS = "visits"
"""Folder in which finished visits are kept, each in a file: what was interrupted goes on from them."""
_WHAT = "a finished visit of a fleet"
_MOST_REFUSED = 0.5
"""Share of visits that may be untrusted: beyond it the arms that are left need not stand for the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRow:
    """One arm of a fleet.

    Args:
        arm: its name.
        visits, used: dates, and those in the statistics.
        last: date of the last visit, with `verdict` and `relative_error` (held out).
        alarms: changes found.
    """

    arm: str
    visits: int
    used: int
    last: str
    verdict: str
    relative_error: float
    alarms: int


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Fleet(Outcome):
    """Many arms over time.

    Args:
        visits: every arm and date.
        population: mean and spread of arms; None when there are too few.
        drift: the likeliest change of every drive's parameter of every arm, the most certain first.
        false_alarms: probability of even one alarm in a fleet without any change.
        joints: names of the joints, for people.
        workers, retries: of the cluster.
    """

    _page: ClassVar[str] = "armid.report.fleet:fleet_report"

    visits: tuple[VisitResult, ...]
    population: Population | None
    drift: tuple[Drift, ...]
    false_alarms: float = FALSE_ALARMS
    joints: tuple[str, ...] = ()
    workers: int = 1
    retries: int = 0
    checks: tuple[Check, ...] = ()
    notes: tuple[Note, ...] = ()
    provenance: Provenance = field(default_factory=lambda: Provenance(versions={}))

    @property
    def alarms(self) -> tuple[Drift, ...]:
        """Changes that are no chance, the most certain first: which arms need service."""
        return tuple(one for one in self.drift if one.alarm)

    @cached_property
    def arms(self) -> tuple[ArmRow, ...]:
        """One row per arm."""
        alarms = Counter(one.arm for one in self.alarms)
        by_arm: dict[str, list[VisitResult]] = {}
        for one in self.visits:
            by_arm.setdefault(one.visit.arm, []).append(one)
        return tuple(
            ArmRow(
                arm=arm,
                visits=len(own),
                used=sum(one.counts for one in own),
                last=own[-1].visit.date,
                verdict=own[-1].verdict,
                relative_error=own[-1].relative_error,
                alarms=alarms[arm],
            )
            for arm, own in by_arm.items()
        )

    def shrunk_values(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Values and deviations of every arm as its own recordings and the others together have them, shape [r] each."""
        if self.population is None:
            return {}
        told = told_of_arms(self.visits, {one.arm for one in self.alarms}, self.population.names)
        out = {}
        for arm, own in told.items():
            both = shrunk(own, self.population.without(own, list(told.values())))
            out[arm] = both.values, np.sqrt(np.diag(both.covariance))
        return out

    def joint_of(self, parameter: str) -> str:
        """Name of the joint a drive's parameter belongs to; its own name for others."""
        found = named_parameter(parameter)
        return self.joints[found.body] if found.of_joint and found.body < len(self.joints) else parameter

    def _heading(self) -> str:
        used = sum(one.counts for one in self.visits)
        ill = ", ".join(dict.fromkeys(one.arm for one in self.alarms)) or "no arm"
        return f"{len(self.arms)} arms, {len(self.visits)} visits ({used} in the statistics); needs service: {ill}"

    def _tables(self) -> tuple[Table, ...]:
        return (self.arm_table(), self.alarm_table(), *self.spread_tables())

    def arm_table(self) -> Table:
        """One line per arm."""
        rows: list[tuple[Cell, ...]] = [
            (row.arm, row.last, row.verdict, 100.0 * row.relative_error, row.visits, row.used, row.alarms)
            for row in self.arms
        ]
        header = ("arm", "last date", "verdict", "held-out error [%]", "visits", "used", "alarms")
        return Table(header, tuple(rows), caption="Every arm.")

    def alarm_table(self) -> Table:
        """Changes that are no chance, ranked."""
        header = ("arm", "joint", "parameter", "kind", "since", "change", "low", "high", "unit", "probability")
        rows: list[tuple[Cell, ...]] = [
            tuple(self.joint_of(one.parameter) if name == "joint" else getattr(one, name) for name in header)
            for one in self.alarms
        ]
        caption = (
            f"Alarms, the most certain first; a fleet without changes raises one in {self.false_alarms:.0%} of cases."
        )
        return Table(header, tuple(rows), caption=caption if rows else f"No alarms. {caption}")

    def spread_tables(self) -> tuple[Table, ...]:
        """Mean and spread of every base parameter."""
        p = self.population
        if p is None:
            return ()
        low, high = p.spread_interval()
        rows = tuple(
            (name, float(m), float(d), float(s), float(a), float(b), unit, float(abs(s / m)) * 100.0 if m else None)
            for name, m, d, s, a, b, unit in zip(
                p.names, p.mean, p.deviations, p.spread, low, high, p.units, strict=True
            )
        )
        header = ("parameter", "mean", "its deviation", "spread", "low", "high", "unit", "spread [%]")
        return (Table(header, rows, caption=f"Spread over {p.arms} arms.", folded=True),)

    def as_dict(self) -> dict[str, Any]:
        p = self.population
        spread = (
            []
            if p is None
            else [
                {"parameter": n, "mean": float(m), "standard_deviation": float(d), "spread": float(s), "unit": u}
                for n, m, d, s, u in zip(p.names, p.mean, p.deviations, p.spread, p.units, strict=True)
            ]
        )
        return {
            "schema": _SCHEMA,
            "arms": [
                {
                    name: getattr(row, name)
                    for name in ("arm", "visits", "used", "last", "verdict", "relative_error", "alarms")
                }
                for row in self.arms
            ],
            "visits": [
                {
                    "arm": one.visit.arm,
                    "date": one.visit.date,
                    "verdict": one.verdict,
                    "reasons": list(one.reasons),
                    "relative_error": one.relative_error,
                    "used": one.counts,
                    "set_aside": dict(one.set_aside),
                }
                for one in self.visits
            ],
            "drift": [one.as_dict() for one in self.alarms],
            "spread": spread,
            "false_alarms": self.false_alarms,
            "workers": self.workers,
            "retries": self.retries,
            "verdict": str(self.verdict),
            "reasons": list(self.reasons),
            "notes": [note.as_dict() for note in self.notes],
            "provenance": self.provenance.as_dict(),
        }

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes `fleet.json`, `population.json` and the tables as Parquet files (CSV without pyarrow)."""
        place = Path(folder)
        population = () if self.population is None else (self.population.save(place),)
        return (write_json(place / "fleet.json", self.as_dict()), *population, *write_tables(self, place))


def fleet(
    table: str | Path | Sequence[Visit],
    *,
    robot: str | Path | None = None,
    friction: str = DEFAULT_FRICTION,
    rotor_inertia: bool = False,
    torques: str = "link",
    cutoff_hz: float | None = None,
    false_alarms: float = FALSE_ALARMS,
    strict: bool = False,
    base: str | None = None,
    tip: str | None = None,
    cluster: Any = None,
    out: str | Path | None = None,
    progress: Progress = lambda _: None,
) -> Fleet:
    """Identifies every arm on every date, learns how arms differ, and finds those that change.

    Args:
        table: path of a CSV or YAML file (`docs/fleet.md`), a pattern of paths with `{arm}` and `{date}`, or visits.
        robot: description for visits that do not name one.
        friction, rotor_inertia, torques, cutoff_hz: as `identify` takes them; the same for all.
        false_alarms: probability of even one alarm in a fleet without any change.
        strict: whether an unusable log stops its visit, instead of being set aside.
        base, tip: ends of the arm in a URDF with several.
        cluster: where visits are identified: `local[:N]`, an address, a Dask client; None for here.
        out: folder in which finished visits are kept; the same question asked again goes on from them.
        progress: told in words what is being done.

    Raises:
        InputError: a table that cannot be used.
        ClusterError: a cluster that cannot be used.
    """
    if not 0.0 < false_alarms < 1.0:
        raise InputError("--false-alarms", f"{false_alarms}", "expected a probability between 0 and 1")
    if isinstance(table, str | Path):
        visits = read_visits(table, robot)
    else:
        visits = tuple(several("table", table, (Visit,), "a table, or Visits"))
    if not visits:
        raise InputError("table", "no visit in it", "one row per arm and date")
    refuse_inputs_within(out, (table, robot, *(path for visit in visits for path in (visit.robot, *visit.logs))))
    words = {
        "friction": friction,
        "rotor_inertia": rotor_inertia,
        "torques": torques,
        "cutoff_hz": cutoff_hz,
        "strict": strict,
        "sensitivity": False,
    }
    tasks = [VisitTask(visit=visit, words=words, base=base, tip=tip) for visit in visits]
    with open_workers(cluster, progress=progress) as workers:
        done = _identified(tasks, workers, None if out is None else Path(out) / _VISITS)
        count, retries = workers.count, workers.retries
    progress("spread and changes")
    found = summed_up(done, false_alarms=false_alarms, joints=_joints_of(tasks))
    settings = {**words, "false_alarms": false_alarms}
    inputs = tuple(
        InputFile(path, digest, "log" if path in task.visit.logs else "robot")
        for task in tasks
        for path, digest in task.digests().items()
    )
    return replace(
        found,
        workers=count,
        retries=retries,
        provenance=Provenance(inputs=tuple(dict.fromkeys(inputs)), settings=settings),
    )


def summed_up(done: Sequence[VisitResult], *, false_alarms: float = FALSE_ALARMS, joints: Sequence[str] = ()) -> Fleet:
    """Spread and changes of identified visits.

    Args:
        done: every visit, by arm and date.
        false_alarms: see `fleet`.
        joints: names of the joints.
    """
    names = _common_names(done)
    changes = drifts(sharpened_courses(done, names), false_alarms)
    worn = {one.arm for one in changes if one.alarm}
    told = told_of_arms(done, worn, names)
    units = next((one.units for one in done if one.names == names), ())
    population = None
    notes = list(_notes_of(done, names))
    if len(told) >= FEWEST_ARMS:
        population = fit_population(list(told.values()), names, units, robot=Path(done[0].visit.robot).stem)
    else:
        text = f"{len(told)} arm(s) in the statistics: a spread needs at least {FEWEST_ARMS}"
        notes.append(Note("no-spread", Severity.INFO, text))
    used = sum(one.counts for one in done) / len(done)
    check = Check(
        code="visits-usable",
        passed=used >= 1.0 - _MOST_REFUSED,
        value=used,
        limit=1.0 - _MOST_REFUSED,
        message=f"{used:.0%} of the visits are trusted and complete; the others need not be like them",
    )
    return Fleet(
        visits=tuple(done),
        population=population,
        drift=changes,
        false_alarms=false_alarms,
        joints=tuple(joints),
        checks=(check,),
        notes=tuple(notes),
    )


def told_of_arms(done: Sequence[VisitResult], worn: set[str], names: tuple[str, ...]) -> dict[str, Told]:
    """What the visits of every arm say together; of an arm that changes the last one alone."""
    out: dict[str, list[Told]] = {}
    for one in done:
        if one.counts and one.names == names:
            out.setdefault(one.visit.arm, []).append(told_by_visit(one))
    return {arm: told[-1] if arm in worn else reduce(Told.__add__, told) for arm, told in out.items()}


def told_by_visit(one: VisitResult) -> Told:
    """What a visit says about the base parameters."""
    return told_by(one.values, one.covariance)


def _common_names(done: Sequence[VisitResult]) -> tuple[str, ...]:
    """Base parameters of most visits in the statistics."""
    counted = Counter(one.names for one in done if one.counts)
    return counted.most_common(1)[0][0] if counted else ()


def _notes_of(done: Sequence[VisitResult], names: tuple[str, ...]) -> tuple[Note, ...]:
    """Visits and logs that are not in the statistics, with the reason."""
    out = []
    for one in done:
        about = f"{one.visit.arm}, {one.visit.date}"
        if not one.counts or one.names != names:
            reason = one.reasons[0] if one.reasons else "its motion does not determine every parameter"
            out.append(Note("visit-not-used", Severity.WARNING, f"{one.verdict}: {reason}", about))
        out += [Note("log-set-aside", Severity.WARNING, why, f"{about}: {log}") for log, why in one.set_aside.items()]
    return tuple(out)


def _joints_of(tasks: Sequence[VisitTask]) -> tuple[str, ...]:
    """Names of the joints of the first visit's arm."""
    first = tasks[0]
    return load_robot(first.visit.robot, base=first.base, tip=first.tip).joint_names


def _identified(tasks: Sequence[VisitTask], workers: Workers, folder: Path | None) -> list[VisitResult]:
    """Every visit, from where it is kept or by the workers; each is kept as soon as it is finished."""
    done: dict[int, VisitResult] = {}
    digests = [question_digest([task.visit, dict(task.words), task.base, task.tip, task.digests()]) for task in tasks]
    files = [None if folder is None else folder / f"{digest[:20]}.json" for digest in digests]
    for k, (task, file) in enumerate(zip(tasks, files, strict=True)):
        found = None if file is None else _kept(task, file)
        if found is not None:
            done[k] = found
    left = [k for k in range(len(tasks)) if k not in done]
    for number, answer in workers.map(identify_visit, _sent([tasks[k] for k in left], workers), label="visits"):
        k = left[number]
        done[k], file = answer, files[k]
        if file is not None:
            write_json(file, answer.as_dict(), indent=None)
    return [done[k] for k in range(len(tasks))]


def _sent(tasks: Sequence[VisitTask], workers: Workers) -> list[VisitTask]:
    """Tasks with the content of files that not every worker can read; every log belongs to one visit and travels once."""
    paths = list(dict.fromkeys(path for task in tasks for path in task.files))
    seen = dict(zip(paths, workers.sees(paths), strict=True))
    return [
        replace(
            task, sent={path: Path(path).read_bytes() for path in task.files if not seen[path] and Path(path).is_file()}
        )
        for task in tasks
    ]


def _kept(task: VisitTask, file: Path) -> VisitResult | None:
    """A finished visit; None when there is none that can be read."""
    if not file.is_file():
        return None
    try:
        return VisitResult.from_dict(task.visit, read_json(file, _WHAT))
    except (InputError, KeyError, TypeError, ValueError):
        return None
