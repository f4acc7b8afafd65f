"""What an identified arm can be written as."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """What can be written."""

    URDF = "urdf"
    MJCF = "mjcf"
    JSON = "json"
    PYTHON = "python"
    C = "c"
    MATLAB = "matlab"


SUFFIXES = {
    ".urdf": Format.URDF,
    ".xml": Format.MJCF,
    ".mjcf": Format.MJCF,
    ".json": Format.JSON,
    ".py": Format.PYTHON,
    ".c": Format.C,
    ".m": Format.MATLAB,
}
