"""What the name of a column says: quantity, joint, unit."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from armid.logs.log import Channel
from armid.logs.vocabulary import clock_name, meaning, taken_apart

_AXIS = re.compile(
    r"(?:achse|gelenk|axis|joint|axe|eje|giunto|articulation|articulacion|jnt|(?<![a-z])[aj])[\s_.\-#\[(]*(\d{1,2})(?!\d)",
    re.IGNORECASE,
)
"""`Achse 3`, `J2`, `joint_4`, `A1`: a joint counted, anywhere in a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedColumn:
    """What a name says.

    Args:
        name: of the column.
        channel: None when the name does not say.
        number: of the joint as the file counts; None when the name does not say.
        joint: the robot's own name for it, when the column carries it.
        unit: empty when the name does not say.
        clock: whether it may be the time.
        whole: whether every word of the name was understood.
    """

    name: str
    channel: Channel | None = None
    number: int | None = None
    joint: str = ""
    unit: str = ""
    clock: bool = False
    whole: bool = True


def named_column(name: str, joints: Sequence[str]) -> NamedColumn:
    """A column name taken apart, in the languages the vocabulary knows."""
    plain = _ascii(name)
    parts = taken_apart(plain)
    if clock_name(parts) is not None:
        return NamedColumn(name=name, unit=parts.unit, clock=True)
    joint = next(
        (
            j
            for j in sorted(joints, key=len, reverse=True)
            if re.search(rf"(?<![A-Za-z0-9]){re.escape(j)}(?![A-Za-z0-9])", plain)
        ),
        "",
    )
    rest = plain.replace(joint, " ", 1) if joint else plain
    axis = _AXIS.search(rest)
    number = parts.index
    if axis is not None:
        number = int(axis.group(1))
        rest = rest[: axis.start()] + " " + rest[axis.end() :]
    cleaned = taken_apart(re.sub(r"[\s_.\-]+$", "", rest.strip(" _.-")) or rest)
    channel = meaning(cleaned)
    if channel is not None:
        return NamedColumn(name=name, channel=channel, number=number, joint=joint, unit=parts.unit or cleaned.unit)
    channel, unit = _word_by_word(rest)
    return NamedColumn(
        name=name, channel=channel, number=number, joint=joint, unit=parts.unit or cleaned.unit or unit, whole=False
    )


def _word_by_word(text: str) -> tuple[Channel | None, str]:
    """The one quantity among words of which some are unknown, and a unit among them."""
    words = [w for w in re.split(r"[^A-Za-z]+|(?<=[a-z])(?=[A-Z])", text) if w]
    found = {channel for word in words if (channel := meaning(taken_apart(word))) is not None}
    unit = next((u for word in words if (u := taken_apart(f"x_{word}").unit)), "")
    return (found.pop() if len(found) == 1 else None), unit


def _ascii(text: str) -> str:
    """Umlauts and accents as plain letters, so that `Führungsgröße` and `vélocité` are looked up like others."""
    spelled = text.replace("ä", "ae").replace("ö", "oe").replace("ü", "ue").replace("ß", "ss")
    return "".join(c for c in unicodedata.normalize("NFKD", spelled) if not unicodedata.combining(c))
