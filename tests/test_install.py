"""The light core: identifying and reporting need neither MuJoCo nor SymPy nor Plotly; what does names the extra."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

WITHOUT = "import sys; sys.modules.update(mujoco=None, sympy=None, plotly=None)\n"
"""As if they were not installed."""

CORE = (
    "import runpy, sys\n"
    + f"""
sys.argv = ["try_wheel.py", "trio.urdf"]
class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("mujoco", "sympy", "plotly"): raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, Refused())
runpy.run_path({str(ROOT / "tools" / "try_wheel.py")!r}, run_name="__main__")
"""
)
"""What `make wheel` tries after installing, with the extras refused."""


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "trio.urdf").write_text((ROOT / "examples" / "trio.urdf").read_text())
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_core_identifies_and_reports_alone(tmp_path: Path) -> None:
    done = run(CORE, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("armid.simulate('trio.urdf', 'motion.json')", "sim"),
        ("armid.inspect('trio.urdf').summary()", "symbolic"),
    ],
)
def test_what_is_missing_is_named_with_its_extra(code: str, extra: str, tmp_path: Path) -> None:
    done = run(f"{WITHOUT}import armid\n{code}", tmp_path)
    assert f"pip install 'armid[{extra}]'" in done.stderr
    assert "MissingDependencyError" in done.stderr


def test_extras_are_declared_and_all_has_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = " ".join(project["dependencies"])
    assert not [name for name in ("mujoco", "sympy", "plotly") if name in core]
    extras = project["optional-dependencies"]
    (everything,) = extras["all"]
    named = set(everything.removeprefix("armid[").removesuffix("]").split(","))
    assert named == set(extras) - {"all", "docs", "test", "bench"}
