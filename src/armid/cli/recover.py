"""`armid recover`: the model inside a controller."""

from __future__ import annotations

from pathlib import Path

from armid.cli import experiment_options as own
from armid.cli import options as opt
from armid.cli.output import busy, render, verb
from armid.errors import InputError


@verb
def recover(
    robot: opt.RobotArgument,
    samples: own.RecoverSamplesArgument = None,
    validate: own.RecoverValidateOption = None,
    along: own.RecoverAlongOption = None,
    motion: own.RecoverMotionOption = None,
    tool: own.RecoverToolOption = None,
    coefficients: own.RecoverCoefficientsOption = False,
    cutoff_hz: own.RecoverCutoffHzOption = 1.0,
    gravity: opt.GravityOption = None,
    rotor_inertia: own.RecoverRotorInertiaOption = False,
    plan: own.RecoverPlanOption = None,
    accept: opt.AcceptOption = None,
    out: opt.OptionalOutOption = None,
    base: opt.BaseLinkOption = None,
    tip: opt.TipOption = None,
    seed: opt.SeedOption = 0,
    as_json: opt.JsonOption = False,
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

    found = busy("reading and fitting", library)(
        robot,
        samples,
        validate=validate,
        along=along,
        torque=motion,
        tool=tool,
        rotor_inertia=rotor_inertia,
        coefficients=coefficients,
        gravity=gravity,
        cutoff_hz=cutoff_hz,
        accept=accept or (),
        base=base,
        tip=tip,
    )
    render(found, as_json=as_json, out=out)
