"""Words that people and controllers use for columns, and what they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass

from armid.logs.log import Channel
from armid.logs.units import ALIASES, ANGLE, CHANGE, CURRENT, FORCE, RATE, TIME, canonical

WORDS: dict[Channel, tuple[str, ...]] = {
    Channel.POSITION: (
        "q", "pos", "position", "positions", "jointposition", "jointpositions", "jointpos", "actualq", "measuredq", "qmeas",
        "qmeasured", "qact", "msrjntpos", "jntposmsr", "measuredjointposition", "measuredjointpositions", "stateq", "angle",
        "angles", "jointangle", "jointangles", "theta", "axisact", "axisactmeas", "actpos", "actposse", "qpos",
        "actualjointposition", "actualjointpositions", "actualposition", "actualpos", "measuredposition",
        "jointstateposition", "positionlink", "qlink", "statesq", "actualjointpos",
    ),
    Channel.VELOCITY: (
        "qd", "dq", "vel", "velocity", "velocities", "jointvelocity", "jointvelocities", "jointvel", "actualqd", "statedq",
        "qdot", "dqmeas", "qdmeas", "qvel", "speed", "actvel", "actvelse", "measuredvelocity", "measuredjointvelocity",
        "actualjointvelocity", "actualjointvelocities", "jointstatevelocity", "actualvelocity", "thetadot", "dqmeasured",
    ),
    Channel.ACCELERATION: (
        "qdd", "ddq", "acc", "acceleration", "accelerations", "qddot", "jointacceleration", "jointaccelerations", "qacc",
    ),
    Channel.LINK_TORQUE: (
        "tau", "tauj", "statetauj", "torque", "torques", "effort", "efforts", "jointtorque", "jointtorques", "jointeffort",
        "measuredtorque", "measuredtorques", "msrjnttrq", "jnttrqmsr", "measuredjointtorque", "measuredjointtorques",
        "taumeas", "taumeasured", "trq", "taujoint", "sensortorque", "jointstateeffort", "msrtrq", "qtorque",
    ),
    Channel.MOTOR_TORQUE: (
        "motortorque", "motortorques", "taumotor", "taum", "torqueaxisact", "motortrq", "torquemotor", "drivetorque",
    ),
    Channel.CURRENT: (
        "actualcurrent", "current", "currents", "i", "curr", "motorcurrent", "motorcurrents", "iact", "im",
        "jointcurrent", "actualjointcurrent", "curract", "imotor", "ampere", "permille",
    ),
    Channel.COMMANDED_TORQUE: (
        "targetmoment", "taucmd", "taud", "statetaujd", "taudes", "commandedtorque", "commandedtorques", "cmdjnttrq",
        "jnttrqcmd", "targettorque", "torquecommand", "tauref", "taucommand", "cmdtaujd", "torquecmd", "taujd",
    ),
    Channel.EXTERNAL_TORQUE: (
        "tauext", "externaltorque", "externaltorques", "extjnttrq", "jnttrqext", "tauexthatfiltered",
        "statetauexthatfiltered", "exttorque",
    ),
    Channel.TEMPERATURE: ("jointtemperatures", "jointtemperature", "temperature", "temperatures", "temp", "motortemperature"),
    Channel.COMMANDED_POSITION: (
        "targetq", "qdes", "qcmd", "stateqd", "commandedposition", "commandedpositions", "positioncommand", "cmdjntpos",
        "jntposcmd", "qref", "targetposition", "targetpositions", "cmdqd", "refpos", "poscmd", "ipojntpos",
    ),
    Channel.MOTOR_POSITION: (
        "motorposition", "motorpositions", "actposmot", "qmotor", "thetamotor", "motorpos", "statetheta", "qm",
    ),
}  # fmt: skip

MEANING = {word: channel for channel, words in WORDS.items() for word in words}

TIME_WORDS = (
    "t", "time", "times", "timestamp", "timestamps", "stamp", "zeit", "duration", "elapsed", "elapsedtime", "clock", "sec",
    "secs", "seconds", "timecont", "timestart", "statetime", "headerstamp", "ts", "timesec", "headerstampsec", "stampsec",
)  # fmt: skip
NANOSECOND_WORDS = (
    "nsec",
    "nanosec",
    "headerstampnanosec",
    "stampnanosec",
    "nanoseconds",
    "headerstampnsec",
    "stampnsec",
)

UNIT_WORDS = {
    **{name.lower(): name for table in (ANGLE, RATE, CHANGE, FORCE, CURRENT, TIME) for name in table if len(name) > 1},
    **ALIASES,
    "degpers": "deg/s",
    "radpers": "rad/s",
    "deg_per_s": "deg/s",
    "rad_per_s": "rad/s",
    "a": "A",
    "s": "s",
}

BRACKETS = re.compile(r"[\[(]\s*([^\])\d][^\])]*)\s*[\])]\s*$")
INDEX = re.compile(r"^(.*?)[\s_.\-/]*[\[({]?\s*(\d{1,2})\s*[\])}]?$")


@dataclass(frozen=True, slots=True)
class ColumnName:
    """A column name taken apart.

    Args:
        name: as it stands in the file.
        word: its letters, lower case, without index and unit.
        index: the number at its end, None without.
        unit: what a bracket or a suffix says, empty without.
    """

    name: str
    word: str
    index: int | None
    unit: str


def taken_apart(name: str) -> ColumnName:
    """`q_0` -> q, 0;  `act_pos_deg[3]` -> actpos, 3, deg;  `time [ms]` -> time, ms."""
    rest, unit = name.strip(), ""
    bracket = BRACKETS.search(rest)
    if bracket and bracket.group(1).strip().lower() in UNIT_WORDS:
        unit, rest = UNIT_WORDS[bracket.group(1).strip().lower()], rest[: bracket.start()].strip()
    index = None
    found = INDEX.match(rest)
    if found:
        rest, index = found.group(1), int(found.group(2))
    if not unit:
        rest, unit = without_unit(rest)
    if index is None:
        # The index may stand before the unit (`q1_deg`).
        found = INDEX.match(rest)
        if found:
            rest, index = found.group(1), int(found.group(2))
    return ColumnName(name, re.sub(r"[^a-z0-9]", "", rest.lower()), index, canonical(unit) if unit else "")


def without_unit(name: str) -> tuple[str, str]:
    """A name and the unit its last words are, when something is left before them."""
    for suffix in sorted(UNIT_WORDS, key=len, reverse=True):
        for joint in ("_", ".", " ", "-"):
            tail = joint + suffix
            if suffix.replace("_", "").isalpha() and name.lower().endswith(tail) and len(name) > len(tail):
                return name[: -len(tail)], UNIT_WORDS[suffix]
    return name, ""


def meaning(word: str) -> Channel | None:
    """What a word means; of a dotted or prefixed name only its end counts (`rec.act_pos`, `robot0_qpos`)."""
    return MEANING.get(word)


def meaning_of(name: str) -> Channel | None:
    """What a whole name means, trying it from the front: `rec.act_pos` is `recactpos`, then `act_pos`."""
    parts = re.split(r"[.:/]", name)
    for start in range(len(parts)):
        channel = meaning(re.sub(r"[^a-z0-9]", "", "".join(parts[start:]).lower()))
        if channel is not None:
            return channel
    return None
