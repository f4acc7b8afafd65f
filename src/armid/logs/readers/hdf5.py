"""HDF5 datasets, streamed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError, MissingDependencyError
from armid.logs.readers.table import Layout, Table, first_line, refuse_empty_promise
from armid.notes import Note

SIGNATURE = b"\x89HDF\r\n\x1a\n"
_USER_BLOCKS = (0, 512, 1024, 2048)
"""Where the signature may stand: MATLAB puts 512 bytes of text before it."""


def is_hdf5(path: Path) -> bool:
    """Whether the file has the HDF5 signature at one of its places."""
    with path.open("rb") as file:
        for offset in _USER_BLOCKS:
            file.seek(offset)
            if file.read(8) == SIGNATURE:
                return True
    return False


@dataclass(eq=False, kw_only=True)
class Hdf5Table:
    """Datasets of one length; `upright` says which have time along the rows, `places` where they are: dataset and field."""

    path: Path
    upright: dict[str, bool]
    places: dict[str, tuple[str, str]]
    length: int
    named: bool = True
    joints: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.upright)

    def chunks(self, rows: int, wanted: Collection[str] | None = None) -> Iterator[Table]:
        names = [name for name in self.names if wanted is None or name in wanted]
        with _opened(self.path) as file:
            for start in range(0, self.length, rows):
                stop = min(start + rows, self.length)
                yield {name: self.piece(file, name, start, stop) for name in names}

    def piece(self, file: Any, name: str, start: int, stop: int) -> FloatArray:
        place, field = self.places[name]
        try:
            dataset = file[place].fields(field) if field else file[place]
            values = dataset[start:stop] if self.upright[name] else dataset[..., start:stop].T
        except (OSError, RuntimeError, ValueError, KeyError) as error:
            raise InputError(self.path, f"damaged dataset {name}: {first_line(error)}") from None
        array = np.ascontiguousarray(values, dtype=np.float64)
        return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def open_hdf5(path: Path, layout: Layout) -> Hdf5Table:
    """Numeric datasets by path with dots for slashes (`rec.time`), tables by their fields; those of another length than
    the log are left out.
    """
    _import_h5py()
    shapes: dict[str, tuple[int, ...]] = {}
    places: dict[str, tuple[str, str]] = {}
    stored: dict[str, int] = {}

    def visit(name: str, item: Any) -> None:
        kind, shape = getattr(item, "dtype", None), getattr(item, "shape", None)
        if kind is None or not shape or "#refs#" in name:
            return
        for field, own in _numeric_fields(kind):
            whole = (*shape, *own)
            if len(whole) in (1, 2):
                full = name.replace("/", ".") + (f".{field}" if field else "")
                shapes[full] = tuple(int(k) for k in whole)
                places[full] = (name, field)
                stored[full] = int(item.id.get_storage_size())

    with _opened(path) as file:
        try:
            file.visititems(visit)
        except Exception as error:  # damage surfaces as whatever the library stumbles over
            raise InputError(path, f"damaged HDF5 file: {type(error).__name__}: {first_line(error)}") from None
    sizes: dict[int, int] = {}
    for shape in shapes.values():
        sizes[max(shape)] = sizes.get(max(shape), 0) + prod(shape)
    if not sizes:
        raise InputError(path, "no numeric dataset of one or two dimensions")
    length = max(sizes, key=lambda k: sizes[k])
    upright = {name: shape[0] == length for name, shape in shapes.items() if max(shape) == length}
    for name in upright:
        # Chunks that were never written cost nothing in the file and are read as zeros.
        refuse_empty_promise(path, stored[name], 8 * prod(shapes[name]))
    return Hdf5Table(path=path, upright=upright, places=places, length=length)


def _numeric_fields(kind: Any) -> list[tuple[str, tuple[int, ...]]]:
    """Fields of numbers of a compound type, with their own shape; the unnamed one of a plain type."""
    if kind.names is None:
        return [("", ())] if kind.kind in "fiub" else []
    return [(name, kind[name].shape) for name in kind.names if kind[name].base.kind in "fiub"]


def _import_h5py() -> Any:
    try:
        import h5py
    except ImportError:
        raise MissingDependencyError("h5py", "reading HDF5 and MATLAB 7.3 files", "io") from None
    return h5py


def _opened(path: Path) -> Any:
    try:
        return _import_h5py().File(path, "r")
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(path, f"not a readable HDF5 file: {first_line(error)}") from None
