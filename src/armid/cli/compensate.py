"""`armid compensate`: joint targets for a controller that only knows the nominal arm."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from armid.cli import options as opt
from armid.cli.output import busy, render, verb


@verb
def compensate(
    robot: opt.RobotArgument,
    correction: Annotated[
        Path, typer.Argument(metavar="CORRECTION", help="Folder of armid calibrate, or the correction.json in it.")
    ],
    targets: Annotated[Path, typer.Argument(metavar="TARGETS", help="Joint targets of a nominal arm (CSV).")],
    poses: Annotated[
        bool, typer.Option("--poses", help="TARGETS also has the tip's poses in the base frame: reach those.")
    ] = False,
    out: opt.OutOption = Path("compensated"),
    base: opt.BaseLinkOption = None,
    tip: opt.TipOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Rewrite joint targets so that the real arm goes where the nominal one would, for controllers nobody can teach."""
    from armid.calibration.compensate import compensate as library

    result = busy("compensating", library)(robot, correction, targets, poses=poses, base=base, tip=tip)
    files = result.save(out)
    render(result, as_json=as_json, timed=False, files=files, file=str(files[0]))
