"""The structural question: what could the best possible motion tell?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.identifiability.base import BaseParameters, base_parameters, compressed
from armid.identifiability.errors import NothingIdentifiableError
from armid.identifiability.rank import STRUCTURAL_TOLERANCE, checked_tolerance, decide_rank, scaled_columns
from armid.kernels.evaluate import reference_rows
from armid.kernels.source import RowSource

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
    for k, source in enumerate(sources):
        A = structural_rows(source, seed=seed + k)
        for c, channel in enumerate(source.channels):
            blocks.setdefault(channel, []).append(A[:, c])
    channels = {name: compressed(np.vstack(parts)) for name, parts in blocks.items()}
    why = "tolerance tied to double precision (random samples)"
    stacked = np.vstack(list(channels.values()))
    base = base_parameters(stacked, parameters=columns, tolerance=tolerance, why=why, what=what)
    # A channel that sees nothing holds round-off: what counts as zero is decided by the largest column of all channels.
    largest = float(np.linalg.norm(stacked, axis=0).max())
    ranks = {
        name: decide_rank(scaled_columns(A, largest=largest)[0], tolerance=tolerance, why=why).rank
        for name, A in channels.items()
    }
    return Structure(base, ranks)
