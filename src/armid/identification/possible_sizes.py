"""Sizes of imperfections together with bodies that can exist."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import nan

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.aliases import with_weight_kept
from armid.consistency.drive_scale import prior_of_rows
from armid.consistency.possible import PossibleBodies
from armid.consistency.prior import Prior
from armid.estimation.imperfections import BlockFactors, widening
from armid.estimation.recording import torque_source
from armid.estimation.run import Run
from armid.estimation.runs import lengths_of
from armid.identifiability.base import BaseParameters
from armid.identification.imperfection_rows import RowNoise, RowsBeside
from armid.identification.sensors import FamilyUse, Imperfections, Sized, corrected_runs
from armid.information.information import ChannelInformation, Information, triangular
from armid.parameters.space import OwnerKind, Parameter
from armid.robot.robot import Robot
from armid.rows.imperfections import ColumnReference, Imperfection

UNRESOLVED = 0.1
"""Information of the rows about a direction of imperfections, in units of their tolerances, below which it is left at zero: the
tolerance would say ten times as much as the log."""

_STEPS = 3
"""Of Gauss-Newton at most: columns are derivatives at the estimate, and large imperfections move it."""

_SETTLED = 0.1
"""Largest step, in tolerances, after which another one would change nothing that matters."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PossibleSizes:
    """Sizes of the chosen imperfections together with possible bodies, by Gauss-Newton.

    Args:
        robot, train, base, bodies: as for `weighed`.
        items: chosen.
        deviations: tolerance times factor of each.
        information: of the training runs.
    """

    robot: Robot
    information: Information
    train: Sequence[Run]
    base: BaseParameters
    bodies: PossibleBodies
    items: tuple[Imperfection, ...]
    deviations: FloatArray

    def run(
        self, reference: ColumnReference, noise: RowNoise, uses: tuple[FamilyUse, ...]
    ) -> tuple[Imperfections, Information, FloatArray]:
        """Sizes at which columns, bodies and sizes agree; Information without them; what they add to the base's covariance."""
        record = Imperfections(
            joints=tuple(self.train[0].channels),
            families=uses,
            names=tuple(self.train[0].source.columns),
            reference=reference,
            rows_per_sample=noise.rows_per_sample,
        )
        blocks = RowsBeside(self.train, self.base, self.items).blocks(reference, noise, folds=1)
        directions = self.resolved(blocks.whole.factor)
        u, prior = np.zeros(directions.shape[1]), self.prior(noise)
        for _ in range(_STEPS):
            marginal, step = self.eliminated(blocks.whole.factor, directions, u)
            standard = self.consistent(marginal, prior)
            change = step(self.base.values(standard))
            u = u + change
            record = self._recorded(record, directions @ u, standard)
            runs = corrected_runs(self.train, record)
            true = replace(noise, sigma=noise.sigma / (1.0 + record.gains))
            blocks = RowsBeside(runs, self.base, self.items).blocks(record.reference, true, folds=1)
            if np.max(np.abs(change), initial=0.0) < _SETTLED:
                break
        return self._final(record, blocks, directions, u)

    def resolved(self, factor: FloatArray) -> FloatArray:
        """Directions of imperfections that the rows tell apart from bodies, per unit of belief, shape [m, directions].

        Args:
            factor: triangular, of the base parameters, these imperfections and the torque.
        """
        R = factor[self._b : -1, self._b : -1] * self.deviations
        if not len(self.deviations):
            return np.zeros((0, 0))
        _, s, Vt = np.linalg.svd(R)
        return self.deviations[:, np.newaxis] * Vt[: len(s)][s**2 >= UNRESOLVED].T

    @property
    def _b(self) -> int:
        return len(self.base)

    def eliminated(
        self, factor: FloatArray, directions: FloatArray, u: FloatArray
    ) -> tuple[Information, Callable[[FloatArray], FloatArray]]:
        """Information over the standard parameters without the imperfections, and the step of u for given base parameters.

        Args:
            factor: as for `resolved`.
            directions: of imperfections, shape [m, directions].
            u: their sizes so far.
        """
        T, b, m = factor, self._b, len(u)
        Z = T[:, b:-1] @ directions
        rows = np.block(
            [
                [Z, T[:, :b], T[:, -1:]],
                [np.eye(m), np.zeros((m, b)), -u[:, np.newaxis]],
            ]
        )
        whole = triangular(rows)
        left = whole[m:, m:]
        factor = triangular(np.column_stack([left[:, :-1] @ self.base.projection, left[:, -1]]))
        p = len(self.base.parameters)
        channel = ChannelInformation("marginal", np.arange(p), factor, float(sum(lengths_of(self.train))))
        top = whole[:m]

        def step(values: FloatArray) -> FloatArray:
            return np.asarray(np.linalg.solve(top[:, :m], top[:, -1] - top[:, m : m + b] @ values))

        return Information(self.base.parameters, (channel,), "marginal"), step

    def consistent(self, marginal: Information, prior: Prior) -> FloatArray:
        """Standard parameters of possible bodies on these rows."""
        units = torque_source(self.train).space.units
        return PossibleBodies(self.bodies.regulariser, self.bodies.bounds).values(marginal, units, prior)

    def prior(self, noise: RowNoise) -> Prior:
        """That of the fit: runs are freed from these sizes, and its bodies must settle beside the same ones."""
        weights = dict(zip(self.train[0].channels, 1.0 / noise.sigma, strict=True))
        return with_weight_kept(prior_of_rows(self.robot, self.information.weighted(weights)), self.base)

    def _recorded(self, record: Imperfections, values: FloatArray, standard: FloatArray) -> Imperfections:
        sizes = tuple(Sized(item, float(v), nan) for item, v in zip(self.items, values, strict=True))
        return replace(record, sizes=sizes, reference=replace(record.reference, standard=np.array(standard)))

    def _final(
        self, record: Imperfections, blocks: BlockFactors, directions: FloatArray, u: FloatArray
    ) -> tuple[Imperfections, Information, FloatArray]:
        """At the last estimate: Information without the imperfections, their deviations, and what they add to others'."""
        marginal, _ = self.eliminated(blocks.whole.factor, directions, u)
        R = blocks.whole.factor[self._b : -1, self._b : -1] @ directions
        covariance = directions @ np.linalg.inv(R.T @ R + np.eye(len(u))) @ directions.T
        shift = blocks.whole.base_given[:, :-1]
        # Directions left at zero are as uncertain as their tolerance.
        open_still = np.maximum(self.deviations**2 - np.sum(directions**2, axis=1), 0.0)
        deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0) + open_still)
        sizes = tuple(
            replace(sized, standard_deviation=float(d)) for sized, d in zip(record.sizes, deviations, strict=True)
        )
        values = np.array([sized.value for sized in sizes])
        wide = widening(shift, taken_away(self.train, self.base, self.items), covariance, values)
        return replace(record, sizes=sizes), marginal, wide


def taken_away(train: Sequence[Run], base: BaseParameters, items: Sequence[Imperfection]) -> FloatArray:
    """Base parameters per unit of size that every shape of friction was freed from, shape [r, m]."""
    place = {name: k for k, name in enumerate(base.parameters)}
    words = torque_source(train).effects.friction
    standard = np.zeros((len(items), len(place)))
    for k, item in enumerate(items):
        if item.joint is not None and item.linear:
            names = [Parameter(OwnerKind.JOINT, item.joint, word, "").name for word in words]
            standard[k, [place[name] for name in names]] = item.linear
    return base.values(standard).T
