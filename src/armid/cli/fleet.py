"""`armid fleet`: many arms on many dates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from armid.cli import options as opt
from armid.cli.output import progress, render, verb
from armid.parameters.effects import DEFAULT_FRICTION, TorqueSide


@verb
def fleet(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE", help="CSV or YAML of arm, date, robot, logs; or a pattern data/{arm}/{date}/*.csv."
        ),
    ],
    robot: Annotated[
        str | None, typer.Option("--robot", metavar="ROBOT", help="Description of arms whose row names none.")
    ] = None,
    friction: opt.FrictionOption = DEFAULT_FRICTION,
    rotor_inertia: opt.RotorOption = False,
    torques: opt.TorquesOption = TorqueSide.LINK,
    cutoff_hz: opt.CutoffOption = None,
    false_alarms: Annotated[
        float, typer.Option("--false-alarms", help="Probability of even one alarm in a fleet without changes.")
    ] = 0.05,
    strict: opt.StrictOption = False,
    cluster: opt.ClusterOption = None,
    out: opt.OutOption = Path("fleet"),
    base: opt.BaseLinkOption = None,
    tip: opt.TipOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Identify every arm on every date: how arms differ, which of them change, and who needs service.

    Finished visits are kept in the output folder at once: start it again and only what is missing is done.
    For example `armid fleet fleet.csv --cluster local:4`.
    """
    from armid.fleets.fleet import fleet as library

    with progress() as tell:
        found = library(
            table,
            robot=robot,
            friction=friction,
            rotor_inertia=rotor_inertia,
            torques=torques,
            cutoff_hz=cutoff_hz,
            false_alarms=false_alarms,
            strict=strict,
            base=base,
            tip=tip,
            cluster=cluster,
            out=out,
            progress=tell,
        )
        tell("writing")
        files = (*found.save(out), found.report(out / "report.html"))
    render(found, as_json=as_json, files=files)
