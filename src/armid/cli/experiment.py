"""Verbs about recordings of one arm: the options all of them have, the call, and where the answer goes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from armid.cli import options as opt
from armid.cli.groups import Group, signature_with, takes
from armid.cli.output import busy, render, verb
from armid.outcome import Outcome

Answer = Outcome | tuple[Outcome, Iterable[str | Path]]
"""An answer, or one with the files that were written for it."""


def experiment(*groups: Group) -> Callable[[Callable[..., Answer]], Callable[..., None]]:
    """A verb that asks one question about recordings of one arm.

    Besides its own options and those of its groups it has `--data-root`, `--base`, `--tip`, `--out` and `--json`. The first three
    reach the function by keyword. `--out` does where the function names it, and is where a plain answer is saved.

    Args:
        groups: of options that the function takes.
    """

    def decorate(function: Callable[..., Answer]) -> Callable[..., None]:
        writes = "out" in inspect.signature(function).parameters
        asked = takes(*groups)(function)

        @functools.wraps(asked)
        def run(*, out: Path | None, as_json: bool, **options: Any) -> None:
            answer = busy("reading and fitting", asked)(**options, **({"out": out} if writes else {}))
            if isinstance(answer, tuple):
                render(answer[0], as_json=as_json, files=answer[1])
            else:
                render(answer, as_json=as_json, out=out)

        run.__signature__ = signature_with(asked, _common)  # type: ignore[attr-defined]
        return verb(run)

    return decorate


def _common(
    data_root: opt.DataRootOption = None,
    out: opt.OptionalOutOption = None,
    base: opt.BaseLinkOption = None,
    tip: opt.TipOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Options of every experiment, in the order of its help."""
