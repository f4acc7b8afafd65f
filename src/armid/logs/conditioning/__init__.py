"""Conditioning: resample, average, filter, differentiate."""

from armid.logs.conditioning.condition import condition
from armid.logs.conditioning.differentiate import derivatives
from armid.logs.conditioning.filters import LowPass, low_pass
from armid.logs.conditioning.periods import detected_period
from armid.logs.conditioning.rows import filtered_rows
from armid.logs.conditioning.settings import Conditioning, Differentiator, VelocitySource

__all__ = [
    "Conditioning",
    "Differentiator",
    "LowPass",
    "VelocitySource",
    "condition",
    "derivatives",
    "detected_period",
    "filtered_rows",
    "low_pass",
]
