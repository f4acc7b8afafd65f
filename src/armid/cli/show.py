"""`armid show`: the arm and its motion in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from armid.cli import options as opt
from armid.cli.output import emit, show_notes, verb


@verb
def show(
    robot: opt.RobotArgument,
    trajectory: Annotated[
        Path | None, typer.Argument(help="Trajectory (JSON or CSV), or poses.json / poses.csv of `armid poses`.")
    ] = None,
    cell: opt.CellOption = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="On this machine only; 0 for any free one.")] = 8080,
    seconds: Annotated[
        float | None, typer.Option("--close-after-seconds", help="Stop after this long; until Ctrl-C by default.")
    ] = None,
    base: opt.BaseLinkOption = None,
    tip: opt.TipOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """A 3D preview of the arm, its cell, and a motion or poses playing, on this machine only.

    For example `armid show iiwa14 design/trajectory.json`.
    """
    from armid.report.preview import show as open_viewer

    with open_viewer(robot, trajectory, cell=cell, port=port, base=base, tip=tip) as viewer:
        emit({"url": viewer.url, "duration": viewer.show.duration}, as_json=as_json)
        show_notes((*viewer.show.scene.notes, *viewer.notes))
        typer.echo(f"open {viewer.url} (Ctrl-C to stop)", err=as_json)
        viewer.play(seconds)
