"""A log in memory on its even grid, computed once for all settings that share it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.conditioning.grid import EVIDENCE_ROWS, Span, in_pieces, parts_within
from armid.logs.conditioning.parts import Uniform, averaged_part, uniform_parts
from armid.logs.conditioning.settings import Conditioning, VelocitySource
from armid.logs.conditioning.window import MIN_PERIODS, conditioned, is_long_enough, with_recorded_velocity
from armid.logs.log import Log
from armid.logs.samples import Samples, concatenated
from armid.logs.shelf import SHELF
from armid.notes import Note, Severity


@dataclass(frozen=True, eq=False)
class Gridded:
    """The stretches of a log on their grids, and what is to be said about them."""

    parts: tuple[Uniform, ...]
    notes: tuple[Note, ...]

    @property
    def nbytes(self) -> int:
        return sum(values.nbytes for part in self.parts for values in (part.time, *part.channels.values()))


class HeldGrid:
    """A log in memory, or read again when it had to make room.

    Args:
        load: the log, columns in the robot's order; called when it is not held.
    """

    def __init__(self, load: Callable[[], Log]) -> None:
        self._load = load
        self._owner = SHELF.owner(self)
        self._time: FloatArray | None = None
        self._families: dict[Span, tuple[Span, ...]] = {}

    @property
    def log(self) -> Log:
        return SHELF.get(self._owner, "log", self._load, log_bytes)

    @property
    def time(self) -> FloatArray:
        """Of the log [s]; kept, for it is a small part of it."""
        if self._time is None:
            self._time = self.log.time
        return self._time

    def hold(self, log: Log) -> None:
        """The log as it has just been loaded, which need not be done again for now."""
        self._time = log.time
        SHELF.get(self._owner, "log", lambda: log, log_bytes)

    def gridded(self, settings: Conditioning) -> Gridded:
        """The whole log on its even grid; only gap, period and torque delay of the settings matter to it."""

        def make() -> Gridded:
            parts, notes = uniform_parts(self.log, settings)
            return Gridded(tuple(parts), tuple(notes))

        key = ("grid", settings.gap, settings.period, settings.torque_delay)
        return SHELF.get(self._owner, key, make, lambda grid: grid.nbytes)

    def parts(self, settings: Conditioning, span: Span, limit: int | None = None) -> list[Uniform]:
        """The stretches of a span, averaged over repetitions when asked."""
        parts = parts_within(self.gridded(settings).parts, span, limit)
        return parts if settings.period is None else [averaged_part(part, settings.period) for part in parts]

    def evidence(self, settings: Conditioning, span: Span) -> list[Uniform]:
        return self.parts(settings, span, EVIDENCE_ROWS)

    def notes(self, settings: Conditioning) -> tuple[Note, ...]:
        return self.gridded(settings).notes

    def divide(self, parts: tuple[Span, ...]) -> None:
        """Parts that are conditioned together from now on, in one pass over the log; in order of time."""
        self._families |= dict.fromkeys(parts, parts)

    def whole(self, settings: Conditioning, span: Span, *, alone: bool = False) -> Samples:
        """All samples of a span, each part of its family by itself: no filter runs from one into another.

        Args:
            settings: resolved.
            span: wanted.
            alone: leave the later ones of its family out.
        """
        # What the user accepts changes nothing about the samples.
        own = replace(settings, accept=())

        def make() -> Samples:
            derived = self._with_derived_velocity(own, span)
            if derived is None:
                return self._conditioned(own, span, (span,) if alone else self._from(span))
            used = [part for part in self.parts(settings, span) if is_long_enough(part, settings)]
            return with_recorded_velocity(derived, used, settings)

        return SHELF.get(self._owner, ("samples", own, span), make, _samples_bytes).described(settings=settings)

    def _from(self, span: Span) -> tuple[Span, ...]:
        """A span and the later ones of its family: whoever asks for a later one has had the earlier ones."""
        family = self._families.get(span, (span,))
        return family[family.index(span) :]

    def _conditioned(self, settings: Conditioning, span: Span, family: tuple[Span, ...]) -> Samples:
        """The samples of a span from one pass over some parts; those of the others are kept for whoever asks next."""
        wanted: Samples | None = None
        for part in family:
            try:
                samples = concatenated(_conditioned_parts(self.parts(settings, part), settings))
            except InputError:
                if part == span:
                    raise
                continue  # refused when it is asked for
            if part == span:
                wanted = samples
            else:
                SHELF.get(self._owner, ("samples", settings, part), partial(_same, samples), _samples_bytes)
        assert wanted is not None
        return wanted

    def _with_derived_velocity(self, settings: Conditioning, span: Span) -> Samples | None:
        """The samples under the same settings but for their velocity, which is wanted as recorded; None when there are none."""
        if settings.velocity is not VelocitySource.MEASURED:
            return None
        key = ("samples", replace(settings, velocity=VelocitySource.POSITION), span)
        found: Samples | None = SHELF.find(self._owner, key)
        return found

    def samples(
        self, settings: Conditioning, span: Span, *, alone: bool = False, begin: bool = False
    ) -> Iterator[Samples]:
        """Pieces in order; parts are conditioned one by one anyway."""
        yield from in_pieces(self.whole(settings, span, alone=alone))


def log_bytes(log: Log) -> int:
    return log.time.nbytes + sum(values.nbytes for values in log.channels.values())


def _same(samples: Samples) -> Samples:
    return samples


def _samples_bytes(samples: Samples) -> int:
    arrays = [samples.time, samples.q, samples.qd, samples.qdd]
    arrays += [samples.velocities_between] if samples.velocities_between is not None else []
    for kind in (samples.torques, samples.raw_torques, samples.variances):
        arrays += kind.values()
    return sum(array.nbytes for array in arrays)


def _conditioned_parts(parts: Sequence[Uniform], settings: Conditioning) -> list[Samples]:
    """Every stretch long enough for the filter; the others are left out and noted.

    Raises:
        InputError: no stretch is, or nothing is left of any.
    """
    long = [part for part in parts if is_long_enough(part, settings)]
    name = parts[0].log.name
    if not long:
        longest = max(len(part.time) / part.rate for part in parts)
        raise InputError(
            name, f"{longest:.3g} s is shorter than {MIN_PERIODS:g} periods of the {settings.cutoff:g} Hz cut-off"
        )
    notes: tuple[Note, ...] = ()
    if len(long) < len(parts):
        text = f"{len(parts) - len(long)} stretch(es) between gaps too short for the filter left out"
        notes = (Note("short-stretches", Severity.INFO, text, name),)
    pieces = [piece.described(notes=notes) for part in long if len(piece := conditioned(part, settings))]
    if not pieces:
        raise InputError(name, "nothing is left after trimming the ends", "trim less")
    return pieces
