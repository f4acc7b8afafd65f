"""`armid online`: identify a live stream."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.options import BaseLinkOption, JsonOption, RobotArgument, TipOption
from armid.cli.output import console, emit, show_notes, verb
from armid.documents import plain

if TYPE_CHECKING:
    from armid.online.stream import OnlineIdentifier


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("online")(online)


@verb
def online(
    robot: RobotArgument,
    rate_hz: Annotated[float, typer.Option("--rate-hz", help="Samples per second of the stream.")],
    friction: Annotated[str, typer.Option(help="Of viscous, coulomb, offset; 'none' for none.")] = "viscous,coulomb",
    rotor_inertia: Annotated[bool, typer.Option("--rotor-inertia", help="Rotor inertias too.")] = False,
    torques: Annotated[str, typer.Option(help="link, motor, both or difference.")] = "link",
    forget_s: Annotated[
        float | None, typer.Option("--forget-s", help="Time constant of forgetting; never by default.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="A JSON line with the estimate every second.")] = False,
    base: BaseLinkOption = None,
    tip: TipOption = None,
    as_json: JsonOption = False,
) -> None:
    """Base parameters of an arm while it moves: JSON lines on stdin, one sample each.

    A line is `{"time": 0.001, "position": [...], "torque": [...]}`, for example
    `stream | armid online iiwa14 --rate-hz 1000 --follow`.
    """
    from armid.estimation.recursive.estimator import ChangeDetection
    from armid.estimation.recursive.forgetting import Forgetting
    from armid.online.stream import OnlineIdentifier, parsed_samples
    from armid.parameters.effects import effects_of
    from armid.robot.load import load_robot

    arm = load_robot(robot, base=base, tip=tip)
    effects = effects_of(friction, rotor_inertia=rotor_inertia, payload="none", torques=torques)
    identifier = OnlineIdentifier(
        arm,
        effects,
        rate=rate_hz,
        forgetting=None if forget_s is None else Forgetting(forget_s),
        detection=ChangeDetection(),
    )
    told = float("-inf")
    for sample in parsed_samples(sys.stdin, arm, effects.torques):
        identifier.push(sample)
        if follow and sample.time >= told + 1.0:
            told = sample.time
            tell(identifier, sample.time)
    if not follow:
        result = summary(identifier)
        show(identifier, result)
        emit(result, as_json=as_json)


def tell(identifier: OnlineIdentifier, time: float) -> None:
    """One line with the present values."""
    import json

    estimator = identifier.estimator
    line = {
        "time": time - identifier.delay,
        "values": dict(zip(estimator.names, estimator.values, strict=True)),
        "frozen": list(estimator.excitation().frozen),
        "events": [note.as_dict() for note in identifier.events],
    }
    sys.stdout.write(json.dumps(plain(line), allow_nan=False) + "\n")
    sys.stdout.flush()


def summary(identifier: OnlineIdentifier) -> dict[str, Any]:
    """The last estimate with its covariance; raises when something was never excited."""
    estimator = identifier.estimator
    estimate = estimator.estimate()
    excitation = estimator.excitation()
    return {
        "base_parameters": len(estimate),
        "samples": estimator.samples,
        "gaps": identifier.gaps,
        "delay": identifier.delay,
        "condition_number_scaled": excitation.condition_number_scaled,
        "frozen": list(excitation.frozen),
        "parameters": [
            {"name": n, "value": float(v), "standard_deviation": float(s)}
            for n, v, s in zip(estimate.names, estimate.values, estimate.standard_deviations, strict=True)
        ],
        "events": [note.as_dict() for note in identifier.events],
    }


def show(identifier: OnlineIdentifier, result: dict[str, Any]) -> None:
    """For people."""
    screen = console()
    screen.print(
        f"{result['samples']} samples, {result['base_parameters']} base parameters, "
        f"condition number {result['condition_number_scaled']:.0f} (scaled), {result['gaps']} gaps"
    )
    show_notes(identifier.events)
