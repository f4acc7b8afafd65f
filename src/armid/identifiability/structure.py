"""The structural question: what could the best possible motion tell?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.identifiability.base import BaseParameters, base_parameters, compressed
from armid.identifiability.errors import NothingIdentifiableError
from armid.identifiability.rank import STRUCTURAL_TOLERANCE, checked_tolerance, decide_rank, scaled_columns
from armid.kernels.evaluate import reference_rows
from armid.kernels.source import RowSource
from armid.robot.exact_angles import meant_robot
from armid.robot.robot import Robot

Source = TypeVar("Source", bound=RowSource)

SEED = 20
"""Of the random samples. Any other gives the same answer; a fixed one makes it repeatable to the last bit."""


@dataclass(frozen=True, eq=False)
class Structure:
    """What a kind of experiment can tell at best.

    Args:
        base: the base parameters.
        per_channel: rank of each channel's own rows.
    """

    base: BaseParameters
    per_channel: dict[str, int]


def random_inputs(source: RowSource, count: int, rng: np.random.Generator) -> FloatArray:
    """Samples with every input drawn from (-pi, pi): all angles, and lengths and rates of either sign."""
    return rng.uniform(-np.pi, np.pi, size=(count, len(source.inputs)))


def structural_rows(source: RowSource, *, count: int | None = None, seed: int = SEED) -> FloatArray:
    """Rows at random samples, shape [n_samples, n_channels, n_columns].

    By default more samples than columns, so that any single channel can show its full rank.
    """
    wanted = len(source.columns) + 20 if count is None else count
    return reference_rows(source, random_inputs(source, wanted, np.random.default_rng(seed)))


def structural_base(
    *sources: RowSource, tolerance: float = STRUCTURAL_TOLERANCE, what: str = "the measured quantity", seed: int = SEED
) -> BaseParameters:
    """Base parameters of one or several experiments together, by rank of random samples.

    Args:
        sources: experiments over the same parameters (loaded and unloaded runs, gravity and inertia, ...).
        tolerance: relative, in (0, 1).
        what: the measured quantity, for messages.
        seed: of the samples.
    """
    return structure(*sources, tolerance=tolerance, what=what, seed=seed).base


def meant_source(source: Source) -> Source:
    """The source with rounded right angles of its arm made exact: rank that exists only through rounding is none.

    A source may stand for another one (rows restricted to some columns, or as a low-pass left them): then that one changes.
    """
    changes: dict[str, Any] = {}
    for name in (field.name for field in fields(cast(Any, source))):
        part = getattr(source, name)
        if isinstance(part, Robot):
            changes[name] = meant_robot(part)
        elif is_dataclass(part) and hasattr(part, "rows") and hasattr(part, "columns"):
            changes[name] = meant_source(cast(Any, part))
    if all(value is getattr(source, name) for name, value in changes.items()):
        return source
    changed: Source = replace(cast(Any, source), **changes)
    return changed


def structure(
    *sources: RowSource, tolerance: float = STRUCTURAL_TOLERANCE, what: str = "the measured quantity", seed: int = SEED
) -> Structure:
    """Base parameters and the rank of every channel's own rows."""
    checked_tolerance(tolerance)
    columns = sources[0].columns
    if any(source.columns != columns for source in sources):
        raise InputError("sources", "experiments over different parameters", "build them with the same effects")
    if not columns:
        raise NothingIdentifiableError(what, ())
    blocks: dict[str, list[FloatArray]] = {}
    for k, source in enumerate(meant_source(one) for one in sources):
        A = structural_rows(source, seed=seed + k)
        for c, channel in enumerate(source.channels):
            blocks.setdefault(channel, []).append(A[:, c])
    channels = {name: _compressed_channel(np.vstack(parts)) for name, parts in blocks.items()}
    why = "tolerance tied to double precision (random samples)"
    stacked = _stacked(channels, blocks)
    base = base_parameters(stacked, parameters=columns, tolerance=tolerance, why=why, what=what)
    # A channel that sees nothing holds round-off: what counts as zero is decided by the largest column of all channels.
    largest = float(np.linalg.norm(stacked, axis=0).max())
    ranks = {
        name: decide_rank(scaled_columns(A, largest=largest)[0], tolerance=tolerance, why=why).rank
        for name, A in channels.items()
    }
    return Structure(base, ranks)


_MANY_COLUMNS = 400
"""Parameters of some thirty joints: from here on channels are thinned before they are put together, which costs time that grows
with the fourth power of the number of joints and tells nothing new."""

_SAMPLES_PER_COLUMN = 3
"""Rows for each parameter that many channels together keep when they are thinned."""


def _compressed_channel(A: FloatArray) -> FloatArray:
    """A triangular factor of one channel; of a long arm without the columns that the channel does not see at all."""
    if A.shape[1] <= _MANY_COLUMNS:
        return compressed(A)
    seen = A.any(axis=0)
    out = np.zeros((min(len(A), int(seen.sum())), A.shape[1]))
    out[:, seen] = compressed(A[:, seen])[: len(out)]
    return out


def _stacked(channels: Mapping[str, FloatArray], blocks: Mapping[str, Sequence[FloatArray]]) -> FloatArray:
    """All channels together: their factors, or of a long arm enough of their rows."""
    p = next(iter(channels.values())).shape[1]
    if p <= _MANY_COLUMNS:
        return np.vstack(list(channels.values()))
    each = -(-_SAMPLES_PER_COLUMN * (p + 20) // len(channels))
    return np.vstack([part[:each] for parts in blocks.values() for part in parts])
