"""`armid sweep`: inertia and friction of single axes from their response to sines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from armid.cli import experiment_options as own
from armid.cli import options as opt
from armid.cli.experiment import Answer, experiment
from armid.cli.program import program_files
from armid.errors import InputError


@experiment
def sweep(
    robot: opt.RobotArgument,
    logs: own.SweepLogsArgument = None,
    frequency_hz: own.SweepFrequencyHzOption = None,
    parameters: own.SweepParametersOption = False,
    predict: own.SweepPredictOption = None,
    plan: own.SweepPlanOption = None,
    axis: own.SweepAxisOption = None,
    chirp: own.SweepChirpOption = False,
    minutes: own.SweepMinutesOption = None,
    torque_noise_percent: own.SweepTorqueNoisePercentOption = 0.3,
    cell: opt.CellOption = None,
    rate_hz: own.SweepRateHzOption = 1000.0,
    controller: opt.OptionalControllerOption = None,
    *,
    out: Path | None = None,
    data_root: Path | None = None,
    **arm: Any,
) -> Answer:
    """Axis inertia and viscous friction from frequency response.

    For example `armid sweep mabi-max100 axis1-*.csv --parameters`.
    """
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
            **arm,
        )
        motions = {sweep.name: sweep.motion for sweep in campaign.sweeps}
        return campaign, (*campaign.save(out), *program_files(campaign.robot, motions, controller, out, "response"))
    if not logs:
        raise InputError(f"sweep {robot}", "no LOG given", "recordings of one axis each, or --plan POSES")
    from armid.response.sweep import sweep as library

    return library(
        robot,
        logs,
        frequencies=frequency_hz,
        parameters=parameters,
        predict=predict,
        data_root=data_root,
        **arm,
    )
