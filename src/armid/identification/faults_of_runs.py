"""What could be wrong with recordings that no result is made of, those of a load or a stage: the search of `identify`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from armid.errors import ArmidError
from armid.estimation.determined import usable_base
from armid.estimation.run import Run, information_of
from armid.identification.candidates import not_looked_for
from armid.identification.detection import detect
from armid.identification.faults import Fault, bounded_widths
from armid.robot.robot import Robot

_TRAINED = 0.7
"""Of every recording; undoing a fault must help on the rest."""

MOVE_ALL = "record a motion of all joints at once (armid design)"
"""What lets anything be said about a recording by itself."""


def faults_of_runs(
    robot: Robot,
    runs: Sequence[Run],
    *,
    recorded_velocity: bool,
    cutoff_hz: float | None,
    gains_known: bool = False,
    in_newtons: bool = True,
) -> tuple[Fault, ...]:
    """Every fault that `identify` looks for, with its answer; a motion that does not determine the arm decides none.

    Args:
        robot: as the runs have it.
        runs: the motions.
        recorded_velocity, cutoff_hz, gains_known, in_newtons: as `detect` takes them.
    """
    try:
        base, structural = usable_base(runs, information_of(runs))
    except ArmidError as error:
        return not_looked_for(str(error))
    if len(base) < len(structural):
        return not_looked_for(MOVE_ALL)
    parts = [_parted(run) for run in runs]
    found = detect(
        robot,
        [train for train, _ in parts],
        [rest for _, rest in parts],
        base,
        recorded_velocity=recorded_velocity,
        gains_known=gains_known,
        in_newtons=in_newtons,
        cutoff_hz=cutoff_hz,
    )
    return bounded_widths(found.faults)


def _parted(run: Run) -> tuple[Run, Run]:
    """The first part of a recording and the rest, each with its own stretches of uniform sampling."""
    at = int(_TRAINED * len(run))
    first = tuple((a, min(b, at)) for a, b in run.segments if a < at)
    rest = tuple((max(a, at) - at, b - at) for a, b in run.segments if b > at)
    return replace(run.window(0, at), segments=first), replace(run.window(at, len(run)), segments=rest)
