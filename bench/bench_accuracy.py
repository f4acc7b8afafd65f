"""How far estimates are from the truth, and whether intervals say so.

`python -m bench accuracy [--quick] [--only coverage|pairs|width|sequential]`: coverage of 95 % intervals over simulated logs
with friction that no linear law has; agreement of independent recordings of the same real arm; the width of smooth friction that
was planted; coverage of the sequential estimate with sensors that are a little wrong.
`--out DIR` keeps every finished log of the coverage there; killed and started again, only what is missing is run.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armid.documents import read_json, write_json
from armid.estimation.estimate import NORMAL_95
from bench.planted_loop import ARMS, LAWS, NOISE, WIDTH, Setting, planted_log
from bench.sequential_sensors import sequential_sensors

if TYPE_CHECKING:
    from armid.identification.result import Result

SECTIONS = ("coverage", "pairs", "width", "sequential")
LINEAR = "viscous,coulomb,offset"
CONTROLLERS = (1000.0, 2000.0, 4000.0)
"""[Hz]"""
HARMONICS = (5, 15)
ALL_LOGS, QUICK_LOGS = 216, 24


def main(options: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="bench accuracy")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_LOGS} of {ALL_LOGS} simulated logs, fewer pairs")
    parser.add_argument("--only", choices=SECTIONS)
    parser.add_argument("--logs", type=int, help=f"simulated logs of the coverage; {ALL_LOGS} by default")
    parser.add_argument("--out", type=Path, help="folder that keeps finished logs of the coverage")
    parser.add_argument("--finished", action="store_true", help="coverage of the logs finished in --out, running none")
    chosen = parser.parse_args(list(options))
    logs = chosen.logs or (QUICK_LOGS if chosen.quick else ALL_LOGS)
    for name in SECTIONS if chosen.only is None else (chosen.only,):
        match name:
            case "coverage":
                coverage(logs=logs, out=chosen.out, finished=chosen.finished)
            case "pairs":
                pairs(quick=chosen.quick)
            case "width":
                width(quick=chosen.quick)
            case "sequential":
                sequential_sensors(quick=chosen.quick)


def settings() -> tuple[Setting, ...]:
    """Four arms, three laws of friction, three noises, two motions, three times over, mixed: the first N are a fair share."""
    every = [
        Setting(
            arm=arm,
            law=law,
            noise=noise,
            harmonics=harmonics,
            control_hz=CONTROLLERS[(k + turn) % len(CONTROLLERS)],
            seed=k,
        )
        for k, (turn, law, noise, harmonics, arm) in enumerate(product(range(3), LAWS, NOISE, HARMONICS, ARMS))
    ]
    random.Random(1).shuffle(every)
    return tuple(every)


def coverage(*, logs: int, out: Path | None, finished: bool = False) -> None:
    """Share of 95 % intervals that hold the truth, by class of parameter and by what was simulated."""
    from armid.identification.compare import parameter_class
    from armid.parameters.space import named_parameter

    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    every = settings()[:logs]
    if finished and out is not None:
        every = tuple(setting for setting in every if _place(setting, out).exists())
    for k, setting in enumerate(every):
        for name, z in _kept_scores(setting, out).items():
            marks = {"parameter": parameter_class(named_parameter(name)), "arm": setting.arm, "friction": setting.law}
            marks |= {"noise": setting.noise, "harmonics": str(setting.harmonics), "all": "all"}
            for kind, value in marks.items():
                found[kind][value].append(z)
        print(f"  {k + 1}: {setting.arm} {setting.law} {setting.noise}", file=sys.stderr, flush=True)
    print(f"\n95 % intervals that hold the truth, {len(every)} simulated logs\n")
    print("| by | | intervals | hold the truth | root mean square of z |\n|---|---|---|---|---|")
    for kind, groups in found.items():
        for value, scores in sorted(groups.items()):
            held = np.abs(scores) < NORMAL_95
            rms = np.sqrt(np.mean(np.square(scores)))
            print(f"| {kind} | {value} | {len(scores)} | {100 * held.mean():.1f} % | {rms:.2f} |")


def _place(setting: Setting, out: Path) -> Path:
    """Where a finished log is kept."""
    return out / f"{setting.seed:03d}.json"


def _kept_scores(setting: Setting, out: Path | None) -> dict[str, float]:
    """Of one log, from the folder where it was finished before."""
    path = None if out is None else _place(setting, out)
    if path is not None and path.exists():
        kept = read_json(path, "scores of a simulated log")
        if kept["setting"] == asdict(setting):
            return dict(kept["scores"])
    scores = scores_of(setting)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {"setting": asdict(setting), "scores": scores})
    return scores


def scores_of(setting: Setting) -> dict[str, float]:
    """Error of every base parameter of one log in its standard deviations.

    True friction is the viscous and Coulomb friction and the offset that were planted, whatever acts beside them: what is left
    away from standstill, not what fits the log best.
    """
    import armid
    from armid.identification.metrics import nominal_standard

    robot, log = planted_log(setting)
    estimate = armid.identify(robot, log, friction=LINEAR, rotor_inertia=True).estimate
    truth = estimate.base.values(nominal_standard(robot, estimate.base.parameters))
    scores = (estimate.values - truth) / estimate.standard_deviations
    return {name: float(z) for name, z in zip(estimate.names, scores, strict=True)}


def pairs(*, quick: bool) -> None:
    """Two recordings of the same arm, each identified alone: z scores of all base parameters."""
    import armid

    data = Path(os.environ.get("ARMID_DATA", "../shared/data"))
    if not data.is_dir():
        print("\nno recordings here: set ARMID_DATA")
        return
    os.environ["ARMID_DATA"] = str(data)
    print("\nPairs of independent recordings, scores of all base parameters in deviations of the difference\n")
    print("| recordings | parameters | beyond 1.96 | root mean square | largest | of |\n|---|---|---|---|---|---|")
    beyond = count = 0
    for label, first, second in _real_pairs(data, quick=quick):
        last = armid.compare(first, second).scores(1)[-1]
        beyond, count = beyond + round(last.beyond * last.count), count + last.count
        print(
            f"| {label} | {last.count} | {100 * last.beyond:.0f} % | {last.root_mean_square:.2f} | {last.largest:.1f} | "
            f"{last.parameter} |",
            flush=True,
        )
    print(f"| all | {count} | {100 * beyond / max(count, 1):.1f} % | | | |")


def _real_pairs(data: Path, *, quick: bool) -> Iterator[tuple[str, Result, Result]]:
    import armid

    maps = Path("docs/mappings")

    def both(robot: str | Path, a: str, b: str, **words: object) -> tuple[Result, Result]:
        one, two = maps / a, maps / b
        return (
            armid.identify(robot, one, validate=two, **words),  # type: ignore[arg-type]
            armid.identify(robot, two, validate=one, **words),  # type: ignore[arg-type]
        )

    arm = data / "dynamics" / "lwr4plus" / "kuka_lwr4.urdf"
    yield "LWR4+, runs 1 and 2", *both(arm, "lwr4plus-1.yaml", "lwr4plus-2.yaml", rotor_inertia=True)
    words = {"friction": "viscous,coulomb", "rotor_inertia": True}
    arm = maps / "xmate7pro-robot.yaml"
    yield (
        "xMate7 Pro, trajectories 1 and 2",
        *both(arm, "xmate7pro-1-periods-1.yaml", "xmate7pro-1-periods-2.yaml", **words),
    )
    if not quick:
        yield (
            "xMate7 Pro, three periods",
            *both(arm, "xmate7pro-3-periods-1.yaml", "xmate7pro-3-periods-2.yaml", **words),
        )
        dates = ("2020-02-12-40sec_12harm", "2020-02-12-50sec_12harm", "2020-02-19-14harm50sec")
        for first, second in combinations(dates, 2):
            files = (f"ur10e-fleet/{first}.yaml", f"ur10e-fleet/{second}.yaml")
            yield f"UR10e, {first} and {second}", *both("ur10e", *files, rotor_inertia=True)


def width(*, quick: bool) -> None:
    """The width that the search for smooth friction finds where 0.010 rad/s was planted."""
    import armid

    print(f"\nWidth of smooth friction, {WIDTH:g} rad/s planted [rad/s]\n\n| arm | noise | found |\n|---|---|---|")
    for k, (arm, noise) in enumerate(product(ARMS[:1] if quick else ARMS[:2], NOISE)):
        robot, log = planted_log(
            Setting(arm=arm, law="tanh", noise=noise, harmonics=15, control_hz=4000.0, seed=500 + k)
        )
        result = armid.identify(robot, log, friction=f"{LINEAR},smooth", rotor_inertia=True, sensitivity=False)
        assert result.friction is not None
        scales = " ".join(f"{scale.value:.4f}" for scale in result.friction.scales.values())
        print(f"| {arm} | {noise} | {scales} |", flush=True)
