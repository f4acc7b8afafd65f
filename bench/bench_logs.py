"""Long logs: Parquet and CSV to conditioned samples, rows per second and memory.

    python bench/bench_logs.py [--rows 10000000] [--keep FOLDER]

Files are written to a temporary folder first. Every measurement runs in a process of its own, so that its peak memory is its own;
there the task first runs on a short file, which takes imports, the robot's description and first calls out of the figures.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import numpy as np

RATE = 1000.0
JOINTS = 7
BLOCK = 100_000
WARM_UP_ROWS = 20_000


def trajectory(start: int, count: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Columns q1..q7, qd1..qd7, tau1..tau7 of a slow motion with noise; 21 in all."""
    t = (start + np.arange(count)) / RATE
    columns: dict[str, np.ndarray] = {}
    for j in range(JOINTS):
        w = 2 * np.pi * (0.1 + 0.05 * j)
        q = np.sin(w * t) + rng.normal(0, 1e-5, count)
        columns[f"q{j + 1}"] = q
        columns[f"qd{j + 1}"] = w * np.cos(w * t) + rng.normal(0, 1e-3, count)
        columns[f"tau{j + 1}"] = 20 * np.sin(q) + 2 * np.tanh(50 * np.cos(w * t)) + rng.normal(0, 0.2, count)
    names = [f"{kind}{j + 1}" for kind in ("q", "qd", "tau") for j in range(JOINTS)]
    return {name: columns[name] for name in names}


def write_parquet(path: Path, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, rows, BLOCK):
        table = pa.table(trajectory(start, min(BLOCK, rows - start), rng))
        if writer is None:
            writer = pq.ParquetWriter(path, table.schema, use_dictionary=False)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def write_csv(path: Path, rows: int) -> None:
    import pyarrow as pa
    from pyarrow import csv

    csv.write_csv(pa.table(trajectory(0, rows, np.random.default_rng(0))), path)


@cache
def robot():
    from armid.robot.load import load_robot

    return load_robot("iiwa14")


def conditioned(path: Path) -> int:
    """Rows of the log, after conditioning all of it."""
    from armid.logs import ReadOptions, condition_stream, open_log

    arm = robot()
    stream = open_log(path, arm, options=ReadOptions(step=1.0 / RATE))
    kept = 0
    last = 0.0
    for piece in condition_stream(stream, arm):
        kept += len(piece)
        last = piece.time[-1]
    assert len(stream.provenance().files[0][1]) == 64
    assert kept > 0
    return round(last * RATE)


def read_only(path: Path) -> int:
    """Rows delivered by our reader alone."""
    from armid.logs.readers import open_table

    return sum(len(next(iter(chunk.values()))) for chunk in open_table(path).chunks(1 << 16))


def arrow_only(path: Path) -> int:
    """Rows delivered by pyarrow alone: the floor."""
    if path.suffix == ".csv":
        from pyarrow import csv

        return sum(batch.num_rows for batch in csv.open_csv(path))
    import pyarrow.parquet as pq

    return sum(batch.num_rows for batch in pq.ParquetFile(path).iter_batches(1 << 16))


TASKS = {"conditioned": conditioned, "our reader": read_only, "pyarrow alone": arrow_only}


def measured(task: str, path: Path, short: Path) -> None:
    """Runs one task, after a first call on a short file, and prints its result as JSON."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    TASKS[task](short)
    first = time.perf_counter() - started
    started, busy = time.perf_counter(), time.process_time()
    rows = TASKS[task](path)
    seconds, busy = time.perf_counter() - started, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    megabytes = (peak - before) / 1024
    print(json.dumps({"rows": rows, "first": first, "seconds": seconds, "cpu": busy, "megabytes": megabytes}))


def in_own_process(task: str, path: Path, short: Path) -> dict[str, float]:
    out = subprocess.run(
        [sys.executable, __file__, "--task", task, str(path), str(short)], capture_output=True, text=True, check=True
    )
    return json.loads(out.stdout)


def compared(path: Path, short: Path) -> None:
    """One line per task; the last column is the time over that of pyarrow reading the same file alone."""
    best = {
        task: min((in_own_process(task, path, short) for _ in range(2)), key=lambda m: m["seconds"]) for task in TASKS
    }
    floor = best["pyarrow alone"]["seconds"]
    for task, m in best.items():
        speed = m["rows"] / m["seconds"] / 1e6
        numbers = f"{m['rows']:10.0f} {m['first']:8.2f} {m['seconds']:8.2f} {m['cpu']:8.2f} {speed:9.2f}"
        print(f"{path.suffix[1:]:10} {task:16} {numbers} {m['megabytes']:15.0f} {m['seconds'] / floor:12.2f}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--keep", type=Path, help="folder for the files, kept for the next run")
    parser.add_argument("--task", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments or [])
    if options.task:
        measured(options.task[0], Path(options.task[1]), Path(options.task[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        place = options.keep or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        heading = f"{'file':10} {'task':16} {'rows':>10} {'first s':>8} {'s':>8} {'CPU s':>8} {'M rows/s':>9}"
        print(f"{heading} {'MB above start':>15} {'over pyarrow':>12}")
        for suffix, write, rows in (
            ("parquet", write_parquet, options.rows),
            ("csv", write_csv, min(options.rows, 300_000)),
        ):
            path, short = place / f"log-{rows}.{suffix}", place / f"short.{suffix}"
            for file, count in ((path, rows), (short, WARM_UP_ROWS)):
                if not file.exists():
                    write(file, count)
            compared(path, short)


if __name__ == "__main__":
    main(sys.argv[1:])
