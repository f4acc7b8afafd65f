"""Options that take several values, as in `--validate A B C`."""

from __future__ import annotations

from typing import Any, ClassVar

import typer.core


class VariadicCommand(typer.core.TyperCommand):
    """A command whose `variadic` options, where they may be repeated, take every word up to the next option."""

    variadic: ClassVar[tuple[str, ...]] = ("--validate",)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        repeatable = {flag for option in self.params if getattr(option, "multiple", False) for flag in option.opts}
        return super().parse_args(ctx, repeated(args, tuple(repeatable.intersection(self.variadic))))


def repeated(args: list[str], options: tuple[str, ...]) -> list[str]:
    """`--validate a b` as `--validate a --validate b`."""
    out: list[str] = []
    current = ""
    for word in args:
        if word.startswith("-") and word != "-":
            current = word if word in options else ""
            if not current:
                out.append(word)
        elif current:
            out += [current, word]
        else:
            out.append(word)
    return out
