"""What every reader delivers: named columns of numbers, in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.notes import Note

Table = Mapping[str, FloatArray]
"""Column name -> values, shape [rows] or [rows, k]."""

MAX_BYTES = 8 << 30
"""Largest size to which a compressed container that must be expanded as a whole may grow; more is an attack or a mistake."""

MAX_RATIO = 200
"""Compressed numbers shrink 2 to 20 times, constant columns more. Beyond this only a bomb does, once it is also large."""

SMALL_BYTES = 64 << 20
"""Below this an expansion does no harm, whatever its ratio."""


def refuse_bomb(path: Path, packed: int, expanded: int) -> None:
    """Refuses a file by what it promises to expand to, before anything is expanded.

    Raises:
        InputError: the file says it holds far more numbers than its bytes can.
    """
    if expanded > MAX_BYTES or (expanded > SMALL_BYTES and expanded > MAX_RATIO * max(packed, 1)):
        raise InputError(
            path,
            f"would expand from {packed} to {expanded} bytes",
            "save it uncompressed, or as Parquet, which streams",
        )


def refuse_empty_promise(path: Path, packed: int, expanded: int) -> None:
    """The same for formats that stream: any length will do, if the bytes are there."""
    if expanded > SMALL_BYTES and expanded > MAX_RATIO * max(packed, 1):
        raise InputError(
            path,
            f"{packed} bytes promise {expanded} bytes of numbers",
            "the file is damaged, or holds nothing but constants",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How to read a file that does not say it itself; None means: find out.

    Args:
        format: name of the reader (`csv`, `npz`, ...).
        delimiter: of a text file; a space stands for any white space.
        decimal: `.` or `,`.
        header: whether the first row of a text file names the columns.
        flat: numbers per sample when a text file or array lists them one after another.
        topic: of a ROS bag.
        roots: folders besides the file's own from which it may take data (HDF5 can refer to other files).
    """

    format: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    header: bool | None = None
    flat: int | None = None
    topic: str | None = None
    roots: tuple[Path, ...] = ()


def refuse_outside(path: Path, roots: Iterable[Path], *, where: Path) -> None:
    """Refuses a file that another file names, unless it lies below one of some folders, links followed.

    Args:
        path: of the file.
        roots: the folders.
        where: the file that names it.

    Raises:
        InputError: it lies elsewhere.
    """
    place = path.resolve()
    if not any(place.is_relative_to(root.resolve()) for root in roots):
        hint = "move it there, or give --data-root a folder that holds it"
        raise InputError(where, f"names {path}, which lies outside its folder and the data root", hint)


JOINT_NAMES = ("joint_names", "joint_name", "joints")
"""What arrays of joint names are called."""


def is_joint_names(name: str) -> bool:
    """Whether an array of texts by this name lists the joints; it may stand in a group or struct."""
    return name.replace("/", ".").rsplit(".", 1)[-1].lower() in JOINT_NAMES


def joint_names_of(path: Path, values: Iterable[Any]) -> tuple[str, ...]:
    """Names of joints as a file lists them.

    Raises:
        InputError: one twice, or empty.
    """
    names = tuple((v.decode("utf-8", "replace") if isinstance(v, bytes) else str(v)).strip("\0 ") for v in values)
    if len(set(names)) != len(names) or not all(names):
        raise InputError(path, f"joint names {', '.join(map(repr, names))}", "each joint needs a name of its own")
    return names


class TableFile(Protocol):
    """An open file of columns."""

    @property
    def names(self) -> tuple[str, ...]:
        """Column names; `1`, `2`, ... when the file has none."""

    @property
    def named(self) -> bool:
        """Whether the file itself names its columns."""

    @property
    def joints(self) -> tuple[str, ...]:
        """Joint names of the two-dimensional columns, when the file has them."""

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was guessed or skipped; complete once the last piece has been read."""

    def chunks(self, rows: int, wanted: Collection[str] | None = None) -> Iterator[Table]:
        """Pieces of at most `rows` rows, in order; only the wanted columns."""


@runtime_checkable
class SeekableTable(Protocol):
    """An open file whose rows can be read without those before them."""

    def chunks_from(self, first: int, rows: int, wanted: Collection[str] | None = None) -> Iterator[Table]:
        """As `chunks`, from a row on, counted from 0."""


def recut(pieces: Iterable[Table], lengths: Iterable[int]) -> Iterator[Table]:
    """The same rows in pieces of given lengths; what is left over is not delivered."""
    held: list[Table] = []
    count = 0
    source = iter(pieces)
    for length in lengths:
        while count < length:
            piece = next(source, None)
            if piece is None:
                return
            held.append(piece)
            count += len(next(iter(piece.values())))
        whole = {k: np.concatenate([t[k] for t in held]) for k in held[0]} if len(held) > 1 else dict(held[0])
        yield {name: values[:length] for name, values in whole.items()}
        held, count = [{name: values[length:] for name, values in whole.items()}], count - length


def dropped(pieces: Iterable[Table], rows: int) -> Iterator[Table]:
    """The pieces without the first rows."""
    left = rows
    for piece in pieces:
        count = len(next(iter(piece.values()))) if piece else 0
        if count > left:
            yield {name: values[left:] for name, values in piece.items()} if left else piece
        left = max(left - count, 0)


@dataclass(eq=False)
class ArrayTable:
    """Columns that are in memory as a whole: the small formats."""

    columns: Mapping[str, FloatArray]
    named: bool = True
    joints: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def chunks(self, rows: int, wanted: Collection[str] | None = None) -> Iterator[Table]:
        return self.chunks_from(0, rows, wanted)

    def chunks_from(self, first: int, rows: int, wanted: Collection[str] | None = None) -> Iterator[Table]:
        chosen = {k: v for k, v in self.columns.items() if wanted is None or k in wanted}
        count = max((len(v) for v in chosen.values()), default=0)
        for start in range(first, count, rows):
            yield {k: v[start : start + rows] for k, v in chosen.items()}


@dataclass(eq=False, kw_only=True)
class Skipped:
    """Counts what a tolerant reader had to leave out."""

    rows: int = 0
    first_row: int = 0
    cells: int = 0
    first_cell: int = 0
    columns: list[str] = field(default_factory=list)

    def row(self, number: int) -> None:
        self.rows += 1
        self.first_row = self.first_row or number

    def cell(self, number: int) -> None:
        self.cells += 1
        self.first_cell = self.first_cell or number


def numeric(path: Path, name: str, values: Any) -> FloatArray | None:
    """A float64 array of one or two dimensions, or None when the values are not such numbers.

    Raises:
        InputError: an object array, which would need pickle.
    """
    array = np.asarray(values)
    if array.dtype.hasobject:
        raise InputError(path, f"{name} holds Python objects", "save plain numeric arrays; pickled objects are refused")
    if array.dtype.kind not in "fiub":
        return None
    array = np.squeeze(array) if array.ndim > 2 else array
    return array.astype(np.float64) if array.ndim in (1, 2) else None


def along_time(columns: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Arrays with time along the rows, as long as most of the numbers are.

    MATLAB users store [n_joints, n_samples] as often as the transpose, and vectors as [1, n] or [n, 1].
    Arrays of another length (parameters, settings) are left out.
    """
    lengths: dict[int, int] = {}
    for values in columns.values():
        length = max(values.shape)
        lengths[length] = lengths.get(length, 0) + values.size
    if not lengths:
        return {}
    longest = max(lengths, key=lambda k: lengths[k])
    out = {}
    for name, values in columns.items():
        if max(values.shape) != longest:
            continue
        upright = values.T if values.ndim == 2 and values.shape[0] != longest else values
        out[name] = np.ascontiguousarray(upright[:, 0] if upright.ndim == 2 and upright.shape[1] == 1 else upright)
    return out


def first_line(error: BaseException) -> str:
    """What a library says about a damaged file, without the pages some of them add."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
