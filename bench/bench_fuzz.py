"""Damaged inputs to every reader: how many, how many were refused, and what came out that is no error of ours.

Run: python -m bench fuzz [--count 20000] [--only READER] [--seed 0]; `--quick` takes 200 of each.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.measure import table
from support.fuzz import MEGABYTES, PIECES, SECONDS, WAYS, Edit, Reader, readers, tried


def edits_of(rng: np.random.Generator) -> list[Edit]:
    """One to four ways to spoil an input, at its beginning more often than elsewhere."""
    return [
        Edit(
            float(rng.random() ** rng.integers(1, 4)),
            int(rng.integers(WAYS)),
            int(rng.integers(len(PIECES))),
            int(rng.integers(1, 60)),
        )
        for _ in range(rng.integers(1, 5))
    ]


def fuzzed(name: str, reader: Reader, count: int, seed: int) -> tuple[list[object], Counter[str]]:
    """A row of the table, and what came out that should not have."""
    rng, files = np.random.default_rng([seed, *name.encode()]), list(reader.seeds)
    refused, slowest, largest, wrong = 0, 0.0, 0.0, Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(count):
            edits, file = edits_of(rng), files[rng.integers(len(files))]
            try:
                done = tried(reader, Path(folder), file, edits)
            except Exception as error:  # exactly what is looked for
                wrong[f"{type(error).__name__}: {str(error)[:100]}  ({file}, {edits})"] += 1
                continue
            refused += done.refused
            slowest, largest = max(slowest, done.seconds), max(largest, done.megabytes)
    return [name, count, refused, sum(wrong.values()), slowest, largest], wrong


def main(options: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="bench fuzz")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(options)
    warnings.simplefilter("ignore")
    rows, failed = [], False
    for name, reader in readers().items():
        if asked.only in (None, name):
            row, wrong = fuzzed(name, reader, 200 if asked.quick else asked.count, asked.seed)
            rows.append(row)
            for text, times in wrong.most_common(5):
                print(f"{name}: {times} x {text}")
            failed |= bool(wrong) or row[4] > SECONDS or row[5] > MEGABYTES  # type: ignore[operator]
    table("Damaged inputs", ["reader", "inputs", "refused", "not ours", "slowest s", "most MB"], rows)
    if failed:
        sys.exit("bench fuzz: something came out that is no error of ours, or took too long or too much")
