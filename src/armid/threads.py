"""BLAS on one thread while our own work runs, and processes of ours that do not run the user's script again.

Our matrices are small and our kernels and searches bring their own threads and processes: more threads inside BLAS only
wait for one another. The command line sets this for its whole process; functions called from Python limit it while they run.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """The function with BLAS limited to one thread while it runs; a user's own setting is restored afterwards."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return run


@contextmanager
def without_script() -> Iterator[None]:
    """Processes started in this context do not import the main module.

    A fresh interpreter otherwise runs the user's script from the top, comes to the same call and breaks, unless the script
    is guarded by `if __name__ == "__main__"`. What is sent to these processes must be made of importable classes.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script
