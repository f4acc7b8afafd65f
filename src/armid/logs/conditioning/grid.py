"""A log on its even grid, whichever way it is held: what conditioning asks of it, and the choices that rest on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.conditioning.parts import MIN_STRETCH, Uniform
from armid.logs.conditioning.settings import OVERSAMPLING, Conditioning
from armid.logs.conditioning.spectrum import chosen_cutoff, spectrum
from armid.logs.log import Channel
from armid.logs.samples import Samples, Segment
from armid.notes import Note

EVIDENCE_ROWS = 1 << 18
"""Rows of a log that automatic choices rest on, its first: four minutes at 1 kHz. The same whether it is held or streamed."""

PIECE_SAMPLES = 1 << 13
"""Samples of a piece: six megabytes for seven joints. Whoever goes through pieces holds some of them, with their rows beside all
kinds of imperfections."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a log by time.

    Args:
        name: of the part, for messages.
        start, stop: [s]; start is in, stop is not.
    """

    name: str
    start: float = -np.inf
    stop: float = np.inf

    @property
    def whole(self) -> bool:
        return self.start == -np.inf and self.stop == np.inf


def halves(span: Span, cut: float) -> tuple[Span, Span]:
    """The parts of a span before and after a time [s]."""
    return Span(f"{span.name} (first part)", span.start, cut), Span(f"{span.name} (last part)", cut, span.stop)


def within(part: Uniform, span: Span, limit: int | None = None) -> Uniform:
    """The samples of a stretch that lie in a span, and at most so many."""
    first, last = (int(k) for k in np.searchsorted(part.time, (span.start, span.stop)))
    if limit is not None:
        last = min(last, first + limit)
    log = part.log if part.log.name == span.name else replace(part.log, name=span.name)
    if (first, last) == (0, len(part.time)):
        return replace(part, log=log)
    keep = slice(first, max(first, last))
    channels = {channel: values[keep] for channel, values in part.channels.items()}
    return replace(part, log=log, time=part.time[keep], channels=channels)


def parts_within(parts: Sequence[Uniform], span: Span, limit: int | None = None) -> list[Uniform]:
    """The stretches of a span, those too short left out.

    Raises:
        InputError: nothing is left.
    """
    out: list[Uniform] = []
    left = limit
    for part in parts:
        own = within(part, span, left)
        if left is not None:
            left -= len(own.time)
        if len(own.time) >= MIN_STRETCH:
            out.append(own)
    if not out:
        raise InputError(span.name, f"no stretch of {MIN_STRETCH} samples without a gap")
    return out


def resolved_settings(parts: Sequence[Uniform], settings: Conditioning) -> tuple[Conditioning, list[Note]]:
    """The settings with cut-offs and rate chosen where they were left open, on the longest stretch."""
    notes = []
    cutoff = settings.cutoff
    if cutoff is None:
        longest = max(parts, key=lambda part: len(part.time))
        choice = chosen_cutoff(longest.channels[Channel.POSITION], longest.rate)
        cutoff = choice.cutoff
        notes.append(replace(choice.note, subject=longest.log.name))
    torque_cutoff = settings.torque_cutoff if settings.torque_cutoff is not None else cutoff
    rate = settings.rate if settings.rate is not None else OVERSAMPLING * max(cutoff, torque_cutoff)
    return replace(settings, cutoff=cutoff, torque_cutoff=torque_cutoff, rate=rate), notes


def noise_levels(parts: Sequence[Uniform]) -> dict[Channel, FloatArray]:
    """Standard deviation of the noise of each channel, from the longest stretch."""
    longest = max(parts, key=lambda part: len(part.time))
    if len(longest.time) < 64:
        return {}
    return {channel: spectrum(values, longest.rate).noise for channel, values in longest.channels.items()}


def in_pieces(samples: Samples, size: int = PIECE_SAMPLES) -> Iterator[Samples]:
    """Samples cut into pieces of bounded size, each within one segment."""
    if len(samples.segments) == 1 and len(samples.segments[0]) == len(samples) <= size:
        yield samples
        return
    for segment in samples.segments:
        for start in range(segment.start, segment.stop, size):
            piece = samples.window(start, min(start + size, segment.stop))
            own = replace(piece.segments[0], continues=start > segment.start or segment.continues)
            yield piece.described(segments=(own,))


def segments_joined(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Segments with those that continue the one before joined to it."""
    out: list[Segment] = []
    for segment in segments:
        if segment.continues and out and out[-1].stop == segment.start:
            out[-1] = replace(out[-1], stop=segment.stop)
        else:
            out.append(replace(segment, continues=False))
    return tuple(out)
