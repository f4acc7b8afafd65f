"""How things are measured here: the best of several repeats, and the growth of the resident set."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


def best(function: Callable[[], object], repeats: int = 5) -> float:
    """Shortest wall-clock time of several calls [s], after one to warm up."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def once(function: Callable[[], object]) -> float:
    """Wall-clock time of one call [s]."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    return 0


def extra_memory_mb(function: Callable[[], object]) -> float:
    """Peak growth of the resident set during one call [MB]."""
    Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark
    before = _status("VmRSS")
    function()
    return max(0.0, (_status("VmHWM") - before) / 1024)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Our kernels on so many threads."""
    old = os.environ.get("ARMID_THREADS")
    os.environ["ARMID_THREADS"] = str(count)
    try:
        yield
    finally:
        if old is None:
            del os.environ["ARMID_THREADS"]
        else:
            os.environ["ARMID_THREADS"] = old


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A plain table on stdout."""
    cells = [[f"{value:.4g}" if isinstance(value, float) else str(value) for value in row] for row in rows]
    widths = [max(len(line[k]) for line in [list(header), *cells]) for k in range(len(header))]
    print(f"\n## {title}")
    for line in [list(header), ["-" * width for width in widths], *cells]:
        print(
            "  ".join(
                text.ljust(width) if k == 0 else text.rjust(width)
                for k, (text, width) in enumerate(zip(line, widths, strict=True))
            )
        )
