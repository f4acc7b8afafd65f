"""`make bench`: every table, one after the other. Name some to run only those: `python -m bench kernels information`."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

NAMES = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))


def main() -> None:
    # One BLAS thread unless told otherwise: our own threads are counted in the tables.
    chosen = sys.argv[1:] or NAMES
    unknown = [name for name in chosen if name not in NAMES]
    if unknown:
        sys.exit(f"bench: no table {', '.join(unknown)}; there are {', '.join(NAMES)}")
    for name in chosen:
        import_module(f"bench.bench_{name}").main()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
