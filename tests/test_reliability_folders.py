"""Nothing of the user's is lost: answers appear in a folder whole or not at all, and only over files of our own."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from armid.cli import application
from armid.cli.written import ALWAYS, SOMETIMES
from armid.documents import read_arrays, read_json, write_arrays, write_json, write_text
from armid.errors import InputError
from armid.export.export import Format, export_result
from armid.folders import JOURNAL, MANIFEST, answer_folder, manifest, new_files
from armid.identification.result import load_result
from armid.robot.load import load_robot
from support import identified
from support.elbow_logs import ROBOT, write_elbow_log

RUNNER = CliRunner()


def visible(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


def write_answer(folder: Path, value: int, *, more: bool = False) -> None:
    """An answer of two files that must agree, and a third one at times."""
    with answer_folder(folder, "answer"):
        write_json(folder / "a.json", {"value": value})
        write_arrays(folder / "b.npz", {"value": np.array(value)})
        if more:
            write_text(folder / "c.txt", str(value))


def read_answer(folder: Path) -> tuple[int, int]:
    first = read_json(folder / "a.json", "an answer")["value"]
    return first, int(read_arrays(folder / "b.npz", "an answer")["value"])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("folders")
    (folder / "elbow.yaml").write_text(ROBOT)
    write_elbow_log(folder / "log.csv", load_robot(folder / "elbow.yaml"), 1, seconds=12.0)
    return folder


def run(*words: str | Path):
    return RUNNER.invoke(application(), [str(word) for word in words])


def test_a_rerun_of_identify_leaves_log_notes_export_and_report_in_its_folder(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = tmp_path / "log.csv"
    log.write_bytes((place / "log.csv").read_bytes())
    (tmp_path / "notes.txt").write_text("four years")
    for _ in range(2):
        done = run("identify", place / "elbow.yaml", log, "--out", tmp_path)
        assert done.exit_code in (0, 3), done.stderr
        assert run("report", tmp_path).exit_code == 0
        assert run("export", tmp_path, "--to", "urdf", "--force").exit_code == 0
    assert {"log.csv", "notes.txt", "result.json", "result.npz", "report.html"} <= visible(tmp_path)
    assert any(name.endswith(".urdf") for name in visible(tmp_path))
    assert (tmp_path / "notes.txt").read_text() == "four years"
    assert log.read_bytes() == (place / "log.csv").read_bytes()
    assert load_result(tmp_path).described.name


def test_an_arm_named_like_the_result_does_not_replace_it(tmp_path):
    result = identified.trusted()
    named = replace(result, described=replace(result.described, name="result"))
    named.save(tmp_path)
    before = (tmp_path / "result.json").read_bytes()
    with pytest.raises(InputError, match=r"result\.json.*would be replaced by the export"):
        export_result(named, Format.JSON, tmp_path)
    assert (tmp_path / "result.json").read_bytes() == before
    assert export_result(named, Format.JSON, tmp_path / "other").files


def test_the_folder_one_stands_in_may_be_the_output_folder(place, tmp_path, monkeypatch):
    (tmp_path / "log.csv").write_bytes((place / "log.csv").read_bytes())
    monkeypatch.chdir(tmp_path)
    done = run("check", place / "elbow.yaml", "log.csv", "--out", ".")
    assert done.exit_code in (0, 3), done.stderr
    assert visible(tmp_path) == {"log.csv", "check.json"}
    done = run("identify", place / "elbow.yaml", "log.csv", "--out", ".")
    assert done.exit_code in (0, 3), done.stderr
    assert {"log.csv", "result.json"} <= visible(tmp_path)


def test_an_input_that_would_be_replaced_is_refused_before_any_work(place, tmp_path, monkeypatch):
    done = run("identify", place / "elbow.yaml", place / "log.csv", "--out", tmp_path / "first")
    assert done.exit_code in (0, 3), done.stderr

    def never(*args, **kwargs):
        raise AssertionError("worked")

    monkeypatch.setattr("armid.robot.load.load_robot", never)
    own = run(
        "identify", place / "elbow.yaml", place / "log.csv", "--prior", tmp_path / "first", "--out", tmp_path / "first"
    )
    assert own.exit_code == 1
    assert "is read, and would be replaced" in own.stderr
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "result.npz").write_bytes(b"a log somebody named so")
    other = run("identify", place / "elbow.yaml", tmp_path / "mine" / "result.npz", "--out", tmp_path / "mine")
    assert other.exit_code == 1
    assert "result.npz" in other.stderr
    assert visible(tmp_path / "mine") == {"result.npz"}


@pytest.mark.parametrize("verb", sorted(ALWAYS))
def test_a_file_of_the_users_with_a_name_of_ours_stops_every_verb_before_any_work(verb, place, tmp_path):
    name = ALWAYS[verb][-1]
    (tmp_path / name).write_text("mine")
    words = {
        "compare": ["missing1", "missing2"],
        "report": ["missing"],
        "demo": [],
        "fleet": ["missing.csv"],
        "study": [],
        "compensate": [place / "elbow.yaml", "missing.json", "missing.csv"],
        "poses": [place / "elbow.yaml", "--for", "calibration"],
        "online": [place / "elbow.yaml", "--rate-hz", "100"],
        "observe": ["missing", "missing.csv", "--free", "missing.csv"],
        "inspect": [place / "elbow.yaml"],
        "design": [place / "elbow.yaml"],
        "benchmark": [place / "elbow.yaml"],
        "elastic": [place / "elbow.yaml", "missing.csv", "--joint", "joint1"],
        "recover": [place / "elbow.yaml", "missing.npz"],
    }.get(verb, [place / "elbow.yaml", "missing.csv"])
    done = run(verb, *words, "--out", tmp_path)
    assert done.exit_code == 1, done.output
    assert name in done.stderr
    assert "was not written by armid" in done.stderr
    assert (tmp_path / name).read_text() == "mine"


def test_every_verb_with_an_output_folder_says_what_it_writes():
    import inspect
    from importlib import import_module

    from armid.cli import VERBS

    with_out = {
        verb
        for verb in VERBS
        if "out" in inspect.signature(getattr(import_module(f"armid.cli.{verb}"), verb)).parameters
    }
    assert with_out - {"export"} <= set(ALWAYS) | set(SOMETIMES)  # names of exports come from the robot


def test_foreign_and_edited_files_are_never_replaced(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    write_answer(tmp_path, 1)
    write_answer(tmp_path, 2)
    assert read_answer(tmp_path) == (2, 2)
    (tmp_path / "a.json").write_text('{"value": 2, "edited": true}')
    with pytest.raises(InputError, match=r"a\.json: has been changed since armid wrote it"):
        write_answer(tmp_path, 3)
    assert read_answer(tmp_path) == (2, 2)
    assert visible(tmp_path) == {"mine.txt", "a.json", "b.npz"}
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_link_out_of_the_folder_is_not_followed(tmp_path):
    (tmp_path / "precious.json").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.json").symlink_to(tmp_path / "precious.json")
    with pytest.raises(InputError, match="no regular file"):
        write_answer(tmp_path / "out", 1)
    assert (tmp_path / "precious.json").read_text() == "mine"


def test_files_of_the_former_answer_that_the_new_one_lacks_go_unless_somebody_edited_them(tmp_path):
    write_answer(tmp_path, 1, more=True)
    write_answer(tmp_path, 2)
    assert visible(tmp_path) == {"a.json", "b.npz"}
    write_answer(tmp_path, 3, more=True)
    (tmp_path / "c.txt").write_text("notes")
    write_answer(tmp_path, 4)
    assert (tmp_path / "c.txt").read_text() == "notes"


def test_a_failed_answer_leaves_no_trace(tmp_path):
    def failing(folder: Path) -> None:
        with answer_folder(folder, "answer"):
            write_json(folder / "a.json", {})
            raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match="No space left"):
        failing(tmp_path / "new" / "out")
    assert list(tmp_path.iterdir()) == []


STEPS = 40


def killed_at(step: int, folder: Path) -> bool:
    """Writes answer 2 in a child that dies at its n-th touch of the disk, without any farewell; whether it lived to the end."""
    child = os.fork()
    if child == 0:
        left = [step]

        def counted(function):
            def call(*args, **kwargs):
                left[0] -= 1
                if left[0] < 0:
                    os._exit(9)
                return function(*args, **kwargs)

            return call

        for module, name in ((os, "fsync"), (os, "unlink"), (Path, "replace"), (Path, "unlink"), (Path, "chmod")):
            setattr(module, name, counted(getattr(module, name)))
        write_answer(folder, 2)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_kill_at_any_moment_leaves_the_old_or_the_new_answer(tmp_path):
    seen = set()
    for step in range(STEPS):
        folder = tmp_path / str(step)
        write_answer(folder, 1, more=True)
        (folder / "mine.txt").write_text("mine")
        ended = killed_at(step, folder)
        found = read_answer(folder)
        assert found in ((1, 1), (2, 2)), step
        assert (folder / "c.txt").exists() == (found == (1, 1))
        write_answer(folder, 3)
        assert read_answer(folder) == (3, 3)
        assert {path.name for path in folder.iterdir()} == {"a.json", "b.npz", "mine.txt", MANIFEST}, step
        seen.add((found, ended))
        if ended:
            break
    assert seen == {((1, 1), False), ((2, 2), False), ((2, 2), True)}, (
        "dies before, in the midst of and after the change"
    )


def test_two_answers_at_a_time_never_mix(tmp_path):
    def many(value: int) -> None:
        for _ in range(8):
            write_answer(tmp_path, value)

    threads = [threading.Thread(target=many, args=(value,)) for value in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first, second = read_answer(tmp_path)
    assert first == second
    assert {path.name for path in tmp_path.iterdir()} == {"a.json", "b.npz", MANIFEST}


@pytest.mark.parametrize(
    "moves", [{"x.armid-tmp": "../stolen"}, {"../x.armid-tmp": "a"}, {"mine.txt": "a.json"}, {"x.armid-tmp": ""}]
)
def test_a_forged_journal_moves_nothing_out_of_the_folder(tmp_path, moves):
    out = tmp_path / "out"
    write_answer(out, 1)
    (out / "mine.txt").write_text("mine")
    (out / "x.armid-tmp").write_text("forged")
    journal = {"schema": "armid.folder/1", "moves": moves, "stale": {}, "files": {}}
    (out / JOURNAL).write_text(json.dumps(journal))
    with pytest.raises(InputError, match="journal is damaged"):
        read_json(out / "a.json", "an answer")
    assert (out / "mine.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_folders_other_libraries_write_keep_foreign_files_too(tmp_path):
    bag = tmp_path / "bag"
    bag.mkdir()
    (bag / "mine.txt").write_text("mine")
    for value in ("1", "2"):
        with new_files(bag) as room:
            room.mkdir()
            (room / "x.bin").write_text(value)
    assert (bag / "x.bin").read_text() == "2"
    assert {path.name for path in bag.iterdir()} == {"x.bin", "mine.txt", MANIFEST}
    assert set(manifest(bag)) == {"x.bin"}
