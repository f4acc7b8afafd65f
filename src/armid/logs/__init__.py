"""Recordings: read anything, trust nothing, condition properly."""

from armid.logs.check import CheckedLogs, check_log, read_log
from armid.logs.conditioning import Conditioning, Differentiator, VelocitySource, condition, detected_period
from armid.logs.conditioning.stream import condition_stream
from armid.logs.health.refuse import LogRefusedError
from armid.logs.log import Channel, Clock, Conditions, Log, LogSource, matched
from armid.logs.read import LogStream, ReadOptions, open_log, unchecked_log
from armid.logs.recording import Recording, open_recording
from armid.logs.samples import Samples, Segment, concatenated

__all__ = [
    "Channel",
    "CheckedLogs",
    "Clock",
    "Conditioning",
    "Conditions",
    "Differentiator",
    "Log",
    "LogRefusedError",
    "LogSource",
    "LogStream",
    "ReadOptions",
    "Recording",
    "Samples",
    "Segment",
    "VelocitySource",
    "check_log",
    "concatenated",
    "condition",
    "condition_stream",
    "detected_period",
    "matched",
    "open_log",
    "open_recording",
    "read_log",
    "unchecked_log",
]
