"""Small interpreters of robot languages: enough of URScript and KRL to replay what armid writes, and nothing that it does not."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from armid.arrays import FloatArray


@dataclass
class PlayedScript:
    """What a URScript program asked of the robot: kind of call and its arguments, in order."""

    calls: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)

    def positions(self, register: int) -> FloatArray:
        """Targets of `servoj` while output integer register 0 holds a value."""
        held, out = 0, []
        for name, arguments in self.calls:
            if name == "write_output_integer_register":
                held = arguments[1]
            elif name == "servoj" and held == register:
                out.append(arguments[0])
        return np.array(out)


_ROBOT_CALLS = ("popup", "movej", "servoj", "stopj", "sleep", "write_output_integer_register")


def play_urscript(text: str) -> PlayedScript:
    """Runs a URScript program: def, while, assignments, arithmetic, lists, calls.

    Blocks (`def` and `while` to `end`) are rewritten to Python, checked to hold only the nodes below, and run with the robot's
    functions as recorders. As a controller has it on its port: the first line begins a function, the last one ends it, what
    is between is indented, and the function is called. Quotients of two whole numbers and lists of them are refused: what
    becomes of their fractions differs from one version to another.
    """
    first, *rest = text.rstrip("\n").split("\n")
    program = re.fullmatch(r"def (\w+)\(\):", first)
    assert program, "the first line must begin the program"
    assert rest[-1] == "end", "the last line must end the program"
    assert all(line[:1] in ("", " ") for line in rest[:-1]), "lines of a program are indented"
    lines, depth = [], 0
    for raw in text.splitlines():
        line = raw.split("#", 1)[0].strip()
        if not line:
            continue
        if line == "end":
            depth -= 1
            continue
        opens = re.match(r"(def|while) ", line)
        body = line if not opens or line.endswith(":") else line + ":"
        body = re.sub(r"^(while .*[^:])$", r"\1:", body)
        lines.append("    " * depth + body)
        depth += bool(opens)
    assert depth == 0, "a block is not closed"
    tree = ast.parse("\n".join(lines))
    allowed = (
        ast.Module | ast.FunctionDef | ast.arguments | ast.arg | ast.While | ast.Assign | ast.Expr | ast.Call | ast.Name
        | ast.Load | ast.Store | ast.Constant | ast.List | ast.Subscript | ast.BinOp | ast.Add | ast.Sub | ast.Mult | ast.Div
        | ast.Compare | ast.Lt | ast.LtE | ast.UnaryOp | ast.USub
    )  # fmt: skip
    for node in ast.walk(tree):
        assert isinstance(node, allowed), f"{type(node).__name__} is not URScript that we write"
    played = PlayedScript()

    def recorder(name: str) -> Callable[..., None]:
        return lambda *arguments: played.calls.append((name, arguments))

    known: dict[str, Any] = {name: recorder(name) for name in _ROBOT_CALLS}
    known |= {"floor": math.floor, "quotient": _quotient, "True": True, "False": False, "__builtins__": {}}
    tree = ast.fix_missing_locations(_Quotients().visit(tree))
    exec(compile(tree, "play.script", "exec"), known)  # our own text, of the nodes above
    known[program[1]]()
    return played


class _Quotients(ast.NodeTransformer):
    """Divisions become calls that look at their operands, and lists are looked at as they stand."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        return ast.Call(ast.Name("quotient", ast.Load()), [node.left, node.right], [])

    def visit_List(self, node: ast.List) -> ast.AST:
        kinds = {type(item.value) for item in node.elts if isinstance(item, ast.Constant)}
        assert int not in kinds, "a list of whole numbers takes no fractions"
        return node


def _quotient(a: float, b: float) -> float:
    assert isinstance(a, float) or isinstance(b, float), "whole numbers are divided"
    return a / b


@dataclass(frozen=True)
class KrlRun:
    """One spline of a KRL program: override, points [deg] and when each is reached [s]."""

    override: float
    points: FloatArray
    times: FloatArray
    traced: bool


def play_krl(text: str) -> tuple[FloatArray, list[KrlRun]]:
    """Runs a KRL program of approach, splines with a time block, override and trace; gives the approach and the runs."""
    source = [line.split(";", 1)[0].strip() for line in text.splitlines()]
    programs: dict[str, list[str]] = {}
    for line in source:
        opened = re.match(r"DEF (\w+)\(", line)
        if opened:
            programs[opened.group(1)] = current = []
        elif line == "END":
            current = []
        elif line:
            current.append(line)
    names = list(programs)
    override, traced, approach, runs = 100.0, False, None, []
    for line in programs[names[0]]:
        if line.startswith("$OV_PRO"):
            override = float(line.split("=")[1])
        elif line.startswith("$TRACE.MODE"):
            traced = line.endswith("#T_START")
        elif line.startswith("PTP "):
            approach = _axes(line)
        elif re.match(r"(\w+)\( ?\)", line):
            points, times = _spline(programs[line.split("(")[0]])
            runs.append(KrlRun(override, points, times / (override / 100.0), traced))
    assert approach is not None
    return approach, runs


def _spline(lines: list[str]) -> tuple[FloatArray, FloatArray]:
    assert lines[0] == "PTP_SPLINE"
    assert lines[-1] == "ENDSPLINE"
    assert lines[1] == "TIME_BLOCK START"
    points, parts = [], []
    for point, timing in zip(lines[2:-1:2], lines[3:-1:2], strict=True):
        assert point.startswith("SPTP ")
        points.append(_axes(point))
        parts.append(timing)
    total = float(re.fullmatch(r"TIME_BLOCK END = ([\d.]+)", parts[-1]).group(1))  # type: ignore[union-attr]
    shares = [float(re.fullmatch(r"TIME_BLOCK PART = ([\d.]+)", part).group(1)) for part in parts[:-1]]  # type: ignore[union-attr]
    ends = np.append(np.cumsum(shares) / 100.0, 1.0)
    return np.array(points), total * ends


def _axes(line: str) -> FloatArray:
    found = re.findall(r"A(\d) (-?[\d.]+)", line)
    assert [int(axis) for axis, _ in found] == list(range(1, len(found) + 1))
    return np.array([float(value) for _, value in found])
