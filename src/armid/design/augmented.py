"""Augmented Lagrangian with L-BFGS: almost no work besides the gradients themselves.

Round by round the Lagrangian is minimised, then the multipliers take over what the penalty paid and the penalty grows.
Unlike a pure penalty this converges at moderate penalties, so L-BFGS keeps seeing a well-scaled function.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from scipy.optimize import fmin_l_bfgs_b

from armid.arrays import FloatArray
from armid.design.excitation import ExcitationGrid, MotionProbe, Multipliers

_MEMORY = 20
"""Pairs L-BFGS remembers."""

PENALTY_START, PENALTY_GROWTH, PENALTY_END = 10.0, 2.0, 4000.0
"""A limit missed by 1 % at every instant costs as much as a third of a percent of the condition number at the start,
and 0.2 in its logarithm at the end: early rounds may cut corners, late ones may not."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long to work.

    Args:
        rounds: of multipliers.
        iterations: of L-BFGS in each.
        powers: sharpness of the criterion from the first round to the last.
        penalty: at the start; a continued search starts higher.
    """

    rounds: int
    iterations: int
    powers: tuple[float, float] = (8.0, 8.0)
    penalty: float = PENALTY_START


SKETCH = Schedule(rounds=3, iterations=20)
"""From a random start: enough that every parameter shows and most limits are kept."""

EXPLORE = Schedule(rounds=5, iterations=100)
"""From a random start: enough to tell good basins from bad ones."""

POLISH = Schedule(rounds=10, iterations=150, powers=(16.0, 40.0), penalty=200.0)
"""On a promising motion: sharper criterion, tighter constraints."""

REPAIR = Schedule(rounds=4, iterations=100, powers=(40.0, 40.0), penalty=800.0)
"""On a polished motion that misses a constraint between instants: it is nearly there, and only keeps away further."""


class DeadlineError(Exception):
    """Time is up; raised inside an evaluation and caught by `minimised`."""


@dataclass(frozen=True, eq=False)
class Descent:
    """Where a descent ended.

    Args:
        variables: of the search.
        probe: what they give on the grid.
        prices: multipliers, to go on from here.
        finished: False when time ran out.
    """

    variables: FloatArray
    probe: MotionProbe
    prices: Multipliers
    finished: bool


def minimised(
    grid: ExcitationGrid, start: FloatArray, schedule: Schedule, *, deadline: float = float("inf")
) -> Descent:
    """Descends from a start.

    Args:
        grid: the problem.
        start: variables.
        schedule: how long.
        deadline: of `time.monotonic`; the last complete round counts when it passes.
    """
    y, prices = start, grid.multipliers(schedule.penalty)
    finished = True
    low, high = schedule.powers
    for k in range(schedule.rounds):
        power = low * (high / low) ** (k / max(schedule.rounds - 1, 1))
        grid.sharpen(power)
        try:
            y = _minimise_round(grid, y, prices, schedule.iterations, deadline)
        except DeadlineError:
            finished = False
            break
        prices = grid.raised(y, prices, min(prices.penalty * PENALTY_GROWTH, PENALTY_END))
    return Descent(y, grid.probe(y), prices, finished)


def _minimise_round(
    grid: ExcitationGrid, start: FloatArray, prices: Multipliers, iterations: int, deadline: float
) -> FloatArray:
    """One L-BFGS minimisation with fixed prices."""

    def value(y: FloatArray) -> tuple[float, FloatArray]:
        if time.monotonic() > deadline:
            raise DeadlineError
        return grid.evaluate(y, prices)

    best: FloatArray = fmin_l_bfgs_b(value, start, m=_MEMORY, maxiter=iterations, factr=1e4, pgtol=1e-8)[0]
    return best
