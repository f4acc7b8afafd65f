"""Information on disk: factors as arrays of an npz file, names and counts beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from armid.documents import read_arrays, read_json, write_arrays, write_json
from armid.errors import InputError
from armid.information.information import ChannelInformation, Information

_SCHEMA = "armid-information-1"
_WHAT = "stored information, as armid.information.storage.save writes it"


def factors(information: Information, prefix: str = "") -> dict[str, npt.NDArray[Any]]:
    """Columns and factor of every channel, by name."""
    out: dict[str, npt.NDArray[Any]] = {}
    for k, channel in enumerate(information.channels):
        out[f"{prefix}columns{k}"] = channel.columns
        out[f"{prefix}factor{k}"] = channel.factor
    return out


def restored_information(
    arrays: Mapping[str, npt.NDArray[Any]],
    prefix: str,
    parameters: Sequence[str],
    channels: Sequence[str],
    counts: Sequence[float],
    method: str = "",
    *,
    measured: Mapping[str, str] | None = None,
) -> Information:
    """The inverse of `factors`.

    Args:
        arrays: that hold the factors.
        prefix: of their names.
        parameters, channels: names.
        counts: rows of every channel.
        method: how the rows were folded in.
        measured: by name of a channel that is a class of a measured one, the latter.
    """
    whole = measured or {}
    found = tuple(
        ChannelInformation(
            name,
            arrays[f"{prefix}columns{k}"],
            np.asarray(arrays[f"{prefix}factor{k}"], dtype=np.float64),
            float(n),
            measured=whole.get(name, ""),
        )
        for k, (name, n) in enumerate(zip(channels, counts, strict=True))
    )
    return Information(tuple(parameters), found, method)


def classes_of(information: Information) -> dict[str, str]:
    """The measured channel of every channel that is a class of one."""
    return _classes((channel.name, channel.whole) for channel in information.channels)


def _classes(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name: whole for name, whole in pairs if whole != name}


def save(information: Information, path: Path) -> tuple[Path, Path]:
    """Writes `path` with the suffixes .json and .npz; returns both."""
    description = {
        "schema": _SCHEMA,
        "parameters": information.parameters,
        "method": information.method,
        "channels": [{"name": c.name, "count": c.count, "measured": c.whole} for c in information.channels],
    }
    return (
        write_json(path.with_suffix(".json"), description),
        write_arrays(path.with_suffix(".npz"), factors(information)),
    )


def load(path: Path) -> Information:
    """Reads what `save` wrote.

    Raises:
        InputError: missing, damaged, or something else.
    """
    names = path.with_suffix(".json")
    description = read_json(names, _WHAT, schema=_SCHEMA)
    try:
        channels = description["channels"]
        return restored_information(
            read_arrays(path.with_suffix(".npz"), _WHAT),
            "",
            description["parameters"],
            [c["name"] for c in channels],
            [c["count"] for c in channels],
            str(description["method"]),
            measured=_classes((c["name"], c.get("measured", c["name"])) for c in channels),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(names, f"not stored information: {error}", _WHAT) from error
