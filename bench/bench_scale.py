"""Many rows and many logs through the command line: CPU time, peak memory, and the same held-out error as on a short log.

    python -m bench scale [--rows 10000000] [--logs 200] [--keep FOLDER]

Writes one Parquet log of so many rows (1 kHz, 7 joints) and so many logs of 20,000 rows, then runs
`python -m armid identify panda ... --json` on each, in a process of its own. Beside each stands reading alone: pyarrow over every
column of the same files, also in a process of its own. Time and memory are those of the whole processes, imports included.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.measure import table
from bench.synthetic import ARM

ROWS_PER_LOG = 20_000
UNTRUSTED = 3
"""Exit code of a run that finished and is not to be trusted: still a measurement."""

READING = """
import sys
import pyarrow.parquet as pq
print(sum(batch.num_rows for path in sys.argv[1:] for batch in pq.ParquetFile(path, pre_buffer=False).iter_batches(1 << 16)))
"""


@dataclass(frozen=True, kw_only=True)
class Used:
    """What one process used.

    Args:
        cpu: user and system time [s].
        wall: [s].
        peak: resident set [MB].
        out: what it printed.
    """

    cpu: float
    wall: float
    peak: float
    out: str


def used(command: list[str]) -> Used:
    """Runs a command; `wait4` gives the usage of this one child, where RUSAGE_CHILDREN holds the largest of all so far."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as told:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=told)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        for stream in (out, told):
            stream.seek(0)
        if process.returncode not in (0, UNTRUSTED):
            sys.exit(f"scale: {' '.join(command[:6])} ... ended with {process.returncode}\n{told.read()[-2000:]}")
        cpu = usage.ru_utime + usage.ru_stime
        return Used(cpu=cpu, wall=wall, peak=usage.ru_maxrss / 1024, out=out.read())


def identified(logs: list[Path], folder: Path) -> Used:
    out = ["--out", str(folder / "identified")]
    return used([sys.executable, "-m", "armid", "identify", ARM, *map(str, logs), "--json", *out])


def reading(logs: list[Path]) -> Used:
    return used([sys.executable, "-c", READING, *map(str, logs)])


def measured(what: str, logs: list[Path], rows: int, folder: Path) -> list[list[object]]:
    """Two rows of the table; the ratio is CPU time over that of reading alone."""
    floor, run = reading(logs), identified(logs, folder)
    answer = json.loads(run.out)
    error = f"{100 * answer['relative_error_held_out']:.3f} %"
    return [
        [f"{what}, reading alone", floor.cpu, floor.wall, floor.peak, rows / floor.wall, 1.0, "", ""],
        [what, run.cpu, run.wall, run.peak, rows / run.wall, run.cpu / floor.cpu, error, answer["verdict"]],
    ]


def written(folder: Path, rows: int, count: int) -> list[Path]:
    """Logs made in another process: a child's peak memory begins at that of its parent, so this one stays small."""
    paths = [folder / f"log-{rows}-{seed}.parquet" for seed in range(count)]
    missing = [path for path in paths if not path.exists()]
    if missing:
        subprocess.run([sys.executable, "-m", "bench.synthetic", *map(str, missing)], check=True)
    return paths


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench scale", description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the long log; 0 leaves it out")
    parser.add_argument("--logs", type=int, default=200, help=f"of {ROWS_PER_LOG} rows each; 0 leaves them out")
    parser.add_argument("--keep", type=Path, help="folder for the files, kept for the next run")
    options = parser.parse_args(arguments or [])
    lines: list[list[object]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = options.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        short = written(folder, ROWS_PER_LOG, 1)
        identified(short, Path(name))  # kernels are in the cache from here on
        lines += measured(f"{ROWS_PER_LOG} rows", short, ROWS_PER_LOG, Path(name))
        if options.rows:
            lines += measured(f"{options.rows} rows", written(folder, options.rows, 1), options.rows, Path(name))
        if options.logs:
            many = written(folder, ROWS_PER_LOG, options.logs)
            what = f"{options.logs} logs of {ROWS_PER_LOG} rows"
            lines += measured(what, many, options.logs * ROWS_PER_LOG, Path(name))
    header = ["", "CPU s", "wall s", "peak MB", "rows/s", "CPU over reading", "held-out error", "verdict"]
    table("Identify through the command line, 7 joints at 1 kHz", header, lines)
