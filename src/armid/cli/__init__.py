"""The command line: one file per verb, in the order of the work."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from armid import __version__
from armid.cli.config import FLAG, ConfiguredGroup
from armid.cli.variadic import VariadicCommand

VERBS: tuple[str, ...] = (
    "inspect",
    "design",
    "poses",
    "simulate",
    "calibrate",
    "compensate",
    "map",
    "check",
    "identify",
    "validate",
    "export",
    "report",
    "compare",
    "demo",
    "study",
    "benchmark",
    "plan",
    "program",
    "payload",
    "recover",
    "sweep",
    "sequential",
    "elastic",
    "online",
    "observe",
    "fleet",
    "show",
)
"""Each is a module here with a function of its name; heavy imports happen inside the verb so that --help is instant."""


def application(names: Sequence[str] = VERBS) -> typer.Typer:
    """The `armid` command with these verbs."""
    app = typer.Typer(
        name="armid",
        cls=ConfiguredGroup,
        help="Lets a robot arm learn its own body from its own measurements.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    # With a callback typer keeps the verb's name even while there is only one.
    app.callback()(verbs)
    for name in names:
        app.command(name, cls=VariadicCommand)(getattr(import_module(f"armid.cli.{name}"), name))
    return app


def show_version(wanted: bool) -> None:
    """Prints the version and ends."""
    if wanted:
        typer.echo(f"armid {__version__}")
        raise typer.Exit


def verbs(
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Options from a YAML file, before or after the verb; flags win."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="The version, and nothing else.")
    ] = False,
) -> None:
    """Lets a robot arm learn its own body from its own measurements."""


def needed(arguments: Sequence[str]) -> Sequence[str]:
    """The verbs a command line needs: the one it begins with, or all when it has none or a config file names others.

    Typer prepares every option of every verb it is given; with one verb the command starts in half the time.
    """
    configured = any(word.split("=")[0] == FLAG for word in arguments)
    return arguments[:1] if arguments and arguments[0] in VERBS and not configured else VERBS


def main() -> None:
    """Entry point of the `armid` command."""
    # Our matrices are small and our kernels and searches bring their own threads and processes: more threads inside BLAS
    # only wait for one another. Must be set before NumPy loads; a user's own setting stays.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115
    plain = warnings.formatwarning
    warnings.formatwarning = lambda message, category, *rest, **more: (
        f"armid: {message}\n" if category.__module__.startswith("armid") else plain(message, category, *rest, **more)
    )
    # What is still held when the command ends goes with the process: looking through it for cycles takes a tenth of its time.
    atexit.register(gc.freeze)
    application(needed(sys.argv[1:]))()
