"""`armid compare`: several results of one arm side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.options import JsonOption, OutOption
from armid.cli.output import console, emit, show_files, verb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from armid.identification.agreement import Agreement
    from armid.identification.result import Result


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("compare")(compare)


@verb
def compare(
    results: Annotated[
        list[Path], typer.Argument(metavar="RESULT...", help="Folders written by armid identify; two or more.")
    ],
    out: OutOption = Path("comparison"),
    as_json: JsonOption = False,
) -> None:
    """Put identifications of one arm side by side: parameters with intervals, differences, held-out errors."""
    from armid.identification.agreement import agreement
    from armid.identification.result import load_result
    from armid.report.comparison import comparison_report
    from armid.report.render import write_report

    stored = [load_result(path) for path in results]
    names = short_names(results)
    rows = agreement(stored)
    path = write_report(comparison_report(names, stored), out / "comparison.html")
    show(names, stored, rows, path)
    emit(contract(names, stored, rows, path), as_json=as_json)


def short_names(paths: Sequence[Path]) -> list[str]:
    """Names of the folders, or whole paths where those are not different."""
    folders = [path.parent if path.name == "result.json" else path for path in paths]
    names = [folder.resolve().name for folder in folders]
    if len(set(names)) == len(names):
        return names
    whole = [str(folder) for folder in folders]
    return [name if whole.count(name) == 1 else f"{name} ({i + 1})" for i, name in enumerate(whole)]


def contract(names: Sequence[str], results: Sequence[Result], rows: Sequence[Agreement], path: Path) -> dict[str, Any]:
    """Everything in the tables."""
    return {
        "report": path,
        "results": [
            {"name": n, "verdict": r.verdict, "relative_error_held_out": r.relative_error.get("held_out")}
            for n, r in zip(names, results, strict=True)
        ],
        "joints": [[joint.as_dict() for joint in r.joints] for r in results],
        "parameters": [
            {
                "name": r.name,
                "unit": r.unit,
                "values": r.values,
                "standard_deviations": r.standard_deviations,
                "differences": r.differences,
            }
            for r in rows
        ],
        "largest_difference": max((abs(d) for r in rows for d in r.differences if d == d), default=None),
    }


def show(names: Sequence[str], results: Sequence[Result], rows: Sequence[Agreement], path: Path) -> None:
    """The parameters that differ most, and errors, for people."""
    from rich.table import Table

    screen = console()
    table = Table(title="held-out torque error")
    for title in ("result", "verdict", "relative", "base parameters", "largest difference"):
        table.add_column(title, justify="left" if title in ("result", "verdict") else "right")
    for k, (name, result) in enumerate(zip(names, results, strict=True)):
        far = max(
            (row for row in rows if row.differences[k] == row.differences[k]), key=lambda r: abs(r.differences[k])
        )
        apart = f"{far.name} {far.differences[k]:+.1f} std. dev." if k else ""
        error = f"{100 * result.relative_error.get('held_out', float('nan')):.2f} %"
        table.add_row(name, result.verdict, error, str(len(result.estimate)), apart)
    screen.print(table)
    show_files([path])
