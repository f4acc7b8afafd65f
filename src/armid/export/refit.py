"""The model once more without what a file cannot hold: bodies that do not lean on torque offsets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armid.consistency.within_links import within_links
from armid.errors import ArmidError
from armid.identification.combine import same_way
from armid.identification.fit import consistent_prior, effective_information
from armid.identification.result import Result


def without_offsets(result: Result) -> Result | None:
    """The result with bodies and friction estimated anew from its Information, torque offsets being zero.

    Weight and offset of a joint that moves little are told apart poorly: each is off where their sum is not. A file that drops
    the offsets then keeps the error of the weight. The estimate without offsets has no such pairs.

    Returns:
        The result with another consistent estimate; None when it has no offsets, or no possible bodies explain it without.
    """
    names = result.consistent.names
    offsets = np.array([one.drive_quantity == "offset" for one in result.consistent.parameters])
    if not offsets.any() or tuple(result.information.parameters) != tuple(names):
        return None
    kept = np.flatnonzero(~offsets)
    units = tuple(result.consistent.units[k] for k in kept)
    rows = effective_information(result.information, result.estimate).select(kept)
    own = result.information.select(kept)
    way = same_way(result)
    try:
        prior = consistent_prior(result.described, own, result.estimate)
        found = within_links(result.described, way.fit(rows, units, prior), rows, way)
    except ArmidError:
        return None
    values = np.zeros(len(names))
    values[kept] = found.values
    return replace(result, consistent=replace(result.consistent, values=values))
