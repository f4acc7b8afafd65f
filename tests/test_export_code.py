"""Generated Python and C (and MATLAB, when Octave is there) against the kernels."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import armid
from armid.export.source_code import Language, source_code
from armid.kernels import dynamics
from armid.robot import Robot
from armid.robot.load import load_robot
from support.chains import random_robot

ROBOTS = {
    "iiwa14": lambda: load_robot("iiwa14"),
    "tx40 (coupled wrist)": lambda: load_robot("tx40"),
    "cylindrical (prismatic)": lambda: load_robot("cylindrical"),
    "random": lambda: random_robot(np.random.default_rng(0), 4, coupled=True),
}


def expected(robot: Robot, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "torque": dynamics.inverse_dynamics(robot, q, qd, qdd, drives=True)[0],
        "mass_matrix": dynamics.mass_matrix(robot, q)[0] + np.diag(robot.drive("rotor_inertia")),
        "coriolis_matrix": dynamics.coriolis(robot, q, qd)[0],
        "gravity": dynamics.gravity(robot, q)[0],
    }


def arguments(name: str, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> tuple[np.ndarray, ...]:
    return {"torque": (q, qd, qdd), "coriolis_matrix": (q, qd)}.get(name, (q,))


@pytest.fixture(params=list(ROBOTS))
def robot(request: pytest.FixtureRequest) -> Robot:
    return ROBOTS[request.param]()


@pytest.fixture
def state(robot: Robot) -> tuple[np.ndarray, ...]:
    return tuple(np.random.default_rng(1).normal(size=(3, robot.n_joints)))


def check(robot: Robot, state: tuple[np.ndarray, ...], found: dict[str, np.ndarray]) -> None:
    for name, value in expected(robot, *state).items():
        scale = max(1.0, float(np.abs(value).max()))
        assert np.abs(np.asarray(found[name]).reshape(value.shape) - value).max() < 1e-11 * scale, name


def written(files: dict[str, str], folder: Path) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)


def test_python(robot: Robot, state: tuple[np.ndarray, ...], tmp_path: Path) -> None:
    written(source_code(robot, Language.PYTHON, header=["UNVALIDATED"]), tmp_path)
    assert "UNVALIDATED" in (tmp_path / "arm.py").read_text()
    specification = importlib.util.spec_from_file_location("generated_arm", tmp_path / "arm.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    found = {
        name: np.array(getattr(module, name)(*(list(map(float, x)) for x in arguments(name, *state))))
        for name in expected(robot, *state)
    }
    check(robot, state, found)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on this machine")
def test_c(robot: Robot, state: tuple[np.ndarray, ...], tmp_path: Path) -> None:
    written(source_code(robot, Language.C), tmp_path)
    library = tmp_path / "arm.so"
    flags = ["-O1", "-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, "-o", library, tmp_path / "arm.c", "-lm"], check=True)
    code = ctypes.CDLL(str(library))
    found = {}
    for name, value in expected(robot, *state).items():
        out = np.zeros(value.size)
        vectors = [np.ascontiguousarray(x) for x in arguments(name, *state)]
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*vectors, out)]
        getattr(code, f"arm_{name}")(*pointers)
        found[name] = out
    check(robot, state, found)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on this machine")
def test_c_at_two_thousand_states(robot: Robot, tmp_path: Path) -> None:
    written(source_code(robot, Language.C), tmp_path)
    library = tmp_path / "arm.so"
    subprocess.run(["cc", "-O2", "-std=c99", "-shared", "-fPIC", "-o", library, tmp_path / "arm.c", "-lm"], check=True)
    torque = ctypes.CDLL(str(library)).arm_torque
    rng = np.random.default_rng(4)
    q, qd, qdd = (rng.uniform(-size, size, (2000, robot.n_joints)) for size in (np.pi, 4.0, 20.0))
    expected, found = armid.inverse_dynamics(robot, q, qd, qdd, drives=True), np.zeros(q.shape)
    for row in range(len(q)):
        torque(*(ctypes.c_void_p(x[row].ctypes.data) for x in (q, qd, qdd, found)))
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()


@pytest.mark.skipif(shutil.which("octave-cli") is None, reason="GNU Octave is not installed")
def test_matlab(robot: Robot, state: tuple[np.ndarray, ...], tmp_path: Path) -> None:
    written(source_code(robot, Language.MATLAB), tmp_path)
    script = ["format long"]
    for vector, x in zip(("q", "qd", "qdd"), state, strict=True):
        script.append(f"{vector} = [{', '.join(repr(float(v)) for v in x)}];")
    for name in expected(robot, *state):
        call = f"arm_{name}({', '.join(('q', 'qd', 'qdd')[: len(arguments(name, *state))])})"
        script.append(f"x = {call}'; printf('%.17g ', x(:)); printf('\\n');")
    output = subprocess.run(
        ["octave-cli", "--quiet", "--eval", "\n".join(script)], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    lines = [line for line in output.splitlines() if line.strip()]
    found = {
        name: np.array(line.split(), dtype=float) for name, line in zip(expected(robot, *state), lines, strict=True)
    }
    check(robot, state, found)
