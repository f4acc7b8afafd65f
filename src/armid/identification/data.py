"""Training and held-out runs under one conditioning, and what was settled on the way to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.cluster.workers import Workers
from armid.estimation.run import Run
from armid.estimation.runs import lengths_of
from armid.identifiability.base import BaseParameters
from armid.identification.records import ResolvedConditioning
from armid.identification.sensors import Imperfections
from armid.logs.conditioning import Conditioning
from armid.logs.recording import Recording
from armid.logs.samples import Samples, Segment
from armid.notes import Note
from armid.rows.friction import Shapes


@dataclass(frozen=True, eq=False, kw_only=True)
class Data:
    """Training and held-out runs under one conditioning.

    Args:
        train, held_out: runs; in memory, or put aside.
        conditioning: resolved.
        choice: training motion in memory on which models are chosen: all of it, or a bounded part.
        shapes: of friction, as settled.
        structural: base parameters that a perfect motion would determine, of these rows; None until they are known.
        intended: the same for the arm as described, when that is another one.
        recordings: of the runs, training and held-out.
        temperatures: of the drives along the held-out runs.
        notes: of logs and choices.
        imperfections: that the runs were freed from; None for none.
        workers: who keep the runs; None when they are here.
    """

    train: Sequence[Run]
    held_out: Sequence[Run]
    conditioning: Conditioning
    choice: tuple[Samples, ...]
    shapes: Shapes
    structural: BaseParameters
    intended: BaseParameters | None
    recordings: tuple[tuple[Recording, ...], tuple[Recording, ...]]
    notes: tuple[Note, ...]
    temperatures: tuple[FloatArray | None, ...] = ()
    imperfections: Imperfections | None = None
    workers: Workers | None = None

    @property
    def presliding(self) -> tuple[float, ...]:
        """Distance over which Coulomb friction turns around, per joint [rad or m]."""
        return self.shapes.presliding

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Of the training motion that choices rest on; every recording has some."""
        return tuple(segment for samples in self.choice for segment in samples.segments)

    def record(self) -> ResolvedConditioning:
        """The choices beside which every error must be read."""
        c = self.conditioning
        first = self.choice[0]
        return ResolvedConditioning(
            cutoff_hz=_finite_or_none(c.cutoff),
            torque_cutoff_hz=_finite_or_none(c.torque_cutoff),
            filter_order=c.order,
            filter=c.filter.value,
            averaged=c.average or c.period is not None,
            torque_delay_s=c.torque_delay,
            rate_hz=first.rate,
            velocity=c.velocity.value,
            differentiator=c.differentiator.value,
            torque=tuple(channel.value for channel in first.torques),
            presliding=self.presliding,
            friction_width=self.shapes.widths,
            samples_train=sum(lengths_of(self.train)),
            samples_held_out=sum(lengths_of(self.held_out)),
        )


def _finite_or_none(value: float | None) -> float | None:
    """None for what is not there or infinite."""
    return None if value is None or not np.isfinite(value) else value
