"""What the gate makes of recordings with a planted fault: named, untrusted, undecidable and said, or trusted silently.

Every fault is planted in training and validation alike, as it would be in a real cell. Arms are simulated (a designed motion and
point-to-point moves) and recorded; the latter are skipped where they are not at hand. Cases already in the results file are not
run again.

Run: python -m bench faults [--quick] [--results FILE] [--only WORD]
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import armid
from armid.arrays import FloatArray
from armid.errors import ArmidError
from armid.identification.faults import Answer
from armid.identification.result import Result
from armid.logs.health.refuse import LogRefusedError
from armid.logs.log import Channel, Log
from armid.motions.limits import motion_limits
from armid.motions.trapezoid import random_waypoints
from armid.notes import Severity
from armid.outcome import Verdict
from armid.robot.robot import Robot
from bench.measure import table

TORQUES = (Channel.LINK_TORQUE, Channel.MOTOR_TORQUE, Channel.CURRENT)
MOTION = (Channel.POSITION, Channel.VELOCITY)
MAPPINGS = Path(__file__).parents[1] / "docs" / "mappings"
SIMULATED = ("panda", "iiwa14", "ur10e", "rv2sq")
"""The demonstration runs the second; the others are not in it."""
SECONDS_OF_SEARCH = 3.0

Columns = dict[Channel, FloatArray]
Plant = Callable[[Log, float], Log]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of fault.

    Args:
        name: of it.
        sizes: three, from small to large; of a discrete one, joints counted from the base.
        plant: the log with it.
        words: codes of findings and kinds of faults that name it.
    """

    name: str
    sizes: tuple[float, float, float]
    plant: Plant
    words: tuple[str, ...]


def _changed(log: Log, change: Callable[[Columns, FloatArray], None]) -> Log:
    """A log with other columns; not checked yet."""
    channels = {channel: np.array(values) for channel, values in log.channels.items()}
    change(channels, np.asarray(log.time))
    return replace(log, channels=channels, notes=())


def _each(
    log: Log, channels: Sequence[Channel], change: Callable[[FloatArray], FloatArray], joint: int | None = None
) -> Log:
    """A log in which the columns of one joint, or all, are changed."""

    def change_columns(columns: Columns, _: FloatArray) -> None:
        for channel in set(channels) & set(columns):
            where = slice(None) if joint is None else slice(joint, joint + 1)
            columns[channel][:, where] = change(columns[channel][:, where])

    return _changed(log, change_columns)


def _heavy(log: Log) -> int:
    """The joint with the largest torque."""
    torque = next(np.asarray(log.channels[c]) for c in TORQUES if c in log.channels)
    return int(np.argmax(np.nanstd(torque, axis=0)))


def _last(log: Log) -> int:
    return len(log.joints) - 1


def _joint(log: Log, size: float) -> int:
    """Discrete faults: sizes 1, 2, 3 are a joint near the base, in the middle and at the tip."""
    return {1: min(1, _last(log)), 2: len(log.joints) // 2, 3: _last(log)}[int(size)]


def _gain(which: Callable[[Log], int | None]) -> Plant:
    return lambda log, size: _each(log, TORQUES, lambda x: size * x, which(log))


def _late(log: Log, seconds: float, joint: int | None) -> Log:
    t = np.asarray(log.time)

    def shifted(x: FloatArray) -> FloatArray:
        return np.column_stack([np.interp(t - seconds, t, column) for column in x.T])

    return _each(log, TORQUES, shifted, joint)


def _zero(log: Log, degrees: float, joint: int) -> Log:
    return _each(log, (Channel.POSITION,), lambda q: q + np.deg2rad(degrees), joint)


def _swapped(log: Log, size: float, channels: Sequence[Channel]) -> Log:
    i = min(int(size) - 1, len(log.joints) - 2)

    def change(columns: Columns, _: FloatArray) -> None:
        for channel in set(channels) & set(columns):
            columns[channel][:, [i, i + 1]] = columns[channel][:, [i + 1, i]]

    return _changed(log, change)


def _quantised(x: FloatArray, steps: float) -> FloatArray:
    step = np.maximum(np.ptp(x, axis=0) / steps, 1e-12)
    return np.asarray(step * np.round(x / step))


def _dropped(x: FloatArray, share: float) -> FloatArray:
    lost = np.random.default_rng(7).random(len(x)) < share
    return np.where(lost[:, np.newaxis], 0.0, x)


def _clipped(x: FloatArray, share: float) -> FloatArray:
    top = share * np.abs(x).max(axis=0)
    return np.clip(x, -top, top)


def _drift(log: Log, size: float, shape: Callable[[FloatArray], FloatArray]) -> Log:
    t = (np.asarray(log.time) - log.time[0]) / max(float(log.time[-1] - log.time[0]), 1e-9)
    return _each(log, TORQUES, lambda x: x + size * shape(t)[:, np.newaxis], _heavy(log))


def _clock(log: Log, factor: float) -> Log:
    velocity = (
        {Channel.VELOCITY: np.asarray(log.channels[Channel.VELOCITY])} if Channel.VELOCITY in log.channels else {}
    )
    return replace(log, time=np.asarray(log.time) * factor, channels={**log.channels, **velocity}, notes=())


def _weightless(log: Log, share: float, robot: Robot) -> Log:
    """A part of the nominal weight taken out, as a controller does that compensates gravity."""
    weight = np.asarray(armid.gravity(robot, np.nan_to_num(np.asarray(log.channels[Channel.POSITION]))))
    return _each(log, TORQUES, lambda x: x - share * weight)


def _frozen(log: Log, share: float) -> Log:
    def held(x: FloatArray) -> FloatArray:
        stop = int(share * len(x))
        return np.concatenate([x[:1].repeat(stop, axis=0), x[stop:]])

    return _each(log, TORQUES, held, _heavy(log))


def _spiked(x: FloatArray, count: float) -> FloatArray:
    out = np.array(x)
    rows = np.random.default_rng(3).integers(0, len(x), size=int(count))
    out[rows] += 2.0 * np.ptp(x, axis=0)
    return out


KINDS: tuple[Kind, ...] = (
    Kind(name="torque gain, heavy joint", sizes=(1.1, 1.3, 2.0), plant=_gain(_heavy), words=("gain", "torque-unit")),
    Kind(name="torque gain, last joint", sizes=(1.1, 1.3, 2.0), plant=_gain(_last), words=("gain", "torque-unit")),
    Kind(
        name="torque gain, all joints",
        sizes=(1.1, 1.3, 2.0),
        plant=_gain(lambda _: None),
        words=("gain", "torque-unit"),
    ),
    Kind(
        name="gear ratio missing, one joint",
        sizes=(0.02, 0.01, 0.006),
        plant=_gain(_heavy),
        words=("gain", "torque-unit", "gear-ratio"),
    ),
    Kind(
        name="millinewton metres",
        sizes=(1e3, 1e3, 1e3),
        plant=_gain(lambda _: None),
        words=("torque-unit", "gain", "corrupt-values"),
    ),
    Kind(
        name="torque sign",
        sizes=(1, 2, 3),
        plant=lambda log, s: _each(log, TORQUES, np.negative, _joint(log, s)),
        words=("torque-sign", "friction-sign"),
    ),
    Kind(
        name="torque sign, all joints",
        sizes=(1, 2, 3),
        plant=lambda log, _: _each(log, TORQUES, np.negative),
        words=("torque-sign", "gravity-reversed", "gravity-direction"),
    ),
    Kind(
        name="position sign",
        sizes=(1, 2, 3),
        plant=lambda log, s: _each(log, MOTION, np.negative, _joint(log, s)),
        words=("position-sign", "torque-sign", "position-limits", "mirrored"),
    ),
    Kind(
        name="mirrored joint",
        sizes=(1, 2, 3),
        plant=lambda log, s: _each(log, (*MOTION, *TORQUES), np.negative, _joint(log, s)),
        words=("mirrored", "position-sign", "position-limits"),
    ),
    Kind(
        name="torques swapped",
        sizes=(1, 2, 3),
        plant=lambda log, s: _swapped(log, s, TORQUES),
        words=("torques-swapped", "swapped", "joint-order"),
    ),
    Kind(
        name="joints swapped",
        sizes=(1, 2, 3),
        plant=lambda log, s: _swapped(log, s, (*TORQUES, *MOTION)),
        words=("swapped", "joint-order", "position-limits"),
    ),
    Kind(
        name="dead channel",
        sizes=(1, 2, 3),
        plant=lambda log, s: _each(log, TORQUES, np.zeros_like, _joint(log, s)),
        words=("frozen", "torque-dead"),
    ),
    Kind(
        name="half-dead channel",
        sizes=(0.1, 0.3, 0.7),
        plant=lambda log, s: _each(log, TORQUES, lambda x: _dropped(x, s), _last(log)),
        words=("half-dead", "frozen"),
    ),
    Kind(name="frozen torque", sizes=(0.03, 0.1, 0.3), plant=_frozen, words=("frozen",)),
    Kind(
        name="coarse torque",
        sizes=(60, 20, 6),
        plant=lambda log, s: _each(log, TORQUES, lambda x: _quantised(x, s), _heavy(log)),
        words=("quantised",),
    ),
    Kind(
        name="coarse encoder",
        sizes=(90, 40, 15),
        plant=lambda log, s: _each(log, (Channel.POSITION,), lambda x: _quantised(x, s), _heavy(log)),
        words=("quantised",),
    ),
    Kind(
        name="saturated torque",
        sizes=(0.8, 0.6, 0.4),
        plant=lambda log, s: _each(log, TORQUES, lambda x: _clipped(x, s), _heavy(log)),
        words=("saturated",),
    ),
    Kind(
        name="spikes of torque",
        sizes=(3, 30, 300),
        plant=lambda log, s: _each(log, TORQUES, lambda x: _spiked(x, s), _heavy(log)),
        words=("spikes",),
    ),
    Kind(
        name="offset drifts, N m",
        sizes=(1.0, 5.0, 20.0),
        plant=lambda log, s: _drift(log, s, lambda t: t),
        words=("drift",),
    ),
    Kind(
        name="offset wanders, N m",
        sizes=(1.0, 5.0, 20.0),
        plant=lambda log, s: _drift(log, s, lambda t: np.sin(9.0 * t)),
        words=("drift",),
    ),
    Kind(
        name="torque late, all joints, ms",
        sizes=(5, 15, 40),
        plant=lambda log, s: _late(log, 1e-3 * s, None),
        words=("delay", "torque-lag"),
    ),
    Kind(
        name="torque late, heavy joint, ms",
        sizes=(5, 15, 40),
        plant=lambda log, s: _late(log, 1e-3 * s, _heavy(log)),
        words=("delay", "torque-lag"),
    ),
    Kind(
        name="torque late, last joint, ms",
        sizes=(5, 15, 40),
        plant=lambda log, s: _late(log, 1e-3 * s, _last(log)),
        words=("delay", "torque-lag"),
    ),
    Kind(
        name="encoder zero, joint 2, deg",
        sizes=(1, 5, 10),
        plant=lambda log, s: _zero(log, s, 1),
        words=("zero", "position-limits", "tilt"),
    ),
    Kind(
        name="encoder zero, joint 1, deg",
        sizes=(1, 5, 10),
        plant=lambda log, s: _zero(log, s, 0),
        words=("zero", "position-limits"),
    ),
    Kind(
        name="encoder zero, last joint, deg",
        sizes=(1, 5, 10),
        plant=lambda log, s: _zero(log, s, _last(log)),
        words=("zero", "position-limits"),
    ),
    Kind(
        name="quarter turn",
        sizes=(1, 2, 3),
        plant=lambda log, s: _zero(log, 90.0, _joint(log, s)),
        words=("quarter-turn", "zero", "position-limits", "mounting"),
    ),
    Kind(
        name="encoder scale, joint 2",
        sizes=(1.02, 1.1, 1.3),
        plant=lambda log, s: _each(log, MOTION, lambda q: s * q, 1),
        words=("scale", "position-limits"),
    ),
    Kind(
        name="encoder scale, last joint",
        sizes=(1.02, 1.1, 1.3),
        plant=lambda log, s: _each(log, MOTION, lambda q: s * q, _last(log)),
        words=("scale", "position-limits"),
    ),
    Kind(
        name="degrees for radians",
        sizes=(1, 2, 3),
        plant=lambda log, _: _each(log, MOTION, np.degrees),
        words=("degrees",),
    ),
    Kind(name="clock", sizes=(1.02, 1.1, 1.5), plant=_clock, words=("clock", "clock-unit", "velocity-inconsistent")),
    Kind(
        name="milliseconds for seconds",
        sizes=(1e3, 1e3, 1e3),
        plant=_clock,
        words=("clock", "clock-unit", "velocity-inconsistent"),
    ),
    Kind(
        name="velocity column of another joint",
        sizes=(1, 2, 3),
        plant=lambda log, s: _swapped(log, s, (Channel.VELOCITY,)),
        words=("joint-order", "velocity-inconsistent"),
    ),
)
WITH_ROBOT: tuple[tuple[str, tuple[float, float, float], tuple[str, ...]], ...] = (
    ("weight partly subtracted", (0.3, 0.5, 1.0), ("gravity-compensated", "gain")),
    ("base out of level, deg", (2.0, 5.0, 20.0), ("tilt", "mounting")),
    ("payload nobody mentioned, kg", (0.2, 0.5, 2.0), ("payload",)),
)
"""Faults that need the arm: its nominal weight is subtracted, its base tilted, its flange loaded."""


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


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one case: `named`, `untrusted`, `said` (undecidable, or a warning), `silent`, and whether it did harm.

    Args:
        answer: one of these.
        said: by what.
        error: held-out error, a fraction.
    """

    answer: str
    said: str = ""
    error: float = float("nan")


def judged(
    cell: Cell, train: Sequence[Log], test: Sequence[Log], words: Sequence[str], robot: Robot | None = None
) -> Outcome:
    """The verdict on logs with a fault that some words name."""
    arm = robot or cell.robot
    try:
        checked = [[armid.check_log(log, arm) for log in part] for part in (train, test)]
        result = armid.identify(arm, checked[0], validate=checked[1] or None, sensitivity=False, **cell.words)
    except LogRefusedError as error:
        return Outcome(answer="named" if _names(str(error), words) else "untrusted", said=str(error)[:200])
    except ArmidError as error:
        return Outcome(answer="untrusted", said=str(error)[:200])
    return outcome_of(result, words)


def outcome_of(result: Result, words: Sequence[str]) -> Outcome:
    """How a result answers to a fault that some words name."""
    found = [f.name for f in result.faults if f.answer is Answer.FOUND]
    open_ = [f.name for f in result.faults if f.answer is Answer.UNDECIDABLE]
    warned = [n.code for n in result.notes if n.severity is not Severity.INFO]
    failed = [c.code for c in result.checks if c.decisive and not c.passed]
    error = result.relative_error.get("held_out", float("nan"))
    if hits := [text for text in (*found, *failed) if _names(text, words)]:
        return Outcome(answer="named", said=hits[0][:200], error=error)
    if result.verdict is Verdict.UNTRUSTED:
        return Outcome(answer="untrusted", said=result.reasons[0][:200], error=error)
    for texts in (warned, open_):
        if hits := [text for text in texts if _names(text, words)]:
            return Outcome(answer="said", said=hits[0][:200], error=error)
    return Outcome(answer="silent", error=error)


def _names(text: str, words: Sequence[str]) -> bool:
    """Whether a code, or a fault by name, is one of the words: `log-torque-sign`, `torque-sign: ...`, `gain of joint4`."""
    return any(re.search(rf"(^|[\s:]|log-){re.escape(word)}($|[\s:])", text) for word in words)


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
}
"""Robot, training and other logs by mapping, and the words of docs/real-robots.md."""


def recorded(name: str) -> Cell | None:
    """A recording, or None where it is not at hand."""
    data = Path(os.environ.get("ARMID_DATA", Path(__file__).parents[2] / "shared" / "data"))
    robot, train, test, words = RECORDINGS[name]
    if not (data / "dynamics").is_dir():
        return None
    os.environ.setdefault("ARMID_DATA", str(data))
    place = data / robot if robot.startswith("dynamics/") else MAPPINGS / robot if robot.endswith(".yaml") else robot
    arm = armid.load_robot(place)
    logs = [
        tuple(armid.read_log(MAPPINGS / f"{log}.yaml", arm, data_root=data) for log in part) for part in (train, test)
    ]
    return Cell(name=f"recorded {name}", robot=arm, train=logs[0], test=logs[1], words=words)


def cases(cell: Cell, *, quick: bool) -> Iterator[tuple[str, float, Callable[[], Outcome]]]:
    """Every fault in a cell: its kind, its size, and how to try it."""
    yield "clean", 0.0, lambda: judged(cell, cell.train, cell.test, ())
    kinds = [k for k in KINDS if k.name in QUICK] if quick else KINDS
    for kind in kinds:
        for size in kind.sizes[1:2] if quick else kind.sizes:
            yield kind.name, size, _planted(cell, [(kind.plant, size)], kind.words)
    if quick:
        return
    for first, second in PAIRS:
        one, two = (next(k for k in KINDS if k.name == name) for name in (first, second))
        both = [(one.plant, one.sizes[1]), (two.plant, two.sizes[1])]
        yield f"{first} and {second}", one.sizes[1], _planted(cell, both, (*one.words, *two.words))
    yield from _with_robot(cell)


def _planted(cell: Cell, plants: Sequence[tuple[Plant, float]], words: Sequence[str]) -> Callable[[], Outcome]:
    def run() -> Outcome:
        parts = []
        for part in (cell.train, cell.test):
            logs = list(part)
            for plant, size in plants:
                logs = [plant(log, size) for log in logs]
            parts.append(logs)
        return judged(cell, parts[0], parts[1], words)

    return run


def _with_robot(cell: Cell) -> Iterator[tuple[str, float, Callable[[], Outcome]]]:
    (weight, shares, weight_words), (tilt, angles, tilt_words), (payload, masses, payload_words) = WITH_ROBOT
    for share in shares:
        plant: Plant = lambda log, s: _weightless(log, s, cell.robot)  # noqa: E731
        yield weight, share, _planted(cell, [(plant, share)], weight_words)
    for angle in angles:
        yield tilt, angle, lambda a=angle: judged(cell, cell.train, cell.test, tilt_words, _tilted(cell.robot, a))  # type: ignore[misc]
    if cell.loaded is not None:
        for mass in masses:

            def carrying(m: float = mass) -> Outcome:
                assert cell.loaded is not None
                first, second = cell.loaded(m)
                return judged(cell, (first,), (second,), payload_words)

            yield payload, mass, carrying


def _tilted(robot: Robot, degrees: float) -> Robot:
    """The arm described as standing level although its base is out of level: gravity of the description turned."""
    a = np.deg2rad(degrees)
    turn = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    return robot.with_gravity(turn @ np.asarray(robot.gravity))


QUICK = (
    "torque gain, heavy joint",
    "torque sign",
    "position sign",
    "half-dead channel",
    "encoder zero, joint 2, deg",
    "clock",
)
PAIRS = (
    ("torque gain, heavy joint", "encoder zero, joint 2, deg"),
    ("torque sign", "torque late, all joints, ms"),
    ("half-dead channel", "clock"),
    ("encoder scale, last joint", "torque gain, last joint"),
    ("offset drifts, N m", "torque late, heavy joint, ms"),
)
"""Two at once."""
ANSWERS = ("named", "untrusted", "said", "silent")


def main(options: Sequence[str] = ()) -> None:
    quick = "--quick" in options
    path = Path(_option(options, "--results", "faults-quick.jsonl" if quick else "faults.jsonl"))
    done = (
        {(r["cell"], r["kind"], r["size"]): r for r in map(json.loads, path.read_text().splitlines())}
        if path.exists()
        else {}
    )
    for cell in cells(quick=quick, only=_option(options, "--only", "")):
        for kind, size, run in cases(cell, quick=quick):
            if (cell.name, kind, size) not in done:
                outcome = run()
                record = {"cell": cell.name, "kind": kind, "size": size, **outcome.__dict__}
                done[cell.name, kind, size] = record
                with path.open("a") as file:
                    file.write(json.dumps(record) + "\n")
    report(list(done.values()))


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
        header = (title, "named", "untrusted", "undecidable or warned", "trusted silently")
        table(f"Planted faults {title}", header, rows)
    silent = [[r["cell"], r["kind"], r["size"], f"{100 * r['error']:.2f} %"] for r in faulty if r["answer"] == "silent"]
    table("Trusted silently", ("recording", "fault", "size", "held-out error"), silent)
    clean = [r for r in records if r["kind"] == "clean"]
    alarms = [[r["cell"], r["answer"], r["said"][:100]] for r in clean if r["answer"] in ("named", "untrusted")]
    table(f"Decisive on {len(alarms)} of {len(clean)} clean recordings", ("recording", "answer", "reason"), alarms)


if __name__ == "__main__":
    main()
