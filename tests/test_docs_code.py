"""Commands and code in the documentation exist: verbs, options and names are those of the program."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest
import typer.main

import armid
from armid.cli import VERBS, application
from armid.cli.help import EARLIER, EXAMPLES, present_spelling

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)


def blocks(page: Path, *languages: str) -> list[str]:
    """Code blocks of a page in these languages; '' for those that name none."""
    return [text for language, text in FENCE.findall(page.read_text(encoding="utf-8")) if language in languages]


@cache
def options() -> dict[str, set[str]]:
    """Flags of every verb."""
    commands = typer.main.get_command(application()).commands  # type: ignore[attr-defined]
    return {
        verb: {name for p in commands[verb].params for name in (*p.opts, *p.secondary_opts)} | {"--help", "-h"}
        for verb in VERBS
    }


def commands(page: Path) -> list[str]:
    """Lines that call armid, continued ones joined, remarks taken off."""
    text = "\n".join(blocks(page, "", "sh", "bash", "console", "text")).replace("\\\n", " ")
    lines = [re.sub(r"\s#.*", "", line).strip().removeprefix("$ ") for line in text.splitlines()]
    return [line for line in lines if re.match(r"armid [a-z]+ ", line)]


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.stem)
def test_commands_in_the_documentation_exist(page: Path) -> None:
    wrong = []
    for line in commands(page):
        _, verb, rest = line.split(" ", 2)
        rest = re.split(r"\s[|;]|&&|\s>", rest)[0]
        if verb not in options():
            wrong.append(f"{verb}: no such verb ({line})")
            continue
        flags = re.findall(r"(?<=\s)--[a-z][a-z0-9-]*", f" {rest}")
        wrong += [f"armid {verb} {flag}" for flag in flags if flag not in options()[verb] | {"--config"}]
    assert wrong == []


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.stem)
def test_python_in_the_documentation_uses_names_that_exist(page: Path) -> None:
    for text in blocks(page, "python"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "armid":
                assert hasattr(armid, node.attr) or (ROOT / "src" / "armid" / node.attr).exists(), node.attr


def test_every_verb_has_two_examples_that_exist() -> None:
    assert set(EXAMPLES) == set(VERBS)
    for verb, lines in EXAMPLES.items():
        for line in lines:
            assert line.startswith(f"armid {verb}")
            assert [flag for flag in re.findall(r"--[a-z-]+", line) if flag not in options()[verb]] == [], line


def test_earlier_spellings_lead_to_flags_that_exist() -> None:
    for verb, renamed in EARLIER.items():
        assert set(renamed.values()) <= options()[verb]
        assert not set(renamed) & options()[verb]
    assert present_spelling(["design", "arm.urdf", "--seconds=5", "--payload-mass", "2"]) == [
        "design", "arm.urdf", "--search-seconds=5", "--payload-kg", "2",
    ]  # fmt: skip
    assert present_spelling(["inspect", "--seconds", "5"]) == ["inspect", "--seconds", "5"]


def test_one_thing_has_one_flag() -> None:
    """Mass of a load, collisions, locked joints, faults and the three kinds of time."""
    everywhere = {flag for flags in options().values() for flag in flags}
    assert not everywhere & {"--seconds", "--payload-mass", "--self-collision", "--locked", "--mistake", "--mass-kg"}


def test_long_help_is_grouped(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        application(["identify"])(["identify", "--help"])
    text = capsys.readouterr().out
    for title in ("Model", "Recordings", "Signals", "Estimation", "Answer", "Examples:"):
        assert title in text, title


@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        (["inspect", "nowhere.urdf", "--json"], 1, "RobotError"),
        (["inspect", "iiwa14", "--friction", "sticky", "--json"], 2, "UsageError"),
        (["inspect", "iiwa14", "--no-such-flag", "--json"], 2, "UsageError"),
    ],
)
def test_errors_are_json_when_json_is_asked_for(
    words: list[str], code: int, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        application(["inspect"])(words)
    said = capsys.readouterr()
    assert ended.value.code == code
    error = json.loads(said.out)["error"]
    assert (error["kind"], error["exit_code"]) == (kind, code)
    assert error["message"]
    assert said.err
