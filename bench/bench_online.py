"""Time per update of the recursive estimator: a 7-joint arm, one core.

    OMP_NUM_THREADS=1 python bench/bench_online.py

Prints microseconds of CPU per sample, everything included: rows, innovations, forgetting, factor update, solution, watch; and the
longest sample: information is exchanged four times a second (time constant 10 s), in parts spread over samples; and what the
watch of sensors, friction and load adds to every sample of an estimator that starts from a result: on the average, ten times a
second when a block of samples is measured, and once a second when it says what has drifted.
"""

from __future__ import annotations

from time import process_time

import numpy as np

from armid.estimation.recursive.estimator import ChangeDetection, RecursiveEstimator
from armid.estimation.recursive.forgetting import BLOCKS, Forgetting
from armid.identifiability.structure import structural_base
from armid.online.watch import DriftWatch
from armid.parameters.effects import Effects
from armid.robot.load import load_robot
from armid.rows.torque import TorqueRows
from support.drifting import identified

RATE = 1000.0
"""[Hz]"""

BUDGET = 20.0
"""[us] What one update may take."""


def main() -> None:
    robot = load_robot("iiwa14")
    source = TorqueRows(robot, Effects(viscous=True, coulomb=True))
    base = structural_base(source)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2000, len(source.inputs))), rng.normal(size=(2000, 7))
    sigma = dict.fromkeys(source.channels, 1.0)
    print(f"{robot.name}, {len(base)} base parameters, 7 rows per sample; budget {BUDGET:g} us")
    for label, forgetting in (("without forgetting", Forgetting()), ("with forgetting", Forgetting(10.0))):
        estimator = RecursiveEstimator(
            source, base, sigma, rate=RATE, forgetting=forgetting, detection=ChangeDetection()
        )
        estimator.update(x[0], y[0])
        best = np.inf
        for _ in range(10):
            start = process_time()
            for row, tau in zip(x, y, strict=True):
                estimator.update(row, tau)
            best = min(best, (process_time() - start) / len(x))
        print(f"  {label:20s} {1e6 * best:6.1f} us   ({1e6 * best / BUDGET:.2f} of the budget)")
    worst = worst_sample(estimator, x, y)
    mean, block, look = drift_watch(x, y)
    print(f"  {'worst sample':20s} {1e6 * worst:6.1f} us")
    print(f"  {'watch, mean':20s} {1e6 * mean:6.1f} us")
    print(f"  {'watch, full block':20s} {1e6 * block:6.1f} us")
    print(f"  {'watch, look':20s} {1e6 * look:6.1f} us   (worst sample with it {1e6 * (worst + look):.1f} us)")


def drift_watch(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """[s] What watching an identified arm costs: on the average, where a block is full, and at most; the shortest of eight."""
    _, known = identified("iiwa14", 0, 0.05)
    watch = DriftWatch(known, TorqueRows(known.robot, known.effects), np.ones(7), rate=RATE)
    seconds, samples = 8, round(RATE)
    times = np.empty(seconds * samples)
    for k in range(-samples, len(times)):
        start = process_time()
        watch.update(x[k % len(x)], y[k % len(y)], None)
        if k >= 0:
            times[k] = process_time() - start
    least = times.reshape(seconds, samples).min(axis=0)
    full = least[samples // 10 - 1 :: samples // 10]
    return float(times.mean()), float(np.median(full)), float(full.max())


def worst_sample(estimator: RecursiveEstimator, x: np.ndarray, y: np.ndarray) -> float:
    """[s] The longest sample between two exchanges; each the shortest of eight, which leaves out the machine's own doings."""
    block = round(estimator.rate * estimator.forgetting.time_constant / BLOCKS)
    times = np.empty(8 * block)
    for k in range(8 * block):
        start = process_time()
        estimator.update(x[k % len(x)], y[k % len(y)])
        times[k] = process_time() - start
    return float(times.reshape(8, block).min(axis=0).max())


if __name__ == "__main__":
    main()
