"""Workers: how much faster two are than one, what a task costs, what the client holds, and that the answer is the same.

`python -m bench cluster` identifies 200 visits of a fleet on 1, 2 and 4 processes, one arm from 200 logs on 1 and 2, and designs
with 64 starts; `--quick` 24, 16 and 8. Ratios of one run: how fast this machine is does not matter, how many cores it has and
what else it does while this runs does. Beside the time stands the CPU time of the client, of the scheduler in its process and of
the busiest worker; their sum is what the work would take on a machine that does nothing else, if nobody waited for anybody.
`--only` picks tables, `--logs` sets how many logs one arm is identified from.
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
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


@dataclass(frozen=True, kw_only=True)
class Spent:
    """On a piece of work [s].

    Args:
        wall: by the clock.
        client: CPU of the thread that asks for the work.
        scheduler: CPU of everything else in this process: the scheduler, and what travels.
        busiest: CPU of the worker that had most to do.
        workers: CPU of all workers.
    """

    wall: float
    client: float
    scheduler: float
    busiest: float
    workers: float

    @property
    def cpu(self) -> float:
        """Of what cannot be done at the same time, if nobody waited for anybody."""
        return self.client + self.scheduler + self.busiest

    def beside(self, first: Spent) -> str:
        """Cells of a table: times, and how many times the first one was longer, by the clock and by CPU."""
        own = f"{self.client:.1f} + {self.scheduler:.1f} + {self.busiest:.1f} ({self.workers:.1f})"
        return f"{self.wall:.1f} | {own} | {first.wall / self.wall:.2f} | {first.cpu / self.cpu:.2f}"


HEAD = "[s] | CPU of client + scheduler + busiest worker (all workers) [s] | beside one | by CPU"


def spent(workers: Any, work: Callable[[], Any]) -> tuple[Spent, Any]:
    """What some work takes on workers that are there, and its answer."""
    before = workers.client.run(time.process_time)
    wall, process, client = time.perf_counter(), time.process_time(), time.thread_time()
    answer = work()
    wall, process, client = time.perf_counter() - wall, time.process_time() - process, time.thread_time() - client
    after = workers.client.run(time.process_time)
    own = [after[where] - before[where] for where in before]
    took = Spent(wall=wall, client=client, scheduler=process - client, busiest=max(own), workers=sum(own))
    return took, answer


def visits_table(folder: Path, count: int, workers: Sequence[int]) -> None:
    """Time of identifying visits, beginning when the workers are there and warm."""
    write_fleet(folder, count, 1, seconds=6.0)
    tasks = [VisitTask(visit=visit, words=WORDS) for visit in read_visits(folder / "fleet.csv")]
    print(f"| workers ({os.cpu_count()} cores) | {count} visits {HEAD} |\n|---|---|---|---|---|")
    first: Spent | None = None
    for n in workers:
        with open_workers(f"local:{n}") as pool:
            in_order(pool, identify_visit, tasks[:1] * n, "warm")
            took, answers = spent(pool, partial(in_order, pool, identify_visit, tasks, "visits"))
        first = first or took
        print(f"| {n} | {took.beside(first)} |")
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

    def summed(self, *words: Any, **more: Any) -> Any:
        self.passes += 1
        answer = super().summed(*words, **more)
        self.back += len(pickle.dumps(answer))
        return answer


def identify_table(folder: Path, count: int, workers: Sequence[int]) -> None:
    """Time of identifying one arm from many logs, workers there and warm; how far the answers are apart; what travels."""
    logs = written(folder, ROWS, count)
    armid.identify(ARM, logs[:2])
    began = time.process_time()
    here = armid.identify(ARM, logs)
    own = time.process_time() - began
    what = f"one arm from {count} logs of {ROWS} rows"
    print(f"\n| workers | {what} {HEAD} | parameters differ by |\n|---|---|---|---|---|---|")
    print(f"| in-process | {here.seconds:.1f} | {own:.1f} | | | |")
    first: Spent | None = None
    for n in workers:
        with open_workers(f"local:{n}") as pool:
            assert isinstance(pool, DaskWorkers)
            armid.identify(ARM, logs[: 2 * n], cluster=pool.client)
            counting = Counting(pool.client, lambda _: None)
            took, there = spent(pool, partial(armid.identify, ARM, logs, cluster=counting))
        first = first or took
        apart = np.max(np.abs(there.estimate.values - here.estimate.values) / here.estimate.standard_deviations)
        print(f"| {n} | {took.beside(first)} | {apart:.1e} deviations |")
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
    print(f"\n| workers | {starts} design starts {HEAD} |\n|---|---|---|---|---|")
    first: Spent | None = None
    words = {"seconds": None, "starts": starts, "period": 10.0}
    for n in workers:
        with open_workers(f"local:{n}") as pool:
            assert isinstance(pool, DaskWorkers)
            took, _ = spent(pool, partial(armid.design_motion, "panda", **words, cluster=pool.client))
        first = first or took
        print(f"| {n} | {took.beside(first)} |")
        sys.stdout.flush()


def main(words: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="bench cluster")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--logs", type=int, help="of one arm; also the most whose memory is looked at")
    parser.add_argument("--keep", type=Path, help="folder for the logs of one arm, kept for the next run")
    asked = parser.parse_args(list(words))
    quick = asked.quick
    count = asked.logs or (16 if quick else 200)
    print(f"Load of this machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n")
    with tempfile.TemporaryDirectory() as name:
        folder = asked.keep or Path(name) / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        if "visits" in asked.only:
            visits_table(Path(name), 24 if quick else 200, (1, 2) if quick else (1, 2, 4))
        if "identify" in asked.only:
            identify_table(folder, count, (1, 2))
        if "memory" in asked.only:
            memory_table(folder, (count // 8, count // 4, count // 2, count))
    if "overhead" in asked.only:
        overhead()
    if "design" in asked.only:
        design_table(8 if quick else 64, (1, 2))
