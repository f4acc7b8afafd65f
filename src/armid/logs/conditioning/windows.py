"""Overlapping windows of a long log, each conditioned by itself to the samples that the whole would have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from armid.logs.conditioning.even import Piece
from armid.logs.conditioning.grid import PIECE_SAMPLES
from armid.logs.conditioning.parts import MIN_STRETCH, Uniform
from armid.logs.conditioning.settings import Conditioning
from armid.logs.conditioning.window import conditioned_range, decimation, samples_between, settles, trimmed_edge
from armid.logs.log import Log
from armid.logs.read import joined_logs
from armid.logs.samples import Samples, concatenated

_ENDLESS = 1 << 62
"""Rows of a stretch whose end is not in sight."""

_MEMORY = 1.5
"""Overlap over the rows after which a filter's response has decayed to a billionth: derivatives magnify what is left."""


@dataclass(frozen=True, kw_only=True)
class WindowPlace:
    """Rows of one stretch between gaps, with those before and after that the filters need.

    Args:
        stretch, row: even grid and row of it where the window begins.
        count: rows of the window.
        rate: of the stretch [Hz].
        offset: rows of the stretch before the window, within its part of the recording.
        start, stop: rows of the window whose samples are wanted.
        ends: whether the stretch ends here.
        part: of the recording.
    """

    stretch: int
    row: int
    count: int
    rate: float
    offset: int
    start: int
    stop: int
    ends: bool
    part: int

    def kept(self, settings: Conditioning) -> tuple[int, int] | None:
        """First row of the window that becomes a sample, and where they stop; None when there are none."""
        whole = self.offset == 0 and self.ends
        if self.count < MIN_STRETCH or (whole and not settles(self.count, self.rate, settings)):
            return None
        edge = self.edge(settings)
        every = decimation(self.rate, settings)
        # Instants are counted from the first one kept of the whole stretch.
        first = max(self.start, edge - self.offset)
        first += (edge - self.offset - first) % every
        stop = self.count - edge if self.ends else self.stop
        return None if stop <= first else (first, stop)

    def edge(self, settings: Conditioning) -> int:
        """Rows left out at the ends of the stretch."""
        whole = self.offset == 0 and self.ends
        return trimmed_edge(self.count if whole else _ENDLESS, self.rate, settings)

    def continues(self, first: int, settings: Conditioning) -> bool:
        """Whether samples from a row on follow on those of the window before."""
        return self.offset + first > self.edge(settings)

    def samples(self, settings: Conditioning) -> int:
        """How many it gives."""
        kept = self.kept(settings)
        return 0 if kept is None else len(range(*samples_between(*kept, self.rate, settings).indices(self.count)))


@dataclass(frozen=True, eq=False)
class Window:
    """The rows at a place."""

    log: Log
    place: WindowPlace


def windows_of(pieces: Iterable[Piece], settings: Conditioning) -> Iterator[Window]:
    """Overlapping windows of each stretch between gaps."""
    held: list[Log] = []
    begin: Piece | None = None
    offset, wanted, margin = 0, 0, 0

    def window(*, ends: bool) -> Window:
        assert begin is not None
        whole = joined_logs(held)
        place = WindowPlace(
            stretch=begin.stretch,
            row=begin.row + offset,
            count=len(whole),
            rate=1.0 / begin.clock.step,
            offset=offset,
            start=wanted - offset,
            stop=len(whole) if ends else len(whole) - margin,
            ends=ends,
            part=begin.part,
        )
        return Window(whole, place)

    for piece in pieces:
        if piece.begins or begin is None:
            if held:
                yield window(ends=True)
            held, offset, wanted, begin = [], 0, 0, piece
            margin = _overlap(1.0 / piece.clock.step, settings)
        held.append(piece.log)
        rows = sum(len(log) for log in held)
        if rows > 3 * margin:
            found = window(ends=False)
            yield found
            wanted = offset + rows - margin
            # What the next window needs before its first wanted row.
            held = [found.log.rows(rows - 2 * margin, rows)]
            offset += rows - 2 * margin
    if held:
        yield window(ends=True)


def _overlap(rate: float, settings: Conditioning) -> int:
    """Rows by which windows overlap."""
    assert settings.cutoff is not None
    assert settings.torque_cutoff is not None
    filters = [settings.low_pass(rate, cutoff) for cutoff in (settings.cutoff, settings.torque_cutoff)]
    return int(_MEMORY * max(trimmed_edge(_ENDLESS, rate, settings), *(f.settling for f in filters))) + 16


def window_samples(window: Window, settings: Conditioning) -> Samples | None:
    """Samples of one window, at the instants the whole stretch would have them; None when there are none."""
    kept = window.place.kept(settings)
    if kept is None:
        return None
    samples = conditioned_range(even_part(window.log, window.place.rate), settings, *kept)
    continues = window.place.continues(kept[0], settings)
    return samples.described(segments=tuple(replace(s, continues=continues) for s in samples.segments))


def even_part(log: Log, rate: float) -> Uniform:
    """Rows of an even grid as a stretch."""
    return Uniform(log=log, time=log.time, rate=rate, channels=dict(log.channels), variances={})


def opens_piece(held: int, *, continues: bool) -> bool:
    """Whether samples that come after so many in the piece before are a piece of their own."""
    return held > 0 and (not continues or held >= PIECE_SAMPLES)


def merged_pieces(pieces: Iterable[Samples]) -> Iterator[Samples]:
    """Samples that follow on one another in pieces of about `PIECE_SAMPLES`."""
    held: list[Samples] = []
    for piece in pieces:
        if opens_piece(sum(len(each) for each in held), continues=piece.segments[0].continues):
            yield joined_piece(held)
            held = []
        held.append(piece)
    if held:
        yield joined_piece(held)


def joined_piece(pieces: Sequence[Samples]) -> Samples:
    """Pieces that follow on one another as one, of one segment."""
    whole = concatenated(pieces)
    return whole.described(segments=(replace(whole.segments[0], stop=len(whole)),))
