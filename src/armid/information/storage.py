"""Information on disk: names and counts in JSON, factors in an npz beside it."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from armid.errors import InputError
from armid.information.information import ChannelInformation, Information

SCHEMA = "armid-information-1"


def save(information: Information, path: Path) -> tuple[Path, Path]:
    """Writes `path` with the suffixes .json and .npz; returns both."""
    names, arrays = path.with_suffix(".json"), path.with_suffix(".npz")
    description = {
        "schema": SCHEMA,
        "parameters": information.parameters,
        "method": information.method,
        "channels": [{"name": c.name, "count": c.count} for c in information.channels],
    }
    content: dict[str, npt.NDArray[Any]] = {}
    for k, channel in enumerate(information.channels):
        content[f"columns{k}"] = channel.columns
        content[f"factor{k}"] = channel.factor
    np.savez(arrays, **content)  # type: ignore[arg-type]
    names.write_text(json.dumps(description, indent=1))
    return names, arrays


def load(path: Path) -> Information:
    """Reads what `save` wrote."""
    names, arrays = path.with_suffix(".json"), path.with_suffix(".npz")
    try:
        description = json.loads(names.read_text())
        if description["schema"] != SCHEMA:
            raise InputError(names, f"schema {description['schema']!r}", f"expected {SCHEMA!r}")
        with np.load(arrays, allow_pickle=False) as content:
            channels = tuple(
                ChannelInformation(c["name"], content[f"columns{k}"], content[f"factor{k}"], float(c["count"]))
                for k, c in enumerate(description["channels"])
            )
        return Information(tuple(description["parameters"]), channels, str(description["method"]))
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise InputError(
            names, f"not stored information: {error}", "write it with armid.information.storage.save"
        ) from error
