"""`armid plan`: the fastest motion along a path that the identified arm can follow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from armid.cli import groups
from armid.cli import options as opt
from armid.cli.output import busy, render, verb
from armid.cli.program import program_files


def _motion(
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Probability with which all torque limits hold, given the parameters' covariance; e.g. 0.99."
        ),
    ] = None,
    margin: Annotated[float, typer.Option(min=0.0, max=0.9, help="Share of every limit left unused.")] = 0.05,
    jerk: Annotated[bool, typer.Option("--jerk/--no-jerk", help="Respect jerk limits.")] = True,
    cell: opt.CellOption = None,
    collisions: Annotated[
        bool, typer.Option("--collisions/--no-collisions", help="Check the arm against itself.")
    ] = True,
    loaded: Annotated[
        bool, typer.Option("--loaded/--unloaded", help="Whether the arm carries the payload of the loaded runs.")
    ] = True,
    passive: Annotated[
        str | None, typer.Option(metavar="JOINT", help="Draw the motion generator with this joint not driven.")
    ] = None,
    points: Annotated[int, typer.Option(min=50, max=20000, help="Points of the path at which limits are kept.")] = 1000,
    force: Annotated[
        bool, typer.Option("--force", help="Plan with an untrusted result too; files are marked UNVALIDATED.")
    ] = False,
    seed: opt.SeedOption = 0,
) -> groups.Keywords:
    """What the motion must keep."""
    return dict(locals())


@verb
@groups.takes(_motion, groups.motion_limits)
def plan(
    result: opt.ResultArgument,
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="Waypoints (CSV), tool line or arc (YAML), or a trajectory (JSON).")
    ],
    rate_hz: Annotated[
        float, typer.Option("--rate-hz", min=1.0, max=10000.0, help="Sampling rate of the written files.")
    ] = 1000.0,
    controller: opt.OptionalControllerOption = None,
    out: opt.OutOption = Path("plan"),
    as_json: opt.JsonOption = False,
    **asked: Any,
) -> None:
    """Time-optimal motion along a path within torque, velocity, acceleration and jerk limits."""
    from armid.planning.plan import plan_motion

    done = busy("planning", plan_motion)(result, path, **asked)
    files = done.save(out, rate_hz=rate_hz)
    programs = program_files(done.model.robot, {"motion": done.trajectory}, controller, out, "plan")
    render(done, as_json=as_json, files=(*files, *programs))
