"""`armid plan`: the fastest motion along a path that the identified arm can follow."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from armid.cli import options as opt
from armid.cli.output import busy, render, verb
from armid.cli.program import program_files


@verb
def plan(
    result: opt.ResultArgument,
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="Waypoints (CSV), tool line or arc (YAML), or a trajectory (JSON).")
    ],
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Probability with which all torque limits hold, given the parameters' covariance; e.g. 0.99."
        ),
    ] = None,
    margin: Annotated[float, typer.Option(min=0.0, max=0.9, help="Share of every limit left unused.")] = 0.05,
    jerk: Annotated[bool, typer.Option("--jerk/--no-jerk", help="Respect jerk limits.")] = True,
    limits_file: opt.LimitsFileOption = None,
    max_acceleration: opt.AccelerationOption = None,
    max_jerk: opt.JerkOption = None,
    max_torque: opt.TorqueLimitOption = None,
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
    points: Annotated[int, typer.Option(min=50, max=20000, help="Grid of the path.")] = 1000,
    rate_hz: Annotated[float, typer.Option("--rate-hz", min=1.0, max=10000.0, help="Of the files' samples.")] = 1000.0,
    force: Annotated[
        bool, typer.Option("--force", help="Plan with an untrusted result too; files are marked UNVALIDATED.")
    ] = False,
    controller: opt.OptionalControllerOption = None,
    out: opt.OutOption = Path("plan"),
    seed: opt.SeedOption = 0,
    as_json: opt.JsonOption = False,
) -> None:
    """Time-optimal motion along a path within torque, velocity, acceleration and jerk limits."""
    from armid.planning.plan import plan_motion

    began = perf_counter()
    done = busy("planning", plan_motion)(
        result,
        path,
        confidence=confidence,
        margin=margin,
        jerk=jerk,
        limits_file=limits_file,
        max_acceleration=max_acceleration,
        max_jerk=max_jerk,
        max_torque=max_torque,
        cell=cell,
        collisions=collisions,
        loaded=loaded,
        passive=passive,
        points=points,
        force=force,
        seed=seed,
    )
    files = done.save(out, rate_hz=rate_hz)
    programs = program_files(done.model.robot, {"motion": done.trajectory}, controller, out)
    render(done, as_json=as_json, started=began, files=(*files, *programs))
