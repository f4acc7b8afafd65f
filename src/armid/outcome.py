"""What every answer of armid is and can do: a verdict with its checks, notes, provenance, and one way to be read.

An answer is a frozen record of its own room. It says in a line what it is (`_heading`), in tables what it found (`_tables`) and
in plain values what programs rely on (`as_dict`); everything a person or a notebook sees is made from these here.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from functools import cache
from html import escape
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, overload

from armid import __version__
from armid.answers import write_answer
from armid.documents import plain
from armid.errors import ArmidError, MissingDependencyError, UnknownNameError
from armid.folders import answer_folder, whole
from armid.notes import Note, like_counted
from armid.page import Cell, Figure, Report, Table
from armid.screen import broken_row, screen_width, shared_widths

if TYPE_CHECKING:
    import pandas
    import plotly.graph_objects


class Verdict(StrEnum):
    """Whether an answer may be used."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"
    UNDETERMINED = "undetermined"
    """Of a part of an answer, such as a joint: the data cannot tell. An answer as a whole is one of the other two."""


class UntrustedError(ArmidError):
    """An answer that must not be used, with the reasons."""

    def __init__(self, what: str, reasons: Sequence[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__(f"{what} is not to be trusted: {'; '.join(reasons)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One condition that an answer was held against.

    Args:
        code: kebab-case.
        passed: whether it holds.
        value, limit: what was compared.
        message: in words; with what to do when it fails.
        subject: joint, channel or file; empty for the whole.
        decisive: whether failing it makes the answer untrusted (otherwise it only warns).
    """

    code: str
    passed: bool
    value: float
    limit: float
    message: str
    subject: str = ""
    decisive: bool = True

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file an answer rests on.

    Args:
        path: as it was given.
        sha256: of its bytes; empty when it was not a file (a catalogue name, arrays in memory).
        role: `robot`, `train`, `held-out`, `poses`, ...
    """

    path: str
    sha256: str
    role: str


@cache
def versions() -> Mapping[str, str]:
    """Of armid, Python and the libraries whose arithmetic is in every number."""
    import platform  # both only here: --help must start at once
    from importlib.metadata import PackageNotFoundError, version

    out = {"armid": __version__, "python": platform.python_version()}
    for library in ("numpy", "scipy", "numba", "clarabel"):
        try:
            out[library] = version(library)
        except PackageNotFoundError:
            continue
    return out


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """What an answer came from.

    Args:
        inputs: files with their hashes.
        settings: every choice that was made, as plain values.
        seed: of what was random; None when nothing was.
        command: line as it was typed; empty from Python.
        versions: of armid, Python and the libraries that compute.
    """

    inputs: tuple[InputFile, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=versions)

    def as_dict(self) -> dict[str, Any]:
        return {
            "inputs": [asdict(file) for file in self.inputs],
            "settings": dict(self.settings),
            "seed": self.seed,
            "command": self.command,
            "versions": dict(self.versions),
        }


class Outcome:
    """Base of every answer: Inspection, Design, Result, Calibration, Payload, ...

    A subclass is a frozen dataclass (`repr=False`) with fields or properties `checks`, `notes` and `provenance`, and gives
    `_heading`, `_tables` and `as_dict`. `_page` names the function of `armid.report` that makes its page.
    """

    _page: ClassVar[str] = ""
    """`module:function` of the page; named, not imported: pages are the floor above and load when somebody asks for one."""

    _loads: ClassVar[bool] = False
    """Whether `save` keeps the answer whole as well, so that `armid.load_answer` gives the same object again."""

    checks: tuple[Check, ...] = ()
    notes: tuple[Note, ...] = ()
    provenance: Provenance = Provenance(versions={})

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not to be trusted; empty when it is."""
        return tuple(check.message for check in self.checks if check.decisive and not check.passed)

    @property
    def verdict(self) -> Verdict:
        """Trusted when every decisive check holds."""
        return Verdict.UNTRUSTED if self.reasons else Verdict.TRUSTED

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """The files of every kind of answer appear in a folder together, or not at all; its dictionary can become JSON."""
        super().__init_subclass__(**kwargs)
        if "as_dict" in cls.__dict__:
            cls.as_dict = _plain_values(cls.__dict__["as_dict"])  # type: ignore[method-assign]
        if "save" in cls.__dict__:
            save = _kept_whole(cls.__dict__["save"]) if cls._loads else cls.__dict__["save"]
            cls.save = whole(save, cls.__name__)  # type: ignore[method-assign]

    @property
    def further_notes(self) -> tuple[Note, ...]:
        """Notes that say something the verdict's reasons do not."""
        said = set(self.reasons)
        return tuple(note for note in self.notes if note.message not in said)

    def raise_if_untrusted(self) -> Self:
        """The answer itself.

        Raises:
            UntrustedError: some decisive check failed; carries the reasons.
        """
        if self.verdict is Verdict.UNTRUSTED:
            raise UntrustedError(self._heading(), self.reasons)
        return self

    def as_dict(self) -> dict[str, Any]:
        """What programs rely on, as plain values: the keys of the command contract. Numbers that are not finite are None."""
        raise NotImplementedError

    def _heading(self) -> str:
        """What this is, in one line."""
        raise NotImplementedError

    def _tables(self) -> tuple[Table, ...]:
        """What was found, for people."""
        return ()

    def summary(self, *, notes: bool = True) -> str:
        """The answer as text: tables, verdict with reasons, numbered notes.

        Args:
            notes: whether they are part of it; the command line prints them apart.
        """
        return self._text(self._tables(), notes=notes)

    def _text(self, tables: Iterable[Table], *, notes: bool) -> str:
        """These tables between heading and verdict."""
        parts = [self._heading(), *(text_table(table) for table in tables), self._verdict_text()]
        further = self.further_notes
        if notes and further:
            parts.append(
                "Notes:\n"
                + "\n".join(f"[{i}] {note_text(note)}" for i, note in enumerate(like_counted(further), start=1))
            )
        return "\n\n".join(part for part in parts if part)

    def _verdict_text(self) -> str:
        if not self.checks:
            return ""
        warnings = [check.message for check in self.checks if not (check.passed or check.decisive)]
        return "\n".join([str(self.verdict), *(f"  - {text}" for text in (*self.reasons, *warnings))])

    def __repr__(self) -> str:
        state = f", {self.verdict}" if self.checks else ""
        return f"<{type(self).__name__} {self._heading()}{state}>"

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        """For notebooks."""
        parts = [f"<p><b>{escape(self._heading())}</b></p>", *(_html_table(table) for table in self._tables())]
        if self.checks:
            reasons = "".join(f"<li>{escape(reason)}</li>" for reason in self.reasons)
            parts.append(f"<p><b>{self.verdict}</b></p>" + (f"<ul>{reasons}</ul>" if reasons else ""))
        further = self.further_notes
        if further:
            parts.append(
                "<ol>" + "".join(f"<li>{escape(note_text(note))}</li>" for note in like_counted(further)) + "</ol>"
            )
        return "".join(parts)

    def page(self) -> Report:
        """The report as data: sections of tables and figures."""
        if not self._page:
            raise UnknownNameError("report", type(self).__name__, ())
        module, _, function = self._page.partition(":")
        page: Report = getattr(import_module(module), function)(self)
        return page

    def report(self, path: str | Path = "report.html") -> Path:
        """Writes one self-contained HTML page and says where it is.

        Raises:
            InputError: it cannot be written, or another file that is not ours has that name.
        """
        with answer_folder(Path(path).parent, f"page {Path(path).name}"):
            written: Path = import_module("armid.report.render").write_report(self.page(), Path(path))
        return written

    def plot(self, name: str) -> plotly.graph_objects.Figure:
        """A figure of the report, alone.

        Args:
            name: of the figure; `figures()` lists them.

        Raises:
            UnknownNameError: lists the names there are.
            MissingDependencyError: plotly is not installed.
        """
        found = {figure.name: figure for figure in self._figures()}
        chosen = [key for key in found if key == name] or [key for key in found if key.startswith(name)]
        if not chosen:
            raise UnknownNameError("figure", name, found)
        try:
            import plotly.graph_objects as go
        except ImportError:
            raise MissingDependencyError("plotly", "a figure", "report") from None
        figure = found[chosen[0]]
        return go.Figure({"data": list(figure.data), "layout": {**figure.layout, "height": figure.height}})

    def figures(self) -> tuple[str, ...]:
        """Names that `plot` takes."""
        return tuple(figure.name for figure in self._figures())

    def _figures(self) -> tuple[Figure, ...]:
        return self.page().figures()

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes the answer into a folder, whole or not at all. Returns the files."""
        raise NotImplementedError


def _plain_values(method: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """A method `as_dict` that gives what JSON can hold: lists for arrays, None for what is not finite."""

    @functools.wraps(method)
    def run(self: Outcome) -> dict[str, Any]:
        return dict(plain(method(self)))

    return run


def _kept_whole(save: Callable[..., tuple[Path, ...]]) -> Callable[..., tuple[Path, ...]]:
    """A method `save(self, folder, ...)` that also keeps the answer as it is."""

    @functools.wraps(save)
    def run(self: Outcome, folder: str | Path, **options: Any) -> tuple[Path, ...]:
        return (*save(self, folder, **options), *write_answer(self, folder))

    return run


def note_text(note: Note) -> str:
    """A note in a line: severity, code, what it is about, and what was found."""
    about = f" ({note.subject})" if note.subject and note.subject not in note.message else ""
    return f"{note.severity} {note.code}{about}: {note.message}"


def _cell_text(value: Cell, digits: int = 4) -> str:
    """A table cell: numbers shortened, a dash for what is missing."""
    if value is None or value == "":
        return "-" if value is None else ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return (
            f"{value:.{digits}g}" if isfinite(value) else ("-" if value != value else "inf" if value > 0.0 else "-inf")
        )
    return str(value)


def text_table(table: Table) -> str:
    """A table in columns as wide as their contents: no number is ever cut, whatever the terminal; sentences are broken."""
    if not table.rows:
        return table.caption
    texts = [list(table.header), *([_cell_text(value, table.digits) for value in row] for row in table.rows)]
    rows = [[row] for row in texts]
    if table.words:
        room = shared_widths(texts, screen_width())
        rows = [broken_row(row, room) for row in texts]
    widths = [max(len(line[k]) for row in rows for line in row) for k in range(len(table.header))]
    right = [all(_is_number(row[k]) for row in table.rows) for k in range(len(table.header))]

    def line(row: Sequence[str]) -> str:
        pairs = zip(row, widths, right, strict=True)
        return "  ".join(text.rjust(w) if r else text.ljust(w) for text, w, r in pairs).rstrip()

    head, *body = ([line(each) for each in row] for row in rows)
    ruled = [*head, "  ".join("-" * w for w in widths)]
    return "\n".join(([table.caption] if table.caption else []) + ruled + [each for lines in body for each in lines])


def _is_number(value: Cell) -> bool:
    if isinstance(value, str):
        return value.endswith(" %") or value == ""
    return value is None or isinstance(value, int | float)


def _html_table(table: Table) -> str:
    """A table for a notebook."""
    head = "".join(f"<th>{escape(title)}</th>" for title in table.header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_cell_text(value, table.digits))}</td>" for value in row) + "</tr>"
        for row in table.rows
    )
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


Record = TypeVar("Record")


class Listing(Sequence[Record], Generic[Record]):
    """Records with names, as rows a person can look at, sort and take into pandas.

    Args:
        records: dataclasses of one kind that have a `name`.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        self._records = tuple(records)

    def kept_fields(self) -> dict[str, object]:
        """What it is made from, for answers that are kept."""
        return {"records": self._records}

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, key: int | str) -> Record: ...
    @overload
    def __getitem__(self, key: slice) -> Listing[Record]: ...
    def __getitem__(self, key: int | str | slice) -> Record | Listing[Record]:
        if isinstance(key, slice):
            return Listing(self._records[key])
        if hasattr(key, "__index__"):  # whole numbers of any kind, NumPy's too
            return self._records[operator.index(key)]
        for record in self._records:
            if getattr(record, "name", None) == key:
                return record
        raise UnknownNameError("row", key, (str(getattr(record, "name", "")) for record in self._records))

    def sorted_by(self, column: str, *, descending: bool = False) -> Listing[Record]:
        """The same rows in the order of one column; what is missing or not a number comes last.

        Raises:
            UnknownNameError: no such column; lists those there are.
        """
        if self._records and column not in _columns(self._records):
            raise UnknownNameError("column", column, _columns(self._records))
        values = [getattr(record, column) for record in self._records]
        known = [value is not None and value == value for value in values]
        places = [k for k, there in enumerate(known) if there]
        ordered = sorted(places, key=lambda k: values[k], reverse=descending)
        return Listing(self._records[k] for k in (*ordered, *(k for k, there in enumerate(known) if not there)))

    def table(self, caption: str = "") -> Table:
        names = _columns(self._records)
        return Table(
            names, tuple(tuple(_cell(getattr(r, name)) for name in names) for r in self._records), caption=caption
        )

    def as_dicts(self) -> list[dict[str, Any]]:
        names = _columns(self._records)
        return [{name: getattr(record, name) for name in names} for record in self._records]

    def to_frame(self) -> pandas.DataFrame:
        """As a pandas data frame, indexed by name.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise MissingDependencyError("pandas", "a data frame", "frames") from None
        frame = pandas.DataFrame(self.as_dicts())
        return frame.set_index("name") if "name" in frame else frame

    def __repr__(self) -> str:
        return f"<{len(self)} rows: {', '.join(_columns(self._records))}>"

    def __str__(self) -> str:
        return text_table(self.table())

    def _repr_html_(self) -> str:
        return _html_table(self.table())


def _columns(records: Sequence[Any]) -> tuple[str, ...]:
    return tuple(item.name for item in fields(records[0])) if records else ()


def _cell(value: Any) -> Cell:
    return value if value is None or isinstance(value, str | float | int) else str(value)
