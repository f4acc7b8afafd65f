"""What can be had of the goals of [Kolyubin2017], eq. 24: condition number against torque reserve, over two sets of parameters.

With --states the best that any weights on admissible states could give, a bound for every motion (or for those without harmonics
above a frequency); with --joined only weights count that agree with a periodic motion and attain the reserves.
Run: python -m bench goals [--quick | --states [--joined] [--hz HIGHEST]]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from armid.robot.load import load_robot
from armid.studies.goal_states import bound_of_every_motion, state_front
from armid.studies.goals import ARM, GOAL, RESERVE, GoalPoint, goal_point

ESSENTIAL_GOALS = (20.0, 25.0, 30.0, 40.0)
BASE_GOALS = (35.0, 60.0, 100.0)
STOP_AND_GO = (30.0, 90)
"""Period [s] and harmonics, up to 3 Hz, of the motion from a start that runs at full speed or creeps."""

JOINED_ROUNDS = 12
"""Weights that agree with a motion need more states, hence more rounds, than loose ones."""


def row(point: GoalPoint, period: float, harmonics: int, *, start: str = "") -> str:
    """One line of the table."""
    counted = ("44 essential" if point.essential else "92 base") + start
    one = f"| {counted} | {point.asked:g} | {period:g} s, {harmonics} | {point.essentials:.1f} | {point.condition_number:.1f} | "
    two = (
        f"{point.together:.1f} | {point.reserve[0]:.3f}, {point.reserve[1]:.3f} | {'yes' if point.attained else 'no'} |"
    )
    return one + two


def states(hz: float, *, joined: bool) -> None:
    """Condition number over the 92 base parameters of the best weights on admissible states, round by round."""
    print("motions of any shape" if hz == float("inf") else f"motions of harmonics up to {hz:g} Hz")
    print(f"no motion within the velocity limits is below {bound_of_every_motion(load_robot(ARM)):.1f}: proven")
    print("| round | best weights | none on these states below | none met by the search below |\n|---|---|---|---|")
    rounds = JOINED_ROUNDS if joined else 4
    for k, front in enumerate(state_front(hz=hz, joined=joined, rounds=rounds)):
        met = "-" if joined else f"{front.bound:.1f}"
        print(f"| {k + 1} | {front.condition_number:.1f} | {front.pool_bound:.1f} | {met} |", flush=True)


def main(arguments: Sequence[str] = ()) -> None:
    if "--states" in arguments:
        asked = arguments[arguments.index("--hz") + 1] if "--hz" in arguments else "inf"
        states(float(asked), joined="--joined" in arguments)
        return
    quick = "--quick" in arguments
    print(
        f"goals: condition number {GOAL:g}, mean reserve {RESERVE:g} on joints 6 and 7; payload 3.28 kg; one start each"
    )
    print(
        "| search counts | asked | period, harmonics | cond., 44 essential | 92 base | 102 together | reserves | attained |"
    )
    print("|---|---|---|---|---|---|---|---|")
    shapes = [(12.0, 15)] if quick else [(12.0, 15), (25.0, 30)]
    for period, harmonics in shapes:
        for essential, asked in ((True, ESSENTIAL_GOALS), (False, BASE_GOALS)):
            for goal in asked[2:3] if quick else asked:
                found = goal_point(goal, essential=essential, period=period, harmonics=harmonics)
                print(row(found, period, harmonics), flush=True)
    if not quick:
        period, harmonics = STOP_AND_GO
        found = goal_point(GOAL, essential=False, period=period, harmonics=harmonics, stop_and_go=True)
        print(row(found, period, harmonics, start=", stop and go"), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
