"""Workers: how much faster two are than one, what a task costs, what the client holds, and that the answer is the same.

`python -m bench cluster` identifies 200 visits of a fleet on 1, 2 and 4 processes, one arm from 200 logs on 1 and 2, and designs
with 64 starts; `--quick` 24, 16 and 8. Ratios of one run: how fast this machine is does not matter, how many cores it has and
what else it does while this runs does. `--only` picks tables.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from operator import neg
from pathlib import Path
from typing import Any

import numpy as np

import armid
from armid.cluster.dask_workers import DaskWorkers
from armid.cluster.workers import in_order, open_workers
from armid.fleets.table import read_visits
from armid.fleets.visit import VisitTask, identify_visit
from bench.bench_scale import written
from bench.synthetic import ARM
from support.fleet_logs import write_fleet

WORDS = {"friction": "viscous,coulomb,offset", "sensitivity": False}
TABLES = ("visits", "identify", "memory", "overhead", "design")
ROWS = 20_000
"""Of every log that one arm is identified from: 20 s at 1 kHz."""


def visits_table(folder: Path, count: int, workers: Sequence[int]) -> None:
    """Time of identifying visits, beginning when the workers are there and warm."""
    write_fleet(folder, count, 1, seconds=6.0)
    tasks = [VisitTask(visit=visit, words=WORDS) for visit in read_visits(folder / "fleet.csv")]
    print(f"| workers ({os.cpu_count()} cores) | {count} visits [s] | beside one |\n|---|---|---|")
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


class Counting(DaskWorkers):
    """Workers that note what comes back from passes."""

    passes = back = 0

    def each(self, *words: Any) -> Any:
        self.passes += 1
        for answer in super().each(*words):
            self.back += len(pickle.dumps(answer))
            yield answer

    def summed(self, *words: Any) -> Any:
        self.passes += 1
        answer = super().summed(*words)
        self.back += len(pickle.dumps(answer))
        return answer


def identify_table(folder: Path, count: int, workers: Sequence[int]) -> None:
    """Time of identifying one arm from many logs, workers there and warm; how far the answers are apart; what travels."""
    logs = written(folder, ROWS, count)
    here = armid.identify(ARM, logs)
    print(
        f"\n| workers | one arm from {count} logs of {ROWS} rows [s] | beside one | parameters differ by |\n|---|---|---|---|"
    )
    print(f"| in-process | {here.seconds:.1f} | | |")
    first = 0.0
    for n in workers:
        with open_workers(f"local:{n}") as pool:
            assert isinstance(pool, DaskWorkers)
            armid.identify(ARM, logs[: 2 * n], cluster=pool.client)
            counting = Counting(pool.client, lambda _: None)
            began = time.perf_counter()
            there = armid.identify(ARM, logs, cluster=counting)
            took = time.perf_counter() - began
        first = first or took
        apart = np.max(np.abs(there.estimate.values - here.estimate.values) / here.estimate.standard_deviations)
        print(f"| {n} | {took:.1f} | {first / took:.2f} | {apart:.1e} deviations |")
        sys.stdout.flush()
    print(f"\n{counting.passes} passes brought back {counting.back / count / 1e3:.0f} kB per log.")


def memory_table(folder: Path, counts: Sequence[int]) -> None:
    """Peak memory of the client, each in a process of its own; the scheduler of `local` is in it."""
    print("\n| logs | peak memory of the client [MB] |\n|---|---|")
    for count in counts:
        logs = written(folder, ROWS, count)
        command = [sys.executable, "-m", "armid", "identify", ARM, *map(str, logs), "--cluster", "local:2", "--json"]
        done = subprocess.run([*command, "--out", str(folder / "out")], stdout=subprocess.PIPE, text=True, check=False)
        print(f"| {count} | {json.loads(done.stdout)['peak_memory_mb']:.0f} |")
        sys.stdout.flush()


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
    parser.add_argument("--only", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--keep", type=Path, help="folder for the logs of one arm, kept for the next run")
    asked = parser.parse_args(list(words))
    quick = asked.quick
    print(f"Load of this machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n")
    with tempfile.TemporaryDirectory() as name:
        folder = asked.keep or Path(name) / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        if "visits" in asked.only:
            visits_table(Path(name), 24 if quick else 200, (1, 2) if quick else (1, 2, 4))
        if "identify" in asked.only:
            identify_table(folder, 16 if quick else 200, (1, 2))
        if "memory" in asked.only:
            memory_table(folder, (10, 40) if quick else (50, 200))
    if "overhead" in asked.only:
        overhead()
    if "design" in asked.only:
        design_table(8 if quick else 64, (1, 2))
