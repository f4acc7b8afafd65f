"""`armid benchmark`: Monte-Carlo of estimation methods on a simulated arm, beside the Cramer-Rao bound."""

from __future__ import annotations

from typing import Annotated

import typer

from armid.cli import options as opt
from armid.cli.output import progress, render, verb

_METHODS = ("identify", "ols", "wls-birdy", "wls", "huber", "tukey", "tls", "iv", "didim", "cloe", "ml")
_NOISE = ("low", "standard", "high")


@verb
def benchmark(
    robot: opt.RobotArgument,
    methods: Annotated[
        str,
        typer.Option("--methods", parser=opt.word_list(_METHODS, none=False), help=f"Of {', '.join(_METHODS)}."),
    ] = ",".join(_METHODS),
    noise: Annotated[
        str, typer.Option("--noise", parser=opt.word_list(_NOISE, none=False), help=f"Of {', '.join(_NOISE)}.")
    ] = ",".join(_NOISE),
    runs: Annotated[int, typer.Option("--runs", min=1, help="Recordings per level of noise.")] = 10,
    seconds: Annotated[float, typer.Option("--motion-seconds", min=0.5, help="Length of each recording [s].")] = 10.0,
    out: opt.OptionalOutOption = None,
    seed: opt.SeedOption = 0,
    cluster: opt.ClusterOption = None,
    base: opt.BaseLinkOption = None,
    tip: opt.TipOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Compare estimation methods on a simulated arm with the best that is possible.

    With --out every finished run is kept at once: start it again and only what is missing is run.
    """
    from armid.robot.load import load_robot
    from armid.studies.benchmark import benchmark as library

    with progress() as tell:
        found = library(
            load_robot(robot, base=base, tip=tip),
            methods=methods.split(","),
            noise=noise.split(","),
            runs=runs,
            seconds=seconds,
            out=out,
            seed=seed,
            cluster=cluster,
            progress=tell,
        )
    render(found, as_json=as_json, out=out)
