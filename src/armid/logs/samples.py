"""Conditioned measurements: uniform in time within every segment, with derivatives that can be relied on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, finite
from armid.errors import InputError, ShapeError, UnknownNameError
from armid.logs.log import MEASURED_TORQUES, Channel, Conditions, LogSource
from armid.notes import Note
from armid.parameters.effects import TorqueSide
from armid.rows.presliding import SUBSTEPS

if TYPE_CHECKING:
    from armid.logs.conditioning.settings import Conditioning

MOTOR_SIDE = (Channel.MOTOR_TORQUE, Channel.CURRENT, Channel.COMMANDED_TORQUE)
"""Channels that measure before the transmission, preferred first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of uniform sampling: samples start..stop-1 of one log, not bridging any gap.

    Args:
        start, stop: index range.
        log: name of the log it comes from.
        rate: samples per second [Hz].
        conditions: of that run.
        continues: whether it follows on the last sample of the piece before without a gap.
        lead, trail: samples at its beginning and end that belong to the pieces before and after and are there as context only.
    """

    start: int
    stop: int
    log: str = ""
    rate: float = 0.0
    conditions: Conditions = field(default_factory=Conditions)
    continues: bool = False
    lead: int = 0
    trail: int = 0

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def slice(self) -> slice:
        return slice(self.start, self.stop)


@dataclass(frozen=True, eq=False, kw_only=True)
class Samples:
    """What the estimators use. Arrays are read-only with contiguous columns.

    Args:
        joints: names, in the order of the columns.
        time: [s], shape [n_samples].
        q, qd, qdd: position, velocity, acceleration [rad or m, ...], shape [n_samples, n_joints].
        torques: conditioned torque per channel [N m, N or A], shape [n_samples, n_joints].
        raw_torques: the same instants before low-pass filtering.
        variances: per-sample variance of the conditioned torque per channel, where repetitions gave one.
        weights: per sample, shape [n_samples].
        velocities_between: velocity at `SUBSTEPS` points of the interval around each sample, less filtered than qd: friction
            turns around within a fraction of the filter's period; shape [n_samples, points, n_joints]. None where not known.
        segments: index ranges of uniform sampling, in order.
        rate: samples per second of the first segment [Hz]; each segment has its own, logs may differ.
        settings: the conditioning with every automatic choice resolved.
        noise: standard deviation of the measurement noise per channel, shape [n_joints]; before filtering.
        sources: provenance of every log in it.
        notes: of the logs and of the conditioning.
    """

    joints: tuple[str, ...]
    time: FloatArray
    q: FloatArray
    qd: FloatArray
    qdd: FloatArray
    torques: Mapping[Channel, FloatArray]
    segments: tuple[Segment, ...]
    rate: float
    raw_torques: Mapping[Channel, FloatArray] = field(default_factory=dict)
    variances: Mapping[Channel, FloatArray] = field(default_factory=dict)
    weights: FloatArray | None = None
    velocities_between: FloatArray | None = None
    settings: Conditioning | None = None
    noise: Mapping[Channel, FloatArray] = field(default_factory=dict)
    sources: tuple[LogSource, ...] = ()
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        count, n = len(self.time), len(self.joints)
        object.__setattr__(self, "time", columns("time", self.time, (count,)))
        for name in ("q", "qd", "qdd"):
            object.__setattr__(self, name, columns(name, getattr(self, name), (count, n)))
        for name in ("torques", "raw_torques", "variances"):
            arrays = {c: columns(f"{name} {c.value}", v, (count, n)) for c, v in getattr(self, name).items()}
            object.__setattr__(self, name, MappingProxyType(arrays))
        noise = {c: columns(f"noise {c.value}", v, (n,)) for c, v in self.noise.items()}
        object.__setattr__(self, "noise", MappingProxyType(noise))
        weights = np.ones(count) if self.weights is None else self.weights
        object.__setattr__(self, "weights", columns("weights", weights, (count,)))
        if self.velocities_between is not None:
            shape = (count, SUBSTEPS, n)
            object.__setattr__(
                self, "velocities_between", columns("velocities_between", self.velocities_between, shape)
            )
        covered = [i for s in self.segments for i in (s.start, s.stop)]
        if covered != sorted(covered) or (covered and (covered[0] < 0 or covered[-1] > count)):
            raise ShapeError("segments", (len(self.segments),), f"increasing ranges within {count} samples")

    def __len__(self) -> int:
        return len(self.time)

    def described(self, **facts: Any) -> Samples:
        """The same numbers with other segments, settings, noise, sources or notes; what was checked is not checked again."""
        unknown = set(facts) - _FACTS
        assert not unknown, unknown
        other = copy(self)
        for name, value in facts.items():
            object.__setattr__(other, name, MappingProxyType(dict(value)) if name == "noise" else value)
        return other

    @property
    def n_joints(self) -> int:
        return len(self.joints)

    @property
    def cutoff_hz(self) -> float | None:
        """Cut-off of the low-pass on torque [Hz]; None when nothing was filtered."""
        return None if self.settings is None else self.settings.torque_cutoff

    def inputs(self) -> FloatArray:
        """(q, qd, qdd) side by side as `TorqueRows` takes them, shape [n_samples, 3 n_joints], columns contiguous."""
        return np.asfortranarray(np.concatenate([self.q.T, self.qd.T, self.qdd.T]).T)

    def channel(self, side: TorqueSide = TorqueSide.LINK) -> Channel:
        """The torque channel that stands for a single side: the side's own, or the only one there is."""
        order = MEASURED_TORQUES if side is TorqueSide.LINK else (*MOTOR_SIDE, Channel.LINK_TORQUE)
        found = [channel for channel in order if channel in self.torques]
        if not found:
            raise UnknownNameError("torque channel", side.value, [c.value for c in self.torques])
        return found[0]

    def torque(self, side: TorqueSide = TorqueSide.LINK, *, raw: bool = False) -> FloatArray:
        """Measured torque in the order of the channels of `TorqueRows` with this side.

        Args:
            side: link or motor gives [n_samples, n_joints] (the only channel there is, when it is the only one);
                both gives link and motor columns side by side; difference gives motor minus link.
            raw: before low-pass filtering.
        """
        arrays = self.raw_torques if raw else self.torques
        if raw and not arrays:
            raise UnknownNameError("torque channel before filtering", side.value, ())
        if side in (TorqueSide.LINK, TorqueSide.MOTOR):
            return arrays[self.channel(side)]
        motor = next((c for c in MOTOR_SIDE if c in arrays), None)
        if Channel.LINK_TORQUE not in arrays or motor is None:
            raise InputError(
                "torques", f"{side.value} needs link and motor torque; there is {', '.join(c.value for c in arrays)}"
            )
        link, drive = arrays[Channel.LINK_TORQUE], arrays[motor]
        return np.asfortranarray(np.hstack([link, drive])) if side is TorqueSide.BOTH else drive - link

    def window(self, start: int, stop: int) -> Samples:
        """Samples start..stop-1; segments are cut, never joined."""
        start, stop = max(0, start), min(len(self), stop)
        kept = tuple(
            replace(s, start=max(s.start, start) - start, stop=min(s.stop, stop) - start)
            for s in self.segments
            if s.start < stop and s.stop > start
        )
        return self.with_arrays(lambda name, array: array[start:stop], segments=kept)

    def with_arrays(self, change: Callable[[str, FloatArray], FloatArray], segments: tuple[Segment, ...]) -> Samples:
        """Every per-sample array passed through `change(name, array)`, with new segments."""

        def each(kind: str, arrays: Mapping[Channel, FloatArray]) -> dict[Channel, FloatArray]:
            return {c: change(f"{kind} {c.value}", v) for c, v in arrays.items()}

        return replace(
            self,
            segments=segments,
            time=change("time", self.time),
            q=change("q", self.q),
            qd=change("qd", self.qd),
            qdd=change("qdd", self.qdd),
            weights=None if self.weights is None else change("weights", self.weights),
            velocities_between=None
            if self.velocities_between is None
            else change("velocities_between", self.velocities_between),
            torques=each("torques", self.torques),
            raw_torques=each("raw_torques", self.raw_torques),
            variances=each("variances", self.variances),
        )


_FACTS = frozenset(("segments", "settings", "noise", "sources", "notes"))
"""What samples carry beside their numbers."""


def columns(name: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """A finite read-only array of this shape with contiguous columns."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ShapeError(name, array.shape, str(list(shape)))
    if not array.flags.f_contiguous:
        array = np.asfortranarray(array)
    if array.flags.writeable:
        # Fresh arrays are handed over; a view of ours shares memory nobody else writes to.
        array = array.view()
        array.flags.writeable = False
    return finite(name, array)


def concatenated(parts: Sequence[Samples] | Iterable[Samples]) -> Samples:
    """Several Samples after one another. Joints, rate and torque channels must agree; segments stay apart."""
    pieces = list(parts)
    if not pieces:
        raise InputError("samples", "nothing to concatenate")
    first = pieces[0]
    for piece in pieces[1:]:
        if piece.joints != first.joints:
            raise InputError("samples", f"joints {piece.joints} after {first.joints}")
        if set(piece.torques) != set(first.torques):
            raise InputError(
                "samples", f"torque {[c.value for c in piece.torques]} after {[c.value for c in first.torques]}"
            )
    if len(pieces) == 1:
        return first
    starts = np.cumsum([0, *(len(piece) for piece in pieces)])
    segments = tuple(
        replace(s, start=s.start + int(k), stop=s.stop + int(k))
        for k, piece in zip(starts[:-1], pieces, strict=True)
        for s in piece.segments
    )

    between = [p.velocities_between for p in pieces if p.velocities_between is not None]

    def stacked(get: Callable[[Samples], Mapping[Channel, FloatArray]]) -> dict[Channel, FloatArray]:
        common = [c for c in get(first) if all(c in get(piece) for piece in pieces)]
        return {c: joined([get(piece)[c] for piece in pieces]) for c in common}

    return replace(
        first,
        segments=segments,
        time=joined([p.time for p in pieces]),
        q=joined([p.q for p in pieces]),
        qd=joined([p.qd for p in pieces]),
        qdd=joined([p.qdd for p in pieces]),
        weights=joined([p.weights for p in pieces if p.weights is not None]),
        velocities_between=joined(between) if len(between) == len(pieces) else None,
        torques=stacked(lambda p: p.torques),
        raw_torques=stacked(lambda p: p.raw_torques),
        variances=stacked(lambda p: p.variances),
        sources=tuple(dict.fromkeys(source for piece in pieces for source in piece.sources)),
        notes=tuple(dict.fromkeys(note for piece in pieces for note in piece.notes)),
    )


def with_context(pieces: Iterable[Samples], context: int) -> Iterator[Samples]:
    """Pieces with so many samples of their neighbours of the same stretch before and after; `lead` and `trail` count them."""
    if context <= 0:
        yield from pieces
        return
    before: Samples | None = None
    here: Samples | None = None
    for after in pieces:
        if here is not None:
            yield _among(before, here, after, context)
        before, here = here, after
    if here is not None:
        yield _among(before, here, None, context)


def _among(before: Samples | None, here: Samples, after: Samples | None, context: int) -> Samples:
    """A piece between its neighbours."""
    parts = [here]
    lead = trail = 0
    if before is not None and here.segments[0].continues:
        lead = min(context, len(before))
        parts.insert(0, before.window(len(before) - lead, len(before)))
    if after is not None and after.segments[0].continues:
        trail = min(context, len(after))
        parts.append(after.window(0, trail))
    whole = concatenated(parts)
    segment = replace(here.segments[0], start=0, stop=len(whole), lead=lead, trail=trail)
    return whole.described(segments=(segment,))


def joined(arrays: Sequence[FloatArray]) -> FloatArray:
    """Rows after one another with contiguous columns."""
    return np.concatenate([a.T for a in arrays], axis=-1).T
