"""`armid elastic`: stiffness and motor inertia of elastic joints."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from armid.cli import groups
from armid.cli import options as opt
from armid.cli.experiment import Answer, experiment


def _joints(
    joint: Annotated[
        list[str] | None, typer.Option("--joint", help="Joint to identify; by default every one whose link moves.")
    ] = None,
    motor_inertia: Annotated[
        list[str] | None,
        typer.Option(
            "--motor-inertia",
            metavar="JOINT=KGM2",
            help="Motor inertia that is known, times gear ratio squared; it is not fitted then.",
        ),
    ] = None,
    eccentric: Annotated[
        bool | None,
        typer.Option(
            "--eccentric/--centric",
            help="Fit an encoder error once per turn; by default where gravity does not load the joint.",
        ),
    ] = None,
    one_sensor: Annotated[
        bool, typer.Option("--one-sensor", help="Link encoders and motor torque only ([Gaz2014] eqs. 4-5).")
    ] = False,
    instruments: Annotated[
        bool,
        typer.Option(
            "--instruments/--no-instruments",
            help="Columns of the rigid model as instruments, against the bias that encoder errors cause.",
        ),
    ] = True,
    cutoff_hz: Annotated[
        float | None, typer.Option("--cutoff-hz", help="Low-pass on everything; 10, with one sensor 6.")
    ] = None,
) -> groups.Keywords:
    """Which joints, and how they are fitted."""
    return {**groups.renamed(locals(), joint="joints"), "motor_inertia": motor_inertia or ()}


@experiment(_joints)
def elastic(robot: opt.RobotArgument, logs: opt.LogsArgument, **asked: Any) -> Answer:
    """Stiffness and motor inertia of joints with encoders on both sides of the transmission.

    For example `armid elastic kr300.yaml kr300-A-elastic.yaml --joint joint2`.
    """
    from armid.transmission.identify import identify_transmission

    return identify_transmission(robot, logs, **asked)
