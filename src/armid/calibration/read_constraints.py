"""Sockets, planes, bars and wires in a poses file: what is known without a sensor frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armid.arrays import FloatArray
from armid.calibration.poses_table import PosesMapping, PosesTable, find, labelled, names_of, scale
from armid.errors import InputError
from armid.kinematics.measurement import IntArray, Observations, Observed

TARGET = ("target", "point", "marker", "smr", "reflector")
_PLANE, _SOCKET, _OTHER, _ANCHOR = ("plane",), ("socket", "touch"), ("other",), ("anchor", "centre", "center")
_DISTANCE = ("distance", "dist", "length", "bar")
SIGMA_DISTANCE = ("std_distance", "sigma_distance", "sd_distance", "std_length", "std_contact", "std")


def constraint_observations(table: PosesTable, mapping: PosesMapping) -> list[Observations]:
    """Touched points, planes, distances from a fixed point and lengths between configurations."""
    out: list[Observations] = []
    targets = labelled(table, TARGET, mapping.target)
    sigma = deviations(table, mapping)
    for quantity, names in ((Observed.PLANE, _PLANE), (Observed.POINT, _SOCKET)):
        column = find(table, names)
        if column is not None:
            out += _by_label(quantity, names_of(table, column, names[0]), targets, sigma)
    column = find(table, _DISTANCE)
    if column is None:
        return out
    d = table.numbers(column) * scale(table, column, mapping, length=True)
    short = np.flatnonzero(d <= 0.0)
    if len(short):
        raise InputError(
            f"{table.where}, line {table.lines[short[0]]}", f"a {column} of {d[short[0]]:g} m", "expected > 0"
        )
    if find(table, _OTHER) is not None:
        return out + lengths(table, targets, d, sigma)
    anchors = labelled(table, _ANCHOR, "anchor")
    places = [a if np.isfinite(x) else "" for a, x in zip(anchors, d, strict=True)]
    return out + _by_label(Observed.DISTANCE, places, targets, sigma, d)


def deviations(table: PosesTable, mapping: PosesMapping) -> FloatArray:
    """Standard deviation of each row's contact or distance [m]; zero where unknown."""
    column = find(table, SIGMA_DISTANCE)
    if column is None:
        return np.full(len(table), mapping.sigma_distance)
    return np.nan_to_num(table.numbers(column) * scale(table, column, mapping, length=True))


def lengths(table: PosesTable, targets: Sequence[str], d: FloatArray, sigma: FloatArray) -> list[Observations]:
    """Distances between the same target at two rows; the column `other` counts rows from 1."""
    other = find(table, _OTHER)
    assert other is not None
    second = table.numbers(other)
    rows = [int(row) for row in np.flatnonzero(np.isfinite(d) & np.isfinite(second))]
    ends = np.full(len(table), -1, dtype=np.intp)
    for row in rows:
        end = int(second[row]) - 1
        where = f"{table.where}, line {table.lines[row]}"
        if not 0 <= end < len(table) or end == row:
            raise InputError(where, f"column {other!r} names row {end + 1}", f"another row of 1 to {len(table)}")
        if targets[end] != targets[row]:
            raise InputError(where, f"a length from {targets[row]} to {targets[end]}", "both ends must be one target")
        ends[row] = end
    out = []
    for name in dict.fromkeys(targets[row] for row in rows):
        own: IntArray = np.array([row for row in rows if targets[row] == name], dtype=np.intp)
        out.append(
            Observations(
                quantity=Observed.LENGTH,
                rows=own,
                distance=d[own],
                other_rows=ends[own],
                sigma=sigma[own, np.newaxis],
                target=name,
            )
        )
    return out


def _by_label(
    quantity: Observed,
    setups: Sequence[str],
    targets: Sequence[str],
    sigma: FloatArray,
    distance: FloatArray | None = None,
) -> list[Observations]:
    """One set of observations per place and target; rows with an empty place are left out."""
    out = []
    keys = list(zip(setups, targets, strict=True))
    for key in dict.fromkeys(keys):
        rows = np.flatnonzero([k == key for k in keys])
        if key[0]:
            out.append(
                Observations(
                    quantity=quantity,
                    rows=rows,
                    distance=None if distance is None else distance[rows],
                    sigma=sigma[rows, np.newaxis],
                    setup=key[0],
                    target=key[1],
                )
            )
    return out
