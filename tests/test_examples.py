"""The examples run as they stand, cell by cell, and become notebooks and pages."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from notebooks import cells_of, notebook, page  # noqa: E402

SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
DATA = Path(os.environ.get("ARMID_DATA", ROOT.parent / "shared" / "data"))


def run(script: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What a notebook's kernel would hold afterwards; the last value of every cell shows itself."""
    for file in (ROOT / "examples").glob("*.urdf"):
        shutil.copy(file, folder)
    monkeypatch.chdir(folder)
    names: dict[str, object] = {}
    for cell in cells_of(script):
        if cell.prose:
            continue
        *lines, last = cell.text.splitlines()
        exec(compile("\n".join([*lines, last]), script.name, "exec"), names)
        if last.isidentifier():
            shown = names[last]
            assert not hasattr(shown, "_repr_html_") or "<table" in shown._repr_html_()
    return names


def test_first_arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run(ROOT / "examples" / "first_arm.py", tmp_path, monkeypatch)
    result = names["result"]
    assert str(result.verdict) == "trusted"  # type: ignore[attr-defined]
    assert (tmp_path / "report.html").stat().st_size < 2_000_000
    assert (tmp_path / "identified.urdf").exists()


def test_payload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = run(ROOT / "examples" / "payload.py", tmp_path, monkeypatch)["load"]
    assert load.mass == pytest.approx(1.5, abs=0.1)  # type: ignore[attr-defined]


def test_design(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run(ROOT / "examples" / "design.py", tmp_path, monkeypatch)
    assert str(names["longer"].verdict) == "trusted"  # type: ignore[attr-defined]
    assert list((tmp_path / "motion").iterdir())


def test_calibration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(ROOT / "examples" / "calibration.py", tmp_path, monkeypatch)["found"]
    held = found.held_out  # type: ignore[attr-defined]
    assert held.after.position.mean() < 0.5 * held.before.position.mean()


@pytest.mark.skipif(not (DATA / "dynamics" / "panda").exists(), reason="the recording is not on this machine")
def test_real_panda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMID_DATA", str(DATA))
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    (tmp_path / "examples").mkdir()
    result = run(ROOT / "examples" / "real_panda.py", tmp_path / "examples", monkeypatch)["result"]
    assert result.relative_error["held_out"] < 0.02  # type: ignore[attr-defined]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_examples_become_notebooks_and_pages(script: Path) -> None:
    book = json.loads(notebook(script))
    kinds = [cell["cell_type"] for cell in book["cells"]]
    assert kinds[0] == "markdown"
    assert "code" in kinds
    assert book["nbformat"] == 4
    assert page(script).startswith("# ")


def test_fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run(ROOT / "examples" / "fleet.py", tmp_path, monkeypatch)
    found = [(alarm.arm, alarm.parameter, str(alarm.since)) for alarm in names["fleet"].alarms]  # type: ignore[attr-defined]
    assert found == [("south", "joint2.coulomb", "2026-03-01")]
    assert str(names["result"].verdict) == "trusted"  # type: ignore[attr-defined]
