"""BLAS on one thread while our own work runs.

Our matrices are small and our kernels and searches bring their own threads and processes: more threads inside BLAS only
wait for one another. The command line sets this for its whole process; functions called from Python limit it while they run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
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
