"""Behind `armid identify --correction`: calibrated kinematics and gravity carried into the dynamics, and what that changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.cli.output import console

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from armid.identification.result import Result
    from armid.identification.settings import Identification
    from armid.logs.log import Log
    from armid.robot.robot import Robot
    from armid.studies.hand_over import HandOver


def with_correction(
    nominal: Robot,
    correction: Path,
    train: Sequence[Log],
    held_out: Sequence[Log],
    settings: Identification,
    gravity: Sequence[float] | None,
    tell: Callable[[str], None],
    *,
    frame: str = "base",
) -> tuple[Result, HandOver]:
    """The result with everything that is known, and beside it what less would have given.

    Args:
        nominal: the arm as described.
        correction: file of a calibration.
        train, held_out: logs.
        settings: of the identification.
        gravity: [m/s^2], from a levelled instrument, in `frame`; None when nobody gave it.
        tell: told in words what is being done.
        frame: `base`, `sensor`, or `sensor:NAME` of a calibration with several.
    """
    from armid.kinematics.correction import read_correction
    from armid.logs.encoders import corrected_log
    from armid.studies.hand_over import hand_over

    known = read_correction(correction, nominal)
    down = gravity if gravity is None or frame == "base" else known.gravity(gravity, named_sensor(frame))
    handed = hand_over(
        nominal,
        known.robot,
        train,
        held_out,
        settings,
        gravity=down,
        motion=lambda log: corrected_log(log, known.model, known.values),
        progress=tell,
    )
    return handed.result, handed


def named_sensor(frame: str) -> str | None:
    """Name of the sensor whose frame is meant; None for the only one.

    Raises:
        InputError: neither `base` nor `sensor`.
    """
    from armid.errors import InputError

    word, _, name = frame.partition(":")
    if word != "sensor":
        raise InputError("--gravity-frame", repr(frame), "expected base, sensor, or sensor:NAME")
    return name or None


def write_hand_over(handed: HandOver, out: Path) -> tuple[Path, ...]:
    """The page that puts the beliefs side by side, and the result of nominal kinematics for `armid compare`."""
    from armid.identification.result import save_result
    from armid.report.hand_over import hand_over_report
    from armid.report.render import write_report

    page = write_report(hand_over_report(handed), out / "hand_over.html")
    return (page, *save_result(handed.results[0], out / "nominal"))


def hand_over_summary(handed: HandOver) -> dict[str, Any]:
    """For machines: errors under every belief, and the parameters that moved."""
    return {
        "results": [
            {
                "name": name,
                "verdict": result.verdict,
                "relative_error_held_out": result.relative_error["held_out"],
                "gravity": result.robot.gravity.tolist(),
                "joints": [joint.as_dict() for joint in result.joints],
            }
            for name, result in zip(handed.names, handed.results, strict=True)
        ],
        "parameters": [
            {
                "name": c.name,
                "unit": c.unit,
                "values": c.values,
                "standard_deviations": c.standard_deviations,
                "relative_differences": c.relative,
            }
            for c in handed.changes
        ],
    }


def show_hand_over(handed: HandOver) -> None:
    """For people: held-out error under every belief."""
    from rich.table import Table

    table = Table(title="what calibration changed")
    for title in ("kinematics", "held-out error", "verdict", "median change of parameters"):
        table.add_column(title, justify="left" if title in ("kinematics", "verdict") else "right")
    for k, (name, result) in enumerate(zip(handed.names, handed.results, strict=True)):
        moved = sorted(abs(c.relative[k]) for c in handed.changes)
        change = f"{100 * moved[len(moved) // 2]:.2f} %" if k else ""
        table.add_row(name, f"{100 * result.relative_error['held_out']:.3f} %", result.verdict, change)
    console().print(table)
