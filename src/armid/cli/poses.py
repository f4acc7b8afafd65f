"""`armid poses`: where to measure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from armid.cli import options as opt
from armid.cli.output import busy, render, verb

PurposeWord = Literal["calibration", "axis-inertia", "gravity"]
ErrorsWord = Literal["described", "complete"]
MethodWord = Literal["best", "target", "exchange", "tabu", "multi-start", "prediction"]
SpreadWord = Literal["random", "uniform", "weighted"]


@verb
def poses(
    robot: opt.RobotArgument,
    purpose: Annotated[PurposeWord, typer.Option("--for", help="What is measured there.")],
    count: Annotated[int | None, typer.Option(min=1, help="Poses; 17 for calibration, 30 for gravity.")] = None,
    frame: Annotated[str | None, typer.Option(help="Tracked by the instrument; the tip by default.")] = None,
    errors: Annotated[
        ErrorsWord | None, typer.Option(help="For calibration: the description's constants, or a complete set.")
    ] = None,
    cell: opt.CellOption = None,
    method: Annotated[
        MethodWord, typer.Option(help="target: [RWTH2021]; prediction: expected error of axis inertias.")
    ] = "best",
    spread: Annotated[SpreadWord, typer.Option(help="How the pool of poses to choose from is drawn.")] = "random",
    pool: Annotated[
        str | None, typer.Option(help="Poses generated, per axis with commas; values per joint if not random.")
    ] = None,
    starts: Annotated[int, typer.Option(min=1, help="Random starts of the choice.")] = 4,
    margin: Annotated[float, typer.Option(help="Fraction of every position limit left unused.")] = 0.02,
    self_collision: Annotated[
        bool, typer.Option("--collisions/--no-collisions", help="Keep the arm clear of itself.")
    ] = True,
    reference: Annotated[
        str | None, typer.Option(help="Pose of the joints that do not matter; found by default.")
    ] = None,
    transitions: Annotated[bool, typer.Option(help="Find collision-free ways between the poses.")] = True,
    from_file: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Choose from your own list of joint positions (CSV)."),
    ] = None,
    limits_file: opt.LimitsFileOption = None,
    seed: opt.SeedOption = 0,
    out: opt.OutOption = Path("poses"),
    base: opt.BaseLinkOption = None,
    tip: opt.TipOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Measurement poses that determine the parameters well, within limits, cell and visibility.

    For example `armid poses mabi-max100 --for axis-inertia --cell mabi-max100`.
    """
    from armid.design.poses import choose_poses

    found = busy("choosing poses", choose_poses)(
        robot,
        purpose,
        count=count,
        frame=frame,
        errors=errors,
        cell=cell,
        method=method,
        spread=spread,
        pool=pool,
        starts=starts,
        margin=margin,
        self_collision=self_collision,
        reference=reference,
        transitions=transitions,
        from_file=from_file,
        limits_file=limits_file,
        seed=seed,
        base=base,
        tip=tip,
    )
    render(found, as_json=as_json, out=out)
