"""Imports point one way; starting is quick because heavy libraries load only when used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "armid"

FOUNDATIONS = (
    "errors",
    "words",
    "notes",
    "arrays",
    "threads",
    "documents",
    "page",
    "outcome",
    "thresholds",
    "parameters",
    "robot",
    "recursion",
    "kernels",
    "signals",
    "kinematics",
    "rows",
    "information",
    "motions",
    "scene",
    "identifiability",
    "logs",
    "estimation",
    "consistency",
)
"""From the bottom up. A foundation may use its own room and those before it."""

QUESTIONS = (
    "identification",
    "inspection",
    "calibration",
    "design",
    "payload",
    "online",
    "response",
    "recovery",
    "sequential",
    "transmission",
    "planning",
    "simulation",
)
"""Siblings: each uses the foundations and identification, never another."""


def allowed(room: str) -> set[str]:
    if room in FOUNDATIONS:
        return set(FOUNDATIONS[: FOUNDATIONS.index(room) + 1])
    if room in QUESTIONS:
        return {*FOUNDATIONS, "identification", room} - ({"identification"} if room == "identification" else set()) | {
            room
        }
    inside = {*FOUNDATIONS, *QUESTIONS}
    return inside | {
        "export": {"export"},
        "report": {"report", "studies"},
        "studies": {"studies", "export", "report"},
    }.get(room, {"export", "report", "studies", "cli"})


def imports(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("armid."):
            names.add(node.module.split(".")[1])
        elif isinstance(node, ast.ImportFrom) and node.module == "armid":
            names.update(alias.name for alias in node.names if alias.name != "__version__")
        elif isinstance(node, ast.Import):
            names.update(alias.name.split(".")[1] for alias in node.names if alias.name.startswith("armid."))
    return names


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_downward(path: Path) -> None:
    part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if part in ("__init__", "__main__"):
        return
    assert imports(path) <= allowed(part)


HEAVY = {"scipy", "numba", "llvmlite", "mujoco", "sympy", "plotly", "clarabel", "jinja2", "pyarrow"}


@pytest.mark.parametrize("program", ["import armid", "import armid.cli; armid.cli.application()"])
def test_starting_loads_nothing_heavy(program: str) -> None:
    code = f"{program}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not HEAVY & set(loaded)
