"""What every verb shares: exit codes, and where output goes.

Exit codes: 0 done; 1 a known failure, said in one line; 2 usage; 3 ran, but the result is not to be trusted.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import typer

from armid.apart import writing_to
from armid.cli.written import BESIDE, check_written
from armid.documents import json_text
from armid.errors import ArmidError, InputError, UnknownColumnsError
from armid.outcome import Outcome, Verdict

if TYPE_CHECKING:
    from rich.console import Console

    from armid.notes import Note

P = ParamSpec("P")

_BEGAN: ContextVar[float] = ContextVar("began", default=0.0)
"""`perf_counter()` when the verb began: `seconds` of every answer count from there."""

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_UNTRUSTED = 3
EXIT_INTERRUPTED = 130
"""As shells have it for a process that Ctrl-C ended."""


def verb(function: Callable[P, None]) -> Callable[P, None]:
    """Turns a known failure into one line on stderr and exit code 1; anything else is our own mistake and shows.

    What the file system refuses (a full disk, a folder that may not be written) is a known failure too.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        _BEGAN.set(perf_counter())
        try:
            with writing_to(_checked_out(function.__name__, kwargs)):
                function(*args, **kwargs)
        except UnknownColumnsError as error:
            _fail(error, _drafted(error, kwargs), kwargs)
            raise typer.Exit(EXIT_FAILED) from None
        except ArmidError as error:
            _fail(error, " ".join(str(error).split()), kwargs)
            raise typer.Exit(EXIT_FAILED) from None
        except BrokenPipeError:
            raise  # whoever read our output has gone; the command group ends quietly
        except OSError as error:
            _fail(error, f"{error.filename or 'file system'}: {error.strerror or error}", kwargs)
            raise typer.Exit(EXIT_FAILED) from None
        except KeyboardInterrupt:
            typer.echo("armid: interrupted", err=True)
            if kwargs.get("as_json"):
                emit_error("KeyboardInterrupt", "interrupted", EXIT_INTERRUPTED)
            raise typer.Exit(EXIT_INTERRUPTED) from None

    return run


def _drafted(error: UnknownColumnsError, options: Mapping[str, Any]) -> str:
    """What was refused, what `armid map` would write instead, and the command that writes it."""
    from armid.columns.draft import map_log

    refused = f"{error.where}: {error.problem}"
    robot = options.get("robot") or options.get("arm")
    try:
        draft = map_log(str(robot), error.where, base=options.get("base"), tip=options.get("tip"))
    except ArmidError:
        return f"{refused} ({error.hint})".replace("\n", " ")
    command = f"armid map {robot} {error.where}"
    return f"{refused}; drafted: {draft.in_brief()}. `{command}` writes it as a mapping file".replace("\n", " ")


def _fail(error: Exception, text: str, options: Mapping[str, Any]) -> None:
    """One line for people; for a program that asked for JSON an object too."""
    typer.echo(f"armid: {text}", err=True)
    if options.get("as_json"):
        try:
            emit_error(type(error).__name__, text, EXIT_FAILED)
            sys.stdout.flush()
        except OSError:  # stdout itself is what failed: what is left in its buffer must not fail once more at the end
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def emit_error(kind: str, text: str, code: int) -> None:
    """What went wrong as the one JSON object on stdout.

    Args:
        kind: name of the error's class.
        text: in one line, as people read it.
        code: the command exits with.
    """
    emit({"error": {"kind": kind, "message": text, "exit_code": code}}, as_json=True)


def _checked_out(name: str, options: Mapping[str, Any]) -> Path | None:
    """Where no input may lie; an `--out` that cannot be used is refused before minutes of work go into what is lost."""
    out = options.get("out")
    if not isinstance(out, Path):
        return None
    check_folder(out)
    check_written(name, out, {**options, "out": None})
    return None if name in BESIDE else out


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


_SEVERITY_COLOURS = {"info": "dim", "warning": "yellow", "error": "bold red"}


def show_notes(notes: Iterable[Note]) -> None:
    """Findings for people: severity, code, what it is about, and the text as it is (brackets are not markup)."""
    from rich.text import Text

    from armid.notes import like_counted

    screen = console()
    for note in like_counted(notes):
        severity = note.severity.value
        about = f" ({note.subject})" if note.subject and note.subject not in note.message else ""
        screen.print(Text.assemble((severity, _SEVERITY_COLOURS[severity]), f" {note.code}{about}: {note.message}"))


def show_files(files: Iterable[str | Path], lead: str = "wrote ") -> None:
    """What was written, one path a line and never broken, so that it can be copied."""
    screen = console()
    for file in files:
        screen.print(f"{lead}{file}", markup=False, highlight=False, soft_wrap=True)


def emit(result: dict[str, Any], *, as_json: bool) -> None:
    """The machine-readable result on stdout, when asked for. Infinity and NaN become null."""
    if as_json:
        sys.stdout.write(json_text(result, indent=None))


def render(
    outcome: Outcome,
    *,
    as_json: bool,
    out: Path | None = None,
    files: Iterable[str | Path] | Mapping[str, str | Path] = (),
    timed: bool = True,
    summary: str | None = None,
    **more: Any,
) -> None:
    """An answer where it belongs, and the exit code it deserves.

    What was asked for goes to stdout: the summary, or with `--json` one object (and the summary to stderr). Notes and paths
    of files go to stderr.

    Args:
        outcome: the answer.
        as_json: whether a program asked.
        out: folder it is saved in first; None where it was, or nobody wants it.
        files: that were written; with names, JSON has them too.
        timed: whether the time since the verb began is a key of the object, `seconds`.
        summary: what people read, where it is not the answer's own without notes.
        more: further keys of the JSON object.

    Raises:
        typer.Exit: with code 3 when the answer is not to be trusted.
    """
    files = files if out is None else outcome.save(out)
    named = {name: str(path) for name, path in files.items()} if isinstance(files, Mapping) else None
    written = [str(path) for path in (files.values() if isinstance(files, Mapping) else files)]
    typer.echo(outcome.summary(notes=False) if summary is None else summary, err=as_json)
    show_notes(outcome.further_notes)
    show_files(written)
    seconds = {"seconds": perf_counter() - _BEGAN.get()} if timed else {}
    emit({**outcome.as_dict(), **seconds, **more, "files": written if named is None else named}, as_json=as_json)
    if outcome.verdict is Verdict.UNTRUSTED:
        raise typer.Exit(EXIT_UNTRUSTED)


_COUNTED = re.compile(r"(\d+) (?:of|/) (\d+)")
"""How stages say how far they are: `start 3 of 8`."""


@contextmanager
def progress(text: str = "starting") -> Iterator[Callable[[str], None]]:
    """Says what is being done, for how long, and how long is left where the stage counts; silent without a terminal.

    Args:
        text: until the first stage says what it does.
    """
    screen = console()
    if not screen.is_terminal:
        yield lambda _: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task(text, total=None)

        def tell(said: str) -> None:
            counted = _COUNTED.search(said)
            done, total = (int(counted[1]), int(counted[2])) if counted else (0, None)
            bar.update(task, description=said, completed=max(done - 1, 0), total=total)

        yield tell


R = TypeVar("R")


def busy(text: str, function: Callable[P, R]) -> Callable[P, R]:
    """The function, with `progress` saying what it does while it runs.

    Args:
        text: such as `calibrating`.
        function: one that may take more than two seconds and tells nothing itself.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with progress(text):
            return function(*args, **kwargs)

    return run
