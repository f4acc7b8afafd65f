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
    WITHOUT
    + """
import numpy as np
import armid

robot = armid.load_robot("trio.urdf")
rng = np.random.default_rng(0)
t = np.arange(0.0, 8.0, 0.01)
w = np.array([1.3, 2.1, 2.9])
phase = np.array([0.0, 1.0, 2.0])

def record(name, speed):
    a = speed * np.outer(t, w) + phase
    q, qd, qdd = np.sin(a) + 0.3 * np.sin(2.0 * a), speed * w * np.cos(a), 0.0
    qd = speed * w * (np.cos(a) + 0.6 * np.cos(2.0 * a))
    qdd = -((speed * w) ** 2) * (np.sin(a) + 1.2 * np.sin(2.0 * a))
    torque = armid.inverse_dynamics(robot, q, qd, qdd) + 0.02 * rng.standard_normal(q.shape)
    header = ",".join(["time", *(f"q_{n}" for n in robot.joint_names), *(f"tau_{n}" for n in robot.joint_names)])
    np.savetxt(name, np.column_stack([t, q, torque]), delimiter=",", header=header, comments="")

record("log.csv", 1.0)
record("other.csv", 0.8)
result = armid.identify(robot, "log.csv", validate="other.csv", imperfections="none", sensitivity=False)
assert result.relative_error["held_out"] < 0.05, result
result.report("report.html")
result.save("identified")
loaded = {name.split(".")[0] for name, module in sys.modules.items() if module is not None}
assert not loaded & {"mujoco", "sympy", "plotly"}
"""
)


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
