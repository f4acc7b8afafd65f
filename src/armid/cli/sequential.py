"""`armid sequential`: one link after the other, from the tip."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.output import EXIT_UNTRUSTED, BaseLinkOption, JsonOption, RobotArgument, TipOption, console, emit, verb

if TYPE_CHECKING:
    from armid.estimation.estimate import Estimate
    from armid.estimation.sequential import SequentialEstimate
    from armid.experiments.sequential import Stage
    from armid.parameters.effects import Effects
    from armid.robot.robot import Robot


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("sequential")(sequential)


@verb
def sequential(
    robot: RobotArgument,
    logs: Annotated[
        list[str], typer.Argument(metavar="LOG...", help="One recording of all joints, or one per stage of the plan.")
    ],
    friction: Annotated[str, typer.Option(help="Of viscous, coulomb, offset; 'none' for none.")] = "none",
    rotor_inertia: Annotated[bool, typer.Option("--rotor-inertia", help="Rotor inertias too.")] = False,
    from_nominal: Annotated[
        bool, typer.Option("--from-nominal", help="Start from the description's values instead of zero.")
    ] = False,
    commanded: Annotated[
        bool, typer.Option("--commanded", help="Output-error structure: the commanded motion instead of the measured.")
    ] = False,
    cutoff_hz: Annotated[float | None, typer.Option("--cutoff-hz", help="Low-pass; chosen by default.")] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where files are written.")] = None,
    base: BaseLinkOption = None,
    tip: TipOption = None,
    as_json: JsonOption = False,
) -> None:
    """Base parameters joint by joint from the tip, proximal joints locked or moving.

    `armid design ROBOT --sequential` plans the motions; a joint that stands still in a recording counts as locked, and the
    recording serves the first joint that moves. For example `armid sequential cmu-dd-arm2 stage3.csv stage2.csv stage1.csv`.
    """
    from armid.cli.identify import effects_of
    from armid.estimation.sequential import TipToBase
    from armid.experiments.torque import TorqueRows
    from armid.identifiability.structure import structural_base
    from armid.robot.load import load_robot

    arm = load_robot(robot, base=base, tip=tip)
    effects = effects_of(friction, rotor_inertia, "none", "link")
    source = TorqueRows(arm, effects)
    stages = [stage for path in logs for stage in stages_of(arm, path, cutoff_hz, commanded=commanded)]
    stages.sort(key=lambda stage: -arm.joint_index(stage.joint))
    found = TipToBase().fit(source, stages, start=nominal(arm, effects) if from_nominal else None)
    estimate = found.over(structural_base(source), source.space.units)
    result = as_dict(found, estimate)
    result["files"] = written(result, out)
    show(found, estimate, result)
    emit(result, as_json=as_json)
    if estimate.notes:
        raise typer.Exit(EXIT_UNTRUSTED)


def stages_of(arm: Robot, path: str, cutoff_hz: float | None, *, commanded: bool) -> list[Stage]:
    """The stages a recording serves: all joints when all move, else the first joint that moves."""
    import numpy as np

    from armid.errors import InputError
    from armid.experiments.sequential import LOCKED_TRAVEL, locked_stage, moving_stages
    from armid.logs.conditioning import Conditioning, condition
    from armid.logs.log import Channel, matched
    from armid.logs.read import read_log

    log = matched(read_log(path, arm), arm)
    if commanded:
        from dataclasses import replace

        log = replace(log, channels=dict(log.channels) | {Channel.POSITION: log[Channel.COMMANDED_POSITION]})
    data = condition(log, arm, Conditioning(cutoff=cutoff_hz))
    still = np.ptp(data.q, axis=0) < LOCKED_TRAVEL
    if still.all():
        raise InputError(path, "no joint moves", "record the motion of the joint and those beyond it")
    first = int(np.argmin(still))
    if first == 0:
        return list(moving_stages(arm, data.inputs(), data.torque()))
    inputs = np.array(data.inputs())
    # A joint on its brake does not accelerate; what a differentiator makes of its encoder's noise is left out.
    n = arm.n_joints
    inputs[:, n : n + first] = inputs[:, 2 * n : 2 * n + first] = 0.0
    return [locked_stage(arm, arm.joint_names[first], inputs, data.torque(), arm.joint_names[:first])]


def nominal(arm: Robot, effects: Effects) -> list[float]:
    """The description's own values of every standard parameter."""
    from armid.experiments.torque import space_of
    from armid.parameters.inertial import INERTIAL_NAMES

    values = []
    for p in space_of(arm, effects).parameters:
        if p.quantity in INERTIAL_NAMES:
            values.append(float(arm.inertial[10 * p.body + INERTIAL_NAMES.index(p.quantity)]))
        else:
            values.append(float(getattr(arm.joints[p.body].drive, p.quantity)))
    return values


def as_dict(found: SequentialEstimate, estimate: Estimate) -> dict[str, Any]:
    from armid.identifiability.base import Category

    categories = estimate.base.categories
    return {
        "base_parameters": len(estimate),
        "known_directions": len(found.directions),
        "stages": [
            {
                "joint": s.joint, "locked": list(s.locked), "rows": s.rows, "found": s.found, "known": s.known,
                "sigma": s.sigma, "parameters": list(s.parameters),
            }
            for s in found.stages
        ],
        "parameters": [
            {"name": n, "unit": u, "value": float(v), "standard_deviation": float(s), "terms": estimate.base.terms(n)}
            for n, u, v, s in zip(
                estimate.names, estimate.units, estimate.values, estimate.standard_deviations, strict=True
            )
        ],
        "alone": [name for name, c in categories.items() if c is Category.ALONE],
        "in_combination": [name for name, c in categories.items() if c is Category.COMBINED],
        "standard": dict(zip(found.parameters, found.values.tolist(), strict=True)),
        "notes": [note.as_dict() for note in estimate.notes],
    }  # fmt: skip


def written(result: dict[str, Any], out: Path | None) -> list[Path]:
    import json

    from armid.cli.output import jsonable

    if out is None:
        return []
    out.mkdir(parents=True, exist_ok=True)
    path = out / "sequential.json"
    path.write_text(json.dumps(jsonable(result), indent=1) + "\n", encoding="utf-8")
    return [path]


def show(found: SequentialEstimate, estimate: Estimate, result: dict[str, Any]) -> None:
    """For people."""
    from rich.table import Table

    screen = console()
    table = Table("stage", "locked", "rows", "found", "known so far")
    for s in found.stages:
        table.add_row(s.joint, ", ".join(s.locked) or "-", str(s.rows), str(s.found), str(s.known))
    screen.print(table)
    shown = len(result["alone"]) + len(result["in_combination"])
    screen.print(
        f"{shown} standard parameters show in the torque, but their columns are dependent: {len(estimate)} combinations can be "
        f"found, {len(result['alone'])} of them parameters by themselves. Other directions keep their starting values."
    )
    table = Table("base parameter", "value", "+-", "made of")
    for name, value, deviation in zip(estimate.names, estimate.values, estimate.standard_deviations, strict=True):
        terms = " ".join(f"{c:+.4g} {t}" for t, c in estimate.base.terms(name).items())
        table.add_row(name, f"{value:.5g}", f"{deviation:.2g}", terms)
    screen.print(table)
    for note in estimate.notes:
        screen.print(f"[yellow]{note.code}[/]: {note.message}")
