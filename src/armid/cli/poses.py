"""`armid poses`: where to measure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from armid.cli import groups
from armid.cli import options as opt
from armid.cli.output import busy, render, verb

PurposeWord = Literal["calibration", "axis-inertia", "gravity"]
ErrorsWord = Literal["described", "complete"]
MethodWord = Literal["best", "target", "exchange", "tabu", "multi-start", "prediction"]
SpreadWord = Literal["random", "uniform", "weighted"]


def _measured(
    count: Annotated[int | None, typer.Option(min=1, help="Poses; 17 for calibration, 30 for gravity.")] = None,
    frame: Annotated[str | None, typer.Option(help="Tracked by the instrument; the tip by default.")] = None,
    errors: Annotated[
        ErrorsWord | None, typer.Option(help="For calibration: the description's constants, or a complete set.")
    ] = None,
    from_file: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Choose from your own list of joint positions (CSV)."),
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="Pose of the joints that do not matter; found by default.")
    ] = None,
) -> groups.Keywords:
    """What is measured, and how often."""
    return dict(locals())


def _choice(
    method: Annotated[
        MethodWord, typer.Option(help="target: [RWTH2021]; prediction: expected error of axis inertias.")
    ] = "best",
    spread: Annotated[SpreadWord, typer.Option(help="How the pool of poses to choose from is drawn.")] = "random",
    pool: Annotated[
        str | None, typer.Option(help="Poses generated, per axis with commas; values per joint if not random.")
    ] = None,
    starts: Annotated[int, typer.Option(min=1, help="Random starts of the choice.")] = 4,
    seed: opt.SeedOption = 0,
) -> groups.Keywords:
    """How poses are chosen."""
    return dict(locals())


def _room(
    cell: opt.CellOption = None,
    margin: Annotated[float, typer.Option(help="Fraction of every position limit left unused.")] = 0.02,
    self_collision: opt.SelfCollisionOption = True,
    transitions: Annotated[bool, typer.Option(help="Find collision-free ways between the poses.")] = True,
    limits_file: opt.LimitsFileOption = None,
) -> groups.Keywords:
    """Where the arm may be."""
    return dict(locals())


@verb
@groups.takes(_measured, _choice, _room, groups.arm)
def poses(
    robot: opt.RobotArgument,
    purpose: Annotated[PurposeWord, typer.Option("--for", help="What is measured there.")],
    out: opt.OutOption = Path("poses"),
    as_json: opt.JsonOption = False,
    **asked: Any,
) -> None:
    """Measurement poses that determine the parameters well, within limits, cell and visibility.

    For example `armid poses mabi-max100 --for axis-inertia --cell mabi-max100`.
    """
    from armid.design.poses import choose_poses

    found = busy("choosing poses", choose_poses)(robot, purpose, **asked)
    render(found, as_json=as_json, out=out)
