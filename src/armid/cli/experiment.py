"""Verbs about recordings of one arm: the options all of them have, the call, and where the answer goes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from armid.cli import options as opt
from armid.cli.output import busy, render, verb
from armid.outcome import Outcome

Answer = Outcome | tuple[Outcome, Iterable[str | Path]]
"""An answer, or one with the files that were written for it."""


def experiment(function: Callable[..., Answer]) -> Callable[..., None]:
    """A verb that asks one question about recordings of one arm.

    Besides the options it names itself the verb has `--data-root`, `--base`, `--tip`, `--out` and `--json`. The first three reach
    the function by keyword. `--out` does where the function names it, and is where a plain answer is saved. What of these the
    function names needs no words of its own.

    Args:
        function: from its options to the answer.
    """
    own = [p for p in inspect.signature(function, eval_str=True).parameters.values() if p.kind is not p.VAR_KEYWORD]
    common = inspect.signature(_common, eval_str=True).parameters
    writes = any(parameter.name == "out" for parameter in own)

    def run(**options: Any) -> None:
        out, as_json = options.pop("out"), options.pop("as_json")
        answer = busy("reading and fitting", function)(**options, **({"out": out} if writes else {}))
        if isinstance(answer, tuple):
            render(answer[0], as_json=as_json, files=answer[1])
        else:
            render(answer, as_json=as_json, out=out)

    asked = verb(functools.wraps(function)(run))
    every = [*(parameter for parameter in own if parameter.name not in common), *common.values()]
    asked.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    return asked


def _common(
    data_root: opt.DataRootOption = None,
    out: opt.OptionalOutOption = None,
    base: opt.BaseLinkOption = None,
    tip: opt.TipOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Options of every experiment, in the order of its help."""
