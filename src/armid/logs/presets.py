"""Mappings filled in from what a file says about itself; every guess is a note."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.log import Channel
from armid.logs.mapping import DEFAULT_UNITS, ChannelMap, ClockMap, FileMap, LogMap
from armid.logs.readers.table import Layout, Table, TableFile
from armid.logs.units import TIME, UNITS
from armid.logs.vocabulary import NANOSECOND_WORDS, TIME_WORDS, ColumnName, meaning, meaning_of, taken_apart
from armid.notes import Note, Severity
from armid.robot.robot import Robot


@dataclass(frozen=True, slots=True)
class Group:
    """Columns that make up one channel, in joint order."""

    channel: Channel
    columns: tuple[str, ...]
    unit: str = ""
    joints: tuple[str, ...] = ()


def guessed_map(
    path: Path, layout: Layout, table: TableFile, head: Table, robot: Robot | None
) -> tuple[LogMap, tuple[Note, ...]]:
    """A mapping for a file nobody described.

    Args:
        path: of the file.
        layout: how it is read.
        table: the open file.
        head: its first rows, all columns.
        robot: to know how many joints there are and what they are called; None when unknown.

    Raises:
        InputError: the columns cannot be told apart; the message says what to write in a mapping.
    """
    if table.named:
        parsed = [taken_apart(name) for name in table.names]
        groups = named_groups(parsed, head, table.joints, robot)
        clock = named_clock(parsed, preset_of(parsed))
        preset = preset_of(parsed) or (layout.format or "columns by name")
    else:
        groups, clock = unnamed_groups(path, table, head, robot)
        preset = "columns by content"
    if Channel.POSITION not in {g.channel for g in groups}:
        raise InputError(
            path,
            f"no joint positions among the columns {shortened(table.names)}",
            "write a mapping file that names them (docs/logs.md)",
        )
    groups = same_width(path, groups, head)
    joints = next((g.joints for g in groups if g.joints), ())
    channels = tuple(
        ChannelMap(g.channel, g.columns, unit=g.unit if g.unit in UNITS[g.channel] else DEFAULT_UNITS[g.channel])
        for g in groups
    )
    mapping = LogMap({"": FileMap(path, layout)}, channels, clock, joints, name=path.stem, preset=preset)
    return mapping, (guess_note(path, preset, groups, clock),)


def shortened(names: tuple[str, ...], limit: int = 12) -> str:
    return ", ".join(names[:limit]) + (f", ... ({len(names)} in all)" if len(names) > limit else "")


def guess_note(path: Path, preset: str, groups: list[Group], clock: ClockMap) -> Note:
    """States the guess: what was taken for what."""
    parts = [
        f"{g.channel.value} = {g.columns[0]}" + (f"..{g.columns[-1]}" if len(g.columns) > 1 else "")
        + (f" [{g.unit}]" if g.unit else f" [{DEFAULT_UNITS[g.channel]} assumed]")
        for g in groups
    ]  # fmt: skip
    parts.append(f"time = {clock.column} [{clock.unit}]" if clock.column else "no time column")
    return Note("mapping-guess", Severity.INFO, f"read by preset '{preset}': {'; '.join(parts)}", path.name)


PRESET_MARKS = {
    "libfranka": {"tauj", "statetauj", "stateq", "taujd", "dtauj"},
    "rtde": {"actualq", "actualqd", "actualcurrent", "targetmoment"},
    "fri": {
        "msrjntpos",
        "jntposmsr",
        "measuredjointposition",
        "measuredjointpositions",
        "msrjnttrq",
        "axisactmeas",
        "axisact",
    },
}
"""Column words by which each controller's recorder gives itself away."""


def preset_of(parsed: list[ColumnName]) -> str:
    """The controller whose recorder writes such names, or nothing."""
    words = {column.word for column in parsed}
    return next((name for name, marks in PRESET_MARKS.items() if words & marks), "")


def named_clock(parsed: list[ColumnName], preset: str) -> ClockMap:
    """The time column: the first whose word means time, most explicit first."""
    by_word: dict[str, ColumnName] = {}
    for column in parsed:
        if column.index is None:
            by_word.setdefault(column.word, column)
            by_word.setdefault(re.sub(r"[^a-z0-9]", "", column.name.lower().rsplit(".", 1)[-1]), column)
    for word in ("timestamp", "time", "timecont", *TIME_WORDS):
        if word in by_word:
            column = by_word[word]
            nanoseconds = next((by_word[w].name for w in NANOSECOND_WORDS if w in by_word), None)
            unit = column.unit if column.unit in TIME else ("ms" if preset == "libfranka" else "")
            return ClockMap(
                column.name, unit=unit, nanoseconds=nanoseconds if "sec" in word or "stamp" in word else None
            )
    return ClockMap()


def named_groups(parsed: list[ColumnName], head: Table, joints: tuple[str, ...], robot: Robot | None) -> list[Group]:
    """Channels of a file with column names: two-dimensional columns, numbered columns, columns with joint names."""
    found: dict[Channel, Group] = {}
    for group in (
        *wide_groups(parsed, head, joints),
        *joint_named_groups(parsed, head, robot),
        *numbered_groups(parsed, head),
    ):
        found.setdefault(group.channel, group)
    return list(found.values())


def wide_groups(parsed: list[ColumnName], head: Table, joints: tuple[str, ...]) -> list[Group]:
    """Two-dimensional columns, as in npz, .mat, HDF5 and bags."""
    groups = []
    for column in parsed:
        if head[column.name].ndim != 2:
            continue
        bare = taken_apart(column.name.rsplit(".", 1)[-1])
        channel = meaning(column.word) or meaning(bare.word)
        if channel is not None:
            named = joints if len(joints) == head[column.name].shape[1] else ()
            groups.append(Group(channel, (column.name,), column.unit or bare.unit, named))
    return groups


def numbered_groups(parsed: list[ColumnName], head: Table) -> list[Group]:
    """Columns `q1 q2 ...` or `q_0 q_1 ...`, ordered by their number."""
    by_word: dict[str, dict[int, ColumnName]] = {}
    for column in parsed:
        if column.index is not None and head[column.name].ndim == 1:
            by_word.setdefault(column.word, {}).setdefault(column.index, column)
    words = set(by_word)
    groups = []
    for word, members in by_word.items():
        channel = meaning(word) or meaning_of(re.sub(r"\d+[\])}]?\s*$", "", next(iter(members.values())).name))
        if word in ("qd", "cmdqd") and "dq" in words and any("_d" in c.name for c in members.values()):
            # libfranka calls the desired position q_d next to the velocity dq.
            channel = Channel.COMMANDED_POSITION
        numbers = sorted(members)
        if channel is None or numbers != list(range(numbers[0], numbers[0] + len(numbers))) or numbers[0] > 1:
            continue
        groups.append(Group(channel, tuple(members[k].name for k in numbers), members[numbers[0]].unit))
    return groups


def joint_named_groups(parsed: list[ColumnName], head: Table, robot: Robot | None) -> list[Group]:
    """Columns that carry joint names (`joint_a1.position`, `effort_elbow`): matched by name."""
    found: dict[Channel, dict[str, ColumnName]] = {}
    known = sorted(robot.joint_names, key=len, reverse=True) if robot is not None else ()
    for column in parsed:
        if head[column.name].ndim == 1:
            named = by_robot_name(column.name, known) if robot is not None else None
            named = named or by_last_word(column.name)
            if named is not None:
                found.setdefault(named[1], {}).setdefault(named[0], column)
    position = found.get(Channel.POSITION, {})
    if not position:
        return []
    names = tuple(position)
    return [
        Group(channel, tuple(members[name].name for name in names), next(iter(members.values())).unit, names)
        for channel, members in found.items()
        if all(name in members for name in names)
    ]


def by_robot_name(name: str, known: tuple[str, ...] | list[str]) -> tuple[str, Channel] | None:
    """Joint and channel of a column whose name holds a joint name of the robot and a word we know."""
    for joint in known:
        place = re.search(rf"(?<![A-Za-z0-9]){re.escape(joint)}(?![A-Za-z0-9])", name)
        if place:
            rest = taken_apart((name[: place.start()] + name[place.end() :]).strip("_./ -:"))
            channel = meaning(rest.word) or (Channel.POSITION if not rest.word else None)
            return (joint, channel) if channel is not None else None
    return None


def by_last_word(name: str) -> tuple[str, Channel] | None:
    """`elbow.position` -> elbow, position; only for plain words, and names that are not just numbers."""
    place = re.fullmatch(r"(.*?[A-Za-z].*?)[./](position|velocity|effort|torque|current|pos|vel|tau)", name)
    if place is None:
        return None
    channel = meaning(place.group(2))
    return (place.group(1), channel) if channel is not None else None


def same_width(path: Path, groups: list[Group], head: Table) -> list[Group]:
    """The groups as wide as the positions; an incomplete torque must not be mistaken for a whole one."""
    widths = {g.channel: width_of(g, head) for g in groups}
    n = widths[Channel.POSITION]
    wrong = [g.channel for g in groups if widths[g.channel] != n]
    if any(channel.is_torque for channel in wrong):
        channel = next(c for c in wrong if c.is_torque)
        raise InputError(
            path, f"{n} position columns but {widths[channel]} of {channel.value}", "name them in a mapping"
        )
    return [replace(g, joints=g.joints if len(g.joints) == n else ()) for g in groups if widths[g.channel] == n]


def width_of(group: Group, head: Table) -> int:
    return sum(1 if head[name].ndim == 1 else head[name].shape[1] for name in group.columns)


def unnamed_groups(
    path: Path, table: TableFile, head: Mapping[str, FloatArray], robot: Robot | None
) -> tuple[list[Group], ClockMap]:
    """Channels of a file without column names, told apart by what the numbers do.

    Columns come in groups of one per joint: positions first, the velocity is the group that the change of position follows,
    the acceleration the one that the change of velocity follows, torque the first of the rest.
    """
    hint = "write a mapping file that says which columns are which (docs/logs.md)"
    if robot is None:
        raise InputError(path, "columns without names", hint)
    n, count = robot.n_joints, len(table.names)
    values = np.column_stack([head[name] for name in table.names])
    timed = (count - 1) % n == 0 and count > n and increasing(values[:, 0])
    first = 1 if timed else 0
    if (count - first) % n or count - first < n:
        raise InputError(path, f"{count} columns without names do not split into groups of {n} joints", hint)
    blocks = [values[:, first + k * n : first + (k + 1) * n] for k in range((count - first) // n)]
    kinds = block_kinds(blocks)
    groups = [Group(channel, tuple(table.names[first + k * n : first + (k + 1) * n])) for channel, k in kinds.items()]
    return groups, ClockMap(table.names[0], unit="") if timed else ClockMap()


FOLLOWS = 0.8
"""Correlation above which one group is taken for the derivative of another: noise lowers it, a wrong group is near zero."""


def block_kinds(blocks: list[FloatArray]) -> dict[Channel, int]:
    """Which block is which; the first is the position."""
    kinds = {Channel.POSITION: 0}
    rest = list(range(1, len(blocks)))
    for source, target in ((Channel.POSITION, Channel.VELOCITY), (Channel.VELOCITY, Channel.ACCELERATION)):
        if source in kinds and len(rest) > 1:
            score = {k: derivative_correlation(blocks[kinds[source]], blocks[k]) for k in rest}
            best = max(score, key=lambda k: score[k])
            if score[best] > FOLLOWS:
                kinds[target] = best
                rest.remove(best)
    if rest:
        kinds[Channel.LINK_TORQUE] = rest[0]
    return kinds


def derivative_correlation(x: FloatArray, v: FloatArray) -> float:
    """Correlation between the change of x and v at mid-step, over all joints together, so that those that move decide."""
    with np.errstate(all="ignore"):
        return pooled_correlation(x, v)


def pooled_correlation(x: FloatArray, v: FloatArray) -> float:
    """The same; absurd numbers give zero."""
    # Over five samples, so that repeated rows and quantisation do not hide it.
    change = x[5:] - x[:-5]
    kernel = np.ones(6) / 6.0
    mid = np.column_stack([np.convolve(column, kernel, mode="valid") for column in v.T])
    good = np.isfinite(change).all(axis=1) & np.isfinite(mid).all(axis=1)
    if good.sum() < 10:
        return 0.0
    a, b = change[good] - change[good].mean(axis=0), mid[good] - mid[good].mean(axis=0)
    size = float(np.sqrt((a * a).sum() * (b * b).sum()))
    score = float((a * b).sum()) / size if size > 0.0 else 0.0
    return score if np.isfinite(score) else 0.0


def increasing(time: FloatArray) -> bool:
    """Whether a column may be a clock: it rises almost always and never by much less than usual."""
    step = np.diff(time[np.isfinite(time)])
    return len(step) > 0 and bool(np.mean(step > 0.0) > 0.9) and bool(np.median(step) > 0.0)
