"""What an experiment can tell about the parameters, as one small triangular factor per channel.

For the rows `y = A pi` of one channel, `[A y]` has the QR factor

    [ R  z   ]
    [ 0  rho ]

and that factor, with the number of rows, is all that any estimator linear in the rows needs: `A^T A = R^T R`,
`A^T y = R^T z`, and the smallest possible residual energy is rho^2. Information adds up over chunks, files,
repetitions, machines and time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only
from armid.cluster.tree import tree_sum
from armid.errors import ArmidError, UnknownNameError


class IncompatibleInformationError(ArmidError):
    """Two pieces of information about different parameters cannot be added."""


@dataclass(frozen=True, eq=False)
class ChannelInformation:
    """The factor of one channel, over the columns that channel can see.

    Args:
        name: of the channel.
        columns: indices into the parameter vector, ascending, shape [c]; all others are structurally zero here.
        factor: upper triangular `[R z; 0 rho]`, shape [c + 1, c + 1].
        count: number of rows it stands for (a float: forgetting shrinks it).
        measured: the measured channel whose rows these are, when it is told apart into classes of different noise; see `whole`.
    """

    name: str
    columns: npt.NDArray[np.intp]
    factor: FloatArray
    count: float
    measured: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", read_only(self.factor))
        columns = np.array(self.columns, dtype=np.intp)
        columns.flags.writeable = False
        object.__setattr__(self, "columns", columns)

    @property
    def whole(self) -> str:
        """Name of the measured channel: its own, unless it is a class of one."""
        return self.measured or self.name

    @property
    def R(self) -> FloatArray:
        return self.factor[:-1, :-1]

    @property
    def z(self) -> FloatArray:
        return self.factor[:-1, -1]

    @property
    def residual_energy(self) -> float:
        """The smallest possible sum of squared residuals of this channel alone."""
        return float(self.factor[-1, -1] ** 2)

    def error_energy(self, pi: FloatArray) -> float:
        """Sum of squared residuals of this channel for a full parameter vector pi."""
        r = self.R @ pi[self.columns] - self.z
        return float(r @ r) + self.residual_energy

    def scaled(self, weight: float) -> ChannelInformation:
        """The same rows multiplied by `weight`; the count stays."""
        return replace(self, factor=self.factor * weight)


@dataclass(frozen=True, eq=False)
class Information:
    """Channels over one parameter vector.

    Args:
        parameters: names of the columns.
        channels: one factor each.
        method: how the rows were folded in (`gram` or `qr`, joined by `+` when pieces differ).
    """

    parameters: tuple[str, ...]
    channels: tuple[ChannelInformation, ...]
    method: str = ""

    @property
    def n_parameters(self) -> int:
        return len(self.parameters)

    @property
    def count(self) -> float:
        """Rows over all channels."""
        return sum(channel.count for channel in self.channels)

    def channel(self, name: str) -> ChannelInformation:
        for channel in self.channels:
            if channel.name == name:
                return channel
        raise UnknownNameError("channel", name, (c.name for c in self.channels))

    def __add__(self, other: Information) -> Information:
        """Both experiments together: channels of the same name merge, others stand side by side."""
        return total((self, other))

    def weighted(self, weights: Mapping[str, float]) -> Information:
        """Every channel's rows multiplied by its weight (1/sigma makes them unit variance)."""
        return replace(
            self, channels=tuple(c.scaled(weights[c.name]) if c.name in weights else c for c in self.channels)
        )

    def pooled(self) -> Information:
        """One channel per measured one: classes of different noise put together again."""
        if not any(channel.measured for channel in self.channels):
            return self
        found: dict[str, ChannelInformation] = {}
        for channel in self.channels:
            plain = replace(channel, name=channel.whole, measured="")
            found[plain.name] = merged(found[plain.name], plain) if plain.name in found else plain
        return replace(self, channels=tuple(found.values()))

    def select(self, columns: Sequence[int] | npt.NDArray[np.intp]) -> Information:
        """Only these columns of the parameter vector; the others are taken to be zero."""
        return _selected(self, tuple(np.asarray(columns, dtype=np.intp).tolist()))

    def stacked(self) -> FloatArray:
        """One factor `[R z; 0 rho]` over all parameters and channels, shape [p + 1, p + 1]."""
        p = self.n_parameters
        blocks = []
        for c in self.channels:
            block = np.zeros((len(c.columns) + 1, p + 1))
            block[:, [*c.columns, p]] = c.factor
            blocks.append(block)
        return triangular(np.vstack(blocks)) if blocks else np.zeros((p + 1, p + 1))

    def gram(self) -> FloatArray:
        """A^T A over all channels, shape [p, p]. Loses half the digits: for variances, not for rank decisions."""
        G = np.zeros((self.n_parameters, self.n_parameters))
        for c in self.channels:
            G[np.ix_(c.columns, c.columns)] += c.R.T @ c.R
        return G


@lru_cache(maxsize=8)
def _selected(information: Information, wanted: tuple[int, ...]) -> Information:
    """One fit after the other asks for the base parameters of the same rows: the last few are at hand."""
    place = np.full(information.n_parameters, -1, dtype=np.intp)
    place[list(wanted)] = np.arange(len(wanted))
    parts = []
    for c in information.channels:
        own = place[c.columns]
        kept = np.argsort(own, kind="stable")[np.count_nonzero(own < 0) :]
        # Dropping or permuting columns of a triangular factor leaves a few subdiagonals: one small QR mends it.
        factor = triangular(c.factor[:, [*kept, len(c.columns)]])
        parts.append(replace(c, columns=own[kept], factor=factor))
    return Information(tuple(information.parameters[i] for i in wanted), tuple(parts), information.method)


_CACHED = 1 << 16
"""Numbers that are turned into a triangle at once, half a megabyte: in such pieces thousands of narrow rows take half as long."""


def triangular(A: FloatArray) -> FloatArray:
    """Square upper-triangular factor of A with a non-negative diagonal, padded with zero rows where A is short."""
    columns = A.shape[1]
    if A.shape[0] < columns:
        A = np.vstack([A, np.zeros((columns - A.shape[0], columns))])
    height = _CACHED // max(columns, 1)
    if len(A) >= 2 * height >= 16 * columns:
        A = np.concatenate([triangular(A[start : start + height]) for start in range(0, len(A), height)])
    # The factor as LAPACK leaves it: NumPy's own way to it makes a mask of the triangle every time.
    R = np.linalg.qr(A, mode="raw")[0][:, :columns].T
    return np.asarray(np.where(_upper(columns), R * np.where(np.diag(R) < 0.0, -1.0, 1.0)[:, np.newaxis], 0.0))


@lru_cache(maxsize=256)
def _upper(size: int) -> npt.NDArray[np.bool_]:
    """Where a square matrix has its upper triangle."""
    return np.tri(size, dtype=bool).T


def with_reversed(information: Information, name: str) -> Information:
    """The rows of one channel with measured values of the other sign: nothing is looked at again.

    Args:
        information: as measured.
        name: of the channel.
    """

    def turned(channel: ChannelInformation) -> ChannelInformation:
        if channel.whole != name:
            return channel
        factor = np.array(channel.factor)
        factor[:-1, -1] *= -1.0
        return replace(channel, factor=factor)

    return replace(information, channels=tuple(turned(channel) for channel in information.channels))


def triangular_by_channel(rows: FloatArray) -> FloatArray:
    """The factor of all rows of several channels together, each channel reduced over the columns it sees first.

    A joint near the tip feels a few links only, and what is wrong with one sensor shows in one channel: most of such rows is
    zero, and a QR of all of them at once would turn those zeros around with the rest.

    Args:
        rows: shape [n_samples, n_channels, n_columns].
    """
    count, _, width = rows.shape
    seen = np.any(rows != 0.0, axis=0)
    if count <= np.min(np.count_nonzero(seen, axis=1), initial=width):
        return triangular(rows.reshape(-1, width))
    blocks = []
    for own, columns in zip(rows.transpose(1, 0, 2), seen, strict=True):
        height = np.count_nonzero(columns)
        if count <= height:
            blocks.append(own)
            continue
        block = np.zeros((height, width))
        block[:, columns] = triangular(own[:, columns])
        blocks.append(block)
    return triangular(np.concatenate(blocks))


def merged(first: ChannelInformation, *others: ChannelInformation) -> ChannelInformation:
    """Factors of the same channel as one."""
    if not others:
        return first
    parts = (first, *others)
    columns = np.unique(np.concatenate([part.columns for part in parts]))
    blocks = np.zeros((sum(len(part.factor) for part in parts), len(columns) + 1))
    start = 0
    for part in parts:
        places = [*np.searchsorted(columns, part.columns), len(columns)]
        blocks[start : start + len(part.factor), places] = part.factor
        start += len(part.factor)
    return ChannelInformation(
        first.name, columns, triangular(blocks), sum(part.count for part in parts), measured=first.measured
    )


def total(parts: Iterable[Information]) -> Information:
    """The sum of several, at least one: channels of the same name merge, others stand side by side.

    A few at a time, along one tree: the same sum on a cluster, to the last bit.

    Raises:
        IncompatibleInformationError: they are not all about the same parameters.
    """
    return tree_sum(parts, added)


def added(parts: Sequence[Information]) -> Information:
    """A few together: their factors are stacked in one step."""
    if any(part.parameters != parts[0].parameters for part in parts):
        raise IncompatibleInformationError("the two experiments are about different parameters")
    by_name: dict[str, list[ChannelInformation]] = {}
    for channel in (channel for part in parts for channel in part.channels):
        by_name.setdefault(channel.name, []).append(channel)
    methods = dict.fromkeys(m for part in parts for m in part.method.split("+") if m)
    return replace(parts[0], channels=tuple(merged(*same) for same in by_name.values()), method="+".join(methods))
