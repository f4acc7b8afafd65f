"""Imports point one way, edge by edge; starting is quick because heavy libraries load only when used.

Below is every import between two rooms of the house: a room (left) and the rooms it may use (right). The test fails on an edge
that is not written here, and on one that is written and not used. `python tests/test_layers.py` prints the edges as they are.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "armid"

GROUND = {
    "errors": "",
    "notes": "",
    "page": "",
    "screen": "",
    "words": "errors",
    "arrays": "errors",
    "threads": "",
    "memory": "",
    "folders": "errors",
    "apart": "errors folders",
    "documents": "errors folders",
    "unfinished": "documents errors folders notes",
    "expressions": "",
    "answers": "documents errors expressions folders",
    "outcome": "answers documents errors folders notes page screen",
    "thresholds": "page",
}
"""Single files. Every room may use them; among themselves they use these."""

FOUNDATIONS = {
    "cluster": "",
    "parameters": "",
    "robot": "parameters robot.catalogue robot.urdf",
    "robot.catalogue": "",
    "robot.urdf": "parameters robot",
    "recursion": "robot",
    "kernels": "parameters robot recursion",
    "signals": "kernels",
    "kinematics": "parameters robot recursion kernels",
    "rows": "parameters robot recursion kernels signals kinematics",
    "information": "cluster kernels",
    "motions": "robot kernels",
    "scene": "robot kernels motions",
    "identifiability": "parameters robot recursion kernels rows information motions",
    "logs": ("parameters robot signals kinematics rows logs.readers logs.mapping logs.health logs.conditioning"),
    "logs.readers": "",
    "logs.live": "parameters robot",
    "logs.mapping": "logs logs.readers",
    "logs.health": "parameters robot kernels signals logs logs.conditioning",
    "logs.conditioning": "robot signals rows logs logs.health",
    "estimation": (
        "cluster parameters robot recursion kernels signals rows information identifiability logs logs.conditioning"
    ),
    "estimation.recursive": "kernels information identifiability estimation",
    "consistency": "parameters robot kernels information identifiability estimation",
    "closed_loop": "parameters robot recursion kernels rows information identifiability consistency",
}
"""From the bottom up: a foundation uses those before it. A sub-room belongs to its room."""

QUESTIONS = {
    "identification": (
        "cluster parameters robot kernels kinematics signals rows information identifiability logs logs.health "
        "logs.conditioning estimation consistency closed_loop"
    ),
    "inspection": ("parameters robot kernels rows information motions identifiability logs logs.conditioning"),
    "calibration": (
        "cluster parameters robot robot.urdf kernels kinematics rows information identifiability estimation"
    ),
    "design": "cluster parameters robot kernels rows motions scene identifiability consistency identification",
    "payload": (
        "parameters robot kernels signals rows information identifiability logs logs.conditioning "
        "estimation estimation.recursive consistency identification"
    ),
    "online": ("parameters robot kernels signals rows identifiability estimation estimation.recursive identification"),
    "response": ("robot kernels rows information motions scene identifiability logs estimation identification"),
    "recovery": (
        "parameters robot kernels rows information scene identifiability logs logs.conditioning "
        "estimation consistency identification"
    ),
    "sequential": (
        "parameters robot kernels rows information motions identifiability logs logs.health "
        "logs.conditioning estimation identification"
    ),
    "transmission": "parameters robot kernels signals rows identifiability logs identification",
    "planning": ("parameters robot kernels kinematics rows motions scene identifiability identification"),
    "simulation": "parameters robot rows motions logs consistency",
    "columns": "robot kernels logs logs.readers logs.mapping",
    "observation": "parameters robot kernels signals rows logs logs.live identification",
    "fleets": "cluster parameters robot estimation identification",
}
"""Siblings: they use foundations and identification, never one another."""

OUTSIDE = {
    "programs": "robot motions",
    "export": (
        "parameters robot robot.urdf recursion kernels rows information identifiability consistency "
        "identification observation"
    ),
    "report": (
        "parameters robot kernels kinematics rows motions scene identifiability logs estimation "
        "consistency identification inspection calibration design payload online response recovery "
        "sequential transmission planning simulation columns observation fleets programs export studies "
        "studies.kinematics"
    ),
    "studies": (
        "cluster parameters robot kernels kinematics rows motions scene identifiability logs logs.conditioning "
        "estimation consistency closed_loop identification calibration design sequential simulation "
        "export report"
    ),
    "studies.kinematics": (
        "cluster parameters robot kernels kinematics rows motions scene identifiability logs logs.conditioning "
        "estimation identification calibration design simulation"
    ),
    "cli": (
        "parameters robot kinematics motions logs logs.readers logs.live logs.health "
        "logs.conditioning identification inspection calibration design payload online response recovery "
        "sequential transmission planning simulation columns observation fleets programs export report "
        "studies studies.kinematics"
    ),
}
"""Nobody inside uses them."""

ALLOWED = {
    room: set(rooms.split()) for floor in (GROUND, FOUNDATIONS, QUESTIONS, OUTSIDE) for room, rooms in floor.items()
}


def module_of(path: Path) -> str:
    """Dotted name below `armid`; a package by its own name."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    """`logs.readers` for a sub-package, else the first word."""
    first, _, rest = module.partition(".")
    second = rest.partition(".")[0]
    return f"{first}.{second}" if second and (SOURCE / first / second / "__init__.py").exists() else first


def imported(path: Path) -> set[str]:
    """Modules below `armid` that a file names in its import statements, wherever they stand."""
    out = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "armid":
            below = node.module.removeprefix("armid").removeprefix(".")
            for alias in node.names:
                inner = f"{below}.{alias.name}".removeprefix(".")
                place = SOURCE / inner.replace(".", "/")
                out.add(inner if place.is_dir() or place.with_suffix(".py").exists() else below)
        elif isinstance(node, ast.Import):
            out |= {alias.name.removeprefix("armid.") for alias in node.names if alias.name.startswith("armid.")}
    return out - {""}


@cache
def edges() -> dict[str, set[str]]:
    """Room -> rooms it uses; the ground floor is everyone's and listed only for itself."""
    out: dict[str, set[str]] = defaultdict(set)
    for path in sorted(SOURCE.rglob("*.py")):
        room = room_of(module_of(path))
        if room in ("", "__main__"):
            continue
        used = {room_of(module) for module in imported(path)} - {room}
        out[room] |= used if room in GROUND else used - set(GROUND)
    return out


@pytest.mark.parametrize("room", sorted(edges().keys() | ALLOWED.keys()))
def test_every_edge_is_listed_and_every_listed_edge_is_used(room: str) -> None:
    assert room in ALLOWED, f"{room} is a room that no floor lists"
    used = edges().get(room, set())
    assert not used - ALLOWED[room], "used without being listed"
    assert not ALLOWED[room] - used, "listed without being used"


def within(room: str, other: str) -> bool:
    """Whether two rooms are parts of one."""
    return room.split(".")[0] == other.split(".")[0]


@pytest.mark.parametrize("room", FOUNDATIONS)
def test_foundations_rest_on_those_before_them(room: str) -> None:
    order = list(FOUNDATIONS)
    above = [other for other in ALLOWED[room] if not within(room, other) and order.index(other) > order.index(room)]
    assert not above


@pytest.mark.parametrize("room", QUESTIONS)
def test_questions_do_not_ask_one_another(room: str) -> None:
    others = {other for other in ALLOWED[room] if not within(room, other)}
    assert others <= {*FOUNDATIONS, "identification"}


def test_only_outside_uses_the_outside() -> None:
    users = {room for room, used in ALLOWED.items() if used & set(OUTSIDE)}
    assert users <= set(OUTSIDE)
    assert not any("cli" in used for used in ALLOWED.values())


HEAVY = {"scipy", "numba", "llvmlite", "mujoco", "sympy", "plotly", "clarabel", "jinja2", "pyarrow"}


def loaded_by(program: str) -> set[str]:
    """Libraries in memory after a program."""
    code = f"{program}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("program", ["import armid", "import armid.cli; armid.cli.application()"])
def test_starting_loads_nothing_heavy(program: str) -> None:
    assert not HEAVY & loaded_by(program)


def test_inspecting_loads_symbols_and_nothing_else_that_is_heavy() -> None:
    assert loaded_by("import armid; armid.inspect('cylindrical').summary()") & HEAVY == {"sympy"}


def test_rigid_body_functions_load_no_compiler_for_a_few_samples() -> None:
    program = "import armid; armid.inverse_dynamics(armid.load_robot('cylindrical'), *[[0.1, 0.2, 0.3]] * 3)"
    assert not HEAVY & loaded_by(program)


def test_reading_parquet_loads_no_pandas(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    write = f"import pyarrow, pyarrow.parquet; pyarrow.parquet.write_table(pyarrow.table({{'t': [0.0, 1.0]}}), {str(path)!r})"
    subprocess.run([sys.executable, "-c", write], check=True)
    read = f"from armid.logs.readers.files import open_table; list(open_table({str(path)!r}).chunks(10))"
    assert loaded_by(read) & {"pyarrow", "pandas"} == {"pyarrow"}


def test_possible_bodies_load_lapack_and_nothing_else_of_scipys_algebra() -> None:
    program = """
import sys
import numpy as np
from armid.consistency.program import ConicProgram
program = ConicProgram(3)
program.add_squares(np.eye(3), np.array([1.0, 2.0, -1.0]))
program.semidefinite(np.array([[[1, 0], [0, 0]], [[0, 1], [1, 0]], [[0, 0], [0, 1]]], dtype=float), np.zeros((2, 2)))
assert program.solve().status.value == "solved"
assert "scipy.linalg.cython_lapack" in sys.modules
assert "scipy.linalg" not in sys.modules
from scipy.linalg import cython_blas, expm
assert np.allclose(expm(np.zeros((2, 2))), np.eye(2))
"""
    assert "clarabel" in loaded_by(program)


if __name__ == "__main__":
    places = list(ALLOWED)
    for name, used in edges().items():
        listed = sorted(used, key=lambda room: places.index(room) if room in places else -1)
        sys.stdout.write(f'    "{name}": "{" ".join(listed)}",\n')
