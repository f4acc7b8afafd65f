"""`armid identify`: robot and logs in, a judged result folder out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from armid.cli.bodies import BoundsOption, ConsistencyOption, PriorWeightOption, RegulariserOption
from armid.cli.options import (
    AcceptOption,
    BaseLinkOption,
    CutoffOption,
    DataRootOption,
    FrictionOption,
    GravityOption,
    JsonOption,
    LogsArgument,
    OutOption,
    PayloadRunsOption,
    RobotArgument,
    RotorOption,
    SeedOption,
    StepOption,
    TipOption,
    TorqueDelayOption,
    TorquesOption,
    VelocityOption,
)
from armid.cli.output import check_folder, progress, render, verb
from armid.cli.variadic import VariadicCommand
from armid.parameters.effects import DEFAULT_FRICTION, PayloadRuns, TorqueSide

MethodWord = Literal["ols", "wls", "huber", "tukey", "ridge", "torque-error", "tls", "iv"]
EssentialWord = Literal["significance", "bic"]
ValidateOption = Annotated[
    list[str] | None, typer.Option("--validate", metavar="LOG", help="Held-out recording; repeatable.")
]
PriorOption = Annotated[
    Path | None, typer.Option("--prior", metavar="RESULT", help="Add the Information of an earlier result.")
]
TorqueCutoffOption = Annotated[float | None, typer.Option("--torque-cutoff-hz", help="Another low-pass on torque.")]
FindGravityOption = Annotated[
    bool, typer.Option("--find-gravity", help="Estimate base tilt and mounting from the torque, and use them.")
]
EssentialOption = Annotated[
    bool, typer.Option("--essential", help="Also list the parameters that are not essential, with their price.")
]
FRAME_HELP = "Of --gravity; sensor is the levelled instrument that --correction was measured with."
FrameOption = Annotated[str, typer.Option("--gravity-frame", metavar="base|sensor[:NAME]", help=FRAME_HELP)]
CorrectionOption = Annotated[
    Path | None,
    typer.Option("--correction", metavar="FILE", help="Calibrated kinematics: correction.json of armid calibrate."),
]


def register(app: typer.Typer) -> None:
    app.command("identify", cls=VariadicCommand)(identify)


@verb
def identify(
    robot: RobotArgument,
    logs: LogsArgument,
    validate: ValidateOption = None,
    prior: PriorOption = None,
    friction: FrictionOption = DEFAULT_FRICTION,
    rotor_inertia: RotorOption = False,
    payload: PayloadRunsOption = PayloadRuns.NONE,
    torques: TorquesOption = TorqueSide.LINK,
    cutoff_hz: CutoffOption = None,
    torque_cutoff_hz: TorqueCutoffOption = None,
    torque_delay_ms: TorqueDelayOption = 0.0,
    velocity: VelocityOption = "auto",
    method: Annotated[MethodWord, typer.Option("--method", help="Of the free estimate.")] = "wls",
    find_gravity: FindGravityOption = False,
    essential: EssentialOption = False,
    essential_by: Annotated[
        EssentialWord, typer.Option("--essential-by", help="When --essential lets a parameter go.")
    ] = "significance",
    gravity: GravityOption = None,
    gravity_frame: FrameOption = "base",
    consistency: ConsistencyOption = "lmi",
    regulariser: RegulariserOption = "pull-back",
    prior_weight: PriorWeightOption = 0.1,
    bounds: BoundsOption = None,
    correction: CorrectionOption = None,
    step: StepOption = None,
    data_root: DataRootOption = None,
    accept: AcceptOption = None,
    out: OutOption = Path("identified"),
    seed: SeedOption = 0,
    base: BaseLinkOption = None,
    tip: TipOption = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate the arm's parameters, make them physical, test them on held-out motion."""
    from time import perf_counter

    started = perf_counter()
    from armid.cli.command_line import with_command
    from armid.identification.identify import identify as identified
    from armid.identification.stored import check_replaceable
    from armid.logs.read import ReadOptions
    from armid.robot.load import load_robot
    from armid.studies.hand_over import identify_calibrated

    check_replaceable(out)
    check_folder(out)
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
            torque_delay=1e-3 * torque_delay_ms,
            velocity=velocity,
            find_gravity=find_gravity,
            essential=essential_by if essential else None,
            gravity=gravity,
            gravity_frame=gravity_frame,
            consistency=consistency,
            regulariser=regulariser,
            prior_weight=prior_weight,
            bounds=bounds,
            correction=correction,
            accept=accept or (),
            options=ReadOptions(step=step, data_root=data_root),
            seed=seed,
            progress=tell,
        )
        tell("writing")
        answer = with_command(answer)
        files = answer.save(out)
    render(answer, as_json=as_json, started=started, files=files)
