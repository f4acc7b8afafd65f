"""What the columns of a file mean: written by hand in YAML, or filled in by a preset.

A mapping is data: `docs/logs.md` documents the file, `file.py` reads it, `armid.logs.apply` carries it out.
"""

from armid.logs.mapping.file import is_mapping_file, read_mapping
from armid.logs.mapping.maps import DEFAULT_UNITS, TORQUE_SIDES, ChannelMap, ClockMap, FileMap, LogMap

__all__ = [
    "DEFAULT_UNITS",
    "TORQUE_SIDES",
    "ChannelMap",
    "ClockMap",
    "FileMap",
    "LogMap",
    "is_mapping_file",
    "read_mapping",
]
