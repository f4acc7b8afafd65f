"""`armid export`: an identified arm as URDF, MJCF, JSON or source code, behind the gate."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from armid.cli import options as opt
from armid.cli.output import busy, emit, verb
from armid.parameters.effects import DEFAULT_FRICTION


class Target(StrEnum):
    """Mirrors `armid.export.export.Format` without importing it."""

    urdf = "urdf"
    mjcf = "mjcf"
    json = "json"
    python = "python"
    c = "c"
    matlab = "matlab"


class CodeFor(StrEnum):
    """Mirrors `armid.export.formats.What` and `armid.export.regressor_code.RegressorKind`."""

    model = "model"
    feedforward = "feedforward"
    gravity = "gravity"
    observer = "observer"
    regressor = "regressor"
    base_regressor = "base-regressor"


@verb
def export(
    result: Annotated[
        Path,
        typer.Argument(metavar="RESULT", help="Folder written by armid identify; for --what regressor a robot too."),
    ],
    to: Annotated[Target, typer.Option("--to", help="File format.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Where to write; the result's folder by default.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="File name without suffix; the robot's by default.")
    ] = None,
    parameters: opt.ParametersOption = "consistent",
    what: Annotated[
        CodeFor,
        typer.Option(
            "--what", help="What generated code computes: the whole model, what a controller calls, or a regressor."
        ),
    ] = CodeFor.model,
    rate_hz: Annotated[float, typer.Option("--rate-hz", min=1.0, help="Samples a second of an observer.")] = 1000.0,
    bandwidth_hz: Annotated[float, typer.Option("--bandwidth-hz", min=0.1, help="Bandwidth of an observer.")] = 10.0,
    friction: opt.LinearFrictionOption = DEFAULT_FRICTION,
    force: Annotated[bool, typer.Option("--force", help="Write an untrusted result too, marked UNVALIDATED.")] = False,
    as_json: opt.JsonOption = False,
) -> None:
    """Write the identified arm to a file; an untrusted result is refused.

    For a controller: `armid export identified --to c --what observer`, or `feedforward`, or `gravity`.
    """
    from armid.export.export import Format, Parameters, export_result
    from armid.export.formats import CodeContent, What
    from armid.identification.result import load_result

    if what in (CodeFor.regressor, CodeFor.base_regressor):
        _export_regressor(result, to, what, friction, out, name, as_json=as_json)
        return
    content = CodeContent(What(what.value), rate_hz, bandwidth_hz).for_format(Format(to.value))
    stored = load_result(result)
    folder = out or (result.parent if result.name == "result.json" else result)
    done = busy("writing, and reading it back", export_result)(
        stored,
        Format(to.value),
        folder,
        force=force,
        parameters=Parameters(parameters),
        name=name,
        content=content,
    )
    said = [
        *(f"wrote {file}" for file in done.files),
        *(check.words() for check in done.reloads),
        *(() if done.errors is None else done.errors.lines()),
        *(f"not in this format: {line}" for line in done.missing),
    ]
    typer.echo("\n".join(said), err=as_json)
    emit(
        {
            "file": done.files[0],
            "files": done.files,
            "verdict": done.verdict,
            "missing": done.missing,
            "held_out": None if done.errors is None else done.errors.as_dict(),
            "reloads": {check.program: check.difference for check in done.reloads},
        },
        as_json=as_json,
    )


def _export_regressor(
    source: Path, to: Target, what: CodeFor, friction: str, out: Path | None, name: str | None, *, as_json: bool
) -> None:
    """Writes the regressor of a result, with its effects and base parameters, or of a robot."""
    from armid.errors import InputError
    from armid.export.regressor_code import RegressorKind, export_regressor
    from armid.export.source_code import Language
    from armid.identification.result import load_result
    from armid.parameters.effects import effects_of
    from armid.robot.load import load_robot

    if to.value not in [language.value for language in Language]:
        raise InputError(f"--to {to.value}", "a regressor is code", "use --to python, c or matlab")
    base = None
    if source.name == "result.json" or (source / "result.json").is_file():
        stored = load_result(source)
        robot, effects, base = stored.described, stored.effects, stored.estimate.base
        folder = out or (source.parent if source.name == "result.json" else source)
    else:
        robot, effects = load_robot(str(source)), effects_of(friction)
        folder = out or Path()
    files = export_regressor(
        robot, effects, Language(to.value), RegressorKind(what.value), folder, base=base, name=name
    )
    typer.echo("\n".join(f"wrote {file}" for file in files), err=as_json)
    emit({"file": files[0], "files": files}, as_json=as_json)
