"""The command line as it was typed, kept in a result so that its report can show how to repeat it."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from armid.identification.origins import CommandRecord
    from armid.identification.result import Result
    from armid.studies.hand_over import HandOver

_PROGRAM = "armid"

ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())
"""Words after the program's name; set by the command group, empty when a verb is called from Python."""


def command_line() -> str:
    """What was typed, quoted for a shell; empty when no command line led here."""
    words = ARGUMENTS.get()
    return shlex.join((_PROGRAM, *words)) if words else ""


def command_record(known: Iterable[str] = ()) -> CommandRecord:
    """The command line, the folder it was typed in, and hashes of the files it names.

    Args:
        known: paths whose hashes are recorded elsewhere already (robot and logs); they are not read again.
    """
    from armid.identification.origins import CommandRecord

    skip = {Path(path).absolute() for path in known}
    files = [name for name in dict.fromkeys(named_files(ARGUMENTS.get())) if Path(name).absolute() not in skip]
    return CommandRecord(
        line=command_line(),
        folder=str(Path.cwd()),
        files=tuple((name, hashlib.sha256(Path(name).read_bytes()).hexdigest()) for name in files),
    )


def named_files(words: Iterable[str]) -> Iterator[str]:
    """Files among the words that were read; of a result folder the file that says what it is. `--out` is not read."""
    before = ""
    for word in words:
        option, _, value = word.partition("=") if word.startswith("-") else (before, "", word)
        for path in (Path(value), Path(value) / "result.json") if value and option != "--out" else ():
            if path.is_file():
                yield str(path)
        before = word if word.startswith("-") else ""


def with_command(answer: Result | HandOver) -> Result | HandOver:
    """The answer with the command line that gave it in its provenance."""
    from dataclasses import replace

    from armid.identification.result import Result

    if not ARGUMENTS.get():
        return answer
    result = answer if isinstance(answer, Result) else answer.result
    typed = command_record([file.path for file in result.provenance.inputs])
    named = replace(result, provenance=replace(result.provenance, command=typed.line, typed=typed))
    return named if isinstance(answer, Result) else replace(answer, results=(*answer.results[:-1], named))
