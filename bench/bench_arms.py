"""Arms that are not in the catalogue: every serial arm of the installed `example-robot-data` wheel through the whole story.

    python -m bench arms                    # designs of 20 s each, all arms
    python -m bench arms --quick            # random motions instead of designs, three arms
    python -m bench arms --only ur5,xarm7   # by parts of their file names

One line per arm, then those that are no arm with the reason, then the goals.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from armid.studies.arms import HEADER, ArmRecord, arm_story, package_arms

QUICK = ("z1.urdf", "ur5_robot.urdf", "xarm7.urdf")


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="bench arms")
    parser.add_argument("--quick", action="store_true", help="random motions, three arms")
    parser.add_argument("--only", default="", help="parts of file names, with commas")
    parser.add_argument("--seconds", type=float, default=20.0, help="that a design may take")
    asked = parser.parse_args(list(arguments))
    words = [word for word in asked.only.split(",") if word]
    records, skipped = [], []
    print(HEADER)
    for file in package_arms(*words):
        if file.robot is None:
            skipped.append(f"{file.path.name}: {file.reason}")
        elif not asked.quick or file.path.name in QUICK or words:
            record = arm_story(file.robot, name=file.path.stem, design_seconds=asked.seconds, design=not asked.quick)
            records.append(record)
            print(record.line(), flush=True)
    if not asked.quick:
        print("no arm here:", *skipped, sep="\n  ")
    print(summary(records))


def summary(records: Sequence[ArmRecord]) -> str:
    """The goals, counted."""
    inside, total = sum(r.inside for r in records), max(sum(r.intervals for r in records), 1)
    trusted = [r for r in records if r.verdict == "trusted"]
    close = sum(np.nanmax([r.urdf, r.mjcf, 0.0]) <= 1.5 * r.model for r in trusted)
    wrong = sum(len(r.wrong_masses) for r in records)
    return (
        f"{len(records)} arms, {len(trusted)} trusted; files within 1.5 times the model's error on {close} of them; "
        f"{inside} of {total} base parameters ({100 * inside / total:.0f} %) in their 95 % intervals; "
        f"{wrong} masses claimed by the data off by more than a factor of 2"
    )


if __name__ == "__main__":
    main()
