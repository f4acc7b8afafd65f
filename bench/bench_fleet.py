"""Fleets: how often an alarm is false and how often wear is found, and what a population is worth to a new arm.

`python -m bench fleet` simulates 50 arms with 20 % spread on six dates, five of them worn, and 50 without wear; `--quick` ten on
four, two of them worn. `--only spread` plants estimates of few and many arms: spreads found, and what they are worth to other
arms. Tables are about simulated arms whose truth is known; `--runs N` sets how many fleets without wear are
drawn, `--only` picks tables.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import armid
from armid.estimation.population import fit_population, shrunk, told_by
from armid.fleets.course import Course
from armid.fleets.drift import drifts
from armid.fleets.fleet import Fleet
from armid.identification.metrics import nominal_standard
from armid.kernels.evaluate import evaluate_rows
from armid.rows.torque import TorqueRows
from support.elbow import fourier_motion
from support.elbow_logs import FRICTION
from support.fleet_logs import DATES, true_arm, write_fleet, write_log

WORDS = {"friction": "viscous,coulomb,offset"}
TABLES = ("alarms", "spread", "fleets")
PARAMETERS = 18
"""Drives' parameters of a six-axis arm with viscous and Coulomb friction and an offset."""


def courses(rng: np.random.Generator, arms: int, dates: int) -> list[Course]:
    """Estimates that scatter by twice what they claim, around a value of each arm's own."""
    out = []
    for arm in range(arms):
        for k in range(PARAMETERS):
            s = rng.uniform(0.5, 2.0, size=dates)
            out.append(
                Course(
                    arm=f"r{arm:02d}",
                    parameter=f"p{k:02d}",
                    like=f"like{k % 3}",
                    dates=tuple(f"{d:02d}" for d in range(dates)),
                    days=30.0 * np.arange(dates),
                    values=rng.normal() + 2.0 * s * rng.normal(size=dates),
                    deviations=s,
                )
            )
    return out


def alarm_table(runs: int) -> None:
    """False alarms per fleet, and planted steps found, on estimates drawn from what the statistic assumes."""
    rng = np.random.default_rng(0)
    print(
        f"| arms | dates | fleets with a false alarm ({runs}; stated 5 %) | steps of 5/8/12 scatters found | date right |"
    )
    print("|---|---|---|---|---|")
    for arms, dates in ((50, 6), (50, 12), (10, 6), (3, 12)):
        false = sum(any(d.alarm for d in drifts(courses(rng, arms, dates))) for _ in range(runs))
        found, right, tried = [], 0, 40
        for size in (5.0, 8.0, 12.0):
            hits = 0
            for _ in range(tried):
                fleet = courses(rng, arms, dates)
                first = int(rng.integers(1, dates))
                fleet[0].values[first:] += size * 2.0
                one = next(d for d in drifts(fleet) if (d.arm, d.parameter) == ("r00", "p00"))
                hits += one.alarm
                right += one.alarm and int(one.since) == first
            found.append(hits)
        share = " / ".join(f"{hits / tried:.0%}" for hits in found)
        sys.stdout.flush()
        print(f"| {arms} | {dates} | {false / runs:.1%} | {share} | {right / max(sum(found), 1):.0%} |")


def spread_table(runs: int) -> None:
    """Spreads found, and what they are worth to arms not among those they were learned from: planted values with known noise."""
    rng = np.random.default_rng(0)
    print(
        "\n| arms | spread over noise of an estimate | spread found over planted: median (80 % of them) | its interval holds",
        end="",
    )
    print(" | 95 % intervals of new arms hold | their error: own estimate / mean of the fleet / both [noise] |")
    print("|---|---|---|---|---|---|")
    r = 6
    for arms, spread in ((4, 1.0), (4, 4.0), (10, 0.5), (10, 1.0), (10, 4.0), (50, 0.5), (50, 4.0)):
        found, holds, inside, errors = [], [], [], []
        for _ in range(runs):
            turned = np.linalg.qr(rng.normal(size=(r, r)))[0]
            noise = turned * np.sqrt(rng.uniform(0.3, 1.7, size=r)) @ turned.T
            covariance = noise @ noise.T
            truth = 1.0 + spread * rng.normal(size=(arms + 10, r))
            values = truth + rng.normal(size=truth.shape) @ noise.T
            told = [told_by(own, covariance) for own in values]
            population = fit_population(told[:arms], [f"p{k}" for k in range(r)])
            low, high = population.spread_interval()
            found.append(population.spread / spread)
            holds.append((low <= spread) & (spread <= high))
            for b, own, one in zip(truth[arms:], values[arms:], told[arms:], strict=True):
                both = shrunk(one, population)
                inside.append(np.abs(both.values - b) < 1.96 * np.sqrt(np.diag(both.covariance)))
                errors.append([(guess - b) @ (guess - b) / r for guess in (own, population.mean, both.values)])
        low, middle, high = np.quantile(found, (0.1, 0.5, 0.9))
        rms = " / ".join(f"{value:.2f}" for value in np.sqrt(np.mean(errors, axis=0)))
        shares = f"{np.mean(holds):.0%} | {np.mean(inside):.0%}"
        print(f"| {arms} | {spread:g} | {middle:.2f} ({low:.2f} to {high:.2f}) | {shares} | {rms} |")
        sys.stdout.flush()


def fleet_table(folder: Path, arms: int, dates: int, worn: int, seconds: float, seed: int = 0) -> Fleet:
    """A fleet whose recordings are simulated and identified."""
    planted = {k * arms // worn: (f"joint{k % 3 + 1}.coulomb", 1 + k % (dates - 1), 1.5) for k in range(worn)}
    write_fleet(folder, arms, dates, seconds=seconds, worn=planted, seed=seed)
    began = time.perf_counter()
    fleet = armid.fleet(folder / "fleet.csv", **WORDS)
    took = time.perf_counter() - began
    sought = {(f"r{arm:02d}", name) for arm, (name, *_) in planted.items()}
    found = {(d.arm, d.parameter) for d in fleet.alarms}
    dated = {(d.arm, d.parameter): d.since for d in fleet.alarms}
    right = sum(dated.get((f"r{arm:02d}", name)) == DATES[first] for arm, (name, first, _) in planted.items())
    trusted = sum(one.counts for one in fleet.visits)
    print(
        f"\n{arms} arms on {dates} dates, {len(fleet.visits)} visits of {seconds:g} s in {took:.0f} s; {trusted} trusted."
    )
    print(
        f"Coulomb friction grown by half in {worn} arms: {len(found & sought)} found with arm and joint, {right} with the "
        f"date; other alarms: {len(found - sought)}."
    )
    spread = fleet.population
    if spread is not None:
        drives = [k for k, name in enumerate(spread.names) if name.startswith("joint") and not name.endswith("offset")]
        relative = spread.spread[drives] / np.abs(spread.mean[drives])
        print(
            f"Spread of friction planted 20 %, found {np.median(relative):.0%} (median over {len(drives)} parameters)."
        )
    return fleet


def prior_table(folder: Path, fleet: Fleet, arms: int, seconds: float) -> None:
    """New arms with a short, noisy log: description, log alone, log and fleet, on motion never seen and without noise."""
    if fleet.population is None:
        return
    robot = armid.load_robot(folder / "elbow.yaml")
    source = TorqueRows(robot, FRICTION)
    rng = np.random.default_rng(99)
    errors: dict[str, list[float]] = {"description": [], "short log alone": [], "short log with the fleet": []}
    for arm in range(arms):
        values = true_arm(robot, source, rng, 0.2)
        log = write_log(folder / "new" / f"{arm}.csv", source, values, 5000 + arm, seconds, 1.0)
        inputs = fourier_motion(np.random.default_rng(9000 + arm), 3, 2000, 100.0)
        rows = evaluate_rows(source, inputs)
        truth = rows @ values
        words = {**WORDS, "sensitivity": False, "imperfections": "none"}
        alone = armid.identify(robot, log, **words)
        pulled = armid.identify(robot, log, prior=fleet.population, **words)
        described = nominal_standard(robot, source.columns)
        for name, guess in zip(errors, (described, alone.consistent.values, pulled.consistent.values), strict=True):
            errors[name].append(float(np.linalg.norm(rows @ guess - truth) / np.linalg.norm(truth)))
    print(
        f"\n| {arms} new arms, log of {seconds:g} s | median torque error on motion never seen | largest |\n|---|---|---|"
    )
    for name, values in errors.items():
        print(f"| {name} | {np.median(values):.1%} | {max(values):.1%} |")


def main(words: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="bench fleet")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=TABLES, default=TABLES)
    asked = parser.parse_args(list(words))
    if "alarms" in asked.only:
        alarm_table(asked.runs or (100 if asked.quick else 400))
        sys.stdout.flush()
    if "spread" in asked.only:
        spread_table(8 if asked.quick else 40)
    if "fleets" not in asked.only:
        return
    with tempfile.TemporaryDirectory() as name:
        size = (10, 4, 2, 8.0) if asked.quick else (50, 6, 5, 8.0)
        fleet = fleet_table(Path(name), *size)
        prior_table(Path(name), fleet, 6 if asked.quick else 20, 4.0)
    if not asked.quick:
        with tempfile.TemporaryDirectory() as name:
            fleet_table(Path(name), 50, 6, 0, 8.0, seed=7_000_000)
