"""Arms that are not in the catalogue: every serial arm of the installed `example-robot-data` wheel through the whole story.

    python -m bench arms                    # designs of 20 s each, all arms
    python -m bench arms --starts 4         # designs from four random starts each: the same on a busy machine
    python -m bench arms --quick            # random motions instead of designs, three arms
    python -m bench arms --only ur5,xarm7   # by parts of their file names
    python -m bench arms --seed 3           # another specimen of every arm, along other motions
    python -m bench arms --out DIR          # keeps the record of every finished arm there, and goes on from them

One line per arm, then those that are no arm with the reason, then the goals.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from armid.robot.robot import Robot
from armid.studies.arms import HEADER, ArmRecord, arm_story, package_arms

QUICK = ("z1.urdf", "ur5_robot.urdf", "xarm7.urdf")


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="bench arms")
    parser.add_argument("--quick", action="store_true", help="random motions, three arms")
    parser.add_argument("--only", default="", help="parts of file names, with commas")
    parser.add_argument("--seconds", type=float, default=20.0, help="that a design may take")
    parser.add_argument("--starts", type=int, help="random starts of a design instead of seconds; repeats exactly")
    parser.add_argument("--seed", type=int, default=0, help="of specimens, motions and noise")
    parser.add_argument("--out", type=Path, help="folder that keeps the records of finished arms")
    asked = parser.parse_args(list(arguments))
    words = [word for word in asked.only.split(",") if word]
    records, skipped = [], []
    print(HEADER)
    for file in package_arms(*words):
        if file.robot is None:
            skipped.append(f"{file.path.name}: {file.reason}")
        elif not asked.quick or file.path.name in QUICK or words:
            record = kept_story(file.robot, file.path.stem, asked)
            records.append(record)
            print(record.line(), flush=True)
    if not asked.quick:
        print("no arm here:", *skipped, sep="\n  ")
    print(summary(records))


def kept_story(robot: Robot, name: str, asked: argparse.Namespace) -> ArmRecord:
    """What came of an arm: as an earlier run kept it, or told now and kept."""
    mark = f"-{asked.seed}" if asked.seed else ""
    path = None if asked.out is None else asked.out / f"{name}{mark}.json"
    if path is not None and path.exists():
        fields = json.loads(path.read_text(encoding="utf-8"))
        return ArmRecord(**{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()})
    record = arm_story(
        robot,
        name=name,
        design_seconds=asked.seconds,
        design_starts=asked.starts,
        seed=asked.seed,
        design=not asked.quick,
    )
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(record), indent=1), encoding="utf-8")
    return record


def summary(records: Sequence[ArmRecord]) -> str:
    """The goals, counted."""
    inside, total = sum(r.inside for r in records), max(sum(r.intervals for r in records), 1)
    trusted = [r for r in records if r.verdict == "trusted"]
    close = sum(np.nanmax([r.urdf, r.mjcf, 0.0]) <= 1.5 * r.model for r in trusted)
    refused = [r for r in records if np.isfinite(r.refused_after)]
    wrong = sum(len(r.wrong_masses) for r in records)
    slowest = f", the slowest after {max(r.refused_after for r in refused):.1f} s" if refused else ""
    return (
        f"{len(records)} arms, {len(trusted)} trusted; {len(refused)} designs refused{slowest}; "
        f"files within 1.5 times the model's error on {close} of those trusted; "
        f"{inside} of {total} base parameters ({100 * inside / total:.0f} %) in their 95 % intervals; "
        f"{wrong} masses claimed by the data off by more than a factor of 2"
    )


if __name__ == "__main__":
    main()
