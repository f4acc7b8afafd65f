"""Figures in the documentation can be printed again: a section that states results names what prints them.

A result is a number with the unit of a measurement. Whoever writes one beside no command, no test and no link to the section that
has them fails here. Sections whose numbers are limits, defaults or examples are listed with that reason.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from armid.cli import VERBS

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if path.stem != "decisions")
"""Decisions tell what was seen when something was decided, which nothing prints again; the page says so."""

RESULT = re.compile(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?(?:e-?\d+)? ?(?:%|mm\b|um\b|ms\b|GB\b|MB\b|CPU s|times\b|of \d+\b)")
SOURCE = re.compile(
    r"python -m bench \w+|\btest_\w+\.py|\]\([\w./-]*#|\barmid (?:VERB)\b|`(?:VERB)[ `]".replace(
        "VERB", "|".join(VERBS)
    )
)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)

LIMITS_AND_DEFAULTS = {
    "design.md": ("What is kept",),
    "estimation.md": ("Friction that passes the filter", "Which to choose", "Held out"),
    "gate.md": (
        "Per joint, against what can be achieved",
        "Not worse than nominal, beyond the confidence of the comparison",
    ),
    "how-to-choose.md": ("Which cut-off",),
    "logs.md": ("Health",),
    "planning.md": ("What is refused, and how",),
    "robots.md": ("Plausible bodies",),
}
"""Sections whose numbers say when something is done, not what came out; `armid check --thresholds` prints those that judge."""


def sections(page: Path) -> list[tuple[str, str]]:
    """Headings of a page and what stands below each, down to the next."""
    hidden = FENCE.sub(lambda block: re.sub(r"^#", " #", block[0], flags=re.MULTILINE), page.read_text("utf-8"))
    parts = re.split(r"^#+ (.*)$", hidden, flags=re.MULTILINE)
    return list(zip(["", *parts[1::2]], parts[::2], strict=True))


def unbacked(page: Path) -> list[str]:
    """Sections with a result and nothing that prints it."""
    settings = LIMITS_AND_DEFAULTS.get(page.name, ())
    found = []
    for heading, text in sections(page):
        results = RESULT.findall(FENCE.sub("", text))
        if results and heading not in settings and not SOURCE.search(text):
            found.append(f"{page.name}, {heading or 'top'}: {results[:4]}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_sections_with_results_name_what_prints_them(page: Path) -> None:
    assert unbacked(page) == []


def test_a_result_without_a_source_is_found(tmp_path: Path) -> None:
    page = tmp_path / "new.md"
    page.write_text(
        "# New\n\nTorque is predicted to 2.04 %.\n\n```sh\n# 3 %\n```\n\n## More\n\nwithin 3 mm (`armid poses arm`)\n"
    )
    assert unbacked(page) == ["new.md, New: ['2.04 %']"]
    page.write_text("# New\n\nFour joints in 2 s, `--margin 0.05`.\n")
    assert unbacked(page) == []


def test_listed_sections_exist() -> None:
    for name, headings in LIMITS_AND_DEFAULTS.items():
        assert set(headings) <= {heading for heading, _ in sections(DOCS / name)}
