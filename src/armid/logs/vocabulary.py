"""Words that people and controllers use for columns, and what they mean.

A name is looked up as a whole first, for the abbreviations of single controllers. Then it is cut into words
(`joint_position_measured`, `msrJntPos`, `axisTauExtMsr`); it means something only when all of them are known and one of them is a
quantity, so that `actual_TCP_pose`, `joint_voltage` or `target_current` never pass for a measured joint quantity.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from armid.logs.log import Channel
from armid.logs.units import ALIASES, ANGLE, CHANGE, CURRENT, FORCE, RATE, TIME, canonical

_ABBREVIATIONS: dict[str, Channel] = {
    "actposse": Channel.POSITION,
    "axisact": Channel.POSITION,
    "axisactmeas": Channel.POSITION,
    "aipos": Channel.POSITION,
    "actvelse": Channel.VELOCITY,
    "qtorque": Channel.LINK_TORQUE,
    "torqueaxisact": Channel.MOTOR_TORQUE,
    "taum": Channel.MOTOR_TORQUE,
    "macur": Channel.CURRENT,
    "i": Channel.CURRENT,
    "im": Channel.CURRENT,
    "iq": Channel.CURRENT,
    "iact": Channel.CURRENT,
    "imotor": Channel.CURRENT,
    "ampere": Channel.CURRENT,
    "permille": Channel.CURRENT,
    "taud": Channel.COMMANDED_TORQUE,
    "taujd": Channel.COMMANDED_TORQUE,
    "statetaujd": Channel.COMMANDED_TORQUE,
    "cmdtaujd": Channel.COMMANDED_TORQUE,
    "stateqd": Channel.COMMANDED_POSITION,
    "cmdqd": Channel.COMMANDED_POSITION,
    "aspos": Channel.COMMANDED_POSITION,
    "axisqcmdt1m": Channel.COMMANDED_POSITION,
    "statetheta": Channel.MOTOR_POSITION,
    "qm": Channel.MOTOR_POSITION,
}
"""Whole names that word by word would mean something else or nothing: libfranka's `state.q_d` (desired, not velocity), KUKA's
`AIPos`, `MACur`, `$TORQUE_AXIS_ACT` and `axisQCmdT1m`, `i` for current."""

_QUANTITIES: dict[str, tuple[str, ...]] = {
    "position": (
        "q",
        "qpos",
        "pos",
        "position",
        "positions",
        "angle",
        "angles",
        "theta",
        "winkel",
        "gelenkwinkel",
        "achswinkel",
        "lage",
        "istlage",
        "posicion",
        "posizione",
        "posicao",
        "angulo",
        "angolo",
        "ang",
    ),
    "velocity": (
        "qd",
        "dq",
        "qp",
        "qvel",
        "qdot",
        "vel",
        "velocity",
        "velocities",
        "speed",
        "speeds",
        "thetadot",
        "geschwindigkeit",
        "winkelgeschwindigkeit",
        "drehzahl",
        "geschw",
        "vitesse",
        "velocidad",
        "velocita",
        "velocidade",
        "omega",
    ),
    "acceleration": (
        "qdd",
        "ddq",
        "qddot",
        "qacc",
        "acc",
        "acceleration",
        "accelerations",
        "beschleunigung",
        "winkelbeschleunigung",
        "beschl",
        "accelerazione",
        "aceleracion",
    ),
    "torque": (
        "tau",
        "torque",
        "torques",
        "trq",
        "effort",
        "efforts",
        "eff",
        "par",
        "moment",
        "moments",
        "drehmoment",
        "gelenkmoment",
        "achsmoment",
        "couple",
        "coppia",
        "momento",
        "torsor",
    ),
    "current": (
        "current",
        "currents",
        "curr",
        "cur",
        "strom",
        "motorstrom",
        "courant",
        "corrente",
        "corriente",
    ),
    "temperature": (
        "temperature",
        "temperatures",
        "temp",
        "temperatur",
        "temperatura",
    ),
}

_ROLES: dict[str, tuple[str, ...]] = {
    "commanded": (
        "commanded",
        "command",
        "cmd",
        "target",
        "desired",
        "des",
        "ref",
        "reference",
        "setpoint",
        "soll",
        "ipo",
        "goal",
        "planned",
        "vorgabe",
        "fuehrung",
        "sollwert",
        "consigne",
        "consigna",
    ),
    "external": ("external", "ext", "exthat", "exthatfiltered"),
    "motor": ("motor", "mot", "drive"),
    "": (
        "joint",
        "gelenk",
        "achse",
        "axe",
        "eje",
        "giunto",
        "istwert",
        "gemessen",
        "mesure",
        "medido",
        "joints",
        "jnt",
        "axis",
        "axes",
        "j",
        "state",
        "states",
        "actual",
        "act",
        "measured",
        "meas",
        "msr",
        "estimated",
        "est",
        "link",
        "sensor",
        "internal",
        "rec",
        "is",
        "ist",
    ),
}

_MEANING: dict[tuple[str, str], Channel] = {
    ("position", ""): Channel.POSITION,
    ("position", "commanded"): Channel.COMMANDED_POSITION,
    ("position", "motor"): Channel.MOTOR_POSITION,
    ("velocity", ""): Channel.VELOCITY,
    ("acceleration", ""): Channel.ACCELERATION,
    ("torque", ""): Channel.LINK_TORQUE,
    ("torque", "commanded"): Channel.COMMANDED_TORQUE,
    ("torque", "external"): Channel.EXTERNAL_TORQUE,
    ("torque", "motor"): Channel.MOTOR_TORQUE,
    ("current", ""): Channel.CURRENT,
    ("current", "motor"): Channel.CURRENT,
    ("temperature", ""): Channel.TEMPERATURE,
    ("temperature", "motor"): Channel.TEMPERATURE,
}
"""Quantity and role of a column; other pairs (a commanded velocity) are of no use here."""

UNIT_OF_WORD = {"axisact": "deg", "axisactmeas": "deg", "aipos": "deg", "aspos": "deg"}
"""KRL variables and RSI: joint angles are in degrees always."""

_TIME_WORDS = (
    "timestamp",
    "timestamps",
    "timecont",
    "elapsedtime",
    "statetime",
    "time",
    "times",
    "t",
    "ts",
    "stamp",
    "zeit",
    "zeitstempel",
    "temps",
    "tiempo",
    "tempo",
    "uhr",
    "laufzeit",
    "duration",
    "elapsed",
    "clock",
    "sec",
    "secs",
    "seconds",
    "timestart",
    "header",
    "in",
    "utime",
    "ipoc",
    "system",
)
"""A clock's name is made of these; `sample_time` or `execution_time` are durations, not clocks."""

_NANOSECOND_WORDS = ("nanosec", "nanosecs", "nsec", "nsecs", "nanoseconds", "nano", "ns")

CLOCK_UNITS = {"utime": "us", "ipoc": "ms"}

_UNIT_WORDS = {
    **{name.lower(): name for table in (ANGLE, RATE, CHANGE, FORCE, CURRENT, TIME) for name in table if len(name) > 1},
    **ALIASES,
    "degpers": "deg/s",
    "radpers": "rad/s",
    "deg_per_s": "deg/s",
    "rad_per_s": "rad/s",
    **{
        name.lower().replace("/", "_").replace("^", ""): name
        for table in (RATE, CHANGE)
        for name in table
        if "/" in name
    },
    "a": "A",
    "s": "s",
}

_BRACKETS = re.compile(r"[\[(]\s*([^\])\d][^\])]*)\s*[\])]\s*$")
_INDEX = re.compile(r"^(.*?)[\s_.\-/]*[\[({]?\s*(\d{1,2})\s*[\])}]?$")
_AXIS = re.compile(r"^(.*?)[\s_.\-/\[]+[AaJj](\d{1,2})\]?$")
"""`AXIS_ACT.A1`, `tau_J1`: axes counted with a letter."""
_DEVICE = re.compile(r"_(LBR|KR|KMR)_\w+$", re.IGNORECASE)
"""KUKA's recorders append the device: `axisQMsr_LBR_iiwa_14_R820_1[0]`."""
_MAX_NAME = 80
"""Letters; nobody names a column at greater length, and cutting into words is quadratic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnName:
    """A column name taken apart.

    Args:
        name: as it stands in the file.
        word: its letters, lower case, without index, unit and device.
        index: the number at its end, None without.
        unit: what a bracket or a suffix says, empty without.
        path: the same as `word` part by part where a name has dots or slashes, from the whole to its last part.
    """

    name: str
    word: str
    index: int | None
    unit: str
    path: tuple[str, ...] = ()


@lru_cache(maxsize=4096)
def taken_apart(name: str) -> ColumnName:
    """`q_0` -> q, 0;  `act_pos_deg[3]` -> actpos, 3, deg;  `time [ms]` -> time, ms."""
    rest, unit = name.strip(), ""
    bracket = _BRACKETS.search(rest)
    if bracket and (said := _bracket_unit(bracket.group(1).strip())):
        unit, rest = said, rest[: bracket.start()].strip()
    rest, index = _without_index(rest)
    if not unit:
        rest, unit = _without_unit(rest)
    if index is None:
        # The index may stand before the unit (`q1_deg`).
        rest, index = _without_index(rest)
    rest = _DEVICE.sub("", rest)
    parts = [_letters(part) for part in re.split(r"[.:/]", rest)]
    path = tuple(dict.fromkeys(word for k in range(len(parts)) if (word := "".join(parts[k:]))))
    return ColumnName(name=name, word=_letters(rest), index=index, unit=canonical(unit) if unit else "", path=path)


def _bracket_unit(text: str) -> str:
    """The unit in a bracket, empty when it is none; metres and newtons are letters of their own only there."""
    return text if text in ("m", "N") else _UNIT_WORDS.get(text.lower(), "")


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _without_index(name: str) -> tuple[str, int | None]:
    """A name and the number at its end."""
    found = _AXIS.match(name) or _INDEX.match(name)
    return (found.group(1), int(found.group(2))) if found else (name, None)


def _without_unit(name: str) -> tuple[str, str]:
    """A name and the unit its last words are, when something is left before them."""
    for suffix in sorted(_UNIT_WORDS, key=len, reverse=True):
        for joint in ("_", ".", " ", "-"):
            tail = joint + suffix
            if suffix.replace("_", "").isalpha() and name.lower().endswith(tail) and len(name) > len(tail):
                return name[: -len(tail)], _UNIT_WORDS[suffix]
    return name, ""


def meaning(column: ColumnName) -> Channel | None:
    """What a column is; of a dotted name (`rec.act_pos`, `/lbr/state/measured_torque`) its end may say it alone."""
    return next((channel for word in column.path if (channel := _meaning_of_word(word)) is not None), None)


def _meaning_of_word(word: str) -> Channel | None:
    """What a word without separators means."""
    if word in _ABBREVIATIONS:
        return _ABBREVIATIONS[word]
    words = cut(word, tuple(_KIND))
    if words is None:
        return None
    quantities = [_KIND[w] for w in words if _KIND[w] in _QUANTITIES]
    if len(quantities) == 2 and "current" in quantities:
        # `current_joint_position` is where the joint is now.
        quantities.remove("current")
    roles = {_KIND[w] for w in words if _KIND[w] not in _QUANTITIES} - {""}
    if len(quantities) != 1 or len(roles) > 1:
        return None
    return _MEANING.get((quantities[0], "".join(roles)))


_KIND = {word: kind for table in (_QUANTITIES, _ROLES) for kind, words in table.items() for word in words}


@lru_cache(maxsize=4096)
def cut(word: str, known: tuple[str, ...]) -> tuple[str, ...] | None:
    """A word as known words one after another, longest first; None when it is not made of them."""
    if not word or len(word) > _MAX_NAME:
        return None
    best: list[tuple[str, ...] | None] = [()] + [None] * len(word)
    for end in range(1, len(word) + 1):
        for piece in known:
            before = best[end - len(piece)] if len(piece) <= end and word.endswith(piece, 0, end) else None
            if before is not None and (best[end] is None or len(before) + 1 < len(best[end] or ())):
                best[end] = (*before, piece)
    return best[len(word)]


@dataclass(frozen=True, slots=True)
class ClockName:
    """A column that may be a clock: what its name says beyond the unit, and whether it counts nanoseconds."""

    column: ColumnName
    stem: tuple[str, ...]
    nanoseconds: bool


def clock_name(column: ColumnName) -> ClockName | None:
    """The clock a column may be; None when its name has other words than a clock's."""
    if column.index is not None:
        return None
    squashed = _letters(column.name if not _BRACKETS.search(column.name) else _BRACKETS.sub("", column.name))
    for word in dict.fromkeys((squashed, *column.path)):
        words = cut(word, (*_TIME_WORDS, *_NANOSECOND_WORDS))
        if words is not None and set(words) - {"in", "header", "system"}:
            stem = tuple(w for w in words if w not in (*_NANOSECOND_WORDS, "sec", "secs", "seconds"))
            return ClockName(column, stem, bool(set(words) & set(_NANOSECOND_WORDS)))
    return None
