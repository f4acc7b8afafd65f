"""`armid sweep`: inertia and friction of single axes from their response to sines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from armid.cli import groups
from armid.cli import options as opt
from armid.cli.experiment import Answer, experiment
from armid.cli.program import program_files
from armid.errors import InputError


def _answered(
    parameters: Annotated[
        bool, typer.Option("--parameters", help="Base parameters of the load-side inertia from all of them.")
    ] = False,
    predict: Annotated[
        Path | None,
        typer.Option("--predict", metavar="POSES", help="Inertias of all axes at these poses too (CSV q1..qn)."),
    ] = None,
) -> groups.Keywords:
    """What is made of the recordings."""
    return {"answered": dict(locals())}


def _planned(
    axis: Annotated[list[str] | None, typer.Option("--axis", help="With --plan: which joints; all by default.")] = None,
    chirp: Annotated[bool, typer.Option("--chirp", help="With --plan: one chirp instead of sines.")] = False,
    minutes: Annotated[
        float | None,
        typer.Option("--minutes", help="With --plan: measuring time in all; 8 s per measurement by default."),
    ] = None,
    torque_noise_percent: Annotated[
        float,
        typer.Option(
            "--torque-noise-percent", help="With --plan: torque noise per sample, in percent of the torque limit."
        ),
    ] = 0.3,
    cell: opt.CellOption = None,
    rate_hz: Annotated[float, typer.Option("--rate-hz", help="With --plan: rate of the recording.")] = 1000.0,
) -> groups.Keywords:
    """What the motions of --plan are like."""
    asked = groups.renamed(locals(), axis="axes")
    noise = 1e-2 * asked.pop("torque_noise_percent")
    return {"planned": {**asked, "torque_noise": noise}}


@experiment(_answered, _planned)
def sweep(
    robot: opt.RobotArgument,
    logs: Annotated[list[str] | None, typer.Argument(metavar="LOG...", help="One axis at one pose each.")] = None,
    frequency_hz: Annotated[
        list[float] | None,
        typer.Option("--frequency-hz", help="Frequency of the sines; found in the spectrum by default."),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            metavar="POSES",
            help="Instead: write the motions for these poses (poses.json of `armid poses`, or CSV q1..qn).",
        ),
    ] = None,
    controller: opt.OptionalControllerOption = None,
    *,
    out: Path | None = None,
    data_root: Path | None = None,
    **asked: Any,
) -> Answer:
    """Axis inertia and viscous friction from frequency response.

    For example `armid sweep mabi-max100 axis1-*.csv --parameters`.
    """
    answered, planned = asked.pop("answered"), asked.pop("planned")
    if plan is not None:
        if out is None:
            raise InputError("--plan", "given without --out", "motions are written to files: add --out DIR")
        from armid.response.campaign import plan_sweep

        campaign = plan_sweep(robot, plan, frequencies=frequency_hz, **planned, **asked)
        motions = {sweep.name: sweep.motion for sweep in campaign.sweeps}
        return campaign, (*campaign.save(out), *program_files(campaign.robot, motions, controller, out, "response"))
    if not logs:
        raise InputError(f"sweep {robot}", "no LOG given", "recordings of one axis each, or --plan POSES")
    from armid.response.sweep import sweep as library

    return library(robot, logs, frequencies=frequency_hz, data_root=data_root, **answered, **asked)
