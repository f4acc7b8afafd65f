"""The documentation builds strictly, has every name and verb, and asks no other server for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import armid
from armid.cli import VERBS

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    place = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(place)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return place


def test_every_verb_is_documented(site: Path) -> None:
    page = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
    assert [verb for verb in VERBS if f'id="{verb}"' not in page] == []


def test_every_public_name_is_documented(site: Path) -> None:
    page = (site / "reference" / "python.html").read_text(encoding="utf-8")
    assert [name for name, place in armid._PUBLIC.items() if f"armid.{place}.{name}" not in page] == []


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    loads = re.compile(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="(https?:)?//')
    assert [page.name for page in site.rglob("*.html") if loads.search(page.read_text(encoding="utf-8"))] == []
