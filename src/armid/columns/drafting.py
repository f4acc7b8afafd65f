"""From names and numbers to readings, channel by channel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from armid.arrays import FloatArray
from armid.columns.long_table import JOINT_WORDS
from armid.columns.names import NamedColumn
from armid.columns.physics import RATIO_MARGIN, clock_unit, derivative_ratio, is_clock, position_unit, torque_finding
from armid.columns.readings import Certainty, ColumnReading, Question
from armid.columns.stems import NumbersTold, unknown_stems
from armid.errors import InputError, UnknownNameError
from armid.logs.log import MEASURED_TORQUES, Channel
from armid.logs.mapping import TORQUE_SIDES
from armid.logs.units import ANGLE, CHANGE, FORCE, RATE, SHARES, TIME, UNITS
from armid.page import Table as PageTable
from armid.robot.robot import JointKind, Robot

_SHOWN_ROWS = 3

_FEWEST_ROWS = 200
"""Below these torque and weight are not compared."""

_KNOWN_ANSWERS = (
    *("side", "rated", "position", "torque", "sign.torque"),
    *("unit.position", "unit.velocity", "unit.torque", "unit.time"),
)


_OWN_UNITS = {
    Channel.POSITION: {JointKind.REVOLUTE: ("rad", "deg", "mrad", "rev"), JointKind.PRISMATIC: ("m", "mm")},
    Channel.VELOCITY: {JointKind.REVOLUTE: ("rad/s", "deg/s", "rpm"), JointKind.PRISMATIC: ("m/s", "mm/s")},
    Channel.LINK_TORQUE: {JointKind.REVOLUTE: ("Nm", "mNm", "kNm", "Ncm"), JointKind.PRISMATIC: ("N", "kN")},
}
"""Units by which a joint that turns and one that slides are told apart."""


class Drafting:
    """One draft in the making: the table, what is known of it, and the questions so far.

    Args:
        robot: whose recording it is.
        path: of the file, for messages.
        table: its first rows, columns one by one.
        named: what their names say.
        answers: to questions of an earlier draft.
    """

    def __init__(
        self,
        robot: Robot,
        path: Path,
        table: dict[str, FloatArray],
        named: Sequence[NamedColumn],
        answers: dict[str, str | Sequence[float]],
    ) -> None:
        for key in answers:
            if key not in _KNOWN_ANSWERS:
                raise UnknownNameError("answer", key, _KNOWN_ANSWERS)
        self.robot, self.path, self.table, self.named, self.answers = robot, path, table, named, answers
        self.questions: list[Question] = []
        self.against: tuple[str, ...] = ()
        """Joints whose torque goes against weight and inertia."""

    def readings(self) -> tuple[list[ColumnReading], str]:
        """Every column that was understood, and the side of the torque.

        Raises:
            InputError: no position of every joint; lists the columns.
        """
        clock = self._clock()
        time = None if clock is None else self.table[clock.column] * TIME[clock.unit]
        groups = self._groups({clock.column} if clock else set())
        groups |= self._by_numbers(groups, time)
        if Channel.POSITION not in groups:
            raise self._no_positions()
        readings = [] if clock is None else [clock]
        torque = next((c for c in MEASURED_TORQUES if c in groups), None)
        positions = self._positions(
            groups.pop(Channel.POSITION), groups.get(Channel.VELOCITY), groups[torque] if torque else None, time
        )
        readings += positions
        q = np.column_stack([self.table[r.column] * ANGLE[r.unit] for r in positions])
        for channel, kinds in ((Channel.VELOCITY, RATE), (Channel.ACCELERATION, CHANGE)):
            if channel in groups:
                readings += self._derivatives(channel, groups.pop(channel), kinds, readings, time)
        side = ""
        if torque is not None:
            found, side = self._torques(torque, groups.pop(torque), q, time)
            readings += found
        for channel, columns in groups.items():
            readings += self._plain(channel, columns)
        return readings, side

    def _clock(self) -> ColumnReading | None:
        """The time column with its unit."""
        named = [c for c in self.named if c.clock and is_clock(self.table[c.name])]
        silent = [c for c in self.named if c.channel is None and c.number is None and is_clock(self.table[c.name])]
        column = next(iter(named or silent), None)
        if column is None:
            return None
        found = clock_unit(self.table[column.name])
        stated = str(self.answers.get("unit.time", "")) or column.unit
        unit = stated if stated in TIME else found.unit
        if not unit:
            self._ask("unit.time", f"in what unit is {column.name!r}? {found.why}", tuple(TIME), "s")
            unit = "s"
        agrees = bool(found.unit) and found.unit == unit
        certainty = Certainty.SURE if named and (agrees or stated) else Certainty.LIKELY
        why = f"rises evenly; {found.why}" + (f"; its name says {stated}" if stated else "")
        return ColumnReading(column=column.name, channel=None, joint="", unit=unit, certainty=certainty, why=why)

    def _groups(self, taken: set[str]) -> dict[Channel, list[NamedColumn]]:
        """Columns of every channel in the robot's order; channels without one for every joint are left out."""
        n = self.robot.n_joints
        by_channel: dict[Channel, list[NamedColumn]] = {}
        for column in self.named:
            if column.channel is not None and column.name not in taken:
                by_channel.setdefault(column.channel, []).append(column)
        out = {}
        for channel, columns in by_channel.items():
            ordered = _in_order(columns, self.robot.joint_names)
            if ordered is not None and len(ordered) == n:
                out[channel] = ordered
        return out | self._by_units(out, taken)

    def _by_units(self, found: Mapping[Channel, object], taken: set[str]) -> dict[Channel, list[NamedColumn]]:
        """Of an arm that turns and slides: columns that a number and a unit of the joint's own kind give to it (`d2 [mm]`)."""
        joints = self.robot.joints
        out: dict[Channel, list[NamedColumn]] = {}
        if len({joint.kind for joint in joints}) == 1:
            return out
        for channel, of_kind in _OWN_UNITS.items():
            if channel in found:
                continue
            fitting = [
                [
                    column
                    for column in self.named
                    if column.number == j + 1
                    and column.unit in of_kind[joint.kind]
                    and column.channel in (None, channel)
                    and column.name not in taken
                ]
                for j, joint in enumerate(joints)
            ]
            if all(len(columns) == 1 for columns in fitting):
                out[channel] = [replace(columns[0], channel=channel, whole=False) for columns in fitting]
        return out

    def _by_numbers(
        self, groups: Mapping[Channel, list[NamedColumn]], time: FloatArray | None
    ) -> dict[Channel, list[NamedColumn]]:
        """Channels whose names say nothing, by what their numbers do."""
        told = NumbersTold(self.robot, self.table, time, torque=str(self.answers.get("torque", "")))
        found = told.named(groups, unknown_stems(self.named, self.robot.n_joints))
        if told.unproven and "position" not in self.answers:
            text = f"are {told.unproven} the positions? No other columns could be, but nothing else says so."
            self._ask("position", text, (told.unproven,), told.unproven)
        if told.rivals:
            text = f"which columns are torque? {', '.join(told.rivals)} all follow weight and inertia."
            self._ask("torque", text, told.rivals, told.rivals[0])
        return {channel: list(columns) for channel, columns in found.items()}

    def _no_positions(self) -> InputError:
        """What is there instead of a position for every joint."""
        count = sum(c.channel is Channel.POSITION for c in self.named)
        n = self.robot.n_joints
        there = f"{count} columns of position for {n} joints" if count else "no column for every joint's position"
        hint = "name them in a mapping by hand (docs/logs.md)"
        if count == 1 and n > 1 and any(c.name.lower() in JOINT_WORDS for c in self.named):
            hint = (
                "a row for every joint is not read: one row per instant, a column per joint (pandas: DataFrame.pivot)"
            )
        return InputError(self.path, f"{there} among {', '.join(list(self.table)[:20])}", hint)

    def _positions(
        self,
        columns: list[NamedColumn],
        velocities: list[NamedColumn] | None,
        torques: list[NamedColumn] | None,
        time: FloatArray | None,
    ) -> list[ColumnReading]:
        """Units of positions: stated, by range, by a velocity whose unit is stated, or by the weight that torque carries."""
        findings = [position_unit(self.table[c.name], self.robot, j) for j, c in enumerate(columns)]
        turning = [j for j, joint in enumerate(self.robot.joints) if joint.kind is JointKind.REVOLUTE]
        # One recorder writes all its angles alike: a joint that goes beyond its range in radians decides for those that do not.
        settled = next((findings[j].unit for j in turning if findings[j].unit), "")
        weighed = "" if settled else self._by_weight(columns, torques, turning, time)
        stated = str(self.answers.get("unit.position", ""))
        readings = []
        for j, column in enumerate(columns):
            small, large = ("rad", "deg") if j in turning else ("m", "mm")
            own = findings[j].unit or ((settled or weighed) if j in turning else "")
            by_velocity = self._by_velocity(column, velocities[j] if velocities else None, time, (small, large))
            unit = (stated if j in turning else "") or column.unit or own or by_velocity
            if unit not in ANGLE:
                self._ask(
                    "unit.position",
                    f"are positions in {small} or {large}? {column.name!r} {findings[j].why}",
                    (small, large),
                    small,
                )
                unit = small
                certainty, why = Certainty.OPEN, findings[j].why
            else:
                says = [f"its name says {column.unit}"] if column.unit else []
                says += [findings[j].why] if findings[j].unit else []
                says += ["like the other angles"] if settled and not findings[j].unit and j in turning else []
                says += [f"torque follows the weight in {weighed}"] if weighed and j in turning else []
                says += [f"its velocity agrees with {by_velocity}"] if by_velocity else []
                agree = {u for u in (column.unit, findings[j].unit, by_velocity, stated) if u}
                contradicted = len(agree) > 1
                if contradicted and not stated:
                    text = f"{column.name!r}: {'; '.join(says)}. Which is right?"
                    self._ask("unit.position", text, (small, large), unit)
                sure = not contradicted and (len(says) > 1 or bool(findings[j].unit or weighed or stated))
                certainty = (
                    Certainty.OPEN if contradicted and not stated else Certainty.SURE if sure else Certainty.LIKELY
                )
                why = "; ".join(says) or "as you said"
            readings.append(self._reading(column, Channel.POSITION, j, unit, certainty, why))
        return readings

    def _by_weight(
        self,
        columns: list[NamedColumn],
        torques: list[NamedColumn] | None,
        turning: list[int],
        time: FloatArray | None,
    ) -> str:
        """The unit of angles in which torque follows weight and inertia clearly better; empty when neither does."""
        if torques is None or not self._weighs():
            return ""
        raw = np.column_stack([self.table[c.name] for c in columns])
        torque = np.column_stack([self.table[c.name] for c in torques])
        rad, deg = (
            torque_finding(
                self.robot, raw * np.where(np.isin(np.arange(len(columns)), turning), ANGLE[u], 1.0), time, torque
            )
            for u in ("rad", "deg")
        )
        if rad.clearly_better_than(deg):
            return "rad"
        return "deg" if deg.clearly_better_than(rad) else ""

    def _weighs(self) -> bool:
        """Whether the description has masses, and the table enough rows to compare."""
        rows = len(next(iter(self.table.values())))
        return rows > _FEWEST_ROWS and all(link.inertial is not None for link in self.robot.links)

    def _by_velocity(
        self, column: NamedColumn, velocity: NamedColumn | None, time: FloatArray | None, options: tuple[str, str]
    ) -> str:
        """The unit of a position whose velocity's unit is stated; empty when that does not decide."""
        if velocity is None or time is None or velocity.unit not in RATE:
            return ""
        for unit in options:
            ratio = derivative_ratio(self.table[column.name] * ANGLE[unit], self.table[velocity.name], time)
            if ratio is not None and 1.0 / RATIO_MARGIN < ratio / RATE[velocity.unit] < RATIO_MARGIN:
                return unit
        return ""

    def _derivatives(
        self,
        channel: Channel,
        columns: list[NamedColumn],
        units: Mapping[str, float],
        readings: Sequence[ColumnReading],
        time: FloatArray | None,
    ) -> list[ColumnReading]:
        """Units of velocities or accelerations: what makes them the derivative of what came before."""
        before = Channel.POSITION if channel is Channel.VELOCITY else Channel.VELOCITY
        sources = {r.joint: r for r in readings if r.channel is before}
        table = ANGLE if before is Channel.POSITION else RATE
        stated = str(self.answers.get("unit.velocity", "")) if channel is Channel.VELOCITY else ""
        found: list[tuple[str, str]] = []
        for j, column in enumerate(columns):
            source = sources.get(self.robot.joint_names[j])
            ratio = None
            if source is not None and time is not None:
                ratio = derivative_ratio(self.table[source.column] * table[source.unit], self.table[column.name], time)
            turning = self.robot.joints[j].kind is JointKind.REVOLUTE
            fitting = [u for u, f in units.items() if ratio is not None and _close(ratio, f) and _turns(u) == turning]
            unit = fitting[0] if fitting else ""
            why = "" if ratio is None else f"{1.0 / ratio:.4g} per {before.value} in SI units per second"
            found.append((unit, why))
        usual = next((unit for unit, _ in found if unit and _turns(unit)), "")
        out = []
        for j, column in enumerate(columns):
            unit, why = found[j]
            turning = self.robot.joints[j].kind is JointKind.REVOLUTE
            default = ("rad" if turning else "m") + ("/s" if channel is Channel.VELOCITY else "/s^2")
            # A name that ends like the unit of something else says nothing: the numbers do.
            named = column.unit if column.unit in units else ""
            own = stated or named or unit or (usual if turning else "")
            if own not in units:
                if channel is Channel.VELOCITY:
                    self._ask(
                        "unit.velocity",
                        f"in what unit is {column.name!r}? It does not follow the position.",
                        tuple(units),
                        default,
                    )
                out.append(self._reading(column, channel, j, default, Certainty.OPEN, "does not follow the position"))
                continue
            sure = bool(unit) and unit == own
            says = f"its name says {named}; " if named else ""
            because = (
                f"{says}is the derivative of the {before.value}"
                if sure
                else f"{says or 'like the others; '}the joint hardly moves"
            )
            certainty = Certainty.SURE if sure else Certainty.LIKELY
            if unit and unit != own and not stated:
                certainty, because = (
                    Certainty.OPEN,
                    f"its name says {own}, the derivative of the {before.value} says {unit} ({why})",
                )
                self._ask("unit.velocity", f"{column.name!r}: {because}", (own, unit), own)
            out.append(self._reading(column, channel, j, own, certainty, because))
        return out

    def _torques(
        self, channel: Channel, columns: list[NamedColumn], q: FloatArray, time: FloatArray | None
    ) -> tuple[list[ColumnReading], str]:
        """Units and side of the torque; its scale against the description's weight is said."""
        values = np.column_stack([self.table[c.name] for c in columns])
        scale = np.full(self.robot.n_joints, np.nan)
        if self._weighs():
            scale = torque_finding(self.robot, q, time, values).scale
        typical = float(np.nanmedian(np.abs(scale))) if np.isfinite(scale).any() else np.nan
        said = next((c.unit for c in columns if c.unit), "") or str(self.answers.get("unit.torque", ""))
        unit = said or _unit_of_scale(typical)
        side = str(self.answers.get("side", "")) or next(word for word, c in TORQUE_SIDES.items() if c is channel)
        if side not in TORQUE_SIDES:
            raise UnknownNameError("answer side", side, TORQUE_SIDES)
        channel = TORQUE_SIDES[side]
        self._ask_sign(scale)
        weighed = (
            f"weight and inertia of the description ask for {typical:.3g} N m per unit" if np.isfinite(typical) else ""
        )
        if unit in SHARES and channel is not Channel.CURRENT and "rated" not in self.answers:
            guess = ", ".join("?" if not np.isfinite(s) else f"{abs(s) / FORCE[unit]:.3g}" for s in scale)
            self._ask(
                "rated",
                f"torque is in {unit}: of what rated torque [N m] in each joint? The description asks for about {guess}.",
                (),
                "side: current, with an unknown gain in each joint",
            )
            channel, side = Channel.CURRENT, "current"
        elif channel is Channel.LINK_TORQUE and "side" not in self.answers:
            self._ask(
                "side", "is torque measured behind the gears (link) or before them (motor)?", ("link", "motor"), "link"
            )
        default = "A" if channel is Channel.CURRENT else "Nm"
        if unit not in UNITS[channel]:
            self._ask(
                "unit.torque",
                f"in what unit is torque? {weighed or 'The numbers do not say.'}",
                tuple(UNITS[channel]),
                default,
            )
            unit, certainty = default, Certainty.OPEN
        else:
            expected = FORCE.get(unit, np.nan)
            agrees = unit in SHARES or (np.isfinite(typical) and 0.5 < typical / expected < 2.0)
            certainty = Certainty.SURE if said and agrees else Certainty.LIKELY
        why = "; ".join(part for part in (f"its name says {said}" if said else "", weighed) if part) or "the name"
        return [self._reading(c, channel, j, unit, certainty, why) for j, c in enumerate(columns)], side

    def _ask_sign(self, scale: FloatArray) -> None:
        """Asks when torque goes against weight and inertia: some drives count the other way."""
        self.against = tuple(name for name, s in zip(self.robot.joint_names, scale, strict=True) if s < 0.0)
        if self.against and not np.any(scale > 0.0):
            self.against = self.robot.joint_names  # one recorder counts all joints alike
        if not self.against or "sign.torque" in self.answers:
            return
        text = f"torque of {', '.join(self.against)} goes against weight and inertia: is it counted the other way?"
        self._ask("sign.torque", text, ("as recorded", "reversed"), "as recorded")

    def signs(self) -> tuple[float, ...]:
        """Of the torque, one per joint: -1 where it goes against weight and somebody said that it is counted the other way."""
        words = ("as recorded", "reversed")
        said = str(self.answers.get("sign.torque", words[0]))
        if said not in words:
            raise UnknownNameError("answer sign.torque", said, words)
        return tuple(-1.0 if said == words[1] and name in self.against else 1.0 for name in self.robot.joint_names)

    def _plain(self, channel: Channel, columns: list[NamedColumn]) -> list[ColumnReading]:
        """Channels that need no more than their unit; those without a known one are left out."""
        position = {"position.commanded", "position.motor"}
        default = {"temperature": "degC", "torque.external": "Nm"}.get(
            channel.value, "rad" if channel.value in position else ""
        )
        out = []
        for j, column in enumerate(columns):
            unit = column.unit if column.unit in UNITS[channel] else ""
            if channel.value in position and not unit:
                unit = position_unit(self.table[column.name], self.robot, j).unit
            unit = unit or default
            if not unit:
                return []
            why = f"its name says {column.unit}" if column.unit else "the name"
            out.append(self._reading(column, channel, j, unit, Certainty.LIKELY, why))
        return out

    def rated(self) -> tuple[float, ...]:
        """Rated torques somebody stated, one per joint."""
        given = self.answers.get("rated")
        if given is None:
            return ()
        try:
            values = tuple(float(x) for x in (given.split(",") if isinstance(given, str) else given))
        except ValueError:
            values = ()
        if len(values) not in (1, self.robot.n_joints) or not all(np.isfinite(values)) or min(values) <= 0.0:
            raise InputError(
                "rated", f"{given!r}", f"one positive torque [N m] for each of {self.robot.n_joints} joints"
            )
        return values

    def _reading(
        self, column: NamedColumn, channel: Channel, joint: int, unit: str, certainty: Certainty, why: str
    ) -> ColumnReading:
        if not column.whole and certainty is Certainty.SURE:
            certainty = Certainty.LIKELY
        name = self.robot.joint_names[joint]
        return ColumnReading(column=column.name, channel=channel, joint=name, unit=unit, certainty=certainty, why=why)

    def _ask(self, key: str, text: str, choices: tuple[str, ...], assumed: str) -> None:
        if not any(q.key == key for q in self.questions):
            self.questions.append(Question(key=key, text=text, choices=choices, assumed=assumed))

    def first_rows(self, readings: Sequence[ColumnReading]) -> PageTable:
        """The first rows in SI units, by channel and joint."""
        factors = {r.column: TIME[r.unit] if r.channel is None else UNITS[r.channel][r.unit] for r in readings}
        shown = [
            r
            for r in readings
            if r.channel in (None, Channel.POSITION, Channel.VELOCITY) or (r.channel and r.channel.is_torque)
        ]
        header = tuple("time [s]" if r.channel is None else f"{r.channel.value} {r.joint}" for r in shown)
        rows = tuple(
            tuple(f"{self.table[r.column][k] * factors[r.column]:.5g}" for r in shown)
            for k in range(min(_SHOWN_ROWS, len(next(iter(self.table.values())))))
        )
        across = tuple((name, *(row[i] for row in rows)) for i, name in enumerate(header))
        titles = ("as understood, SI units", *(f"row {k + 1}" for k in range(len(rows))))
        return PageTable(titles, across, caption="The first rows")


def _in_order(columns: list[NamedColumn], joints: Sequence[str]) -> list[NamedColumn] | None:
    """One column per joint in the robot's order: by the robot's names, else by number, else as they stand."""
    if all(c.joint for c in columns):
        by_name = {c.joint: c for c in columns}
        return [by_name[j] for j in joints] if set(by_name) >= set(joints) else None
    if all(c.number is not None for c in columns):
        numbered = sorted(columns, key=lambda c: c.number or 0)
        numbers = [c.number or 0 for c in numbered]
        consecutive = numbers == list(range(numbers[0], numbers[0] + len(numbers))) and numbers[0] in (0, 1)
        return numbered if consecutive else None
    return columns if len(columns) == len(joints) else None


def _close(a: float, b: float) -> bool:
    return a > 0.0 and 1.0 / RATIO_MARGIN < a / b < RATIO_MARGIN


def _turns(unit: str) -> bool:
    """Whether a rate is one of angles."""
    return not unit.startswith(("m/", "mm/"))


def _unit_of_scale(newton_metres: float) -> str:
    """The unit of torque by what one of it is worth; empty when none is within a factor of two."""
    for unit in ("Nm", "mNm", "Ncm", "kNm"):
        if np.isfinite(newton_metres) and 0.5 < newton_metres / FORCE[unit] < 2.0:
            return unit
    return ""
