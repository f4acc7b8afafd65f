"""`armid sweep`: inertia and friction of single axes from their response to sines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.options import BaseLinkOption, JsonOption, RobotArgument, TipOption
from armid.cli.output import EXIT_UNTRUSTED, console, emit, save_json, show_notes, verb
from armid.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from armid.response.axis_inertia import AxisInertiaModel
    from armid.response.frequency_response import AxisMeasurement
    from armid.response.plan import Sweep, SweepSettings
    from armid.robot.robot import Robot


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("sweep")(sweep)


@verb
def sweep(
    robot: RobotArgument,
    logs: Annotated[list[str] | None, typer.Argument(metavar="LOG...", help="One axis at one pose each.")] = None,
    frequency_hz: Annotated[
        list[float] | None, typer.Option("--frequency-hz", help="Of the sines; found in the spectrum by default.")
    ] = None,
    parameters: Annotated[
        bool, typer.Option("--parameters", help="Base parameters of the load-side inertia from all of them.")
    ] = False,
    predict: Annotated[
        Path | None,
        typer.Option(metavar="POSES", help="With --parameters: inertias of all axes at these poses (CSV q1..qn)."),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            metavar="POSES",
            help="Instead: write the motions for these poses (poses.json of `armid poses`, or CSV q1..qn).",
        ),
    ] = None,
    axis: Annotated[list[str] | None, typer.Option("--axis", help="With --plan: which joints; all by default.")] = None,
    chirp: Annotated[bool, typer.Option("--chirp", help="With --plan: one chirp instead of sines.")] = False,
    minutes: Annotated[
        float | None, typer.Option(help="With --plan: measuring time in all; 8 s per measurement by default.")
    ] = None,
    torque_noise_percent: Annotated[
        float, typer.Option("--torque-noise-percent", help="With --plan: of the torque limit, per sample.")
    ] = 0.3,
    cell: Annotated[str | None, typer.Option(help="With --plan: cell file, to keep clear of.")] = None,
    rate_hz: Annotated[float, typer.Option("--rate-hz", help="With --plan: of the recording.")] = 1000.0,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where files are written.")] = None,
    base: BaseLinkOption = None,
    tip: TipOption = None,
    as_json: JsonOption = False,
) -> None:
    """Axis inertia and viscous friction from frequency response.

    For example `armid sweep mabi-max100 axis1-*.csv --parameters`.
    """
    from armid.robot.load import load_robot

    arm = load_robot(robot, base=base, tip=tip)
    if plan is not None:
        from armid.motions.sweep import Signal
        from armid.response.plan import SweepSettings

        settings = SweepSettings(
            frequencies=tuple(frequency_hz or ()),
            signal=Signal.CHIRP if chirp else Signal.SINES,
            rate_hz=rate_hz,
            minutes=minutes,
            torque_noise=1e-2 * torque_noise_percent,
        )
        emit(planned(arm, plan, axis or list(arm.joint_names), settings, cell, out), as_json=as_json)
        return
    if not logs:
        raise InputError("LOG", "none given", "recordings of one axis each, or --plan POSES")
    measured = [measure(arm, path, tuple(frequency_hz or ())) for path in logs]
    result: dict[str, Any] = {"axes": [as_dict(m, path) for m, path in zip(measured, logs, strict=True)]}
    model = None
    if parameters or predict is not None:
        from armid.response.axis_inertia import axis_inertia_model

        model = axis_inertia_model(arm, [m for m in measured if m.usable])
        result |= model_dict(model)
        if predict is not None:
            result["predictions"] = predictions(model, predict)
    result["files"] = save_json(result, out, "sweep.json")
    show(measured, model)
    emit(result, as_json=as_json)
    if not all(m.usable for m in measured):
        raise typer.Exit(EXIT_UNTRUSTED)


def measure(arm: Robot, path: str, frequencies: tuple[float, ...]) -> AxisMeasurement:
    from armid.logs.log import matched
    from armid.logs.read import read_log
    from armid.response.frequency_response import ResponseSettings, axis_response

    return axis_response(matched(read_log(path, arm), arm), arm, ResponseSettings(frequencies=frequencies))


def planned(
    arm: Robot, poses: Path, axes: list[str], settings: SweepSettings, cell: str | None, out: Path | None
) -> dict[str, Any]:
    """One motion file per measurement, and how good the campaign will be."""
    from armid.motions.trajectory_files import save_csv
    from armid.response.plan import all_axes, sites_from, sweep_plan
    from armid.scene.cell import cell_of as named_cell
    from armid.scene.scene import build_scene
    from armid.simulation.postures import load_postures

    if out is None:
        raise InputError("--plan", "given without --out", "motions are written to files: add --out DIR")
    for name in axes:
        arm.joint_index(name)
    json_file = poses.suffix == ".json"
    sites = sites_from(poses, arm, axes) if json_file else all_axes(load_postures(poses, arm), axes)
    sweeps = sweep_plan(arm, sites, settings, scene=build_scene(arm, named_cell(cell), self_collision=True))
    out.mkdir(parents=True, exist_ok=True)
    files = [save_csv(s.motion, out / f"{s.name}.csv", rate_hz=settings.rate_hz) for s in sweeps]
    minutes = sum(s.motion.duration for s in sweeps) / 60.0
    console().print(f"{len(files)} motions, {minutes:.1f} minutes without the ways between them")
    return {"axes": [], "minutes": minutes, "expected_accuracy": accuracy(arm, sweeps), "files": files}


def accuracy(arm: Robot, sweeps: Sequence[Sweep]) -> list[dict[str, Any]]:
    """What predictions of the inertia will be good to, when the measurements determine all parameters; empty otherwise."""
    from armid.errors import ArmidError
    from armid.response.axis_inertia import expected_accuracy

    poses, axes = [s.motion.pose for s in sweeps], [s.motion.axis for s in sweeps]
    try:
        found = expected_accuracy(arm, poses, axes, [s.deviation for s in sweeps])
    except ArmidError as problem:
        console().print(f"[yellow]accuracy not known[/]: {problem}")
        return []
    for name, typical, worst in zip(arm.joint_names, found.typical, found.worst, strict=True):
        console().print(f"  {name}: inertia predicted to {100 * typical:.2f} %, at the worst pose {100 * worst:.2f} %")
    return [
        {"axis": name, "relative_deviation": float(t), "worst_relative_deviation": float(w)}
        for name, t, w in zip(arm.joint_names, found.typical, found.worst, strict=True)
    ]


def as_dict(m: AxisMeasurement, path: str) -> dict[str, Any]:
    return {
        "axis": m.axis,
        "inertia": m.inertia,
        "viscous": m.viscous,
        "standard_deviation": m.inertia_deviation,
        "standard_deviation_viscous": m.viscous_deviation,
        "gravity_slope": m.slope,
        "torque_lag": m.lag,
        "coupling": m.coupling,
        "pose": m.pose,
        "lines": [
            {
                "frequency_hz": line.frequency,
                "magnitude": line.magnitude,
                "phase": line.phase,
                "inertia": line.inertia,
                "viscous": line.viscous,
            }
            for line in m.lines
        ],
        "usable": m.usable,
        "log": path,
        "notes": [note.as_dict() for note in m.notes],
    }


def model_dict(model: AxisInertiaModel) -> dict[str, Any]:
    e = model.estimate
    rows = zip(e.names, e.units, e.values, e.standard_deviations, e.relative_standard_deviations, strict=True)
    return {
        "base_parameters": len(e),
        "parameters": [
            {
                "name": n,
                "unit": u,
                "value": float(v),
                "standard_deviation": float(s),
                "relative_standard_deviation": float(r),
                "terms": e.base.terms(n),
            }
            for n, u, v, s, r in rows
        ],
    }


def predictions(model: AxisInertiaModel, poses: Path) -> list[dict[str, Any]]:
    """Inertia of every axis at other poses."""
    from armid.simulation.postures import load_postures

    q = load_postures(poses, model.robot)
    rows = zip(q, model.inertia(q), model.deviation(q), strict=True)
    return [{"pose": x, "inertia": J, "standard_deviation": s} for x, J, s in rows]


def show(measured: list[AxisMeasurement], model: AxisInertiaModel | None) -> None:
    """For people."""
    from rich.table import Table

    screen = console()
    table = Table("axis", "inertia", "+-", "viscous", "+-", "gravity slope", "torque lag ms")
    for m in measured:
        numbers = (m.inertia, m.inertia_deviation, m.viscous, m.viscous_deviation, m.slope, 1e3 * m.lag)
        table.add_row(m.axis, *(f"{x:.4g}" for x in numbers))
    screen.print(table)
    for m in measured:
        show_notes(m.notes)
    if model is not None:
        table = Table("base parameter", "value", "relative standard deviation %")
        e = model.estimate
        for name, value, rsd in zip(e.names, e.values, e.relative_standard_deviations, strict=True):
            table.add_row(name, f"{value:.5g}", f"{100 * rsd:.2f}")
        screen.print(table)
