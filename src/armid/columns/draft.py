"""`armid map`: a mapping file drafted from what a table's names and numbers say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from armid.columns.drafting import Drafting
from armid.columns.long_table import widened
from armid.columns.names import NamedColumn, named_column
from armid.columns.readings import Certainty, ColumnReading, Question
from armid.documents import write_text
from armid.errors import InputError
from armid.logs.content import unnamed_groups
from armid.logs.groups import Group
from armid.logs.log import Channel
from armid.logs.mapping import TORQUE_SIDES, ClockMap
from armid.logs.readers.files import existing, open_table, sha256_of
from armid.logs.readers.table import Layout
from armid.logs.readers.text import TextTable
from armid.logs.units import SHARES
from armid.notes import Note, Severity
from armid.outcome import Check, InputFile, Outcome, Provenance
from armid.page import Table as PageTable
from armid.robot.load import load_robot
from armid.robot.robot import Robot

_HEAD_ROWS = 20_000
"""Rows looked at: a minute at ordinary rates."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MappingDraft(Outcome):
    """A mapping for a table, and how sure it is.

    Args:
        robot: whose recording it is.
        file: the table.
        readings: one per column that was understood.
        ignored: columns that mean nothing here.
        questions: what remains to be decided.
        rated: rated torques [N m], when somebody stated them.
        side: of the torque.
        signs: of the torque, one per joint.
        first_rows: the first rows as understood, SI units; header and rows.
        checks: whether it can be read.
        notes: what a reader must know.
        provenance: the file and its hash.
        wide: the table with a column for every joint, when it had a row for every joint; saved beside the mapping.
    """

    _page: ClassVar[str] = "armid.report.columns:columns_report"

    robot: Robot
    file: Path
    readings: tuple[ColumnReading, ...]
    ignored: tuple[str, ...]
    questions: tuple[Question, ...]
    rated: tuple[float, ...]
    side: str
    signs: tuple[float, ...]
    first_rows: PageTable
    checks: tuple[Check, ...] = ()
    notes: tuple[Note, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)
    wide: str = ""

    def _heading(self) -> str:
        return f"mapping of {self.file.name} for {self.robot.name}: {len(self.readings)} columns, {len(self.questions)} open"

    def _tables(self) -> tuple[PageTable, ...]:
        rows = tuple(
            (r.column, "time" if r.channel is None else r.channel.value, r.joint, r.unit, r.certainty.value, r.why)
            for r in self.readings
        )
        tables = [
            PageTable(("column", "is", "joint", "unit", "certainty", "why"), rows, caption="What the columns are"),
            self.first_rows,
        ]
        if self.questions:
            open_rows = tuple((q.key, q.text, ", ".join(q.choices) or "numbers", q.assumed) for q in self.questions)
            tables.append(
                PageTable(
                    ("answer", "question", "choices", "written meanwhile"), open_rows, caption="What you must decide"
                )
            )
        if self.ignored:
            tables.append(
                PageTable(("column",), tuple((name,) for name in self.ignored), caption="Left out", folded=True)
            )
        return tuple(tables)

    def as_dict(self) -> dict[str, Any]:
        return {
            "schema": "armid.columns/1",
            "file": str(self.file),
            "robot": self.robot.name,
            "verdict": self.verdict.value,
            "columns": [
                {
                    "column": r.column,
                    "channel": None if r.channel is None else r.channel.value,
                    "meaning": "time" if r.channel is None else r.channel.value,
                    "sure": r.certainty is Certainty.SURE,
                    "joint": r.joint,
                    "unit": r.unit,
                    "certainty": r.certainty.value,
                    "why": r.why,
                }
                for r in self.readings
            ],
            "ignored": list(self.ignored),
            "questions": [
                {"key": q.key, "text": q.text, "choices": list(q.choices), "assumed": q.assumed} for q in self.questions
            ],
            "mapping": self.text(),
            "checks": [check.as_dict() for check in self.checks],
            "notes": [note.as_dict() for note in self.notes],
        }

    def in_brief(self) -> str:
        """Channels with their columns, units and certainty, and what is open, in one line."""
        parts = []
        for channel in dict.fromkeys(r.channel for r in self.readings):
            mine = [r for r in self.readings if r.channel is channel]
            name = "time" if channel is None else channel.value
            listed = mine[0].column if len(mine) == 1 else f"{mine[0].column} .. {mine[-1].column}"
            units, sure = (
                ", ".join(dict.fromkeys(words)) for words in ([r.unit for r in mine], [r.certainty for r in mine])
            )
            parts.append(f"{name} from {listed} [{units}] ({sure})")
        left = f"; to decide: {', '.join(q.key for q in self.questions)}" if self.questions else ""
        return "; ".join(parts) + left

    def text(self, folder: Path | None = None) -> str:
        """The mapping file.

        Args:
            folder: it will be in; the table is named relative to it when it lies below.
        """
        place = self.file.absolute()
        if folder is not None and place.is_relative_to(folder.absolute()):
            place = place.relative_to(folder.absolute())
        lines = ["schema: armid.log/1", f"name: {_quoted(self.file.stem)}", f"file: {_quoted(str(place))}"]
        lines += [f"# DECIDE {q.key}: {q.text} Written meanwhile: {q.assumed}." for q in self.questions]
        lines.append(f"joints: [{', '.join(_quoted(name) for name in self.robot.joint_names)}]")
        clock = next((r for r in self.readings if r.channel is None), None)
        if clock is not None:
            lines.append(f"clock: {{column: {_quoted(clock.column)}, unit: {clock.unit}}}  # {clock.why}")
        lines.append("channels:")
        for channel in dict.fromkeys(r.channel for r in self.readings if r.channel is not None):
            lines += self._channel_lines(channel)
        return "\n".join(lines) + "\n"

    def _channel_lines(self, channel: Channel) -> list[str]:
        mine = {r.joint: r for r in self.readings if r.channel is channel}
        ordered = [mine[name] for name in self.robot.joint_names]
        units = [r.unit for r in ordered]
        torque = channel in TORQUE_SIDES.values() and channel.value.startswith("torque")
        key = "torque" if torque else channel.value
        lines = [f"  {_quoted(key)}:"]
        if torque:
            lines.append(f"    side: {next(word for word, c in TORQUE_SIDES.items() if c is channel)}")
        lines.append(f"    columns: [{', '.join(_quoted(r.column) for r in ordered)}]")
        lines.append(f"    unit: {units[0] if len(set(units)) == 1 else '[' + ', '.join(units) + ']'}")
        if torque and channel is not Channel.CURRENT and units[0] in SHARES:
            lines.append(f"    rated: [{', '.join(f'{x:g}' for x in self.rated)}]")
        if torque and min(self.signs) < 0.0:
            lines.append(f"    sign: [{', '.join(f'{x:g}' for x in self.signs)}]")
        lines += [f"    # {reason}" for reason in dict.fromkeys(_general(r) for r in ordered)]
        return lines

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes `FOLDER/NAME.yaml`, and `FOLDER/NAME-wide.csv` when the table had a row for every joint."""
        place = Path(folder)
        if self.wide:
            table = write_text(place / f"{self.file.stem}-wide.csv", self.wide)
            mapping = replace(self, file=table).text(place)
            return write_text(place / f"{self.file.stem}.yaml", mapping), table
        return (write_text(place / f"{self.file.stem}.yaml", self.text(place)),)


def _general(reading: ColumnReading) -> str:
    return f"{reading.certainty.value}: {reading.why}"


def _quoted(text: str) -> str:
    """A YAML scalar: as it is when it is a plain word, else in double quotes."""
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_./-]*", text) and text.lower() not in (
        "y",
        "n",
        "yes",
        "no",
        "on",
        "off",
        "true",
        "false",
        "null",
    ):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def map_log(
    robot: str | Path | Robot,
    log: str | Path,
    *,
    answers: Mapping[str, str | Sequence[float]] | None = None,
    base: str | None = None,
    tip: str | None = None,
) -> MappingDraft:
    """What the columns of a table mean, from their names in several languages, their ranges and physics.

    Velocity is the derivative of position, positions stay within the joints' ranges, torque follows weight and inertia: whatever
    agrees is sure, whatever only a name says is likely, whatever nothing decides is asked.

    Args:
        robot: whose recording it is; ranges and masses help.
        log: a table of any known format.
        answers: to the questions of an earlier draft, by key: `side` (link, motor, current, commanded), `rated` (rated torque of
            each joint [N m], where torque is a share of it), `torque` (name of its columns with # for the number), `sign.torque`
            (as recorded, reversed), `unit.position`, `unit.velocity`, `unit.torque`, `unit.time`.
        base, tip: link names that bound the chain.

    Raises:
        InputError: no table, or no positions in it; the message lists the columns.
    """
    arm = robot if isinstance(robot, Robot) else load_robot(robot, base=base, tip=tip)
    path = existing(log)
    table = open_table(path, Layout())
    wide = widened(path, table.dialect, arm.joint_names) if isinstance(table, TextTable) else None
    if wide is not None:
        return _drafted_wide(arm, path, wide, answers)
    head = next(iter(table.chunks(_HEAD_ROWS)), None)
    if head is None:
        raise InputError(path, "no samples")
    columns = {name: values for name, values in head.items() if values.ndim == 1}
    named = (
        [named_column(name, arm.joint_names) for name in columns]
        if table.named
        else _by_content(*unnamed_groups(path, table, head, arm), columns)
    )
    work = Drafting(arm, path, columns, named, dict(answers or {}))
    readings, side = work.readings()
    used = {r.column for r in readings}
    return MappingDraft(
        robot=arm,
        file=path,
        readings=tuple(readings),
        ignored=tuple(name for name in work.table if name not in used),
        questions=tuple(work.questions),
        rated=work.rated() if side in ("link", "motor", "commanded") else (),
        side=side,
        signs=work.signs(),
        first_rows=work.first_rows(readings),
        checks=_checks(arm, readings, work.questions),
        notes=_other_torques(work.named, used),
        provenance=Provenance(
            inputs=(InputFile(str(path), sha256_of(path), "log"),), settings={"answers": dict(work.answers)}
        ),
    )


def _drafted_wide(
    robot: Robot, path: Path, wide: str, answers: Mapping[str, str | Sequence[float]] | None
) -> MappingDraft:
    """The draft of a table that had a row for every joint."""
    with TemporaryDirectory() as folder:
        draft = map_log(robot, write_text(Path(folder) / f"{path.stem}-wide.csv", wide), answers=answers)
    text = f"a row for every joint: `{path.stem}-wide.csv` beside the mapping has a column for every joint instead"
    inputs = (InputFile(str(path), sha256_of(path), "log"),)
    return replace(
        draft,
        file=path,
        wide=wide,
        notes=(*draft.notes, Note("long-table", Severity.INFO, text, path.name)),
        provenance=replace(draft.provenance, inputs=inputs),
    )


def _other_torques(named: Sequence[NamedColumn], used: set[str]) -> tuple[Note, ...]:
    """Says which further torques the table has: one is mapped, and whoever wants another one edits the file."""
    left = [c for c in named if c.channel is not None and c.channel.is_torque and c.name not in used]
    if not left or not any(c.channel is not None and c.channel.is_torque and c.name in used for c in named):
        return ()
    listed = ", ".join(c.name for c in left[:3]) + (", ..." if len(left) > 3 else "")
    return (Note("other-torques", Severity.INFO, f"further torques are left out: {listed}"),)


def _by_content(groups: Sequence[Group], clock: ClockMap, columns: Iterable[str]) -> list[NamedColumn]:
    """Columns without names, as the numbers tell them apart: never understood as a whole."""
    found = {
        name: NamedColumn(name=name, channel=group.channel, number=k + 1, whole=False)
        for group in groups
        for k, name in enumerate(group.columns)
    }
    return [found.get(name, NamedColumn(name=name, clock=name == clock.column, whole=False)) for name in columns]


def _checks(robot: Robot, readings: Sequence[ColumnReading], questions: Sequence[Question]) -> tuple[Check, ...]:
    """Whether the file can be read with it."""
    has = {r.channel for r in readings}
    torque = any(c is not None and c.is_torque for c in has)
    return (
        _check(
            "time",
            None in has,
            "a time column",
            "no time column: give the step with --step, or `clock: {step: ...}` in the file",
        ),
        _check(
            "torque",
            torque,
            "torque of every joint",
            f"no torque for each of {robot.n_joints} joints among the columns",
        ),
        Check(
            code="decided",
            passed=not questions,
            value=float(len(questions)),
            limit=0.0,
            message=(
                "nothing is open"
                if not questions
                else f"{len(questions)} to decide: {', '.join(q.key for q in questions)} (marked DECIDE in the file)"
            ),
            decisive=False,
        ),
    )


def _check(code: str, holds: bool, there: str, missing: str) -> Check:
    return Check(
        code=code,
        passed=holds,
        value=float(holds),
        limit=1.0,
        message=f"{there} is there" if holds else missing,
        decisive=True,
    )


def with_answers(draft: MappingDraft, answers: Mapping[str, str | Sequence[float]]) -> MappingDraft:
    """The draft made anew with more answers."""
    known: dict[str, str | Sequence[float]] = dict(draft.provenance.settings["answers"])
    again = map_log(draft.robot, draft.file, answers={**known, **answers})
    return replace(again, notes=draft.notes)
