"""A piece of work that takes more memory than a worker has, the first time it is done."""

from __future__ import annotations

import time
from pathlib import Path

STEP, MOST = 32 << 20, 2 << 30
"""Bytes taken at a time, and after which it gives up: a test that fails must not take the machine with it."""


def greedy_once(marker: str) -> str:
    """Says how many times it was begun."""
    path = Path(marker)
    if path.exists():
        return "twice"
    path.touch()
    held = []
    while len(held) * STEP < MOST:
        held.append(b"\1" * STEP)
        time.sleep(0.03)
    return "once"
