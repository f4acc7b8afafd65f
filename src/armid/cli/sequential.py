"""`armid sequential`: one link after the other, from the tip."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.options import BaseLinkOption, JsonOption, RobotArgument, TipOption
from armid.cli.output import EXIT_UNTRUSTED, console, emit, save_json, show_notes, verb

if TYPE_CHECKING:
    from armid.estimation.estimate import Estimate
    from armid.identifiability.base import BaseParameters
    from armid.parameters.effects import Effects
    from armid.robot.robot import Robot
    from armid.rows.torque import TorqueRows
    from armid.sequential.estimate import SequentialEstimate
    from armid.sequential.stages import Stage


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
    torques: Annotated[str, typer.Option(metavar="link|motor", help="Where torque was measured.")] = "link",
    from_nominal: Annotated[
        bool, typer.Option("--from-nominal", help="Start from the description's values instead of zero.")
    ] = False,
    start: Annotated[
        Path | None, typer.Option("--start", metavar="FILE", help="Starting values: JSON, parameter name to number.")
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="DIR", help="Of `design --sequential`: says which joints are locked."),
    ] = None,
    locked: Annotated[
        list[str] | None, typer.Option("--locked", metavar="JOINT", help="Has to stand still in every recording.")
    ] = None,
    hold: Annotated[
        bool,
        typer.Option(
            "--hold", help="What a stage found stays fixed in later ones, as in [Khosla1985]; for exact data."
        ),
    ] = False,
    commanded: Annotated[
        bool, typer.Option("--commanded", help="Output-error structure: the commanded motion instead of the measured.")
    ] = False,
    as_recorded: Annotated[
        bool, typer.Option("--as-recorded", help="Recorded velocity and acceleration, unfiltered, sample by sample.")
    ] = False,
    velocity: Annotated[
        str, typer.Option("--velocity", metavar="position|measured", help="Derived from position, or as recorded.")
    ] = "position",
    cutoff_hz: Annotated[
        float | None, typer.Option("--cutoff-hz", help="Low-pass on rows and torque alike; chosen by default.")
    ] = None,
    torque_delay_ms: Annotated[
        float,
        typer.Option("--torque-delay-ms", help="How late torque is stamped; a held command: minus half its period."),
    ] = 0.0,
    accept: Annotated[
        list[str] | None, typer.Option("--accept", metavar="CODE", help="Log error to accept; repeatable.")
    ] = None,
    step: Annotated[
        float | None, typer.Option("--step", metavar="SECONDS", help="Sampling step of files without a clock.")
    ] = None,
    data_root: Annotated[
        Path | None, typer.Option("--data-root", metavar="DIR", help="Where mapping files find recordings.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where files are written.")] = None,
    base: BaseLinkOption = None,
    tip: TipOption = None,
    as_json: JsonOption = False,
) -> None:
    """Base parameters joint by joint from the tip, proximal joints locked or moving.

    `armid design ROBOT --sequential` plans the motions; a joint that stands still in a recording counts as locked, and the
    recording serves the first joint that moves. For example `armid sequential cmu-dd-arm2 stage3.csv stage2.csv stage1.csv`.
    """
    from armid.identifiability.structure import structural_base
    from armid.logs.conditioning import VelocitySource
    from armid.logs.read import ReadOptions, read_log
    from armid.parameters.effects import effects_of
    from armid.robot.load import load_robot
    from armid.rows.torque import TorqueRows
    from armid.sequential.estimate import TipToBase
    from armid.sequential.stages import ErrorStructure, Staging, stages_of_log
    from armid.words import choice

    arm = load_robot(robot, base=base, tip=tip)
    effects = effects_of(friction, rotor_inertia=rotor_inertia, payload="none", torques=side_of(torques))
    source = TorqueRows(arm, effects)
    settings = Staging(
        effects=effects,
        cutoff=cutoff_hz,
        structure=ErrorStructure.OUTPUT if commanded else ErrorStructure.INPUT,
        velocity=choice("velocity source", velocity, VelocitySource),
        torque_delay=1e-3 * torque_delay_ms,
        accept=tuple(accept or ()),
        as_recorded=as_recorded,
    )
    stages: list[Stage] = []
    for path, names in zip(logs, locks(arm, logs, plan, locked or []), strict=True):
        log = read_log(path, arm, options=ReadOptions(step=step, data_root=data_root))
        stages += stages_of_log(log, arm, replace(settings, locked=names))
    stages.sort(key=lambda stage: -arm.joint_index(stage.joint))
    values = read_start(start, source) if start is not None else nominal(arm, effects) if from_nominal else None
    found = TipToBase(hold=hold).fit(source, stages, start=values)
    estimate = found.over(structural_base(source), source.space.units)
    result = as_dict(found, estimate)
    result["structure"] = settings.structure.value
    result["files"] = save_json(result, out, "sequential.json")
    show(found, estimate, result)
    emit(result, as_json=as_json)
    if estimate.notes:
        raise typer.Exit(EXIT_UNTRUSTED)


def side_of(word: str) -> str:
    """One torque per joint is looked at: `both` and `difference` are other experiments."""
    from armid.errors import UnknownNameError

    if word not in ("link", "motor"):
        raise UnknownNameError("torques", word, ("link", "motor"))
    return word


def locks(arm: Robot, logs: list[str], plan: Path | None, locked: list[str]) -> list[tuple[str, ...]]:
    """Which joints have to stand still in each recording."""
    from armid.design.sequential import planned_locks
    from armid.errors import InputError

    for name in locked:
        arm.joint_index(name)
    if plan is None:
        return [tuple(locked)] * len(logs)
    planned = planned_locks(plan, arm)
    if len(planned) != len(logs):
        raise InputError(
            plan, f"{len(planned)} experiments", f"{len(logs)} recordings were given; one each, in that order"
        )
    return [(*names, *locked) for names in planned]


def read_start(path: Path, source: TorqueRows) -> list[float]:
    """Starting values of every standard parameter; zero where the file is silent."""
    import json

    from armid.errors import InputError, UnknownNameError

    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        values = {str(name): float(value) for name, value in content.items()}
    except (OSError, UnicodeDecodeError, ValueError, TypeError, AttributeError) as problem:
        raise InputError(path, f"not starting values: {problem}", 'expected JSON such as {"link1.mass": 10}') from None
    for name, value in values.items():
        if name not in source.columns:
            raise UnknownNameError("parameter", name, source.columns)
        if not abs(value) < float("inf"):
            raise InputError(path, f"{name} is {value}", "expected a number")
    return [values.get(name, 0.0) for name in source.columns]


def nominal(arm: Robot, effects: Effects) -> list[float]:
    """The description's own values of every standard parameter."""
    from armid.parameters.inertial import INERTIAL_NAMES
    from armid.rows.torque import space_of

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
                "joint": s.joint,
                "locked": list(s.locked),
                "rows": s.rows,
                "found": s.found,
                "known": s.known,
                "sigma": s.sigma,
                "parameters": list(s.parameters),
            }
            for s in found.stages
        ],
        "parameters": [
            {"name": n, "unit": u, "value": float(v), "standard_deviation": float(s), "terms": estimate.base.terms(n)}
            for n, u, v, s in zip(
                estimate.names, estimate.units, estimate.values, estimate.standard_deviations, strict=True
            )
        ],
        "invisible_changes": invisible(estimate.base),
        "alone": [name for name, c in categories.items() if c is Category.ALONE],
        "in_combination": [name for name, c in categories.items() if c is Category.COMBINED],
        "standard": dict(zip(found.parameters, found.values.tolist(), strict=True)),
        "notes": [note.as_dict() for note in estimate.notes],
    }


def invisible(base: BaseParameters) -> list[dict[str, float]]:
    """Changes of several standard parameters together that no torque notices: why fewer can be found than show."""
    out = []
    for direction in base.null_space.T:
        largest = float(abs(direction).max())
        terms = {n: float(v) for n, v in zip(base.parameters, direction, strict=True) if abs(v) > 1e-9 * largest}
        if len(terms) > 1:
            out.append(terms)
    return out


def show(found: SequentialEstimate, estimate: Estimate, result: dict[str, Any]) -> None:
    """For people."""
    from rich.table import Table

    screen = console()
    table = Table("stage", "locked", "rows", "found", "known so far")
    for s in found.stages:
        table.add_row(s.joint, ", ".join(s.locked) or "-", str(s.rows), str(s.found), str(s.known))
    screen.print(table)
    shown = len(result["alone"]) + len(result["in_combination"])
    dependent = result["invisible_changes"]
    screen.print(
        f"{shown} standard parameters show in the torque, but their columns are dependent: {len(estimate)} combinations can be "
        f"found, {len(result['alone'])} of them parameters by themselves ({', '.join(result['alone']) or 'none'}). "
        "Other directions keep their starting values."
    )
    if dependent:
        screen.print(f"{len(dependent)} changes that no torque notices, whatever the motion:")
        for terms in dependent:
            screen.print("  " + " ".join(f"{value:+.4g} {name}" for name, value in terms.items()), markup=False)
    table = Table("base parameter", "value", "+-", "made of")
    for name, value, deviation in zip(estimate.names, estimate.values, estimate.standard_deviations, strict=True):
        terms = " ".join(f"{c:+.4g} {t}" for t, c in estimate.base.terms(name).items())
        table.add_row(name, f"{value:.5g}", f"{deviation:.2g}", terms)
    screen.print(table)
    show_notes(estimate.notes)
