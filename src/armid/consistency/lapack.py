"""What Clarabel borrows from SciPy: BLAS and LAPACK, and nothing else of `scipy.linalg`.

Cones of matrices need eigenvalues. Clarabel takes them from the two extension modules by which SciPy offers LAPACK to compiled
code, and imports these by name. Python then runs the whole package around them first, which takes longer than most fits.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

_BORROWED = ("cython_blas", "cython_lapack")


@cache
def lend_lapack() -> None:
    """Loads the two modules under their own names, unless they or the package around them are there already.

    Where this SciPy keeps them elsewhere nothing is loaded, and Clarabel imports them as ever. Whoever imports `scipy.linalg`
    later gets all of it.
    """
    import scipy

    folder = str(Path(scipy.__file__).parent / "linalg")
    for name in _BORROWED:
        full = f"scipy.linalg.{name}"
        spec = None if "scipy.linalg" in sys.modules or full in sys.modules else PathFinder.find_spec(full, [folder])
        if spec is None or spec.loader is None:
            continue
        module = module_from_spec(spec)
        sys.modules[full] = module
        try:
            spec.loader.exec_module(module)
        except ImportError:
            del sys.modules[full]
