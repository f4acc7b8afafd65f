"""Columns that belong together: one per joint."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from armid.errors import InputError
from armid.logs.log import Channel
from armid.logs.readers.table import Table


@dataclass(frozen=True, slots=True)
class Group:
    """Columns that make up one channel, in joint order."""

    channel: Channel
    columns: tuple[str, ...]
    unit: str = ""
    joints: tuple[str, ...] = ()


def same_width(path: Path, groups: list[Group], head: Table) -> list[Group]:
    """The groups as wide as the positions; an incomplete torque must not be mistaken for a whole one."""
    widths = {g.channel: _width_of(g, head) for g in groups}
    n = widths[Channel.POSITION]
    wrong = [g.channel for g in groups if widths[g.channel] != n]
    if any(channel.is_torque for channel in wrong):
        channel = next(c for c in wrong if c.is_torque)
        raise InputError(
            path, f"{n} position columns but {widths[channel]} of {channel.value}", "name them in a mapping"
        )
    return [replace(g, joints=g.joints if len(g.joints) == n else ()) for g in groups if widths[g.channel] == n]


def _width_of(group: Group, head: Table) -> int:
    return sum(1 if head[name].ndim == 1 else head[name].shape[1] for name in group.columns)
