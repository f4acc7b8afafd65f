"""`armid inspect`: what can be identified."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armid.cli.options import BaseLinkOption, JsonOption, RobotArgument, TipOption
from armid.cli.output import console, emit, show_files, show_notes, verb
from armid.documents import plain
from armid.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from armid.arrays import FloatArray
    from armid.identifiability.excitation import Excitation
    from armid.inspection.inspection import Inspection, Quantity, Tracking
    from armid.inspection.motion_excitation import RecordedExcitation
    from armid.parameters.effects import Effects

_POINTS = ((0.1, 0.05, 0.02), (-0.05, 0.1, 0.03), (0.02, -0.08, 0.1))
"""[m] In the tracked frame. Off its axes, because a target on the last joint's axis does not see that joint turn."""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("inspect")(verb(inspect))


def inspect(
    robot: RobotArgument,
    friction: Annotated[str, typer.Option(help="Comma-separated: viscous, coulomb, offset.")] = "",
    rotor_inertia: Annotated[bool, typer.Option("--rotor-inertia", help="Rotor inertia of every drive.")] = False,
    payload: Annotated[str, typer.Option(help="none, loaded (every run carries it) or both.")] = "none",
    torques: Annotated[str, typer.Option(help="Where torque is measured: link, motor, both or difference.")] = "link",
    quantity: Annotated[
        str, typer.Option(help="torque, gravity, inertia-matrix, axis-inertia or pose; several with commas.")
    ] = "torque",
    frame: Annotated[str | None, typer.Option(help="Tracked frame, for poses; the tip by default.")] = None,
    measure: Annotated[str, typer.Option(help="For poses: pose, points or distance.")] = "pose",
    points: Annotated[int, typer.Option(min=1, max=3, help="Number of tracked points, for points and distance.")] = 1,
    errors: Annotated[
        str | None, typer.Option(help="For poses: described (the description's constants) or complete (six per joint).")
    ] = None,
    tolerance: Annotated[float | None, typer.Option(help="Of the rank decision, relative, in (0, 1).")] = None,
    closed_form: Annotated[
        str, typer.Option(help="Comma-separated, with --out: gravity, inertia-matrix, coriolis, axis-inertia.")
    ] = "",
    log: Annotated[
        str | None, typer.Option(metavar="LOG", help="Which of these parameters does this recorded motion excite?")
    ] = None,
    trajectory: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The same for a planned motion (JSON or CSV).")
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Torque noise [N m] with --log or --trajectory, one or per joint; the log's own by default.",
        ),
    ] = None,
    latex: Annotated[bool, typer.Option("--latex", help="The regroupings in LaTeX on stdout.")] = False,
    base: BaseLinkOption = None,
    tip: TipOption = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where files are written.")] = None,
    as_json: JsonOption = False,
) -> None:
    """What can be identified: alone, in combination (and in which), not at all.

    For example `armid inspect iiwa14 --friction viscous,coulomb`.
    """
    from armid.identifiability.rank import STRUCTURAL_TOLERANCE
    from armid.inspection.inspection import inspect as run
    from armid.robot.load import load_robot

    forms = chosen_closed_forms(closed_form, out)
    found = run(
        load_robot(robot, base=base, tip=tip),
        chosen_quantities(quantity),
        chosen_effects(friction, rotor_inertia, payload, torques),
        tracking=chosen_tracking(frame, measure, points, errors),
        tolerance=STRUCTURAL_TOLERANCE if tolerance is None else tolerance,
    )
    result = as_dict(found)
    motion = moved(found, log, trajectory, chosen_noise(noise, log, trajectory))
    if motion is not None:
        result["excitation"] = excitation_dict(motion.excitation) | detection_dict(motion)
    if out is not None:
        result["files"] = written(found, result, out, forms)
    if latex:
        result["latex"] = latex_document(found)
        if not as_json:
            typer.echo(result["latex"])
    elif not as_json:
        show(found)
        if motion is not None:
            show_excitation(motion)
        show_written(result.get("files", []))
    emit(result, as_json=as_json)


def one_of(flag: str, value: str, allowed: Any) -> Any:
    """The member of an enum with this value, or an error that lists them."""
    try:
        return allowed(value)
    except ValueError:
        raise InputError(flag, f"{value!r} is not one of them", ", ".join(m.value for m in allowed)) from None


def chosen_quantities(text: str) -> tuple[Quantity, ...]:
    from armid.inspection.inspection import Quantity

    return tuple(one_of("--quantity", part.strip(), Quantity) for part in text.split(","))


def chosen_effects(friction: str, rotor_inertia: bool, payload: str, torques: str) -> Effects:
    from armid.parameters.effects import Effects, PayloadRuns, TorqueSide, friction_words

    words: dict[str, Any] = friction_words(friction)
    return Effects(
        **words,
        rotor_inertia=rotor_inertia,
        torques=one_of("--torques", torques, TorqueSide),
        payload=one_of("--payload", payload, PayloadRuns),
    )


def chosen_tracking(frame: str | None, measure: str, points: int, errors: str | None) -> Tracking:
    from armid.inspection.inspection import Tracking
    from armid.rows.pose import ChainErrors, PoseMeasure

    return Tracking(
        frame,
        one_of("--measure", measure, PoseMeasure),
        _POINTS[:points],
        None if errors is None else one_of("--errors", errors, ChainErrors),
    )


def chosen_closed_forms(text: str, out: Path | None) -> list[str]:
    names = [part.strip() for part in text.split(",") if part.strip()]
    if not names:
        return []
    if out is None:
        raise InputError("--closed-form", "given without --out", "closed forms are written to files: add --out DIR")
    from armid.inspection.closed_form import CLOSED_FORMS

    for name in names:
        if name not in CLOSED_FORMS:
            raise InputError("--closed-form", f"{name!r} is not one of them", ", ".join(CLOSED_FORMS))
    return names


def as_dict(found: Inspection) -> dict[str, Any]:
    """The JSON object."""
    from armid.identifiability.expressions import plain

    base = found.base
    return {
        "robot": found.robot.name,
        "quantity": [quantity.value for quantity in found.quantities],
        "standard_parameters": len(base.parameters),
        "base_parameters": len(base),
        "unidentifiable": list(base.unidentifiable),
        "base": [
            {
                "name": name,
                "expression": plain(terms),
                "terms": base.terms(i),
                "symbolic_terms": {key: str(value) for key, value in terms.items()},
            }
            for i, (name, terms) in enumerate(zip(base.names, found.terms, strict=True))
        ],
        "per_channel": list(found.per_channel.values()),
        "channels": list(found.per_channel),
        "categories": {name: category.value for name, category in base.categories.items()},
        "closed_form": found.closed_form,
        "rank": {
            "tolerance": base.decision.tolerance,
            "gap": base.decision.gap,
            "reason": base.decision.reason,
            "singular_values": base.decision.singular_values,
        },
        "weak": [{"ratio": weak.ratio, "combination": dict(weak.combination)} for weak in base.weak],
        "notes": [note.as_dict() for note in found.notes],
    }


def chosen_noise(text: str | None, log: str | None, trajectory: Path | None) -> list[float] | None:
    if text is None:
        return None
    if log is None and trajectory is None:
        raise InputError("--noise", "given without a motion", "it says what a --log or a --trajectory can tell")
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError("--noise", f"{text!r} is not a list of numbers", "for example 0.1,0.1,0.05") from None


def moved(
    found: Inspection, log: str | None, trajectory: Path | None, noise: list[float] | None
) -> RecordedExcitation | None:
    """What a motion on request excites; None without one."""
    if log is None and trajectory is None:
        return None
    if log is not None and trajectory is not None:
        raise InputError("--log", "given together with --trajectory", "one motion at a time")
    from armid.inspection.motion_excitation import RecordedExcitation, excitation_of, recorded_excitation

    if log is not None:
        from armid.logs.read import read_log

        return recorded_excitation(found, read_log(log, found.robot), noise=noise)
    assert trajectory is not None
    return RecordedExcitation(excitation_of(found, planned_inputs(found, trajectory), noise=noise))


def planned_inputs(found: Inspection, path: Path) -> FloatArray:
    """q, qd, qdd of a trajectory file, in the robot's joint order."""
    import numpy as np

    from armid.identifiability.expectation import excitation_inputs
    from armid.motions.trajectory_files import load_trajectory

    planned = load_trajectory(path)
    if set(planned.joint_names) != set(found.robot.joint_names):
        raise InputError(path, f"moves {', '.join(planned.joint_names)}", ", ".join(found.robot.joint_names))
    order = [planned.joint_names.index(name) for name in found.robot.joint_names]
    n = len(order)
    x = excitation_inputs(planned)
    return np.hstack([x[:, k * n : (k + 1) * n][:, order] for k in range(3)])


def detection_dict(motion: RecordedExcitation) -> dict[str, Any]:
    """The rank decision tied to the noise of a log; nothing for a planned motion."""
    if motion.detected is None:
        return {}
    decision, above = motion.detected.decision, motion.detected.names
    return {
        "noise": dict(motion.noise or {}),
        "above_noise": {
            "base_parameters": len(above),
            "tolerance": decision.tolerance,
            "gap": decision.gap,
            "reason": decision.reason,
            "singular_values": decision.singular_values,
            "lost": [name for name in motion.excitation.names if name not in above],
        },
    }


def excitation_dict(motion: Excitation) -> dict[str, Any]:
    rows = zip(motion.names, motion.strength, motion.standard_deviations, motion.excited, strict=True)
    return {
        "persistent": motion.is_persistent,
        "alpha": motion.bounds[0],
        "beta": motion.bounds[1],
        "not_excited": list(motion.not_excited),
        "parameters": [
            {"name": name, "strength": float(strength), "standard_deviation": float(deviation), "excited": excited}
            for name, strength, deviation, excited in rows
        ],
        "open_directions": [
            {"ratio": w.ratio, "combination": dict(w.combination)} for w in motion.unexcited_directions
        ],
    }


def show_excitation(recorded: RecordedExcitation) -> None:
    """How well a motion excites, weakest parameters first, and what drowns in the noise."""
    screen, motion = console(), recorded.excitation
    yes = "[green]every base parameter is excited[/]"
    no = f"[red]{len(motion.not_excited)} of {len(motion.names)} base parameters are not excited[/]"
    low, high = motion.bounds
    screen.print(f"this motion: {yes if motion.is_persistent else no} (between {low:.2g} and {high:.2g})")
    weakest = sorted(zip(motion.strength, motion.names, strict=True))[:WEAKEST_SHOWN]
    screen.print("weakest (1 is perfect): " + ", ".join(f"{name} {strength:.2g}" for strength, name in weakest))
    show_notes(motion.notes)
    if recorded.detected is not None:
        lost = [name for name in motion.names if name not in recorded.detected.names]
        colour = "yellow" if lost else "green"
        screen.print(
            f"[{colour}]{len(recorded.detected)} of {len(motion.names)} base parameters stand out of the noise[/]"
            + (f"; lost in it: {', '.join(lost)}" if lost else "")
        )
        screen.print(f"[dim]{recorded.detected.decision.reason}[/dim]")


WEAKEST_SHOWN = 6

_COLOURS = {"alone": "green", "in combination": "yellow", "not at all": "red"}


def show(found: Inspection) -> None:
    """The tables for people."""
    base, screen = found.base, console()
    screen.print(f"[bold]{found.robot.name}[/bold]: {' and '.join(found.quantities)}")
    screen.print(f"{len(base)} base parameters out of {len(base.parameters)} standard ones")
    screen.print(base_table(found))
    for category, colour in _COLOURS.items():
        names = [name for name, value in base.categories.items() if value == category]
        screen.print(f"[{colour}]{category}[/{colour}] ({len(names)}): {', '.join(names) or '-'}")
    ranks = ", ".join(f"{name} {rank}" for name, rank in found.per_channel.items())
    screen.print(f"rank of each channel's own rows: {ranks}")
    screen.print(f"[dim]{base.decision.reason}[/dim]")
    show_notes(found.notes)


def show_written(files: list[str]) -> None:
    """What was written; the minimal model of the axes is short enough to be read at once."""
    from armid.inspection.closed_form import MINIMAL_TEXT

    screen = console()
    for file in map(Path, files):
        if file.name == MINIMAL_TEXT:
            screen.print(file.read_text(encoding="utf-8").rstrip(), markup=False, highlight=False)
    show_files(files)


def base_table(found: Inspection) -> Table:
    """One row per base parameter, coloured by whether it is a parameter alone or a combination."""
    from rich.table import Table

    from armid.identifiability.expressions import unicode

    table = Table(show_edge=False, pad_edge=False)
    table.add_column("base parameter")
    table.add_column("combination of standard parameters", overflow="fold")
    for name, terms in zip(found.base.names, found.terms, strict=True):
        colour = _COLOURS["alone" if len(terms) == 1 else "in combination"]
        table.add_row(f"[{colour}]{name}[/{colour}]", unicode(terms))
    return table


def latex_document(found: Inspection) -> str:
    """An `align*` environment with one regrouping per line."""
    from armid.identifiability.expressions import latex, latex_name

    lines = [
        rf"  {latex_name(name)}^{{\mathrm{{R}}}} &= {latex(terms)} \\"
        for name, terms in zip(found.base.names, found.terms, strict=True)
        if len(terms) > 1
    ]
    alone = [latex_name(name) for name, terms in zip(found.base.names, found.terms, strict=True) if len(terms) == 1]
    return "\n".join(
        [r"\begin{align*}", *lines, r"\end{align*}", rf"% alone: ${', '.join(alone)}$" if alone else "% none alone"]
    )


def written(found: Inspection, result: dict[str, Any], folder: Path, closed_forms: list[str]) -> list[str]:
    """Writes the result, the LaTeX of the regroupings, and any closed forms asked for."""
    import json

    texts = {
        "inspect.json": json.dumps(plain(result), indent=1, ensure_ascii=False) + "\n",
        "base_parameters.tex": latex_document(found) + "\n",
    }
    if closed_forms:
        from armid.inspection.closed_form import closed_form_files

        for name in closed_forms:
            texts |= closed_form_files(found, name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(folder, f"cannot be written: {error.strerror or error}") from None
    return [str(folder / name) for name in texts]
