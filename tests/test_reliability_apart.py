"""Inputs and answers lie apart: an input inside the output folder is refused before any work, at every verb."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

import armid
from armid.cli import VERBS, application
from armid.cli.written import BESIDE
from armid.errors import InputError
from armid.fleets.table import Visit
from armid.robot.load import load_robot
from support import identified
from support.elbow_logs import ROBOT, write_elbow_log

RUNNER = CliRunner()
WITH_OUT = sorted(
    verb for verb in VERBS if "out" in inspect.signature(getattr(import_module(f"armid.cli.{verb}"), verb)).parameters
)
WORDS = {
    "inspect": ["ROBOT"],
    "design": ["ROBOT"],
    "poses": ["ROBOT", "--for", "calibration"],
    "simulate": ["arm.yaml", "INPUT"],
    "calibrate": ["arm.yaml", "INPUT"],
    "compensate": ["arm.yaml", "correction.json", "INPUT"],
    "check": ["arm.yaml", "INPUT"],
    "identify": ["arm.yaml", "INPUT"],
    "validate": ["result", "INPUT"],
    "export": ["ROBOT", "--to", "c", "--what", "regressor"],
    "report": ["RESULT"],
    "compare": ["RESULT", "result"],
    "demo": ["ROBOT"],
    "study": ["ROBOT"],
    "benchmark": ["ROBOT"],
    "plan": ["result", "INPUT"],
    "program": ["arm.yaml", "INPUT", "--for", "ur"],
    "payload": ["result", "INPUT"],
    "recover": ["arm.yaml", "INPUT"],
    "sweep": ["arm.yaml", "INPUT"],
    "sequential": ["arm.yaml", "INPUT"],
    "elastic": ["arm.yaml", "INPUT", "--joint", "joint1"],
    "online": ["ROBOT", "--rate-hz", "100"],
    "observe": ["result", "INPUT", "--free", "free.csv"],
    "fleet": ["INPUT", "--robot", "arm.yaml"],
}
"""A command line of every verb with one input in the folder `out`; the others need not exist."""


def run(*words: str | Path):
    return RUNNER.invoke(application(), [str(word) for word in words])


def never(*args, **kwargs):
    raise AssertionError("worked")


@pytest.fixture
def out(tmp_path, monkeypatch) -> Path:
    """A folder beside the one we stand in, with a robot, a result nobody lists and a table in it."""
    folder = tmp_path / "out"
    (folder / "old").mkdir(parents=True)
    (folder / "arm.yaml").write_text(ROBOT)
    (folder / "input.csv").write_text("t,q1\n0,0\n")
    (folder / "old" / "result.json").write_text("{}")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("verb", [verb for verb in WITH_OUT if verb not in BESIDE])
def test_an_input_inside_the_output_folder_is_refused_before_any_work(verb, out, monkeypatch):
    monkeypatch.setattr("armid.robot.load.load_robot", never)
    monkeypatch.setattr("armid.identification.result.load_result", never)
    before = contents(out)
    stand_in = {"ROBOT": out / "arm.yaml", "INPUT": out / "input.csv", "RESULT": out / "old"}
    done = run(verb, *(stand_in.get(word, word) for word in WORDS[verb]), "--out", out)
    assert done.exit_code == 1, done.output
    (line,) = done.stderr.strip().splitlines()
    named = next(file for word, file in stand_in.items() if word in WORDS[verb])
    assert str(named) in line
    assert f"is an input, and lies in the output folder {out} (choose an --out elsewhere" in line
    assert contents(out) == before


@pytest.mark.parametrize("place", ["deeper", "link in", "link out", "spelled otherwise", "option"])
def test_no_way_round_for_an_input_inside_the_output_folder(place, out, tmp_path, monkeypatch):
    monkeypatch.setattr("armid.robot.load.load_robot", never)
    (tmp_path / "free.csv").write_text("t,q1\n0,0\n")
    log, more = tmp_path / "free.csv", []
    if place == "deeper":
        log = out / "old" / "deep" / "log.csv"
        log.parent.mkdir()
        log.write_text("t,q1\n0,0\n")
    elif place == "link in":
        (out / "linked.csv").symlink_to(log)
        log = out / "linked.csv"
    elif place == "link out":
        (tmp_path / "linked.csv").symlink_to(out / "input.csv")
        log = tmp_path / "linked.csv"
    elif place == "spelled otherwise":
        log = Path("..") / "out" / ".." / "out" / "input.csv"
    else:
        more = ["--validate", out / "input.csv"]
    done = run("identify", "iiwa14", log, *more, "--out", out)
    assert done.exit_code == 1, done.output
    assert "is an input, and lies in the output folder" in done.stderr


def test_recordings_that_a_mapping_or_a_table_names_count_too(out, tmp_path):
    (tmp_path / "arm.yaml").write_text(ROBOT)
    mapping = "schema: armid.log/1\nfiles: {data: {path: out/input.csv}}\nchannels: {position: {file: data}}\n"
    (tmp_path / "log.yaml").write_text(mapping)
    mapped = run("identify", tmp_path / "arm.yaml", tmp_path / "log.yaml", "--out", out)
    (tmp_path / "fleet.csv").write_text("arm,date,robot,logs\na,2026-01-01,arm.yaml,out/input.csv\n")
    listed = run("fleet", tmp_path / "fleet.csv", "--out", out)
    for done in (mapped, listed):
        assert done.exit_code == 1, done.output
        assert f"{Path('out') / 'input.csv'}: is an input, and lies in the output folder" in done.stderr


def test_a_bag_in_the_output_folder_is_refused_even_where_armid_has_written(out, tmp_path):
    (tmp_path / "arm.yaml").write_text(ROBOT)
    assert run("inspect", tmp_path / "arm.yaml", "--out", out / "bag").exit_code == 0
    (out / "bag" / "metadata.yaml").write_text("rosbag2_bagfile_information: {}")
    done = run("check", tmp_path / "arm.yaml", out / "bag", "--out", out / "bag")
    assert done.exit_code == 1
    assert "metadata.yaml: is an input, and lies in the output folder" in done.stderr


@pytest.mark.parametrize("spelling", [".", "./", "absolute", "../run", "link"])
def test_the_folder_one_stands_in_may_hold_inputs_however_it_is_spelled(spelling, tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "run")
    (tmp_path / "run" / "arm.yaml").write_text(ROBOT)
    monkeypatch.chdir(tmp_path / "run")
    folder = {"absolute": tmp_path / "run", "link": tmp_path / "link"}.get(spelling, spelling)
    done = run("inspect", "arm.yaml", "--out", folder)
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "run" / "arm.yaml").read_text() == ROBOT


def test_what_armid_wrote_in_the_folder_may_be_read_from_there_until_somebody_edits_it(tmp_path):
    (tmp_path / "arm.yaml").write_text(ROBOT)
    run_folder = tmp_path / "run"
    log = run_folder / "log.csv"
    run_folder.mkdir()
    from armid.documents import write_text
    from armid.folders import answer_folder

    with answer_folder(run_folder, "simulation"):
        write_elbow_log(tmp_path / "text.csv", load_robot(tmp_path / "arm.yaml"), 1, seconds=12.0)
        write_text(log, (tmp_path / "text.csv").read_text())
    for _ in range(2):
        done = run("check", tmp_path / "arm.yaml", log, "--out", run_folder)
        assert done.exit_code in (0, 3), done.stderr
    log.write_text(log.read_text() + "\n")
    edited = run("check", tmp_path / "arm.yaml", log, "--out", run_folder)
    assert edited.exit_code == 1
    assert "is an input, and lies in the output folder" in edited.stderr


def test_a_mapping_is_written_beside_its_recording_and_over_nothing(tmp_path):
    (tmp_path / "arm.yaml").write_text(ROBOT)
    write_elbow_log(tmp_path / "log.csv", load_robot(tmp_path / "arm.yaml"), 1, seconds=2.0)
    before = contents(tmp_path)
    done = run("map", tmp_path / "arm.yaml", tmp_path / "log.csv", "--no-input", "--out", tmp_path)
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "log.yaml").is_file()
    assert contents(tmp_path).items() >= before.items()
    (tmp_path / "arm.csv").write_text((tmp_path / "log.csv").read_text())
    over = run("map", tmp_path / "arm.yaml", tmp_path / "arm.csv", "--no-input", "--out", tmp_path)
    assert over.exit_code == 1
    assert "arm.yaml: was not written by armid, and would be replaced" in over.stderr
    assert (tmp_path / "arm.yaml").read_text() == ROBOT


def test_reports_exports_and_comparisons_go_beside_the_result_they_show(tmp_path):
    folder = tmp_path / "identified"
    identified.trusted().save(folder)
    for words in (("report", folder), ("export", folder, "--to", "json"), ("compare", folder, folder)):
        done = run(*words, "--out", folder)
        assert done.exit_code in (0, 3), done.stderr


def test_a_folder_named_like_a_robot_or_a_method_is_no_input(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    identified.trusted().save(tmp_path / "iiwa14")
    identified.trusted().save(tmp_path / "wls")
    for folder in ("iiwa14", "wls"):
        done = run("identify", "iiwa14", "missing.csv", "--method", "wls", "--out", folder)
        assert "missing.csv: no such file" in done.stderr


def test_functions_that_write_as_they_go_refuse_likewise(out, tmp_path):
    arm, motion = out / "arm.yaml", out / "input.csv"
    visit = Visit(arm="a", date="2026-01-01", robot="iiwa14", logs=(str(motion),))
    calls = {
        "design_motion": lambda: armid.design_motion(arm, out=out),
        "simulate": lambda: armid.simulate("iiwa14", motion, out=out),
        "fleet": lambda: armid.fleet([visit], out=out),
        "benchmark": lambda: armid.benchmark(arm, out=out),
        "study": lambda: armid.study("lwr4plus", trajectories=[motion], out=out),
        "demo": lambda: armid.demo(out, robot=arm),
    }
    for name, call in calls.items():
        with pytest.raises(InputError) as refused:
            call()
        assert "is an input, and lies in the output folder" in str(refused.value), name
