"""The mean of repeated motion in a log of any length: one period in memory, whatever the number of repetitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from armid.arrays import FloatArray
from armid.logs.conditioning.even import Piece
from armid.logs.conditioning.parts import Uniform
from armid.logs.log import Channel, Log
from armid.logs.read import joined_logs


@dataclass(eq=False)
class PeriodMean:
    """Running mean of whole periods and sum of squares about it (Welford), per sample of the period and channel."""

    repetitions: int = 0
    mean: dict[Channel, FloatArray] = field(default_factory=dict)
    squares: dict[Channel, FloatArray] = field(default_factory=dict)

    def add(self, period: Log) -> None:
        """One more repetition."""
        self.repetitions += 1
        for channel, values in period.channels.items():
            if self.repetitions == 1:
                self.mean[channel], self.squares[channel] = np.array(values), np.zeros_like(values)
                continue
            off = values - self.mean[channel]
            self.mean[channel] += off / self.repetitions
            self.squares[channel] += off * (values - self.mean[channel])


def folded_parts(pieces: Iterable[Piece], period: float) -> Iterator[Uniform]:
    """The mean period of every stretch; a stretch shorter than two of them as it is.

    Args:
        pieces: on even grids whose step divides the period.
        period: [s].
    """
    held: list[Log] = []
    fold, first, rate = PeriodMean(), None, 1.0
    for piece in pieces:
        if piece.begins and first is not None:
            yield folded(fold, held, first, rate)
            held, fold, first = [], PeriodMean(), None
        rate, first = 1.0 / piece.clock.step, first or piece.log
        held.append(piece.log)
        per_period = round(period * rate)
        rows = sum(len(log) for log in held)
        if rows >= (2 if fold.repetitions == 0 else 1) * per_period:
            whole = joined_logs(held)
            for k in range(rows // per_period):
                fold.add(whole.rows(k * per_period, (k + 1) * per_period))
            held = [whole.rows(rows // per_period * per_period, rows)]
    if first is not None:
        yield folded(fold, held, first, rate)


def folded(fold: PeriodMean, held: list[Log], first: Log, rate: float) -> Uniform:
    """A stretch that has ended."""
    if fold.repetitions < 2:
        whole = joined_logs(held)
        return Uniform(log=whole, time=whole.time, rate=rate, channels=dict(whole.channels), variances={})
    count = fold.repetitions
    variances = {c: s / (count - 1) / count for c, s in fold.squares.items() if c.is_torque}
    per_period = len(next(iter(fold.mean.values())))
    time = first.time[0] + np.arange(per_period) / rate
    return Uniform(log=first, time=time, rate=rate, channels=fold.mean, variances=variances, periodic=True)
