"""Imports point one way; starting is quick because heavy libraries load only when used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "armid"

ORDER = (
    "errors", "notes", "arrays", "parameters", "robot", "recursion", "kernels", "information", "identifiability",
    "design", "logs", "experiments", "estimation", "calibration", "planning", "simulation", "validation", "export",
    "report", "demo", "cli",
)  # fmt: skip
"""From the bottom up. A module may import its own package and those before it."""

PEERS = ({"design", "logs", "experiments"},)
"""Packages of one level that may use each other's nouns."""


def imports(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("armid."):
            names.add(node.module.split(".")[1])
        elif isinstance(node, ast.ImportFrom) and node.module == "armid":
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            names.update(alias.name.split(".")[1] for alias in node.names if alias.name.startswith("armid."))
    return names


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_downward(path: Path) -> None:
    part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if part in ("__init__", "__main__"):
        return
    allowed = set(ORDER[: ORDER.index(part) + 1])
    for peers in PEERS:
        allowed |= peers if part in peers else set()
    assert imports(path) <= allowed


HEAVY = {"scipy", "numba", "llvmlite", "mujoco", "sympy", "plotly", "clarabel", "jinja2", "pyarrow"}


@pytest.mark.parametrize("program", ["import armid", "import armid.cli; armid.cli.application()"])
def test_starting_loads_nothing_heavy(program: str) -> None:
    code = f"{program}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not HEAVY & set(loaded)
