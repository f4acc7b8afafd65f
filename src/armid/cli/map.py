"""`armid map`: what do the columns of this table mean?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from armid.cli import options as opt
from armid.cli.output import busy, console, render, verb
from armid.errors import InputError

if TYPE_CHECKING:
    from armid.columns.draft import MappingDraft


@verb
def map(
    robot: opt.RobotArgument,
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A table of any known format.")],
    answer: Annotated[
        list[str] | None,
        typer.Option(
            "--answer", metavar="KEY=VALUE", help="To a question, e.g. side=motor or rated=320,320,176; repeatable."
        ),
    ] = None,
    no_input: Annotated[bool, typer.Option("--no-input", help="Ask nothing; mark what is open in the file.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where the mapping is written; here by default, or beside a recording that lies elsewhere.",
        ),
    ] = None,
    base: opt.BaseLinkOption = None,
    tip: opt.TipOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Guess every column of a recording, say how sure and why, and write the mapping file.

    For example `armid map iiwa14 Messung.csv`, then `armid identify iiwa14 Messung.yaml`.
    """
    from armid.columns.draft import map_log

    answers = dict(_pair(text) for text in answer or ())
    draft = busy("reading the columns", map_log)(robot, log, answers=answers, base=base, tip=tip)
    if not no_input and sys.stdin.isatty():
        draft = _asked(draft)
    render(draft, as_json=as_json, out=_beside(log) if out is None else out)
    if out is not None and not _below(log, out):
        console().print(
            f"a mapping reads below its own folder: say --data-root {log.resolve().parent} where {out} is used",
            markup=False,
            soft_wrap=True,
        )


def _beside(log: Path) -> Path:
    """Where the mapping can be used as it is: here when the recording lies here or below, else in the recording's folder."""
    return Path() if _below(log, Path()) else log.parent


def _below(log: Path, folder: Path) -> bool:
    return log.resolve().is_relative_to(folder.resolve())


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not value:
        raise InputError("--answer", repr(text), "expected KEY=VALUE, e.g. side=motor")
    return key.strip(), value.strip()


def _asked(draft: MappingDraft) -> MappingDraft:
    """The draft after the person at the terminal answered what is open; an empty answer leaves it so."""
    from armid.columns.draft import with_answers

    for question in draft.questions:
        console().print(question.text, markup=False)
        choices = f" ({', '.join(question.choices)})" if question.choices else ""
        value = typer.prompt(f"{question.key}{choices}", default="", show_default=False, err=True).strip()
        if value:
            draft = with_answers(draft, {question.key: value})
    return draft
