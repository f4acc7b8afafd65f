"""One parameter of one arm over its dates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.fleets.visit import VisitResult
from armid.parameters.space import named_parameters


@dataclass(frozen=True, eq=False, kw_only=True)
class Course:
    """One parameter of one arm over its dates.

    Args:
        arm, parameter: which.
        like: name of parameters that scatter alike, such as the quantity.
        dates: ISO 8601, ascending.
        days: the same as numbers.
        values, deviations: estimates with their standard deviations.
        unit: SI.
        part: of the arm that the parameter belongs to, such as a joint: of several changes in one part one raises an alarm.
    """

    arm: str
    parameter: str
    like: str
    dates: tuple[str, ...]
    days: FloatArray
    values: FloatArray
    deviations: FloatArray
    unit: str = ""
    part: str = ""


def courses_of(done: Sequence[VisitResult], names: tuple[str, ...]) -> list[Course]:
    """Every drive's and payload's parameter of every arm over its dates; visits in the statistics only."""
    parameters = named_parameters(names)
    followed = [k for k, one in enumerate(parameters) if not one.of_link]
    return [
        Course(
            arm=arm,
            parameter=names[k],
            like=parameters[k].quantity,
            dates=tuple(one.visit.date for one in own),
            days=np.array([one.visit.day for one in own]),
            values=np.array([one.values[k] for one in own]),
            deviations=np.array([one.deviations[k] for one in own]),
            unit=own[0].units[k],
            part=parameters[k].owner,
        )
        for arm, own in visits_by_arm(done, names).items()
        for k in followed
    ]


def visits_by_arm(done: Sequence[VisitResult], names: tuple[str, ...]) -> dict[str, list[VisitResult]]:
    """Visits in the statistics, of arms with these base parameters."""
    out: dict[str, list[VisitResult]] = {}
    for one in done:
        if one.counts and one.names == names:
            out.setdefault(one.visit.arm, []).append(one)
    return out
