"""`armid elastic`: stiffness and motor inertia of elastic joints."""

from __future__ import annotations

from time import perf_counter
from typing import Annotated

import typer

from armid.cli import options as opt
from armid.cli.output import progress, render, verb


@verb
def elastic(
    robot: opt.RobotArgument,
    logs: opt.LogsArgument,
    joint: Annotated[
        list[str] | None, typer.Option("--joint", help="Which; by default every one whose link moves.")
    ] = None,
    motor_inertia: Annotated[
        list[str] | None,
        typer.Option("--motor-inertia", metavar="JOINT=KGM2", help="Known, times gear ratio squared: not fitted."),
    ] = None,
    eccentric: Annotated[
        bool | None,
        typer.Option(
            "--eccentric/--centric", help="Encoder error once per turn; where gravity loads nothing by default."
        ),
    ] = None,
    one_sensor: Annotated[
        bool, typer.Option("--one-sensor", help="Link encoders and motor torque only ([Gaz2014] eqs. 4-5).")
    ] = False,
    instruments: Annotated[
        bool,
        typer.Option(
            "--instruments/--no-instruments", help="The robot's columns remove the bias that encoder errors cause."
        ),
    ] = True,
    cutoff_hz: Annotated[
        float | None, typer.Option("--cutoff-hz", help="Low-pass on everything; 10, with one sensor 6.")
    ] = None,
    data_root: opt.DataRootOption = None,
    out: opt.OptionalOutOption = None,
    base: opt.BaseLinkOption = None,
    tip: opt.TipOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Stiffness and motor inertia of joints with encoders on both sides of the transmission.

    For example `armid elastic kr300.yaml kr300-A-elastic.yaml --joint joint2`.
    """
    started = perf_counter()
    from armid.transmission.identify import identify_transmission

    with progress() as tell:
        tell("reading and fitting")
        found = identify_transmission(
            robot,
            logs,
            joints=joint,
            motor_inertia=motor_inertia or (),
            one_sensor=one_sensor,
            instruments=instruments,
            eccentric=eccentric,
            cutoff_hz=cutoff_hz,
            data_root=data_root,
            base=base,
            tip=tip,
        )
    render(found, as_json=as_json, started=started, files=() if out is None else found.save(out))
