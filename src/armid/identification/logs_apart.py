"""Training recordings that contradict each other: one arm moves in all of them, but not as one sensor sees it.

What is wrong in one of several recordings alone (a joint homed anew, a sensor set to zero once more, another load) is no column of
any fault: what changes with time changes there at once, and the fit to all of them lies between. Every recording is therefore
fitted by itself, too. Parameters of the arm are the same in all: together they leave what they leave alone, save for chance. So

    share = sqrt(together^2 - alone^2) / torque

is the torque by which they differ, joint by joint; it is found where together leave many times what they leave alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.folds import added_by_fold
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.run import Run, each_run, gathered
from armid.identifiability.base import BaseParameters
from armid.identification.faults import Answer, Fault
from armid.identification.held_out import JudgedJoint
from armid.identification.possible_errors import channel_errors
from armid.identification.thresholds import GROWTH, NEGLIGIBLE, NEGLIGIBLE_ERROR
from armid.information.information import Information, added
from armid.information.status import EstimationError

KIND = "logs apart"

_MOST_LOGS = 20
"""That are fitted one by one; of more of them each is a small part of the whole."""


def apart_faults(runs: Sequence[Run], base: BaseParameters, joints: Sequence[JudgedJoint]) -> Iterator[Fault]:
    """One answer for every joint; none of a single log, or where one of them does not determine the parameters by itself.

    Args:
        runs: training motion as the model has it.
        base: parameters that all of it determines.
        joints: what each carries, and may miss.
    """
    told = _by_log(runs)
    if not 1 < len(told) <= _MOST_LOGS:
        return
    try:
        together = _left([added(list(told.values()))], base)
        alone = _left(list(told.values()), base)
    except EstimationError:
        return
    carried = {joint.name: joint for joint in joints}
    for name, whole, own in zip(runs[0].channels, together, alone, strict=True):
        if name in carried and carried[name].torque > 0.0:
            yield _fault(carried[name], float(whole), float(own), tuple(told))


def _fault(joint: JudgedJoint, together: float, alone: float, logs: Sequence[str]) -> Fault:
    """Of a joint that logs together and alone leave so much of [N m or N]."""
    share = float(np.sqrt(max(together**2 - alone**2, 0.0))) / joint.torque
    tolerance = NEGLIGIBLE.value * joint.limit
    found = share > NEGLIGIBLE_ERROR.value and together > GROWTH.value * alone
    return Fault(
        kind=KIND,
        joint=joint.name,
        estimate=share,
        standard_deviation=0.0,
        low=share,
        high=share,
        unit="1",
        tolerance=tolerance,
        answer=Answer.FOUND if found else Answer.EXCLUDED,
        explains=1.0 - (alone / together) ** 2 if found else 0.0,
        words=f"what changed between {_listed(logs)} (a zero, a gain, a load); or learn from one of them alone" if found else "",
        large=found and share > tolerance,
    )


def _listed(logs: Sequence[str]) -> str:
    return " and ".join(logs) if len(logs) < 4 else f"{logs[0]} and {len(logs) - 1} more"


def _left(parts: Sequence[Information], base: BaseParameters) -> FloatArray:
    """Root mean square by channel of what is left of these, each fitted by itself, all together [N m or N].

    Raises:
        EstimationError: one does not determine the parameters.
    """
    squares = [channel_errors(part, WeightedLeastSquares().fit(part, base).standard) ** 2 for part in parts]
    counts = [part.count for part in parts]
    return np.asarray(np.sqrt(np.average(squares, axis=0, weights=counts)))


def _by_log(runs: Sequence[Run]) -> Mapping[str, Information]:
    """What every log tells, a long one whole."""
    own = list(each_run(runs, _name_of))
    names = list(dict.fromkeys(own))
    if len(names) < 2:
        return {}
    found = gathered(runs, _told, added_by_fold, [names.index(name) for name in own])
    return {name: found[k] for k, name in enumerate(names)}


def _name_of(run: Run) -> str:
    return run.name


def _told(run: Run, log: int) -> dict[int, Information]:
    """What a run tells, by the number of its log."""
    return {log: run.information()}
