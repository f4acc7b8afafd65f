"""`armid compensate`: joint targets for a controller that only knows the nominal arm."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.options import BaseLinkOption, JsonOption, OutOption, RobotArgument, TipOption
from armid.cli.output import EXIT_UNTRUSTED, console, emit, show_files, verb

if TYPE_CHECKING:
    from armid.calibration.compensate import CompensatedTargets


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("compensate")(compensate)


@verb
def compensate(
    robot: RobotArgument,
    correction: Annotated[
        Path, typer.Argument(metavar="CORRECTION", help="correction.json, written by armid calibrate.")
    ],
    targets: Annotated[Path, typer.Argument(metavar="TARGETS", help="Joint targets of a nominal arm (CSV).")],
    poses: Annotated[
        bool, typer.Option("--poses", help="TARGETS also has the tip's poses in the base frame: reach those.")
    ] = False,
    out: OutOption = Path("compensated"),
    base: BaseLinkOption = None,
    tip: TipOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rewrite joint targets so that the real arm goes where the nominal one would, for controllers nobody can teach."""
    from armid.calibration.compensate import compensated_targets
    from armid.calibration.targets import read_targets, write_targets
    from armid.kinematics.correction import read_correction
    from armid.robot.load import load_robot

    arm = load_robot(robot, base=base, tip=tip)
    known = read_correction(correction, arm)
    wanted = read_targets(targets, arm, poses=poses)
    found = compensated_targets(known.model, known.values, wanted.q, poses=wanted.poses)
    file = write_targets(found, arm.joint_names, out / "targets.csv")
    result = contract(found, wanted.q, file)
    show(result)
    emit(result, as_json=as_json)
    if result["targets"] > result["usable"]:
        raise typer.Exit(EXIT_UNTRUSTED)


REACHED_M, REACHED_RAD = 1e-6, 1e-6
"""What may be left of a target that counts as reached: a tenth of what the best instrument sees."""


def contract(found: CompensatedTargets, q: Any, file: Path) -> dict[str, Any]:
    """How many targets can be used, and how far the joints had to move."""
    import numpy as np

    reached = (found.position_error < REACHED_M) & (found.orientation_error < REACHED_RAD)
    return {
        "targets": len(found.q),
        "reached": int(reached.sum()),
        "within_limits": int(found.within_limits.sum()),
        "usable": int((reached & found.within_limits).sum()),
        "position_error": float(found.position_error.max(initial=0.0)),
        "orientation_error": float(found.orientation_error.max(initial=0.0)),
        "largest_change": np.abs(found.q - q).max(axis=0, initial=0.0),
        "file": file,
        "files": [file],
    }


def show(result: dict[str, Any]) -> None:
    """A few lines for people."""
    screen = console()
    moved = ", ".join(f"{1e3 * x:.3g}" for x in result["largest_change"])
    screen.print(
        f"{result['usable']} of {result['targets']} targets can be used; joints moved by up to {moved} mrad (mm)"
    )
    if result["reached"] < result["targets"]:
        screen.print(
            f"{result['targets'] - result['reached']} not reached, up to {1e3 * result['position_error']:.3g} mm and "
            f"{1e3 * result['orientation_error']:.3g} mrad away: fewer than six joints, or out of reach"
        )
    if result["within_limits"] < result["targets"]:
        screen.print(f"{result['targets'] - result['within_limits']} beyond a joint limit")
    show_files(result["files"])
