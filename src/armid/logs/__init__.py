"""Recordings: read anything, trust nothing, condition properly."""

from armid.logs.log import Channel, Clock, Conditions, Log, Provenance, matched
from armid.logs.read import LogStream, ReadOptions, open_log, read_log
from armid.logs.samples import Samples, Segment, concatenated

__all__ = [
    "Channel",
    "Clock",
    "Conditions",
    "Log",
    "LogStream",
    "Provenance",
    "ReadOptions",
    "Samples",
    "Segment",
    "concatenated",
    "matched",
    "open_log",
    "read_log",
]
