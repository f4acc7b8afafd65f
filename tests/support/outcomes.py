"""What every answer can do, checked in one place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from armid.documents import plain
from armid.outcome import Outcome, Verdict

ADDED = ("seconds", "files")
"""Keys that the command line adds to an answer's own."""


def check_family(outcome: Outcome, folder: Path, *, figures: int = 1) -> None:
    """Summary, one-line repr, plain values, files, page and figures of an answer."""
    text = outcome.summary()
    assert str(outcome.verdict) in text
    assert all(reason in text for reason in outcome.reasons)
    assert (outcome.verdict is Verdict.UNTRUSTED) == bool(outcome.reasons)
    assert "\n" not in repr(outcome)
    assert repr(outcome).startswith(f"<{type(outcome).__name__} ")
    assert "<table>" in outcome._repr_html_()
    assert outcome.provenance.versions["numpy"]
    assert plain(outcome.as_dict())["verdict"] == str(outcome.verdict)
    files = outcome.save(folder / "saved")
    assert files
    assert all(path.is_file() for path in files)
    page = outcome.report(folder / "page.html")
    assert str(outcome.verdict) in page.read_text(encoding="utf-8")
    names = outcome.figures()
    assert len(names) >= figures
    assert all(len(outcome.plot(name).data) for name in names)


def answer_of(printed: dict[str, Any]) -> dict[str, Any]:
    """What the command line printed as JSON, without what it adds itself."""
    return {key: value for key, value in printed.items() if key not in ADDED}


def failing(outcome: Outcome) -> set[str]:
    """Codes of the checks that do not hold."""
    return {check.code for check in outcome.checks if not check.passed}
