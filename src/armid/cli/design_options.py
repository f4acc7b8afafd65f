"""Options of `armid design` alone, in groups; names are those of `armid.design_motion`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from armid.cli import options as opt
from armid.cli.groups import Keywords
from armid.parameters.effects import DEFAULT_FRICTION, TorqueSide

CriterionWord = Literal["deviations", "condition", "log-det", "smallest", "worst-deviation"]
LIMITS = ("position", "velocity", "acceleration", "jerk", "torque")


def model(
    friction: opt.LinearFrictionOption = DEFAULT_FRICTION,
    rotor_inertia: opt.RotorOption = False,
    torques: opt.TorquesOption = TorqueSide.LINK,
    payload_mass: Annotated[float, typer.Option("--payload-kg", help="Carried at the tip [kg], for torques.")] = 0.0,
    payload_centre: Annotated[str, typer.Option(help="Its centre of mass in the tip frame [m].")] = "0,0,0",
) -> Keywords:
    """What is to be identified, and what the arm carries meanwhile."""
    return dict(locals())


def motion(
    period: Annotated[str, typer.Option(help="Seconds: 20, several with commas, or a range 10:30 to search.")] = "20",
    harmonics: Annotated[
        int | None,
        typer.Option(
            min=2, help="Harmonics of the Fourier series; by default as many as the quickest joint can use, 10 to 25."
        ),
    ] = None,
    spline_knots: Annotated[int | None, typer.Option(min=4, help="Splines with this many knots instead.")] = None,
    start: Annotated[
        str | None, typer.Option(help="Pose it starts and ends at, rad or m with commas; free by default.")
    ] = None,
    home: Annotated[
        str | None, typer.Option(help="Where the robot stands: adds the approach and the way back.")
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Periods to run.")] = 1,
    sequential: Annotated[bool, typer.Option("--sequential", help="Locked-joint plan, tip to base.")] = False,
) -> Keywords:
    """Which motions there are to choose from."""
    return dict(locals())


def surroundings(
    margin: Annotated[float, typer.Option(help="Fraction of every limit left unused.")] = 0.05,
    limits: Annotated[
        str, typer.Option(metavar="LIST", parser=opt.word_list(LIMITS), help="Kinds of limits to keep.")
    ] = ",".join(LIMITS),
    cell: opt.CellOption = None,
    self_collision: opt.SelfCollisionOption = True,
    clearance_m: opt.ClearanceOption = None,
    analytic_bounds: Annotated[
        bool,
        typer.Option("--analytic-bounds", help="Sums of amplitudes keep limits too ([Halper2024], eq. 3.55)."),
    ] = False,
    resonance_hz: Annotated[float | None, typer.Option(help="The highest harmonic stays below it.")] = None,
) -> Keywords:
    """What the motion must keep clear of."""
    return dict(locals())


def aim(
    criterion: Annotated[
        CriterionWord | None,
        typer.Option(help="What the search improves; expected deviations by default, with goals the condition number."),
    ] = None,
    after: Annotated[
        Path | None, typer.Option(metavar="RESULT", help="Earlier identification: the motion adds to what it knows.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="As many periods as it takes: 'mass 2 %, friction 5 %' (deviations).")
    ] = None,
    noise: Annotated[
        str | None, typer.Option(help="Torque noise of each channel [N m], with commas; equal by default.")
    ] = None,
    goal_condition: Annotated[
        float | None,
        typer.Option(help="Condition number to attain, with --goal-reserve; found by a first run by default."),
    ] = None,
    goal_reserve: Annotated[
        str | None, typer.Option(help="Mean torque reserve to attain: joint6=0.9,joint7=0.9 (fraction of the limit).")
    ] = None,
    goal_weights: Annotated[
        str | None, typer.Option(help="How much missing each goal counts, the condition number first.")
    ] = None,
) -> Keywords:
    """What makes one motion better than another."""
    return dict(locals())


def search(
    rank: Annotated[
        int,
        typer.Option(
            min=0, help="Run this many of the best motions on the embedded robot; keep the one that identifies best."
        ),
    ] = 0,
    seconds: Annotated[
        float, typer.Option("--search-seconds", help="Time to search; 0 for no limit (then give --starts).")
    ] = 60.0,
    starts: Annotated[int | None, typer.Option(min=1, help="Random starts instead of time: repeats exactly.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one per core by default.")] = None,
    cluster: opt.ClusterOption = None,
    resume: Annotated[Path | None, typer.Option(help="search.json of an earlier run to go on from.")] = None,
    seed: opt.SeedOption = 0,
) -> Keywords:
    """How long and where it is looked for."""
    return dict(locals())
