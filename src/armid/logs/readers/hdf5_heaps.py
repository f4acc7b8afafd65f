"""Lists of texts inside HDF5 files, checked before the library reads them: on a damaged one it would never come back.

Texts of variable length stand in collections ("global heaps" in the HDF5 file format specification, III.E): a header, then
objects one after another, each with its size. An object of no size keeps the library at its place for ever.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from armid.errors import InputError

_HEAP = b"GCOL\x01\x00\x00\x00"
"""How a collection begins: its signature and version."""
_HEADER = 16
"""Bytes before the first object, and before the content of each, whether lengths take four bytes or eight."""


def refuse_endless_heaps(path: Path, superblock: int) -> None:
    """Refuses an HDF5 file with a collection whose objects do not follow one another to its end.

    Args:
        path: of the file.
        superblock: where its signature stands [bytes].

    Raises:
        InputError: there is such a collection.
    """
    if path.stat().st_size == 0:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        version = data[superblock + 8] if len(data) > superblock + 16 else 0
        wide = data[superblock + (14 if version < 2 else 10)] != 4 if len(data) > superblock + 16 else True
        place = data.find(_HEAP)
        while place >= 0:
            if not _ends(data, place, "<Q" if wide else "<I"):
                raise InputError(path, f"damaged HDF5 file: the texts at byte {place} do not end")
            place = data.find(_HEAP, place + len(_HEAP))


def _ends(data: mmap.mmap, heap: int, length: str) -> bool:
    """Whether every object of a collection begins where the one before it ends, up to the end of the collection."""
    head = data[heap : heap + _HEADER]
    if len(head) < _HEADER:
        return False
    size = struct.unpack_from(length, head, 8)[0]
    if heap + size > len(data):
        return False
    at = _HEADER
    while at + _HEADER <= size:
        (index,), (content,) = (
            struct.unpack_from("<H", data, heap + at),
            struct.unpack_from(length, data, heap + at + 8),
        )
        # The size of object 0, the free room, counts its header.
        step = content if index == 0 else _HEADER + (content + 7) // 8 * 8
        if step < _HEADER or at + step > size:
            return False
        at += step
    return True
