"""What every verb does alike: help, one line for a known failure, JSON alone on stdout."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import armid.cli
from armid.cli import VERBS, application, needed
from armid.cli.output import EXIT_FAILED, EXIT_UNTRUSTED
from support.identified import trusted, untrusted, urdf_file

HEAVY = {"numpy", "scipy", "numba", "llvmlite", "mujoco", "sympy", "plotly", "clarabel", "jinja2", "pyarrow", "yaml"}


def commands() -> dict[str, Any]:
    group: Any = typer.main.get_command(application())
    return dict(group.commands)


def run(*words: object) -> Any:
    return CliRunner().invoke(application(), [str(word) for word in words])


def test_every_verb_is_there() -> None:
    assert set(VERBS) <= set(commands())


@pytest.mark.parametrize("verb", VERBS)
def test_help(verb: str) -> None:
    result = run(verb, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.output


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys, armid.cli\n"
        "for verb in armid.cli.VERBS:\n"
        "    try: armid.cli.application()([verb, '--help'])\n"
        "    except SystemExit: pass\n"
        "print(*{name.split('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stderr.split())


def test_only_the_verb_asked_for_is_prepared() -> None:
    assert needed(["identify", "arm.urdf", "--config-like"]) == ["identify"]
    assert needed([]) == needed(["--help"]) == needed(["identfy"]) == VERBS
    assert needed(["identify", "--config=armid.yaml"]) == needed(["--config", "demo", "identify"]) == VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_speaks_json_and_explains_itself(verb: str) -> None:
    command = commands()[verb]
    assert any("--json" in parameter.opts for parameter in command.params)
    assert command.help
    for parameter in command.params:
        assert getattr(parameter, "help", None), f"{verb} {parameter.name} has no help"


REQUIRED = {
    "--to": "urdf",
    "poses --for": "gravity",
    "program --for": "ur",
    "--free": "no-such-thing",
    "--rate-hz": "100",
}
"""A value for every option that has no default; with its verb where two verbs mean different things."""


def missing_input(verb: str) -> list[str]:
    """The shortest command line that parses, about things that are not there."""
    words = [verb]
    for parameter in commands()[verb].params:
        if parameter.param_type_name == "argument" and (parameter.required or parameter.name == "robot"):
            words += ["no-such-thing"] * (2 if parameter.nargs == -1 else 1)
        elif parameter.required:
            flag = parameter.opts[0]
            words += [flag, REQUIRED.get(f"{verb} {flag}") or REQUIRED[flag]]
    return words


@pytest.mark.parametrize("verb", VERBS)
def test_unknown_input_is_one_line_and_exit_code_1(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*missing_input(verb))
    assert result.exit_code == EXIT_FAILED, result.output
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("armid: ")
    assert "no-such-thing" in lines[0]
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", VERBS)
def test_unknown_flag_is_usage(verb: str) -> None:
    assert run(verb, "--no-such-flag").exit_code == 2


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    place = tmp_path_factory.mktemp("results")
    trusted().save(place / "good")
    untrusted().save(place / "bad")
    return place / "good", place / "bad"


def test_export(folders: tuple[Path, Path], tmp_path: Path) -> None:
    good, bad = folders
    done = run("export", good, "--to", "urdf", "--out", tmp_path, "--json")
    text = json.loads(done.stdout)
    assert done.exit_code == 0
    assert text["verdict"] == "trusted"
    assert Path(text["file"]).read_text().startswith('<?xml version="1.0"?>')
    refused = run("export", bad, "--to", "urdf", "--out", tmp_path / "none")
    assert refused.exit_code == EXIT_FAILED
    assert "held-out torque error 40 %" in refused.stderr
    assert not (tmp_path / "none").exists()
    forced = run("export", bad, "--to", "mjcf", "--out", tmp_path / "forced", "--force", "--json")
    assert forced.exit_code == 0
    assert "UNVALIDATED" in json.loads(forced.stdout)["file"]
    assert json.loads(forced.stdout)["verdict"] == "untrusted"


def test_report(folders: tuple[Path, Path], tmp_path: Path) -> None:
    done = run("report", folders[0], "--out", tmp_path, "--json")
    assert done.exit_code == 0
    assert Path(json.loads(done.stdout)["report"]) == tmp_path / "report.html"


def test_compare(folders: tuple[Path, Path], tmp_path: Path) -> None:
    done = run("compare", *folders, "--out", tmp_path, "--json")
    assert done.exit_code == 0
    text = json.loads(done.stdout)
    assert [r["name"] for r in text["results"]] == ["good", "bad"]
    assert text["largest_difference"] == 0.0
    assert Path(text["report"]).exists()
    assert run("compare", folders[0]).exit_code == EXIT_FAILED


def test_config_file_fills_in_flags(tmp_path: Path) -> None:
    """On two verbs: flag over config over default."""
    file = tmp_path / "armid.yaml"
    file.write_text("all: {json: true}\ninspect: {friction: [viscous, coulomb], rotor-inertia: true}\n")
    count = "standard_parameters"
    plain = json.loads(run("inspect", "cmu-dd-arm2", "--friction", "none", "--json").stdout)[count]
    assert json.loads(run("--config", file, "inspect", "cmu-dd-arm2").stdout)[count] == plain + 9
    assert json.loads(run("inspect", "cmu-dd-arm2", f"--config={file}").stdout)[count] == plain + 9
    fewer = run("inspect", "cmu-dd-arm2", "--config", file, "--friction", "viscous")
    assert json.loads(fewer.stdout)[count] == plain + 6


def test_config_file_may_hold_arguments(folders: tuple[Path, Path], tmp_path: Path) -> None:
    file = tmp_path / "armid.yaml"
    file.write_text(f"export: {{result: {folders[0]}, to: json, out: {tmp_path}, name: kept}}\n")
    assert run("export", "--config", file).exit_code == 0
    assert (tmp_path / "kept.json").exists()
    assert run("export", "--config", file, "--to", "mjcf").exit_code == 0
    assert (tmp_path / "kept.xml").exists()
    file.write_text(f"compare: {{results: [{folders[0]}, {folders[1]}], out: {tmp_path}}}\n")
    assert run("--config", file, "compare").exit_code == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("inspect: {frictoin: none}", "no setting of inspect .*'frictoin'; there are: .*friction"),
        ("inspct: {friction: none}", "no verb .*'inspct'; there are: .*inspect"),
        ("all: {no-such: 1}", "no setting of any verb .*'no-such'"),
        ("inspect: 3", "expected option: value"),
        ("[1, 2]", "not a mapping"),
        ("inspect: {friction: {a: b}}", "expected a value or a list"),
        ("inspect: {friction: none", "not valid YAML"),
    ],
)
def test_config_file_with_mistakes(text: str, problem: str, tmp_path: Path) -> None:
    import re

    file = tmp_path / "armid.yaml"
    file.write_text(text)
    result = run("--config", file, "inspect", "cmu-dd-arm2")
    assert result.exit_code == EXIT_FAILED
    assert re.search(problem, result.stderr)
    assert len(result.stderr.strip().splitlines()) == 1


def test_config_file_that_is_missing(tmp_path: Path) -> None:
    assert run("--config", tmp_path / "none.yaml", "inspect", "panda").exit_code == EXIT_FAILED
    assert "no file given" in run("inspect", "panda", "--config").stderr


def test_help_shows_units() -> None:
    assert "[m/s^2]" in run("identify", "--help").output


def test_completion_can_be_installed() -> None:
    assert "--install-completion" in run("--help").output


def test_exit_codes_are_distinct() -> None:
    assert len({0, EXIT_FAILED, 2, EXIT_UNTRUSTED}) == 4
    assert urdf_file().exists()


def _code_lines(path: Path) -> list[str]:
    """Lines that say something: no imports, comments or lone brackets, white space folded."""
    lines = (" ".join(line.split()) for line in path.read_text().splitlines())
    return [line for line in lines if line.strip("()[]{},:") and not line.startswith(("#", "from ", "import "))]


def test_no_six_lines_stand_in_two_command_files() -> None:
    """What verbs have in common is said once; six lines is what the search for duplicates calls a pair."""
    seen: dict[tuple[str, ...], str] = {}
    for path in sorted(Path(armid.cli.__file__).parent.glob("*.py")):
        lines = _code_lines(path)
        for run in zip(*(lines[k:] for k in range(6)), strict=False):
            assert seen.setdefault(run, path.name) == path.name, f"{path.name} repeats {seen[run]}: {run}"
