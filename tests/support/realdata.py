"""Recordings that are not part of the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def real_data(*parts: str) -> Path:
    """A path under ../shared/data (or $ARMID_DATA); the test is skipped when it is not there."""
    path = Path(os.environ.get("ARMID_DATA", ROOT.parent / "shared" / "data")).joinpath(*parts)
    if not path.exists():
        pytest.skip(f"recordings not available: {path}")
    return path
