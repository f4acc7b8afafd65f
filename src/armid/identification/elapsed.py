"""How far recordings had come at every sample: what drifts is a curve over that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.run import Run, names_of
from armid.estimation.runs import before, lengths_of
from armid.rows.imperfections import EVERY_RECORDING, Imperfection


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Of a run among those of all recordings.

    Args:
        before, total: samples of the runs before it, and of all.
        before_alone, total_alone: the same of its own recording.
    """

    before: int
    total: int
    before_alone: int
    total_alone: int

    def elapsed(self, count: int) -> FloatArray:
        """Share of all recordings that has gone by at the samples of a run of so many, shape [count]."""
        return np.asarray((self.before + np.arange(count)) / max(self.total, 1))

    def elapsed_alone(self, count: int) -> FloatArray:
        """The same of its own recording."""
        return np.asarray((self.before_alone + np.arange(count)) / max(self.total_alone, 1))


def places(runs: Sequence[Run], items: Iterable[Imperfection]) -> list[Place]:
    """Of every run; runs of one recording follow on one another under its name.

    Args:
        runs: the motions.
        items: that drift over them; names are read, which may be on disk, only where one begins anew in every recording.
    """
    lengths = lengths_of(runs)
    total, out = sum(lengths), []
    names = names_of(runs) if any(item.part == EVERY_RECORDING for item in items) else [""] * len(lengths)
    for _, own in groupby(zip(names, lengths, before(lengths), strict=True), key=lambda run: run[0]):
        recording = list(own)
        first, alone = recording[0][2], sum(length for _, length, _ in recording)
        out += [
            Place(before=start, total=total, before_alone=start - first, total_alone=alone) for _, _, start in recording
        ]
    return out


def several_recordings(runs: Sequence[Run]) -> bool:
    """Whether the runs are of more than one."""
    return len(set(names_of(runs))) > 1
