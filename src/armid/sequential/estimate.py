"""One link after the other from the tip, [Khosla1985] sec. 3: what one stage finds is known to the next.

Stage k looks at the torque of one joint only. Its rows see the links from that joint to the tip; what earlier stages found enters
with its covariance, the rest is solved, and directions this stage cannot see stay open until a later one can.
Directions no stage sees keep their starting values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only
from armid.errors import InputError, ShapeError
from armid.estimation.estimate import Estimate, units_of
from armid.identifiability.base import BaseParameters, Category
from armid.identifiability.rank import STRUCTURAL_TOLERANCE
from armid.information.information import ChannelInformation, triangular
from armid.information.solve import solve_factor
from armid.notes import Note, Severity
from armid.rows.torque import TorqueRows
from armid.sequential.pairing import Pairing
from armid.sequential.rows import stage_rows
from armid.sequential.stages import Stage

_EXCITED = 1e-7
"""Smallest over largest singular value of a stage's column-scaled rows along a direction that counts as seen: with
torque good to six digits a weaker one would be noise."""

_OUTSIDE = 1e-6
"""Of a base parameter: a smaller part outside the known directions is round-off."""

_ROUND_OFF = 1e-12
"""Relative to the measured torque: residuals below this are those of double precision and say nothing of noise."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StageOutcome:
    """What one stage found.

    Args:
        joint: whose torque it used.
        locked: joints that stood still.
        rows: how many.
        found: directions that became known.
        known: directions known after it.
        sigma: residual standard deviation [N m or N].
        size: root mean square of the torque [N m or N].
        parameters: standard parameters that enter the found directions.
        contradicted: what the answer of all stages leaves beyond that, root mean square [N m or N]; zero where stages are held.
    """

    joint: str
    locked: tuple[str, ...]
    rows: int
    found: int
    known: int
    sigma: float
    size: float
    parameters: tuple[str, ...]
    contradicted: float = 0.0

    @property
    def contradiction(self) -> float:
        """The same as a fraction of the torque; zero within the noise of the stage."""
        return self.contradicted / self.size if self.contradicted > self.sigma else 0.0

    @property
    def unit(self) -> float:
        """[N m or N] In which its rows are weighed."""
        return _unit_of(self.sigma, self.size)

    @property
    def relative_error(self) -> float:
        """What is left of the torque, as a fraction of it."""
        return self.sigma / self.size if self.size > 0.0 else 0.0


@dataclass(frozen=True, eq=False, kw_only=True)
class SequentialEstimate:
    """The outcome of all stages.

    Args:
        parameters: names of the standard parameters.
        values: starting values with every known direction corrected, shape [p].
        directions: orthonormal (in units of `scale`), one per row, shape [k, p]; what is known.
        covariance: of the known directions' amounts, shape [k, k].
        scale: natural unit of every parameter.
        stages: one after the other.
        notes: what a reader must know.
    """

    parameters: tuple[str, ...]
    values: FloatArray
    directions: FloatArray
    covariance: FloatArray
    scale: FloatArray
    stages: tuple[StageOutcome, ...]
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        for name in ("values", "directions", "covariance", "scale"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def over(self, base: BaseParameters, units: Sequence[str] = ()) -> Estimate:
        """Base parameters with the covariance that error propagation through the stages gives.

        A base parameter outside the known directions gets an infinite variance.
        """
        P = base.projection * self.scale
        inside = P @ self.directions.T
        lost = self._lost(P)
        covariance = inside @ self.covariance @ inside.T
        covariance[lost, lost] = np.inf
        notes = self.notes
        if lost.any():
            names = ", ".join(self.undetermined(base))
            notes = (
                *notes,
                Note("not-determined", Severity.WARNING, f"no stage determined {names}: starting values kept"),
            )
        return Estimate(
            base=base,
            units=units_of(base, np.array(units, dtype=object)) if len(units) else ("",) * len(base),
            values=base.values(self.values),
            covariance=covariance,
            covariance_kind="propagated through stages",
            sigma={stage.joint: stage.sigma for stage in self.stages},
            method="sequential, tip to base",
            notes=notes,
        )

    def undetermined(self, base: BaseParameters) -> tuple[str, ...]:
        """Base parameters with a part outside the known directions."""
        lost = self._lost(base.projection * self.scale)
        return tuple(name for name, gone in zip(base.names, lost, strict=True) if gone)

    def _lost(self, P: FloatArray) -> npt.NDArray[np.bool_]:
        outside = P - (P @ self.directions.T) @ self.directions
        return np.asarray(np.linalg.norm(outside, axis=1) > _OUTSIDE * np.linalg.norm(P, axis=1))

    def alone(self, base: BaseParameters) -> dict[str, bool]:
        """For every standard parameter that shows at all, whether it was found by itself or only in a combination."""
        return {
            name: category is Category.ALONE
            for name, category in base.categories.items()
            if category is not Category.NOT_AT_ALL
        }


@dataclass(frozen=True, slots=True)
class TipToBase:
    """Settings of the sequential solution.

    What a stage finds is known to the next as well as that stage knew it: with its covariance. A tip joint whose torque shows
    some direction only weakly then does not decide it, a later stage with more torque does. With exact data, and with `hold`,
    later stages leave alone what earlier ones found, as [Khosla1985] has it.

    Args:
        excited: see `_EXCITED`.
        hold: keep what a stage found fixed in all later ones, whatever its uncertainty.
    """

    excited: float = _EXCITED
    hold: bool = False

    def fit(
        self,
        source: TorqueRows,
        stages: Sequence[Stage],
        *,
        start: npt.ArrayLike | None = None,
        scale: npt.ArrayLike | None = None,
    ) -> SequentialEstimate:
        """Runs the stages in their order.

        Args:
            source: the torque model.
            stages: one joint each; usually from the tip to the base.
            start: starting values of the standard parameters, shape [p]; zero by default.
            scale: natural unit of each, by which a change counts as large or small; one by default.
        """
        p = len(source.columns)
        values = first = _vector("start", start, p, 0.0)
        unit = _vector("scale", scale, p, 1.0)
        if not stages:
            raise InputError("stages", "there are none", "one stage per joint, from the tip")
        V, C = np.zeros((0, p)), np.zeros((0, 0))
        outcomes: list[StageOutcome] = []
        seen: list[FloatArray] = []
        late: dict[Pairing, FloatArray] = {}
        for stage in stages:
            channel, rate = _rows_of(source, stage)
            R = np.zeros((len(channel.R), p))
            R[:, channel.columns] = channel.R
            if self.hold:
                e = channel.z - R @ values
                values, V, C, found, sigma = self._step(R * unit, e, channel, values, V, C, unit)
            else:
                new = self._extended(R * unit, V)
                found, V = len(new), np.vstack([V, new])
                sigma = self._own_noise(R * unit, channel)
                weight = 1.0 / _unit_of(sigma, _torque_size(channel))
                seen.append(np.column_stack([R * unit, channel.z - R @ first]) * weight)
                amounts, C = _combined(seen, V)
                values = first + unit * (amounts @ V)
                if stage.pairing is not None:
                    share = unit * rate * weight**2
                    late[stage.pairing] = late.get(stage.pairing, np.zeros(p)) + share
            outcomes.append(_outcome(source, stage, channel, V, found, sigma))
        if not self.hold:
            outcomes = [_held_against(one, own, V, amounts) for one, own in zip(outcomes, seen, strict=True)]
        return SequentialEstimate(
            parameters=tuple(source.columns),
            values=values,
            directions=V,
            covariance=_with_pairings(C, V, late),
            scale=unit,
            stages=tuple(outcomes),
            notes=(),
        )

    def _extended(self, R: FloatArray, V: FloatArray) -> FloatArray:
        """Directions that a stage's rows see and none before did, orthonormal, shape [found, p]."""
        N = complement(V)
        norm = float(np.linalg.norm(R, 2)) if R.size else 0.0
        _, s, Wt = np.linalg.svd(R @ N, full_matrices=False)
        found = int(np.count_nonzero(s > self.excited * norm)) if norm > 0.0 else 0
        return np.asarray((N @ Wt[:found].T).T)

    def _own_noise(self, R: FloatArray, channel: ChannelInformation) -> float:
        """The noise of a stage's torque [N m or N]: what no parameters at all explain of it."""
        s = np.linalg.svd(R, compute_uv=False)
        rank = int(np.count_nonzero(s > self.excited * s[0])) if len(s) else 0
        return _residual_sigma(np.zeros(0), channel, rank)

    def _step(
        self,
        R: FloatArray,
        e: FloatArray,
        channel: ChannelInformation,
        values: FloatArray,
        V: FloatArray,
        C: FloatArray,
        unit: FloatArray,
    ) -> tuple[FloatArray, FloatArray, FloatArray, int, float]:
        """One stage: solve what is still open, extend the known directions and their covariance.

        With pi = pi0 + unit * (V^T a + N t), a known: (R N) t = e. The known amounts' errors act as -R V^T da.
        """
        N = complement(V)
        A = R @ N
        norm = float(np.linalg.norm(R, 2))
        _, s, Wt = np.linalg.svd(A, full_matrices=False)
        found = int(np.count_nonzero(s > self.excited * norm)) if norm > 0.0 else 0
        if found == 0:
            return values, V, C, 0, _residual_sigma(e, channel, 0)
        W = Wt[:found].T
        AW = A @ W
        solution = solve_factor(triangular(np.column_stack([AW, e])), _directions(found))
        amount, inverse = solution.values, solution.inverse
        sigma = _residual_sigma(e - AW @ amount, channel, found)
        new = (N @ W).T
        drift = -inverse @ AW.T @ R @ V.T
        own = sigma**2 * inverse + drift @ C @ drift.T
        cross = drift @ C
        C = np.block([[C, cross.T], [cross, own]]) if len(V) else own
        return values + unit * (amount @ new), np.vstack([V, new]), C, found, sigma


def _outcome(
    source: TorqueRows, stage: Stage, channel: ChannelInformation, V: FloatArray, found: int, sigma: float
) -> StageOutcome:
    """What a stage found: the last of the known directions."""
    touched = np.abs(V[len(V) - found :]).max(axis=0, initial=0.0) > 1e-9
    return StageOutcome(
        joint=stage.joint,
        locked=stage.locked,
        rows=int(channel.count),
        found=found,
        known=len(V),
        sigma=sigma,
        size=_torque_size(channel),
        parameters=tuple(name for name, hit in zip(source.columns, touched, strict=True) if hit),
    )


def _held_against(outcome: StageOutcome, rows: FloatArray, V: FloatArray, amounts: FloatArray) -> StageOutcome:
    """A stage with what the answer of all stages leaves of its whitened rows [R e] beyond what no parameters explain."""
    left = float(np.linalg.norm(rows[:, -1] - rows[:, :-1] @ V.T @ amounts))
    own, *_ = np.linalg.lstsq(rows[:, :-1], rows[:, -1], rcond=None)
    least = float(np.linalg.norm(rows[:, -1] - rows[:, :-1] @ own))
    more = sqrt(max(left**2 - least**2, 0.0) / max(outcome.rows, 1))
    return replace(outcome, contradicted=more * outcome.unit)


def _combined(rows: Sequence[FloatArray], V: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Amounts along the known directions from whitened rows [R e] of all stages so far, and their covariance."""
    if not len(V):
        return np.zeros(0), np.zeros((0, 0))
    stacked = np.concatenate(rows)
    factor = triangular(np.column_stack([stacked[:, :-1] @ V.T, stacked[:, -1]]))
    solution = solve_factor(factor, _directions(len(V)))
    return solution.values, solution.inverse


def _with_pairings(C: FloatArray, V: FloatArray, late: Mapping[Pairing, FloatArray]) -> FloatArray:
    """The covariance with what is not known of the time between torque and motion of every recording.

    A torque that is still late by s adds -s d(tau)/dt to the right-hand side, hence -s C V A^T W d(tau)/dt to the amounts.

    Args:
        C: covariance of the amounts along the known directions, from noise alone.
        V: these directions, one per row.
        late: recording -> A^T W d(tau)/dt of its stages, shape [p].
    """
    out = np.array(C)
    for pairing, share in late.items():
        moved = pairing.uncertainty * (C @ (V @ share))
        out += np.outer(moved, moved)
    return out


def _directions(count: int) -> tuple[str, ...]:
    """Names of directions of the parameter space, for messages."""
    return tuple(f"direction{k + 1}" for k in range(count))


def _torque_size(channel: ChannelInformation) -> float:
    """[N m or N] Root mean square of a stage's torque."""
    return float(np.sqrt(np.sum(channel.factor[:, -1] ** 2) / max(channel.count, 1.0)))


def _unit_of(sigma: float, size: float) -> float:
    """[N m or N] In which rows are weighed: their noise, or what double precision leaves; one for a torque that is zero."""
    return max(sigma, _ROUND_OFF * size) or 1.0


def _rows_of(source: TorqueRows, stage: Stage) -> tuple[ChannelInformation, FloatArray]:
    """The rows of the stage's joint, and A^T d(tau)/dt [shape p], zero for rows that are used as they are."""
    rate = np.zeros_like(stage.torque) if stage.filter is None else stage.filter.rate_of_change(stage.torque)
    rows, sides, count = stage_rows(source, stage, np.column_stack([stage.torque, rate]))
    columns = np.flatnonzero(rows.any(axis=0))
    factor = triangular(np.column_stack([rows[:, columns], sides[:, 0]]))
    return ChannelInformation(stage.joint, columns, factor, count), rows.T @ sides[:, 1]


def _residual_sigma(e: FloatArray, channel: ChannelInformation, found: int) -> float:
    """Noise of the joint's torque from what is left unexplained; zero when only round-off is."""
    energy = float(e @ e) + channel.residual_energy
    size = float(np.sum(channel.factor[:, -1] ** 2))
    if energy <= _ROUND_OFF**2 * size:
        return 0.0
    return float(np.sqrt(energy / max(channel.count - found, 1.0)))


def complement(V: FloatArray) -> FloatArray:
    """Orthonormal columns that span what the rows of V do not, shape [p, p - k]."""
    p = V.shape[1]
    if not len(V):
        return np.eye(p)
    return np.linalg.svd(V, full_matrices=True)[2][np.linalg.matrix_rank(V, tol=STRUCTURAL_TOLERANCE) :].T


def _vector(name: str, values: npt.ArrayLike | None, size: int, default: float) -> FloatArray:
    if values is None:
        return np.full(size, default)
    array = np.array(values, dtype=np.float64)
    if array.shape != (size,):
        raise ShapeError(name, array.shape, f"[{size}]")
    return array
