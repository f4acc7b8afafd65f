"""What the gate makes of recordings with a planted fault: named, untrusted, undecidable and said, or trusted silently.

Every fault is planted in training and validation alike, as it would be in a real cell. Arms are simulated (a designed motion and
point-to-point moves) and recorded; the latter are skipped where they are not at hand. Cases already in the results file are not
run again.

Run: python -m bench faults [--quick] [--results FILE] [--only WORD] [--sample N]
     (a sample is N cases of every recording drawn by chance, always the same ones, and its clean log)
     python -m bench faults --kind "length described too long" [--only WORD]    # one kind in its own sizes
     python -m bench faults --kind "torque late, heavy joint, ms" --sizes 5,15,40,100 [--only WORD]    # or in any
     python -m bench faults --clean [N]    # N (200) simulated logs in which nothing is wrong, of as many arms as are at hand
     python -m bench faults --windows [--only WORD]    # parts of recordings in which nothing is known to be wrong
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import pairwise
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

import armid
from armid.errors import ArmidError
from armid.estimation.imperfections import FACTORS
from armid.identification.faults import Answer, Fault
from armid.identification.result import Result
from armid.identification.torque_offsets import KIND as OFFSET
from armid.identification.unexplained import KIND as UNEXPLAINED
from armid.logs.health.refuse import LogRefusedError
from armid.logs.log import Log
from armid.motions.limits import motion_limits
from armid.motions.trapezoid import random_waypoints
from armid.notes import Severity
from armid.outcome import Verdict
from armid.robot.robot import Robot
from armid.rows.imperfections import KINDS, Family
from armid.rows.lengths import with_way
from bench.clean_logs import case_of, report_clean
from bench.clean_logs import outcome_of as clean_outcome
from bench.clean_windows import outcome_of as window_outcome
from bench.clean_windows import report_windows, windows
from bench.measure import table
from bench.planted_faults import (
    LENGTH,
    PAIRS,
    PAYLOAD,
    TILT,
    TORQUES,
    WEIGHT,
    Kind,
    longest_way,
    tilted,
    weightless,
)
from bench.planted_shapes import EVERY_KIND, kind_of

MAPPINGS = Path(__file__).parents[1] / "docs" / "mappings"
SIMULATED = ("panda", "iiwa14", "ur10e", "rv2sq")
"""The demonstration runs the second; the others are not in it."""
SECONDS_OF_SEARCH = 3.0


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A recording to plant faults in: training and other motion of one arm.

    Args:
        name: of the arm and motion.
        robot: as described.
        train, test: logs; without a test the last part of the training log is held out.
        words: further arguments of `identify`.
        loaded: the same motions with a payload of so many kg; None for a recording.
    """

    name: str
    robot: Robot
    train: tuple[Log, ...]
    test: tuple[Log, ...] = ()
    words: Mapping[str, Any] = field(default_factory=dict)
    loaded: Callable[[float], tuple[Log, Log]] | None = None

    @cached_property
    def clean(self) -> Result:
        """What the recording says as it is."""
        return identified(self, self.train, self.test, self.robot)


@dataclass(frozen=True, kw_only=True)
class Sought:
    """How a planted fault should be named.

    Args:
        words: kinds of faults and codes of findings that name it.
        joints: one of which must be named with it; empty for the whole arm.
        amount: its size in the unit of its fault; NaN for what has none.
        change: of the joint's torque over that torque, root mean square: what may be left unexplained; NaN when not known.
        added: the same change [N m or N]; what may be its offset, or half the width of its hysteresis.
        sized: kinds of faults whose size the amount is; empty for all.
    """

    words: tuple[str, ...] = ()
    joints: tuple[str, ...] = ()
    amount: float = nan
    change: float = nan
    added: float = nan
    sized: tuple[str, ...] = ()

    def size_as(self, kind: str) -> float:
        """Its size in the unit of a fault of this kind."""
        known = {UNEXPLAINED: self.change, OFFSET: self.added, Family.HYSTERESIS.value: 2.0 * self.added}
        other = self.sized and not any(kind == own or kind.startswith(f"{own} of ") for own in self.sized)
        return known.get(kind, nan if other else self.amount)

    def names(self, word: str, joint: str | None, every: Sequence[str]) -> bool:
        """Whether a kind or code, said of a joint or of something else, names it."""
        word = word.removeprefix("log-")
        right = any(word == own or word.startswith((f"{own} from ", f"{own} in ", f"{own} of ")) for own in self.words)
        return right and (not self.joints or joint in self.joints or joint not in every)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one case.

    Args:
        answer: one of `ANSWERS`.
        said: by what.
        error: held-out error, a fraction.
        trusted: whether the model was.
    """

    answer: str
    said: str = ""
    error: float = nan
    trusted: bool = False


ANSWERS = ("named", "untrusted", "said", "bounded", "unheeded", "silent")
"""Named with kind and joint; not trusted for another reason; undecidable and said, or warned of; at most as large as a stated
bound, which it is; named with a size beyond what the model undoes, and trusted; trusted without a word."""
UNCHANGED = "unchanged"
"""Of a recording that has not the columns which a fault would change, or whose model is the same to four digits with it: nothing
to find, and not counted."""


def identified(cell: Cell, train: Sequence[Log], test: Sequence[Log], robot: Robot) -> Result:
    """The result of logs of a cell, checked first."""
    checked = [[armid.check_log(log, robot) for log in part] for part in (train, test)]
    return armid.identify(robot, checked[0], validate=checked[1] or None, sensitivity=False, **cell.words)


def judged(
    cell: Cell, train: Sequence[Log], test: Sequence[Log], sought: Sequence[Sought], robot: Robot | None = None
) -> Outcome:
    """What is said about logs with these faults; of two, about the one that is answered worse."""
    arm = robot or cell.robot
    try:
        result = identified(cell, train, test, arm)
    except LogRefusedError as error:
        every = arm.joint_names
        named = all(any(s.names(e.code, e.subject, every) for e in error.errors) for s in sought)
        return Outcome(answer="named" if named else "untrusted", said=str(error)[:200])
    except ArmidError as error:
        # Of several logs the reason of the first is told, with code and joint: `the first: a.csv: degrees: joint1: ...`.
        pairs = list(pairwise(str(error).split(": ")))
        found = [any(s.names(code, joint, arm.joint_names) for code, joint in pairs) for s in sought]
        named = bool(found) and all(found)
        return Outcome(answer="named" if named else "untrusted", said=str(error)[:200])
    answers = [outcome_of(result, s) for s in sought or (Sought(),)]
    worst = max(answers, key=lambda outcome: ANSWERS.index(outcome.answer))
    return beside_own(cell, result, sought[0], worst) if worst.answer == "silent" and len(sought) == 1 else worst


def beside_own(cell: Cell, result: Result, sought: Sought, outcome: Outcome) -> Outcome:
    """What was trusted silently, beside what the recording says as it is.

    Currents of two weighed loads in another unit have other drive gains and the same model; and a recording whose encoder is off
    by -1.4 degrees, beyond its interval, is off by -0.4 once another is planted.
    """
    clean, every = cell.clean, cell.robot.joint_names
    if np.allclose(result.consistent.values, clean.consistent.values, rtol=1e-4, atol=1e-6):
        return replace(outcome, answer=UNCHANGED, said="the same model as of the clean recording")
    own = {(f.kind, f.joint): f.estimate for f in clean.faults if f.low > 0.0 or f.high < 0.0}
    excluded = [f for f in result.faults if f.answer is Answer.EXCLUDED and (f.kind, f.joint) in own]
    for fault in (f for f in excluded if sought.names(f.kind, f.joint, every)):
        known = own[fault.kind, fault.joint]
        if fault.bound >= abs(known + sought.size_as(fault.kind)):
            return replace(outcome, answer="bounded", said=f"{fault.sentence}, of its own {known:+.3g}")
    return outcome


def outcome_of(result: Result, sought: Sought) -> Outcome:
    """How a result answers to a planted fault."""
    error = result.relative_error.get("held_out", nan)
    every = result.described.joint_names

    def hit(said: Iterable[tuple[str, str | None, str]]) -> str | None:
        return next((text[:200] for word, joint, text in said if sought.names(word, joint, every)), None)

    def faults(answer: Answer) -> list[Fault]:
        return [f for f in result.faults if f.answer is answer]

    trusted = result.verdict is Verdict.TRUSTED
    found = [(f.kind, f.joint, f.sentence) for f in faults(Answer.FOUND)]
    unheeded = [(f.kind, f.joint, f.sentence) for f in faults(Answer.FOUND) if trusted and too_large(f)]
    if text := hit(unheeded):
        return Outcome(answer="unheeded", said=text, error=error, trusted=True)
    failed = [(c.code, c.subject, c.message) for c in result.checks if c.decisive and not c.passed]
    if text := hit((*found, *failed)):
        return Outcome(answer="named", said=text, error=error, trusted=trusted)
    if not trusted:
        return Outcome(answer="untrusted", said=result.reasons[0][:200], error=error)
    warned = [(n.code, n.subject, n.message) for n in result.notes if n.severity is not Severity.INFO]
    open_ = [(f.kind, f.joint, f.sentence) for f in faults(Answer.UNDECIDABLE)]
    if text := hit((*warned, *open_)):
        return Outcome(answer="said", said=text, error=error, trusted=True)
    within = [(f.kind, f.joint, f.sentence) for f in faults(Answer.EXCLUDED) if f.bound >= abs(sought.size_as(f.kind))]
    if text := hit(within):
        return Outcome(answer="bounded", said=text, error=error, trusted=True)
    return Outcome(answer="silent", error=error, trusted=True)


def too_large(fault: Fault) -> bool:
    """Whether a fault of a sensor is, with its whole interval, beyond what the model undoes."""
    sensors = {family.value for family, kind in KINDS.items() if kind.sensors}
    nearest = min(abs(fault.low), abs(fault.high)) if fault.low * fault.high > 0.0 else 0.0
    return fault.kind in sensors and nearest > FACTORS[-1] * fault.tolerance


def cells(*, quick: bool, only: str = "") -> Iterator[Cell]:
    """Simulated arms with both motions, then recordings."""
    for name in SIMULATED[:1] if quick else SIMULATED:
        for motion in ("designed",) if quick else ("designed", "point-to-point"):
            if only in f"{name}, {motion}":
                yield simulated(name, motion)
    for name in ("panda",) if quick else RECORDINGS:
        if only in f"recorded {name}" and (found := recorded(name)) is not None:
            yield found


def simulated(name: str, motion: str) -> Cell:
    """An arm of the catalogue whose specimen differs from its description, on two motions."""
    robot = armid.load_robot(name)
    motions = [_motion(name, motion, seed) for seed in (0, 1)]
    logs = [armid.simulate(robot, m, seed=k).log for k, m in enumerate(motions)]

    @cache
    def loaded(mass: float) -> tuple[Log, Log]:
        first, second = (armid.simulate(robot, m, payload_mass=mass, seed=k).log for k, m in enumerate(motions))
        return first, second

    return Cell(name=f"{name}, {motion}", robot=robot, train=(logs[0],), test=(logs[1],), loaded=loaded)


@cache
def _motion(name: str, motion: str, seed: int) -> Any:
    robot = armid.load_robot(name)
    if motion == "designed":
        return armid.design_motion(robot, seconds=SECONDS_OF_SEARCH, seed=seed).trajectory
    limits, _ = motion_limits(robot)
    middle, half = 0.5 * (limits.lower + limits.upper), 0.35 * (limits.upper - limits.lower)
    return random_waypoints(
        robot.joint_names,
        middle - np.minimum(half, 1.2),
        middle + np.minimum(half, 1.2),
        0.6 * limits.velocity,
        0.3 * limits.acceleration,
        count=16,
        rng=np.random.default_rng(seed),
    )


RECORDINGS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...], dict[str, Any]]] = {
    "panda": ("panda", ("panda",), (), {}),
    "lwr4plus": ("dynamics/lwr4plus/kuka_lwr4.urdf", ("lwr4plus-1",), ("lwr4plus-2",), {"rotor_inertia": True}),
    "xmate7pro": (
        "xmate7pro-robot.yaml",
        ("xmate7pro-1-periods-1",),
        ("xmate7pro-1-periods-2",),
        {"friction": "viscous,coulomb", "rotor_inertia": True},
    ),
    "tx40": ("tx40", ("tx40",), (), {"torques": "motor"}),
    "ur10e": (
        "ur10e",
        ("ur10e-14harm50sec", "ur10e-14harm50sec-load"),
        ("ur10e-40sec_12harm",),
        {"torques": "motor", "payload": "both"},
    ),
    "med7": ("dynamics/med7/med7dock.urdf", ("med7",), (), {}),
    "kr300": ("../robots/kr300.yaml", ("kr300-A",), ("kr300-B",), {"torques": "motor"}),
}
"""Robot, training and other logs by mapping, and the words of docs/real-robots.md."""

FURTHER: dict[str, tuple[str, tuple[str, ...], tuple[str, ...], dict[str, Any]]] = {
    "xmate7pro-3": (
        "xmate7pro-robot.yaml",
        ("xmate7pro-3-periods-1",),
        ("xmate7pro-3-periods-2",),
        {"friction": "viscous,coulomb", "rotor_inertia": True},
    ),
}
"""The same of recordings that only windows are cut from."""


def recorded(name: str) -> Cell | None:
    """A recording, or None where it is not at hand."""
    data = Path(os.environ.get("ARMID_DATA", Path(__file__).parents[2] / "shared" / "data"))
    robot, train, test, words = (RECORDINGS | FURTHER)[name]
    if not (data / "dynamics").is_dir():
        return None
    os.environ.setdefault("ARMID_DATA", str(data))
    place = data / robot if robot.startswith("dynamics/") else MAPPINGS / robot if robot.endswith(".yaml") else robot
    arm = armid.load_robot(place)
    logs = [
        tuple(armid.read_log(MAPPINGS / f"{log}.yaml", arm, data_root=data) for log in part) for part in (train, test)
    ]
    return Cell(name=f"recorded {name}", robot=arm, train=logs[0], test=logs[1], words=words)


def cases(cell: Cell, *, quick: bool) -> Iterator[Case]:
    """Every fault in a cell: its kind, its size, and how to try it."""
    yield "clean", 0.0, lambda: judged(cell, cell.train, cell.test, ())
    for kind in [kind_of(name) for name in QUICK] if quick else EVERY_KIND:
        for size in dict.fromkeys(kind.sizes[1:2] if quick else kind.sizes):
            yield kind.name, size, _planted(cell, [(kind, size)])
    if quick:
        return
    for names in PAIRS:
        both = [(kind_of(name), kind_of(name).sizes[1]) for name in names]
        yield " and ".join(names), both[0][1], _planted(cell, both)
    yield from _with_robot(cell)


_TRAINED = 0.6
"""Of a recording whose last part is held out."""


def sought_in(kind: Kind, size: float, log: Log, *, share: float = 1.0) -> Sought:
    """How a fault planted in a log should be named, when this share of the log is learnt from."""
    amount = nan if kind.amount is None else kind.amount(size) * (share if kind.grows else 1.0)
    return Sought(words=kind.words, joints=kind.joints(log, size), amount=amount, sized=kind.sized)


def _planted(cell: Cell, plants: Sequence[tuple[Kind, float]]) -> Callable[[], Outcome]:
    def run() -> Outcome:
        # The joint with the largest torque is that of the first log in all of them.
        first = cell.train[0]
        parts = []
        for part in (cell.train, cell.test):
            logs = list(part)
            for kind, size in plants:
                logs = [kind.change(log, size, kind.where(first, size)) for log in logs]
            parts.append(logs)
        if not any(_differ(*pair) for pair in zip(cell.train, parts[0], strict=True)):
            return Outcome(answer=UNCHANGED, said="the recording has no column that this fault changes")
        share = 1.0 if cell.test else _TRAINED
        sought = [sought_in(kind, size, first, share=share) for kind, size in plants]
        return judged(cell, parts[0], parts[1], [changed_torque(one, first, parts[0][0]) for one in sought])

    return run


def changed_torque(sought: Sought, before: Log, after: Log) -> Sought:
    """What is sought, with how much of its joints' torque was changed; as it is where rows or joints are others."""
    if not sought.joints or len(before) != len(after):
        return sought
    own = [before.joints.index(name) for name in sought.joints]
    logs = (before, after)
    torque, other = (next(np.asarray(log.channels[c])[:, own] for c in TORQUES if c in log.channels) for log in logs)
    size, added = (float(np.sqrt(np.nanmean(x**2))) for x in (torque, other - torque))
    return replace(sought, change=added / size, added=added) if added > 0.0 else sought


def _differ(before: Log, after: Log) -> bool:
    """Whether a fault changed anything of a log."""
    same = before.channels.keys() == after.channels.keys() and np.array_equal(before.time, after.time)
    return not same or any(not np.array_equal(v, after.channels[c], equal_nan=True) for c, v in before.channels.items())


def _with_robot(cell: Cell) -> Iterator[Case]:
    name, sizes, words = WEIGHT
    for share in sizes:

        def compensated(s: float = share) -> Outcome:
            logs = [[weightless(log, s, cell.robot) for log in part] for part in (cell.train, cell.test)]
            return judged(cell, logs[0], logs[1], [Sought(words=words)])

        yield name, share, compensated
    name, sizes, level = TILT
    for angle in sizes:
        yield (
            name,
            angle,
            partial(judged, cell, cell.train, cell.test, [Sought(words=level)], tilted(cell.robot, angle)),
        )
    name, sizes, long = LENGTH
    k = longest_way(cell.robot)
    for factor in sizes:
        sought = Sought(words=long, joints=(cell.robot.joint_names[k],), amount=factor - 1.0)
        arm = with_way(cell.robot, k, factor)
        yield name, factor, partial(judged, cell, cell.train, cell.test, [sought], arm)
    if cell.loaded is None:
        return
    name, sizes, load = PAYLOAD
    for mass in sizes:

        def carrying(m: float = mass) -> Outcome:
            assert cell.loaded is not None
            try:
                first, second = cell.loaded(m)
            except ArmidError as error:
                return Outcome(answer="untrusted", said=f"cannot be moved so: {error}"[:200])
            return judged(cell, (first,), (second,), [Sought(words=load)])

        yield name, mass, carrying


Case = tuple[str, float, Callable[[], Outcome]]
"""A kind of fault, its size, and how to try it."""

QUICK = (
    "torque gain, heavy joint",
    "torque gain, last joint",
    "torque sign",
    "position sign",
    "torques swapped",
    "half-dead channel",
    "torque late, heavy joint, ms",
    "torque late, all joints, ms",
    "encoder zero, joint 2, deg",
    "encoder scale, joint 2",
    "offset drifts, N m",
    "clock",
)


def clean_study(options: Sequence[str]) -> None:
    """Clean simulated logs, one after the other; goes on from its results file."""
    words = options[options.index("--clean") + 1 :]
    count = int(words[0]) if words and words[0].isdigit() else 200
    path = Path(_option(options, "--results", "faults-clean.jsonl"))
    lines = path.read_text().splitlines() if path.exists() else []
    done = {record["number"]: record for record in map(json.loads, lines)}
    for number in range(count):
        if number not in done:
            done[number] = clean_outcome(case_of(number))
            with path.open("a") as file:
                file.write(json.dumps(done[number]) + "\n")
    report_clean([done[number] for number in range(count)])


def windows_study(options: Sequence[str]) -> None:
    """Parts of clean recordings, one after the other; goes on from its results file."""
    path = Path(_option(options, "--results", "faults-windows.jsonl"))
    lines = path.read_text().splitlines() if path.exists() else []
    done = {record["case"]: record for record in map(json.loads, lines)}
    for name in RECORDINGS | FURTHER:
        if _option(options, "--only", "") in name and (cell := recorded(name)) is not None:
            for window in windows(name, cell.robot, cell.train, cell.test, cell.words):
                if window.name not in done:
                    done[window.name] = window_outcome(window)
                    with path.open("a") as file:
                        file.write(json.dumps(done[window.name]) + "\n")
    report_windows(list(done.values()))


def sampled(every: Sequence[Case], count: int, seed: int = 0) -> list[Case]:
    """The clean case, and so many of the others drawn by chance, in their order; all of them when none are asked for."""
    if not count:
        return list(every)
    drawn = np.random.default_rng(seed).permutation(len(every) - 1)[:count] + 1
    return [every[k] for k in (0, *sorted(drawn.tolist()))]


def main(options: Sequence[str] = ()) -> None:
    if "--help" in options:
        print(__doc__)
        return
    if "--clean" in options:
        clean_study(options)
        return
    if "--windows" in options:
        windows_study(options)
        return
    quick = "--quick" in options
    path = Path(_option(options, "--results", "faults-quick.jsonl" if quick else "faults.jsonl"))
    done = (
        {(r["cell"], r["kind"], r["size"]): r for r in map(json.loads, path.read_text().splitlines())}
        if path.exists()
        else {}
    )
    if "--sizes" in options:
        sizes = [float(size) for size in _option(options, "--sizes", "").split(",")]
        report_sizes(_option(options, "--only", ""), _option(options, "--kind", ""), sizes)
        return
    sample, only = int(_option(options, "--sample", "0")), _option(options, "--kind", "")
    for cell in cells(quick=quick, only=_option(options, "--only", "")):
        every = list(cases(cell, quick=quick))
        wanted = [case for case in every if case[0] == only] if only else sampled(every, sample)
        for kind, size, run in wanted:
            if (cell.name, kind, size) not in done:
                outcome = run()
                record = {"cell": cell.name, "kind": kind, "size": size, **outcome.__dict__}
                done[cell.name, kind, size] = record
                with path.open("a") as file:
                    file.write(json.dumps(record) + "\n")
    report(list(done.values()))


def report_sizes(only: str, kind: str, sizes: Sequence[float]) -> None:
    """One kind of fault in any sizes: what is said of each."""
    rows = []
    for cell in cells(quick=False, only=only):
        for size in sizes:
            outcome = _planted(cell, [(kind_of(kind), size)])()
            rows.append([cell.name, size, outcome.answer, f"{100 * outcome.error:.2f} %", outcome.said[:100]])
    table(f"Planted: {kind}", ("recording", "size", "answer", "held-out error", "said"), rows)


def _option(options: Sequence[str], name: str, default: str) -> str:
    return options[options.index(name) + 1] if name in options else default


def report(records: Sequence[Mapping[str, Any]]) -> None:
    """Tables of what was said, by fault and by recording."""
    faulty = [r for r in records if r["kind"] != "clean"]
    for title, key in (("by fault", "kind"), ("by recording", "cell")):
        groups: dict[str, Counter[str]] = {}
        for r in faulty:
            groups.setdefault(r[key], Counter())[r["answer"]] += 1
        rows = [[name, *(count[answer] for answer in ANSWERS)] for name, count in groups.items()]
        rows.append(["all", *(sum(count[answer] for count in groups.values()) for answer in ANSWERS)])
        header = (
            title,
            "named",
            "untrusted",
            "undecidable or warned",
            "within its bound",
            "named, too large, trusted",
            "trusted silently",
        )
        table(f"Planted faults {title}", header, rows)
    for answer, title in (("silent", "Trusted silently"), ("unheeded", "Named, too large, and trusted")):
        rows = [[r["cell"], r["kind"], r["size"], f"{100 * r['error']:.2f} %"] for r in faulty if r["answer"] == answer]
        table(title, ("recording", "fault", "size", "held-out error"), rows)
    clean = [r for r in records if r["kind"] == "clean"]
    alarms = [[r["cell"], r["answer"], r["said"][:100]] for r in clean if r["answer"] in ("named", "untrusted")]
    table(f"Decisive on {len(alarms)} of {len(clean)} clean recordings", ("recording", "answer", "reason"), alarms)


if __name__ == "__main__":
    main()
