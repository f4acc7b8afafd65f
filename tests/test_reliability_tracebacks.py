"""What used to end in a traceback ends in one line of ours, or in the answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.consistency.bounds_file import read_bounds
from armid.errors import ArmidError, InputError, RobotError
from armid.export.export import Format, export_result, merely_described
from armid.export.mjcf import mjcf_text
from armid.export.source_code import Language, source_code
from armid.folders import MANIFEST, manifest
from armid.identification.result import load_result
from armid.motions.trajectory_files import load_trajectory
from armid.robot.geometry import Box, Capsule, Cylinder, Sphere
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.simulation.sensors import SampleClock
from support import identified
from support.elbow_logs import ROBOT

RUNNER = CliRunner()


def run(*words: str | Path):
    return RUNNER.invoke(application(), [str(word) for word in words])


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("stored") / "result"
    identified.trusted().save(folder)
    return folder


@pytest.mark.parametrize("name", ["result.npz", "result.json"])
@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "another"])
def test_a_damaged_result_is_one_line(name, damage, stored, tmp_path):
    for path in stored.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    raw = bytearray((tmp_path / name).read_bytes())
    rng = np.random.default_rng(2)
    for k in rng.integers(0, len(raw), 40):
        if damage == "flipped":
            raw[k] ^= 0xFF
    content = {"truncated": raw[: len(raw) // 2], "empty": b"", "another": b"PK\x05\x06" + b"\0" * 18}.get(damage, raw)
    (tmp_path / name).write_bytes(content)
    for words in (("export", tmp_path, "--to", "urdf"), ("report", tmp_path), ("compare", tmp_path, tmp_path)):
        done = run(*words, "--out", tmp_path / "out")
        assert done.exit_code == 1, (words, done.output)
        assert done.stderr.startswith("armid: ")


def test_a_urdf_in_latin_1_is_exported_in_utf_8(tmp_path):
    path = identified.urdf_file()
    text = path.read_text().replace("<?xml version='1.0'?>", "")
    text = text[text.index("<robot") :]
    latin = tmp_path / "arm.urdf"
    latin.write_bytes(f'<?xml version="1.0" encoding="iso-8859-1"?>\n<!-- für <robot> -->\n{text}'.encode("latin-1"))
    result = replace(identified.trusted(), described=with_source(identified.trusted().described, latin))
    done = export_result(result, Format.URDF, tmp_path / "out")
    written = done.files[0].read_bytes()
    assert "für <robot>" in written.decode("utf-8")
    assert ET.fromstring(written).tag == "robot"
    assert load_robot(done.files[0]).joint_names == result.robot.joint_names


def with_source(robot: Robot, path: Path) -> Robot:
    import hashlib

    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return replace(robot, source=replace(robot.source, path=str(path), sha256=digest))


HUGE = "9" * 400


def test_integers_of_400_digits_are_refused_in_every_file(stored, tmp_path):
    path = tmp_path / "elbow.yaml"
    path.write_text(ROBOT)
    arm = load_robot(path)
    (tmp_path / "t.json").write_text(f'{{"format": "armid.trajectory", "version": {HUGE}}}')
    with pytest.raises(InputError, match="400 digits"):
        load_trajectory(tmp_path / "t.json")
    (tmp_path / "b.yaml").write_text(f"total_mass: [0, {HUGE}]\n")
    with pytest.raises(InputError, match="400 digits"):
        read_bounds(tmp_path / "b.yaml", arm)
    values = json.loads((stored / "result.json").read_text())
    (tmp_path / "result.json").write_text(json.dumps(values)[:-1] + f', "x": {HUGE}}}')
    (tmp_path / "result.npz").write_bytes((stored / "result.npz").read_bytes())
    with pytest.raises(InputError, match="400 digits"):
        load_result(tmp_path)


ODD_NAMES = ["a--->b", "---", "x-", "a\nimport os", "end */ int", "back\\"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_of_joints_never_end_a_comment(name):
    robot = identified.trusted().robot
    odd = replace(robot, name=name)
    text = mjcf_text(odd, comments=[f"joint {name}", "ends in -"])
    assert ET.fromstring(text).tag == "mujoco"
    for language in Language:
        for code in source_code(odd, language, header=[f"joint {name}"]).values():
            assert "\nimport os" not in code
            assert not any(line.endswith("\\") for line in code.splitlines())


def test_a_comment_that_looks_like_the_root_stays_a_comment(tmp_path):
    path = identified.urdf_file()
    text = path.read_text()
    start = text.index("<robot")
    copy = tmp_path / "arm.urdf"
    copy.write_text(f"{text[:start]}<!-- once <robot name='x'> stood here -->\n{text[start:]}")
    result = replace(identified.trusted(), described=with_source(identified.trusted().described, copy))
    done = export_result(result, Format.URDF, tmp_path / "out")
    assert ET.fromstring(done.files[0].read_text()).tag == "robot"
    assert "once <robot name='x'> stood here" in done.files[0].read_text()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("inspect cylindrical >&-", 0, ""),
        ("inspect cylindrical --json > /dev/full", 1, "No space left"),
        ("inspect cylindrical --json <&- >&- 2>&-", 0, ""),
        ("online cylindrical - --rate-hz 1000 <&-", 3, ""),
    ],
)
def test_closed_and_full_streams_are_no_traceback_and_not_waited_for(words, code, said):
    command = f"{sys.executable} -m armid {words}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_manifest_that_is_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / MANIFEST)
    assert manifest(tmp_path) == {}


@pytest.mark.parametrize("rate", ["1e308", "inf", "2e5"])
def test_a_rate_no_logger_has_is_refused(rate):
    with pytest.raises(InputError, match="at most 100000 Hz"):
        SampleClock(rate_hz=float(rate)).instants(4.0, 1000.0, np.random.default_rng(0))


def chain(n: int) -> str:
    """A long arm."""
    parts = ['<robot name="long"><link name="l0"/>']
    for i in range(n):
        axis = ("1 0 0", "0 1 0", "0 0 1")[i % 3]
        parts.append(
            f'<link name="l{i + 1}"><inertial><origin xyz="0.1 0.02 0.03"/><mass value="1"/>'
            '<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="j{i + 1}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/>'
            f'<origin xyz="0.1 0 0.2" rpy="0.1 0 0"/><axis xyz="{axis}"/>'
            '<limit lower="-2" upper="2" effort="100" velocity="2"/></joint>'
        )
    return "".join([*parts, "</robot>"])


@pytest.mark.slow
def test_sixty_joints_are_inspected_within_half_a_minute(tmp_path):
    (tmp_path / "a.urdf").write_text(chain(60))
    began = time.process_time()
    done = run("inspect", tmp_path / "a.urdf", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["base_parameters"] > 400
    assert time.process_time() - began < 30.0


@pytest.mark.parametrize("joints", [200, 700])
def test_more_joints_than_can_be_inspected_are_refused_at_once(joints, tmp_path):
    (tmp_path / "a.urdf").write_text(chain(joints))
    began = time.process_time()
    done = run("inspect", tmp_path / "a.urdf")
    assert done.exit_code == 1
    assert f"{joints} joints" in done.stderr
    assert "at most 80" in done.stderr
    assert time.process_time() - began < 5.0


@pytest.mark.parametrize(
    "shape",
    [
        '<sphere radius="-0.1"/>',
        '<sphere radius="nan"/>',
        '<cylinder radius="0.1" length="-1"/>',
        '<capsule radius="-1" length="1"/>',
        '<box size="0.1 -0.1 0.1"/>',
        '<box size="1 1 nan"/>',
        '<sphere radius="٠.١"/>',
        '<mesh filename="x.stl" scale="0 1 1"/>',
    ],
)
def test_bodies_that_cannot_be_are_refused_and_never_certified(shape, tmp_path):
    path = tmp_path / "arm.urdf"
    body = f"<collision><geometry>{shape}</geometry></collision>"
    path.write_text(chain(2).replace('<link name="l1">', f'<link name="l1">{body}', 1))
    with pytest.raises(RobotError):
        load_robot(path)
    done = run("design", path, "--seconds", "1", "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert "certified" not in done.output


@pytest.mark.parametrize(
    "make", [lambda x: Box((1.0, x, 1.0)), Sphere, lambda x: Cylinder(x, 1.0), lambda x: Capsule(1.0, x)]
)
@pytest.mark.parametrize("size", [-1.0, float("nan"), float("inf")])
def test_shapes_made_in_python_are_checked_too(make, size):
    with pytest.raises(RobotError, match="not negative"):
        make(size)


def test_digits_of_other_alphabets_are_no_numbers(tmp_path):
    path = tmp_path / "elbow.yaml"
    path.write_text(ROBOT)
    assert load_robot(path)
    digits = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
    lines = [line.translate(digits) if "mass" in line else line for line in ROBOT.splitlines()]
    path.write_text("\n".join(lines))
    with pytest.raises(ArmidError):
        load_robot(path)


@pytest.mark.parametrize("target", [Format.MJCF, Format.PYTHON, Format.C, Format.MATLAB, Format.URDF, Format.JSON])
def test_exports_mark_what_is_merely_described(target, tmp_path):
    described = identified.without_rotors()
    assert any("rotor inertia" in line for line in merely_described(described))
    done = export_result(described, target, tmp_path)
    text = "".join(file.read_text() for file in done.files)
    assert "rotor inertia: the description's own stands here" in text
    assert any("rotor inertia" in line for line in done.missing)
