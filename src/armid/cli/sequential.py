"""`armid sequential`: one link after the other, from the tip."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from armid.cli import groups
from armid.cli import options as opt
from armid.cli.experiment import Answer, experiment
from armid.parameters.effects import DEFAULT_FRICTION


def _model(
    friction: opt.LinearFrictionOption = DEFAULT_FRICTION,
    rotor_inertia: opt.RotorOption = False,
    torques: Annotated[Literal["link", "motor"], typer.Option("--torques", help="Where torque was measured.")] = "link",
    from_nominal: Annotated[
        bool, typer.Option("--from-nominal", help="Start from the description's values instead of zero.")
    ] = False,
    start: Annotated[
        Path | None, typer.Option("--start", metavar="FILE", help="Starting values: JSON, parameter name to number.")
    ] = None,
) -> groups.Keywords:
    """What is estimated, and from where."""
    first = start or ("nominal" if from_nominal else None)
    return {"friction": friction, "rotor_inertia": rotor_inertia, "torques": torques, "start": first}


def _motions(
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="DIR", help="Of `design --sequential`: says which joints are locked."),
    ] = None,
    locked: Annotated[
        list[str] | None,
        typer.Option("--lock", metavar="JOINT", help="Joint that has to stand still in every recording; repeatable."),
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
) -> groups.Keywords:
    """What moves, and which of the recorded signals are used."""
    return {**locals(), "locked": locked or ()}


def _signals(
    cutoff_hz: opt.CutoffOption = None,
    torque_delay_ms: Annotated[
        float | None,
        typer.Option("--torque-delay-ms", help="How late torque is against the motion; measured by default."),
    ] = None,
    accept: opt.AcceptOption = None,
    step: opt.StepOption = None,
) -> groups.Keywords:
    """How recordings are read and filtered."""
    delay = None if torque_delay_ms is None else 1e-3 * torque_delay_ms
    return {"cutoff_hz": cutoff_hz, "torque_delay": delay, "accept": accept or (), "step": step}


@experiment(_model, _motions, _signals)
def sequential(robot: opt.RobotArgument, logs: opt.LogsArgument, **asked: Any) -> Answer:
    """Base parameters joint by joint from the tip, proximal joints locked or moving.

    `armid design ROBOT --sequential` plans the motions; a joint that stands still in a recording counts as locked, and the
    recording serves the first joint that moves. For example `armid sequential cmu-dd-arm2 stage3.csv stage2.csv stage1.csv`.
    """
    from armid.sequential.identify import identify_sequential

    return identify_sequential(robot, logs, **asked)
