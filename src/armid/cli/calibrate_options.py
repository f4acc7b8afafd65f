"""Options of `armid calibrate` alone, in groups."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from armid.calibration.words import ORIENTATIONS, AngleUnit, LengthUnit, SensorPlace, SetupSharing, StepRule
from armid.cli import options as opt
from armid.cli.groups import Keywords, renamed
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


def unknowns(
    model: Annotated[UnknownGeometry, typer.Option(help="Which link constants are fitted.")] = UnknownGeometry.COMPLETE,
    terms: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            parser=_terms,
            help="auto, or of offset, gain, eccentricity, coupling, compliance (comma-separated), or none.",
        ),
    ] = "auto",
    setups: Annotated[
        SetupSharing, typer.Option(help="Do the files share sensor and tool frames?")
    ] = SetupSharing.AUTO,
    tool_mass_kg: Annotated[
        float, typer.Option("--tool-mass-kg", help="Of what the arm carries and its description does not have.")
    ] = 0.0,
    tool_centre_m: Annotated[
        str, typer.Option("--tool-centre-m", metavar="X,Y,Z", help="Its centre of mass in the frame of the tip.")
    ] = "0,0,0",
) -> Keywords:
    """What is fitted, and what bends the arm."""
    centre = numbers("--tool-centre-m", tool_centre_m, 3, "0,0,0.05")
    return {"model": model, "terms": terms, "setups": setups, "tool_mass": tool_mass_kg, "tool_centre": centre}


def columns(
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
    sigma_position: Annotated[
        float, typer.Option("--sigma-position-m", help="Noise of the instrument, where the file has none.")
    ] = 0.0,
    sigma_orientation: Annotated[
        float, typer.Option("--sigma-orientation-rad", help="The same for orientation.")
    ] = 0.0,
) -> Keywords:
    """How the measured poses are read."""
    return dict(locals())


def fitting(
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
    seed: opt.SeedOption = 0,
) -> Keywords:
    """How it is fitted and tested."""
    return {**renamed(locals(), plain="robust"), "robust": not plain}
