"""`armid demo`: the whole story on the embedded robot."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated, Literal

import typer

from armid.cli import options as opt
from armid.cli.output import progress, render, verb

FaultWord = Literal["none", "torque-sign", "lag", "mounting"]


@verb
def demo(
    robot: opt.RobotArgument = "iiwa14",
    starts: Annotated[int, typer.Option(min=1, help="Random starts of the search for the excitation.")] = 4,
    fault: Annotated[FaultWord, typer.Option(help="A mistake to make on purpose.")] = "none",
    out: opt.OutOption = Path("demo"),
    seed: opt.SeedOption = 0,
    as_json: opt.JsonOption = False,
) -> None:
    """Design, run, identify, validate, export and report on the embedded robot: an arm learns its body."""
    from armid.cli.command_line import command_record
    from armid.studies.demo import demo as tell_story

    began = perf_counter()

    with progress() as bar:

        def tell(text: str) -> None:
            typer.echo(f"{perf_counter() - began:5.1f} s  {text}", err=True)
            bar(text)

        done = tell_story(
            out, robot=robot, starts=starts, fault=fault, seed=seed, progress=tell, command=command_record()
        )
    try:
        render(done, as_json=as_json, files=done.files)
    finally:
        typer.echo("\n".join(("", "Three commands to try next:", *_next(robot, out, fault))), err=True)


def _next(robot: str, out: Path, fault: FaultWord) -> tuple[str, str, str]:
    """Lines to copy: what else can be done with what lies in the folder, and how to begin with an arm of one's own."""
    wrong = "torque-sign" if fault == "none" else "none"
    return (
        f"  armid demo {robot} --fault {wrong} --out {out}-{wrong}    # "
        + ("a mistake on purpose, and what is said of it" if fault == "none" else "the same without the mistake"),
        f"  armid validate {out / 'result'} {out / 'validation_log.csv'}    # the stored result, tested again",
        "  armid inspect YOUR.urdf    # what torque would tell about your own arm",
    )
