"""What sensors that are as wrong as they ordinarily are do to the uncertainty of a sequential answer.

Gains, zeros, scales, delays, the clock and the level of the base stand beside the known directions as random effects with their
tolerances. A sensor is the same in every recording, so each is one effect through all stages, and joints that stand still have
zeros too: they are the pose. By the likelihood of the rows each family is there with some probability; what it then does to the
answer that was found without it widens its intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.imperfections import BlockFactors, correlation_length
from armid.identification.ordinary_sensors import ORDINARY, by_family, kept_ordinary
from armid.identification.possible_sizes import UNRESOLVED
from armid.information.information import triangular
from armid.rows.imperfections import ColumnReference, Columns, Family, Imperfection, Motion, imperfections
from armid.rows.torque import TorqueRows
from armid.sequential.estimate import SequentialEstimate, StageOutcome
from armid.sequential.pairing import Pairing
from armid.sequential.rows import PIECE, stage_rows
from armid.sequential.stages import Stage

_PRECISION = 1e-6
"""Of a stage's torque: what derivatives say of it at best. With exact data residuals are smaller, and what is believed of sensors
would drown in round-off beside them."""


def beside_sensors(
    found: SequentialEstimate, source: TorqueRows, stages: Sequence[Stage], *, recorded_velocity: bool, hold: bool
) -> SequentialEstimate:
    """The same answer with intervals that hold what ordinary sensors may have done to it.

    Args:
        found: with the covariance that noise, and what is not known of the pairing of torque and motion, make.
        source: the torque model.
        stages: it was found from.
        recorded_velocity: whether velocities were recorded and not derived from positions.
        hold: whether a stage kept what earlier ones found.
    """
    if not len(found.directions):
        return found
    beside = SensorsBeside.of(found, source, stages, recorded_velocity=recorded_velocity, hold=hold)
    shift = beside.shift
    return replace(found, covariance=found.covariance + shift @ beside.moments @ shift.T)


@dataclass(frozen=True, eq=False, kw_only=True)
class SensorsBeside:
    """Ordinary imperfections beside a sequential answer.

    Args:
        items: the imperfections, m of them.
        rows: of every stage.
        stages: what they found, k directions together.
        hold: whether a stage kept what earlier ones found.
    """

    items: tuple[Imperfection, ...]
    rows: tuple[_Rows, ...]
    stages: tuple[StageOutcome, ...]
    hold: bool

    @classmethod
    def of(
        cls,
        found: SequentialEstimate,
        source: TorqueRows,
        stages: Sequence[Stage],
        *,
        recorded_velocity: bool = False,
        hold: bool = False,
    ) -> SensorsBeside:
        """Arguments as for `beside_sensors`."""
        n = source.robot.n_joints
        reference = replace(
            ColumnReference.without_model(n, recorded_velocity=recorded_velocity), standard=found.values
        )
        items = imperfections(source.robot, source.effects, reference, ORDINARY)
        rows = [
            _rows_of(source, stage, outcome, found, items, reference)
            for stage, outcome in zip(stages, found.stages, strict=True)
        ]
        if not hold:
            rows = _apart_from_pairings(rows, [stage.pairing for stage in stages], items)
        return cls(items=items, rows=tuple(rows), stages=found.stages, hold=hold)

    @property
    def shift(self) -> FloatArray:
        """Change of the amounts along the known directions per unit of every imperfection, shape [k, m].

        With rows `[A Z]` of all stages (A^T A)^-1 A^T Z. Where stages are held, each for what it found, the rest moved by what
        moved the stages before it.
        """
        if not self.hold:
            return _solved(np.vstack([one.A for one in self.rows]), np.vstack([one.Z for one in self.rows]))
        shift = np.zeros((self.rows[0].A.shape[1], len(self.items)))
        for one, stage in zip(self.rows, self.stages, strict=True):
            before = stage.known - stage.found
            left = one.Z - one.A[:, :before] @ shift[:before]
            shift[before : stage.known] = _solved(one.A[:, before : stage.known], left)
        return shift

    @property
    def moments(self) -> FloatArray:
        """Second moments of the imperfections by the likelihood of the rows, shape [m, m]."""
        weight = 1.0 / np.sqrt(np.median([one.repeats for one in self.rows]))
        rows = np.vstack([np.column_stack([one.A, one.Z, one.left]) for one in self.rows])
        tolerances = np.array([item.tolerance for item in self.items])
        blocks = BlockFactors(self.rows[0].A.shape[1], [triangular(weight * rows)], tolerances)
        return blocks.moments(kept_ordinary(by_family(self.items), blocks), (), UNRESOLVED)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Rows:
    """Of one stage, in units of its noise.

    Args:
        A: per amount along the known directions, shape [n, k].
        Z: per unit of every imperfection, shape [n, m].
        left: what the answer leaves, shape [n].
        repeats: rows that tell as much as one independent one.
    """

    A: FloatArray
    Z: FloatArray
    left: FloatArray
    repeats: float


def _rows_of(
    source: TorqueRows,
    stage: Stage,
    outcome: StageOutcome,
    found: SequentialEstimate,
    items: Sequence[Imperfection],
    reference: ColumnReference,
) -> _Rows:
    """Rows of a stage as its answer was found from them, with the columns of imperfections."""
    sides = np.column_stack([stage.torque, _columns(source, stage, items, reference)])
    rows, sides, count = stage_rows(source, stage, sides)
    unit = max(outcome.unit, _PRECISION * outcome.size)
    left = (sides[:, 0] - rows @ found.values) / unit
    return _Rows(
        A=(rows * found.scale) @ found.directions.T / unit,
        Z=sides[:, 1:] / unit,
        left=left,
        # Rows are counted by what the filter leaves independent already.
        repeats=max(1.0, correlation_length(left) * count / len(left)),
    )


def _columns(source: TorqueRows, stage: Stage, items: Sequence[Imperfection], reference: ColumnReference) -> FloatArray:
    """Change of the stage's torque per unit of every imperfection, in pieces, shape [n_samples, m]."""
    k = source.channels.index(stage.joint)
    out = np.zeros((len(stage.torque), len(items)))
    for start, stop, rate in stage.stretches:
        for first in range(start, stop, PIECE):
            last = min(first + PIECE, stop)
            # A neighbour on either side, between which torque is differentiated.
            low, high = max(first - 1, start), min(last + 1, stop)
            columns = Columns(_motion(source, stage.inputs[low:high], rate), reference).of(items)
            out[first:last] = columns[first - low : last - low, k]
    return out


def _motion(source: TorqueRows, inputs: FloatArray, rate: float) -> Motion:
    """A stretch of a stage as columns are computed on; nothing that drifts is among them."""
    at_once = np.zeros(len(inputs))
    return Motion(
        source=source,
        robot=source.robot,
        effects=source.effects,
        loaded=source.loaded,
        inputs=inputs,
        rate=rate,
        segments=((0, len(inputs)),),
        elapsed=at_once,
        elapsed_alone=at_once,
    )


def _apart_from_pairings(
    rows: Sequence[_Rows], pairings: Sequence[Pairing | None], items: Sequence[Imperfection]
) -> list[_Rows]:
    """Delays without what is common to all torque of a recording whose pairing was measured: that is in its intervals already.

    A shift of all torque was measured as the mean of what the joints' delays d_j do, weighted by the size of their columns z_j:

        what is left of d_j is  d_j - sum_i w_i d_i,   w_i = |z_i|^2 / sum |z|^2
    """
    delays = np.array([item.family is Family.DELAY for item in items])
    out = list(rows)
    for pairing in {pairing for pairing in pairings if pairing is not None}:
        own = [k for k, other in enumerate(pairings) if other == pairing]
        sizes = np.sum([np.sum(rows[k].Z[:, delays] ** 2, axis=0) for k in own], axis=0)
        for k in own:
            Z = rows[k].Z.copy()
            Z[:, delays] -= np.outer(Z[:, delays].sum(axis=1), sizes / max(float(sizes.sum()), 1e-300))
            out[k] = replace(rows[k], Z=Z)
    return out


def _solved(A: FloatArray, Z: FloatArray) -> FloatArray:
    """Least squares, columns of A scaled to one size."""
    size = np.linalg.norm(A, axis=0)
    size[size == 0.0] = 1.0
    return np.asarray(np.linalg.lstsq(A / size, Z, rcond=None)[0] / size[:, np.newaxis])
