"""The command line: one file per verb, in the order of the work."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from armid.cli.config import ConfiguredGroup

VERBS: tuple[str, ...] = (
    "inspect", "design", "poses", "simulate", "calibrate", "compensate", "check", "identify", "validate", "export", "report",
    "compare", "demo", "study", "plan",
    "payload", "recover", "sweep", "sequential", "elastic", "online", "show",
)  # fmt: skip
"""Each is a module here with a `register(app)`; heavy imports happen inside the verb so that --help is instant."""


def application() -> typer.Typer:
    """The `armid` command with all its verbs."""
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
    for name in VERBS:
        import_module(f"armid.cli.{name}").register(app)
    return app


def verbs(
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Options from a YAML file, before or after the verb; flags win."),
    ] = None,
) -> None:
    """Lets a robot arm learn its own body from its own measurements."""


def main() -> None:
    """Entry point of the `armid` command."""
    # Our matrices are small and our kernels and searches bring their own threads and processes: more threads inside BLAS
    # only wait for one another. Must be set before NumPy loads; a user's own setting stays.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    application()()
