"""`armid observe`: who is pushing the arm?"""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal

import typer

from armid.cli import groups
from armid.cli import options as opt
from armid.cli.output import busy, emit, render, verb

ResidualWord = Literal["momentum", "direct"]


def _watching(
    per_hour: Annotated[
        float, typer.Option("--false-alarms-per-hour", help="False alarms to accept, for the whole arm.")
    ] = 1.0,
    bandwidth_hz: Annotated[
        float, typer.Option("--bandwidth-hz", min=0.1, help="Bandwidth of the momentum observer.")
    ] = 10.0,
    force: Annotated[bool, typer.Option("--force", help="Use an untrusted result too.")] = False,
    step: opt.StepOption = None,
    data_root: opt.DataRootOption = None,
) -> groups.Keywords:
    """How closely, and what the recordings do not say."""
    return dict(locals())


@verb
@groups.takes(_watching)
def observe(
    result: opt.ResultArgument,
    log: Annotated[
        str,
        typer.Argument(
            metavar="LOG|STREAM",
            help="Recording, or a live arm: - for JSON lines on stdin, udp://HOST:PORT, rtde://HOST[:PORT][?torque=FIELD].",
        ),
    ],
    free: Annotated[
        list[str],
        typer.Option("--free", metavar="LOG", help="Recording without contact, not used to identify; repeatable."),
    ],
    residual: Annotated[
        ResidualWord, typer.Option("--residual", help="External torque by generalised momentum, or directly.")
    ] = "momentum",
    rate_hz: Annotated[float | None, typer.Option("--rate-hz", help="Samples per second of a live stream.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="A JSON line when a live contact begins and ends.")] = False,
    out: opt.OptionalOutOption = None,
    as_json: opt.JsonOption = False,
    **asked: Any,
) -> None:
    """External joint torque and contacts along a recording, with alarms for a stated rate of false ones.

    For example `armid observe identified run.csv --free quiet.csv --false-alarms-per-hour 1`, or live
    `armid observe identified udp://127.0.0.1:5005 --rate-hz 1000 --free quiet.csv --follow`.
    """
    from armid.logs.live.stream import is_stream

    if is_stream(log):
        from armid.observation.live import observe_stream

        if residual != "momentum":
            raise typer.BadParameter("a live stream is watched by its momentum", param_hint="--residual")
        tell = tell_line if follow else None
        render(observe_stream(result, log, free=free, rate_hz=rate_hz, tell=tell, **asked), as_json=as_json, out=out)
        return
    from armid.observation.observe import observe as library

    seen = busy("watching", library)(result, log, free=free, residual=residual, **asked)
    files = () if out is None else (*seen.save(out), seen.report(out / "report.html"))
    render(seen, as_json=as_json, files=files)


def tell_line(said: dict[str, Any]) -> None:
    """What just happened, on one line."""
    emit(said, as_json=True)
    sys.stdout.flush()
