"""Does torque or motion come late, or friction turn around late? What leaves less, each with friction settled for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.run import Run, information_of
from armid.identifiability.base import BaseParameters
from armid.identification.candidates import EXPERIMENTS
from armid.identification.detection import Detection
from armid.identification.faults import Answer, Fault
from armid.identification.sensors import DELAYS, Imperfections, Sized
from armid.identification.thresholds import FAULT_SHARE, TIED


def without_delays(undone: Imperfections) -> Imperfections:
    """The same faults without what came late."""
    return replace(undone, sizes=tuple(s for s in undone.sizes if s.item.family not in DELAYS))


def confirmed(found: Detection, turning: Sequence[Run], on_time: Sequence[Run], base: BaseParameters) -> Detection:
    """The faults with those delays only that explain more than friction which turns around over a distance or a range of speed.

    On slow motion both move the jump of friction alike, and a search beside friction that turns at once takes one for the other.

    Args:
        found: by that search.
        turning: training runs freed from everything but delays, friction turning around as torque as recorded has it.
        on_time: freed from everything, friction turning around as torque on time has it.
        base: parameters to fit.
    """
    if found.named is None:
        return found
    ratios = _errors(on_time, base) / np.maximum(_errors(turning, base), 1e-300)
    doubtful = doubtful_delays(found.named.sizes, ratios)
    if not doubtful:
        return found
    joints = found.named.joints
    names = {(s.item.family.value, None if s.item.joint is None else joints[s.item.joint]) for s in doubtful}
    return Detection(
        faults=tuple(_open(fault) if (fault.kind, fault.joint) in names else fault for fault in found.faults),
        undone=_without(found.undone, doubtful),
        named=_without(found.named, doubtful),
    )


def _without(record: Imperfections | None, sizes: Sequence[Sized]) -> Imperfections | None:
    """A record without some sizes; None when nothing is left."""
    items = {sized.item for sized in sizes}
    kept = () if record is None else tuple(s for s in record.sizes if s.item not in items)
    return replace(record, sizes=kept) if record is not None and kept else None


def doubtful_delays(sizes: Sequence[Sized], ratios: FloatArray) -> list[Sized]:
    """Delays that do not explain more: all of them where the two hypotheses are as good, else those whose own joint has no less.

    Args:
        sizes: of what was found.
        ratios: errors with torque on time over errors with friction that turns around late, by channel.
    """
    delays = [sized for sized in sizes if sized.item.family in DELAYS]
    if float(np.sum(np.log(ratios))) > -log(TIED.value):
        return delays
    return [s for s in delays if s.item.joint is not None and ratios[s.item.joint] ** 2 > 1.0 - FAULT_SHARE.value]


def _errors(runs: Sequence[Run], base: BaseParameters) -> FloatArray:
    """Of the free fit, by channel."""
    return np.array(list(WeightedLeastSquares().fit(information_of(runs), base).sigma.values()))


def _open(fault: Fault) -> Fault:
    """The same, undecidable."""
    family = next(family for family in DELAYS if family.value == fault.kind)
    return replace(
        fault,
        answer=Answer.UNDECIDABLE,
        words="",
        experiment=EXPERIMENTS[family],
        large=False,
        held_out_change=float("nan"),
    )
