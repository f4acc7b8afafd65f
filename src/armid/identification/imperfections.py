"""Imperfections of sensors and friction beside the parameters: which ones the training motion shows, and how large.

The families are chosen on the training motion alone, their sizes weighed against possible bodies in one program: with the
imperfections integrated out of the rows ("marginal"), what is left over the base parameters is Information like any other, and
the optimum over bodies and imperfections together is that of the bodies on it. Directions that the log itself cannot tell from
bodies (the common gain of all torque sensors) stay at zero: otherwise a pull on the bodies would move the sensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.possible import PossibleBodies
from armid.consistency.prior import Prior, nominal_prior, scaled_to_data
from armid.errors import InputError
from armid.estimation.estimate import Estimate
from armid.estimation.imperfections import (
    FOLDS,
    RESOLVED,
    BlockFactors,
    Effect,
    channel_lengths,
    correlation_length,
    widening,
)
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.recording import torque_source
from armid.estimation.reversals import classed_information, noise_along
from armid.estimation.run import Run, each_run, gathered, information_of
from armid.estimation.runs import before, lengths_of
from armid.identifiability.base import BaseParameters
from armid.identification.sensors import FamilyUse, Imperfections, Sized, corrected_runs, motion_of
from armid.information.information import ChannelInformation, Information, triangular, triangular_by_channel
from armid.kernels.evaluate import evaluate_rows, residuals
from armid.parameters.space import OwnerKind, Parameter, named_parameters
from armid.robot.robot import Robot
from armid.rows.imperfections import KINDS, ColumnReference, Columns, Family, Imperfection, imperfections
from armid.words import choice

MOST_SAMPLES = 12_000
"""Of the training motion on which imperfections are weighed; residuals hold together for ten samples and more, so that thinning
out a longer log loses little, and the cost does not grow with it."""

_AT_ONCE = 1024
"""Samples whose rows are held at a time: ten megabytes of seven joints with all imperfections."""

UNRESOLVED = 0.1
"""Information of the rows about a direction of imperfections, in units of their tolerances, below which it is left at zero: the
tolerance would say ten times as much as the log."""

_STEPS = 3
"""Of Gauss-Newton at most: columns are derivatives at the estimate, and large imperfections move it."""

_SETTLED = 0.1
"""Largest step, in tolerances, after which another one would change nothing that matters."""

USED = tuple(family for family in Family if KINDS[family].recurs)
"""Families that may enter the model: those that other recordings by the same sensors have too."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ImperfectionTolerances:
    """What a user says about imperfections.

    Args:
        families: that may enter the model; none turns all of it off.
        base: other base tolerances by family, in the family's unit (a share of the joint's torque for shapes of friction).
    """

    families: tuple[Family, ...] = USED
    base: Mapping[Family, float] = field(default_factory=dict)

    def applied(self, item: Imperfection) -> Imperfection:
        """The imperfection with the tolerance asked for."""
        if item.family not in self.base:
            return item
        return replace(item, tolerance=item.tolerance * self.base[item.family] / KINDS[item.family].tolerance)


def tolerances_of(words: str | ImperfectionTolerances, tolerance: str | Sequence[str] = ()) -> ImperfectionTolerances:
    """ImperfectionTolerances from words.

    Args:
        words: `all`, `none`, or families with commas between them (`gain,zero,stribeck`).
        tolerance: base tolerances such as `gain=2%`, `zero=0.5deg`, `delay=2ms`; with commas between them, or several.

    Raises:
        UnknownNameError: a family that does not exist.
        InputError: a tolerance that is no positive number with a unit of its family.
    """
    if isinstance(words, ImperfectionTolerances):
        return words
    given = [part.strip() for part in words.split(",") if part.strip()]
    named = [word for word in given if word not in ("all", "none")]
    families = USED if given == ["all"] else tuple(choice("imperfection", word, Family) for word in named)
    texts = tolerance.split(",") if isinstance(tolerance, str) else [part for t in tolerance for part in t.split(",")]
    return ImperfectionTolerances(families=families, base=dict(_tolerance_of(text) for text in texts if text.strip()))


_UNITS = {"%": 0.01, "deg": float(np.pi / 180.0), "mrad": 1e-3, "rad": 1.0, "ms": 1e-3, "s": 1.0, "": 1.0}
"""Of tolerances as people write them; longest first where one ends like another."""


def _tolerance_of(text: str) -> tuple[Family, float]:
    """A family and its base tolerance from `gain=2%`."""
    word, _, size = text.strip().partition("=")
    family = choice("imperfection", word.strip(), Family)
    unit = next(unit for unit in _UNITS if size.strip().endswith(unit))
    try:
        value = float(size.strip().removesuffix(unit)) * _UNITS[unit]
    except ValueError:
        value = nan
    if not value > 0.0:
        raise InputError("--tolerance", repr(text), "expected FAMILY=SIZE, for example gain=2%, zero=0.5deg, delay=2ms")
    return family, value


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
        effects = [self.tried_as(effect) for effect in self.effects]
        hidden = self.blocks.hidden(effects, self.picked, _taken_away(self.train, self.base, self.items), UNRESOLVED)
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

    def tried_as(self, effect: Effect) -> Effect:
        """The effect as it was chosen, where it was."""
        return next(
            (
                own
                for own, _ in self.picked
                if own.family == effect.family and np.array_equal(own.columns, effect.columns)
            ),
            effect,
        )

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


def reference_of(runs: Sequence[Run], standard: FloatArray, *, recorded_velocity: bool) -> ColumnReference:
    """Scales of the training motion, in one pass; of two sides of the drives, that behind the gears."""
    found = list(each_run(runs, _Scales(np.array(standard))))
    speed, load = (np.max([part[k] for part in found], axis=0) for k in range(2))
    sums = np.sum([part[2] for part in found], axis=0)
    count, total, squares, acceleration = sums
    return ColumnReference(
        standard=np.array(standard),
        speed=speed,
        load=load,
        size=np.sqrt(np.maximum(squares / count - (total / count) ** 2, 0.0)),
        acceleration=np.sqrt(acceleration / count),
        recorded_velocity=recorded_velocity,
    )


@dataclass(frozen=True, eq=False)
class _Scales:
    """Of one run: largest speeds and loads, and the sums that means are formed of, shape [4, n_joints]."""

    standard: FloatArray

    def __call__(self, run: Run) -> tuple[FloatArray, FloatArray, FloatArray]:
        n = torque_source([run]).robot.n_joints
        links = np.array([not one.of_joint for one in named_parameters(tuple(run.source.columns))])
        rigid, torque = run.predicted(np.where(links, self.standard, 0.0))[:, :n], run.y[:, :n]
        squares = (torque, torque**2, run.inputs[:, 2 * n : 3 * n] ** 2)
        sums = np.array([np.full(n, float(len(run))), *(values.sum(axis=0) for values in squares)])
        return np.abs(run.inputs[:, n : 2 * n]).max(axis=0), np.abs(rigid).max(axis=0), sums


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
    grams, products = gathered(runs, _FrictionProducts(reference, tuple(shapes), _every(runs)), _both_added)
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


def _every(runs: Sequence[Run], most: int = MOST_SAMPLES) -> int:
    return max(1, -(-sum(lengths_of(runs)) // most))


@dataclass(frozen=True, eq=False)
class RowNoise:
    """Noise of rows without imperfections; factors of tolerances were chosen beside it and mean something beside it only.

    Args:
        sigma: per channel far from reversals [N m or N].
        rows_per_sample: how many samples tell as much as one independent one.
        classes: by name of a channel, or of its class near reversals, as the estimate has it [N m or N].
        lengths: samples of every channel that tell as much as one independent one; `rows_per_sample` is their median.
    """

    sigma: FloatArray
    rows_per_sample: float
    classes: Mapping[str, float]
    lengths: FloatArray

    def weights(self, run: Run) -> FloatArray:
        """Of the rows of a run, shape [n_samples, n_channels].

        Rows near a joint's own reversal weigh by their own noise: friction turns around there at a time that no velocity tells,
        which looks like a torque that is early or late.
        """
        far = np.array([self.classes[name] for name in run.channels])
        return far / (noise_along(run, self.classes) * self.sigma * np.sqrt(self.rows_per_sample))


class RowsBeside:
    """Rows `[A Z y]` of some runs, thinned out.

    Args:
        runs: the motions.
        base: whose columns A has.
        items: whose columns Z has.
        most: samples that are looked at.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        base: BaseParameters,
        items: Sequence[Imperfection],
        *,
        most: int = MOST_SAMPLES,
    ) -> None:
        self._runs, self._base, self._items = runs, base, items
        self._every = _every(runs, most)

    def noise(self, estimate: Estimate) -> RowNoise:
        """Noise of every channel, and how many samples make one independent one."""
        sigma = np.array([estimate.sigma[name] for name in self._runs[0].channels])
        found = each_run(self._runs, _CorrelationLengths(estimate.standard, estimate.sigma, self._every))
        lengths = channel_lengths(list(found))
        return RowNoise(sigma, float(np.median(lengths)), estimate.sigma, lengths)

    def thinned(self, noise: RowNoise, most: int) -> RowNoise:
        """Noise that was found on up to `most` samples, for rows as thin as these: fewer make one independent one."""
        ratio = _every(self._runs, most) / self._every
        return replace(noise, rows_per_sample=max(1.0, noise.rows_per_sample * ratio))

    def blocks(self, reference: ColumnReference, noise: RowNoise, folds: int = FOLDS) -> BlockFactors:
        """Factors of blocks of time."""
        tolerances = np.array([item.tolerance for item in self._items])
        return BlockFactors(len(self._base), self._factors(reference, noise, folds), tolerances)

    def factor(self, reference: ColumnReference, noise: RowNoise) -> FloatArray:
        """One triangular factor of everything."""
        return self._factors(reference, noise, 1)[0]

    def _factors(self, reference: ColumnReference, noise: RowNoise, folds: int) -> list[FloatArray]:
        """Triangular factors of blocks of time: those of every run, put together."""
        lengths = lengths_of(self._runs)
        thin = [-(-length // self._every) for length in lengths]
        rows = _RowFactors(
            base=tuple(self._base.independent),
            items=tuple(self._items),
            reference=reference,
            noise=noise,
            every=self._every,
            samples=max(sum(lengths), 1),
            thinned=sum(thin),
            folds=folds,
        )
        width = len(self._base) + len(self._items) + 1
        found = gathered(self._runs, rows, _stacked, before(lengths), before(thin))
        # In one layout of memory, so that what follows rounds alike wherever they come from.
        return [np.array(found.get(k, np.zeros((width, width))), order="C") for k in range(folds)]


def _stacked(parts: Sequence[dict[int, FloatArray]]) -> dict[int, FloatArray]:
    """Factors of blocks of time of a few runs, block by block."""
    blocks = sorted({k for part in parts for k in part})
    same = {k: [part[k] for part in parts if k in part] for k in blocks}
    return {k: own[0] if len(own) == 1 else triangular(np.vstack(own)) for k, own in same.items()}


@dataclass(frozen=True, eq=False)
class _CorrelationLengths:
    """Of the residuals of one run by channel, and its thinned samples."""

    standard: FloatArray
    sigma: Mapping[str, float]
    every: int

    def __call__(self, run: Run) -> tuple[list[float], int]:
        thin = slice(None, None, self.every)
        left = residuals(run.source, run.inputs[thin], run.y[thin], self.standard) / noise_along(run, self.sigma)[thin]
        return [correlation_length(column) for column in left.T], len(left)


@dataclass(frozen=True, eq=False, kw_only=True)
class _RowFactors:
    """Triangular factors of the rows `[A Z y]` of one run, by block of time.

    Args:
        base: columns of A.
        items: whose columns Z has.
        reference, noise: where columns are taken, and what rows weigh.
        every: of the samples is looked at.
        samples, thinned: of all runs, before and after that.
        folds: blocks of time.
    """

    base: tuple[int, ...]
    items: tuple[Imperfection, ...]
    reference: ColumnReference
    noise: RowNoise
    every: int
    samples: int
    thinned: int
    folds: int

    def __call__(self, run: Run, first: int, seen: int) -> dict[int, FloatArray]:
        """Of a run that begins after so many samples, and so many that are looked at."""
        factors: dict[int, FloatArray] = {}
        for start, dense in self._dense(run, first):
            block = np.minimum((seen + start + np.arange(len(dense))) * self.folds // self.thinned, self.folds - 1)
            for k in np.unique(block).tolist():
                factor = triangular_by_channel(dense if self.folds == 1 else dense[block == k])
                factors[k] = triangular(np.vstack([factors[k], factor])) if k in factors else factor
        return factors

    def _dense(self, run: Run, first: int) -> Iterator[tuple[int, FloatArray]]:
        """Weighted rows of a run that begins after `first` samples, in pieces: its start, rows [n, channels, columns]."""
        thin = slice(None, None, self.every)
        inputs, y, weights = run.inputs[thin], run.y[thin], self.noise.weights(run)[thin]
        elapsed = (first + np.arange(len(run))) / self.samples
        Z = Columns(motion_of(run, every=self.every, elapsed=elapsed), self.reference).of(self.items)
        for start in range(0, len(y), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            A = evaluate_rows(run.source, inputs[part])[:, :, list(self.base)]
            rows = np.concatenate([A, Z[part], y[part, :, np.newaxis]], axis=2)
            rows *= weights[part, :, np.newaxis]
            yield start, rows


def _effects(items: Sequence[Imperfection], blocks: BlockFactors) -> list[Effect]:
    """Families as sets of columns; those that bodies can stand in for keep their base tolerance unless the rows decide them."""
    groups: dict[tuple[Family, float], list[int]] = {}
    for k, item in enumerate(items):
        groups.setdefault((item.family, item.scale), []).append(k)
    out = []
    for (family, _), columns in groups.items():
        effect = Effect(family.value, np.array(columns, dtype=np.intp))
        if KINDS[family].aliases and blocks.resolution(effect) < RESOLVED:
            effect = replace(effect, largest=1.0)
        out.append(effect)
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
    fit = blocks.fit(chosen)
    s = np.zeros(len(blocks.tolerances))
    s[fit.columns] = fit.values
    given = blocks.whole.base_given
    b = given[:, -1] - given[:, :-1] @ s
    error = factor[:, -1] - factor[:, : blocks.base] @ b - factor[:, blocks.base : -1] @ s
    return float(error @ error)


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
        """That of the fit."""
        weights = dict(zip(self.train[0].channels, 1.0 / noise.sigma, strict=True))
        return scaled_to_data(nominal_prior(self.robot, self.base.parameters), self.information.weighted(weights))

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
        wide = widening(shift, _taken_away(self.train, self.base, self.items), covariance, values)
        return replace(record, sizes=sizes), marginal, wide


def _taken_away(train: Sequence[Run], base: BaseParameters, items: Sequence[Imperfection]) -> FloatArray:
    """Base parameters per unit of size that every shape of friction was freed from, shape [r, m]."""
    place = {name: k for k, name in enumerate(base.parameters)}
    words = torque_source(train).effects.friction
    standard = np.zeros((len(items), len(place)))
    for k, item in enumerate(items):
        if item.joint is not None and item.linear:
            names = [Parameter(OwnerKind.JOINT, item.joint, word, "").name for word in words]
            standard[k, [place[name] for name in names]] = item.linear
    return base.values(standard).T
