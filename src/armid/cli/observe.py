"""`armid observe`: who is pushing the arm?"""

from __future__ import annotations

from time import perf_counter
from typing import Annotated, Literal

import typer

from armid.cli import options as opt
from armid.cli.output import progress, render, verb

ResidualWord = Literal["momentum", "direct"]


@verb
def observe(
    result: opt.ResultArgument,
    log: Annotated[str, typer.Argument(metavar="LOG", help="Recording to be watched.")],
    free: Annotated[
        list[str],
        typer.Option("--free", metavar="LOG", help="Recording without contact, not used to identify; repeatable."),
    ],
    per_hour: Annotated[float, typer.Option("--false-alarms-per-hour", help="Accepted for the whole arm.")] = 1.0,
    residual: Annotated[
        ResidualWord, typer.Option("--residual", help="By generalised momentum, or directly.")
    ] = "momentum",
    bandwidth_hz: Annotated[float, typer.Option("--bandwidth-hz", min=0.1, help="Of the momentum observer.")] = 10.0,
    force: Annotated[bool, typer.Option("--force", help="Use an untrusted result too.")] = False,
    step: opt.StepOption = None,
    data_root: opt.DataRootOption = None,
    out: opt.OptionalOutOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """External joint torque and contacts along a recording, with alarms for a stated rate of false ones.

    For example `armid observe identified run.csv --free quiet.csv --false-alarms-per-hour 1`.
    """
    from armid.observation.observe import observe as library

    started = perf_counter()
    with progress() as tell:
        tell("watching")
        seen = library(
            result,
            log,
            free=free,
            per_hour=per_hour,
            residual=residual,
            bandwidth_hz=bandwidth_hz,
            step=step,
            data_root=data_root,
            force=force,
        )
    files = () if out is None else (*seen.save(out), seen.report(out / "report.html"))
    render(seen, as_json=as_json, started=started, files=files)
