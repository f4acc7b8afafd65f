"""What verbs share: notes and paths shown as they are, folders refused early, the file system's refusals in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from armid.cli import VERBS, application
from armid.cli.output import check_folder, show_files, show_notes, verb
from armid.documents import write_json
from armid.errors import InputError
from armid.notes import Note, Severity


def test_brackets_in_a_note_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    show_notes([Note("format-left-out", Severity.WARNING, "try: pip install 'armid[io]' [/] [bold]x", "parquet")])
    shown = capsys.readouterr().err.replace("\n", " ")
    assert "warning format-left-out (parquet): try: pip install 'armid[io]' [/] [bold]x" in shown


def test_long_paths_stay_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    path = "/a folder/" + "x" * 200 + "/[red]log.csv"
    show_files([path])
    assert capsys.readouterr().err == f"wrote {path}\n"


@pytest.mark.parametrize("place", ["file", "file/below", "file/far/below"])
def test_a_folder_that_cannot_be_one_is_refused_at_once(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a file"):
        check_folder(tmp_path / place)
    check_folder(tmp_path / "new" / "deep")
    assert not (tmp_path / "new").exists()


def test_what_the_file_system_refuses_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    @verb
    def full() -> None:
        raise OSError(28, "No space left on device", str(tmp_path / "log.csv"))

    @verb
    def broken() -> None:
        raise InputError("file.yaml", "while parsing\n  expected\n    something")

    for function in (full, broken):
        with pytest.raises(typer.Exit) as stopped:
            function()
        assert stopped.value.exit_code == 1
    assert capsys.readouterr().err.splitlines() == [
        f"armid: {tmp_path / 'log.csv'}: No space left on device",
        "armid: file.yaml: while parsing expected something",
    ]


def test_a_search_does_not_start_for_a_folder_that_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def searched(*_: Any, **__: Any) -> None:
        raise AssertionError("searched")

    monkeypatch.setattr("armid.design.design.design_excitation", searched)
    (tmp_path / "taken").write_text("x")
    done = CliRunner().invoke(application(), ["design", "cylindrical", "--out", str(tmp_path / "taken")])
    assert done.exit_code == 1
    assert "is a file" in done.stderr


def test_json_files_hold_no_number_json_lacks(tmp_path: Path) -> None:
    path = write_json(tmp_path / "new" / "x.json", {"a": float("inf"), "b": (1, 2)})
    assert json.loads(path.read_text()) == {"a": None, "b": [1, 2]}


@pytest.mark.parametrize("name", VERBS)
def test_a_program_that_asks_for_json_is_told_of_every_error_in_json(name: str) -> None:
    for words, code in ((["--config", "missing.yaml"], 1), (["--no-such-option"], 2)):
        done = CliRunner().invoke(application((name,)), [name, *words, "--json"])
        said = json.loads(done.stdout)["error"]
        assert (done.exit_code, said["exit_code"]) == (code, code)
        assert "\n" not in said["message"]
        assert said["message"]


def test_an_interruption_is_told_in_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    @verb
    def work(*, as_json: bool) -> None:
        raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as ended:
        work(as_json=True)
    assert ended.value.exit_code == 130
    assert json.loads(capsys.readouterr().out)["error"]["exit_code"] == 130
