"""`armid identify`: robot and logs in, a judged result folder out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from armid.cli import options as opt
from armid.cli.output import progress, render, verb
from armid.parameters.effects import DEFAULT_FRICTION, PayloadRuns, TorqueSide


@verb
def identify(
    robot: opt.RobotArgument,
    logs: opt.LogsArgument,
    validate: opt.ValidateOption = None,
    prior: opt.PriorOption = None,
    friction: opt.FrictionOption = DEFAULT_FRICTION,
    rotor_inertia: opt.RotorOption = False,
    payload: opt.PayloadRunsOption = PayloadRuns.NONE,
    torques: opt.TorquesOption = TorqueSide.LINK,
    cutoff_hz: opt.CutoffOption = None,
    torque_cutoff_hz: opt.TorqueCutoffOption = None,
    processing: opt.ProcessingOption = None,
    average: opt.AverageOption = False,
    period_s: opt.PeriodOption = None,
    filter: opt.FilterOption = None,
    filter_order: opt.FilterOrderOption = None,
    differentiator: opt.DifferentiatorOption = None,
    torque_delay_ms: opt.TorqueDelayOption = 0.0,
    velocity: opt.VelocityOption = "auto",
    method: Annotated[opt.MethodWord, typer.Option("--method", help="How the unconstrained estimate is made.")] = "wls",
    find_gravity: opt.FindGravityOption = False,
    essential: opt.EssentialOption = False,
    essential_by: Annotated[
        opt.EssentialWord, typer.Option("--essential-by", help="By what --essential judges a parameter.")
    ] = "significance",
    keep: opt.KeepOption = None,
    drop: opt.DropOption = None,
    gravity: opt.GravityOption = None,
    gravity_frame: opt.GravityFrameOption = "base",
    consistency: opt.ConsistencyOption = "lmi",
    regulariser: opt.RegulariserOption = "pull-back",
    prior_weight: opt.PriorWeightOption = 0.1,
    bounds: opt.BoundsOption = None,
    correction: opt.CorrectionOption = None,
    imperfections: opt.ImperfectionsOption = "all",
    tolerance: opt.ToleranceOption = None,
    correct: opt.CorrectOption = False,
    sensors: opt.SensorsOption = None,
    controller: opt.LoopOption = None,
    step: opt.StepOption = None,
    data_root: opt.DataRootOption = None,
    accept: opt.AcceptOption = None,
    strict: opt.StrictOption = False,
    cluster: opt.ClusterOption = None,
    out: opt.OutOption = Path("identified"),
    seed: opt.SeedOption = 0,
    base: opt.BaseLinkOption = None,
    tip: opt.TipOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Estimate the arm's parameters, make them physical, test them on held-out motion."""
    from armid.cli.command_line import with_command
    from armid.identification.identify import identify as identified
    from armid.logs.conditioning.processing import processing_of
    from armid.logs.read import ReadOptions
    from armid.robot.load import load_robot
    from armid.studies.hand_over import identify_calibrated

    with progress() as tell:
        answer = (identified if correction is None else identify_calibrated)(
            load_robot(robot, base=base, tip=tip),
            logs,
            validate=validate,
            prior=prior,
            friction=friction,
            rotor_inertia=rotor_inertia,
            payload=payload,
            torques=torques,
            method=method,
            cutoff_hz=cutoff_hz,
            torque_cutoff_hz=torque_cutoff_hz,
            processing=processing_of(
                processing,
                filter=filter,
                order=filter_order,
                differentiator=differentiator,
                average=average,
                period_s=period_s,
            ),
            torque_delay=1e-3 * torque_delay_ms,
            velocity=velocity,
            find_gravity=find_gravity,
            essential=essential_by if essential else None,
            keep=keep or (),
            drop=drop or (),
            gravity=gravity,
            gravity_frame=gravity_frame,
            consistency=consistency,
            regulariser=regulariser,
            prior_weight=prior_weight,
            bounds=bounds,
            correction=correction,
            imperfections=imperfections,
            tolerance=tolerance or (),
            correct=correct,
            sensors=sensors,
            controller=controller,
            accept=accept or (),
            strict=strict,
            cluster=cluster,
            options=ReadOptions(step=step, data_root=data_root),
            seed=seed,
            progress=tell,
        )
        tell("writing")
        answer = with_command(answer)
        files = answer.save(out)
    render(answer, as_json=as_json, files=files)
