"""`armid sequential`: one link after the other, from the tip."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated, Literal

import typer

from armid.cli import options as opt
from armid.cli.output import progress, render, verb
from armid.parameters.effects import DEFAULT_FRICTION


@verb
def sequential(
    robot: opt.RobotArgument,
    logs: opt.LogsArgument,
    friction: opt.LinearFrictionOption = DEFAULT_FRICTION,
    rotor_inertia: opt.RotorOption = False,
    torques: Annotated[Literal["link", "motor"], typer.Option("--torques", help="Where torque was measured.")] = "link",
    from_nominal: Annotated[
        bool, typer.Option("--from-nominal", help="Start from the description's values instead of zero.")
    ] = False,
    start: Annotated[
        Path | None, typer.Option("--start", metavar="FILE", help="Starting values: JSON, parameter name to number.")
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="DIR", help="Of `design --sequential`: says which joints are locked."),
    ] = None,
    locked: Annotated[
        list[str] | None, typer.Option("--lock", metavar="JOINT", help="Has to stand still in every recording.")
    ] = None,
    hold: Annotated[
        bool,
        typer.Option(
            "--hold", help="What a stage found stays fixed in later ones, as in [Khosla1985]; for exact data."
        ),
    ] = False,
    commanded: Annotated[
        bool, typer.Option("--commanded", help="Output-error structure: the commanded motion instead of the measured.")
    ] = False,
    as_recorded: Annotated[
        bool, typer.Option("--as-recorded", help="Recorded velocity and acceleration, unfiltered, sample by sample.")
    ] = False,
    velocity: Annotated[
        Literal["position", "measured"], typer.Option("--velocity", help="Derived from position, or as recorded.")
    ] = "position",
    cutoff_hz: opt.CutoffOption = None,
    torque_delay_ms: Annotated[
        float | None,
        typer.Option("--torque-delay-ms", help="How late torque is against the motion; measured by default."),
    ] = None,
    accept: opt.AcceptOption = None,
    step: opt.StepOption = None,
    data_root: opt.DataRootOption = None,
    out: opt.OptionalOutOption = None,
    base: opt.BaseLinkOption = None,
    tip: opt.TipOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Base parameters joint by joint from the tip, proximal joints locked or moving.

    `armid design ROBOT --sequential` plans the motions; a joint that stands still in a recording counts as locked, and the
    recording serves the first joint that moves. For example `armid sequential cmu-dd-arm2 stage3.csv stage2.csv stage1.csv`.
    """
    started = perf_counter()
    from armid.sequential.identify import identify_sequential

    with progress() as tell:
        tell("reading and fitting")
        found = identify_sequential(
            robot,
            logs,
            friction=friction,
            rotor_inertia=rotor_inertia,
            torques=torques,
            start=start or ("nominal" if from_nominal else None),
            plan=plan,
            locked=locked or (),
            hold=hold,
            commanded=commanded,
            as_recorded=as_recorded,
            velocity=velocity,
            cutoff_hz=cutoff_hz,
            torque_delay=None if torque_delay_ms is None else 1e-3 * torque_delay_ms,
            accept=accept or (),
            step=step,
            data_root=data_root,
            base=base,
            tip=tip,
        )
    render(found, as_json=as_json, started=started, files=() if out is None else found.save(out))
