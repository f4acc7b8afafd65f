"""Mapping files: YAML, checked key by key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from armid.documents import read_yaml
from armid.errors import InputError
from armid.logs.log import Conditions
from armid.logs.mapping.channels import channel_maps, file_key
from armid.logs.mapping.maps import ClockMap, FileMap, LogMap
from armid.logs.mapping.values import describe, keyed, names, number, per_joint, text
from armid.logs.readers.table import Layout
from armid.logs.units import seconds

_SCHEMA = "armid.log/1"

_LAYOUT_KEYS = ("format", "delimiter", "decimal", "header", "flat", "topic")
_TOP_KEYS = (
    "schema",
    "name",
    "file",
    "files",
    "joints",
    "rows",
    "clock",
    "channels",
    "conditions",
    "sensors",
    *_LAYOUT_KEYS,
)
_FILE_KEYS = ("path", *_LAYOUT_KEYS)
_CLOCK_KEYS = ("column", "file", "unit", "step", "nanoseconds", "gain")
_CONDITION_KEYS = tuple(f.name for f in fields(Conditions))


def is_mapping_file(path: Path) -> bool:
    return path.suffix.lower() in (".yaml", ".yml") and path.is_file()


def read_mapping(path: str | Path, *, data_root: str | Path | None = None) -> LogMap:
    """A mapping file.

    Args:
        path: YAML; file names in it are relative to its directory, or to `data_root` when that is given; that of a sensor file
            to its directory.
        data_root: directory of the recordings, when they do not lie next to the mapping.

    Raises:
        InputError: not YAML, unknown keys, wrong types; the message names the key and lists those that exist.
    """
    location = Path(path)
    content = read_yaml(location, "a mapping file")
    return _parsed_mapping(content, location, root=Path(data_root) if data_root is not None else location.parent)


def _parsed_mapping(content: Any, where: Path, *, root: Path) -> LogMap:
    """A mapping from the content of its file, checked key by key."""
    top = keyed(content, _TOP_KEYS, where, "mapping")
    if top.get("schema", _SCHEMA) != _SCHEMA:
        raise InputError(where, f"schema {top['schema']!r}", f"expected {_SCHEMA!r}")
    files = _file_maps(top, where, root)
    joints = names(top.get("joints", []), where, "joints")
    width = len(joints) or None
    # One file whose columns speak for themselves needs no channels: a mapping may add no more than the run's conditions.
    spoken = "channels" not in top and "file" in top
    channels = () if spoken else channel_maps(top.get("channels"), files, where, width)
    return LogMap(
        files=files,
        channels=channels,
        clock=_clock_map(top.get("clock"), files, where),
        joints=joints,
        rows=_row_range(top.get("rows"), where),
        conditions=_conditions_of(top.get("conditions", {}), where),
        name=text(top.get("name", where.stem), where, "name"),
        preset=f"mapping {where.name}",
        sensors=None if top.get("sensors") is None else where.parent / text(top["sensors"], where, "sensors"),
    )


def _file_maps(top: dict[str, Any], where: Path, root: Path) -> dict[str, FileMap]:
    """The files by key; a single `file` has the empty key."""
    if ("file" in top) == ("files" in top):
        raise InputError(where, "one of `file` and `files` is needed", "`file: name.csv` or `files: {key: name.csv}`")
    shared = {key: top[key] for key in _LAYOUT_KEYS if key in top}
    entries = {"": top["file"]} if "file" in top else top["files"]
    if not isinstance(entries, dict) or not entries:
        raise InputError(where, f"files is {describe(entries)}", "expected `files: {key: name.csv}`")
    out = {}
    for key, entry in entries.items():
        own = keyed(entry, _FILE_KEYS, where, f"file {key!r}") if isinstance(entry, dict) else {"path": entry}
        path = Path(text(own.get("path"), where, f"path of file {key!r}"))
        merged = {**shared, **{k: v for k, v in own.items() if k != "path"}}
        out[str(key)] = FileMap(path if path.is_absolute() else root / path, _layout_of(merged, where))
    return out


def _layout_of(entry: dict[str, Any], where: Path) -> Layout:
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
        format=entry.get("format"),
        delimiter={"tab": "\t", "space": " "}.get(delimiter, delimiter) if delimiter else None,
        decimal=entry.get("decimal"),
        header=entry.get("header"),
        flat=flat,
        topic=entry.get("topic"),
    )


def _clock_map(value: Any, files: Mapping[str, FileMap], where: Path) -> ClockMap:
    """The clock; a mapping without one leaves it to be inferred."""
    if value is None:
        return ClockMap()
    entry = keyed(value, _CLOCK_KEYS, where, "clock")
    if ("column" in entry) == ("step" in entry):
        raise InputError(where, "clock needs either `column` or `step`")
    unit = text(entry.get("unit", "s"), where, "clock unit")
    seconds(unit)
    gain = number(entry.get("gain", 1.0), where, "clock gain")
    if gain <= 0.0:
        raise InputError(
            where, f"clock gain {entry['gain']!r}", "expected a positive number: true time over stamped time"
        )
    if "step" in entry:
        step = number(entry["step"], where, "clock step") * seconds(unit) * gain
        if step <= 0.0:
            raise InputError(where, f"clock step {entry['step']!r}", "expected a positive time")
        return ClockMap(step=step)
    nanoseconds = entry.get("nanoseconds")
    return ClockMap(
        column=str(entry["column"]),
        file=file_key(entry.get("file"), files, where, "clock"),
        unit=unit,
        nanoseconds=None if nanoseconds is None else str(nanoseconds),
        gain=gain,
    )


def _row_range(value: Any, where: Path) -> tuple[int, int | None] | None:
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


def _conditions_of(value: Any, where: Path) -> Conditions:
    entry = keyed(value, _CONDITION_KEYS, where, "conditions")

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
        payload=payload,
        payload_centre=triple("payload_centre"),
        tool=text(entry.get("tool") or "", where, "tool"),
        mounting=triple("mounting"),
        temperature=optional("temperature"),
        remark=text(entry.get("remark") or "", where, "remark"),
    )
