"""`armid online`: identify a live stream."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli import groups
from armid.cli import options as opt
from armid.cli.output import EXIT_UNTRUSTED, emit, render, verb
from armid.parameters.effects import FRICTION_NAMES, TorqueSide

if TYPE_CHECKING:
    from armid.online.state import OnlineState


def _model(
    friction: Annotated[
        str | None,
        typer.Option(
            "--friction",
            metavar="LIST",
            parser=opt.word_list(FRICTION_NAMES),
            help="Of viscous, coulomb, offset; 'none' for none. All by default; a RESULT has its own.",
        ),
    ] = None,
    rotor_inertia: opt.RotorOption = False,
    torques: opt.TorquesOption = TorqueSide.LINK,
    forget: Annotated[
        float | None, typer.Option("--forget-s", help="Time constant of forgetting; never by default.")
    ] = None,
) -> groups.Keywords:
    """What is estimated."""
    return dict(locals())


@verb
@groups.takes(_model, groups.arm)
def online(
    arm: Annotated[
        str,
        typer.Argument(
            metavar="ROBOT|RESULT",
            help="URDF, robot YAML or catalogue name; or folder of armid identify to go on from.",
        ),
    ],
    stream: Annotated[
        str,
        typer.Argument(
            metavar="[STREAM]",
            help="- for JSON lines on stdin (default), udp://HOST:PORT, rtde://HOST[:PORT]?torque=FIELD.",
        ),
    ] = "-",
    *,
    rate_hz: Annotated[float, typer.Option("--rate-hz", help="Samples per second of the stream.")],
    follow: Annotated[bool, typer.Option("--follow", help="A JSON line with the estimate every second.")] = False,
    out: opt.OptionalOutOption = None,
    as_json: opt.JsonOption = False,
    **asked: Any,
) -> None:
    """Base parameters of an arm while it moves, from a live stream.

    A line is `{"time": 0.001, "position": [...], "torque": [...]}`, for example
    `stream | armid online iiwa14 --rate-hz 1000 --follow`; datagrams hold the same lines, and UR controllers speak RTDE.
    """
    from armid.logs.live.stream import open_stream
    from armid.online.estimator import OnlineEstimator

    estimator = OnlineEstimator(arm, rate=rate_hz, **asked)
    told, noticed = float("-inf"), 0
    samples = open_stream(stream, estimator.robot, rate_hz=rate_hz, side=estimator.effects.torques)
    for sample in samples:
        estimator.update_positions(sample.q, sample.torque, time=sample.time)
        for event in estimator.events[noticed:]:
            typer.echo(event.message, err=True)
        noticed = len(estimator.events)
        if follow and sample.time >= told + 1.0:
            told = sample.time
            tell(estimator.state(), sample.time)
    state = estimator.state()
    if not follow:
        render(state, as_json=as_json, out=out)
        return
    typer.echo(state.summary(), err=True)
    if out is not None:
        state.save(out)
    if state.reasons:
        raise typer.Exit(EXIT_UNTRUSTED)


def tell(state: OnlineState, time: float) -> None:
    """One line with the present values."""
    line = {
        "time": time - state.delay,
        "values": state.values,
        "frozen": state.frozen,
        "events": [event.as_dict() for event in state.events],
    }
    emit(line, as_json=True)
    sys.stdout.flush()
