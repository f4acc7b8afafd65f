"""`armid plan`: the fastest motion along a path that the identified arm can follow."""

from __future__ import annotations

from pathlib import Path

from armid.cli import experiment_options as own
from armid.cli import options as opt
from armid.cli.output import busy, render, verb
from armid.cli.program import program_files


@verb
def plan(
    result: opt.ResultArgument,
    path: own.PlanPathArgument,
    confidence: own.PlanConfidenceOption = None,
    margin: own.PlanMarginOption = 0.05,
    jerk: own.PlanJerkOption = True,
    limits_file: opt.LimitsFileOption = None,
    max_acceleration: opt.AccelerationOption = None,
    max_jerk: opt.JerkOption = None,
    max_torque: opt.TorqueLimitOption = None,
    cell: opt.CellOption = None,
    collisions: own.PlanCollisionsOption = True,
    loaded: own.PlanLoadedOption = True,
    passive: own.PlanPassiveOption = None,
    points: own.PlanPointsOption = 1000,
    rate_hz: own.PlanRateHzOption = 1000.0,
    force: own.PlanForceOption = False,
    controller: opt.OptionalControllerOption = None,
    out: opt.OutOption = Path("plan"),
    seed: opt.SeedOption = 0,
    as_json: opt.JsonOption = False,
) -> None:
    """Time-optimal motion along a path within torque, velocity, acceleration and jerk limits."""
    from armid.planning.plan import plan_motion

    done = busy("planning", plan_motion)(
        result,
        path,
        confidence=confidence,
        margin=margin,
        jerk=jerk,
        limits_file=limits_file,
        max_acceleration=max_acceleration,
        max_jerk=max_jerk,
        max_torque=max_torque,
        cell=cell,
        collisions=collisions,
        loaded=loaded,
        passive=passive,
        points=points,
        force=force,
        seed=seed,
    )
    files = done.save(out, rate_hz=rate_hz)
    programs = program_files(done.model.robot, {"motion": done.trajectory}, controller, out, "plan")
    render(done, as_json=as_json, files=(*files, *programs))
