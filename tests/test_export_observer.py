"""Code for controllers against the library: observer, feedforward and gravity, in C and Python; and the gate before it."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.arrays import FloatArray
from armid.cli import application
from armid.errors import InputError
from armid.export.export import export_result
from armid.export.formats import CodeContent, Format, What
from armid.export.gate import ExportRefusedError
from armid.export.source_code import Language, source_code
from armid.kernels import dynamics
from armid.observation.residuals import MomentumObserver, smoothing
from armid.robot import Robot
from armid.robot.load import load_robot
from support.chains import random_robot
from support.identified import trusted, untrusted

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on this machine")

RATES = (1000.0, 125.0)

ROBOTS = {
    "iiwa14": lambda: load_robot("iiwa14"),
    "tx40 (coupled wrist)": lambda: load_robot("tx40"),
    "cylindrical (prismatic)": lambda: load_robot("cylindrical"),
    "random": lambda: random_robot(np.random.default_rng(0), 4, coupled=True),
}


@pytest.fixture(params=list(ROBOTS))
def robot(request: pytest.FixtureRequest) -> Robot:
    return ROBOTS[request.param]()


def stream(robot: Robot, rate: float, count: int = 400) -> tuple[FloatArray, FloatArray]:
    """A motion with a rest in its middle, turns, and noise."""
    rng = np.random.default_rng(3)
    t = np.arange(count) / rate
    phase = np.where(t < 0.4 * t[-1], t, np.where(t < 0.6 * t[-1], 0.4 * t[-1], t - 0.2 * t[-1]))
    turns = 2.0 * np.pi * (1.0 + np.arange(robot.n_joints)) * 3.0 / t[-1]
    q = 0.4 * np.sin(phase[:, np.newaxis] * turns) + 1e-6 * rng.normal(size=(count, robot.n_joints))
    return q, rng.normal(size=(count, robot.n_joints))


def library(robot: Robot, rate: float, q: FloatArray, torque: FloatArray) -> list[tuple[int, FloatArray, FloatArray]]:
    observer = MomentumObserver(robot, rate, 12.0)
    said = []
    for k in range(len(q)):
        if observer.push(q[k], torque[k]) is not None:
            said.append((k, np.array(observer.external), np.array(observer.band)))
    return said


def compiled(files: dict[str, str], folder: Path) -> ctypes.CDLL:
    for name, text in files.items():
        (folder / name).write_text(text)
    source = next(folder.glob("*.c"))
    flags = ["-O1", "-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, "-o", folder / "code.so", source, "-lm"], check=True)
    return ctypes.CDLL(str(folder / "code.so"))


def imported(files: dict[str, str], folder: Path) -> ModuleType:
    ((name, text),) = files.items()
    (folder / name).write_text(text)
    specification = importlib.util.spec_from_file_location("generated", folder / name)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


class CObserver:
    """The generated struct, by its layout: ring, before, external, band, place, count."""

    def __init__(self, code: ctypes.CDLL, n: int, rate: float) -> None:
        width = smoothing(rate).width

        class Memory(ctypes.Structure):
            _fields_ = [
                ("ring", ctypes.c_double * (4 * width * n)),
                ("before", ctypes.c_double * n),
                ("external", ctypes.c_double * n),
                ("band", ctypes.c_double * n),
                ("place", ctypes.c_int),
                ("count", ctypes.c_int),
            ]

        self.memory, self.code, self.vector = Memory(), code, ctypes.c_double * n
        code.arm_observer_init(ctypes.byref(self.memory))

    def update(self, q: FloatArray, torque: FloatArray) -> int:
        return int(self.code.arm_observer_update(ctypes.byref(self.memory), self.vector(*q), self.vector(*torque)))


class TestObserver:
    @needs_cc
    @pytest.mark.parametrize("rate", RATES)
    def test_c_says_what_the_library_says(self, robot: Robot, rate: float, tmp_path: Path) -> None:
        content = CodeContent(What.OBSERVER, rate, 12.0)
        observer = CObserver(compiled(source_code(robot, Language.C, content=content), tmp_path), robot.n_joints, rate)
        q, torque = stream(robot, rate)
        said = [
            (k, np.array(observer.memory.external), np.array(observer.memory.band))
            for k in range(len(q))
            if observer.update(q[k], torque[k]) == 1
        ]
        compare(said, library(robot, rate, q, torque))

    def test_python_says_what_the_library_says(self, robot: Robot, tmp_path: Path) -> None:
        rate = 250.0
        files = source_code(robot, Language.PYTHON, content=CodeContent(What.OBSERVER, rate, 12.0))
        observer = imported(files, tmp_path).Observer()
        q, torque = stream(robot, rate, 200)
        said = [
            (k, np.array(observer.external), np.array(observer.band))
            for k in range(len(q))
            if observer.update(q[k].tolist(), torque[k].tolist())
        ]
        compare(said, library(robot, rate, q, torque))

    @needs_cc
    def test_a_number_that_is_not_finite_starts_it_over(self, tmp_path: Path) -> None:
        """One bad sample must not make every later answer silent: comparisons with nan raise no alarm."""
        robot, rate = load_robot("cylindrical"), 1000.0
        files = {
            word: source_code(robot, word, content=CodeContent(What.OBSERVER)) for word in (Language.C, Language.PYTHON)
        }
        in_c = CObserver(compiled(files[Language.C], tmp_path), 3, rate)
        in_python = imported(files[Language.PYTHON], tmp_path).Observer()
        in_library = MomentumObserver(robot, rate)
        q, torque = stream(robot, rate, 120)
        torque[50, 1] = np.nan
        for k in range(len(q)):
            word = in_c.update(q[k], torque[k])
            there = in_python.update(q[k].tolist(), torque[k].tolist())
            answer = in_library.push(q[k], torque[k])
            assert (word == 1) == there == (answer is not None)
            assert (word == -1) == (k == 50)
        assert np.isfinite(in_c.memory.external).all()
        np.testing.assert_allclose(in_c.memory.external, in_library.external, atol=1e-9)
        np.testing.assert_allclose(in_python.external, in_library.external, atol=1e-9)


def compare(said: list[tuple[int, FloatArray, FloatArray]], expected: list[tuple[int, FloatArray, FloatArray]]) -> None:
    """The same ticks, the same numbers; velocities of 1 kHz samples amplify round-off by a million."""
    assert [k for k, *_ in said] == [k for k, *_ in expected]
    scale = max(1.0, max(float(np.abs(e).max()) for _, e, _ in expected))
    for (_, external, band), (_, wanted, hidden) in zip(said, expected, strict=True):
        np.testing.assert_allclose(external, wanted, rtol=0.0, atol=1e-8 * scale)
        np.testing.assert_allclose(band, hidden, rtol=0.0, atol=1e-12)


class TestStates:
    @needs_cc
    def test_feedforward_and_gravity_are_the_kernels_own(self, robot: Robot, tmp_path: Path) -> None:
        q, qd, qdd = np.random.default_rng(1).normal(size=(3, robot.n_joints))
        wanted = {
            What.FEEDFORWARD: ((q, qd, qdd), dynamics.inverse_dynamics(robot, q, qd, qdd, drives=True)[0]),
            What.GRAVITY: ((q,), dynamics.gravity(robot, q)[0]),
        }
        vector = ctypes.c_double * robot.n_joints
        for what, (state, value) in wanted.items():
            folder = tmp_path / what
            folder.mkdir()
            files = source_code(robot, Language.C, content=CodeContent(what))
            assert set(files) == {f"arm_{what}.c", f"arm_{what}.h"}
            out = vector()
            getattr(compiled(files, folder), f"arm_{what}")(*(vector(*x) for x in state), out)
            module = imported(source_code(robot, Language.PYTHON, content=CodeContent(what)), folder)
            for found in (np.array(out), np.array(getattr(module, what)(*(x.tolist() for x in state)))):
                np.testing.assert_allclose(found, value, rtol=0.0, atol=1e-11 * max(1.0, np.abs(value).max()))

    @pytest.mark.parametrize(
        ("content", "target", "message"),
        [
            (CodeContent(What.OBSERVER), Format.URDF, "urdf is a description"),
            (CodeContent(What.OBSERVER), Format.MATLAB, "not written in matlab"),
            (CodeContent(What.OBSERVER, 100.0, 80.0), Format.C, "below half the rate"),
        ],
    )
    def test_what_a_format_cannot_hold_is_refused(self, content: CodeContent, target: Format, message: str) -> None:
        with pytest.raises(InputError, match=message):
            content.for_format(target)


class TestGate:
    @pytest.mark.parametrize("what", [What.OBSERVER, What.FEEDFORWARD, What.GRAVITY])
    def test_an_untrusted_result_is_refused_and_marked_when_forced(self, what: What, tmp_path: Path) -> None:
        with pytest.raises(ExportRefusedError):
            export_result(untrusted(), Format.C, tmp_path, content=CodeContent(what))
        assert not list(tmp_path.iterdir())
        done = export_result(untrusted(), Format.C, tmp_path, content=CodeContent(what), force=True)
        assert all(f"UNVALIDATED_{what}" in path.name for path in done.files)
        assert "UNVALIDATED: do not use on a robot" in done.files[0].read_text()

    def test_a_trusted_one_is_written_beside_its_model(self, tmp_path: Path) -> None:
        model = export_result(trusted(), Format.PYTHON, tmp_path)
        observer = export_result(trusted(), Format.PYTHON, tmp_path, content=CodeContent(What.OBSERVER))
        assert all(path.is_file() for path in (*model.files, *observer.files))
        assert "Momentum observer for 1000 samples a second" in observer.files[0].read_text()

    def test_the_verb_refuses_what_cannot_be_before_it_reads(self, tmp_path: Path) -> None:
        words = ["export", str(tmp_path / "nowhere"), "--to", "urdf", "--what", "gravity"]
        done = CliRunner().invoke(application(("export",)), words)
        assert done.exit_code == 1
        assert "urdf is a description" in done.stderr
