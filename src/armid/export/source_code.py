"""An identified arm as standalone source code in Python, C and MATLAB: torque, M, C and g, or what a controller calls per tick.

The recursion is run once on recording scalars with the parameters as constants; what is left is a list of assignments
that needs nothing but sin, cos and sign. Base parameters are enough: a standard vector that has their values in the
leading columns and zeros elsewhere moves the arm in exactly the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from armid.export.formats import CodeContent, What
from armid.export.observer_code import (
    MODEL,
    observer_c,
    observer_c_declarations,
    observer_python,
    observer_summary,
)
from armid.parameters.inertial import N_INERTIAL
from armid.recursion.dynamics import coriolis, inverse_dynamics, mass_matrix
from armid.recursion.motion import drive_coordinates, geometric_coordinates
from armid.recursion.tape import Node, Op, Tape
from armid.robot.robot import Robot
from armid.robot.urdf.text import one_line


class Language(StrEnum):
    """What the generated code is written in."""

    PYTHON = "python"
    C = "c"
    MATLAB = "matlab"


@dataclass(frozen=True, kw_only=True)
class Function:
    """One generated function.

    Args:
        name: of the function.
        summary: one line for its comment.
        arguments: vectors it takes (`q`, `qd`, `qdd`), all of one length.
        shape: (n,), or (n, columns).
        tape: the recorded arithmetic.
        outputs: row by row.
        length: of every argument; the number of rows by default.
    """

    name: str
    summary: str
    arguments: tuple[str, ...]
    shape: tuple[int, ...]
    tape: Tape
    outputs: tuple[Node, ...]
    length: int = 0

    @property
    def argument_length(self) -> int:
        return self.length or self.shape[0]


def _functions(robot: Robot, what: What) -> tuple[Function, ...]:
    """What the code computes directly from a state."""
    moving = ("q", "qd", "qdd")
    match what:
        case What.MODEL:
            return _model_functions(robot)
        case What.FEEDFORWARD:
            words = "torque [N m or N] of a wanted motion, friction included"
            return (_function(robot, "feedforward", moving, words, _torque),)
        case What.GRAVITY:
            words = "torque [N m or N] that holds the arm still, without friction"
            return (_function(robot, "gravity", ("q",), words, _gravity),)
        case What.OBSERVER:
            return (_function(robot, MODEL, moving, "torque [N m or N] that the observer expects", _torque),)


def _model_functions(robot: Robot) -> tuple[Function, ...]:
    """Torque, mass matrix, Coriolis matrix and gravity of a robot with its inertial and drive parameters."""
    return (
        _function(robot, "torque", ("q", "qd", "qdd"), "torque [N m or N] of the drives, friction included", _torque),
        _function(robot, "mass_matrix", ("q",), "mass matrix, rotors included, row by row", _mass),
        _function(
            robot, "coriolis_matrix", ("q", "qd"), "Coriolis matrix of the Christoffel symbols, row by row", _coriolis
        ),
        _function(robot, "gravity", ("q",), "torque [N m or N] that holds the arm still, without friction", _gravity),
    )


Body = Callable[[Robot, list[list[Node]], list[list[Node]], Tape], Sequence[Node]]


def _function(robot: Robot, name: str, arguments: tuple[str, ...], summary: str, body: Body) -> Function:
    tape, n = Tape(), robot.n_joints
    inputs = [[tape.input(k * n + i) for i in range(n)] for k in range(len(arguments))]
    pi = [[tape.constant(float(v)) for v in row] for row in robot.inertial.reshape(n, N_INERTIAL)]
    outputs = tuple(tape.node(value) for value in body(robot, inputs, pi, tape))
    return Function(
        name=name,
        summary=summary,
        arguments=arguments,
        shape=(n,) if len(outputs) == n else (n, n),
        tape=tape,
        outputs=outputs,
    )


def _torque(robot: Robot, inputs: list[list[Node]], pi: list[list[Node]], tape: Tape) -> Sequence[Node]:
    q, qd, qdd = (geometric_coordinates(robot, x, tape) for x in inputs)
    rigid = drive_coordinates(robot, inverse_dynamics(robot, q, qd, qdd, pi, tape), tape)
    out = []
    for i, joint in enumerate(robot.joints):
        drive = joint.drive
        out.append(
            rigid[i]
            + drive.rotor_inertia * inputs[2][i]
            + drive.viscous * inputs[1][i]
            + drive.coulomb * tape.sign(inputs[1][i])
            + drive.offset
        )
    return out


def _gravity(robot: Robot, inputs: list[list[Node]], pi: list[list[Node]], tape: Tape) -> Sequence[Node]:
    still = [tape.constant(0.0)] * robot.n_joints
    q = geometric_coordinates(robot, inputs[0], tape)
    return drive_coordinates(robot, inverse_dynamics(robot, q, still, still, pi, tape), tape)


def _mass(robot: Robot, inputs: list[list[Node]], pi: list[list[Node]], tape: Tape) -> Sequence[Node]:
    M = mass_matrix(robot, geometric_coordinates(robot, inputs[0], tape), pi, tape)
    rotors = robot.drive("rotor_inertia")
    entries = _both_sides(robot, M, tape)
    return [entries[j][k] + (float(rotors[j]) if j == k else 0.0) for j in range(len(M)) for k in range(len(M))]


def _coriolis(robot: Robot, inputs: list[list[Node]], pi: list[list[Node]], tape: Tape) -> Sequence[Node]:
    q, qd = (geometric_coordinates(robot, x, tape) for x in inputs)
    C = _both_sides(robot, coriolis(robot, q, qd, pi, tape), tape)
    return [value for row in C for value in row]


def _both_sides(robot: Robot, A: list[list[Node]], tape: Tape) -> list[list[Node]]:
    """C^T A C with the coupling C."""
    rows = [drive_coordinates(robot, row, tape) for row in A]
    columns = [drive_coordinates(robot, [row[k] for row in rows], tape) for k in range(len(A))]
    return [[columns[k][j] for k in range(len(A))] for j in range(len(A))]


def source_code(
    robot: Robot,
    language: Language,
    *,
    name: str = "arm",
    header: Sequence[str] = (),
    content: CodeContent | None = None,
) -> dict[str, str]:
    """Files of the generated code, by file name; what is not the whole model has its word in the name.

    Args:
        robot: with the identified inertial and drive parameters.
        language: what to write.
        name: of the module, and prefix of C and MATLAB functions.
        header: comment lines at the top of every file (where the numbers come from, the verdict).
        content: what the code computes; the model by default.
    """
    content = content or CodeContent()
    functions = _functions(robot, content.what)
    file = name if content.what is What.MODEL else f"{name}_{content.what}"
    watches = content.what is What.OBSERVER
    rates = (content.rate_hz, content.bandwidth_hz)
    lines = [*header, *observer_summary(*rates)] if watches else header
    match language:
        case Language.PYTHON:
            tail = observer_python(robot, *rates) if watches else ""
            return {f"{file}.py": _python(functions, robot, lines, tail)}
        case Language.C:
            tail = observer_c(robot, name, *rates) if watches else ""
            declared = observer_c_declarations(robot, name, content.rate_hz) if watches else ""
            return {
                f"{file}.c": _c(functions, robot, name, lines, file, tail),
                f"{file}.h": _c_header(functions, robot, name, lines, file, declared),
            }
        case Language.MATLAB:
            return {f"{name}_{f.name}.m": _matlab(f, robot, name, lines) for f in functions}


def code_of(
    functions: Sequence[Function], robot: Robot, language: Language, *, name: str, header: Sequence[str] = ()
) -> dict[str, str]:
    """Files of some functions, by file name; arguments as for `source_code`."""
    match language:
        case Language.PYTHON:
            return {f"{name}.py": _python(functions, robot, header, "")}
        case Language.C:
            return {
                f"{name}.c": _c(functions, robot, name, header, name, ""),
                f"{name}.h": _c_header(functions, robot, name, header, name, ""),
            }
        case Language.MATLAB:
            return {f"{name}_{f.name}.m": _matlab(f, robot, name, header) for f in functions}


@dataclass(frozen=True)
class _Syntax:
    """How one language writes the few things an assignment needs."""

    element: Callable[[str, int], str]
    assign: str
    sign: Callable[[str], str]
    calls: tuple[str, str]


def _assignments(function: Function, syntax: _Syntax) -> tuple[list[str], list[str]]:
    """Assignment lines, and the expression of every output."""
    n = function.argument_length
    text: dict[int, str] = {}
    lines: list[str] = []
    for index in function.tape.needed(list(function.outputs)):
        operation = function.tape.operations[index]
        if operation.op is Op.CONSTANT:
            text[index] = repr(operation.value)
            continue
        if operation.op is Op.INPUT:
            vector, i = divmod(operation.a, n)
            text[index] = syntax.element(function.arguments[vector], i)
            continue
        a, b = text.get(operation.a, ""), text.get(operation.b, "")
        value = {
            Op.ADD: f"{a} + {b}",
            Op.SUB: f"{a} - {b}",
            Op.MUL: f"{a} * {b}",
            Op.NEG: f"-{a}",
            Op.SIN: f"{syntax.calls[0]}({a})",
            Op.COS: f"{syntax.calls[1]}({a})",
            Op.SIGN: syntax.sign(a),
        }[operation.op]
        text[index] = f"x{index}"
        lines.append(syntax.assign.format(name=f"x{index}", value=value))
    return lines, [text[node.index] for node in function.outputs]


def _rows_of(function: Function, outputs: Sequence[str]) -> list[str]:
    """Expressions with commas between them, row by row."""
    width = function.shape[-1]
    return [", ".join(outputs[k : k + width]) for k in range(0, len(outputs), width)]


def _python(functions: Sequence[Function], robot: Robot, header: Sequence[str], tail: str) -> str:
    syntax = _Syntax(lambda v, i: f"{v}[{i}]", "    {name} = {value}", lambda a: f"_sign({a})", ("sin", "cos"))
    parts = [
        "\n".join(f"# {line}" for line in _preamble(robot, header)),
        "from math import cos, isfinite, sin\nfrom operator import mul" if tail else "from math import cos, sin",
        "def _sign(x):\n    return float(x > 0) - float(x < 0)",
    ]
    for function in functions:
        lines, outputs = _assignments(function, syntax)
        rows = _rows_of(function, outputs)
        value = f"[{rows[0]}]" if len(function.shape) == 1 else "[" + ", ".join(f"[{row}]" for row in rows) + "]"
        arguments = ", ".join(function.arguments)
        parts.append(
            f'def {function.name}({arguments}):\n    """{function.summary}."""\n'
            + "\n".join([*lines, f"    return {value}"])
        )
    return "\n\n\n".join([*parts, *([tail.rstrip()] if tail else [])]) + "\n"


def _c(functions: Sequence[Function], robot: Robot, name: str, header: Sequence[str], file: str, tail: str) -> str:
    syntax = _Syntax(
        lambda v, i: f"{v}[{i}]",
        "  const double {name} = {value};",
        lambda a: f"(double)(({a} > 0) - ({a} < 0))",
        ("sin", "cos"),
    )
    parts = [_c_comment(robot, header), f'#include "{file}.h"\n\n#include <math.h>']
    for function in functions:
        lines, outputs = _assignments(function, syntax)
        stores = [f"  out[{k}] = {value};" for k, value in enumerate(outputs)]
        parts.append(f"{_c_signature(function, name)} {{\n" + "\n".join([*lines, *stores]) + "\n}")
    return "\n\n".join([*parts, *([tail.rstrip()] if tail else [])]) + "\n"


def _c_signature(function: Function, name: str) -> str:
    n = function.argument_length
    arguments = ", ".join(f"const double {a}[{n}]" for a in function.arguments)
    return f"void {name}_{function.name}({arguments}, double out[{int(np.prod(function.shape))}])"


def _c_comment(robot: Robot, header: Sequence[str]) -> str:
    return "\n".join(f"// {line}" for line in _preamble(robot, header))


def _c_header(
    functions: Sequence[Function], robot: Robot, name: str, header: Sequence[str], file: str, declared: str
) -> str:
    guard = f"{file.upper()}_H"
    lines = [_c_comment(robot, header), f"#ifndef {guard}", f"#define {guard}", ""]
    for function in functions:
        lines += [f"// {function.summary}", f"{_c_signature(function, name)};", ""]
    return "\n".join([*lines, *([declared] if declared else []), f"#endif  // {guard}", ""])


def _matlab(function: Function, robot: Robot, name: str, header: Sequence[str]) -> str:
    syntax = _Syntax(lambda v, i: f"{v}({i + 1})", "{name} = {value};", lambda a: f"sign({a})", ("sin", "cos"))
    lines, outputs = _assignments(function, syntax)
    rows = _rows_of(function, outputs)
    value = "[" + "; ".join(outputs) + "]" if len(function.shape) == 1 else "[" + "; ".join(rows) + "]"
    arguments = ", ".join(function.arguments)
    comments = "\n".join(f"% {line}" for line in [f"{function.summary}.", *_preamble(robot, header)])
    body = "\n".join([*lines, f"out = {value};"])
    return f"function out = {name}_{function.name}({arguments})\n{comments}\n{body}\nend\n"


def _preamble(robot: Robot, header: Sequence[str]) -> list[str]:
    """What every file says at its top."""
    lines = [f"{robot.name}: model generated by armid.", f"Joints in order: {', '.join(robot.joint_names)}.", *header]
    return [one_line(line) for line in lines]
