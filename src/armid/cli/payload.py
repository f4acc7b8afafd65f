"""`armid payload`: what the arm carries."""

from __future__ import annotations

from typing import Annotated

import typer

from armid.cli import options as opt
from armid.cli.output import progress, render, verb


@verb
def payload(
    result: opt.ResultArgument,
    logs: opt.LogsArgument,
    static: Annotated[
        bool, typer.Option("--static", help="Use the poses at rest only: mass and centre of mass.")
    ] = False,
    online: Annotated[bool, typer.Option("--online", help="Sample by sample, as on a live stream.")] = False,
    frame: opt.FrameOption = None,
    gripper: Annotated[
        str | None,
        typer.Option(
            "--gripper",
            metavar="M,X,Y,Z[,IXX,IXY,IXZ,IYY,IYZ,IZZ]",
            help="Known body to subtract [kg, m, kg m^2].",
        ),
    ] = None,
    offsets: Annotated[
        bool, typer.Option("--offsets", help="Let the drives' offsets differ from the result's.")
    ] = False,
    data_root: opt.DataRootOption = None,
    out: opt.OptionalOutOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Mass, centre of mass and inertia of what an identified arm carries.

    For example `armid payload identified loaded.csv`.
    """
    from armid.payload.identify import identify_payload

    with progress() as tell:
        tell("reading and fitting")
        found = identify_payload(
            result,
            logs,
            static=static,
            online=online,
            frame=frame,
            subtract=gripper,
            offsets=offsets,
            data_root=data_root,
        )
    render(found, as_json=as_json, out=out)
