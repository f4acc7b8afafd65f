"""Projection onto possible bodies, 7 joints: LMI under 50 ms, with the entropic term under 0.3 s, whatever the log length."""

from __future__ import annotations

import time

import numpy as np

from armid.estimation.consistency.consistent import Consistency
from armid.estimation.consistency.prior import nominal_prior
from armid.estimation.consistency.regularisers import Entropic, Euclidean, PullBack
from armid.estimation.least_squares import WeightedLeastSquares
from armid.experiments.torque import TorqueRows
from armid.identifiability.structure import structural_base
from armid.information.accumulate import accumulate
from armid.kernels.evaluate import evaluate_rows
from armid.parameters.effects import Effects
from armid.robot.load import load_robot

LIMITS = {"pull-back": 0.05, "euclidean": 0.05, "entropic": 0.3}


def motion(n: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """A random Fourier motion of 20 s, shape [count, 3 n]."""
    t = np.linspace(0.0, 20.0, count)[:, None, None]
    w = 2.0 * np.pi * np.arange(1, 6) / 20.0
    a, phase = rng.normal(size=(n, 5)) * 0.6, rng.uniform(0, 6.3, (n, 5))
    parts = (a * np.sin(w * t + phase), a * w * np.cos(w * t + phase), -a * w**2 * np.sin(w * t + phase))
    return np.hstack([part.sum(axis=2) for part in parts])


def main() -> int:
    robot = load_robot("iiwa14")
    source = TorqueRows(robot, Effects(viscous=True, coulomb=True))
    base = structural_base(source)
    prior = nominal_prior(robot, source.columns)
    rng = np.random.default_rng(0)
    truth = np.array(prior.values) * rng.uniform(0.9, 1.1, len(prior.values))
    slow = 0
    print(f"{'samples':>8} {'regulariser':>12} {'parameters':>10} {'solver ms':>10} {'total ms':>10} {'limit ms':>9}")
    for count in (2_000, 20_000):
        x = motion(robot.n_joints, count, rng)
        y = evaluate_rows(source, x) @ truth + rng.normal(size=(count, robot.n_joints)) * 0.5
        information = accumulate(source, x, y)
        sigma = WeightedLeastSquares().fit(information, base).sigma
        weighted = information.weighted({name: 1.0 / s for name, s in sigma.items()})
        for regulariser in (PullBack(0.1), Euclidean(0.1), Entropic(0.1)):
            seconds, solver = [], []
            for _ in range(5):
                start = time.perf_counter()
                estimate = Consistency(regulariser).fit(weighted, source.space.units, prior)
                seconds.append(time.perf_counter() - start)
                solver.append(estimate.seconds)
            limit = LIMITS[regulariser.name]
            slow += min(solver) > limit
            print(
                f"{count:8d} {regulariser.name:>12} {len(source.columns):10d} {1e3 * min(solver):10.1f} "
                f"{1e3 * min(seconds):10.1f} {1e3 * limit:9.0f}"
            )
    return 1 if slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
