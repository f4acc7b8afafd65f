"""Where the ten columns of each link stand in a row, the payload's beside them."""

from __future__ import annotations

from collections.abc import Sequence

from armid.kernels.source import Row
from armid.parameters.effects import PayloadRuns
from armid.parameters.space import OwnerKind, ParameterSpace
from armid.recursion.dynamics import Ten


def link_row(space: ParameterSpace, entries: Sequence[Ten | None], *, loaded: bool) -> Row:
    """One row from ten coefficients per link; a payload is felt exactly as the last link is.

    Args:
        space: the parameter vector.
        entries: per link, None where the link cannot be felt.
        loaded: whether the payload is there; only meaningful with a payload among the effects.
    """
    row: Row = {}
    carried = loaded and space.effects.payload is not PayloadRuns.NONE
    for link, ten in enumerate(entries):
        if ten is None:
            continue
        start = space.start(OwnerKind.LINK, link)
        row |= {start + k: value for k, value in enumerate(ten)}
        if carried and link == len(entries) - 1:
            start = space.start(OwnerKind.PAYLOAD, len(entries))
            row |= {start + k: value for k, value in enumerate(ten)}
    return row
