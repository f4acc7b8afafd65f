"""`armid identify`: robot and logs in, a judged result folder out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.bodies import (
    BoundsOption,
    ConsistencyOption,
    PriorWeightOption,
    RegulariserOption,
    bounds_of,
    consistency_summary,
    regulariser_of,
    show_consistency,
)
from armid.cli.options import (
    AcceptOption,
    BaseLinkOption,
    CutoffOption,
    DataRootOption,
    FrictionOption,
    JsonOption,
    LogsArgument,
    OutOption,
    PayloadRunsOption,
    RobotArgument,
    RotorOption,
    SeedOption,
    StepOption,
    TipOption,
    TorquesOption,
    VelocityOption,
)
from armid.cli.output import EXIT_UNTRUSTED, check_folder, console, emit, progress, verb
from armid.cli.variadic import VariadicCommand
from armid.parameters.effects import DEFAULT_FRICTION, PayloadRuns, TorqueSide, effects_of
from armid.words import choice, numbers

if TYPE_CHECKING:
    from armid.identification.result import Result
    from armid.logs.log import Log
    from armid.logs.read import ReadOptions
    from armid.robot.robot import Robot

HELD_OUT = 0.4
"""Fraction of the time of every log that is kept aside when no validation log is given."""


def register(app: typer.Typer) -> None:
    app.command("identify", cls=VariadicCommand)(identify)


@verb
def identify(
    robot: RobotArgument,
    logs: LogsArgument,
    validate: Annotated[
        list[str] | None, typer.Option("--validate", metavar="LOG", help="Held-out recording; repeatable.")
    ] = None,
    prior: Annotated[
        Path | None, typer.Option("--prior", metavar="RESULT", help="Start from an earlier result.")
    ] = None,
    friction: FrictionOption = DEFAULT_FRICTION,
    rotor_inertia: RotorOption = False,
    payload: PayloadRunsOption = PayloadRuns.NONE,
    torques: TorquesOption = TorqueSide.LINK,
    cutoff_hz: CutoffOption = None,
    torque_cutoff_hz: Annotated[
        float | None, typer.Option("--torque-cutoff-hz", help="Another low-pass on torque.")
    ] = None,
    torque_delay_ms: Annotated[
        float, typer.Option("--torque-delay-ms", help="How late torque is against the motion; it is moved back.")
    ] = 0.0,
    velocity: VelocityOption = "auto",
    method: Annotated[
        str,
        typer.Option("--method", metavar="ols|wls|huber|tukey|ridge|torque-error|tls|iv", help="Of the free estimate."),
    ] = "wls",
    find_gravity: Annotated[
        bool, typer.Option("--find-gravity", help="Estimate base tilt and mounting from the torque, and use them.")
    ] = False,
    essential: Annotated[
        bool, typer.Option("--essential", help="Also list the parameters that are not essential, with their price.")
    ] = False,
    essential_by: Annotated[
        str, typer.Option("--essential-by", metavar="significance|bic", help="When --essential lets a parameter go.")
    ] = "significance",
    gravity: Annotated[
        str | None,
        typer.Option("--gravity", metavar="X,Y,Z", help="In the base frame [m/s^2]; the description's by default."),
    ] = None,
    gravity_frame: Annotated[
        str,
        typer.Option(
            "--gravity-frame",
            metavar="base|sensor[:NAME]",
            help="Of --gravity; sensor is the levelled instrument that --correction was measured with.",
        ),
    ] = "base",
    consistency: ConsistencyOption = "lmi",
    regulariser: RegulariserOption = "pull-back",
    prior_weight: PriorWeightOption = 0.1,
    bounds: BoundsOption = None,
    correction: Annotated[
        Path | None,
        typer.Option("--correction", metavar="FILE", help="Calibrated kinematics: correction.json of armid calibrate."),
    ] = None,
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
    from armid.cli.hand_over import hand_over_summary, show_hand_over, with_correction, write_hand_over
    from armid.consistency.possible import Way
    from armid.estimation.essential import Rule
    from armid.identification.pipeline import identify as library
    from armid.identification.prepare import payload_effects
    from armid.identification.result import check_replaceable, load_result, save_result
    from armid.identification.settings import Identification, Method
    from armid.logs.conditioning import VelocitySource
    from armid.robot.load import load_robot

    check_replaceable(out)
    check_folder(out)
    with progress() as tell:
        tell("reading")
        down = numbers("--gravity", gravity, 3, "0,0,-9.81") if gravity else None
        check_gravity_frame(gravity_frame, gravity, correction)
        arm = load_robot(robot, base=base, tip=tip, gravity=None if correction else down)
        options = read_options(step, data_root)
        train, held_out = training_and_held_out(arm, logs, validate or [], options)
        effects = payload_effects(
            effects_of(friction, rotor_inertia=rotor_inertia, payload=payload, torques=torques, shapes=True),
            [*train, *held_out],
        )
        settings = Identification(
            effects=effects,
            conditioning=conditioning_of(cutoff_hz, torque_cutoff_hz, accept, torque_delay=1e-3 * torque_delay_ms),
            velocity=None if velocity == "auto" else choice("velocity source", velocity, VelocitySource),
            method=choice("method", method, Method),
            find_gravity=find_gravity,
            essential=choice("rule for essential parameters", essential_by, Rule) if essential else None,
            regulariser=regulariser_of(regulariser, prior_weight),
            bounds=bounds_of(bounds, arm),
            way=choice("consistency", consistency, Way),
            prior=load_result(prior) if prior else None,
            seed=seed,
        )
        if correction is None:
            result, handed = library(arm, train, held_out, settings, progress=tell), None
        else:
            result, handed = with_correction(
                arm, correction, train, held_out, settings, down, tell, frame=gravity_frame
            )
        tell("writing")
        result = with_command(result)
        files = save_result(result, out)
        if handed is not None:
            files += write_hand_over(handed, out)
    summary = contract(result, files, perf_counter() - started)
    if handed is not None:
        summary["hand_over"] = hand_over_summary(handed)
        show_hand_over(handed)
    show(result, out)
    emit(summary, as_json=as_json)
    if result.verdict != "trusted":
        raise typer.Exit(EXIT_UNTRUSTED)


def read_options(step: float | None, data_root: Path | None) -> ReadOptions:
    from armid.logs.read import ReadOptions

    return ReadOptions(step=step, data_root=data_root)


def training_and_held_out(
    arm: Robot, logs: list[str], validate: list[str], options: ReadOptions
) -> tuple[list[Log], list[Log]]:
    """Checked logs; without validation logs the last part of the time of each is held out."""
    read = [checked_log(path, arm, options) for path in logs]
    if validate:
        return read, [checked_log(path, arm, options) for path in validate]
    pairs = [log.split(1.0 - HELD_OUT) for log in read]
    return [a for a, _ in pairs], [b for _, b in pairs]


def checked_log(path: str, arm: Robot, options: ReadOptions) -> Log:
    """A log with the notes of its health checks."""
    from armid.logs import read_log
    from armid.logs.health.check import check_log

    return check_log(read_log(path, arm, options=options), arm)


def check_gravity_frame(frame: str, gravity: str | None, correction: Path | None) -> None:
    """Refuses a frame that nothing is known about.

    Raises:
        InputError: a sensor's frame without gravity in it, or without the calibration that places it.
    """
    from armid.errors import InputError

    if frame != "base" and (gravity is None or correction is None):
        raise InputError(
            "--gravity-frame", frame, "a sensor's frame needs --gravity in it and --correction to place it"
        )


def conditioning_of(
    cutoff_hz: float | None, torque_cutoff_hz: float | None, accept: list[str] | None, *, torque_delay: float = 0.0
) -> Any:
    from armid.logs.conditioning import Conditioning

    return Conditioning(
        cutoff=cutoff_hz, torque_cutoff=torque_cutoff_hz, torque_delay=torque_delay, accept=tuple(accept or ())
    )


def contract(result: Result, files: tuple[Path, ...], seconds: float) -> dict[str, Any]:
    """The keys checks from outside rely on, and a few more."""
    return {
        "base_parameters": len(result.estimate),
        "condition_number": result.condition_number,
        "condition_number_scaled": result.condition_number_scaled,
        "joints": [joint.as_dict() for joint in result.joints],
        "joints_raw": [joint.as_dict() for joint in result.joints_raw],
        "relative_error_train": result.relative_error["train"],
        "relative_error_held_out": result.relative_error["held_out"],
        "physically_consistent": result.certificates.physical,
        "consistency": consistency_summary(result),
        "verdict": result.verdict,
        "reasons": list(result.reasons),
        "conditioning": dict(result.conditioning),
        "gains": {name: {"value": k, "standard_deviation": s} for name, (k, s) in result.gains.items()},
        "friction": {key: value for key, value in result.friction.items() if key != "load"},
        "sensitivity": dict(result.sensitivity),
        "notes": [note.as_dict() for note in result.notes],
        "seconds": seconds,
        "peak_memory_mb": result.peak_memory_mb,
        "files": [str(path) for path in files],
    }


def show(result: Result, out: Path) -> None:
    """A table for people."""
    from rich.table import Table

    screen = console()
    cutoff = result.conditioning.get("torque_cutoff_hz")
    table = Table(
        title=f"{result.robot.name}: {len(result.estimate)} base parameters, condition number {result.condition_number:.4g}"
    )
    for column in ("joint", "train RMSE", "held-out RMSE", "held-out raw", "relative", "unconstrained"):
        table.add_column(column, justify="left" if column == "joint" else "right")
    for joint, raw in zip(result.joints, result.joints_raw, strict=True):
        table.add_row(
            joint.name,
            *(f"{value:.4g}" for value in (joint.train.rmse, joint.held_out.rmse, joint.held_out.rmse_raw)),
            f"{100 * joint.held_out.relative:.1f} %",
            f"{raw.held_out.rmse:.4g}",
        )
    screen.print(table)
    if cutoff:
        screen.print(
            f"torque in N m (N for prismatic joints), low-passed at {cutoff:.3g} Hz; 'raw' is against the unfiltered torque"
        )
    if result.friction:
        show_friction(result)
    essential = result.sensitivity.get("essential")
    if essential:
        kept, price = essential["kept"], essential["removals"][-1]["held_out_error"] if essential["removals"] else 1.0
        screen.print(
            f"{len(kept)} of {len(result.estimate)} base parameters are essential by {essential['rule']}; without the others the "
            f"held-out error is {price:.3f} times as large"
        )
    show_consistency(result, screen)
    colour = "green" if result.verdict == "trusted" else "red"
    screen.print(f"[bold {colour}]{result.verdict}[/] -> {out}")
    for reason in result.reasons:
        screen.print(f"  - {reason}", markup=False)


def show_friction(result: Result) -> None:
    """Whether the shapes of friction pay, and what they are."""
    from rich.table import Table

    record = result.friction
    table = Table(title=f"friction with {', '.join(record['shapes'])} beside linear friction, held-out RMSE")
    quantities = list(dict.fromkeys(key for joint in record["joints"] for key in joint if key != "name"))
    for column in ("joint", "linear", "with shape", "", *quantities):
        table.add_column(column, justify="left" if column in ("joint", "") else "right")
    errors = {row["name"]: row for row in record["held_out"]}
    for joint in record["joints"]:
        row = errors.get(joint["name"])
        worth = ("-", "-", "") if row is None else (f"{row['rmse_linear']:.4g}", f"{row['rmse']:.4g}", pays(row))
        table.add_row(joint["name"], *worth, *(with_deviation(joint.get(key)) for key in quantities))
    console().print(table)


def pays(row: dict[str, Any]) -> str:
    """In a word, whether held-out errors differ beyond chance."""
    return "pays" if row["pays"] else "harms" if row["harms"] else "no difference"


def with_deviation(item: dict[str, Any] | None) -> str:
    if item is None:
        return ""
    s = item["standard_deviation"]
    return f"{item['value']:.3g} +- {s:.1g}" if s is not None and s < float("inf") else f"({item['value']:.3g})"
