"""Regressors as standalone source code: what [Halper2024]'s algorithm 1 calls func_Y, func_Y_b and func_pi_b.

    tau = regressor(q, qd, qdd) pi = base_regressor(q, qd, qdd) base_parameters(pi)

The rows are those of `armid.rows.TorqueRows`, recorded once; base columns are those of the leading parameters. No identified
value is in them: they follow from the geometry alone, so that there is nothing to trust or to refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from armid.documents import write_text
from armid.errors import InputError
from armid.export.formats import CODE, Format, RegressorKind
from armid.export.source_code import Function, Language, code_of
from armid.folders import answer_folder
from armid.identifiability.base import BaseParameters
from armid.identifiability.structure import structural_base
from armid.identification.inputs import is_result, result_folder
from armid.identification.result import load_result
from armid.parameters.effects import DEFAULT_FRICTION, Effects, effects_of
from armid.recursion.tape import Tape
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.rows.torque import TorqueRows


def regressor_code(
    robot: Robot,
    effects: Effects,
    language: Language,
    kind: RegressorKind,
    *,
    base: BaseParameters | None = None,
    name: str = "arm",
) -> dict[str, str]:
    """Files of a regressor, by file name.

    Args:
        robot: geometry and gravity.
        effects: what is in the torque besides the links.
        language: what to write.
        kind: of all standard parameters, or of the base ones.
        base: parameters to use; those of the structure when None.
        name: of the module, and prefix of C and MATLAB functions.

    Raises:
        InputError: shapes of friction whose entries are no function of q, qd and qdd.
    """
    rows = TorqueRows(robot, effects)
    if rows.shape_columns:
        raise InputError(
            "friction", ", ".join(effects.shapes), "a regressor of q, qd and qdd has viscous, coulomb and offset only"
        )
    if kind is RegressorKind.STANDARD:
        functions = [_regressor(rows, range(len(rows.columns)), "regressor", "standard")]
        names: Sequence[str] = rows.columns
    else:
        base = base or structural_base(rows)
        chosen = [int(k) for k in base.independent]
        functions = [_regressor(rows, chosen, "base_regressor", "base"), _base_parameters(base)]
        names = base.names
    header = [f"Columns in order: {', '.join(names)}."]
    return code_of(functions, robot, language, name=name, header=header)


def export_regressor(
    source: str | Path,
    target: Format,
    kind: RegressorKind,
    folder: Path | None = None,
    *,
    friction: str = DEFAULT_FRICTION,
    name: str | None = None,
) -> tuple[Path, ...]:
    """Writes the regressor of a result, with its effects and base parameters, or of a robot.

    Args:
        source: folder of a result, or a robot as `load_robot` takes it.
        target: a format that is a program.
        kind: of all standard parameters, or of the base ones.
        folder: to write to; the result's, or the present one for a robot, when None.
        friction: in the torque of a robot; a result has its own.
        name: of the files; the robot's name and the kind of regressor when None.

    Raises:
        InputError: a format that is no program.
    """
    if target not in CODE:
        raise InputError(f"--to {target}", "a regressor is code", f"use --to {', '.join(CODE[:-1])} or {CODE[-1]}")
    base, home = None, Path()
    if is_result(source):
        stored = load_result(source)
        robot, effects, base, home = stored.described, stored.effects, stored.estimate.base, result_folder(source)
    else:
        robot, effects = load_robot(str(source)), effects_of(friction)
    stem = name or f"{robot.name}_{kind}"
    safe = "".join(c if c.isalnum() and c.isascii() else "_" for c in stem)
    safe = safe if not safe[0].isdigit() else f"arm_{safe}"
    texts = regressor_code(robot, effects, Language(target), kind, base=base, name=safe)
    place = folder or home
    with answer_folder(place, f"export {target} {safe}"):
        return tuple(write_text(place / file, text) for file, text in texts.items())


def _regressor(rows: TorqueRows, chosen: Sequence[int], name: str, which: str) -> Function:
    """The rows' chosen columns as one function."""
    tape, n = Tape(), rows.robot.n_joints
    found = rows.rows([tape.input(k) for k in range(3 * n)], tape)
    zero = tape.constant(0.0)
    outputs = tuple(tape.node(row.get(column, zero)) for row in found for column in chosen)
    return Function(
        name=name,
        summary=f"matrix [{len(found)} x {len(chosen)}] that gives torque [N m or N] times the {which} parameters, row by row",
        arguments=("q", "qd", "qdd"),
        shape=(len(found), len(chosen)),
        tape=tape,
        outputs=outputs,
        length=n,
    )


def _base_parameters(base: BaseParameters) -> Function:
    """P pi as one function."""
    tape, p = Tape(), len(base.parameters)
    pi = [tape.input(k) for k in range(p)]
    outputs = []
    for row in base.projection:
        total = tape.constant(0.0)
        for k, factor in enumerate(row):
            if factor:
                total = total + pi[k] * float(factor)
        outputs.append(tape.node(total))
    return Function(
        name="base_parameters",
        summary=f"the {len(base)} base parameters of all {p} standard ones",
        arguments=("pi",),
        shape=(len(base),),
        tape=tape,
        outputs=tuple(outputs),
        length=p,
    )
