"""Windows of clean recordings: how often something is found in a short or poor part of a recording in which nothing is wrong.

Every recording is cut into halves, thirds, quarters and sixths; each part is learnt from and another part of the other
recording (or of the same one) is held out. What a whole recording hardly shows, its parts do: few blocks, a narrow motion, a
model that lacks something. Beside that stands what imperfections are worth there: the held-out error with them over that without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import armid
from armid.errors import ArmidError
from armid.logs.log import Log
from armid.robot.robot import Robot
from bench.clean_logs import said_of
from bench.measure import table

PARTS = (2, 3, 4, 6)
"""That a recording is cut into."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """Parts of two recordings of one arm.

    Args:
        name: of the recording, the way, the part.
        robot: as described.
        train, test: logs.
        words: further arguments of `identify`.
    """

    name: str
    robot: Robot
    train: tuple[Log, ...]
    test: tuple[Log, ...]
    words: Mapping[str, Any] = field(default_factory=dict)


def windows(
    name: str, robot: Robot, train: Sequence[Log], test: Sequence[Log], words: Mapping[str, Any]
) -> Iterator[Window]:
    """Parts of a recording of one arm, and, where both have the same loads, with learnt and held-out recording exchanged."""
    ways = [("", train, test or train)]
    if test and len(test) == len(train):
        ways.append((", exchanged", test, train))
    for way, learnt, tried in ways:
        for parts in PARTS:
            for k in range(parts):
                other = (k + parts // 2) % parts
                yield Window(
                    name=f"{name}{way}, part {k + 1} of {parts}",
                    robot=robot,
                    train=tuple(_part(log, k, parts) for log in learnt),
                    test=tuple(_part(log, other, parts) for log in tried),
                    words=words,
                )


def _part(log: Log, k: int, parts: int) -> Log:
    return log.rows(k * len(log) // parts, (k + 1) * len(log) // parts)


def outcome_of(window: Window) -> dict[str, Any]:
    """What was said about a window, as a record."""
    record: dict[str, Any] = {"case": window.name}
    try:
        checked = [[armid.check_log(log, window.robot) for log in part] for part in (window.train, window.test)]
        result, without = (
            armid.identify(window.robot, checked[0], validate=checked[1], sensitivity=False, **window.words, **words)
            for words in ({}, {"imperfections": "none"})
        )
    except ArmidError as error:
        return record | {"answer": "refused", "said": str(error)[:200]}
    return record | said_of(result) | {"error_without": without.relative_error["held_out"]}


def report_windows(records: Sequence[Mapping[str, Any]]) -> None:
    """How many, by recording, and which."""
    answers = ("nothing", "noted", "by a fault", "by other reasons", "refused")
    groups: dict[str, list[str]] = {}
    for r in records:
        groups.setdefault(r["case"].split(", part")[0], []).append(r["answer"])
    groups["all"] = [str(r["answer"]) for r in records]
    rows = [[name, *(said.count(answer) for answer in answers)] for name, said in groups.items()]
    table(f"Windows of clean recordings: {len(records)}", ("recording", *answers), rows)
    alarms = [[r["case"], r["said"]] for r in records if r["answer"] == "by a fault"]
    table("Windows in which a fault is decisive", ("window", "said"), alarms)
    report_worth(records)


WORSE = 1.02
"""Of the held-out error without imperfections, beyond which the default estimate is worse."""


def report_worth(records: Sequence[Mapping[str, Any]]) -> None:
    """Held-out error of the default estimate over that without imperfections, by recording, and where it is worse."""
    ratios = {r["case"]: r["error"] / r["error_without"] for r in records if "error_without" in r}
    groups: dict[str, list[float]] = {}
    for case, ratio in ratios.items():
        for name in (case.split(", part")[0], "all"):
            groups.setdefault(name, []).append(ratio)
    rows = [
        [
            name,
            len(own),
            *(f"{x:.3f}" for x in (np.exp(np.mean(np.log(own))), *np.quantile(own, [0.25, 0.5, 0.75, 1.0]))),
        ]
        for name, own in sorted(groups.items(), key=lambda pair: pair[0] == "all")
    ]
    header = ("recording", "windows", "geometric mean", "first quartile", "median", "third quartile", "largest")
    table("Held-out error with imperfections over that without", header, rows)
    worse = sorted(((ratio, case) for case, ratio in ratios.items() if ratio > WORSE), reverse=True)
    table(
        f"Windows in which they make it worse by {WORSE - 1.0:.0%}",
        ("window", "ratio"),
        [[c, f"{x:.3f}"] for x, c in worse],
    )
