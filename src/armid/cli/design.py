"""`armid design`: an excitation trajectory within all limits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from armid.cli import design_options as own
from armid.cli import groups
from armid.cli import options as opt
from armid.cli.output import progress, render, verb
from armid.cli.program import program_files

PresetWord = Literal["halper2024", "kolyubin2017"]


@verb
@groups.takes(own.motion, own.model, own.surroundings, groups.motion_limits, own.aim, own.search, groups.arm)
def design(
    context: typer.Context,
    robot: opt.RobotArgument,
    preset: Annotated[
        PresetWord | None, typer.Option(help="The problem of a published work; options given beside it win.")
    ] = None,
    rate_hz: Annotated[float, typer.Option(min=0.001, help="Sampling rate of the written files.")] = 100.0,
    controller: opt.OptionalControllerOption = None,
    out: opt.OutOption = Path("design"),
    as_json: opt.JsonOption = False,
    **asked: Any,
) -> None:
    """An excitation trajectory that excites every parameter and that the arm can run as it is.

    For example `armid design iiwa14 --search-seconds 20 --home 0,0,0,0,0,0,0`. Ctrl-C keeps the best motion so far.
    Every finished start is kept in --out at once: after a kill the same command goes on from there.
    """
    from armid.design.design import design_motion
    from armid.design.motion import Design

    if preset is not None:
        from armid.design.presets import design_preset
        from armid.robot.load import load_robot

        words = design_preset(preset, load_robot(robot, base=asked["base"], tip=asked["tip"]).n_joints)
        asked |= {name: value for name, value in words.items() if not groups.was_given(context, name)}
    if asked["rank"]:
        from armid.studies.ranking import rank_motions

        asked["judge"] = rank_motions
    with progress() as tell:
        found = design_motion(robot, out=out, progress=tell, **asked)
    files = found.save(out, rate_hz=rate_hz)
    stages = [found] if isinstance(found, Design) else found.stages
    names = ["motion"] if isinstance(found, Design) else [f"experiment{k + 1}" for k in range(len(stages))]
    motions = {name: stage.trajectory for name, stage in zip(names, stages, strict=True)}
    programs = program_files(found.robot, motions, controller, out, "identification")
    render(found, as_json=as_json, files=(*files, *programs))
