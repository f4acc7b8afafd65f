"""The `channels` of a mapping file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from armid.errors import InputError, UnknownNameError
from armid.logs.log import Channel
from armid.logs.mapping.maps import DEFAULT_UNITS, TORQUE_SIDES, ChannelMap, FileMap
from armid.logs.mapping.values import describe, keyed, matrix, named_numbers, per_joint, text
from armid.logs.units import SHARES, canonical, factor

_CHANNEL_KEYS = (
    "file",
    "columns",
    "unit",
    "sign",
    "gain",
    "gear_ratio",
    "matrix",
    "inverse_matrix",
    "offset",
    "side",
    "rated",
)


_FACTORS = {"sign": 1.0, "gain": 1.0, "gear_ratio": 1.0, "offset": 0.0}
"""What stands for a column of which nothing is said."""


def channel_maps(value: Any, files: Mapping[str, FileMap], where: Path, width: int | None) -> tuple[ChannelMap, ...]:
    if not isinstance(value, dict) or not value:
        raise InputError(
            where, f"channels is {describe(value)}", "expected `channels: {position: {columns: ...}, ...}`"
        )
    out = []
    for key, entry in value.items():
        channel, own = _channel_of(str(key), keyed(entry, _CHANNEL_KEYS, where, f"channel {key!r}"), where)
        what = f"channel {key!r}"
        units = _units_of(own.get("unit", DEFAULT_UNITS[channel]), channel, where, what, width)
        by_joint = {
            name: named_numbers(own.pop(name), where, f"{name} of {what}")
            for name in _FACTORS
            if isinstance(own.get(name), dict)
        }
        factors = {
            name: per_joint(own.get(name, default), where, f"{name} of {what}", width)
            for name, default in _FACTORS.items()
        }
        out.append(
            ChannelMap(
                channel=channel,
                columns=_column_names(own.get("columns"), where, what, width),
                file=file_key(own.get("file"), files, where, what),
                unit=units[0],
                units=units if len(units) > 1 else (),
                sign=factors["sign"],
                gain=_rated_gain(
                    own.get("rated"), factors["gain"], channel, units, where=where, what=what, width=width
                ),
                gear_ratio=factors["gear_ratio"],
                offset=factors["offset"],
                by_joint=by_joint,
                matrix=matrix(own.get("matrix"), where, f"matrix of {what}"),
                inverse_matrix=matrix(own.get("inverse_matrix"), where, f"inverse_matrix of {what}", square=True),
            )
        )
        signs, gears = ((*getattr(out[-1], word), *by_joint.get(word, {}).values()) for word in ("sign", "gear_ratio"))
        if any(s not in (-1.0, 1.0) for s in signs):
            raise InputError(where, f"sign of {what} is {entry['sign']!r}", "expected 1 or -1; scaling is `gain`")
        if any(g == 0.0 for g in gears):
            raise InputError(where, f"gear_ratio of {what} is zero")
    kinds = [entry.channel for entry in out]
    if len(set(kinds)) != len(kinds):
        raise InputError(where, "two entries describe the same channel")
    if Channel.POSITION not in kinds:
        raise InputError(where, "no position channel", f"there are {', '.join(kinds)}")
    return tuple(out)


def _units_of(value: Any, channel: Channel, where: Path, what: str, width: int | None) -> tuple[str, ...]:
    """One unit, or one per column."""
    words = value if isinstance(value, list) else [value]
    units = tuple(canonical(text(word, where, f"unit of {what}")) for word in words)
    if not units or (width is not None and len(units) not in (1, width)):
        raise InputError(where, f"unit of {what} has {len(units)} values", f"expected one, or one for each of {width}")
    for unit in units:
        factor(channel, unit)
    return units


def _rated_gain(
    rated: Any,
    gain: tuple[float, ...],
    channel: Channel,
    units: tuple[str, ...],
    *,
    where: Path,
    what: str,
    width: int | None,
) -> tuple[float, ...]:
    """The gain with the rated torque in it, where torque is recorded as a share of it."""
    shares = channel is not Channel.CURRENT and any(unit in SHARES for unit in units)
    if rated is None:
        if shares:
            remedy = "give `rated: [...]`, the rated torque of each joint [N m], or `side: current` when it is unknown"
            raise InputError(where, f"{what} is in {', '.join(units)} of a torque nobody stated", remedy)
        return gain
    if not shares:
        raise InputError(where, f"`rated` in {what}", "only torque in permille or percent has a rated torque")
    values = per_joint(rated, where, f"rated of {what}", width)
    count = max(len(values), len(gain))
    return tuple(values[i % len(values)] * gain[i % len(gain)] for i in range(count))


def _channel_of(key: str, entry: dict[str, Any], where: Path) -> tuple[Channel, dict[str, Any]]:
    """`torque` with its side, or the full name of a channel."""
    if key == "torque":
        side = entry.get("side")
        if side not in TORQUE_SIDES:
            raise UnknownNameError(f"torque side in {where.name}", str(side), TORQUE_SIDES)
        return TORQUE_SIDES[side], entry
    if "side" in entry:
        raise InputError(where, f"`side` in channel {key!r}", "only `torque` has a side")
    try:
        return Channel(key), entry
    except ValueError:
        raise UnknownNameError(f"channel in {where.name}", key, ("torque", *Channel)) from None


def _column_names(value: Any, where: Path, what: str, width: int | None) -> tuple[str, ...]:
    """Columns given as a list, as a range `2:7` counted from 1, as a pattern with `{i}` or `{i0}`, or as one name."""
    if value is None:
        return ()
    if isinstance(value, list) and value and all(isinstance(v, str | int) and not isinstance(v, bool) for v in value):
        return tuple(str(v) for v in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return (str(value),)
    if not isinstance(value, str) or not value:
        raise InputError(where, f"columns of {what} is {describe(value)}", "expected a list, '2:7', 'q_{i}' or a name")
    first, colon, last = value.partition(":")
    if colon and first.strip().isdigit() and last.strip().isdigit():
        start, stop = int(first), int(last)
        if not 0 < start <= stop < 100_000:
            raise InputError(where, f"columns {value!r} of {what}", "expected first:last, counted from 1")
        return tuple(str(i) for i in range(start, stop + 1))
    if "{i}" in value or "{i0}" in value:
        if width is None:
            raise InputError(
                where, f"the pattern {value!r} of {what} needs the number of joints", "give `joints: [...]`"
            )
        return tuple(value.replace("{i}", str(i + 1)).replace("{i0}", str(i)) for i in range(width))
    return (value,)


def file_key(value: Any, files: Mapping[str, FileMap], where: Path, what: str) -> str:
    """Which file; needed only when there are several."""
    if value is None and len(files) == 1:
        return next(iter(files))
    if value is None or str(value) not in files:
        raise UnknownNameError(f"file for {what} in {where.name}", str(value), files)
    return str(value)
