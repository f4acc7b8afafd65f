"""`armid inspect`: what can be identified."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from armid.cli import groups
from armid.cli import options as opt
from armid.cli.output import busy, render, show_files, verb
from armid.errors import InputError

_QUANTITIES = ("torque", "gravity", "inertia-matrix", "axis-inertia", "pose")
_FORMS = ("gravity", "inertia-matrix", "coriolis", "axis-inertia")


def _measured(
    quantity: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            parser=opt.word_list(_QUANTITIES, none=False),
            help=f"What is measured: {', '.join(_QUANTITIES)}.",
        ),
    ] = "torque",
    frame: opt.FrameOption = None,
    measure: Annotated[Literal["pose", "points", "distance"], typer.Option(help="What is seen of a pose.")] = "pose",
    points: Annotated[int, typer.Option(min=1, max=3, help="Number of tracked points, for points and distance.")] = 1,
    errors: Annotated[
        Literal["described", "complete"] | None,
        typer.Option(
            help="For poses: errors of the description's own constants, or six per joint; by default as it is described."
        ),
    ] = None,
) -> groups.Keywords:
    """What is measured."""
    return dict(locals())


def _motion(
    log: Annotated[
        str | None, typer.Option(metavar="LOG", help="Which of these parameters does this recorded motion excite?")
    ] = None,
    trajectory: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The same for a planned motion (JSON or CSV).")
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Torque noise [N m] with --log or --trajectory, one or per joint; the log's own by default.",
        ),
    ] = None,
) -> groups.Keywords:
    """Along which motion."""
    return dict(locals())


def _base(
    without: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Parameters to express by others instead of keeping them in the base, by name, with commas.",
        ),
    ] = "",
    tolerance: Annotated[float | None, typer.Option(help="Relative tolerance of the rank decision, in (0, 1).")] = None,
) -> groups.Keywords:
    """Which parameters stand for the others."""
    return {"without": without, **({} if tolerance is None else {"tolerance": tolerance})}


@verb
@groups.takes(groups.effects, _measured, _motion, _base, groups.arm)
def inspect(
    robot: opt.RobotArgument,
    closed_form: Annotated[
        str, typer.Option(metavar="LIST", parser=opt.word_list(_FORMS), help=f"With --out: {', '.join(_FORMS)}.")
    ] = "none",
    latex: Annotated[bool, typer.Option("--latex", help="The regroupings in LaTeX on stdout.")] = False,
    out: opt.OptionalOutOption = None,
    as_json: opt.JsonOption = False,
    **asked: Any,
) -> None:
    """What can be identified: alone, in combination (and in which), not at all.

    For example `armid inspect iiwa14 --friction viscous,coulomb`.
    """
    if closed_form != "none" and out is None:
        raise InputError("--closed-form", "given without --out", "closed forms are written to files: add --out DIR")
    from armid.inspection.inspect import inspect as run

    forms = "" if closed_form == "none" else closed_form
    found = busy("looking for what can be identified", run)(robot, closed_forms=forms, **asked)
    files = () if out is None else found.save(out)
    if latex and not as_json:
        typer.echo(found.latex())
        show_files(files)
    else:
        more: dict[str, Any] = {"latex": found.latex()} if latex else {}
        render(found, as_json=as_json, timed=False, files=files, **more)
