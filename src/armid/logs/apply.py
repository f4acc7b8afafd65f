"""Carries out a mapping: raw columns to joint quantities in SI units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError, UnknownNameError
from armid.logs.log import Channel
from armid.logs.mapping import ChannelMap
from armid.logs.readers.table import Table, TableFile
from armid.logs.units import factor


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Scaled:
    """A channel with its columns looked up and all its factors in one matrix or one row.

    Args:
        channel: what it is.
        file: key of the file.
        columns: names as they stand in the file.
        scale: per column, shape [columns].
        matrix: applied after the scale, shape [n, columns]; None when it is the identity.
        offset: added last, shape [n] or [1].
    """

    channel: Channel
    file: str
    columns: tuple[str, ...]
    scale: FloatArray
    matrix: FloatArray | None
    offset: FloatArray

    @staticmethod
    def of(entry: ChannelMap, table: TableFile, where: str, joints: Sequence[str] = ()) -> Scaled:
        """Looks up columns; a name that does not exist is an error that lists those that do.

        Args:
            entry: what the mapping says.
            table: the file.
            where: the mapping, for errors.
            joints: names of the columns, for factors of single joints.
        """
        columns = tuple(column_of(table, name, where) for name in entry.columns) or table.names
        gear = _factors(entry, "gear_ratio", joints, where)
        # A gear makes the joint slower and stronger than the motor.
        through = gear if entry.channel.is_torque or entry.channel is Channel.EXTERNAL_TORQUE else 1.0 / gear
        units = np.array([factor(entry.channel, unit) for unit in entry.units or (entry.unit,)])
        scale = units * _factors(entry, "sign", joints, where) * _factors(entry, "gain", joints, where) * through
        matrix = entry.matrix
        if entry.inverse_matrix is not None:
            inverse: FloatArray = np.linalg.inv(entry.inverse_matrix).astype(np.float64)
            matrix = inverse if matrix is None else matrix @ inverse
        return Scaled(
            channel=entry.channel,
            file=entry.file,
            columns=columns,
            scale=scale,
            matrix=matrix,
            offset=_factors(entry, "offset", joints, where),
        )


def _factors(entry: ChannelMap, word: str, joints: Sequence[str], where: str) -> FloatArray:
    """Numbers of a word of the mapping, shape [1] or [columns]."""
    values = np.array(getattr(entry, word), dtype=np.float64)
    named = entry.by_joint.get(word, {})
    if not named:
        return values
    if word != "offset" and (entry.matrix is not None or entry.inverse_matrix is not None):
        raise InputError(where, f"{word} by joint beside a matrix, whose columns are no joints", "give a list")
    values = np.array(np.broadcast_to(values, (len(joints),)))
    for name, value in named.items():
        if name not in joints:
            raise UnknownNameError(f"joint in {word} of {where}", name, joints)
        k = list(joints).index(name)
        values[k] = values[k] + value if word == "offset" else values[k] * value
    return values


def channel_values(scaled: Scaled, table: Table, start: int, stop: int) -> FloatArray:
    """Values of one channel, shape [rows, n_joints], columns contiguous."""
    wide = [table[name] for name in scaled.columns]
    raw = [column for values in wide for column in (values.T if values.ndim == 2 else values[np.newaxis])]
    width = len(raw)
    if len(scaled.scale) not in (1, width):
        raise InputError(scaled.channel.value, f"{len(scaled.scale)} factors for {width} columns")
    with np.errstate(all="ignore"):
        return _scaled_values(scaled, raw, width, start, stop)


def _scaled_values(scaled: Scaled, raw: list[FloatArray], width: int, start: int, stop: int) -> FloatArray:
    """The columns times their factors, combined, with their offset; absurd numbers stay absurd."""
    out = np.empty((width, stop - start))
    scale = np.broadcast_to(scaled.scale, (width,))
    for k, column in enumerate(raw):
        np.multiply(column[start:stop], scale[k], out=out[k])
    values = out.T
    if scaled.matrix is not None:
        if scaled.matrix.shape[1] != width:
            raise InputError(scaled.channel.value, f"a matrix of shape {list(scaled.matrix.shape)} for {width} columns")
        values = (scaled.matrix @ out).T
    if scaled.offset.any():
        if len(scaled.offset) not in (1, values.shape[1]):
            raise InputError(scaled.channel.value, f"{len(scaled.offset)} offsets for {values.shape[1]} joints")
        values = values + scaled.offset
    return values


def column_of(table: TableFile, name: str, where: str) -> str:
    """A column by name, or by its number counted from 1."""
    if name in table.names:
        return name
    if name.isdigit() and 0 < int(name) <= len(table.names):
        return table.names[int(name) - 1]
    raise UnknownNameError(f"column in {where}", name, table.names)
