"""`armid simulate`: run a motion on the embedded robot, write its log and the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from armid.cli import groups
from armid.cli import options as opt
from armid.cli import simulate_options as own
from armid.cli.output import busy, render, verb

RecordWord = Literal["log", "tracker", "controller-model"]


@verb
@groups.takes(own.settings, own.specimen, own.beginning, own.repetitions, groups.motion_limits, groups.arm)
def simulate(
    robot: opt.RobotArgument,
    trajectory: Annotated[
        Path,
        typer.Argument(metavar="TRAJECTORY", help="Trajectory (JSON or CSV); postures (CSV) for --record tracker."),
    ],
    record: Annotated[
        RecordWord, typer.Option(help="What is recorded: the motion, tool poses, or the controller's model.")
    ] = "log",
    out: opt.OutOption = Path("simulation"),
    as_json: opt.JsonOption = False,
    **asked: Any,
) -> None:
    """Run the embedded robot along a motion; write its log and the truth."""
    from armid.simulation.simulate import simulate as run

    given = {name: value for name, value in asked.items() if value is not None}
    done = busy("simulating", run)(robot, trajectory, record=record, out=out, **given)
    render(done, as_json=as_json, files=done.files)
