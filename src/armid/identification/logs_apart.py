"""Training recordings, or halves of one, that contradict each other: one arm moves in them, but not as one sensor sees it.

What is wrong in one of several recordings alone (a joint homed anew, a sensor set to zero once more, another load), or from some
time on, is no column of any fault: what changes with time changes there at once, and the fit to all of them lies between. Every
recording is therefore fitted by itself, too, and so is each half of it. Parameters of the arm are the same in all, but for
friction, which warms up: together, each with friction of its own, they leave what they leave alone, save for chance. So

    share = sqrt(together^2 - alone^2) / torque

is the torque by which they differ, joint by joint; it is found where together leave many times what they leave alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.estimation.folds import added_by_fold
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.run import Run, gathered, names_of
from armid.identifiability.base import BaseParameters
from armid.identification.faults import Answer, Fault
from armid.identification.held_out import JudgedJoint
from armid.identification.possible_errors import channel_errors
from armid.identification.thresholds import FAULT_EXCLUDED, GROWTH, NEGLIGIBLE, NEGLIGIBLE_ERROR
from armid.information.information import ChannelInformation, Information, added
from armid.information.status import EstimationError
from armid.parameters.space import named_parameters

LOGS, HALVES = "logs apart", "halves apart"

_MOST_LOGS = 20
"""That are fitted one by one; of more of them each is a small part of the whole."""

_BOTH = 2
"""Halves that a run has rows of, where it is all of its log."""

_FRICTION = ("viscous", "coulomb", "motor_viscous", "motor_coulomb", "viscous_asymmetry", "stribeck", "coulomb_load")
"""Quantities of a joint that are another when it is warm."""

Mask = npt.NDArray[np.bool_]


def apart_faults(runs: Sequence[Run], base: BaseParameters, joints: Sequence[JudgedJoint]) -> Iterator[Fault]:
    """One answer of each kind for every joint, of logs only where there are several; none where a part does not determine the
    parameters by itself.

    Args:
        runs: training motion as the model has it.
        base: parameters that all of it determines.
        joints: what each carries, and may miss.
    """
    own = names_of(runs)
    names = list(dict.fromkeys(own))
    if len(names) > _MOST_LOGS:
        return
    logs = [names.index(name) for name in own]
    told = gathered(runs, _told, added_by_fold, logs, _halves(logs))
    halves = [[told[k] for k in (2 * log, 2 * log + 1) if k in told] for log in range(len(names))]
    by_log = [added(parts) if len(parts) > 1 else parts[0] for parts in halves]
    between = " and ".join(names) if len(names) < 4 else f"{names[0]} and {len(names) - 1} more"
    carried = {joint.name: joint for joint in joints if joint.torque > 0.0}
    changed = "a zero, a gain, a load"
    if len(names) > 1:
        words = f"what changed between {between} ({changed})"
        yield from _answers(LOGS, [by_log], base, carried, words)
    if len(told) > len(names):
        words = f"what changed along {between} ({changed})"
        yield from _answers(HALVES, halves, base, carried, words)


def _answers(
    kind: str,
    groups: Sequence[Sequence[Information]],
    base: BaseParameters,
    carried: Mapping[str, JudgedJoint],
    words: str,
) -> Iterator[Fault]:
    """Of every joint that carries something; none where the parts do not determine the parameters.

    Args:
        kind: of fault.
        groups: of parts, each of which is fitted together, and its parts alone.
        base: parameters.
        carried: joints by name of their channel.
        words: that undo it.
    """
    try:
        every = [part for parts in groups for part in parts]
        alone = _rms(every, [channel_errors(part, _fit(part, base)) ** 2 for part in every])
    except EstimationError:
        return
    together = _rms(every, [square for parts in groups for square in _together(parts, alone)])
    for channel, whole_error, own_error in zip(every[0].channels, together, alone, strict=True):
        if channel.name in carried:
            yield _fault(kind, carried[channel.name], float(whole_error), float(own_error), words)


def _fault(kind: str, joint: JudgedJoint, together: float, alone: float, words: str) -> Fault:
    """Of a joint of which parts together and alone leave so much [N m or N].

    A half of a recording goes through poses and speeds that the other does not: what the model lacks there (a cable) its own
    bodies take up. It is said, and not decisive.
    """
    share = float(np.sqrt(max(together**2 - alone**2, 0.0))) / joint.torque
    tolerance = NEGLIGIBLE.value * joint.limit
    apart = share > NEGLIGIBLE_ERROR.value and together > GROWTH.value * alone
    found = apart and kind == LOGS
    open_ = not found and (apart or share > FAULT_EXCLUDED.value * tolerance)
    return Fault(
        kind=kind,
        joint=joint.name,
        estimate=share,
        standard_deviation=0.0 if apart else share,
        low=share if apart else 0.0,
        high=share,
        unit="1",
        tolerance=tolerance,
        answer=Answer.FOUND if found else Answer.UNDECIDABLE if open_ else Answer.EXCLUDED,
        explains=1.0 - (alone / together) ** 2 if apart else 0.0,
        words=words if found else "",
        experiment=f"{words}, or what the model lacks: compare what is learnt from each alone (armid compare)"
        if open_
        else "",
        large=found and share > tolerance,
    )


def _fit(part: Information, base: BaseParameters) -> FloatArray:
    """Full parameters of a part by itself.

    Raises:
        EstimationError: it does not determine the parameters.
    """
    return WeightedLeastSquares().fit(part, base).standard


def _together(parts: Sequence[Information], noise: FloatArray) -> list[FloatArray]:
    """Mean square by channel of what one set of parameters leaves of each part, with friction of its own.

    Friction is projected out of every part; what is left of the rows is fitted together.

    Args:
        parts: over the same parameters and channels.
        noise: of every channel [N m or N].
    """
    friction = np.array([one.quantity in _FRICTION for one in named_parameters(parts[0].parameters)])
    rows = [[_without(channel, friction) for channel in part.channels] for part in parts]
    scale = 1.0 / np.maximum(noise, 1e-9 * np.max(noise))
    stacked = np.vstack([s * own for part in rows for own, s in zip(part, scale, strict=True)])
    size = np.linalg.norm(stacked[:, :-1], axis=0)
    size[size == 0.0] = 1.0
    values = np.linalg.lstsq(stacked[:, :-1] / size, stacked[:, -1], rcond=1e-10)[0] / size
    return [
        np.array([np.sum((own @ np.append(-values, 1.0)) ** 2) / max(channel.count, 1.0) for own, channel in pairs])
        for pairs in (list(zip(own, part.channels, strict=True)) for own, part in zip(rows, parts, strict=True))
    ]


def _without(channel: ChannelInformation, friction: Mask) -> FloatArray:
    """Rows of a channel over all parameters and its torque, friction projected out, shape [rows, n_parameters + 1]."""
    columns = np.asarray(channel.columns)
    own = channel.factor[:, :-1][:, friction[columns]]
    U, sizes, _ = np.linalg.svd(own, full_matrices=False)
    Q = U[:, sizes > 1e-9 * max(float(sizes.max(initial=0.0)), 1e-300)]
    out = np.zeros((len(channel.factor), len(friction) + 1))
    out[:, [*columns, -1]] = channel.factor - Q @ (Q.T @ channel.factor)
    return out


def _rms(parts: Sequence[Information], squares: Sequence[FloatArray]) -> FloatArray:
    """Root of the mean squares of the parts, by channel."""
    return np.asarray(np.sqrt(np.average(squares, axis=0, weights=[part.count for part in parts])))


def _halves(logs: Sequence[int]) -> list[int]:
    """Which half of its log every run is of, 0 or 1; `_BOTH` where it is all of it."""
    out = []
    for k, log in enumerate(logs):
        count, before = logs.count(log), logs[:k].count(log)
        out.append(_BOTH if count == 1 else int(2 * before >= count))
    return out


def _told(run: Run, log: int, half: int) -> dict[int, Information]:
    """What a run tells of the halves of its log, which are numbered through."""
    if half != _BOTH or len(run) < 2:
        return {2 * log + half % _BOTH: run.information()}
    middle = len(run) // 2
    return {2 * log: run.window(0, middle).information(), 2 * log + 1: run.window(middle, len(run)).information()}
