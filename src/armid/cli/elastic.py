"""`armid elastic`: stiffness and motor inertia of elastic joints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.output import EXIT_UNTRUSTED, BaseLinkOption, JsonOption, TipOption, console, emit, show_notes, verb

if TYPE_CHECKING:
    from armid.estimation.elastic import Transmission


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
    cutoff_hz: Annotated[float, typer.Option("--cutoff-hz", help="Low-pass on everything.")] = 10.0,
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

    from armid.estimation.elastic import STILL, TransmissionSearch
    from armid.logs.log import Channel
    from armid.logs.read import ReadOptions, read_log
    from armid.robot.load import load_robot

    arm = None if robot is None else load_robot(robot, base=base, tip=tip)
    read = [read_log(path, arm, options=ReadOptions(data_root=data_root)) for path in logs]
    moving = np.ptp(read[0][Channel.POSITION], axis=0) > STILL
    names = joint or [name for name, moves in zip(read[0].joints, moving, strict=True) if moves]
    found = [TransmissionSearch(cutoff=cutoff_hz).fit(read, name, arm) for name in names]
    show(found)
    emit({"joints": [as_dict(t) for t in found]}, as_json=as_json)
    if any(note.severity.value == "error" for t in found for note in t.notes):
        raise typer.Exit(EXIT_UNTRUSTED)


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
        "notes": [note.as_dict() for note in t.notes],
    }


def show(found: list[Transmission]) -> None:
    """For people."""
    from rich.table import Table

    screen = console()
    table = Table("joint", "stiffness N m/rad", "+-", "motor inertia kg m^2", "+-", "Coulomb N m", "encoder lag ms")
    for t in found:
        numbers = (
            t.stiffness, t.standard_deviations[0], t.rotor_inertia, t.standard_deviations[1], t.coulomb, 1e3 * t.lag,
        )  # fmt: skip
        table.add_row(t.joint, *(f"{x:.3g}" for x in numbers))
    screen.print(table)
    for t in found:
        show_notes(t.notes)
