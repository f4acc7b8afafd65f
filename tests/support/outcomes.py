"""What every answer can do, checked in one place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from armid.answers import load_answer
from armid.documents import plain
from armid.errors import InputError
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
    if outcome._loads:
        check_kept(outcome, folder / "saved")
    page = outcome.report(folder / "page.html")
    assert str(outcome.verdict) in page.read_text(encoding="utf-8")
    names = outcome.figures()
    assert len(names) >= figures
    assert all(len(outcome.plot(name).data) for name in names)


def check_kept(outcome: Outcome, folder: Path) -> None:
    """What was saved in a folder, loaded again, is the same answer to people and programs; changed, it is refused."""
    again = load_answer(folder)
    assert type(again) is type(outcome)
    assert plain(again.as_dict()) == plain(outcome.as_dict())
    assert again.summary() == outcome.summary()
    assert again.checks == outcome.checks or plain([c.as_dict() for c in again.checks]) == plain(
        [c.as_dict() for c in outcome.checks]
    )
    assert again.provenance.as_dict() == outcome.provenance.as_dict()
    kept = folder / "answer.json"
    text = kept.read_text(encoding="utf-8")
    kept.write_text(text.replace(f'"kind": "{type(outcome).__name__}"', '"kind": "Other"'), encoding="utf-8")
    with pytest.raises(InputError, match="was changed"):
        load_answer(folder)
    kept.write_text(text, encoding="utf-8")


def answer_of(printed: dict[str, Any]) -> dict[str, Any]:
    """What the command line printed as JSON, without what it adds itself."""
    return {key: value for key, value in printed.items() if key not in ADDED}


def failing(outcome: Outcome) -> set[str]:
    """Codes of the checks that do not hold."""
    return {check.code for check in outcome.checks if not check.passed}
