"""Which reader a file needs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from armid.apart import refuse_beside_answers
from armid.errors import InputError, UnknownNameError
from armid.folders import settle
from armid.logs.readers import columnar, hdf5, jsonlines, matlab, npz, rosbag, text
from armid.logs.readers.table import Layout, TableFile
from armid.words import path_of

Opener = Callable[[Path, Layout], TableFile]

OPENERS: dict[str, Opener] = {
    "csv": text.open_text,
    "npz": npz.open_npz,
    "npy": npz.open_npy,
    "parquet": columnar.open_parquet,
    "arrow": columnar.open_arrow,
    "mat": matlab.open_mat,
    "hdf5": hdf5.open_hdf5,
    "jsonl": jsonlines.open_json_lines,
    "rosbag2": rosbag.open_bag,
    "mcap": rosbag.open_bag,
}
PRESETS = dict.fromkeys(("libfranka", "rtde", "fri", "sunrise", "krl", "tsv", "text"), "csv")
"""Names of presets that are also accepted as a format: they say what the columns mean, the file itself is text."""

SUFFIXES = {
    ".npz": "npz",
    ".npy": "npy",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "arrow",
    ".mat": "mat",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".hdf": "hdf5",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".mcap": "mcap",
    ".db3": "rosbag2",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".dat": "csv",
    ".log": "csv",
    ".asc": "csv",
}

MAGIC = (
    (b"PK\x03\x04", "npz"),
    (b"\x93NUMPY", "npy"),
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"\xff\xff\xff\xff", "arrow"),
    (b"MATLAB 5.0", "mat"),
    (b"MATLAB 7.3", "mat"),
    (hdf5.SIGNATURE, "hdf5"),
    (b"\x89MCAP", "mcap"),
    (b"SQLite format 3", "rosbag2"),
    (b"{", "jsonl"),
)
"""First bytes; they decide over a suffix, which people change."""


def open_table(path: str | Path, layout: Layout | None = None) -> TableFile:
    """The columns of a file.

    Args:
        path: a file, or the directory of a ROS 2 bag.
        layout: what the file does not say itself.

    Raises:
        InputError: missing, empty, damaged, or of no known kind.
    """
    layout = layout or Layout()
    location = existing(path)
    kind = _format_of(location, layout)
    try:
        return OPENERS[kind](location, layout)
    except OSError as error:
        raise InputError(location, f"cannot be read: {error.strerror or error}") from None
    except MemoryError:
        raise InputError(location, "does not fit in memory", "convert it to Parquet, which streams") from None


def existing(path: str | Path) -> Path:
    """A regular file, or a folder of such.

    Raises:
        InputError: there is none, or it is a pipe, a device or a socket, which could keep us waiting for ever.
    """
    location = path_of("log", path, "the path of a recording, or a Log; write a table in memory to a file first")
    try:
        found = location.exists()
    except (OSError, ValueError):
        found = False
    if not found:
        raise InputError(path, "no such file")
    odd = next((file for file in _all_files(location) if not file.is_file()), None)
    if odd is not None:
        raise InputError(odd, "is no regular file", "pipes, devices and sockets are not read: save the recording first")
    refuse_beside_answers(location)
    settle(location.parent)
    return location


def _all_files(location: Path) -> list[Path]:
    """The file itself; of a folder, everything in it that is no folder."""
    return [file for file in location.rglob("*") if not file.is_dir()] if location.is_dir() else [location]


def _format_of(path: Path, layout: Layout) -> str:
    """Name of the reader: given, or from the first bytes, or from the suffix."""
    if layout.format is not None:
        name = PRESETS.get(layout.format, layout.format)
        if name not in OPENERS:
            raise UnknownNameError("log format", layout.format, (*OPENERS, *PRESETS))
        return name
    if path.is_dir():
        return "rosbag2"
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from None
    if not head:
        raise InputError(path, "the file is empty")
    for magic, name in MAGIC:
        if head.startswith(magic):
            return name
    # Without a known beginning a binary suffix is a damaged file, which its reader reports best.
    return SUFFIXES.get(path.suffix.lower(), "csv")


def sha256_of(path: Path) -> str:
    """SHA-256 of the raw bytes; of a directory, of its files in the order of their names."""
    digest = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]:
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
