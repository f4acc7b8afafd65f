"""NumPy files, without pickle and without trusting what their headers promise."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.readers.table import ArrayTable, Layout, along_time, first_line, numeric, refuse_bomb


def open_npz(path: Path, layout: Layout) -> ArrayTable:
    """Arrays of a .npz by name; those that are not as long as the log are left out.

    Raises:
        InputError: not a zip, pickled objects, or sizes that only a zip bomb has.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            _check_sizes(path, members)
            columns: dict[str, FloatArray] = {}
            for member in members:
                if member.filename.endswith(".npy"):
                    with archive.open(member) as file:
                        values = _array_of(path, member.filename, file, member.file_size)
                    columns |= _columns_of(path, member.filename.removesuffix(".npy"), values)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError) as error:
        raise InputError(path, f"not a readable .npz: {first_line(error)}") from None
    table = along_time(columns)
    if not table:
        raise InputError(path, "no numeric arrays of one or two dimensions")
    return ArrayTable(table)


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


def _array_of(path: Path, name: str, file: IO[bytes], size: int) -> npt.NDArray[Any]:
    """One array of a .npy stream whose header is checked against the bytes that are really there."""
    version = npy.read_magic(file)
    header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    try:
        shape, fortran, dtype = header(file)
    except (tokenize.TokenError, SyntaxError):  # NumPy reads the header's text as a Python literal
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
    if dtype.kind not in "fiubV" or count == 0:
        return np.empty(0)
    raw = file.read(count * dtype.itemsize)
    if len(raw) != count * dtype.itemsize:
        raise InputError(path, f"{name} ends after {len(raw)} bytes", "the file is truncated")
    return np.frombuffer(raw, dtype=dtype).reshape(shape, order="F" if fortran else "C")
