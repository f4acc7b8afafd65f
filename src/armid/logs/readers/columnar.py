"""Parquet and Arrow: columns that stream."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError, MissingDependencyError
from armid.logs.readers.table import Layout, Table, dropped, first_line, joint_names_of, refuse_empty_promise
from armid.notes import Note


@dataclass(eq=False, kw_only=True)
class ArrowTable:
    """A Parquet file or an Arrow stream or file, never held as a whole."""

    path: Path
    kind: str
    names: tuple[str, ...]
    named: bool = True
    joints: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    def chunks(self, rows: int, wanted: Collection[str] | None = None) -> Iterator[Table]:
        return self.chunks_from(0, rows, wanted)

    def chunks_from(self, first: int, rows: int, wanted: Collection[str] | None = None) -> Iterator[Table]:
        return dropped(*self._read_from(first, rows, wanted))

    def _read_from(self, first: int, rows: int, wanted: Collection[str] | None) -> tuple[Iterator[Table], int]:
        """Pieces from the row group or batch on that a row lies in, and rows of it before that one."""
        if first and self.kind == "parquet":
            group, before = _row_group_at(self.path, first)
            return self._pieces(rows, wanted, group), first - before
        return self._pieces(rows, wanted), first

    def _pieces(self, rows: int, wanted: Collection[str] | None, group: int = 0) -> Iterator[Table]:
        import pyarrow as pa

        names = [name for name in self.names if wanted is None or name in wanted]
        try:
            for batch in self.batches(pa, rows, names, group):
                # Lengths and offsets of a damaged file could point beyond its buffers.
                batch.validate()
                yield {name: column_values(self.path, name, _column_at(batch, name)) for name in names}
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InputError(self.path, f"damaged {self.kind}: {first_line(error)}") from None

    def batches(self, pa: Any, rows: int, names: list[str], group: int = 0) -> Iterator[Any]:
        if self.kind == "parquet":
            import pyarrow.parquet as pq

            # Buffered reading, not a memory map: pages of a map would count as ours while they last.
            with pq.ParquetFile(self.path, buffer_size=1 << 20, pre_buffer=False) as file:
                groups = range(group, file.num_row_groups)
                yield from file.iter_batches(batch_size=rows, row_groups=groups, columns=names, use_threads=True)
            return
        with pa.memory_map(str(self.path)) as source, _open_ipc(pa, source) as reader:
            batches = (
                reader
                if hasattr(reader, "read_next_batch")
                else (reader.get_batch(i) for i in range(reader.num_record_batches))
            )
            for batch in batches:
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows)


def _row_group_at(path: Path, row: int) -> tuple[int, int]:
    """Row group of a Parquet file that a row lies in, and rows before it."""
    import pyarrow.parquet as pq

    before = 0
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            count = file.metadata.row_group(group).num_rows
            if before + count > row:
                return group, before
            before += count
        return file.num_row_groups, before


def open_parquet(path: Path, layout: Layout) -> ArrowTable:
    """A Parquet file."""
    pa = _required()
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, memory_map=True) as file:
            refuse_empty_promise(path, path.stat().st_size, 8 * file.metadata.num_rows * file.metadata.num_columns)
            names, joints = _numeric_names(pa, path, file.schema_arrow), _joint_names(path, file.schema_arrow)
            return ArrowTable(path=path, kind="parquet", names=names, joints=joints)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(path, f"not a readable Parquet file: {first_line(error)}") from None


def open_arrow(path: Path, layout: Layout) -> ArrowTable:
    """An Arrow IPC file (Feather) or stream."""
    pa = _required()
    try:
        with pa.memory_map(str(path)) as source, _open_ipc(pa, source) as reader:
            names, joints = _numeric_names(pa, path, reader.schema), _joint_names(path, reader.schema)
            return ArrowTable(path=path, kind="arrow", names=names, joints=joints)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(path, f"not a readable Arrow file: {first_line(error)}") from None


def _joint_names(path: Path, schema: Any) -> tuple[str, ...]:
    """Joints from the metadata of the file, a JSON list under `joint_names`; empty without."""
    raw = (schema.metadata or {}).get(b"joint_names")
    try:
        listed = json.loads(raw) if raw else []
    except (ValueError, RecursionError):
        listed = []
    return joint_names_of(path, listed) if isinstance(listed, list) else ()


def _required() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise MissingDependencyError("pyarrow", "reading Parquet and Arrow", "io") from None
    return pyarrow


def _open_ipc(pa: Any, source: Any) -> Any:
    try:
        return pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)


def _column_at(batch: Any, name: str) -> Any:
    """A column by its name, or a field of a struct column by the names of both with a dot between."""
    if name in batch.schema.names:
        return batch.column(name)
    place = next(k for k in range(len(name)) if name[k] == "." and name[:k] in batch.schema.names)
    column = batch.column(name[:place])
    for part in name[place + 1 :].split("."):
        column = column.field(part)
    return column


def _numeric_names(pa: Any, path: Path, schema: Any) -> tuple[str, ...]:
    """Columns of numbers, of lists of numbers, and such fields of struct columns."""

    def usable(kind: Any) -> bool:
        if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
            return usable(kind.value_type)
        return bool(
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_timestamp(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_duration(kind)
        )

    def fields(field: Any, prefix: str = "") -> list[str]:
        name = f"{prefix}{field.name}"
        if pa.types.is_struct(field.type):
            # A dot inside a field's own name could not be told from one between names.
            inner = [field.type.field(i) for i in range(field.type.num_fields)]
            return [found for one in inner if "." not in one.name for found in fields(one, f"{name}.")]
        return [name] if usable(field.type) else []

    names = tuple(name for field in schema for name in fields(field))
    if not names:
        raise InputError(path, "no column of numbers", f"its columns are {', '.join(schema.names) or 'none'}")
    if len(set(names)) != len(names):
        raise InputError(path, "two columns have the same name")
    return names


def column_values(path: Path, name: str, column: Any) -> FloatArray:
    """One column as float64, [rows], or [rows, k] for lists of equal length; timestamps become seconds."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        import pyarrow.compute

        flat = column.flatten().to_numpy(zero_copy_only=False).astype(np.float64)
        if len(column) and len(flat) % len(column):
            raise InputError(path, f"lists of different lengths in column {name!r}")
        lengths = np.unique(pa.compute.list_value_length(column).to_numpy(zero_copy_only=False))
        if len(lengths) > 1:
            raise InputError(path, f"lists of different lengths in column {name!r}")
        return flat.reshape(len(column), -1)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        scale = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[kind.unit]
        return column.cast(pa.int64()).to_numpy(zero_copy_only=False).astype(np.float64) * scale
    if column.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        # Arrow's own way to NumPy loads pandas where that is installed: 40 MB and a quarter of a second.
        return np.from_dlpack(column).astype(np.float64, copy=False)
    return column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
