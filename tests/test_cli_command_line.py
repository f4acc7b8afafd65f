"""The command line a result came from: kept as typed, with the files it names, and it repeats the result."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.cli.command_line import command_line, named_files
from armid.identification.result import load_result
from armid.logs import Channel
from armid.report.identification import reproduce_section
from armid.robot.load import load_robot
from support.identified import URDF, log, trusted


def text_of(blocks: tuple[Any, ...]) -> str:
    return "\n".join(str(getattr(block, "text", "")) + str(getattr(block, "rows", "")) for block in blocks)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a space in its name, standing in it: description, log, config and bounds."""
    folder = tmp_path / "shop floor"
    folder.mkdir()
    (folder / "trio.urdf").write_text(URDF)
    robot = load_robot(folder / "trio.urdf")
    recorded = log(robot, robot, seed=4)
    columns = np.column_stack([recorded.time, recorded[Channel.POSITION], recorded[Channel.LINK_TORQUE]])
    names = [f"{kind}_{name}" for kind in ("q", "tau") for name in robot.joint_names]
    np.savetxt(folder / "log 1.csv", columns, delimiter=",", header=",".join(["time", *names]), comments="", fmt="%.9g")
    (folder / "armid.yaml").write_text("identify:\n  friction: [viscous, coulomb]\n")
    monkeypatch.chdir(folder)
    return folder


def test_the_report_shows_what_was_typed_and_it_repeats_the_result(place: Path, tmp_path: Path) -> None:
    words = ["identify", "trio.urdf", "log 1.csv", "--config", "armid.yaml", "--rotor-inertia", "--out=first"]
    outcome = CliRunner().invoke(application(), words)
    assert outcome.exit_code in (0, 3), outcome.output
    first = load_result("first")
    typed = first.provenance.as_dict()["command"]
    assert typed["line"] == "armid identify trio.urdf 'log 1.csv' --config armid.yaml --rotor-inertia --out=first"
    assert typed["folder"] == str(place)
    # Robot and log have their hashes elsewhere; the config file is only known from the command.
    assert [file["path"] for file in typed["files"]] == ["armid.yaml"]
    shown = text_of(reproduce_section(first).blocks)
    assert f"cd '{place}'\n{typed['line']}" in shown
    assert typed["files"][0]["sha256"][:16] in shown

    program = f"{Path(sys.executable).parent}/armid"
    script = f"cd '{place}'\n" + typed["line"].replace("armid identify", f"{program} identify").replace(
        "first", "second"
    )
    again = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert again.returncode == outcome.exit_code, again.stderr
    np.testing.assert_allclose(load_result("second").estimate.values, first.estimate.values, rtol=1e-9, atol=1e-12)


def test_a_result_finds_its_description_from_any_folder(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = CliRunner()
    runner.invoke(application(), ["identify", "trio.urdf", "log 1.csv", "--rotor-inertia", "--out", "found"])
    monkeypatch.chdir(tmp_path)
    done = runner.invoke(application(), ["export", str(place / "found"), "--to", "urdf", "--force", "--json"])
    assert done.exit_code == 0, done.output
    assert Path(json.loads(done.stdout)["file"]).is_file()


def test_a_program_s_result_says_that_its_command_is_rebuilt() -> None:
    assert "A program made this result" in text_of(reproduce_section(trusted()).blocks)


def test_named_files_are_those_that_exist(place: Path) -> None:
    (place / "prior").mkdir()
    (place / "prior" / "result.json").write_text("{}")
    words = ["identify", "trio.urdf", "--prior=prior", "--bounds", "nowhere.yaml", "--config=armid.yaml", "--json"]
    assert list(named_files(words)) == ["trio.urdf", "prior/result.json", "armid.yaml"]
    # A result that stands where this one will be written is no input.
    assert list(named_files(["identify", "trio.urdf", "--out", "prior"])) == ["trio.urdf"]
    assert list(named_files(["identify", "--out=prior", "trio.urdf"])) == ["trio.urdf"]


def test_without_a_command_there_is_none() -> None:
    import contextvars

    assert contextvars.Context().run(command_line) == ""
