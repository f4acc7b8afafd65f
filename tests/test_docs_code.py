"""Commands and code in the documentation exist: verbs, options and names are those of the program."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import typer.main

import armid
from armid.cli import VERBS, application

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
