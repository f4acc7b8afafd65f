"""What every verb shares: options, exit codes, and where output goes.

Exit codes: 0 done; 1 a known failure, said in one line; 2 usage; 3 ran, but the result is not to be trusted.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

from armid.errors import ArmidError

if TYPE_CHECKING:
    from rich.console import Console

P = ParamSpec("P")

EXIT_FAILED = 1
EXIT_UNTRUSTED = 3

RobotArgument = Annotated[
    str, typer.Argument(metavar="ROBOT", help="URDF path, robot YAML path, or catalogue name (iiwa14, panda, ...).")
]
BaseLinkOption = Annotated[
    str | None, typer.Option("--base", metavar="LINK", help="Link of a URDF that stands still; its root by default.")
]
TipOption = Annotated[
    str | None,
    typer.Option("--tip", metavar="LINK", help="Where the arm ends; the end of the longest chain by default."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on stdout; everything else on stderr.")]
OutOption = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where files are written.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")]


def verb(function: Callable[P, None]) -> Callable[P, None]:
    """Turns a known failure into one line on stderr and exit code 1; anything else is our own mistake and shows."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except ArmidError as error:
            typer.echo(f"armid: {error}", err=True)
            raise typer.Exit(EXIT_FAILED) from None
        except KeyboardInterrupt:
            typer.echo("armid: interrupted", err=True)
            raise typer.Exit(130) from None

    return run


def console() -> Console:
    """For people: tables, notes and progress go to stderr so that stdout stays machine-readable."""
    from rich.console import Console

    return Console(stderr=True)


def emit(result: dict[str, Any], *, as_json: bool) -> None:
    """The machine-readable result on stdout, when asked for. Infinity and NaN become null."""
    if as_json:
        sys.stdout.write(json.dumps(jsonable(result), allow_nan=False) + "\n")


def jsonable(value: Any) -> Any:
    """Plain JSON values from arrays, paths, enums and tuples."""
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    if hasattr(value, "tolist"):
        return jsonable(value.tolist())
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if isinstance(value, Path):
        return str(value)
    return value
