"""The README tells the truth: its example runs, its links lead somewhere, its verbs exist."""

from __future__ import annotations

import re
from pathlib import Path

from armid.cli import VERBS
from bench.bench_newcomer import MOST_MINUTES, minutes_of, walked

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()


def test_links_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / target).exists(), target


def test_verbs_exist() -> None:
    named = set(re.findall(r"^armid (\w+)", TEXT, flags=re.MULTILINE))
    further = re.search(r"Further verbs: (.*?);", TEXT)
    assert further is not None
    named |= set(re.findall(r"`(\w+)`", further.group(1)))
    assert named == set(VERBS)


def test_a_newcomer_has_half_of_the_ten_minutes_left_for_what_the_commands_take() -> None:
    _, commands = walked(TEXT)
    assert [command.split()[1] for command in commands] == [
        "inspect",
        "design",
        "design",
        "check",
        "identify",
        "export",
        "report",
    ]
    assert sum(minutes_of(TEXT)) < 0.5 * MOST_MINUTES
