"""The protocol of [Leboutet2021]: every method at three levels of noise, on its simulated TX40, beside the bounds.

python -m bench protocol                       ten runs per method and level; about an hour on one core
python -m bench protocol --runs 1 --out DIR    one run; kept in DIR, more runs later continue there
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from armid.closed_loop.loop import joined
from armid.outcome import text_table
from armid.robot.load import load_robot
from armid.studies.benchmark import METHODS, benchmark, benchmark_table
from armid.studies.protocol import NOISE, Protocol


def main(options: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="bench protocol")
    parser.add_argument("--robot", default="tx40-birdy")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--noise", default=",".join(NOISE))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true", help="the speed of the loop only")
    chosen = parser.parse_args(list(options))
    print_speed(chosen.robot)
    if not chosen.quick:
        found = benchmark(
            chosen.robot,
            methods=chosen.methods.split(","),
            noise=chosen.noise.split(","),
            runs=chosen.runs,
            out=chosen.out,
        )
        print(text_table(benchmark_table(found.rows)))


def print_speed(name: str) -> None:
    """CPU time of ten seconds of the loop, alone and with the derivative by every base parameter."""
    protocol = Protocol(load_robot(name))
    motion, values = protocol.training, protocol.truth
    for words, slopes in (("simulated", False), (f"with {len(values)} sensitivities", True)):
        best = min(_spent(lambda slopes=slopes: joined(list(motion.blocks(values, slopes=slopes)))) for _ in range(4))  # type: ignore[misc]
        print(f"{name}, 10 s at {motion.controller.rate:g} Hz, {words}: {best:.2f} CPU s")


def _spent(work) -> float:  # type: ignore[no-untyped-def]
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    main()
