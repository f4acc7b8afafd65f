"""`armid study`: nominal or calibrated kinematics x random way-points or optimised motion, on the embedded robot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from armid.cli import groups
from armid.cli import options as opt
from armid.cli.output import progress, render, verb
from armid.parameters.effects import TorqueSide

KHOSLA, RWTH = "khosla1985", "rwth2021"
"""Words for these works' studies, in the place of a robot."""


def _arm(
    correction: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="How the real arm deviates (correction.json); published for lwr4plus."),
    ] = None,
    variation: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Relative deviation of inertias and friction from the description.")
    ] = 0.2,
    payload_kg: Annotated[
        float | None, typer.Option(min=0.0, help="Carried in half of the runs; 3.28 for lwr4plus, else none.")
    ] = None,
    torques: opt.TorquesOption = TorqueSide.BOTH,
) -> groups.Keywords:
    """What the arm is really like."""
    return dict(locals())


def _experiments(
    trajectory: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Optimised motion of armid design; repeatable. Else searched."),
    ] = None,
    motions: Annotated[int, typer.Option(min=1, help="Motions of each kind.")] = 4,
    repetitions: Annotated[int, typer.Option(min=2, help="Recordings of each motion.")] = 3,
    starts: Annotated[int, typer.Option(min=1, help="Random starts of each search.")] = 1,
    poses: Annotated[int, typer.Option(min=4, help="Poses measured for the calibration.")] = 17,
    cutoff_hz: Annotated[float, typer.Option(help="Low-pass on motion and torque.")] = 10.0,
    cluster: opt.ClusterOption = None,
) -> groups.Keywords:
    """What is done with it, how often."""
    return {**groups.renamed(locals(), trajectory="trajectories"), "trajectories": trajectory or ()}


@verb
@groups.takes(_arm, _experiments)
def study(
    context: typer.Context,
    robot: Annotated[
        str,
        typer.Argument(
            metavar="ROBOT|WORK",
            help="Robot of [Kolyubin2017]'s study; khosla1985: tables 4 to 6; rwth2021: table 6.2.",
        ),
    ] = "lwr4plus",
    seconds: Annotated[float, typer.Option("--motion-seconds", help="Length of the motions [s].")] = 25.0,
    out: opt.OutOption = Path("study"),
    seed: opt.SeedOption = 0,
    as_json: opt.JsonOption = False,
    **asked: Any,
) -> None:
    """Repeat a published study.

    With a robot [Kolyubin2017]'s: what calibrated kinematics and an optimised motion do to the dynamic parameters. With
    khosla1985 tables 4 to 6 of that work: do two motions and two sets of starting values give the same six-axis arm?
    It takes --motion-seconds (10 by default), --seed and --out. With rwth2021 condition numbers of poses chosen by its
    algorithms 5.1 to 5.3, beside its table 6.2; it takes --seed and --out.
    """
    if robot == RWTH:
        from armid.studies.rwth import table_of_poses

        render(table_of_poses(seed=seed), as_json=as_json, out=out)
        return
    if robot == KHOSLA:
        _khosla(context, seconds, seed, out, as_json=as_json)
        return
    from armid.studies.kinematics.study import study as run

    with progress() as tell:
        found = run(robot, seconds=seconds, seed=seed, out=out, progress=tell, **asked)
    files = found.save(out)
    render(found, as_json=as_json, files=files, report=str(files[-1]))


def _khosla(context: typer.Context, seconds: float, seed: int, out: Path, *, as_json: bool) -> None:
    """The other study."""
    from armid.studies.khosla import PERIOD, replay_khosla

    length = seconds if groups.was_given(context, "seconds") else PERIOD
    with progress() as tell:
        found = replay_khosla(seconds=length, seed=seed, progress=tell)
    render(found, as_json=as_json, out=out)
