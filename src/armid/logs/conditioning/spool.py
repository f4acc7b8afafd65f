"""Conditioned samples put aside in a temporary file, to be read again piece by piece."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock

import numpy as np

from armid.arrays import FloatArray
from armid.logs.log import Channel
from armid.logs.samples import Samples, Segment


@dataclass(frozen=True, eq=False, slots=True)
class _Place:
    """Where a piece lies in the file [bytes], how many samples it has, and of which segment."""

    offset: int
    count: int
    segments: tuple[Segment, ...]


class Spool:
    """Pieces of one recording under one conditioning, in a file that goes when the object does; any number of readers."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="armid-")  # noqa: SIM115 - closed with the object
        weakref.finalize(self, self._file.close)
        self._places: list[_Place] = []
        self._frame: Samples | None = None
        self._lock = Lock()

    def __len__(self) -> int:
        """Samples."""
        return sum(place.count for place in self._places)

    def add(self, piece: Samples) -> None:
        """One more piece, after the others."""
        if self._frame is None:
            self._frame = piece.with_arrays(lambda _, array: array[:0], segments=())
        with self._lock:
            offset = self._file.seek(0, 2)
            for _, array in _arrays(piece):
                self._file.write(np.ascontiguousarray(array.T).data)
        self._places.append(_Place(offset, len(piece), piece.segments))

    def pieces(self) -> Iterator[Samples]:
        """The pieces as they were added."""
        for place in self._places:
            assert self._frame is not None  # set with the first place
            yield self._read(place, self._frame)

    def _read(self, place: _Place, frame: Samples) -> Samples:
        width = [(name, array.shape[1:]) for name, array in _arrays(frame)]
        sizes = [place.count * int(np.prod(shape, dtype=int)) for _, shape in width]
        with self._lock:
            self._file.seek(place.offset)
            values = np.frombuffer(self._file.read(8 * sum(sizes)), dtype=np.float64)
        columns: dict[str, FloatArray] = {}
        start = 0
        for (name, shape), size in zip(width, sizes, strict=True):
            columns[name] = values[start : start + size].reshape(*shape[::-1], place.count).T
            start += size
        columns["weights"] = np.ones(place.count)
        return frame.with_arrays(lambda name, _: columns[name], segments=place.segments)


def _arrays(piece: Samples) -> list[tuple[str, FloatArray]]:
    """What differs from sample to sample, by the names `Samples.with_arrays` uses; weights are one and made anew."""
    out = [("time", piece.time), ("q", piece.q), ("qd", piece.qd), ("qdd", piece.qdd)]
    if piece.velocities_between is not None:
        out.append(("velocities_between", piece.velocities_between))
    kinds: tuple[tuple[str, dict[Channel, FloatArray]], ...] = (
        ("torques", dict(piece.torques)),
        ("raw_torques", dict(piece.raw_torques)),
        ("variances", dict(piece.variances)),
    )
    return out + [(f"{kind} {channel.value}", values) for kind, arrays in kinds for channel, values in arrays.items()]
