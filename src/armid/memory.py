"""Freed memory, given back to the system."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache


def give_back() -> None:
    """Returns what was freed to the system, where the C library is one that keeps it (glibc).

    Work on pieces of a long recording frees arrays of many sizes in several threads. The library keeps them for the next one that
    fits, and from pass to pass what it keeps grows, although what is in use does not. So does Arrow, which reads with an
    allocator of its own.
    """
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    _trim()(0)


_ARENA_MAX = -8
"""glibc's number for how many heaps threads may have."""


@cache
def share_heap() -> None:
    """Threads started from now on share two heaps, where the C library is glibc.

    Pieces of a long recording are conditioned by threads that come and go. Each would be given a heap of its own, and every heap
    keeps what was freed in it.
    """
    with suppress(AttributeError, OSError, TypeError):  # another C library
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 2)


@cache
def _trim() -> Callable[[int], object]:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library
        return lambda _: None
