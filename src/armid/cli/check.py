"""`armid check`: is this log what it claims to be?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from armid.cli import check_options as own
from armid.cli import groups
from armid.cli import options as opt
from armid.cli.output import busy, render, verb
from armid.words import numbers

if TYPE_CHECKING:
    from armid.logs.check import CheckedLogs
    from armid.logs.conditioning.processing import Processing
    from armid.robot.robot import Robot


@verb
@groups.takes(groups.signals, groups.arm)
def check(
    robot: opt.RobotArgument,
    logs: opt.LogsArgument,
    step: opt.StepOption = None,
    side: own.SideOption = None,
    format: own.FormatOption = None,
    topic: own.TopicOption = None,
    data_root: opt.DataRootOption = None,
    cutoff_hz: opt.CutoffOption = None,
    torque_cutoff_hz: opt.TorqueCutoffOption = None,
    gravity: opt.GravityOption = None,
    out: opt.OptionalOutOption = None,
    faults: own.FaultsOption = False,
    all_faults: opt.AllFaultsOption = False,
    thresholds: own.ThresholdsOption = False,
    as_json: own.EagerJsonOption = False,
    **asked: Any,
) -> None:
    """Is this log what it claims to be? Clock, units, signs, joint order, lag, mounting."""
    from armid.logs.check import CheckedLogs, check_log
    from armid.logs.conditioning.processing import Processing, processing_of
    from armid.robot.load import load_robot

    down = numbers("--gravity", gravity, 3, "0,0,-9.81") if gravity else None
    wanted = processing_of(asked.pop("processing"), cutoff_hz=cutoff_hz, torque_cutoff_hz=torque_cutoff_hz)
    arm = load_robot(robot, gravity=down, **asked)
    checked = CheckedLogs(
        logs=tuple(
            busy(f"checking {log}", check_log)(
                log, arm, step=step, side=side, format=format, topic=topic, data_root=data_root
            )
            for log in logs
        )
    )
    found = _faults_of(checked, arm, side, every=all_faults, as_json=as_json) if faults or all_faults else {}
    if wanted != Processing():
        found |= _processed(checked, arm, wanted, as_json=as_json)
    render(checked, as_json=as_json, out=out, timed=False, **found)


def _faults_of(
    checked: CheckedLogs, arm: Robot, side: own.SideWord | None, *, every: bool, as_json: bool
) -> dict[str, Any]:
    """Prints what could be wrong with each log, and gives it for programs."""
    from armid.identification.faults import faults_table
    from armid.identification.faults_in_brief import brief_tables
    from armid.identification.suspects import suspects_or_reason
    from armid.outcome import text_table
    from armid.parameters.effects import TorqueSide

    torques = TorqueSide.LINK if side in (None, "link") else TorqueSide.MOTOR
    all_found = []
    for log in checked.logs:
        found, reason = busy(f"what could be wrong with {log.name}", suspects_or_reason)(arm, log, torques=torques)
        all_found += [fault.as_dict() for fault in found]
        nothing = f"{log.name}: no fault was found or left open among those looked for"
        tables = (faults_table(found),) if every else brief_tables(found)
        text = "\n\n".join(map(text_table, tables)) if found else nothing
        heading = f"{log.name}\n\n" if len(checked.logs) > 1 and not reason else ""
        typer.echo(f"{heading}{reason or text}", err=as_json)
    return {"faults": all_found}


def _processed(checked: CheckedLogs, arm: Robot, wanted: Processing, *, as_json: bool) -> dict[str, Any]:
    """Prints what a way of processing makes of each log that may be used, and gives it for programs."""
    from armid.logs.processed import processed_log
    from armid.logs.recording import open_recording
    from armid.outcome import text_table

    done = [processed_log(open_recording(log, arm), wanted.conditioning()) for log in checked.logs if log.ok]
    for each in done:
        typer.echo(text_table(each.table()) + "\n", err=as_json)
    return {"processing": [each.as_dict() for each in done]}
