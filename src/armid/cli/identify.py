"""`armid identify`: robot and logs in, a judged result folder out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from armid.cli import groups
from armid.cli import identify_options as own
from armid.cli import options as opt
from armid.cli.output import progress, render, verb


@verb
@groups.takes(
    *(groups.effects, groups.signals, own.gravity_and_base, own.selection, own.bodies, own.sensor_faults),
    *(groups.reading, groups.arm),
)
def identify(
    robot: opt.RobotArgument,
    logs: opt.LogsArgument,
    validate: opt.ValidateOption = None,
    prior: opt.PriorOption = None,
    cutoff_hz: opt.CutoffOption = None,
    torque_cutoff_hz: opt.TorqueCutoffOption = None,
    torque_delay_ms: opt.TorqueDelayOption = 0.0,
    velocity: opt.VelocityOption = "auto",
    method: Annotated[opt.MethodWord, typer.Option("--method", help="How the unconstrained estimate is made.")] = "wls",
    controller: opt.LoopOption = None,
    strict: opt.StrictOption = False,
    all_faults: opt.AllFaultsOption = False,
    cluster: opt.ClusterOption = None,
    out: opt.OutOption = Path("identified"),
    seed: opt.SeedOption = 0,
    as_json: opt.JsonOption = False,
    **asked: Any,
) -> None:
    """Estimate the arm's parameters, make them physical, test them on held-out motion."""
    from armid.cli.command_line import with_command
    from armid.identification.identify import identify as identified
    from armid.identification.result import Result
    from armid.robot.load import load_robot
    from armid.studies.hand_over import identify_calibrated

    with progress() as tell:
        answer = (identified if asked["correction"] is None else identify_calibrated)(
            load_robot(robot, base=asked.pop("base"), tip=asked.pop("tip")),
            logs,
            validate=validate,
            prior=prior,
            method=method,
            cutoff_hz=cutoff_hz,
            torque_cutoff_hz=torque_cutoff_hz,
            torque_delay=1e-3 * torque_delay_ms,
            velocity=velocity,
            controller=controller,
            strict=strict,
            cluster=cluster,
            seed=seed,
            progress=tell,
            **asked,
        )
        tell("writing")
        answer = with_command(answer)
        files = answer.save(out)
    whole = answer.summary(notes=False, all_faults=True) if all_faults and isinstance(answer, Result) else None
    render(answer, as_json=as_json, files=files, summary=whole)
