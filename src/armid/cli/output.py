"""What every verb shares: options, exit codes, and where output goes.

Exit codes: 0 done; 1 a known failure, said in one line; 2 usage; 3 ran, but the result is not to be trusted.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

from armid.errors import ArmidError, InputError

if TYPE_CHECKING:
    from rich.console import Console

    from armid.notes import Note

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
    """Turns a known failure into one line on stderr and exit code 1; anything else is our own mistake and shows.

    What the file system refuses (a full disk, a folder that may not be written) is a known failure too.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except ArmidError as error:
            typer.echo(f"armid: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(EXIT_FAILED) from None
        except BrokenPipeError:
            raise  # whoever read our output has gone; the command group ends quietly
        except OSError as error:
            typer.echo(f"armid: {error.filename or 'file system'}: {error.strerror or error}", err=True)
            raise typer.Exit(EXIT_FAILED) from None
        except KeyboardInterrupt:
            typer.echo("armid: interrupted", err=True)
            raise typer.Exit(130) from None

    return run


def check_folder(folder: Path) -> None:
    """Refuses an output folder that cannot be one, before minutes of work go into what could not be written.

    Raises:
        InputError: it is a file, or it or the nearest folder above it may not be written.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(folder, "is a file", "--out names a folder")
    above = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not above.is_dir():
        raise InputError(folder, f"{above} is a file", "--out names a folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise InputError(folder, "cannot be written: permission denied", "choose another --out")


def console() -> Console:
    """For people: tables, notes and progress go to stderr so that stdout stays machine-readable."""
    from rich.console import Console

    return Console(stderr=True)


SEVERITY_COLOURS = {"info": "dim", "warning": "yellow", "error": "bold red"}


def show_notes(notes: Iterable[Note]) -> None:
    """Findings for people: severity, code, what it is about, and the text as it is (brackets are not markup)."""
    from rich.text import Text

    screen = console()
    for note in notes:
        severity = note.severity.value
        about = f" ({note.subject})" if note.subject and note.subject not in note.message else ""
        screen.print(Text.assemble((severity, SEVERITY_COLOURS[severity]), f" {note.code}{about}: {note.message}"))


def show_files(files: Iterable[str | Path], lead: str = "wrote ") -> None:
    """What was written, one path a line and never broken, so that it can be copied."""
    screen = console()
    for file in files:
        screen.print(f"{lead}{file}", markup=False, highlight=False, soft_wrap=True)


def emit(result: dict[str, Any], *, as_json: bool) -> None:
    """The machine-readable result on stdout, when asked for. Infinity and NaN become null."""
    if as_json:
        sys.stdout.write(json.dumps(jsonable(result), allow_nan=False) + "\n")


def save_json(result: dict[str, Any], folder: Path | None, name: str) -> list[Path]:
    """The result as a file of a folder that is created when missing; nothing without a folder. Returns what was written."""
    if folder is None:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(json.dumps(jsonable(result), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return [path]


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
