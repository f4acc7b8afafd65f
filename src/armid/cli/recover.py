"""`armid recover`: the model inside a controller."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.output import EXIT_UNTRUSTED, BaseLinkOption, JsonOption, RobotArgument, TipOption, console, emit, verb

if TYPE_CHECKING:
    from armid.estimation.controller_model import ElementError, Recovery
    from armid.experiments.controller_model import ControllerSamples

HELD_OUT = 1.0 / 6.0
"""Of the poses when no validation file is given: 200 of 1200, as in seed 003."""

OUT = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where files are written.")]


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("recover")(recover)


@verb
def recover(
    robot: RobotArgument,
    samples: Annotated[Path, typer.Argument(metavar="SAMPLES", help="Poses with gravity and inertia (npz or csv).")],
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
    out: OUT = None,
    base: BaseLinkOption = None,
    tip: TipOption = None,
    as_json: JsonOption = False,
) -> None:
    """Parameters from the gravity vectors and inertia matrices that a controller reports.

    For example `armid recover lwr4plus controller.npz`.
    """
    from armid.estimation.controller_model import recover as run
    from armid.experiments.controller_model import read_samples
    from armid.robot.load import load_robot

    arm = load_robot(robot, base=base, tip=tip)
    data = read_samples(samples, arm)
    training, validation = data.held_out(HELD_OUT) if validate is None else (data, read_samples(validate, arm))
    found = run(arm, training, validation)
    result = as_dict(found, len(training), len(validation))
    if along is not None:
        result["along"] = compared(found, read_samples(along, arm), out)
    if motion is not None:
        result["torque"] = torque_test(found, motion, cutoff_hz)
    if tool is not None:
        result["tool"] = tool_of(found, read_samples(tool, arm))
    result["files"] = written(result, out)
    show(found, result)
    emit(result, as_json=as_json)
    if any(note.severity.value == "error" for note in found.notes):
        raise typer.Exit(EXIT_UNTRUSTED)


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
        "notes": [note.as_dict() for note in found.notes],
    }


def gravity_terms(found: Recovery) -> list[dict[str, Any]]:
    """Gravity coefficients in closed form with their values, as eqs. 28-29 of seed 003."""
    if found.gravity is None:
        return []
    from armid.experiments.inspection import Quantity, closed_terms, sources_for
    from armid.identifiability.expressions import plain
    from armid.parameters.effects import Effects

    sources = sources_for(found.robot, (Quantity.GRAVITY,), Effects())
    terms, _, _ = closed_terms(sources, found.gravity.base)
    estimate = found.gravity
    return [
        {"name": n, "expression": plain(t), "value": float(v), "standard_deviation": float(s)}
        for n, t, v, s in zip(estimate.names, terms, estimate.values, estimate.standard_deviations, strict=True)
    ]


def elements(training: tuple[ElementError, ...], validation: tuple[ElementError, ...]) -> list[dict[str, Any]]:
    """Tables II and III: mean square and largest error of every element."""
    return [
        {
            "element": t.channel, "size": t.size, "mean_square_train": t.mean_square, "mean_square_validation": v.mean_square,
            "largest_train": t.largest, "largest_validation": v.largest,
        }
        for t, v in zip(training, validation, strict=True)
    ]  # fmt: skip


def compared(found: Recovery, data: ControllerSamples, out: Path | None) -> dict[str, Any]:
    """Every reported element along a motion against the recovered model, as figs. 5-6; a CSV of both with --out."""
    import numpy as np

    from armid.estimation.controller_model import errors
    from armid.kernels.evaluate import evaluate_rows

    shown = errors(found.robot, data, found.joint)
    table = [{"element": e.channel, "size": e.size, "mean_square": e.mean_square, "largest": e.largest} for e in shown]
    result: dict[str, Any] = {"poses": len(data), "elements": table}
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        columns = [("time", np.arange(len(data), dtype=float) if data.time is None else data.time)]
        for source, y in data.sources(found.robot).values():
            predicted = evaluate_rows(source, data.q) @ found.joint.standard
            for k, name in enumerate(source.channels):
                columns += [(name, y[:, k]), (f"{name} recovered", predicted[:, k])]
        path = out / "elements.csv"
        header = ",".join(name for name, _ in columns)
        np.savetxt(path, np.column_stack([c for _, c in columns]), delimiter=",", header=header, comments="")
        result["file"] = path
    return result


def torque_test(found: Recovery, motion: str, cutoff_hz: float) -> list[dict[str, Any]]:
    """Measured joint torque against the recovered model along a motion, per joint; seed 003 fig. 4.

    A controller's model has no friction, a torque sensor sees what of it is on the links' side: the error is given as it is, and
    once more without what viscous and Coulomb friction and an offset explain of it.
    """
    import numpy as np

    from armid.logs.conditioning import condition
    from armid.logs.conditioning.settings import Conditioning
    from armid.logs.read import read_log
    from armid.parameters.effects import TorqueSide

    settings = Conditioning(cutoff=cutoff_hz, order=4)
    data = condition(read_log(motion, found.robot), found.robot, settings)
    error = data.torque(TorqueSide.LINK) - found.torque(data.q, data.qd, data.qdd)
    out = []
    for k, name in enumerate(found.robot.joint_names):
        qd = data.qd[:, k]
        A = np.column_stack([qd, np.sign(qd), np.ones_like(qd)])
        rest = error[:, k] - A @ np.linalg.lstsq(A, error[:, k], rcond=None)[0]
        out.append(
            {
                "joint": name,
                "mean_square": float(np.mean(error[:, k] ** 2)),
                "largest": float(np.abs(error[:, k]).max()),
                "mean_square_without_friction": float(np.mean(rest**2)),
            }
        )
    return out


def tool_of(found: Recovery, data: ControllerSamples) -> dict[str, Any]:
    """What the same arm carries in other samples, from the change of its coefficients; eqs. 31-32."""
    from armid.estimation.controller_model import fit
    from armid.estimation.payload import tool_change

    sources = {name: source for name, (source, _) in data.sources(found.robot).items()}
    after = fit(found.robot, data, sources)[0]
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


def written(result: dict[str, Any], out: Path | None) -> list[Path]:
    """`recovered.json` and what else was written."""
    import json

    from armid.cli.output import jsonable

    if out is None:
        return []
    out.mkdir(parents=True, exist_ok=True)
    path = out / "recovered.json"
    path.write_text(json.dumps(jsonable(result), indent=1) + "\n", encoding="utf-8")
    return [path, *([result["along"]["file"]] if "along" in result and "file" in result["along"] else [])]


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
    for note in found.notes:
        screen.print(f"[{'red' if note.severity.value == 'error' else 'yellow'}]{note.subject}[/]: {note.message}")
