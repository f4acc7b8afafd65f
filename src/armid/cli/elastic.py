"""`armid elastic`: stiffness and motor inertia of elastic joints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.options import BaseLinkOption, JsonOption, TipOption
from armid.cli.output import EXIT_UNTRUSTED, console, emit, show_notes, verb

if TYPE_CHECKING:
    from armid.logs.log import Log
    from armid.robot.robot import Robot
    from armid.transmission.two_encoders import Transmission


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("elastic")(elastic)


@verb
def elastic(
    logs: Annotated[
        list[str], typer.Argument(metavar="LOG...", help="Motor and link position, and motor torque, of one arm.")
    ],
    joint: Annotated[
        list[str] | None, typer.Option("--joint", help="Which; by default every one whose link moves.")
    ] = None,
    robot: Annotated[
        str | None, typer.Option(metavar="ROBOT", help="Kinematics: removes the bias that encoder errors cause.")
    ] = None,
    motor_inertia: Annotated[
        list[str] | None,
        typer.Option("--motor-inertia", metavar="JOINT=KGM2", help="Known, times gear ratio squared: not fitted."),
    ] = None,
    eccentric: Annotated[
        bool | None,
        typer.Option(
            "--eccentric/--centric", help="Encoder error once per turn; where gravity loads nothing by default."
        ),
    ] = None,
    one_sensor: Annotated[
        bool,
        typer.Option("--one-sensor", help="Link encoders and motor torque only; needs --robot ([Gaz2014] eqs. 4-5)."),
    ] = False,
    cutoff_hz: Annotated[
        float | None, typer.Option("--cutoff-hz", help="Low-pass on everything; 10, with one sensor 6.")
    ] = None,
    data_root: Annotated[
        Path | None, typer.Option("--data-root", metavar="DIR", help="Where mapping files find recordings.")
    ] = None,
    base: BaseLinkOption = None,
    tip: TipOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stiffness and motor inertia of joints with encoders on both sides of the transmission.

    For example `armid elastic kr300-A-elastic.yaml --joint joint2 --robot kr300.yaml`.
    """
    import numpy as np

    from armid.logs.log import Channel
    from armid.logs.read import ReadOptions, read_log
    from armid.robot.load import load_robot
    from armid.transmission.two_encoders import STILL, TransmissionSearch

    arm = None if robot is None else load_robot(robot, base=base, tip=tip)
    read = [read_log(path, arm, options=ReadOptions(data_root=data_root)) for path in logs]
    moving = np.ptp(read[0][Channel.POSITION], axis=0) > STILL
    names = joint or [name for name, moves in zip(read[0].joints, moving, strict=True) if moves]
    inertia = known_inertias(motor_inertia or [], read[0].joints)
    if one_sensor:
        emit_one_sensor(read, names, arm, inertia, cutoff_hz, as_json=as_json)
        return
    search = TransmissionSearch(cutoff=cutoff_hz or 10.0, motor_inertia=inertia, eccentric=eccentric)
    found = [search.fit(read, name, arm) for name in names]
    show(found)
    emit({"joints": [as_dict(t) for t in found]}, as_json=as_json)
    if any(note.severity.value == "error" for t in found for note in t.notes):
        raise typer.Exit(EXIT_UNTRUSTED)


def emit_one_sensor(
    logs: list[Log],
    names: list[str],
    arm: Robot | None,
    inertia: dict[str, float],
    cutoff_hz: float | None,
    *,
    as_json: bool,
) -> None:
    """Elasticity without the motors' encoders."""
    from dataclasses import asdict

    from rich.table import Table

    from armid.errors import InputError
    from armid.transmission.one_sensor import OneSensorSearch, resonance

    if arm is None:
        raise InputError("--one-sensor", "no robot", "give --robot: the joint torque is computed from its kinematics")
    search = OneSensorSearch(cutoff=cutoff_hz or 6.0, motor_inertia=inertia)
    found = [search.fit(logs, name, arm) for name in names]
    table = Table("joint", "B / K s^2", "+-", "resonance Hz", "stiffness N m/rad", "+-", "error", "as a rigid joint")
    for t in found:
        numbers = (t.ratio, t.ratio_deviation, resonance(t.ratio), t.stiffness, t.stiffness_deviation)
        table.add_row(
            t.joint, *(f"{x:.3g}" for x in numbers), f"{t.relative_error:.2%}", f"{t.relative_error_rigid:.2%}"
        )
    console().print(table)
    show_notes([note for t in found for note in t.notes])
    emit({"joints": [asdict(t) | {"notes": [n.as_dict() for n in t.notes]} for t in found]}, as_json=as_json)
    if any(note.severity.value == "error" for t in found for note in t.notes):
        raise typer.Exit(EXIT_UNTRUSTED)


def known_inertias(words: list[str], joints: tuple[str, ...]) -> dict[str, float]:
    """`joint1=609` as a mapping."""
    from armid.errors import InputError, UnknownNameError

    out = {}
    for word in words:
        name, _, text = word.partition("=")
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not 0.0 < value < float("inf"):
            raise InputError("--motor-inertia", repr(word), "expected JOINT=KGM2, for example joint1=600")
        if name not in joints:
            raise UnknownNameError("joint", name, joints)
        out[name] = value
    return out


def as_dict(t: Transmission) -> dict[str, Any]:
    return {
        "joint": t.joint,
        "stiffness": t.stiffness,
        "rotor_inertia": t.rotor_inertia,
        "viscous": t.viscous,
        "coulomb": t.coulomb,
        "offset": t.offset,
        "encoder_lag": t.lag,
        "standard_deviations": dict(
            zip(
                ("stiffness", "rotor_inertia", "viscous", "coulomb", "offset"),
                t.standard_deviations.tolist(),
                strict=True,
            )
        ),
        "relative_error": t.relative_error,
        "load_deflection": t.load_deflection,
        "encoder_error": t.encoder_error,
        "notes": [note.as_dict() for note in t.notes],
    }


def show(found: list[Transmission]) -> None:
    """For people."""
    from rich.table import Table

    screen = console()
    head = ("joint", "stiffness N m/rad", "+-", "motor inertia kg m^2", "+-", "Coulomb N m", "encoder lag ms")
    table = Table(*head, "load deflects rad", "encoders' error rad")
    for t in found:
        numbers = (
            t.stiffness,
            t.standard_deviations[0],
            t.rotor_inertia,
            t.standard_deviations[1],
            t.coulomb,
            1e3 * t.lag,
            t.load_deflection,
            t.encoder_error,
        )
        table.add_row(t.joint, *("-" if x != x else f"{x:.3g}" for x in numbers))
    screen.print(table)
    for t in found:
        show_notes(t.notes)
