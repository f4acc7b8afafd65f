"""`armid calibrate`: robot and measured poses in, calibrated robot and a verdict out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from armid.calibration.words import ORIENTATIONS, AngleUnit, LengthUnit, SensorPlace, SetupSharing, StepRule
from armid.cli import options as opt
from armid.cli.output import progress, render, verb
from armid.kinematics.words import Term, UnknownGeometry
from armid.words import numbers


def _orientation(text: str) -> str:
    if text not in ORIENTATIONS:
        raise typer.BadParameter(f"{text!r} is not one of: {', '.join(ORIENTATIONS)}")
    return text


def _terms(text: str) -> str:
    if "auto" in text and text != "auto":
        raise typer.BadParameter(f"{text!r}: 'auto' stands alone")
    return opt.word_list(("auto", *Term))(text)


@verb
def calibrate(
    robot: opt.RobotArgument,
    poses: Annotated[
        list[Path], typer.Argument(metavar="POSES...", help="Measured poses: CSV with a header (docs/formats.md).")
    ],
    validate: Annotated[
        list[Path] | None, typer.Option("--validate", metavar="POSES", help="Held-out measurements; repeatable.")
    ] = None,
    model: Annotated[UnknownGeometry, typer.Option(help="Which link constants are fitted.")] = UnknownGeometry.COMPLETE,
    terms: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            parser=_terms,
            help="auto, or of offset, gain, eccentricity, coupling, compliance (comma-separated), or none.",
        ),
    ] = "auto",
    base: opt.BaseLinkOption = None,
    tip: opt.TipOption = None,
    setups: Annotated[
        SetupSharing, typer.Option(help="Do the files share sensor and tool frames?")
    ] = SetupSharing.AUTO,
    mapping: Annotated[
        Path | None, typer.Option(help="How to read the columns; NAME.map.yaml beside a file by default.")
    ] = None,
    lengths: Annotated[LengthUnit | None, typer.Option(help="Unit of positions.")] = None,
    angles: Annotated[AngleUnit | None, typer.Option(help="Unit of joint and Euler angles.")] = None,
    orientation: Annotated[
        str | None,
        typer.Option(
            metavar="WORD",
            parser=_orientation,
            help="quaternion-wxyz, quaternion-xyzw, euler-xyz, ..., rotation-vector.",
        ),
    ] = None,
    sensor: Annotated[SensorPlace | None, typer.Option(help="fixed, or hand: it rides on the arm.")] = None,
    sigma_position_m: Annotated[
        float, typer.Option("--sigma-position-m", help="Noise of the instrument, where the file has none.")
    ] = 0.0,
    sigma_orientation_rad: Annotated[
        float, typer.Option("--sigma-orientation-rad", help="The same for orientation.")
    ] = 0.0,
    tool_mass_kg: Annotated[
        float, typer.Option("--tool-mass-kg", help="Of what the arm carries and its description does not have.")
    ] = 0.0,
    tool_centre_m: Annotated[
        str, typer.Option("--tool-centre-m", metavar="X,Y,Z", help="Its centre of mass in the frame of the tip.")
    ] = "0,0,0",
    method: Annotated[StepRule, typer.Option(help="How each step is solved.")] = StepRule.LEVENBERG_MARQUARDT,
    plain: Annotated[bool, typer.Option("--plain-loss", help="Least squares without robust weights.")] = False,
    folds: Annotated[
        int | None, typer.Option(help="Into how many parts the poses are split, each held out once.")
    ] = None,
    enough: Annotated[bool, typer.Option("--enough", help="Study how many configurations are enough.")] = False,
    bootstrap: Annotated[
        int,
        typer.Option(metavar="N", help="Recordings redrawn block by block for the intervals, per joint; 0 for none."),
    ] = 0,
    cluster: opt.ClusterOption = None,
    compensate: Annotated[
        Path | None,
        typer.Option(
            metavar="TARGETS", help="Joint targets (CSV) to rewrite for a controller that keeps the nominal geometry."
        ),
    ] = None,
    out: opt.OutOption = Path("calibrated"),
    seed: opt.SeedOption = 0,
    as_json: opt.JsonOption = False,
) -> None:
    """Find where joints and links really are from measured poses, points, distances or contacts."""
    from armid.calibration.calibrate import calibrate as library

    with progress("calibrating") as tell:
        result = library(
            robot,
            poses,
            validate=validate,
            model=model,
            terms=terms,
            setups=setups,
            mapping=mapping,
            lengths=lengths,
            angles=angles,
            orientation=orientation,
            sensor=sensor,
            sigma_position=sigma_position_m,
            sigma_orientation=sigma_orientation_rad,
            tool_mass=tool_mass_kg,
            tool_centre=numbers("--tool-centre-m", tool_centre_m, 3, "0,0,0.05"),
            base=base,
            tip=tip,
            method=method,
            robust=not plain,
            folds=folds,
            enough=enough,
            bootstrap=bootstrap,
            compensate=compensate,
            seed=seed,
            cluster=cluster,
            progress=tell,
        )
    render(result, as_json=as_json, files=result.write(out))
