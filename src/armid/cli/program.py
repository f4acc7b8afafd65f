"""`armid program`: a motion as a folder the robot's own controller can run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from armid.cli import options as opt
from armid.cli.output import busy, render, verb

if TYPE_CHECKING:
    from armid.motions.trajectory import Trajectory
    from armid.robot.robot import Robot


@verb
def program(
    robot: opt.RobotArgument,
    trajectory: Annotated[
        Path, typer.Argument(metavar="TRAJECTORY", help="trajectory.json of `armid design` or `plan`, or its CSV.")
    ],
    controller: opt.ControllerOption,
    player_rate_hz: opt.PlayerRateOption = None,
    out: opt.OutOption = Path("program"),
    base: opt.BaseLinkOption = None,
    tip: opt.TipOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Player, recorder and exact steps for the robot's controller: slow way to the start, dry run, motion.

    For example `armid program ur10e design/trajectory.json --for ur`.
    """
    from armid.programs.program import make_program

    made = busy("writing the player", make_program)(
        robot, trajectory, controller, rate_hz=player_rate_hz, base=base, tip=tip
    )
    made.raise_if_untrusted()
    render(made, as_json=as_json, out=out)


def program_files(
    robot: Robot, motions: Mapping[str, Trajectory], controller: str | None, out: Path, played_for: str
) -> tuple[Path, ...]:
    """Programs of motions another verb made, in a folder of the controller's name; each in its own when there are several."""
    if controller is None:
        return ()
    from armid.programs.program import make_program

    place = out / controller
    return tuple(
        path
        for name, motion in motions.items()
        for path in make_program(robot, motion, controller, played_for=played_for).save(
            place if len(motions) == 1 else place / name
        )
    )
