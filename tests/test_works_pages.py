"""The pages about the five works are run: their commands print what the pages say they print.

In a page, `<!-- file: NAME -->` before a block makes a file of it; a console block is commands after `$`, each followed by words
that its output must contain; Python blocks are executed. All in one folder per page, in order. Blocks marked `sh` are long and
belong to `python -m bench works`.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from armid.cli import VERBS, application

WORKS = Path(__file__).parents[1] / "docs" / "works"
PAGES = sorted(path.stem for path in WORKS.glob("*.md") if path.stem != "README")
BLOCK = re.compile(r"(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL)


def commands(text: str) -> list[tuple[str, list[str]]]:
    """Commands of a console block, each with the lines below it."""
    out: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            out.append((line[2:], []))
        elif line.strip():
            out[-1][1].append(line)
    return out


def squeezed(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("page", PAGES)
def test_the_page_tells_what_its_commands_print(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = 0
    for block in BLOCK.finditer((WORKS / f"{page}.md").read_text(encoding="utf-8")):
        if block["file"]:
            Path(block["file"]).write_text(block["text"])
        elif block["kind"] == "python":
            exec(compile(block["text"], page, "exec"), {})
            ran += 1
        elif block["kind"] == "console":
            for command, expected in commands(block["text"]):
                program, *words = shlex.split(command)
                assert program == "armid"
                done = CliRunner().invoke(application(), words)
                assert done.exit_code == 0, f"{command}: {done.output}"
                for line in expected:
                    assert squeezed(line) in squeezed(done.output), f"{command}: no {line!r} in {done.output}"
                ran += 1
    assert ran >= 2


@pytest.mark.parametrize("page", [*PAGES, "README"])
def test_commands_name_verbs_that_exist_and_links_lead_somewhere(page: str) -> None:
    text = (WORKS / f"{page}.md").read_text(encoding="utf-8")
    for verb in re.findall(r"armid ([a-z]+)", text):
        assert verb in VERBS, verb
    for target in re.findall(r"\]\(([^)#:]+)[^)]*\)", text):
        assert (WORKS / target).resolve().exists(), target


SPAN = re.compile(r"`(?:armid )?([a-z]+)((?: [^`]*)?)`")


@pytest.mark.parametrize("page", [*PAGES, "README"])
def test_options_named_in_the_text_exist(page: str) -> None:
    """Every `verb ... --option` of a page, and of its tables, is an option of that verb."""
    verbs = typer.main.get_command(application()).commands  # type: ignore[attr-defined]
    text = (WORKS / f"{page}.md").read_text(encoding="utf-8")
    seen = 0
    for verb, rest in SPAN.findall(text):
        if verb not in VERBS:
            continue
        known = {option for parameter in verbs[verb].params for option in (*parameter.opts, *parameter.secondary_opts)}
        for option in re.findall(r"--[a-z][a-z-]*", rest):
            assert option in known, f"armid {verb} has no {option}"
            seen += 1
    assert seen or page != "README"


def test_the_states_of_the_items_are_counted_right() -> None:
    text = (WORKS / "README.md").read_text(encoding="utf-8")
    states = re.findall(r"\| (yes|other|no) \|$", text, re.MULTILINE)
    said = f"{len(states)} items: {states.count('yes')} yes, {states.count('other')} other, {states.count('no')} no."
    assert said in text
