"""Workers: how much faster two are than one, what a task costs, and what the client holds.

`python -m bench cluster` identifies 200 logs on 1, 2 and 4 processes and designs with 64 starts; `--quick` 24 and 8. Ratios of
one run: how fast this machine is does not matter, how many cores it has does.
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Sequence
from operator import neg
from pathlib import Path

import armid
from armid.cluster.dask_workers import DaskWorkers
from armid.cluster.workers import in_order, open_workers
from armid.fleets.table import read_visits
from armid.fleets.visit import VisitTask, identify_visit
from support.fleet_logs import write_fleet

WORDS = {"friction": "viscous,coulomb,offset", "sensitivity": False}


def visits_table(folder: Path, count: int, workers: Sequence[int]) -> None:
    """Time of identifying logs, beginning when the workers are there and warm."""
    write_fleet(folder, count, 1, seconds=6.0)
    tasks = [VisitTask(visit=visit, words=WORDS) for visit in read_visits(folder / "fleet.csv")]
    print(f"| workers ({os.cpu_count()} cores) | {count} logs [s] | beside one |\n|---|---|---|")
    first = 0.0
    for n in workers:
        with open_workers(f"local:{n}") as pool:
            in_order(pool, identify_visit, tasks[:1] * n, "warm")
            began = time.perf_counter()
            answers = in_order(pool, identify_visit, tasks, "visits")
            took = time.perf_counter() - began
        first = first or took
        print(f"| {n} | {took:.1f} | {first / took:.2f} |")
        sys.stdout.flush()
    out, back = len(pickle.dumps(tasks[0])), len(pickle.dumps(answers[0]))
    log = Path(tasks[0].visit.logs[0]).stat().st_size
    print(f"\nPer log: {out} bytes to the worker (the log itself has {log}), {back} bytes back; nothing else is held.")


def overhead() -> None:
    """What a task costs that does nothing."""
    with open_workers("local:1") as pool:
        in_order(pool, neg, range(50), "warm")
        began = time.perf_counter()
        in_order(pool, neg, range(1000), "empty")
        took = time.perf_counter() - began
    print(
        f"\nA task that does nothing: {1e3 * took / 1000:.2f} ms ({1000 / took:.0f} tasks per second through one scheduler)."
    )


def design_table(starts: int, workers: Sequence[int]) -> None:
    print(f"\n| workers | {starts} design starts [s] | beside one |\n|---|---|---|")
    first = 0.0
    for n in workers:
        with open_workers(f"local:{n}") as pool:
            assert isinstance(pool, DaskWorkers)
            began = time.perf_counter()
            armid.design_motion("panda", seconds=None, starts=starts, period=10.0, cluster=pool.client)
            took = time.perf_counter() - began
        first = first or took
        print(f"| {n} | {took:.1f} | {first / took:.2f} |")
        sys.stdout.flush()


def main(words: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="bench cluster")
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args(list(words)).quick
    counts = (1, 2) if quick else (1, 2, 4)
    with tempfile.TemporaryDirectory() as name:
        visits_table(Path(name), 24 if quick else 200, counts)
    overhead()
    design_table(8 if quick else 64, (1, 2))
