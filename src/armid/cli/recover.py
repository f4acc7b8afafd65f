"""`armid recover`: the model inside a controller."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from armid.cli import groups
from armid.cli import options as opt
from armid.cli.output import busy, render, verb
from armid.errors import InputError


def _compared(
    validate: Annotated[
        Path | None, typer.Option("--validate", metavar="SAMPLES", help="Other poses; the last sixth by default.")
    ] = None,
    along: Annotated[
        Path | None,
        typer.Option("--along", metavar="SAMPLES", help="Values read along a motion: all elements compared."),
    ] = None,
    motion: Annotated[
        str | None,
        typer.Option("--motion", metavar="LOG", help="A motion with joint torque: predicted torque compared."),
    ] = None,
    tool: Annotated[
        Path | None, typer.Option("--tool", metavar="SAMPLES", help="The same arm with a tool: its mass and centre.")
    ] = None,
    cutoff_hz: Annotated[float, typer.Option("--cutoff-hz", help="Low-pass on the motion.")] = 1.0,
    accept: opt.AcceptOption = None,
) -> groups.Keywords:
    """What the recovered model is held against."""
    return {**groups.renamed(locals(), motion="torque"), "accept": accept or ()}


def _model(
    coefficients: Annotated[
        bool, typer.Option("--coefficients", help="Every coefficient of g(q) and M(q) in the form of [Gaz2014], too.")
    ] = False,
    gravity: opt.GravityOption = None,
    rotor_inertia: Annotated[
        bool, typer.Option("--rotor-inertia", help="The inertia matrix has the rotors on its diagonal.")
    ] = False,
) -> groups.Keywords:
    """What is looked for in the controller."""
    return dict(locals())


@verb
@groups.takes(_compared, _model)
def recover(
    robot: opt.RobotArgument,
    samples: Annotated[
        Path | None, typer.Argument(metavar="SAMPLES", help="Poses with gravity and inertia (npz or csv).")
    ] = None,
    plan: Annotated[
        int | None, typer.Option("--plan", min=1, metavar="N", help="Write N random poses to read at, and stop.")
    ] = None,
    out: opt.OptionalOutOption = None,
    base: opt.BaseLinkOption = None,
    tip: opt.TipOption = None,
    seed: opt.SeedOption = 0,
    as_json: opt.JsonOption = False,
    **asked: Any,
) -> None:
    """Parameters from the gravity vectors and inertia matrices that a controller reports.

    For example `armid recover lwr4plus controller.npz`; `armid recover lwr4plus --plan 1200` writes poses to read them at.
    """
    if plan is not None:
        from armid.recovery.plan import plan_poses

        poses = plan_poses(robot, plan, seed=seed, base=base, tip=tip)
        render(poses, as_json=as_json, files=poses.save(out or Path("recovered")))
        return
    if samples is None:
        hint = "a file of controller data, or --plan N for poses to read them at"
        raise InputError(f"recover {robot}", "no SAMPLES given", hint)
    from armid.recovery.recover import recover as library

    found = busy("reading and fitting", library)(robot, samples, base=base, tip=tip, **asked)
    render(found, as_json=as_json, out=out)
