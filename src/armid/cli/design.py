"""`armid design`: an excitation trajectory within all limits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from armid.cli import options as opt
from armid.cli.output import progress, render, verb
from armid.cli.program import program_files
from armid.parameters.effects import DEFAULT_FRICTION, TorqueSide

CriterionWord = Literal["deviations", "condition", "log-det", "smallest", "worst-deviation"]
PresetWord = Literal["halper2024", "kolyubin2017"]
ASIDE = ("context", "preset", "rate_hz", "controller", "as_json")
"""Parameters of the verb that `design_motion` does not have."""
LIMITS = ("position", "velocity", "acceleration", "jerk", "torque")
LimitsOption = Annotated[
    str, typer.Option(metavar="LIST", parser=opt.word_list(LIMITS), help="Kinds of limits to keep.")
]


@verb
def design(
    context: typer.Context,
    robot: opt.RobotArgument,
    preset: Annotated[
        PresetWord | None, typer.Option(help="The problem of a published work; options given beside it win.")
    ] = None,
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
    friction: opt.LinearFrictionOption = DEFAULT_FRICTION,
    rotor_inertia: opt.RotorOption = False,
    torques: opt.TorquesOption = TorqueSide.LINK,
    margin: Annotated[float, typer.Option(help="Fraction of every limit left unused.")] = 0.05,
    limits: LimitsOption = ",".join(LIMITS),
    limits_file: opt.LimitsFileOption = None,
    max_acceleration: opt.AccelerationOption = None,
    max_jerk: opt.JerkOption = None,
    max_torque: opt.TorqueLimitOption = None,
    cell: opt.CellOption = None,
    self_collision: Annotated[
        bool, typer.Option("--collisions/--no-collisions", help="Keep the arm clear of itself.")
    ] = True,
    clearance_m: opt.ClearanceOption = None,
    analytic_bounds: Annotated[
        bool,
        typer.Option("--analytic-bounds", help="Sums of amplitudes keep limits too ([Halper2024], eq. 3.55)."),
    ] = False,
    resonance_hz: Annotated[float | None, typer.Option(help="The highest harmonic stays below it.")] = None,
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
    payload_mass: Annotated[float, typer.Option("--payload-kg", help="Carried at the tip [kg], for torques.")] = 0.0,
    payload_centre: Annotated[str, typer.Option(help="Its centre of mass in the tip frame [m].")] = "0,0,0",
    rank: Annotated[
        int,
        typer.Option(
            min=0, help="Run this many of the best motions on the embedded robot; keep the one that identifies best."
        ),
    ] = 0,
    sequential: Annotated[bool, typer.Option("--sequential", help="Locked-joint plan, tip to base.")] = False,
    seconds: Annotated[
        float, typer.Option("--search-seconds", help="Time to search; 0 for no limit (then give --starts).")
    ] = 60.0,
    starts: Annotated[int | None, typer.Option(min=1, help="Random starts instead of time: repeats exactly.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one per core by default.")] = None,
    cluster: opt.ClusterOption = None,
    resume: Annotated[Path | None, typer.Option(help="search.json of an earlier run to go on from.")] = None,
    rate_hz: Annotated[float, typer.Option(min=0.001, help="Sampling rate of the written files.")] = 100.0,
    seed: opt.SeedOption = 0,
    controller: opt.OptionalControllerOption = None,
    out: opt.OutOption = Path("design"),
    base: opt.BaseLinkOption = None,
    tip: opt.TipOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """An excitation trajectory that excites every parameter and that the arm can run as it is.

    For example `armid design iiwa14 --search-seconds 20 --home 0,0,0,0,0,0,0`. Ctrl-C keeps the best motion so far.
    Every finished start is kept in --out at once: after a kill the same command goes on from there.
    """
    # Every option but these is an argument of design_motion, under the same name.
    asked = {name: value for name, value in locals().items() if name not in ASIDE}
    from armid.design.design import design_motion
    from armid.design.motion import Design

    if preset is not None:
        from armid.design.presets import design_preset
        from armid.robot.load import load_robot

        words = design_preset(preset, load_robot(robot, base=base, tip=tip).n_joints)
        asked |= {name: value for name, value in words.items() if not _was_given(context, name)}
    if rank:
        from armid.studies.ranking import rank_motions

        asked["judge"] = rank_motions
    with progress() as tell:
        found = design_motion(**asked, progress=tell)
    files = found.save(out, rate_hz=rate_hz)
    stages = [found] if isinstance(found, Design) else found.stages
    names = ["motion"] if isinstance(found, Design) else [f"experiment{k + 1}" for k in range(len(stages))]
    motions = {name: stage.trajectory for name, stage in zip(names, stages, strict=True)}
    programs = program_files(found.robot, motions, controller, out, "identification")
    render(found, as_json=as_json, files=(*files, *programs))


def _was_given(context: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line or in a configuration file."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"
