"""NumPy files, without pickle and without trusting what their headers promise."""

from __future__ import annotations

import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from io import SEEK_CUR
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.readers.table import (
    SMALL_BYTES,
    ArrayTable,
    Layout,
    Table,
    TableFile,
    along_time,
    first_line,
    is_joint_names,
    joint_names_of,
    numeric,
    refuse_bomb,
)
from armid.notes import Note

HELD_BYTES = SMALL_BYTES
"""Numbers of an archive that are read at once; a larger one is streamed, when its arrays have time along their rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    """What an array in a .npy stream says about itself.

    Args:
        shape, fortran, dtype: as NumPy means them.
        count: of its values.
    """

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    count: int

    @property
    def is_numeric(self) -> bool:
        """Plain numbers of one or two dimensions; at least one."""
        return self.dtype.kind in "fiub" and len(self.shape) in (1, 2) and self.count > 0

    @property
    def streams(self) -> bool:
        """Whether its rows come one after the other."""
        return len(self.shape) == 1 or (not self.fortran and self.shape[0] >= self.shape[1])


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamedArchive:
    """Arrays of a large .npz, all of one length, read side by side a piece at a time.

    Args:
        path: of the archive.
        arrays: header by the name of the array.
    """

    path: Path
    arrays: Mapping[str, _Header]
    named: bool = True
    joints: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.arrays)

    def chunks(self, rows: int, wanted: Collection[str] | None = None) -> Iterator[Table]:
        return self.chunks_from(0, rows, wanted)

    def chunks_from(self, first: int, rows: int, wanted: Collection[str] | None = None) -> Iterator[Table]:
        chosen = {name: head for name, head in self.arrays.items() if wanted is None or name in wanted}
        count = next((head.shape[0] for head in chosen.values()), 0)
        try:
            with ExitStack() as stack:
                archive = stack.enter_context(zipfile.ZipFile(self.path))
                files = {name: stack.enter_context(archive.open(f"{name}.npy")) for name in chosen}
                for name, file in files.items():
                    head = _header_of(self.path, name, file, archive.getinfo(f"{name}.npy").file_size)
                    # A stored array is gone to at once, a compressed one unpacked up to there.
                    file.seek(first * (head.count // head.shape[0]) * head.dtype.itemsize, SEEK_CUR)
                for start in range(first, count, rows):
                    n = min(rows, count - start)
                    yield {name: _rows_of(self.path, name, files[name], head, n) for name, head in chosen.items()}
        except _DAMAGE as error:
            raise InputError(self.path, f"not a readable .npz: {first_line(error)}") from None


def _rows_of(path: Path, name: str, file: IO[bytes], head: _Header, rows: int) -> FloatArray:
    """The next rows of an array, shape [rows] or [rows, k]."""
    width = head.count // head.shape[0]
    raw = file.read(rows * width * head.dtype.itemsize)
    if len(raw) != rows * width * head.dtype.itemsize:
        raise InputError(path, f"{name} ends early", "the file is truncated")
    values = np.frombuffer(raw, dtype=head.dtype).astype(np.float64)
    return values if width == 1 else values.reshape(rows, width)


_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError)
"""What a damaged archive raises."""


def open_npz(path: Path, layout: Layout) -> TableFile:
    """Arrays of a .npz by name; those that are not as long as the log are left out.

    Raises:
        InputError: not a zip, pickled objects, or sizes that only a zip bomb has.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            _check_sizes(path, members)
            joints = _joint_names(path, archive, members)
            if sum(member.file_size for member in members) > HELD_BYTES:
                streamed = _streamed(path, archive, members)
                if streamed is not None:
                    return replace(streamed, joints=joints)
            columns: dict[str, FloatArray] = {}
            for member in members:
                if member.filename.endswith(".npy"):
                    with archive.open(member) as file:
                        values = _array_of(path, member.filename, file, member.file_size)
                    columns |= _columns_of(path, member.filename.removesuffix(".npy"), values)
    except _DAMAGE as error:
        raise InputError(path, f"not a readable .npz: {first_line(error)}") from None
    table = along_time(columns)
    if not table:
        raise InputError(path, "no numeric arrays of one or two dimensions")
    return ArrayTable(table, joints=joints)


_MAX_NAMES_BYTES = 1 << 20
"""Of an array of joint names; a humanoid's take a few kilobytes."""


def _joint_names(path: Path, archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]) -> tuple[str, ...]:
    """Joints by name, when an array lists them; empty otherwise."""
    for member in members:
        if is_joint_names(member.filename.removesuffix(".npy")) and member.file_size <= _MAX_NAMES_BYTES:
            with archive.open(member) as file:
                head = _header_of(path, member.filename, file, member.file_size)
                if head.dtype.kind in "US" and head.dtype.itemsize and head.count:
                    raw = file.read(head.count * head.dtype.itemsize)
                    return joint_names_of(path, np.frombuffer(raw, dtype=head.dtype, count=head.count))
    return ()


def _streamed(path: Path, archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]) -> StreamedArchive | None:
    """The arrays as long as most of the numbers are; None when one of these cannot be read row by row."""
    heads: dict[str, _Header] = {}
    for member in members:
        if member.filename.endswith(".npy"):
            with archive.open(member) as file:
                head = _header_of(path, member.filename, file, member.file_size)
            if head.dtype.names is not None:
                return None
            if head.is_numeric:
                heads[member.filename.removesuffix(".npy")] = head
    sizes: Counter[int] = Counter()
    for head in heads.values():
        sizes[max(head.shape)] += head.count
    longest = max(sizes, key=sizes.__getitem__, default=0)
    chosen = {name: head for name, head in heads.items() if max(head.shape) == longest}
    return (
        StreamedArchive(path=path, arrays=chosen) if chosen and all(head.streams for head in chosen.values()) else None
    )


def open_npy(path: Path, layout: Layout) -> ArrayTable:
    """One array, [n_samples] or [n_samples, columns]; columns counted from 1, or named by the fields of a structured array."""
    try:
        with path.open("rb") as file:
            array = _array_of(path, path.name, file, path.stat().st_size)
    except (ValueError, EOFError, OSError) as error:
        raise InputError(path, f"not a readable .npy: {first_line(error)}") from None
    found = _columns_of(path, "", array)
    if not found:
        raise InputError(path, "no numeric array of one or two dimensions")
    if "" not in found:
        return ArrayTable(along_time(found))
    values = found[""]
    if layout.flat:
        return ArrayTable({"1": values.reshape(-1)}, named=False)
    if values.ndim == 1:
        return ArrayTable({"1": values}, named=False)
    upright = values if values.shape[0] >= values.shape[1] else values.T
    return ArrayTable({str(i + 1): np.ascontiguousarray(upright[:, i]) for i in range(upright.shape[1])}, named=False)


def _check_sizes(path: Path, members: list[zipfile.ZipInfo]) -> None:
    """Refuses an archive by its directory alone, before anything is expanded."""
    refuse_bomb(path, sum(member.compress_size for member in members), sum(member.file_size for member in members))


def _columns_of(path: Path, name: str, array: npt.NDArray[Any]) -> dict[str, FloatArray]:
    """An array as columns: the fields of a structured one by their names, another under its own; empty when it has no numbers."""
    if array.dtype.names is None:
        values = numeric(path, name, array)
        return {name: values} if values is not None and values.size else {}
    out: dict[str, FloatArray] = {}
    for field in array.dtype.names:
        out |= _columns_of(path, f"{name}.{field}" if name else field, array[field])
    return out


def _header_of(path: Path, name: str, file: IO[bytes], size: int) -> _Header:
    """The header of a .npy stream, checked against the bytes that are really there; the stream then stands at the numbers.

    Raises:
        InputError: damaged, of Python objects, or promising more than there is.
    """
    try:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except Exception:  # NumPy reads the header's text as a Python literal: what comes out of it is anybody's guess
        raise InputError(path, f"{name} has a damaged header", "the file is truncated or damaged") from None
    if dtype.hasobject:
        raise InputError(path, f"{name} holds Python objects", "save plain numeric arrays; pickled objects are refused")
    count = 1
    for length in shape:
        count *= int(length)
    if count < 0 or count * dtype.itemsize > size:
        raise InputError(
            path, f"{name} promises {count} values but holds {size} bytes", "the file is truncated or damaged"
        )
    return _Header(shape=tuple(int(length) for length in shape), fortran=bool(fortran), dtype=dtype, count=count)


def _array_of(path: Path, name: str, file: IO[bytes], size: int) -> npt.NDArray[Any]:
    """One array of a .npy stream."""
    head = _header_of(path, name, file, size)
    if head.dtype.kind not in "fiubV" or head.count == 0:
        return np.empty(0)
    raw = file.read(head.count * head.dtype.itemsize)
    if len(raw) != head.count * head.dtype.itemsize:
        raise InputError(path, f"{name} ends after {len(raw)} bytes", "the file is truncated")
    return np.frombuffer(raw, dtype=head.dtype).reshape(head.shape, order="F" if head.fortran else "C")
