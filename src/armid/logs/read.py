"""Files to logs: open, map, deliver in pieces or as a whole."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from armid.apart import refuse_beside_answers
from armid.arrays import FloatArray
from armid.errors import InputError, UnknownNameError
from armid.logs.apply import Scaled, channel_values, column_of
from armid.logs.garbage import CutRows, Mask, garbage_rows, without_garbage
from armid.logs.log import Channel, Clock, Log, LogSource, matched
from armid.logs.mapping import TORQUE_SIDES, ClockMap, LogMap, is_mapping_file, read_mapping
from armid.logs.presets import guessed_map
from armid.logs.readers.files import existing, open_table, sha256_of
from armid.logs.readers.table import MAX_BYTES, Layout, SeekableTable, Table, TableFile, recut, refuse_outside
from armid.logs.readers.text import TextTable, flat_table
from armid.logs.timing import ClockGuess, clock_guess
from armid.notes import Note, Severity
from armid.robot.robot import Robot
from armid.words import wrong_kind

_DATA_ROOT = "ARMID_DATA"
"""Environment variable: where mapping files find recordings that do not lie next to them."""

_HEAD_ROWS = 20_000
"""Rows looked at to find out what the columns are: a minute at ordinary rates."""

CHUNK_ROWS = 1 << 17


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What the user says about a file that needs no mapping.

    Args:
        format: reader or preset; found out when None.
        step: fixed sampling step [s], for files without a clock.
        side: of the torque (`link`, `motor`, `current`, `commanded`), when the names do not say.
        data_root: where a mapping's files are.
        topic: of a ROS bag.
    """

    format: str | None = None
    step: float | None = None
    side: str | None = None
    data_root: str | Path | None = None
    topic: str | None = None


def unchecked_log(path: str | Path, robot: Robot | None = None, *, options: ReadOptions | None = None) -> Log:
    """A recording from a data file or a mapping file, as it is; `armid.read_log` reads and checks.

    Args:
        path: data file of any known kind, the directory of a ROS 2 bag, or a mapping (.yaml).
        robot: orders the columns by joint name; needed when the columns of the file have no names.
        options: what the file does not say itself.

    Raises:
        InputError: unreadable, or not understood; never a traceback from a library.
    """
    stream = open_log(path, robot, options=options)
    pieces, size = [], 0
    for piece in stream.chunks():
        pieces.append(piece)
        size += piece.time.nbytes + sum(values.nbytes for values in piece.channels.values())
        if size > MAX_BYTES:
            raise InputError(
                path, f"more than {MAX_BYTES >> 30} GiB of samples", "read it in pieces: `open_log(...).chunks()`"
            )
    if not pieces:
        raise InputError(path, "no samples")
    whole = joined_logs(pieces)
    return replace(whole, source=stream.provenance()).with_notes(stream.notes)


def joined_logs(pieces: Sequence[Log]) -> Log:
    """Pieces of one recording after one another."""
    first = pieces[0]
    if len(pieces) == 1:
        return first
    channels = {c: np.concatenate([p.channels[c].T for p in pieces], axis=1).T for c in first.channels}
    time = np.concatenate([p.time for p in pieces])
    for array in (time, *channels.values()):
        owner = array if array.base is None else array.base
        owner.flags.writeable = False
        array.flags.writeable = False
    return replace(first, time=time, channels=channels)


def open_log(path: str | Path, robot: Robot | None = None, *, options: ReadOptions | None = None) -> LogStream:
    """The same in pieces, for recordings larger than memory."""
    options = _options(options)
    if options.step is not None and not (np.isfinite(options.step) and options.step > 0.0):
        raise InputError("step", f"{options.step} s", "expected a positive time")
    if options.side is not None and options.side not in TORQUE_SIDES:
        raise UnknownNameError("torque side", options.side, TORQUE_SIDES)
    location = existing(path)
    notes: tuple[Note, ...] = ()
    named: tuple[Note, ...] = ()
    if is_mapping_file(location):
        mapping = _mapped_files(location, options)
        named = _sensors_note(mapping)
        tables = {key: _table_of(entry.path, entry.layout) for key, entry in mapping.files.items()}
        if not mapping.channels:
            entry = mapping.files[""]
            guess, notes = guessed(entry.path, entry.layout, tables[""], robot)
            clock = guess.clock if mapping.clock == ClockMap() else mapping.clock
            own = (mapping.joints or guess.joints, guess.channels, guess.preset)
            mapping = replace(mapping, joints=own[0], channels=own[1], preset=own[2], clock=clock)
    else:
        roots = () if options.data_root is None else (Path(options.data_root),)
        layout = Layout(format=options.format, topic=options.topic, roots=roots)
        table = open_table(location, layout)
        mapping, notes = guessed(location, layout, table, robot)
        tables = {"": table}
    if not mapping.joints and Channel.POSITION in {entry.channel for entry in mapping.channels}:
        mapping = replace(mapping, joints=_joints_in_file(mapping, tables))
    mapping, more = _with_options(mapping, options)
    mapping = replace(mapping, clock=_resolved_clock(mapping, tables))
    return LogStream(mapping=mapping, tables=tables, robot=robot, guesses=(*notes, *named, *more))


def _sensors_note(mapping: LogMap) -> tuple[Note, ...]:
    """Says that a sensor file is named, and who undoes what it says."""
    if mapping.sensors is None:
        return ()
    text = f"recorded by the sensors of {mapping.sensors.name}: `armid identify` undoes their errors; read as recorded here"
    return (Note("sensors-named", Severity.INFO, text, mapping.name),)


def guessed(path: Path, layout: Layout, table: TableFile, robot: Robot | None) -> tuple[LogMap, tuple[Note, ...]]:
    """A mapping for a file whose columns nobody described."""
    head = next(iter(table.chunks(_HEAD_ROWS)), None)
    if head is None:
        raise InputError(path, "no samples")
    return guessed_map(path, layout, table, without_garbage(head), robot)


def _joints_in_file(mapping: LogMap, tables: Mapping[str, TableFile]) -> tuple[str, ...]:
    """Names the file itself has for its joints, when the mapping takes its position as a whole; none otherwise."""
    position = next(entry for entry in mapping.channels if entry.channel is Channel.POSITION)
    whole = len(position.columns) == 1 and position.matrix is None and position.inverse_matrix is None
    return tables[position.file].joints if whole else ()


def _is_there(path: Path) -> bool:
    """Whether there is such a file; names no file can have are not there."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _options(options: ReadOptions | Mapping[str, Any] | None) -> ReadOptions:
    """Options by name, as people write them, or as they are."""
    if isinstance(options, ReadOptions):
        return options
    if options is not None and not isinstance(options, Mapping):
        raise wrong_kind("options", options, "ReadOptions, or a mapping of their names")
    known = [each.name for each in fields(ReadOptions)]
    for name in options or {}:
        if name not in known:
            raise UnknownNameError("option of reading", str(name), known)
    return ReadOptions(**(options or {}))


def _mapped_files(location: Path, options: ReadOptions) -> LogMap:
    """A mapping whose files exist: under the data root given, next to it, or under $ARMID_DATA; nowhere else.

    Raises:
        InputError: one does not exist, or lies elsewhere.
    """
    further = options.data_root if options.data_root is not None else os.environ.get(_DATA_ROOT)
    roots = [Path(root) for root in (options.data_root, location.parent, further) if root]
    first: LogMap | None = None
    for root in roots:
        mapping = read_mapping(location, data_root=root)
        first = first or mapping
        if all(_is_there(entry.path) for entry in mapping.files.values()):
            for entry in mapping.files.values():
                refuse_outside(entry.path, roots, where=location)
                refuse_beside_answers(entry.path)
            if mapping.sensors is not None:
                mapping = replace(mapping, sensors=_sensor_file(mapping.sensors, roots, location))
            layouts = {key: replace(entry.layout, roots=tuple(roots)) for key, entry in mapping.files.items()}
            files = {key: replace(entry, layout=layouts[key]) for key, entry in mapping.files.items()}
            return replace(mapping, files=files)
    assert first is not None
    missing = next(entry.path for entry in first.files.values() if not _is_there(entry.path))
    raise InputError(
        location, f"its file {missing} does not exist", f"put it there, or give --data-root or ${_DATA_ROOT}"
    )


def _sensor_file(path: Path, roots: Sequence[Path], where: Path) -> Path:
    """A sensor file that a mapping names, resolved; it may lie where data files may.

    Raises:
        InputError: it does not exist, or lies elsewhere.
    """
    if not _is_there(path):
        hint = "expected sensors.yaml of an armid identify, relative to the mapping"
        raise InputError(where, f"its sensor file {path} does not exist", hint)
    refuse_outside(path, roots, where=where)
    refuse_beside_answers(path)
    return path.resolve()


def _with_options(mapping: LogMap, options: ReadOptions) -> tuple[LogMap, tuple[Note, ...]]:
    """The mapping with what the user said on top; an assumed torque side is noted."""
    if options.step is not None:
        mapping = replace(mapping, clock=ClockMap(step=options.step))
    kinds = [c.channel for c in mapping.channels]
    if options.side is not None:
        target = TORQUE_SIDES[options.side]
        current = next((k for k in kinds if k.is_torque), None)
        if current is not None and target not in kinds:
            unit = "A" if target is Channel.CURRENT else ""
            channels = tuple(
                replace(c, channel=target, unit=unit or c.unit) if c.channel is current else c for c in mapping.channels
            )
            mapping = replace(mapping, channels=channels)
        return mapping, ()
    if Channel.LINK_TORQUE in kinds and not mapping.preset.startswith("mapping"):
        text = (
            "torque is taken as measured on the link side in N m: say otherwise with --side or a mapping if it is not"
        )
        return mapping, (Note("torque-side-assumed", Severity.INFO, text, mapping.name),)
    return mapping, ()


def _resolved_clock(mapping: LogMap, tables: Mapping[str, TableFile]) -> ClockMap:
    """The clock with its columns by the names they have in the file."""
    clock = mapping.clock

    def name(column: str | None) -> str | None:
        return None if column is None else column_of(tables[clock.file], column, mapping.name)

    return replace(clock, column=name(clock.column), nanoseconds=name(clock.nanoseconds))


def _named(path: Path | None) -> str:
    return "" if path is None else str(path)


def _table_of(path: Path, layout: Layout) -> TableFile:
    return FlatTable(path=path, layout=layout, width=layout.flat) if layout.flat else open_table(path, layout)


@dataclass(eq=False, kw_only=True)
class FlatTable:
    """A text file that lists the numbers of each sample one after another."""

    path: Path
    layout: Layout
    width: int
    names: tuple[str, ...] = ("1",)
    named: bool = False
    joints: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    def chunks(self, rows: int, wanted: object = None) -> Iterator[Table]:
        for values in flat_table(existing(self.path), self.layout, self.width):
            yield {"1": values[:, 0] if self.width == 1 else values}


@dataclass(frozen=True, kw_only=True)
class RowPlace:
    """A row of a file, and how the rows from there on were cut into pieces.

    Args:
        rows: of the file before it.
        used: of these.
        lengths: of the pieces from there on.
    """

    rows: int
    used: int
    lengths: tuple[int, ...]


@dataclass(eq=False, kw_only=True)
class LogStream:
    """A recording that is delivered in pieces of bounded size.

    Args:
        mapping: what the columns mean.
        tables: the open files, by key.
        robot: for the joint order.
        guesses: notes made when opening.
    """

    mapping: LogMap
    tables: Mapping[str, TableFile]
    robot: Robot | None
    guesses: tuple[Note, ...]
    settled: ClockGuess | None = None
    """The clock, known once the first piece has been read."""
    cut: CutRows = field(default_factory=CutRows)
    """Rows of damaged bytes; complete once the last piece has been read."""
    read: tuple[int, int] = (0, 0)
    """Rows of the file that `chunks` has gone through, and those of them that are used."""
    _hashes: Future[LogSource] | None = field(default=None, repr=False)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Everything said so far; complete after the last piece."""
        of_tables = (n for t in self.tables.values() for n in t.notes)
        word = "row" if self._text is None else "line"
        return (*of_tables, *self.cut.notes(self.mapping.name, word), *self.guesses, *self.timing)

    @property
    def timing(self) -> tuple[Note, ...]:
        """What was guessed about the clock."""
        return () if self.settled is None else self.settled.notes

    def again(self) -> LogStream:
        """The same recording from its beginning, its clock settled; what is skipped on the way is not counted again."""
        self.start_hash()
        other = replace(self, tables={key: copy(table) for key, table in self.tables.items()}, cut=CutRows())
        if self.settled is None:
            next(other.chunks(), None)
            self.settled = other.settled
        return other

    def knowing(self, source: LogSource) -> LogStream:
        """The same with its provenance as found before, so that its bytes are not hashed again."""
        self._hashes = Future()
        self._hashes.set_result(source)
        return self

    @cached_property
    def scaled(self) -> tuple[Scaled, ...]:
        """Each channel with its columns looked up and its factors worked out."""
        own = self.mapping.joints or (() if self.robot is None else self.robot.joint_names)
        return tuple(Scaled.of(c, self.tables[c.file], self.mapping.name, own) for c in self.mapping.channels)

    def start_hash(self) -> None:
        """Hashes the raw bytes beside the reading."""
        if self._hashes is None:
            pool = ThreadPoolExecutor(1)
            self._hashes = pool.submit(self.hashed)
            pool.shutdown(wait=False)

    def hashed(self) -> LogSource:
        files = tuple((str(f.path), sha256_of(f.path)) for f in self.mapping.files.values())
        return LogSource(files, self.mapping.preset, _named(self.mapping.sensors))

    def provenance(self) -> LogSource:
        """Paths and SHA-256 of the raw bytes."""
        self.start_hash()
        assert self._hashes is not None
        return self._hashes.result()

    def chunks(self, rows: int = CHUNK_ROWS, place: RowPlace | None = None) -> Iterator[Log]:
        """Pieces in order, each a Log of at most about `rows` samples.

        Args:
            rows: of a piece.
            place: where to begin, in pieces of the lengths it says; at the beginning by default.
        """
        self.start_hash()
        self.cut = CutRows()
        clock = self.mapping.clock
        offset, seen = (0, 0) if place is None else (place.used, place.rows)
        for tables in self.aligned(rows) if place is None else self._aligned_from(place, rows):
            count = len(next(iter(next(iter(tables.values())).values())))
            start, stop = window(self.mapping.rows, seen, count)
            seen += count
            if start >= stop:
                continue
            channels = {s.channel: channel_values(s, tables[s.file], start, stop) for s in self.scaled}
            time = _clock_column(clock, tables, start, stop)
            garbage = self._garbage(tables, start, stop)
            if garbage.any():
                self.cut.add(self._line(seen - count + start + int(k)) for k in np.flatnonzero(garbage))
                channels = {channel: values[~garbage] for channel, values in channels.items()}
                time = None if time is None else time[~garbage]
            if self.settled is None:
                self.settled = clock_guess(clock, time, channels, self.mapping.name)
            kept = int((~garbage).sum())
            stamps = self.settled.times(time, offset + self._first_row, kept)
            offset += kept
            self.read = (seen, offset)
            yield self.log(stamps, channels, self.settled.kind)
        if offset == 0:
            raise InputError(self.mapping.name, "no samples in the rows to use")

    @property
    def seekable(self) -> bool:
        """Whether it can be read from any row on; of a text this is known once it was read."""
        table = next(iter(self.tables.values()))
        lines = self._text is None or self._text.lines_are_rows
        return len(self.tables) == 1 and isinstance(table, SeekableTable) and lines

    def _aligned_from(self, place: RowPlace, rows: int) -> Iterator[dict[str, Table]]:
        """Pieces of the one file from a place on."""
        (key,) = self.tables
        table, names = self.tables[key], self.wanted()[key]
        assert isinstance(table, SeekableTable)
        yield from ({key: piece} for piece in recut(table.chunks_from(place.rows, rows, names), place.lengths))

    def stamps(self, rows: int = CHUNK_ROWS) -> Iterator[FloatArray]:
        """The times alone [s], piece by piece; after the first piece of `chunks`, which settles the clock."""
        assert self.settled is not None
        if self._text is not None and self.mapping.clock.column is not None:
            # Which rows of a text are damaged shows in all its columns.
            yield from (piece.time for piece in self.again().chunks(rows))
            return
        clock = self.mapping.clock
        file = clock.file if clock.column is not None else self.scaled[0].file
        names = {name for name in (clock.column, clock.nanoseconds) if name is not None} or {self.scaled[0].columns[0]}
        seen, offset = 0, 0
        # A copy, so that what it skips is not counted twice.
        for piece in copy(self.tables[file]).chunks(rows, names):
            start, stop = window(self.mapping.rows, seen, _rows_of(piece))
            seen += _rows_of(piece)
            if start < stop:
                time = _clock_column(clock, {file: piece}, start, stop)
                garbage = self._garbage({file: piece}, start, stop)
                time = None if time is None else time[~garbage]
                kept = int((~garbage).sum())
                yield self.settled.times(time, offset + self._first_row, kept)
                offset += kept

    @property
    def _first_row(self) -> int:
        """Of the rows to use, from 0: of a file without stamps the time of a row is that of its place in the file."""
        return 0 if self.mapping.rows is None else self.mapping.rows[0] - 1

    @property
    def _text(self) -> TextTable | None:
        """The table, when the log is one text file."""
        table = next(iter(self.tables.values()))
        return table if len(self.tables) == 1 and isinstance(table, TextTable) else None

    def _line(self, row: int) -> int:
        """What people call a row, counted from 0: its line in a text file, else its number from 1."""
        return row + 1 + (0 if self._text is None else self._text.dialect.skip)

    def _garbage(self, tables: Mapping[str, Table], start: int, stop: int) -> Mask:
        """Rows of damaged bytes: in a text by all columns, in other files, where nothing shifts, by the clock alone.

        Without a clock none: what is cut there would move all that follows.
        """
        clock = self.mapping.clock
        if clock.column is None:
            return np.zeros(stop - start, dtype=np.bool_)
        columns = list(tables[clock.file].values()) if self._text else [tables[clock.file][clock.column]]
        return garbage_rows((values[start:stop] for values in columns), stop - start)

    def log(self, time: FloatArray, channels: dict[Channel, FloatArray], clock: Clock) -> Log:
        n = channels[Channel.POSITION].shape[1]
        named = bool(self.mapping.joints)
        if named and len(self.mapping.joints) != n:
            raise InputError(self.mapping.name, f"{len(self.mapping.joints)} joint names for {n} position columns")
        for array in (time, *channels.values()):
            array.flags.writeable = False
        log = Log(
            name=self.mapping.name,
            joints=self.mapping.joints or tuple(f"joint{i + 1}" for i in range(n)),
            time=time,
            channels=channels,
            named=named,
            clock=clock,
            conditions=self.mapping.conditions,
            source=LogSource(
                tuple((str(f.path), "") for f in self.mapping.files.values()),
                self.mapping.preset,
                _named(self.mapping.sensors),
            ),
            notes=(*self.guesses, *self.timing),
        )
        return matched(log, self.robot) if self.robot is not None else log

    def wanted(self) -> dict[str, set[str]]:
        """Columns needed of each file."""
        out: dict[str, set[str]] = {key: set() for key in self.tables}
        for scaled in self.scaled:
            out[scaled.file] |= set(scaled.columns)
        clock = self.mapping.clock
        for name in (clock.column, clock.nanoseconds):
            if name is not None:
                out[clock.file].add(name)
        return out

    def aligned(self, rows: int) -> Iterator[dict[str, Table]]:
        """Pieces of all files with the same rows in each."""
        wanted = {key: names for key, names in self.wanted().items() if names}
        if len(wanted) == 1:
            key = next(iter(wanted))
            yield from ({key: piece} for piece in self.tables[key].chunks(rows, wanted[key]) if piece)
            return
        streams = {key: _regular(self.tables[key].chunks(rows, names), rows) for key, names in wanted.items()}
        while True:
            pieces = {key: next(stream, None) for key, stream in streams.items()}
            lengths = {key: 0 if p is None else _rows_of(p) for key, p in pieces.items()}
            if len(set(lengths.values())) > 1:
                what = ", ".join(f"{self.mapping.files[key].path.name} ends after {n}" for key, n in lengths.items())
                raise InputError(self.mapping.name, f"the files have different numbers of rows: in one piece {what}")
            full = {key: p for key, p in pieces.items() if p is not None}
            if not full:
                return
            yield full


def _rows_of(table: Table) -> int:
    return len(next(iter(table.values())))


def _regular(chunks: Iterator[Table], rows: int) -> Iterator[Table]:
    """The same pieces cut to exactly `rows` rows, but for the last."""
    held: list[Table] = []
    count = 0
    for chunk in chunks:
        held.append(chunk)
        count += _rows_of(chunk)
        while count >= rows:
            whole = merged(held)
            yield {name: values[:rows] for name, values in whole.items()}
            held, count = [{name: values[rows:] for name, values in whole.items()}], count - rows
    if count:
        yield merged(held)


def merged(tables: Sequence[Table]) -> Table:
    return tables[0] if len(tables) == 1 else {k: np.concatenate([t[k] for t in tables]) for k in tables[0]}


def window(rows: tuple[int, int | None] | None, seen: int, count: int) -> tuple[int, int]:
    """The part of a piece that lies in the rows to use."""
    if rows is None:
        return 0, count
    first, last = rows
    return min(max(first - 1 - seen, 0), count), count if last is None else min(max(last - seen, 0), count)


def _clock_column(clock: ClockMap, tables: Mapping[str, Table], start: int, stop: int) -> FloatArray | None:
    """The time column as it stands in the file; None with a fixed step or no clock."""
    if clock.column is None:
        return None
    table = tables[clock.file]
    time = table[clock.column]
    if time.ndim != 1:
        raise InputError(clock.column, f"the time column has shape {list(time.shape)}", "expected one number per row")
    stamps = time[start:stop].astype(np.float64)
    return stamps if clock.nanoseconds is None else stamps + table[clock.nanoseconds][start:stop] * 1e-9
