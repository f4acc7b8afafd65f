"""`make bench`: every table, one after the other.

Name some to run only those: `python -m bench kernels information`. Options after a single name are its own:
`python -m bench scale --rows 300000`.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from itertools import takewhile
from pathlib import Path

TABLES = {path.stem.removeprefix("bench_"): path.stem for path in sorted(Path(__file__).parent.glob("bench_*.py"))}
TABLES["house"] = "house"


def main() -> None:
    chosen = list(takewhile(lambda word: not word.startswith("-"), sys.argv[1:]))
    options = sys.argv[1 + len(chosen) :]
    unknown = [name for name in chosen if name not in TABLES]
    if unknown:
        sys.exit(f"bench: no table {', '.join(unknown)}; there are {', '.join(TABLES)}")
    if options and len(chosen) != 1:
        sys.exit(f"bench: options {' '.join(options)} belong to one table; name it first")
    for name in chosen or TABLES:
        table = import_module(f"bench.{TABLES[name]}")
        if options:
            table.main(options)
        else:
            table.main()


if __name__ == "__main__":
    # One BLAS thread unless told otherwise: our own threads are counted in the tables.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
