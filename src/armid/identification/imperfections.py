"""Imperfections of sensors and friction beside the parameters: which ones the training motion shows, and how large.

The families are chosen on the training motion alone, their sizes weighed against possible bodies in one program: with the
imperfections integrated out of the rows ("marginal"), what is left over the base parameters is Information like any other, and
the optimum over bodies and imperfections together is that of the bodies on it. Directions that the log itself cannot tell from
bodies (the common gain of all torque sensors) stay at zero: otherwise a pull on the bodies would move the sensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.possible import PossibleBodies
from armid.estimation.estimate import Estimate
from armid.estimation.imperfections import BlockFactors, Effect, left_over
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.recording import torque_source
from armid.estimation.reversals import classed_information
from armid.estimation.run import Run, gathered, information_of
from armid.identifiability.base import BaseParameters
from armid.identification.imperfection_rows import RowNoise, RowsBeside, every_of, reference_of
from armid.identification.ordinary_sensors import by_family, kept_ordinary
from armid.identification.possible_sizes import UNRESOLVED, PossibleSizes, taken_away
from armid.identification.sensors import FamilyUse, Imperfections, Sized, corrected_runs, motion_of
from armid.identification.tolerances import ImperfectionTolerances
from armid.information.information import Information
from armid.robot.robot import Robot
from armid.rows.imperfections import ColumnReference, Columns, Family, Imperfection, imperfections


@dataclass(frozen=True, eq=False, kw_only=True)
class Weighed:
    """Rows with imperfections beside the base parameters, chosen and sized.

    Args:
        found: the record; None where no family pays.
        marginal: Information over the standard parameters, imperfections integrated out, rows in units of their noise and
            counted by independent samples; None where no family pays.
        widening: what they, and those that may be there although they do not pay, add to the covariance of the base parameters,
            shape [r, r].
        choice: that it came of.
    """

    found: Imperfections | None
    marginal: Information | None
    widening: FloatArray
    choice: Choice


@dataclass(frozen=True, eq=False, kw_only=True)
class Choice:
    """Families that were chosen, and all that another choice among the same rows rests on.

    Args:
        robot, train, held_out, base, bodies: as for `weighed`.
        information: of the training runs.
        items: every imperfection that was tried.
        reference, noise: where their columns are taken, and what rows weigh.
        blocks: rows beside them.
        effects: the imperfections by families.
        chosen: effects with their factors, and the share of the error on blocks left out that remains with each.
    """

    robot: Robot
    train: Sequence[Run]
    held_out: Sequence[Run]
    base: BaseParameters
    bodies: PossibleBodies
    information: Information
    items: tuple[Imperfection, ...]
    reference: ColumnReference
    noise: RowNoise
    blocks: BlockFactors
    effects: tuple[Effect, ...]
    chosen: tuple[tuple[Effect, float, float], ...]

    @property
    def picked(self) -> list[tuple[Effect, float]]:
        """Effects with their factors."""
        return [(effect, factor) for effect, factor, _ in self.chosen]

    def sized(self) -> Weighed:
        """How large they are together with possible bodies, and what is hidden beside them."""
        hidden = self.blocks.hidden(
            self.effects, self.picked, taken_away(self.train, self.base, self.items), UNRESOLVED
        )
        if not self.chosen:
            return Weighed(found=None, marginal=None, widening=hidden, choice=self)
        held_out = (
            RowsBeside(self.held_out, self.base, self.items).factor(self.reference, self.noise)
            if len(self.held_out)
            else None
        )
        uses = _uses(self.chosen, self.blocks, held_out)
        found, marginal, wide = self.search(self.picked).run(self.reference, self.noise, uses)
        return Weighed(found=found, marginal=marginal, widening=wide + hidden, choice=self)

    def search(self, picked: Sequence[tuple[Effect, float]]) -> PossibleSizes:
        """For the sizes of these."""
        return PossibleSizes(
            robot=self.robot,
            information=self.information,
            train=self.train,
            base=self.base,
            bodies=self.bodies,
            items=tuple(self.items[k] for effect, _ in picked for k in effect.columns),
            deviations=np.concatenate([np.empty(0), *(self.blocks.tolerances[e.columns] * f for e, f in picked)]),
        )


def weighed(
    robot: Robot,
    train: Sequence[Run],
    held_out: Sequence[Run],
    base: BaseParameters,
    bodies: PossibleBodies,
    tolerances: ImperfectionTolerances,
    *,
    recorded_velocity: bool,
) -> Weighed | None:
    """Imperfections that pay on the training motion, and what those that do not may hide; None where there are none to try.

    Args:
        robot: as the runs have it.
        train: to learn from.
        held_out: only to say whether each family pays there.
        base: parameters that the training motion determines.
        bodies: how possible bodies are found.
        tolerances: families and base tolerances.
        recorded_velocity: whether velocities were recorded and not derived.
    """
    information = information_of(train)
    estimate = WeightedLeastSquares().fit(classed_information(train), base)
    reference = reference_of(train, estimate.standard, recorded_velocity=recorded_velocity)
    every = imperfections(robot, torque_source(train).effects, reference, tolerances.families)
    items = _linear_friction_apart(train, reference, [tolerances.applied(item) for item in every])
    if not items:
        return None
    rows = RowsBeside(train, base, items)
    noise = rows.noise(_beside_shapes(train, base, items, reference, rows.noise(estimate)))
    blocks = rows.blocks(reference, noise)
    effects = _effects(items, blocks)
    choice = Choice(
        robot=robot,
        train=train,
        held_out=held_out,
        base=base,
        bodies=bodies,
        information=information,
        items=tuple(items),
        reference=reference,
        noise=noise,
        blocks=blocks,
        effects=tuple(effects),
        chosen=blocks.choose(effects),
    )
    return choice.sized()


_SHAPES = (
    Family.ASYMMETRIC,
    Family.QUADRATIC,
    Family.CUBIC,
    Family.LOAD,
    Family.LOAD_SPEED,
    Family.STRIBECK,
    Family.POSITION_SINE,
    Family.POSITION_COSINE,
)


def _linear_friction_apart(
    runs: Sequence[Run], reference: ColumnReference, items: Sequence[Imperfection]
) -> tuple[Imperfection, ...]:
    """Shapes of friction without what linear friction can do in their place: viscous, Coulomb and offset stay what they are."""
    shapes = [item for item in items if item.family in _SHAPES]
    grams, products = gathered(runs, _FrictionProducts(reference, tuple(shapes), every_of(runs)), _both_added)
    apart = {
        item: replace(item, linear=tuple(np.linalg.lstsq(grams[item.joint or 0], h, rcond=1e-12)[0].tolist()))
        for item, h in zip(shapes, products, strict=True)
    }
    return tuple(apart.get(item, item) for item in items)


Products = tuple[list[FloatArray], list[FloatArray]]
"""Of linear friction with itself by joint, and with every shape."""


@dataclass(frozen=True, eq=False)
class _FrictionProducts:
    """Of one run."""

    reference: ColumnReference
    shapes: tuple[Imperfection, ...]
    every: int

    def __call__(self, run: Run) -> Products:
        columns = Columns(motion_of(run, every=self.every), self.reference)
        friction = [columns.linear_friction(j) for j in range(len(run.channels))]
        Z = columns.of(self.shapes)
        seen = [friction[item.joint or 0].T @ Z[:, item.joint or 0, k] for k, item in enumerate(self.shapes)]
        return [F.T @ F for F in friction], seen


def _both_added(parts: Sequence[Products]) -> Products:
    first, second = ([np.sum(same, axis=0) for same in zip(*own, strict=True)] for own in zip(*parts, strict=True))
    return first, second


def _beside_shapes(
    train: Sequence[Run],
    base: BaseParameters,
    items: Sequence[Imperfection],
    reference: ColumnReference,
    noise: RowNoise,
) -> Estimate:
    """The estimate beside shapes of friction of ordinary size: near reversals noise is what no shape explains."""
    shapes = tuple(item for item in items if item.family in _SHAPES)
    if not shapes:
        return WeightedLeastSquares().fit(classed_information(train), base)
    blocks = RowsBeside(train, base, shapes).blocks(reference, noise, folds=1)
    fit = blocks.fit([(Effect("shapes", np.arange(len(shapes))), 1.0)])
    record = Imperfections(
        joints=tuple(train[0].channels),
        names=tuple(train[0].source.columns),
        reference=reference,
        sizes=tuple(Sized(shapes[k], float(v), nan) for k, v in zip(fit.columns, fit.values, strict=True)),
    )
    return WeightedLeastSquares().fit(classed_information(corrected_runs(train, record)), base)


def _effects(items: Sequence[Imperfection], blocks: BlockFactors) -> list[Effect]:
    """Families as sets of columns; those that bodies can stand in for keep their base tolerance unless the rows decide them."""
    out = kept_ordinary(by_family(items), blocks)
    late = next((effect for effect in out if effect.family == Family.REVERSAL), None)
    # Friction that turns around late looks like all of a joint's torque coming late, and moves no rotor inertia: where the two
    # explain the same, it is friction. Faults are looked for beside it likewise.
    return [replace(effect, rival=late) if effect.family == Family.DELAY else effect for effect in out]


def _uses(
    chosen: Sequence[tuple[Effect, float, float]], blocks: BlockFactors, held_out: FloatArray | None
) -> tuple[FamilyUse, ...]:
    """The record of every family, with what leaving it out would change on held-out motion."""
    picked = [(effect, factor) for effect, factor, _ in chosen]
    whole = nan if held_out is None else _error_on(held_out, blocks, picked)
    out = []
    for effect, factor, share in chosen:
        rest = [pair for pair in picked if pair[0] is not effect]
        change = nan if held_out is None else float(np.sqrt(whole / _error_on(held_out, blocks, rest))) - 1.0
        out.append(FamilyUse(family=Family(effect.family), factor=factor, explains=1.0 - share, held_out=change))
    return tuple(out)


def _error_on(factor: FloatArray, blocks: BlockFactors, chosen: Sequence[tuple[Effect, float]]) -> float:
    """Squared error on other rows of the fit with these families, bodies free."""
    error = left_over(factor, *blocks.solution(chosen))
    return float(error @ error)
