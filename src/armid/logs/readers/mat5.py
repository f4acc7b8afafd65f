"""MATLAB files of version 5 (`save -v6`, `-v7`) and 4: plain numeric arrays and structs of them.

Every length in the file is checked against the bytes that are there before it is believed, and compressed elements expand up to a
limit. Cells and text but for the joints' names, objects, sparse and complex arrays are passed over.

The layout is the published one (MathWorks, MAT-File Format): an element is a tag (type, number of bytes) and its data, padded to
eight bytes; up to four bytes of data may stand in the tag itself.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.readers.table import MAX_BYTES, MAX_RATIO, SMALL_BYTES, first_line, is_joint_names, joint_names_of

_HEADER_BYTES = 128
MATRIX, COMPRESSED = 14, 15
"""Types of elements that hold others."""

_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
"""Types of elements that hold numbers."""

STRUCT, NUMERIC = 2, range(6, 16)
_CELL, _CHARACTERS = 1, 4
"""Classes of arrays."""

_TEXT_TYPES = {16: 2, 17: 4, 18: 6}
"""Types of elements that hold text (UTF-8, 16, 32), and the numbers their codes are stored as."""

_MAX_TEXT_BYTES = 1 << 20

_COMPLEX = 0x0800
_MAX_DEPTH = 16
_MAX_PARTS = 100_000
"""Elements of struct arrays; a recording has a few dozen."""

_V4_NUMBERS = {0: "f8", 1: "f4", 2: "i4", 3: "i2", 4: "u2", 5: "u1"}


class DamagedError(ValueError):
    """The bytes do not say what the format promises."""


@dataclass(frozen=True, slots=True)
class MatElement:
    """One element: its type and its data."""

    kind: int
    data: memoryview


def mat5_arrays(path: Path) -> dict[str, FloatArray]:
    """Numeric arrays of one or two dimensions by name, fields of structs as `struct.field`, as float64.

    Raises:
        InputError: damaged, or too large once expanded.
    """
    raw = memoryview(path.read_bytes())
    try:
        found = _v4_arrays(raw) if _is_version_4(raw) else arrays(raw, path)
        # Elements without a name, or with one of MATLAB's own, belong to its workspace.
        return {name: values for name, values in found if name and not name.startswith((".", "__"))}
    except (DamagedError, struct.error, zlib.error, UnicodeDecodeError) as error:
        raise InputError(path, f"not a readable .mat: {first_line(error)}", "it is truncated or damaged") from None


def mat5_joint_names(path: Path) -> tuple[str, ...]:
    """Joints by name, when a cell array of texts or a matrix of characters lists them; empty otherwise.

    Raises:
        InputError: one twice.
    """
    raw = memoryview(path.read_bytes())
    if len(raw) < _HEADER_BYTES or _is_version_4(raw):
        return ()
    order = ">" if raw[126:128].tobytes() == b"MI" else "<"
    try:
        for element in elements(raw[_HEADER_BYTES:], order):
            inner = [element]
            if element.kind == COMPRESSED:
                inner = list(elements(memoryview(_expansion(element.data, _MAX_TEXT_BYTES)), order))
            for one in inner:
                name, found = _texts(one, order)
                if found and is_joint_names(name):
                    return joint_names_of(path, found)
    except (DamagedError, struct.error, zlib.error, UnicodeDecodeError):
        pass  # what is damaged is reported where the numbers are read
    return ()


def _texts(element: MatElement, order: str, depth: int = 0) -> tuple[str, list[str]]:
    """The name of an array, and its texts: of a cell array one per cell, of a matrix of characters one per row."""
    if element.kind != MATRIX or not element.data:
        return "", []
    parts = elements(element.data, order)
    flags, dimensions, own = (numbers(part, order) for part in (need(parts), need(parts), need(parts)))
    kind, name = int(flags[0]) & 0xFF, own.astype(np.uint8).tobytes().decode("utf-8", "replace")
    count = int(np.prod(dimensions, dtype=object))
    if kind == _CELL and depth == 0 and 0 < count <= _MAX_PARTS:
        return name, [text for _ in range(count) for text in _texts(need(parts), order, depth + 1)[1]]
    if kind != _CHARACTERS or len(dimensions) != 2:
        return name, []
    data = need(parts)
    codes = numbers(MatElement(_TEXT_TYPES.get(data.kind, data.kind), data.data), order)
    if len(codes) != count or not count:
        return name, []
    rows = codes.reshape(tuple(int(k) for k in dimensions), order="F")
    return name, ["".join(chr(int(code)) for code in row).strip() for row in rows]


def _is_version_4(raw: memoryview) -> bool:
    """Version 4 has no text at its beginning but a type number, whose bytes are mostly zero."""
    return len(raw) >= 20 and 0 in raw[:4].tobytes()


def arrays(raw: memoryview, path: Path) -> Iterator[tuple[str, FloatArray]]:
    """The arrays of a version 5 file."""
    if len(raw) < _HEADER_BYTES:
        raise DamagedError(f"{len(raw)} bytes")
    order = {b"IM": "<", b"MI": ">"}.get(raw[126:128].tobytes())
    if order is None:
        raise DamagedError("no mark of the byte order in its header")
    packed = expanded = 0
    for element in elements(raw[_HEADER_BYTES:], order):
        if element.kind == COMPRESSED:
            content = _expansion(element.data, MAX_BYTES - expanded)
            packed, expanded = packed + len(element.data), expanded + len(content)
            if expanded >= MAX_BYTES or (expanded > SMALL_BYTES and expanded > MAX_RATIO * packed):
                raise InputError(
                    path, f"would expand to more than {expanded} bytes", "save it with -v7.3 or as Parquet"
                )
            for inner in elements(memoryview(content), order):
                yield from matrix(inner, order, "", 0)
        else:
            yield from matrix(element, order, "", 0)


def _expansion(data: memoryview, limit: int) -> bytes:
    """The content of a zlib stream, at most `limit` bytes of it, and no more than its size allows for."""
    machine = zlib.decompressobj()
    allowed = min(limit, max(SMALL_BYTES, MAX_RATIO * len(data)) + 1)
    content = machine.decompress(data, max(1, allowed))
    if not machine.eof and len(content) < allowed:
        raise DamagedError("a compressed element ends early")
    return content


def elements(data: memoryview, order: str) -> Iterator[MatElement]:
    """Elements one after another."""
    place = 0
    while place + 8 <= len(data):
        kind, size = struct.unpack_from(f"{order}II", data, place)
        if kind >> 16:
            # The small form: size in the upper half of the type, data in place of the size.
            kind, size = kind & 0xFFFF, kind >> 16
            if size > 4:
                raise DamagedError(f"{size} bytes in a short element")
            yield MatElement(kind, data[place + 4 : place + 4 + size])
            place += 8
            continue
        if size > len(data) - place - 8:
            raise DamagedError(f"an element of {size} bytes where {len(data) - place - 8} are left")
        yield MatElement(kind, data[place + 8 : place + 8 + size])
        # Compressed elements are not padded.
        place += 8 + size + (0 if kind == COMPRESSED else -size % 8)


def matrix(element: MatElement, order: str, name: str, depth: int) -> Iterator[tuple[str, FloatArray]]:
    """The numeric arrays in one array element; `name` replaces its own, for fields."""
    if element.kind != MATRIX or not element.data or depth > _MAX_DEPTH:
        return
    parts = elements(element.data, order)
    flags, dimensions, own = (numbers(part, order) for part in (need(parts), need(parts), need(parts)))
    if len(flags) < 1 or not len(dimensions):
        raise DamagedError("an array without a class or size")
    full = name or own.astype(np.uint8).tobytes().decode("utf-8", "replace")
    kind, shape = int(flags[0]) & 0xFF, tuple(int(k) for k in dimensions)
    if kind in NUMERIC and not int(flags[0]) & _COMPLEX:
        values = numbers(need(parts), order)
        if int(np.prod(shape, dtype=object)) != len(values) or min(shape) < 0:
            raise DamagedError(f"{len(values)} numbers in an array of {list(shape)}")
        if len(shape) == 2 and values.size > 1:
            yield full, np.squeeze(values.astype(np.float64).reshape(shape, order="F"))
    elif kind == STRUCT and shape == (1, 1):
        yield from fields(parts, order, full, depth)


def fields(parts: Iterator[MatElement], order: str, name: str, depth: int) -> Iterator[tuple[str, FloatArray]]:
    """Fields of a single struct."""
    lengths = numbers(need(parts), order)
    names = need(parts).data.tobytes()
    width = int(lengths[0]) if len(lengths) else 0
    if not 0 < width <= 256 or len(names) // width > _MAX_PARTS:
        raise DamagedError("a struct without field names")
    for k in range(len(names) // width):
        field = names[k * width : (k + 1) * width].split(b"\0")[0].decode("utf-8", "replace")
        yield from matrix(need(parts), order, f"{name}.{field}", depth + 1)


def need(parts: Iterator[MatElement]) -> MatElement:
    part = next(parts, None)
    if part is None:
        raise DamagedError("an array ends early")
    return part


def numbers(element: MatElement, order: str) -> FloatArray:
    """The numbers of an element, of whatever type they are stored in."""
    kind = _NUMBERS.get(element.kind)
    if kind is None:
        raise DamagedError(f"type {element.kind} where numbers should be")
    width = np.dtype(kind).itemsize
    values = np.frombuffer(element.data[: len(element.data) // width * width], dtype=f"{order}{kind}")
    return np.asarray(values)


def _v4_arrays(raw: memoryview) -> Iterator[tuple[str, FloatArray]]:
    """The arrays of a version 4 file: one after another, each with a header of five numbers and a name."""
    place = 0
    while place + 20 <= len(raw):
        order = "<" if struct.unpack_from("<I", raw, place)[0] < 5000 else ">"
        kind, rows, columns, imaginary, length = struct.unpack_from(f"{order}5I", raw, place)
        number = _V4_NUMBERS.get(kind // 10 % 10)
        if number is None or kind >= 5000 or not 0 < length < 4096:
            raise DamagedError("no array where one should begin")
        dtype = np.dtype(f"{order}{number}")
        start = place + 20 + length
        size = rows * columns * dtype.itemsize
        if size * (2 if imaginary else 1) > len(raw) - start:
            raise DamagedError(f"an array of {rows} x {columns} where {max(0, len(raw) - start)} bytes are left")
        name = raw[place + 20 : start].tobytes().split(b"\0")[0].decode("latin-1")
        if kind % 10 == 0 and not imaginary and rows * columns > 1:
            values = np.frombuffer(raw[start : start + size], dtype=dtype).astype(np.float64)
            yield name, np.squeeze(values.reshape((rows, columns), order="F"))
        place = start + size * (2 if imaginary else 1)
