"""`armid recover`: the model inside a controller."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.options import BaseLinkOption, JsonOption, RobotArgument, SeedOption, TipOption
from armid.cli.output import EXIT_UNTRUSTED, console, emit, show_notes, verb
from armid.documents import plain

if TYPE_CHECKING:
    from armid.recovery.recover import ElementError, Recovery
    from armid.recovery.samples import ControllerSamples
    from armid.recovery.validation import Along, TorqueTest
    from armid.robot.robot import Robot

HELD_OUT = 1.0 / 6.0
"""Of the poses when no validation file is given: 200 of 1200, as in [Gaz2014]."""

OUT = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where files are written.")]


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("recover")(recover)


@verb
def recover(
    robot: RobotArgument,
    samples: Annotated[
        Path | None, typer.Argument(metavar="SAMPLES", help="Poses with gravity and inertia (npz or csv).")
    ] = None,
    validate: Annotated[
        Path | None, typer.Option(metavar="SAMPLES", help="Other poses; the last sixth by default.")
    ] = None,
    along: Annotated[
        Path | None, typer.Option(metavar="SAMPLES", help="Values read along a motion: all elements compared.")
    ] = None,
    motion: Annotated[
        str | None, typer.Option(metavar="LOG", help="A motion with joint torque: predicted torque compared.")
    ] = None,
    tool: Annotated[
        Path | None, typer.Option(metavar="SAMPLES", help="The same arm with a tool: its mass and centre.")
    ] = None,
    cutoff_hz: Annotated[float, typer.Option("--cutoff-hz", help="Low-pass on the motion.")] = 1.0,
    gravity: Annotated[
        str | None,
        typer.Option("--gravity", metavar="X,Y,Z", help="In the base frame [m/s^2]; the description's by default."),
    ] = None,
    rotor_inertia: Annotated[
        bool, typer.Option("--rotor-inertia", help="The inertia matrix has the rotors on its diagonal.")
    ] = False,
    plan: Annotated[
        int | None, typer.Option("--plan", min=1, metavar="N", help="Write N random poses to read at, and stop.")
    ] = None,
    accept: Annotated[
        list[str] | None, typer.Option("--accept", metavar="CODE", help="Error of the motion's log to accept.")
    ] = None,
    out: OUT = None,
    base: BaseLinkOption = None,
    tip: TipOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Parameters from the gravity vectors and inertia matrices that a controller reports.

    For example `armid recover lwr4plus controller.npz`; `armid recover lwr4plus --plan 1200` writes poses to read them at.
    """
    from armid.errors import InputError
    from armid.recovery.recover import recover as run
    from armid.recovery.samples import read_samples
    from armid.recovery.validation import along as compared
    from armid.recovery.validation import joint_tables
    from armid.robot.load import load_robot
    from armid.words import numbers

    arm = load_robot(
        robot, base=base, tip=tip, gravity=numbers("--gravity", gravity, 3, "0,0,-9.81") if gravity else None
    )
    if plan is not None:
        emit({"files": [planned(arm, plan, out or Path("recovered"), seed)], "poses": plan}, as_json=as_json)
        return
    if samples is None:
        raise InputError("SAMPLES", "none given", "a file of controller data, or --plan N for poses to read them at")
    data = read_samples(samples, arm)
    training, validation = data.held_out(HELD_OUT) if validate is None else (data, read_samples(validate, arm))
    found = run(arm, training, validation, rotors=rotor_inertia)
    elements = None if along is None else compared(found, read_samples(along, arm))
    torque = None if motion is None else tested(found, motion, cutoff_hz, tuple(accept or ()))
    result = as_dict(found, len(training), len(validation))
    result["tables"] = joint_tables(found, elements, torque)
    if elements is not None:
        result["along"] = {"poses": len(elements.time), "elements": [error_dict(e) for e in elements.errors]}
    if torque is not None:
        result["torque"] = torque.rows()
    if tool is not None:
        result["tool"] = tool_of(found, read_samples(tool, arm))
    result["files"] = [] if out is None else written(found, result, elements, torque, out)
    show(found, result)
    emit(result, as_json=as_json)
    if found.verdict != "trusted":
        raise typer.Exit(EXIT_UNTRUSTED)


def planned(arm: Robot, count: int, out: Path, seed: int) -> Path:
    """`postures.csv`: random poses within the limits in which no links touch."""
    import numpy as np

    from armid.recovery.recover import random_poses

    out.mkdir(parents=True, exist_ok=True)
    path = out / "postures.csv"
    poses = random_poses(arm, count, np.random.default_rng(seed), free=True)
    header = ",".join(f"q_{name}" for name in arm.joint_names)
    np.savetxt(path, poses, delimiter=",", header=header, comments="")
    console().print(f"{count} poses -> {path}")
    return path


def tested(found: Recovery, motion: str, cutoff_hz: float, accept: tuple[str, ...]) -> TorqueTest:
    """Measured joint torque against the recovered model along a motion, low-passed as [Gaz2014] does."""
    from armid.logs.conditioning import Conditioning, condition
    from armid.logs.health.check import check_log
    from armid.logs.read import read_log
    from armid.recovery.validation import FILTER_ORDER, torque_test

    log = check_log(read_log(motion, found.robot), found.robot)
    return torque_test(
        found, condition(log, found.robot, Conditioning(cutoff=cutoff_hz, order=FILTER_ORDER, accept=accept))
    )


def error_dict(e: ElementError) -> dict[str, Any]:
    return {"element": e.channel, "size": e.size, "mean_square": e.mean_square, "largest": e.largest}


def as_dict(found: Recovery, training: int, validation: int) -> dict[str, Any]:
    """The contract's keys and everything behind them."""
    return {
        "base_parameters": found.free,
        "gravity_coefficients": None if found.gravity is None else len(found.gravity),
        "inertia_coefficients": None if found.inertia is None else len(found.inertia),
        "max_error_gravity": found.largest("gravity"),
        "max_error_inertia": found.largest("inertia"),
        "training_poses": training,
        "validation_poses": validation,
        "gravity": gravity_terms(found),
        "base": [
            {
                "name": n,
                "unit": u,
                "value": float(v),
                "standard_deviation": float(s),
                "terms": found.joint.base.terms(k),
            }
            for k, (n, u, v, s) in enumerate(
                zip(
                    found.joint.names,
                    found.joint.units,
                    found.joint.values,
                    found.joint.standard_deviations,
                    strict=True,
                )
            )
        ],
        "elements": elements(found.training, found.validation),
        "constraints": [
            {"channel": s.channel, "kind": s.kind.value, "vanish": [dict(c) for c in s.constraints]}
            for s in found.silent
        ],
        "physically_consistent": found.consistent is not None and found.consistent.is_physical,
        "standard": {}
        if found.consistent is None
        else dict(zip(found.consistent.names, found.consistent.values.tolist(), strict=True)),
        "verdict": found.verdict,
        "reasons": list(found.reasons),
        "notes": [note.as_dict() for note in found.notes],
    }


def gravity_terms(found: Recovery) -> list[dict[str, Any]]:
    """Gravity coefficients in closed form with their values, as eqs. 28-29 of [Gaz2014]."""
    if found.gravity is None:
        return []
    from armid.identifiability.closed_terms import closed_terms
    from armid.identifiability.expressions import plain
    from armid.rows.gravity import GravityRows

    terms = closed_terms((GravityRows(found.robot),), found.gravity.base).terms
    estimate = found.gravity
    return [
        {"name": n, "expression": plain(t), "value": float(v), "standard_deviation": float(s)}
        for n, t, v, s in zip(estimate.names, terms, estimate.values, estimate.standard_deviations, strict=True)
    ]


def elements(training: tuple[ElementError, ...], validation: tuple[ElementError, ...]) -> list[dict[str, Any]]:
    """Tables II and III: mean square and largest error of every element."""
    return [
        {
            "element": t.channel,
            "size": t.size,
            "mean_square_train": t.mean_square,
            "mean_square_validation": v.mean_square,
            "largest_train": t.largest,
            "largest_validation": v.largest,
        }
        for t, v in zip(training, validation, strict=True)
    ]


def tool_of(found: Recovery, data: ControllerSamples) -> dict[str, Any]:
    """What the same arm carries in other samples, from the change of its coefficients; eqs. 31-32."""
    from armid.payload.tool_change import tool_change
    from armid.recovery.recover import fit

    after = fit(found.robot, data, tuple(data.sources(found.robot)), found.effects)[0]
    change = tool_change(found.joint, after, found.robot.n_joints)
    values = dict(zip(change.names, change.values.tolist(), strict=True))
    mass = change.mass
    return {
        "mass": mass,
        "centre_of_mass": [values.get(name, 0.0) / mass for name in ("mx", "my", "mz")],
        "values": values,
        "standard_deviations": dict(zip(change.names, change.standard_deviations.tolist(), strict=True)),
        "frame": found.robot.link_names[-1],
    }


def written(
    found: Recovery, result: dict[str, Any], elements: Along | None, torque: TorqueTest | None, out: Path
) -> list[Path]:
    """`recovered.json`, the page, the elements along a motion, and the description with the recovered bodies."""
    import json

    import numpy as np

    from armid.report.recovery import recovery_report
    from armid.report.render import write_report
    from armid.robot.yaml_write import to_yaml

    out.mkdir(parents=True, exist_ok=True)
    files = [out / "recovered.json"]
    files[0].write_text(json.dumps(plain(result), indent=1) + "\n", encoding="utf-8")
    poses = (result["training_poses"], result["validation_poses"])
    report = recovery_report(found, poses, result["gravity"], elements, torque, result.get("tool"))
    files.append(write_report(report, out / "recovered.html"))
    if elements is not None:
        files.append(out / "elements.csv")
        pairs = [x for name in elements.channels for x in (name, f"{name} recovered")]
        both = np.stack([elements.reported, elements.recovered], axis=2).reshape(len(elements.time), -1)
        header = ",".join(["time", *pairs])
        np.savetxt(files[-1], np.column_stack([elements.time, both]), delimiter=",", header=header, comments="")
    if found.verdict == "trusted" and found.bodies is not None:
        files.append(out / "recovered.yaml")
        files[-1].write_text(to_yaml(found.robot.with_inertial(found.bodies)), encoding="utf-8")
    return files


def show(found: Recovery, result: dict[str, Any]) -> None:
    """For people."""
    from rich.table import Table

    screen = console()
    parts = [
        f"{len(e)} {name} coefficients" for name, e in (("gravity", found.gravity), ("inertia", found.inertia)) if e
    ]
    screen.print(f"{found.robot.name}: {' and '.join(parts)}, {found.free} base parameters together")
    if result["gravity"]:
        table = Table("gravity coefficient", "value", "+-", title="gravity, kg m")
        for term in result["gravity"]:
            table.add_row(term["expression"], f"{term['value']:.6g}", f"{term['standard_deviation']:.1g}")
        screen.print(table)
    for key, words in (("mean_square", "mean square error"), ("largest", "largest error")):
        sets = ("training", "validation", "motion")
        table = Table(
            "joint", *(f"gravity, {name}" for name in sets), "torque test", title=f"{words} per joint, N m or N"
        )
        for row in result["tables"]:
            values = (*(row[f"gravity_{key}_{name}"] for name in sets), row[f"torque_{key}"])
            table.add_row(row["joint"], *("-" if x is None else f"{x:.3g}" for x in values))
        screen.print(table)
    table = Table("element", "size", "MSE train", "MSE validation", "max train", "max validation")
    for e in result["elements"]:
        numbers = [
            e[k] for k in ("size", "mean_square_train", "mean_square_validation", "largest_train", "largest_validation")
        ]
        table.add_row(e["element"], *(f"{x:.3g}" for x in numbers))
    screen.print(table)
    for row in result.get("torque", ()):
        screen.print(
            f"torque {row['joint']}: MSE {row['mean_square']:.3g}, largest {row['largest']:.3g} N m; "
            f"MSE {row['mean_square_without_friction']:.3g} without friction and offset"
        )
    if "tool" in result:
        centre = ", ".join(f"{x:.4f}" for x in result["tool"]["centre_of_mass"])
        screen.print(f"tool: {result['tool']['mass']:.4f} kg at ({centre}) m in {result['tool']['frame']}")
    show_notes(found.notes)
