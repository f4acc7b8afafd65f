"""`armid poses`: where to measure."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.options import BaseLinkOption, JsonOption, OutOption, RobotArgument, SeedOption, TipOption
from armid.cli.output import console, emit, show_files, show_notes, verb
from armid.documents import plain
from armid.errors import UnknownNameError

if TYPE_CHECKING:
    from armid.design.poses import PoseDesign
    from armid.scene.cell import Cell


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("poses")(verb(poses))


def poses(
    robot: RobotArgument,
    purpose: Annotated[str, typer.Option("--for", help="calibration, axis-inertia or gravity.")],
    count: Annotated[int | None, typer.Option(min=1, help="Poses; 17 for calibration, 30 for gravity.")] = None,
    frame: Annotated[str | None, typer.Option(help="Tracked by the instrument; the tip by default.")] = None,
    errors: Annotated[
        str | None, typer.Option(help="For calibration: described (the description's constants) or complete.")
    ] = None,
    cell: Annotated[str | None, typer.Option(help="Cell file, or the name of one that comes along.")] = None,
    method: Annotated[
        str,
        typer.Option(
            help="best, target ([RWTH2021]), exchange, tabu, multi-start or prediction (expected error of axis inertias)."
        ),
    ] = "best",
    spread: Annotated[str, typer.Option(help="Of the pool: random, uniform or weighted.")] = "random",
    pool: Annotated[
        str | None, typer.Option(help="Poses generated, per axis with commas; values per joint if not random.")
    ] = None,
    starts: Annotated[int, typer.Option(min=1, help="Of exchanges and descents.")] = 4,
    margin: Annotated[float, typer.Option(help="Fraction of every position limit left unused.")] = 0.02,
    self_collision: Annotated[bool, typer.Option(help="Keep the arm clear of itself.")] = True,
    reference: Annotated[
        str | None, typer.Option(help="Pose of the joints that do not matter; found by default.")
    ] = None,
    transitions: Annotated[bool, typer.Option(help="Find collision-free ways between the poses.")] = True,
    seed: SeedOption = 0,
    out: OutOption = Path("poses"),
    base: BaseLinkOption = None,
    tip: TipOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measurement poses that determine the parameters well, within limits, cell and visibility.

    For example `armid poses mabi-max100 --for axis-inertia --cell mabi-max100`.
    """
    from armid.cli.design import numbers
    from armid.design.pose_pool import Spread
    from armid.design.poses import PoseMethod, PoseSettings, Purpose, design_poses
    from armid.robot.load import load_robot
    from armid.rows.pose import ChainErrors
    from armid.words import choice

    began = perf_counter()
    arm = load_robot(robot, base=base, tip=tip)
    settings = PoseSettings(
        count=count,
        frame=frame,
        errors=None if errors is None else choice("--errors", errors, ChainErrors),
        method=choice("--method", method, PoseMethod),
        spread=choice("--spread", spread, Spread),
        pool=None if pool is None else tuple(int(x) for x in numbers("--pool", pool, None)),
        starts=starts,
        margin=margin,
        self_collision=self_collision,
        reference=None if reference is None else numbers("--reference", reference, arm.n_joints),
        transitions=transitions,
    )
    found = design_poses(arm, choice("--for", purpose, Purpose), settings, cell=named_cell(cell), seed=seed)
    result = as_dict(found, written(found, out), perf_counter() - began)
    if not as_json:
        show(found, result)
    emit(result, as_json=as_json)


def named_cell(name: str | None) -> Cell | None:
    """A cell from a file, or one of those in the package."""
    from armid.scene import cell as cells

    if name is None:
        return None
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or path.exists():
        return cells.load_cell(path)
    folder = Path(cells.__file__).parent / "cells"
    known = sorted(p.stem for p in folder.glob("*.yaml"))
    if name not in known:
        raise UnknownNameError("cell", name, known)
    return cells.load_cell(folder / f"{name}.yaml")


def written(found: PoseDesign, folder: Path) -> list[str]:
    """The poses as CSV in the order of the visit, everything as JSON, and the motion through them."""
    import json

    import numpy as np

    from armid.motions.trajectory_files import save_trajectory

    folder.mkdir(parents=True, exist_ok=True)
    table, details = folder / "poses.csv", folder / "poses.json"
    names = found.robot.joint_names
    np.savetxt(table, found.poses, fmt="%.9g", delimiter=",", header=",".join(names), comments="")
    measured = [[name for name, on in zip(channel_names(found), row, strict=True) if on] for row in found.channels]
    details.write_text(
        json.dumps(
            plain(
                {
                    "format": "armid-poses",
                    "version": 1,
                    "robot": found.robot.name,
                    "purpose": found.purpose,
                    "joint_names": names,
                    "poses": found.poses,
                    "measured": measured,
                    "methods": found.methods,
                    "base_parameters": found.base.names,
                    "stops": found.stops,
                }
            )
        )
        + "\n",
        encoding="utf-8",
    )
    files = [str(table), str(details)]
    if found.transitions is not None:
        files.append(str(save_trajectory(found.transitions, folder / "transitions.json", robot=found.robot.name)))
    return files


def channel_names(found: PoseDesign) -> tuple[str, ...]:
    """Names of the columns of `channels`."""
    from armid.design.poses import PoseSettings, source_of

    return source_of(found.robot, found.purpose, PoseSettings()).channels


def as_dict(found: PoseDesign, files: list[str], seconds: float) -> dict[str, Any]:
    """The JSON object."""
    return {
        "robot": found.robot.name,
        "purpose": found.purpose.value,
        "condition_number": found.condition_number,
        "initial_condition_number": found.initial_condition_number,
        "observability": found.observability,
        "base_parameters": len(found.base),
        "poses": found.poses,
        "methods": found.methods,
        "axes": [
            {
                "base_parameters": axis.base_parameters,
                "target_condition_number": axis.target_condition,
                "initial_condition_number": axis.initial_condition,
                "condition_number": axis.condition,
                "penalty": axis.penalty,
                "generated": axis.generated,
                "free": axis.free,
            }
            for axis in found.axes
        ],
        "generated": found.generated,
        "free": found.free,
        "travel_seconds": None if found.transitions is None else found.transitions.duration,
        "seconds": seconds,
        "notes": [note.as_dict() for note in found.notes],
        "files": files,
    }


def show(found: PoseDesign, result: dict[str, Any]) -> None:
    """The tables for people."""
    from rich.table import Table

    screen = console()
    screen.print(
        f"[bold]{found.robot.name}[/bold], {found.purpose}: {len(found.poses)} poses for {len(found.base)} base parameters, "
        f"condition number [bold]{found.condition_number:.4g}[/bold] (random poses {found.initial_condition_number:.4g})"
    )
    screen.print(f"{found.free} of {found.generated} generated poses are free")
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("method")
    table.add_column("condition number", justify="right")
    for name, value in found.methods.items():
        table.add_row(name, f"{value:.4g}")
    screen.print(table)
    if found.axes:
        screen.print(axis_table(found))
    screen.print("observability " + ", ".join(f"{name} {value:.3g}" for name, value in found.observability.items()))
    show_notes(found.notes)
    show_files(result["files"])


def axis_table(found: PoseDesign) -> Any:
    """What the target matrix gave for each axis, as table 6.2 of [RWTH2021] lists it."""
    from rich.table import Table

    table = Table(show_edge=False, pad_edge=False)
    for column in ("axis", "parameters", "ideal", "random", "rated", "penalty", "free"):
        table.add_column(column, justify="right")
    for k, axis in enumerate(found.axes):
        table.add_row(
            str(k + 1),
            str(axis.base_parameters),
            f"{axis.target_condition:.4g}",
            f"{axis.initial_condition:.4g}",
            f"{axis.condition:.4g}",
            f"{axis.penalty:.3f}",
            f"{axis.free}/{axis.generated}",
        )
    return table
