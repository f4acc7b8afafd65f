"""What the columns of a file mean: written by hand in YAML, or filled in by a preset.

A mapping is data: `docs/logs.md` documents the file, `parsed_mapping` reads it, `apply.py` carries it out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError, UnknownNameError
from armid.logs.log import Channel, Conditions
from armid.logs.readers.table import Layout
from armid.logs.units import canonical, factor, seconds

SCHEMA = "armid.log/1"
MAX_MAPPING_BYTES = 1 << 20

TORQUE_SIDES = {
    "link": Channel.LINK_TORQUE,
    "motor": Channel.MOTOR_TORQUE,
    "current": Channel.CURRENT,
    "commanded": Channel.COMMANDED_TORQUE,
    "external": Channel.EXTERNAL_TORQUE,
}


@dataclass(frozen=True, slots=True)
class FileMap:
    """One file of a recording and how it is laid out."""

    path: Path
    layout: Layout = field(default_factory=Layout)


@dataclass(frozen=True, slots=True)
class ClockMap:
    """Where time comes from: a column with a unit, or a fixed step [s]."""

    column: str | None = None
    file: str = ""
    unit: str = "s"
    step: float | None = None
    nanoseconds: str | None = None
    """A second column with the nanoseconds within the second."""


@dataclass(frozen=True, eq=False, slots=True)
class ChannelMap:
    """Which columns make up a channel and how they become joint quantities in SI units.

    `values = matrix (sign gain unit raw / gear) + offset`, with `raw * gear` for torques, and the inverse of
    `inverse_matrix` in place of `matrix` when that is given.

    Args:
        channel: what it is.
        file: key of the file, empty when there is one only.
        columns: column names, a single one may be two-dimensional; empty for all columns of the file.
        unit: as written.
        sign, gain, gear_ratio, offset: one number or one per joint; offset in SI units.
        matrix, inverse_matrix: shape [n, columns] and [columns, n].
    """

    channel: Channel
    columns: tuple[str, ...]
    file: str = ""
    unit: str = ""
    sign: tuple[float, ...] = (1.0,)
    gain: tuple[float, ...] = (1.0,)
    gear_ratio: tuple[float, ...] = (1.0,)
    offset: tuple[float, ...] = (0.0,)
    matrix: FloatArray | None = None
    inverse_matrix: FloatArray | None = None


@dataclass(frozen=True, eq=False, slots=True)
class LogMap:
    """A whole recording.

    Args:
        files: by key.
        channels: what is in them.
        clock: time.
        joints: name of each column of the channels; empty when unknown.
        rows: first and last row to use, counted from 1, both included; None for all.
        conditions: of the run.
        name: of the recording.
        preset: who filled it in.
    """

    files: Mapping[str, FileMap]
    channels: tuple[ChannelMap, ...]
    clock: ClockMap
    joints: tuple[str, ...] = ()
    rows: tuple[int, int | None] | None = None
    conditions: Conditions = field(default_factory=Conditions)
    name: str = ""
    preset: str = "mapping"


LAYOUT_KEYS = ("format", "delimiter", "decimal", "header", "flat", "topic")
TOP_KEYS = ("schema", "name", "file", "files", "joints", "rows", "clock", "channels", "conditions", *LAYOUT_KEYS)
FILE_KEYS = ("path", *LAYOUT_KEYS)
CLOCK_KEYS = ("column", "file", "unit", "step", "nanoseconds")
CHANNEL_KEYS = (
    "file", "columns", "unit", "sign", "gain", "gear_ratio", "matrix", "inverse_matrix", "offset", "side",
)  # fmt: skip
CONDITION_KEYS = tuple(f.name for f in fields(Conditions))


def is_mapping_file(path: Path) -> bool:
    return path.suffix.lower() in (".yaml", ".yml") and path.is_file()


def read_mapping(path: str | Path, *, data_root: str | Path | None = None) -> LogMap:
    """A mapping file.

    Args:
        path: YAML; file names in it are relative to its directory, or to `data_root` when that is given.
        data_root: directory of the recordings, when they do not lie next to the mapping.

    Raises:
        InputError: not YAML, unknown keys, wrong types; the message names the key and lists those that exist.
    """
    import yaml

    location = Path(path)
    try:
        raw = location.read_bytes()
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from None
    if len(raw) > MAX_MAPPING_BYTES:
        raise InputError(path, f"{len(raw)} bytes", "a mapping is a small text file")
    try:
        check_plain(raw, location)
        content = yaml.safe_load(raw)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InputError(path, f"not valid YAML: {' '.join(str(error).split())[:200]}") from None
    return parsed_mapping(content, location, root=Path(data_root) if data_root is not None else location.parent)


MAX_DEPTH = 12
"""Levels of nesting; ours needs four."""


def check_plain(raw: bytes, where: Path) -> None:
    """Refuses what can make a small file explode or mean two things: anchors, aliases, deep nesting, repeated keys."""
    import yaml

    depth = 0
    for event in yaml.parse(raw, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise InputError(where, f"line {line}: anchors and aliases (& and *) are not read", "write the value out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise InputError(where, f"line {line}: nested too deeply")
    pending = [yaml.compose(raw, Loader=yaml.SafeLoader)]
    while pending:
        node = pending.pop()
        if isinstance(node, yaml.SequenceNode):
            pending += node.value
        elif isinstance(node, yaml.MappingNode):
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            twice = next((key for key in keys if keys.count(key) > 1), None)
            if twice is not None:
                raise InputError(where, f"line {node.start_mark.line + 1}: key {twice!r} appears twice")
            pending += [value for _, value in node.value]


def parsed_mapping(content: Any, where: Path, *, root: Path) -> LogMap:
    """A mapping from the content of its file, checked key by key."""
    top = keyed(content, TOP_KEYS, where, "mapping")
    if top.get("schema", SCHEMA) != SCHEMA:
        raise InputError(where, f"schema {top['schema']!r}", f"expected {SCHEMA!r}")
    files = file_maps(top, where, root)
    joints = names(top.get("joints", []), where, "joints")
    width = len(joints) or None
    channels = channel_maps(top.get("channels"), files, where, width)
    return LogMap(
        files=files,
        channels=channels,
        clock=clock_map(top.get("clock"), files, where),
        joints=joints,
        rows=row_range(top.get("rows"), where),
        conditions=conditions_of(top.get("conditions", {}), where),
        name=text(top.get("name", where.stem), where, "name"),
        preset=f"mapping {where.name}",
    )


def keyed(value: Any, known: tuple[str, ...], where: Path, what: str) -> dict[str, Any]:
    """A YAML mapping whose keys are all known."""
    if not isinstance(value, dict):
        raise InputError(where, f"{what} is {describe(value)}", f"expected keys among {', '.join(known)}")
    for key in value:
        if key not in known:
            raise UnknownNameError(f"key in {what} of {where.name}", str(key), known)
    return {str(k): v for k, v in value.items()}


def file_maps(top: dict[str, Any], where: Path, root: Path) -> dict[str, FileMap]:
    """The files by key; a single `file` has the empty key."""
    if ("file" in top) == ("files" in top):
        raise InputError(where, "one of `file` and `files` is needed", "`file: name.csv` or `files: {key: name.csv}`")
    shared = {key: top[key] for key in LAYOUT_KEYS if key in top}
    entries = {"": top["file"]} if "file" in top else top["files"]
    if not isinstance(entries, dict) or not entries:
        raise InputError(where, f"files is {describe(entries)}", "expected `files: {key: name.csv}`")
    out = {}
    for key, entry in entries.items():
        own = keyed(entry, FILE_KEYS, where, f"file {key!r}") if isinstance(entry, dict) else {"path": entry}
        path = Path(text(own.get("path"), where, f"path of file {key!r}"))
        merged = {**shared, **{k: v for k, v in own.items() if k != "path"}}
        out[str(key)] = FileMap(path if path.is_absolute() else root / path, layout_of(merged, where))
    return out


def layout_of(entry: dict[str, Any], where: Path) -> Layout:
    for key in ("format", "delimiter", "decimal", "topic"):
        if entry.get(key) is not None:
            text(entry[key], where, key)
    delimiter = entry.get("delimiter")
    if delimiter is not None and len({"tab": "\t", "space": " "}.get(delimiter, delimiter)) != 1:
        raise InputError(where, f"delimiter {delimiter!r}", "expected one character, `tab` or `space`")
    if entry.get("decimal") not in (None, ".", ","):
        raise InputError(where, f"decimal {entry['decimal']!r}", "expected '.' or ','")
    if not isinstance(entry.get("header"), bool | None):
        raise InputError(where, f"header {entry['header']!r}", "expected true or false")
    flat = entry.get("flat")
    if flat is not None and (not isinstance(flat, int) or isinstance(flat, bool) or not 0 < flat < 1000):
        raise InputError(where, f"flat {flat!r}", "expected the number of values per sample")
    return Layout(
        entry.get("format"),
        {"tab": "\t", "space": " "}.get(delimiter, delimiter) if delimiter else None,
        entry.get("decimal"),
        entry.get("header"),
        flat,
        entry.get("topic"),
    )


def clock_map(value: Any, files: Mapping[str, FileMap], where: Path) -> ClockMap:
    """The clock; a mapping without one leaves it to be inferred."""
    if value is None:
        return ClockMap()
    entry = keyed(value, CLOCK_KEYS, where, "clock")
    if ("column" in entry) == ("step" in entry):
        raise InputError(where, "clock needs either `column` or `step`")
    unit = text(entry.get("unit", "s"), where, "clock unit")
    seconds(unit)
    if "step" in entry:
        step = number(entry["step"], where, "clock step") * seconds(unit)
        if step <= 0.0:
            raise InputError(where, f"clock step {entry['step']!r}", "expected a positive time")
        return ClockMap(step=step)
    nanoseconds = entry.get("nanoseconds")
    return ClockMap(
        str(entry["column"]),
        file_key(entry.get("file"), files, where, "clock"),
        unit,
        nanoseconds=None if nanoseconds is None else str(nanoseconds),
    )


def channel_maps(value: Any, files: Mapping[str, FileMap], where: Path, width: int | None) -> tuple[ChannelMap, ...]:
    if not isinstance(value, dict) or not value:
        raise InputError(
            where, f"channels is {describe(value)}", "expected `channels: {position: {columns: ...}, ...}`"
        )
    out = []
    for key, entry in value.items():
        channel, own = channel_of(str(key), keyed(entry, CHANNEL_KEYS, where, f"channel {key!r}"), where)
        what = f"channel {key!r}"
        unit = canonical(text(own.get("unit", DEFAULT_UNITS[channel]), where, f"unit of {what}"))
        factor(channel, unit)
        factors = {
            name: per_joint(own.get(name, default), where, f"{name} of {what}", width)
            for name, default in (("sign", 1.0), ("gain", 1.0), ("gear_ratio", 1.0), ("offset", 0.0))
        }
        out.append(
            ChannelMap(
                channel,
                column_names(own.get("columns"), where, what, width),
                file_key(own.get("file"), files, where, what),
                unit,
                sign=factors["sign"],
                gain=factors["gain"],
                gear_ratio=factors["gear_ratio"],
                offset=factors["offset"],
                matrix=matrix(own.get("matrix"), where, f"matrix of {what}"),
                inverse_matrix=matrix(own.get("inverse_matrix"), where, f"inverse_matrix of {what}", square=True),
            )
        )
        if any(s not in (-1.0, 1.0) for s in out[-1].sign):
            raise InputError(where, f"sign of {what} is {own['sign']!r}", "expected 1 or -1; scaling is `gain`")
        if any(g == 0.0 for g in out[-1].gear_ratio):
            raise InputError(where, f"gear_ratio of {what} is zero")
    kinds = [entry.channel for entry in out]
    if len(set(kinds)) != len(kinds):
        raise InputError(where, "two entries describe the same channel")
    if Channel.POSITION not in kinds:
        raise InputError(where, "no position channel", f"there are {', '.join(kinds)}")
    return tuple(out)


DEFAULT_UNITS = {
    Channel.POSITION: "rad",
    Channel.MOTOR_POSITION: "rad",
    Channel.COMMANDED_POSITION: "rad",
    Channel.VELOCITY: "rad/s",
    Channel.ACCELERATION: "rad/s^2",
    Channel.LINK_TORQUE: "Nm",
    Channel.MOTOR_TORQUE: "Nm",
    Channel.COMMANDED_TORQUE: "Nm",
    Channel.EXTERNAL_TORQUE: "Nm",
    Channel.CURRENT: "A",
    Channel.TEMPERATURE: "degC",
}


def channel_of(key: str, entry: dict[str, Any], where: Path) -> tuple[Channel, dict[str, Any]]:
    """`torque` with its side, or the full name of a channel."""
    if key == "torque":
        side = entry.get("side")
        if side not in TORQUE_SIDES:
            raise UnknownNameError(f"torque side in {where.name}", str(side), TORQUE_SIDES)
        return TORQUE_SIDES[side], entry
    if "side" in entry:
        raise InputError(where, f"`side` in channel {key!r}", "only `torque` has a side")
    try:
        return Channel(key), entry
    except ValueError:
        raise UnknownNameError(f"channel in {where.name}", key, ("torque", *Channel)) from None


def column_names(value: Any, where: Path, what: str, width: int | None) -> tuple[str, ...]:
    """Columns given as a list, as a range `2:7` counted from 1, as a pattern with `{i}` or `{i0}`, or as one name."""
    if value is None:
        return ()
    if isinstance(value, list) and value and all(isinstance(v, str | int) and not isinstance(v, bool) for v in value):
        return tuple(str(v) for v in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return (str(value),)
    if not isinstance(value, str) or not value:
        raise InputError(where, f"columns of {what} is {describe(value)}", "expected a list, '2:7', 'q_{i}' or a name")
    first, colon, last = value.partition(":")
    if colon and first.strip().isdigit() and last.strip().isdigit():
        start, stop = int(first), int(last)
        if not 0 < start <= stop < 100_000:
            raise InputError(where, f"columns {value!r} of {what}", "expected first:last, counted from 1")
        return tuple(str(i) for i in range(start, stop + 1))
    if "{i}" in value or "{i0}" in value:
        if width is None:
            raise InputError(
                where, f"the pattern {value!r} of {what} needs the number of joints", "give `joints: [...]`"
            )
        return tuple(value.replace("{i}", str(i + 1)).replace("{i0}", str(i)) for i in range(width))
    return (value,)


def row_range(value: Any, where: Path) -> tuple[int, int | None] | None:
    """[first, last], counted from 1 and both included; `last` may be null."""
    if value is None:
        return None
    whole = (
        [v for v in value if v is None or (isinstance(v, int) and not isinstance(v, bool))]
        if isinstance(value, list)
        else []
    )
    if len(whole) != 2 or len(value) != 2 or whole[0] is None or whole[0] < 1 or (whole[1] or whole[0]) < whole[0]:
        raise InputError(
            where, f"rows is {describe(value)}", "expected [first, last], counted from 1, or [first, null]"
        )
    return whole[0], whole[1]


def conditions_of(value: Any, where: Path) -> Conditions:
    entry = keyed(value, CONDITION_KEYS, where, "conditions")

    def triple(key: str) -> tuple[float, float, float] | None:
        if entry.get(key) is None:
            return None
        x = per_joint(entry[key], where, key, 3)
        if len(x) != 3:
            raise InputError(where, f"{key} is {describe(entry[key])}", "expected three numbers")
        return x[0], x[1], x[2]

    def optional(key: str) -> float | None:
        return None if entry.get(key) is None else number(entry[key], where, key)

    payload = optional("payload")
    if payload is not None and payload < 0.0:
        raise InputError(where, f"payload {payload} kg is negative")
    return Conditions(
        payload,
        triple("payload_centre"),
        text(entry.get("tool") or "", where, "tool"),
        triple("mounting"),
        optional("temperature"),
        text(entry.get("remark") or "", where, "remark"),
    )


def file_key(value: Any, files: Mapping[str, FileMap], where: Path, what: str) -> str:
    """Which file; needed only when there are several."""
    if value is None and len(files) == 1:
        return next(iter(files))
    if value is None or str(value) not in files:
        raise UnknownNameError(f"file for {what} in {where.name}", str(value), files)
    return str(value)


def per_joint(value: Any, where: Path, what: str, width: int | None) -> tuple[float, ...]:
    """One number, or one per joint."""
    values = value if isinstance(value, list) else [value]
    out = tuple(number(v, where, what) for v in values)
    if width is not None and len(out) not in (1, width):
        raise InputError(where, f"{what} has {len(out)} values", f"expected one, or one for each of {width}")
    return out


def matrix(value: Any, where: Path, what: str, *, square: bool = False) -> FloatArray | None:
    if value is None:
        return None
    rows = value if isinstance(value, list) and value and all(isinstance(row, list) for row in value) else None
    if rows is None or len({len(row) for row in rows}) != 1 or not rows[0]:
        raise InputError(where, f"{what} is {describe(value)}", "expected a list of rows of equal length")
    array = np.array([[number(v, where, what) for v in row] for row in rows])
    if square and (array.shape[0] != array.shape[1] or np.linalg.cond(array) > 1e12):
        raise InputError(where, f"{what} cannot be inverted")
    array.flags.writeable = False
    return array


def names(value: Any, where: Path, what: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
        raise InputError(where, f"{what} is {describe(value)}", "expected a list of names")
    if len(set(value)) != len(value):
        raise InputError(where, f"a name appears twice in {what}")
    return tuple(value)


def number(value: Any, where: Path, what: str) -> float:
    # YAML 1.1 reads 1e-3 without a point as text, so text is tried as well.
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            result = float(value)
        except (ValueError, OverflowError):
            result = math.nan
        if math.isfinite(result):
            return result
    raise InputError(where, f"{what} is {describe(value)}", "expected a finite number")


def text(value: Any, where: Path, what: str) -> str:
    if not isinstance(value, str):
        raise InputError(where, f"{what} is {describe(value)}", "expected text")
    return value


def describe(value: Any) -> str:
    return "missing" if value is None else repr(value)[:80]
