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
from armid.logs.readers.hdf5_heaps import refuse_endless_heaps
from armid.logs.readers.table import (
    Layout,
    Table,
    first_line,
    is_joint_names,
    joint_names_of,
    refuse_empty_promise,
    refuse_outside,
)
from armid.notes import Note

SIGNATURE = b"\x89HDF\r\n\x1a\n"
_USER_BLOCKS = (0, 512, 1024, 2048)
"""Where the signature may stand: MATLAB puts 512 bytes of text before it."""


def is_hdf5(path: Path) -> bool:
    """Whether the file has the HDF5 signature at one of its places."""
    return _superblock(path) is not None


def _superblock(path: Path) -> int | None:
    """Where the signature stands [bytes]; None when the file has none."""
    with path.open("rb") as file:
        for offset in _USER_BLOCKS:
            file.seek(offset)
            if file.read(8) == SIGNATURE:
                return offset
    return None


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
        return self.chunks_from(0, rows, wanted)

    def chunks_from(self, first: int, rows: int, wanted: Collection[str] | None = None) -> Iterator[Table]:
        names = [name for name in self.names if wanted is None or name in wanted]
        with _opened(self.path) as file:
            for start in range(first, self.length, rows):
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
    h5py = _import_h5py()
    shapes: dict[str, tuple[int, ...]] = {}
    places: dict[str, tuple[str, str]] = {}
    stored: dict[str, int] = {}

    joints: list[tuple[str, ...]] = []

    def visit(name: str, item: Any) -> None:
        if is_joint_names(name) and hasattr(item, "shape"):
            joints.append(_texts(path, h5py, item))
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

    refuse_foreign_storage(path, (path.parent, *layout.roots))
    with _opened(path) as file:
        try:
            file.visititems(visit)
            listed = file.attrs.get("joint_names")
        except InputError:
            raise
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
    if listed is not None and np.ndim(listed) == 1:
        joints.append(joint_names_of(path, list(listed)))
    named = next((names for names in joints if names), ())
    return Hdf5Table(path=path, upright=upright, places=places, length=length, joints=named)


def _texts(path: Path, h5py: Any, item: Any) -> tuple[str, ...]:
    """A dataset of texts: strings, or MATLAB's cells, which refer to arrays of characters; empty when it is something else."""
    if item.ndim > 2 or item.size > _MOST_NAMES:
        return ()
    if h5py.check_string_dtype(item.dtype) is not None or item.dtype.kind == "S":
        if _longest_text(path, item) > _MOST_NAMES:
            raise InputError(path, "damaged list of joint names", "one of them would not end")
        return joint_names_of(path, np.ravel(item[()]))
    if h5py.check_ref_dtype(item.dtype) is None:
        return ()
    texts = (item.file[reference] for reference in np.ravel(item[()]) if reference)
    return joint_names_of(path, ["".join(map(chr, np.ravel(text[:_MOST_NAMES]))) for text in texts])


def _longest_text(path: Path, item: Any) -> int:
    """Bytes that the longest of some texts claims to have, read from the file itself: the library would make room for all."""
    offset, count = item.id.get_offset(), int(item.size)
    if offset is None or item.id.get_storage_size() != _TEXT_ENTRY * count:
        return 0
    with path.open("rb") as file:
        file.seek(offset)
        raw = file.read(_TEXT_ENTRY * count)
    return int(np.frombuffer(raw, dtype="<u4")[:: _TEXT_ENTRY // 4].max(initial=0))


_TEXT_ENTRY = 16
"""Bytes of a text of variable length where it is listed: its own length, and where it stands."""
_MOST_NAMES = 10_000
"""Joints, and characters of a name: more is no list of joints."""
_MOST_FILES = 100
"""That one recording may be spread over."""


def refuse_foreign_storage(path: Path, roots: tuple[Path, ...]) -> None:
    """Refuses an HDF5 file that takes its numbers from files elsewhere: external storage, virtual datasets, external links.

    Args:
        path: of the file; others it names are looked into as well.
        roots: folders below which everything must lie.

    Raises:
        InputError: something lies elsewhere, is no regular file, or the chain does not end.
    """
    pending, seen = [path], set[Path]()
    while pending:
        one = pending.pop()
        if one.resolve() in seen:
            continue
        seen.add(one.resolve())
        for named in _foreign_files(one):
            # HDF5 looks beside the file and in the current directory, in an order that depends on its settings.
            for place in {one.parent / named, Path.cwd() / named}:
                if place.exists():
                    refuse_outside(place, roots, where=path)
                    if not place.is_file():
                        raise InputError(path, f"names {place}, which is no regular file")
                    pending.append(place)
        if len(seen) > _MOST_FILES:
            raise InputError(path, f"is spread over more than {_MOST_FILES} files", "copy the recording into one")


def _foreign_files(path: Path) -> set[str]:
    """Other files an HDF5 file takes numbers from; none when it is raw storage itself."""
    h5py = _import_h5py()
    found: set[str] = set()

    def visit(name: str, link: Any) -> None:
        if isinstance(link, h5py.ExternalLink):
            found.add(link.filename)
        if not isinstance(link, h5py.HardLink):
            return
        item = file[name]
        if isinstance(item, h5py.Dataset):
            found.update(entry[0] for entry in item.external or ())
            if item.is_virtual:
                found.update(source.file_name for source in item.virtual_sources())

    superblock = _superblock(path)
    if superblock is None:
        return found
    refuse_endless_heaps(path, superblock)
    with _opened(path) as file:
        try:
            file.visititems_links(visit)
        except Exception as error:  # damage surfaces as whatever the library stumbles over
            raise InputError(path, f"damaged HDF5 file: {type(error).__name__}") from None
    return found - {"."}


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
