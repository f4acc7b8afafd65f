"""Freed memory, given back to the system."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache


def give_back() -> None:
    """Returns what was freed to the system, where the C library is one that keeps it (glibc).

    Work on pieces of a long recording frees arrays of many sizes in several threads. The library keeps them for the next one that
    fits, and from pass to pass what it keeps grows, although what is in use does not.
    """
    _trim()(0)


@cache
def _trim() -> Callable[[int], object]:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library
        return lambda _: None
