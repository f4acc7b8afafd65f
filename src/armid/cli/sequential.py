"""`armid sequential`: one link after the other, from the tip."""

from __future__ import annotations

from typing import Any

from armid.cli import experiment_options as own
from armid.cli import options as opt
from armid.cli.experiment import Answer, experiment
from armid.parameters.effects import DEFAULT_FRICTION


@experiment
def sequential(
    robot: opt.RobotArgument,
    logs: opt.LogsArgument,
    friction: opt.LinearFrictionOption = DEFAULT_FRICTION,
    rotor_inertia: opt.RotorOption = False,
    torques: own.SequentialTorquesOption = "link",
    from_nominal: own.SequentialFromNominalOption = False,
    start: own.SequentialStartOption = None,
    plan: own.SequentialPlanOption = None,
    locked: own.SequentialLockedOption = None,
    hold: own.SequentialHoldOption = False,
    commanded: own.SequentialCommandedOption = False,
    as_recorded: own.SequentialAsRecordedOption = False,
    velocity: own.SequentialVelocityOption = "position",
    cutoff_hz: opt.CutoffOption = None,
    torque_delay_ms: own.SequentialTorqueDelayMsOption = None,
    accept: opt.AcceptOption = None,
    step: opt.StepOption = None,
    **where: Any,
) -> Answer:
    """Base parameters joint by joint from the tip, proximal joints locked or moving.

    `armid design ROBOT --sequential` plans the motions; a joint that stands still in a recording counts as locked, and the
    recording serves the first joint that moves. For example `armid sequential cmu-dd-arm2 stage3.csv stage2.csv stage1.csv`.
    """
    from armid.sequential.identify import identify_sequential

    return identify_sequential(
        robot,
        logs,
        friction=friction,
        rotor_inertia=rotor_inertia,
        torques=torques,
        start=start or ("nominal" if from_nominal else None),
        plan=plan,
        locked=locked or (),
        hold=hold,
        commanded=commanded,
        as_recorded=as_recorded,
        velocity=velocity,
        cutoff_hz=cutoff_hz,
        torque_delay=None if torque_delay_ms is None else 1e-3 * torque_delay_ms,
        accept=accept or (),
        step=step,
        **where,
    )
