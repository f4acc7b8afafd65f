"""Conditioning: resample, average, filter, differentiate."""

from armid.logs.conditioning.condition import condition
from armid.logs.conditioning.periods import detected_period
from armid.logs.conditioning.processing import PROCESSINGS, Processing, processing_of
from armid.logs.conditioning.rows import filtered_rows
from armid.logs.conditioning.settings import Conditioning, VelocitySource
from armid.signals.differentiate import Differentiator, derivatives
from armid.signals.filters import FilterKind, LowPass, low_pass

__all__ = [
    "PROCESSINGS",
    "Conditioning",
    "Differentiator",
    "FilterKind",
    "LowPass",
    "Processing",
    "VelocitySource",
    "condition",
    "derivatives",
    "detected_period",
    "filtered_rows",
    "low_pass",
    "processing_of",
]
