"""Codes of the errors that keep a log from being used, until somebody has looked at them and accepts them."""

from __future__ import annotations

from collections.abc import Sequence

from armid.errors import UnknownNameError
from armid.words import word_list

ERROR_CODES = (
    "clock-drift",
    "clock-ticks",
    "clock-unit",
    "clock-unknown",
    "corrupt-values",
    "degrees",
    "frozen",
    "gravity-compensated",
    "gravity-reversed",
    "half-dead",
    "joint-order",
    "mounting",
    "no-torque",
    "not-finite",
    "position-leap",
    "position-limits",
    "quantised",
    "saturated",
    "spikes",
    "time-backwards",
    "time-duplicated",
    "time-frozen",
    "time-not-finite",
    "too-little-motion",
    "too-short",
    "torque-dead",
    "torque-lag",
    "torque-sign",
    "torque-unit",
)
"""Every code that a check of logs can give the severity of an error (held against the checks by a test)."""


def accepted_codes(accept: str | Sequence[str]) -> tuple[str, ...]:
    """Codes of errors somebody accepts, from words with commas or a list of them.

    Raises:
        UnknownNameError: a code that no log can have: what it was meant to accept would still be refused.
    """
    codes = word_list("accept", accept)
    for code in codes:
        if code not in ERROR_CODES:
            raise UnknownNameError("error of logs", code, ERROR_CODES)
    return codes
