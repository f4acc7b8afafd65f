"""MATLAB .mat: version 5 by SciPy, version 7.3 as the HDF5 file it is."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.readers.hdf5 import is_hdf5, open_hdf5
from armid.logs.readers.table import MAX_BYTES, MAX_RATIO, SMALL_BYTES, ArrayTable, Layout, TableFile, along_time

COMPRESSED = 15
"""Data type tag of a compressed element in a version 5 file."""
HEADER_BYTES = 128
MAX_DEPTH = 16


def open_mat(path: Path, layout: Layout) -> TableFile:
    """Numeric arrays of a .mat, fields of structs as `struct.field`, with time along the rows.

    Raises:
        InputError: damaged, too large once expanded, or nothing numeric in it.
    """
    if is_hdf5(path):
        return open_hdf5(path, layout)
    check_expansion(path)
    from scipy.io import loadmat

    try:
        content = loadmat(str(path), squeeze_me=True, struct_as_record=False, verify_compressed_data_integrity=True)
    except Exception as error:  # SciPy's parser raises whatever the damage leads to
        raise InputError(path, f"not a readable .mat: {type(error).__name__}: {error}") from None
    columns: dict[str, FloatArray] = {}
    for name, value in content.items():
        if name and not name.startswith("__"):
            collect(str(name), value, columns, 0)
    table = along_time(columns)
    if not table:
        raise InputError(path, "no numeric arrays", "cell arrays and objects are not read: save plain matrices")
    return ArrayTable(table)


def collect(name: str, value: Any, columns: dict[str, FloatArray], depth: int) -> None:
    """Adds the numeric arrays under one variable; cells, objects and text are passed over."""
    if depth > MAX_DEPTH:
        return
    fields = getattr(value, "_fieldnames", None)
    if fields is not None:
        for field in fields:
            collect(f"{name}.{field}", getattr(value, field), columns, depth + 1)
        return
    array = np.asarray(value)
    if array.dtype.kind in "fiub" and array.ndim in (1, 2) and array.size > 1:
        columns[name] = array.astype(np.float64)


def check_expansion(path: Path) -> None:
    """Adds up what the compressed elements expand to, holding one megabyte at a time."""
    total, packed = 0, 0
    size = path.stat().st_size
    with path.open("rb") as file:
        header = file.read(HEADER_BYTES)
        if len(header) < HEADER_BYTES:
            # A version 4 file has no compression and no header of this kind; SciPy tells damage from version 4.
            return
        order = "<" if header[126:128] == b"IM" else ">"
        while len(tag := file.read(8)) == 8:
            kind, length = struct.unpack(f"{order}II", tag)
            if kind != COMPRESSED:
                file.seek(min(length + (-length) % 8, size), 1)
                continue
            packed += length
            total += expanded_size(path, file.read(length))
            if total > MAX_BYTES or (total > SMALL_BYTES and total > MAX_RATIO * packed):
                raise InputError(path, f"would expand to more than {total} bytes", "save it with -v7.3 or as Parquet")


def expanded_size(path: Path, data: bytes) -> int:
    """Length of a zlib stream's content, counted up to the limit."""
    count, machine = 0, zlib.decompressobj()
    try:
        while data and not machine.eof and count <= MAX_BYTES:
            count += len(machine.decompress(data, 1 << 20))
            data = machine.unconsumed_tail
    except zlib.error as error:
        raise InputError(path, f"not a readable .mat: {error}") from None
    return count
