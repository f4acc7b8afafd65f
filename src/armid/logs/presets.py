"""Mappings filled in from what a file says about itself; every guess is a note."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from armid.errors import UnknownColumnsError
from armid.logs.content import unnamed_groups
from armid.logs.groups import Group, same_width
from armid.logs.log import Channel
from armid.logs.mapping import DEFAULT_UNITS, ChannelMap, ClockMap, FileMap, LogMap
from armid.logs.readers.table import Layout, Table, TableFile
from armid.logs.units import TIME, UNITS
from armid.logs.vocabulary import CLOCK_UNITS, UNIT_OF_WORD, ClockName, ColumnName, clock_name, meaning, taken_apart
from armid.notes import Note, Severity
from armid.robot.robot import Robot


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
        groups = _named_groups(parsed, head, table.joints, robot)
        clock = _named_clock(parsed)
        preset = _preset_of(parsed) or (layout.format or "columns by name")
        groups = _angle_units(groups, head, preset)
    else:
        groups, clock = unnamed_groups(path, table, head, robot)
        preset = "columns by content"
    if Channel.POSITION not in {g.channel for g in groups}:
        raise UnknownColumnsError(
            path,
            f"no joint positions among the columns {_shortened(table.names)}{_wanted(robot)}",
            f"`armid map ROBOT {path}` drafts a mapping file that names them (docs/logs.md)",
        )
    groups = same_width(path, groups, head)
    joints = next((g.joints for g in groups if g.joints), ()) or table.joints
    channels = tuple(
        ChannelMap(
            channel=g.channel,
            columns=g.columns,
            unit=g.unit if g.unit in UNITS[g.channel] else DEFAULT_UNITS[g.channel],
        )
        for g in groups
    )
    mapping = LogMap(
        files={"": FileMap(path, layout)}, channels=channels, clock=clock, joints=joints, name=path.stem, preset=preset
    )
    return mapping, (_guess_note(path, preset, groups, clock),)


_BEYOND_RADIANS = 3.3
"""[rad] No joint of an LBR turns further than 175 degrees (3.05 rad) from its zero."""


def _angle_units(groups: list[Group], head: Table, preset: str) -> list[Group]:
    """Angles of a Sunrise recording with their unit: whoever starts the recorder chooses degrees or radians, and the file
    does not say which.
    """
    position = next((g for g in groups if g.channel is Channel.POSITION and not g.unit), None)
    if preset != "sunrise" or position is None:
        return groups
    reach = max((float(np.nanmax(np.abs(head[name]), initial=0.0)) for name in position.columns), default=0.0)
    unit = "deg" if _BEYOND_RADIANS < reach < np.inf else "rad"
    angles = (Channel.POSITION, Channel.COMMANDED_POSITION)
    return [replace(g, unit=unit) if g.channel in angles and not g.unit else g for g in groups]


def _wanted(robot: Robot | None) -> str:
    """The joints that are looked for, for a message."""
    return "" if robot is None else f" for the joints {_shortened(robot.joint_names)} of {robot.name}"


def _shortened(names: tuple[str, ...], limit: int = 12) -> str:
    return ", ".join(names[:limit]) + (f", ... ({len(names)} in all)" if len(names) > limit else "")


def _guess_note(path: Path, preset: str, groups: list[Group], clock: ClockMap) -> Note:
    """States the guess: what was taken for what."""
    parts = [
        f"{g.channel.value} = {g.columns[0]}"
        + (f"..{g.columns[-1]}" if len(g.columns) > 1 else "")
        + (f" [{g.unit}]" if g.unit else f" [{DEFAULT_UNITS[g.channel]} assumed]")
        for g in groups
    ]
    fraction = f" + {clock.nanoseconds} [ns]" if clock.nanoseconds else ""
    parts.append(
        f"time = {clock.column} [{clock.unit or 'unit guessed'}]{fraction}" if clock.column else "no time column"
    )
    return Note("mapping-guess", Severity.INFO, f"read by preset '{preset}': {'; '.join(parts)}", path.name)


_PRESET_MARKS = {
    "libfranka": {"tauj", "statetauj", "taujd", "dtauj", "successrate"},
    "rtde": {"actualq", "actualqd", "actualcurrent", "targetmoment"},
    "sunrise": {"zeitinsec", "axisqmsr", "axistaumsr", "axisqcmdt1m"},
    "krl": {"axisact", "axisactmeas", "torqueaxisact", "aipos", "macur", "ipoc"},
    "fri": {
        "msrjntpos",
        "jntposmsr",
        "measuredjointposition",
        "measuredjointpositions",
        "jointpositionmeasured",
        "msrjnttrq",
    },
}
"""Column words by which each controller's recorder gives itself away. KUKA has three: the data recorder of Sunrise, variables of
KRL (trace, RSI), and FRI clients."""


def _preset_of(parsed: list[ColumnName]) -> str:
    """The controller whose recorder writes such names, or nothing."""
    words = {word for column in parsed for word in column.path}
    return next((name for name, marks in _PRESET_MARKS.items() if words & marks), "")


_CLOCK_ORDER = ("timestamp", "time", "timecont", "t")
"""Names of a clock, most explicit first; any other comes after these."""


def _named_clock(parsed: list[ColumnName]) -> ClockMap:
    """The time column, and the column of nanoseconds that goes with it when time is kept in two."""
    found = [clock for column in parsed if (clock := clock_name(column)) is not None]
    whole = [clock for clock in found if not clock.nanoseconds] or found
    if not whole:
        return ClockMap()
    order = {word: k for k, word in enumerate(_CLOCK_ORDER)}
    best = min(whole, key=lambda clock: order.get("".join(clock.stem), len(order)))
    pair = next((c.column.name for c in found if c.nanoseconds and c is not best and c.stem == best.stem), None)
    return ClockMap(column=best.column.name, unit="s" if pair else _clock_unit(best), nanoseconds=pair)


def _clock_unit(clock: ClockName) -> str:
    """The unit a clock's name gives; empty to find it out from the numbers."""
    if clock.nanoseconds:
        return "ns"
    if clock.column.unit in TIME:
        return clock.column.unit
    return next((CLOCK_UNITS[word] for word in clock.stem if word in CLOCK_UNITS), "")


def _named_groups(parsed: list[ColumnName], head: Table, joints: tuple[str, ...], robot: Robot | None) -> list[Group]:
    """Channels of a file with column names: two-dimensional columns, numbered columns, columns with joint names."""
    found: dict[Channel, Group] = {}
    for group in (
        *_wide_groups(parsed, head, joints),
        *_joint_named_groups(parsed, head, robot),
        *_numbered_groups(parsed, head),
    ):
        found.setdefault(group.channel, group)
    return list(found.values())


def _wide_groups(parsed: list[ColumnName], head: Table, joints: tuple[str, ...]) -> list[Group]:
    """Two-dimensional columns, as in npz, .mat, HDF5 and bags."""
    groups = []
    for column in parsed:
        if head[column.name].ndim != 2:
            continue
        channel = meaning(column)
        if channel is not None:
            named = joints if len(joints) == head[column.name].shape[1] else ()
            groups.append(Group(channel, (column.name,), _unit_of(column), named))
    return groups


def _numbered_groups(parsed: list[ColumnName], head: Table) -> list[Group]:
    """Columns `q1 q2 ...` or `q_0 q_1 ...`, ordered by their number."""
    by_word: dict[str, dict[int, ColumnName]] = {}
    for column in parsed:
        if column.index is not None and head[column.name].ndim == 1:
            by_word.setdefault(column.word, {}).setdefault(column.index, column)
    words = set(by_word)
    groups = []
    for word, members in by_word.items():
        channel = meaning(next(iter(members.values())))
        if word in ("qd", "cmdqd") and "dq" in words and any("_d" in c.name for c in members.values()):
            # libfranka calls the desired position q_d next to the velocity dq.
            channel = Channel.COMMANDED_POSITION
        numbers = sorted(members)
        if channel is None or numbers != list(range(numbers[0], numbers[0] + len(numbers))) or numbers[0] > 1:
            continue
        groups.append(Group(channel, tuple(members[k].name for k in numbers), _unit_of(members[numbers[0]])))
    return groups


def _unit_of(column: ColumnName) -> str:
    """The unit a name states, or the one its recorder always uses."""
    return column.unit or next((UNIT_OF_WORD[word] for word in column.path if word in UNIT_OF_WORD), "")


def _joint_named_groups(parsed: list[ColumnName], head: Table, robot: Robot | None) -> list[Group]:
    """Columns that carry joint names (`joint_a1.position`, `effort_elbow`): matched by name."""
    found: dict[Channel, dict[str, ColumnName]] = {}
    known = sorted(robot.joint_names, key=len, reverse=True) if robot is not None else ()
    for column in parsed:
        if head[column.name].ndim == 1:
            named = _by_robot_name(column.name, known) if robot is not None else None
            named = named or _by_last_word(column.name)
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


def _by_robot_name(name: str, known: tuple[str, ...] | list[str]) -> tuple[str, Channel] | None:
    """Joint and channel of a column whose name holds a joint name of the robot and a word we know."""
    for joint in known:
        place = re.search(rf"(?<![A-Za-z0-9]){re.escape(joint)}(?![A-Za-z0-9])", name)
        if place:
            rest = taken_apart((name[: place.start()] + name[place.end() :]).strip("_./ -:"))
            channel = meaning(rest) or (Channel.POSITION if not rest.word else None)
            return (joint, channel) if channel is not None else None
    return None


def _by_last_word(name: str) -> tuple[str, Channel] | None:
    """`elbow.position` -> elbow, position; only for plain words, and names that are not just numbers."""
    place = re.fullmatch(r"(.*?[A-Za-z].*?)[./](position|velocity|effort|torque|current|pos|vel|tau)", name)
    if place is None:
        return None
    channel = meaning(taken_apart(place.group(2)))
    return (place.group(1), channel) if channel is not None else None
