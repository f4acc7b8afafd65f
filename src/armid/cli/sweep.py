"""`armid sweep`: inertia and friction of single axes from their response to sines."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from armid.cli import options as opt
from armid.cli.output import progress, render, verb
from armid.cli.program import program_files
from armid.errors import InputError


@verb
def sweep(
    robot: opt.RobotArgument,
    logs: Annotated[list[str] | None, typer.Argument(metavar="LOG...", help="One axis at one pose each.")] = None,
    frequency_hz: Annotated[
        list[float] | None, typer.Option("--frequency-hz", help="Of the sines; found in the spectrum by default.")
    ] = None,
    parameters: Annotated[
        bool, typer.Option("--parameters", help="Base parameters of the load-side inertia from all of them.")
    ] = False,
    predict: Annotated[
        Path | None,
        typer.Option("--predict", metavar="POSES", help="Inertias of all axes at these poses too (CSV q1..qn)."),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            metavar="POSES",
            help="Instead: write the motions for these poses (poses.json of `armid poses`, or CSV q1..qn).",
        ),
    ] = None,
    axis: Annotated[list[str] | None, typer.Option("--axis", help="With --plan: which joints; all by default.")] = None,
    chirp: Annotated[bool, typer.Option("--chirp", help="With --plan: one chirp instead of sines.")] = False,
    minutes: Annotated[
        float | None,
        typer.Option("--minutes", help="With --plan: measuring time in all; 8 s per measurement by default."),
    ] = None,
    torque_noise_percent: Annotated[
        float, typer.Option("--torque-noise-percent", help="With --plan: of the torque limit, per sample.")
    ] = 0.3,
    cell: opt.CellOption = None,
    rate_hz: Annotated[float, typer.Option("--rate-hz", help="With --plan: of the recording.")] = 1000.0,
    controller: opt.OptionalControllerOption = None,
    data_root: opt.DataRootOption = None,
    out: opt.OptionalOutOption = None,
    base: opt.BaseLinkOption = None,
    tip: opt.TipOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Axis inertia and viscous friction from frequency response.

    For example `armid sweep mabi-max100 axis1-*.csv --parameters`.
    """
    started = perf_counter()
    if plan is not None:
        if out is None:
            raise InputError("--plan", "given without --out", "motions are written to files: add --out DIR")
        from armid.response.campaign import plan_sweep

        campaign = plan_sweep(
            robot,
            plan,
            axes=axis,
            frequencies=frequency_hz,
            chirp=chirp,
            minutes=minutes,
            torque_noise=1e-2 * torque_noise_percent,
            cell=cell,
            rate_hz=rate_hz,
            base=base,
            tip=tip,
        )
        motions = {sweep.name: sweep.motion for sweep in campaign.sweeps}
        files = (*campaign.save(out), *program_files(campaign.robot, motions, controller, out))
        render(campaign, as_json=as_json, started=started, files=files)
        return
    if not logs:
        raise InputError(f"sweep {robot}", "no LOG given", "recordings of one axis each, or --plan POSES")
    from armid.response.sweep import sweep as library

    with progress() as tell:
        tell("reading and fitting")
        found = library(
            robot,
            logs,
            frequencies=frequency_hz,
            parameters=parameters,
            predict=predict,
            data_root=data_root,
            base=base,
            tip=tip,
        )
    render(found, as_json=as_json, started=started, files=() if out is None else found.save(out))
