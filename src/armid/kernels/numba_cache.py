"""Functions compiled by Numba, kept under the user's own key like every other compiled code.

Numba's own cache unpickles what it finds: in a folder that others can write (`$NUMBA_CACHE_DIR`), whoever wrote there runs
code. It also ends the program where it cannot write. Here an entry is authenticated before it is unpickled, and a disk that is
full or not ours means compiling once more.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from armid.kernels.cache import cache_directory, read_object, write_object

P = ParamSpec("P")
T = TypeVar("T")


def compiled(**options: Any) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A decorator: `numba.njit`, with the code kept on disk for the next process.

    Args:
        options: of `numba.njit`, without `cache`.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        dispatcher = numba.njit(**options)(function)
        dispatcher._cache = _Entries(function)
        return cast("Callable[P, T]", dispatcher)

    return decorate


class _Entries(NullCache):
    """The compiled forms of one function, one per signature and processor."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = function.__qualname__
        self._stamp = (numba.__version__, sys.version, _source_digest(function.__code__.co_filename), self._name)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The function for a signature from disk; None when it has to be compiled."""
        target_context.refresh()
        data = read_object(self._path(sig, target_context.codegen()))
        if data is None:
            return None
        stored = pickle.loads(data)  # noqa: S301  # the user's key vouches for it
        return CompileResult._rebuild(target_context, *stored)  # type: ignore[no-untyped-call]

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Keeps a compiled function, unless it holds addresses of this process."""
        if not cres.library.has_dynamic_globals and all(part.can_cache for part in cres.lifted):
            code: bytes = dumps(cres._reduce())  # type: ignore[no-untyped-call]
            write_object(self._path(sig, cres.codegen), code)

    def _path(self, sig: Any, codegen: Any) -> Path:
        key = hashlib.sha256(repr((self._stamp, str(sig), codegen.magic_tuple())).encode()).hexdigest()
        return cache_directory() / f"{self._name}-{key[:32]}.nbc"


@cache
def _source_digest(file: str) -> str:
    """Of the file a function stands in: another version of it has other code."""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:  # a frozen program without sources changes with its whole package
        from armid import __version__

        return __version__
