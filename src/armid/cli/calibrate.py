"""`armid calibrate`: robot and measured poses in, calibrated robot and a verdict out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from armid.cli import calibrate_options as own
from armid.cli import groups
from armid.cli import options as opt
from armid.cli.output import progress, render, verb


@verb
@groups.takes(own.unknowns, own.columns, own.fitting, groups.arm)
def calibrate(
    robot: opt.RobotArgument,
    poses: Annotated[
        list[Path], typer.Argument(metavar="POSES...", help="Measured poses: CSV with a header (docs/formats.md).")
    ],
    validate: Annotated[
        list[Path] | None, typer.Option("--validate", metavar="POSES", help="Held-out measurements; repeatable.")
    ] = None,
    compensate: Annotated[
        Path | None,
        typer.Option(
            metavar="TARGETS", help="Joint targets (CSV) to rewrite for a controller that keeps the nominal geometry."
        ),
    ] = None,
    out: opt.OutOption = Path("calibrated"),
    as_json: opt.JsonOption = False,
    **asked: Any,
) -> None:
    """Find where joints and links really are from measured poses, points, distances or contacts."""
    from armid.calibration.calibrate import calibrate as library

    with progress("calibrating") as tell:
        result = library(robot, poses, validate=validate, compensate=compensate, progress=tell, **asked)
    render(result, as_json=as_json, files=result.write(out))
