"""`armid identify` when things go wrong: a status, a message, an exit code, and nothing written; and when they repeat."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.consistency import program
from armid.documents import write_text
from armid.folders import answer_folder
from armid.information.status import EstimationError, Status
from armid.robot.load import load_robot
from support.elbow_logs import ROBOT, write_columns, write_elbow_log

RUNNER = CliRunner()
TIMES = ("seconds", "peak_memory_mb", "folder")
"""What may differ between two runs of the same command: how long it took, how much memory, and where it ran."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trouble")
    (folder / "elbow.yaml").write_text(ROBOT)
    write_elbow_log(folder / "log.csv", load_robot(folder / "elbow.yaml"), 1, seconds=12.0)
    return folder


def invoked(place, log, *options, out="never"):
    args = ["identify", str(place / "elbow.yaml"), str(place / log), "--out", str(place / out), *options]
    return RUNNER.invoke(application(), args)


def refused(outcome, place, *words, code=1, out="never"):
    assert outcome.exit_code == code, outcome.stderr
    for word in words:
        assert word in outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert len([line for line in outcome.stderr.splitlines() if line.startswith("armid:")]) == 1
    assert not (place / out).exists()
    assert not [path for path in place.iterdir() if path.name.startswith(".")]


def table(place, name):
    return np.loadtxt(place / name, delimiter=",", skiprows=1)


def rewritten(place, name, data):
    """The log with other numbers under the same names."""
    robot = load_robot(place / "elbow.yaml")
    return write_columns(place / name, robot, {"time": data[:, :1], "q": data[:, 1:4], "tau": data[:, 4:7]})


def test_a_motion_of_one_joint_lacks_rank_and_is_neither_trusted_nor_exported(place):
    robot = load_robot(place / "elbow.yaml")
    still = write_elbow_log(place / "still.csv", robot, 1, seconds=12.0, moving=(2,))
    outcome = invoked(place, still.name, "--json", out="still")
    if outcome.exit_code == 1:
        refused(outcome, place, out="still")
        return
    assert outcome.exit_code == 3
    report = json.loads(outcome.stdout)
    assert report["verdict"] == "untrusted"
    assert any("of 24 base parameters" in reason for reason in report["reasons"])
    exported = RUNNER.invoke(
        application(), ["export", str(place / "still"), "--to", "urdf", "--out", str(place / "urdf")]
    )
    assert exported.exit_code in (1, 3)
    assert not (place / "urdf").exists()


def test_too_few_samples_are_refused(place):
    rewritten(place, "short.csv", table(place, "log.csv")[:40])
    refused(invoked(place, "short.csv"), place, "short")


def test_fewer_rows_than_parameters_are_a_status():
    error = EstimationError(Status.TOO_FEW_ROWS, "9 rows for 24 parameters")
    assert str(error).startswith("9 rows for 24 parameters: there are fewer rows than parameters")
    assert str(error).endswith("[too-few-rows]")


@pytest.mark.parametrize("columns", [slice(4, 5), slice(1, 2), slice(1, 7)])
def test_a_channel_without_numbers_is_refused(place, columns):
    data = table(place, "log.csv")
    data[:, columns] = np.nan
    rewritten(place, "nan.csv", data)
    refused(invoked(place, "nan.csv"), place, "nan")


def test_scattered_holes_are_left_out_and_said(place):
    data = table(place, "log.csv")
    data[np.random.default_rng(0).integers(0, len(data), 4), 5] = np.nan
    rewritten(place, "holes.csv", data)
    outcome = invoked(place, "holes.csv", "--json", out="holes")
    assert outcome.exit_code in (0, 3), outcome.stderr
    report = json.loads(outcome.stdout)
    assert any(note["code"] == "not-finite" and "left out" in note["message"] for note in report["notes"])
    assert all(np.isfinite(joint["rmse_train"]) for joint in report["joints"])


def test_a_solver_that_fails_leaves_nothing(place, monkeypatch):
    def failing(*args, **kwargs):
        raise EstimationError(Status.SOLVER_FAILED, "Clarabel: NumericalError after 3 iterations")

    monkeypatch.setattr(program.ConicProgram, "solve", failing)
    refused(invoked(place, "log.csv"), place, "conic solver stopped", "[solver-failed]")


def test_contradictory_bounds_leave_nothing(place):
    (place / "bounds.yaml").write_text("mass: {link1: [9, 9], link2: [9, 9]}\ntotal_mass: [1, 2]\n")
    refused(
        invoked(place, "log.csv", "--bounds", str(place / "bounds.yaml")), place, "exclude each other", "total mass"
    )


INTERRUPTED = """
import os, signal, sys
import numpy as np
import armid.{module} as module

real = module.{name}

# A suite started in the background hands down that interrupts are ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

def interrupted(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGINT)
    return real(*args, **kwargs)

module.{name} = interrupted
from armid.cli import main
sys.argv = ["armid", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(
    ("module", "name"), [("identification.pipeline", "fitted"), ("identification.stored", "arrays")]
)
def test_an_interrupt_while_estimating_or_writing_leaves_the_folder_as_it_was(place, tmp_path, module, name):
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED.format(module=module, name=name))
    out = tmp_path / "out"
    command = [
        sys.executable,
        str(script),
        "identify",
        str(place / "elbow.yaml"),
        str(place / "log.csv"),
        "--out",
        str(out),
    ]
    first = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert first.returncode == 130, first.stderr
    assert "interrupted" in first.stderr
    assert "Traceback" not in first.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["interrupted.py"]
    with answer_folder(out, "Result"):
        write_text(out / "result.json", "{}")
    again = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert again.returncode == 130
    assert (out / "result.json").read_text() == "{}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["interrupted.py", "out"]


def test_two_runs_with_one_seed_write_the_same_files(place, tmp_path):
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        args = [
            "-c",
            "from armid.cli import main; main()",
            "identify",
            str(place / "elbow.yaml"),
            str(place / "log.csv"),
            "--seed",
            "7",
            "--essential",
            "--friction",
            "viscous,coulomb,offset,stribeck",
            "--out",
            "out",
        ]
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, *args], cwd=folder, capture_output=True, text=True, timeout=250, check=False
        )
        assert done.returncode in (0, 3), done.stderr
    first, second = (without_times(json.loads((folder / "out" / "result.json").read_text())) for folder in folders)
    assert first == second
    for name in ("result.npz", "torque.npz"):
        assert Path(folders[0] / "out" / name).read_bytes() == Path(folders[1] / "out" / name).read_bytes()


def without_times(value):
    """The record without how long things took."""
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in TIMES}
    if isinstance(value, list):
        return [without_times(item) for item in value]
    return value
