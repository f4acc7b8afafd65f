"""`armid calibrate`: robot and measured poses in, calibrated robot and a verdict out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.options import BaseLinkOption, JsonOption, OutOption, RobotArgument, SeedOption, TipOption
from armid.cli.output import EXIT_UNTRUSTED, console, emit, show_files, show_notes, verb
from armid.cli.variadic import VariadicCommand
from armid.documents import write_json

if TYPE_CHECKING:
    from armid.calibration.calibrate import Calibration
    from armid.calibration.poses_table import PosesMapping
    from armid.kinematics.measurement import Measurements
    from armid.kinematics.model import ErrorModel
    from armid.robot.robot import Robot


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("calibrate", cls=VariadicCommand)(calibrate)


@verb
def calibrate(
    robot: RobotArgument,
    poses: Annotated[
        list[Path], typer.Argument(metavar="POSES...", help="Measured poses: CSV with a header (docs/formats.md).")
    ],
    validate: Annotated[
        list[Path] | None, typer.Option("--validate", metavar="POSES", help="Held-out measurements; repeatable.")
    ] = None,
    model: Annotated[
        str, typer.Option(help="complete, mdh, dh, hayati or none: which link constants are fitted.")
    ] = "complete",
    terms: Annotated[
        str,
        typer.Option(help="auto, or of offset, gain, eccentricity, coupling, compliance (comma-separated), or none."),
    ] = "auto",
    base: BaseLinkOption = None,
    tip: TipOption = None,
    setups: Annotated[
        str, typer.Option(help="auto, shared or per-file: do the files share sensor and tool frames?")
    ] = "auto",
    mapping: Annotated[
        Path | None, typer.Option(help="How to read the columns; NAME.map.yaml beside a file by default.")
    ] = None,
    lengths: Annotated[str | None, typer.Option(help="m or mm.")] = None,
    angles: Annotated[str | None, typer.Option(help="rad or deg.")] = None,
    orientation: Annotated[
        str | None, typer.Option(help="quaternion-wxyz, quaternion-xyzw, euler-xyz, ..., rotation-vector.")
    ] = None,
    sensor: Annotated[str | None, typer.Option(help="fixed, or hand: it rides on the arm.")] = None,
    sigma_position_m: Annotated[
        float, typer.Option("--sigma-position-m", help="Noise of the instrument, where the file has none.")
    ] = 0.0,
    sigma_orientation_rad: Annotated[
        float, typer.Option("--sigma-orientation-rad", help="The same for orientation.")
    ] = 0.0,
    method: Annotated[str, typer.Option(help="levenberg-marquardt or least-squares.")] = "levenberg-marquardt",
    plain: Annotated[bool, typer.Option("--plain-loss", help="Least squares without robust weights.")] = False,
    folds: Annotated[int | None, typer.Option(help="Parts of the held-out test.")] = None,
    enough: Annotated[bool, typer.Option("--enough", help="Study how many configurations are enough.")] = False,
    compensate: Annotated[
        Path | None, typer.Option(metavar="TARGETS", help="Joint targets (CSV) to rewrite for a nominal controller.")
    ] = None,
    out: OutOption = Path("calibrated"),
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Find where joints and links really are from measured poses, points, distances or contacts."""
    from time import perf_counter

    started = perf_counter()
    from armid.calibration import calibrate as library
    from armid.calibration.arm import load_arm
    from armid.calibration.files import summary, write_files
    from armid.calibration.poses_table import plain as plain_name
    from armid.calibration.poses_table import read_table
    from armid.report.calibration import calibration_report
    from armid.report.render import write_report

    columns = [plain_name(name)[0] for name in read_table(poses[0]).columns]
    arm = load_arm(robot, columns, base=base, tip=tip)
    how = reading(mapping, lengths, angles, orientation, sensor, sigma_position_m, sigma_orientation_rad)
    train = measured(arm, poses, how, setups)
    held_out = measured(arm, validate, how, "shared") if validate else None
    settings = library.CalibrationSettings(
        candidates(arm, model, terms), fit=fit_settings(method, robust=not plain), folds=folds, seed=seed
    )
    if held_out is not None:
        held_out = named_apart(arm, train, held_out, setups)
    result = library.calibrate(arm, train, validate=held_out, settings=settings)
    files = write_files(result, out, source=robot)
    data = summary(result)
    if enough:
        data["enough"] = study(result, seed)
    if compensate is not None:
        files["targets"] = compensated(result, compensate, out / "targets.csv")
    files["report"] = write_report(calibration_report(result, data.get("enough", ())), out / "report.html")
    data["seconds"] = perf_counter() - started
    data["files"] = {name: str(path) for name, path in files.items()}
    write_json(files["summary"], data)
    show(result, data)
    emit(data, as_json=as_json)
    if result.verdict is not library.Advice.TRUSTED:
        raise typer.Exit(EXIT_UNTRUSTED)


def reading(
    mapping: Path | None,
    lengths: str | None,
    angles: str | None,
    orientation: str | None,
    sensor: str | None,
    sigma_position: float,
    sigma_orientation: float,
) -> PosesMapping | None:
    """How to read the files: the mapping with what the flags say on top; None when neither says anything."""
    from armid.calibration.poses_table import ORIENTATIONS, PosesMapping, read_mapping

    for name, value, allowed in (
        ("--lengths", lengths, ("m", "mm")),
        ("--angles", angles, ("rad", "deg")),
        ("--orientation", orientation, ORIENTATIONS),
        ("--sensor", sensor, ("fixed", "hand")),
    ):
        one_of(name, value, allowed)
    flags: dict[str, Any] = {"lengths": lengths, "angles": angles, "orientation": orientation, "sensor": sensor}
    flags |= {"sigma_position": sigma_position or None, "sigma_orientation": sigma_orientation or None}
    given = {name: value for name, value in flags.items() if value is not None}
    if mapping is None and not given:
        return None
    return replace(read_mapping(mapping) if mapping is not None else PosesMapping(), **given)


def one_of(name: str, value: str | None, allowed: tuple[str, ...]) -> None:
    if value is not None and value not in allowed:
        raise typer.BadParameter(f"{value!r} is not one of: {', '.join(allowed)}", param_hint=name)


def measured(arm: Robot, paths: list[Path], how: PosesMapping | None, setups: str) -> Measurements:
    """All files as one set of measurements."""
    from armid.calibration.read import read_poses
    from armid.calibration.setups import combined
    from armid.robot.robot import JointKind

    one_of("--setups", setups, ("auto", "shared", "per-file"))
    slides = [joint.kind is JointKind.PRISMATIC for joint in arm.joints]
    parts = {path.stem: read_poses(path, arm.joint_names, prismatic=slides, mapping=how) for path in paths}
    return combined(arm, parts, setups)


def named_apart(arm: Robot, train: Measurements, held_out: Measurements, setups: str) -> Measurements:
    """Held-out measurements, with frames of their own when they were taken in another setup."""
    from armid.calibration.setups import combined, share_frames

    apart = setups == "per-file" or (setups == "auto" and not share_frames(arm, [train, held_out]))
    return combined(arm, {"validation": held_out}, "per-file") if apart else held_out


def candidates(arm: Robot, model: str, terms: str) -> tuple[ErrorModel, ...]:
    """The error models to choose from."""
    from armid.calibration.calibrate import default_candidates
    from armid.kinematics.model import Term, UnknownGeometry

    one_of("--model", model, tuple(str(g) for g in UnknownGeometry))
    chosen = default_candidates(arm, geometry=UnknownGeometry(model))
    if terms == "auto":
        return chosen
    names = [] if terms == "none" else [t.strip() for t in terms.split(",")]
    for name in names:
        one_of("--terms", name, tuple(str(t) for t in Term))
    simple = replace(chosen[0], terms=frozenset(Term(t) for t in names if t == "offset"))
    rich = replace(chosen[0], terms=frozenset(Term(t) for t in names))
    return (simple,) if rich == simple else (simple, rich)


def fit_settings(method: str, *, robust: bool) -> Any:
    """How to iterate."""
    from armid.calibration.fit import FitSettings
    from armid.calibration.noise import VectorLoss
    from armid.calibration.solve import SolverSettings, StepRule

    one_of("--method", method, tuple(str(m) for m in StepRule))
    return FitSettings(SolverSettings(method=StepRule(method), loss=VectorLoss() if robust else VectorLoss(0.0)))


def study(result: Calibration, seed: int) -> list[dict[str, float]]:
    """Error against the number of configurations."""
    import numpy as np

    from armid.calibration.enough import pose_count_study

    n = len(np.unique(result.measurements.group))
    counts = sorted({round(float(x)) for x in np.geomspace(max(6, n // 12), 0.9 * n, 6)})
    rows = pose_count_study(result.fit, result.measurements, counts, rng=np.random.default_rng(seed))
    return [
        {
            "configurations": r.configurations,
            "predicted": r.predicted,
            "predicted_total": r.predicted_total,
            "observed": r.observed,
        }
        for r in rows
    ]


def compensated(result: Calibration, targets: Path, path: Path) -> Path:
    """Rewrite joint targets so that the real arm goes where the nominal one would."""
    from armid.calibration.compensate import compensated_targets
    from armid.calibration.targets import read_targets, write_targets

    wanted = read_targets(targets, result.nominal)
    fit = result.fit
    found = compensated_targets(fit.model, fit.after.values, wanted.q, poses=wanted.poses)
    return write_targets(found, result.nominal.joint_names, path)


def show(result: Calibration, data: dict[str, Any]) -> None:
    """Tables for people."""
    from rich.table import Table

    screen = console()
    colour = "green" if data["verdict"] == "trusted" else "yellow"
    screen.print(f"[bold {colour}]{data['verdict']}[/]: {'; '.join(data['reasons'])}")
    table = Table(title=f"{data['configurations']} configurations, {data['identified']} parameters fitted")
    for column in ("error", "mean", "median", "max", "unit"):
        table.add_column(column)
    for kind, unit, factor in (("position", "mm", 1e3), ("orientation", "deg", 180.0 / 3.141592653589793)):
        for name in ("before", "after", "held_out_before", "held_out"):
            row = data[f"{kind}_error_{name}"]
            if row["count"]:
                cells = [f"{factor * row[k]:.3f}" for k in ("mean", "median", "max")]
                table.add_row(f"{kind}, {name.replace('_', ' ')}", *cells, unit)
    screen.print(table)
    if data.get("enough"):
        screen.print(enough_table(data["enough"], "mm" if data["position_error_held_out"]["count"] else "mrad"))
    show_notes(result.notes)
    for name, path in data["files"].items():
        show_files([path], f"{name}: ")


def enough_table(rows: list[dict[str, float]], unit: str) -> Any:
    """Error against the number of configurations."""
    from rich.table import Table

    table = Table(title=f"how many configurations are enough: mean error at the others, {unit}")
    for column in ("configurations", "predicted", "predicted, with noise", "observed"):
        table.add_column(column, justify="right")
    for row in rows:
        cells = [f"{1e3 * row[k]:.3f}" for k in ("predicted", "predicted_total", "observed")]
        table.add_row(str(int(row["configurations"])), *cells)
    return table
