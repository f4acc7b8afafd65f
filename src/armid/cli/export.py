"""`armid export`: an identified arm as URDF, MJCF, JSON or source code, behind the gate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from armid.cli import groups
from armid.cli import options as opt
from armid.cli.output import busy, emit, verb
from armid.export.formats import Format, RegressorKind
from armid.parameters.effects import DEFAULT_FRICTION

CodeWord = Literal["model", "feedforward", "gravity", "observer", "regressor", "base-regressor"]


def _content(
    what: Annotated[
        CodeWord,
        typer.Option(
            "--what", help="What generated code computes: the whole model, what a controller calls, or a regressor."
        ),
    ] = "model",
    rate_hz: Annotated[float, typer.Option("--rate-hz", min=1.0, help="Samples a second of an observer.")] = 1000.0,
    bandwidth_hz: Annotated[float, typer.Option("--bandwidth-hz", min=0.1, help="Bandwidth of an observer.")] = 10.0,
) -> groups.Keywords:
    """What is in the file: a regressor, or something with identified values."""
    from armid.export.formats import CodeContent, What

    if what in list(RegressorKind):
        return {"content": RegressorKind(what)}
    return {"content": CodeContent(What(what), rate_hz, bandwidth_hz)}


@verb
@groups.takes(_content)
def export(
    result: Annotated[
        Path,
        typer.Argument(metavar="RESULT", help="Folder written by armid identify; for --what regressor a robot too."),
    ],
    to: Annotated[Format, typer.Option("--to", help="File format.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Where to write; the result's folder by default.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="File name without suffix; the robot's by default.")
    ] = None,
    parameters: opt.ParametersOption = "consistent",
    friction: opt.LinearFrictionOption = DEFAULT_FRICTION,
    force: Annotated[bool, typer.Option("--force", help="Write an untrusted result too, marked UNVALIDATED.")] = False,
    as_json: opt.JsonOption = False,
    **asked: Any,
) -> None:
    """Write the identified arm to a file; an untrusted result is refused.

    For a controller: `armid export identified --to c --what observer`, or `feedforward`, or `gravity`.
    """
    content = asked["content"]
    if isinstance(content, RegressorKind):
        from armid.export.regressor_code import export_regressor

        files = export_regressor(result, to, content, out, friction=friction, name=name)
        typer.echo("\n".join(f"wrote {file}" for file in files), err=as_json)
        emit({"file": files[0], "files": files}, as_json=as_json)
        return
    from armid.export.export import Parameters, export_result
    from armid.identification.inputs import result_folder
    from armid.identification.result import load_result

    content.for_format(to)
    which = Parameters(parameters)
    done = busy("writing, and reading it back", export_result)(
        load_result(result), to, out or result_folder(result), force=force, parameters=which, name=name, content=content
    )
    typer.echo("\n".join(done.lines()), err=as_json)
    emit(done.as_dict(), as_json=as_json)
