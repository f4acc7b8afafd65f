"""Joint order: would another order of the columns make torque and weight agree?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from armid.arrays import FloatArray
from armid.logs.health.findings import finding
from armid.logs.health.probe import Probe
from armid.logs.health.rows import Mask
from armid.logs.health.thresholds import (
    GOOD,
    HALVED,
    MIN_WEIGHT,
    MIN_WEIGHT_SHARE,
)
from armid.logs.health.weight import WeightFit, weight_fit
from armid.logs.samples import Samples
from armid.notes import Note, Severity

Order = tuple[int, ...]


def order_findings(view: Probe, fit: WeightFit, heavy: Mask) -> Iterator[Note]:
    """The order of columns that fits the arm best, if it is another than the one assumed.

    Judged by what weight, inertia and friction leave of every joint's torque: a wrist swapped with the base spoils two joints
    that carry hardly any weight.
    """
    n = len(view.log.joints)
    present, left = score(fit, heavy), unexplained(fit)
    best, found, torque_only = present, None, False
    for order in _candidate_orders(view.log.joints):
        for only in (False, True):
            other = _reordered_fit(view, order, torque_only=only)
            rest, value = unexplained(other), score(other, carrying(other))
            if rest < left - 1e-6 and value > min(GOOD, present):
                best, found, torque_only, left = value, order, only, rest
    if found is None or best < GOOD or left > HALVED * unexplained(fit):
        return
    names = ", ".join(view.log.joints[k] for k in found)
    what = "torque columns" if torque_only else "columns"
    moved = next(i for i in range(n) if found[i] != i)
    yield finding(
        "joint-order",
        Severity.ERROR,
        view.log.joints[moved],
        f"the {what} fit the arm when taken as {names} (correlation with weight {best:.2f} instead of {present:.2f}, "
        f"{left:.0%} of the torque unexplained instead of {unexplained(fit):.0%})",
        "give `joints` in the order of the columns in a mapping",
    )


def _candidate_orders(names: tuple[str, ...]) -> list[Order]:
    """Orders in which files come: two joints swapped, from tip to base, sorted by name, started elsewhere.

    `order[i]` is the joint whose numbers stand in column i.
    """
    n = len(names)
    identity = tuple(range(n))
    out = {tuple(sorted(identity, key=lambda i: names[i])), identity[::-1]}
    for i, j in combinations(range(n), 2):
        swapped = list(identity)
        swapped[i], swapped[j] = j, i
        out.add(tuple(swapped))
    for k in range(1, n):
        out.add((*identity[k:], *identity[:k]))
    out.discard(identity)
    return sorted(out)


def _reordered_fit(view: Probe, order: Order, *, torque_only: bool) -> WeightFit:
    """The fit if column i held joint order[i]."""
    columns = np.argsort(order)
    s = view.samples

    def moved(name: str, array: FloatArray) -> FloatArray:
        if array.ndim == 2 and (name.startswith(("torques", "raw", "variances")) or not torque_only):
            return np.asfortranarray(array[:, columns])
        return array

    samples: Samples = s.with_arrays(moved, segments=s.segments)
    return weight_fit(replace(view, samples=samples))


def carrying(fit: WeightFit) -> Mask:
    """Joints whose weight changes enough during this motion to be looked for."""
    return np.asarray(fit.weight_spread > np.maximum(MIN_WEIGHT, MIN_WEIGHT_SHARE * fit.weight_spread.max()))


def unexplained(fit: WeightFit) -> float:
    """What weight, inertia and friction leave of the torque, as a fraction, mean over the joints."""
    return float(np.mean(fit.residual / np.maximum(fit.torque_spread, 1e-12)))


def score(fit: WeightFit, heavy: Mask) -> float:
    """Mean correlation with weight over the joints that carry some, in proportion to it."""
    if not heavy.any():
        return 0.0
    return float(np.average(np.abs(fit.weight_correlation[heavy]), weights=fit.weight_spread[heavy]))
