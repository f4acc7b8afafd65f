"""`armid compare`: several results of one arm side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from armid.cli import options as opt
from armid.cli.output import busy, render, verb


@verb
def compare(
    results: Annotated[
        list[Path], typer.Argument(metavar="RESULT...", help="Folders written by armid identify; two or more.")
    ],
    parameters: opt.ParametersOption = "base",
    out: opt.OutOption = Path("comparison"),
    as_json: opt.JsonOption = False,
) -> None:
    """Put identifications of one arm side by side: parameters with intervals, differences, held-out errors."""
    from armid.identification.compare import compare as compared

    answer = busy("comparing", compared)(*results, parameters=parameters)
    page = answer.report(out / "comparison.html")
    render(answer, as_json=as_json, timed=False, files=[page], report=page)
