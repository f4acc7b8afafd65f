"""Two models compared pair by pair: is the one better beyond chance?"""

from __future__ import annotations

from functools import cache
from statistics import NormalDist

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.quantiles import student_quantile

SURE = 2.5
"""Paired t statistic from which on a gain over many configurations is believed. Errors of different folds share most of their
data, which makes the plain statistic too bold by about sqrt(1 + 1/(k - 1)) for k folds, hence above the usual 2."""
_TRIM = 0.1
"""Fraction of the pairs left out at each end of a comparison: a handful of bad measurements says nothing about either model."""


@cache
def sure(count: int) -> float:
    """Paired t statistic of so many pairs that is as rare by chance as `SURE` of many: 3.3 of eight, 2.6 of forty."""
    return student_quantile(NormalDist().cdf(SURE), max(1, count - 1))


def trimmed(count: int) -> int:
    """How many pairs are left out at each end."""
    return int(_TRIM * count)


def paired_t(a: FloatArray, b: FloatArray) -> float:
    """T statistic of the trimmed mean of a - b ([Yuen1974]); 0 when it cannot be formed."""
    d = np.sort(a - b)
    n, g = len(d), trimmed(len(d))
    if n < 2 or not d.any():
        return 0.0
    inner = d[g : n - g]
    spread = float(np.clip(d, inner[0], inner[-1]).std(ddof=1)) / ((1.0 - 2.0 * g / n) * np.sqrt(n))
    mean = float(inner.mean())
    return mean / spread if spread > 0.0 else float(np.sign(mean) * np.inf)
