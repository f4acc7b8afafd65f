"""`armid show`: the arm and its motion in the browser."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.options import BaseLinkOption, JsonOption, RobotArgument, TipOption
from armid.cli.output import console, emit, show_notes, verb
from armid.errors import InputError

if TYPE_CHECKING:
    from armid.motions.trajectory import Trajectory
    from armid.robot.robot import Robot


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("show")(verb(show))


def show(
    robot: RobotArgument,
    trajectory: Annotated[
        Path | None, typer.Argument(help="Trajectory (JSON or CSV), or poses.json / poses.csv of `armid poses`.")
    ] = None,
    cell: Annotated[str | None, typer.Option(help="Cell file, or the name of one that comes along.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="On this machine only; 0 for any free one.")] = 8080,
    seconds: Annotated[float | None, typer.Option(help="Stop after this long; until Ctrl-C by default.")] = None,
    base: BaseLinkOption = None,
    tip: TipOption = None,
    as_json: JsonOption = False,
) -> None:
    """A 3D preview of the arm, its cell, and a motion or poses playing, on this machine only.

    For example `armid show iiwa14 design/trajectory.json`.
    """
    from armid.motions.limits import motion_limits
    from armid.report.preview import Show, preview
    from armid.robot.load import load_robot
    from armid.scene.cell import cell_of as named_cell
    from armid.scene.scene import build_scene

    arm = load_robot(robot, base=base, tip=tip)
    motion = None if trajectory is None else playable(arm, trajectory)
    scene = build_scene(arm, named_cell(cell))
    with preview(Show(arm, motion, scene, motion_limits(arm)[0].middle), port=port) as viewer:
        emit({"url": viewer.url, "duration": viewer.show.duration}, as_json=as_json)
        show_notes(scene.notes)
        console().print(f"open [bold]{viewer.url}[/bold] (Ctrl-C to stop)")
        viewer.play(seconds)


def playable(robot: Robot, path: Path) -> Trajectory:
    """A trajectory file, or poses as a motion through them."""
    from armid.motions.limits import motion_limits
    from armid.motions.trajectory_files import load_trajectory
    from armid.motions.transition import quickest_transition

    poses = pose_table(robot, path)
    if poses is not None:
        return quickest_transition(robot.joint_names, poses, motion_limits(robot)[0])
    motion = load_trajectory(path)
    if len(motion.joint_names) != robot.n_joints:
        raise InputError(path, f"a motion of {len(motion.joint_names)} joints", f"{robot.name} has {robot.n_joints}")
    return motion


def pose_table(robot: Robot, path: Path) -> list[list[float]] | None:
    """Poses of `armid poses`, in either of its files; None when the file is something else."""
    if not path.is_file():
        raise InputError(path, "no such file", "give a trajectory of `armid design` or poses of `armid poses`")
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".csv":
            head, *lines = text.splitlines() or [""]
            if head.split(",") != list(robot.joint_names):
                return None
            return checked_poses([[float(x) for x in line.split(",")] for line in lines if line.strip()], robot, path)
        values = json.loads(text)
    except UnicodeDecodeError:
        raise InputError(path, "not text", "give a trajectory of `armid design` or poses of `armid poses`") from None
    except json.JSONDecodeError:
        return None
    except ValueError as problem:
        raise InputError(path, f"not a table of numbers: {problem}") from None
    if not isinstance(values, dict) or values.get("format") != "armid-poses":
        return None
    return checked_poses(values.get("poses"), robot, path)


def checked_poses(poses: Any, robot: Robot, path: Path) -> list[list[float]]:
    """At least one row of finite numbers, one for each joint."""
    rows = poses if isinstance(poses, list) else []
    good = [
        row
        for row in rows
        if isinstance(row, list)
        and len(row) == robot.n_joints
        and all(isinstance(x, int | float) and isfinite(x) for x in row)
    ]
    if not rows or len(good) < len(rows):
        raise InputError(
            path, f"{len(rows) - len(good)} of {len(rows)} rows are no pose", f"{robot.n_joints} finite numbers each"
        )
    return good
