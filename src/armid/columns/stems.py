"""Columns whose names say nothing we know, in whatever language: told by what their numbers do.

Names that differ in one number only (`A1_Ist` .. `A6_Ist`) belong together. Such a set is a velocity when it is the derivative of
the positions, and a torque when weight, inertia and friction explain it. It is the positions when another set is its derivative,
or a torque follows the weight it gives. Nothing told in this way is ever called sure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.columns.names import NamedColumn
from armid.columns.physics import derivative_ratio, position_unit, torque_finding
from armid.errors import UnknownNameError
from armid.logs.log import MEASURED_TORQUES, Channel
from armid.logs.units import ANGLE, CURRENT, FORCE, RATE, SHARES
from armid.robot.robot import JointKind, Robot

_HALF = 0.5
"""Share of the joints that must agree."""

_FOLLOWS = 0.6
"""Share of a torque's variance that weight, inertia and friction must explain, in half of the joints."""

_SMOOTH = 0.2
"""Of a joint's travel: positions do not jump by more between two samples."""

_NUMBER = re.compile(r"\d{1,2}")


@dataclass(frozen=True)
class Stem:
    """Columns of one unknown quantity, in the order of their numbers.

    Args:
        pattern: their name with # for the number.
        columns: one per joint.
    """

    pattern: str
    columns: tuple[NamedColumn, ...]

    def values(self, table: Mapping[str, FloatArray]) -> FloatArray:
        """Shape [n, n_joints]."""
        return np.column_stack([table[c.name] for c in self.columns])

    @property
    def channel(self) -> Channel | None:
        """What the unit in their names makes of them; None without one, and for units of more than one quantity."""
        units = {c.unit for c in self.columns}
        if units <= set(RATE):
            return Channel.VELOCITY
        if units <= set(CURRENT) and not units & set(SHARES):
            return Channel.CURRENT
        if units <= set(FORCE):
            return Channel.LINK_TORQUE
        return Channel.POSITION if units <= set(ANGLE) else None

    def as_channel(self, channel: Channel) -> tuple[NamedColumn, ...]:
        """The same columns with a meaning."""
        return tuple(replace(c, channel=channel, number=k + 1, whole=False) for k, c in enumerate(self.columns))


def unknown_stems(named: Sequence[NamedColumn], n_joints: int) -> list[Stem]:
    """Sets of columns without a known quantity whose names differ in one number, counted from 0 or 1 without a gap."""
    found: dict[str, dict[int, NamedColumn]] = {}
    for column in named:
        if column.channel is not None or column.clock:
            continue
        for match in _NUMBER.finditer(column.name):
            pattern = column.name[: match.start()] + "#" + column.name[match.end() :]
            found.setdefault(pattern, {})[int(match.group())] = column
    return [
        Stem(pattern, tuple(column for _, column in sorted(numbered.items())))
        for pattern, numbered in found.items()
        if len(numbered) == n_joints and sorted(numbered) in (list(range(n_joints)), list(range(1, n_joints + 1)))
    ]


class NumbersTold:
    """Meanings found by numbers alone.

    Args:
        robot: its ranges and masses.
        table: columns one by one.
        time: [s]; None without a clock.
        torque: pattern of the set that somebody said is the torque; empty when nobody did.
    """

    def __init__(
        self, robot: Robot, table: Mapping[str, FloatArray], time: FloatArray | None, *, torque: str = ""
    ) -> None:
        self.robot, self.table, self.time, self.torque = robot, table, time, torque
        self.rivals: tuple[str, ...] = ()
        """Patterns of all sets that could be the torque, when there is more than one."""
        self.unproven = ""
        """Pattern of positions for which nothing speaks but that no other columns could be they."""

    def named(
        self, groups: Mapping[Channel, Sequence[NamedColumn]], stems: Sequence[Stem]
    ) -> dict[Channel, tuple[NamedColumn, ...]]:
        """Channels that have no columns by name yet."""
        left, out = list(stems), dict[Channel, tuple[NamedColumn, ...]]()
        for channel in (Channel.POSITION, Channel.VELOCITY, Channel.LINK_TORQUE, Channel.CURRENT):
            # A unit that one set alone has says what it is.
            alone = [stem for stem in left if stem.channel is channel]
            if channel not in groups and len(alone) == 1:
                out[channel] = alone[0].as_channel(channel)
                left.remove(alone[0])
        groups = {**groups, **out}
        torque = next((tuple(columns) for c, columns in groups.items() if c.is_torque), None)
        position = groups.get(Channel.POSITION)
        if position is None:
            chosen = self._position(left, groups.get(Channel.VELOCITY), torque)
            if chosen is None:
                return out
            left.remove(chosen)
            out[Channel.POSITION] = position = chosen.as_channel(Channel.POSITION)
        q = np.column_stack([self.table[c.name] for c in position])
        if Channel.VELOCITY not in groups:
            velocity = next((stem for stem in left if self._is_derivative(q, stem.values(self.table))), None)
            if velocity is not None:
                left.remove(velocity)
                out[Channel.VELOCITY] = velocity.as_channel(Channel.VELOCITY)
        if torque is None and left:
            out |= self._torque(q, [stem for stem in left if stem.channel in (None, *MEASURED_TORQUES)])
        return out

    def _position(
        self, stems: Sequence[Stem], velocity: Sequence[NamedColumn] | None, torque: Sequence[NamedColumn] | None
    ) -> Stem | None:
        """The set that another one is the derivative of, or whose weight a torque follows; None when several could be."""
        fitting = []
        for stem in stems:
            q = stem.values(self.table)
            others = [other.values(self.table) for other in stems if other is not stem]
            if any(self._is_derivative(other, q) for other in others):
                continue
            rates = others if velocity is None else [_values(self.table, velocity)]
            efforts = others if torque is None else [_values(self.table, torque)]
            if any(self._is_derivative(q, x) for x in rates) or any(self._follows(q, x) > _FOLLOWS for x in efforts):
                fitting.append(stem)
        if fitting:
            return fitting[0] if len(fitting) == 1 else None
        possible = [stem for stem in stems if stem.channel is None and self._within_range(stem.values(self.table))]
        if len(possible) != 1:
            return None
        self.unproven = possible[0].pattern
        return possible[0]

    def _within_range(self, q: FloatArray) -> bool:
        """Whether every joint would move, smoothly, where it can: in radians or metres, or in degrees or millimetres."""
        steps = np.abs(np.diff(q, axis=0)).max(axis=0)
        travel = np.ptp(q, axis=0)
        smooth = bool((travel > 0.0).all() and (steps < _SMOOTH * travel).all())
        limits = [max(abs(joint.limits.lower), abs(joint.limits.upper)) for joint in self.robot.joints]
        large = [ANGLE["deg" if joint.kind is JointKind.REVOLUTE else "mm"] for joint in self.robot.joints]
        return smooth and bool(
            (np.abs(q).max(axis=0) * large <= np.where(np.isfinite(limits), limits, 2 * np.pi)).all()
        )

    def _torque(self, q: FloatArray, stems: Sequence[Stem]) -> dict[Channel, tuple[NamedColumn, ...]]:
        """The set that weight, inertia and friction explain best."""
        if self.torque:
            if self.torque not in (stem.pattern for stem in stems):
                raise UnknownNameError("answer torque", self.torque, [stem.pattern for stem in stems])
            stems = [stem for stem in stems if stem.pattern == self.torque]
        scores = {stem.pattern: self._follows(q, stem.values(self.table)) for stem in stems}
        fitting = sorted(
            (s for s in stems if self.torque or scores[s.pattern] > _FOLLOWS), key=lambda s: -scores[s.pattern]
        )
        if not fitting:
            return {}
        if len(fitting) > 1:
            self.rivals = tuple(stem.pattern for stem in fitting)
        channel = Channel.CURRENT if fitting[0].columns[0].unit in CURRENT else Channel.LINK_TORQUE
        return {channel: fitting[0].as_channel(channel)}

    def _is_derivative(self, x: FloatArray, v: FloatArray) -> bool:
        """Whether, in half of the joints or more, one is the other's rate."""
        if self.time is None:
            return False
        ratios = [derivative_ratio(x[:, j], v[:, j], self.time) for j in range(x.shape[1])]
        return sum(r is not None and r > 0.0 for r in ratios) > _HALF * len(ratios)

    def _follows(self, q: FloatArray, torque: FloatArray) -> float:
        """Share of the torque's variance that the description explains, in the median joint, in the better unit of angles."""
        if any(link.inertial is None for link in self.robot.links):
            return 0.0
        best = 0.0
        for unit in ("rad", "deg"):
            if unit == "rad" and any(position_unit(q[:, j], self.robot, j).unit == "deg" for j in range(q.shape[1])):
                continue
            factor = [ANGLE[unit] if joint.kind is JointKind.REVOLUTE else 1.0 for joint in self.robot.joints]
            finding = torque_finding(self.robot, q * factor, self.time, torque)
            weighed = np.isfinite(finding.scale).mean()
            best = max(best, float(np.median(finding.explained)) if weighed > _HALF else 0.0)
        return best


def _values(table: Mapping[str, FloatArray], columns: Sequence[NamedColumn]) -> FloatArray:
    return np.column_stack([table[c.name] for c in columns])
