"""`armid report`: one HTML file from a result folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from armid.cli import options as opt
from armid.cli.output import busy, emit, show_files, verb


@verb
def report(
    result: opt.ResultArgument,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Where to write report.html; the result's folder by default."),
    ] = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Write one self-contained HTML page with everything needed to trust the result, or not."""
    from armid.identification.inputs import result_folder
    from armid.identification.result import load_result

    stored = load_result(result)
    path = busy("drawing the page", stored.report)((out or result_folder(result)) / "report.html")
    show_files([path], f"{stored.verdict}; wrote ")
    emit({"report": path, "verdict": stored.verdict}, as_json=as_json)
