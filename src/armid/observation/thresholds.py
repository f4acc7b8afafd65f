"""Numbers that decide what is said about an observation."""

from __future__ import annotations

from armid.thresholds import Threshold

FASTER = Threshold(
    "faster-than-free-motion",
    1.2,
    "of the free motion's speed",
    "levels are fitted over the speeds of the free motion; a fifth beyond them is their own uncertainty, more is extrapolation",
)

SAME_RATE = Threshold(
    "same-sampling-rate",
    1.1,
    "ratio of rates",
    "the window that smooths is a number of samples, so that the noise that passes goes with the rate",
)

REACH = Threshold(
    "rare-alarms",
    30.0,
    "of the free motion's length",
    "a tail seen over a record is carried on by a decade and a half at most; rarer alarms are a guess",
)

LOST = Threshold(
    "lost-samples",
    1e-3,
    "of the samples",
    "each that is missing empties a window of about twenty: one in a thousand blinds the observer for 2 % of the time",
)

OBSERVATION = (FASTER, SAME_RATE, REACH, LOST)
"""The table."""
