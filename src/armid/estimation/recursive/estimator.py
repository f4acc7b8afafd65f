"""Recursive least squares in square-root form: the same factor as `Information`, one sample at a time.

Without forgetting it holds exactly what a batch over the same samples holds. With it old samples fade, but only in the
directions that new ones excite: an arm that stands still does not forget its inertia (`forgetting`).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, finite
from armid.errors import InputError, ShapeError, UnknownNameError
from armid.estimation.estimate import Estimate
from armid.estimation.least_squares import GaussianPrior
from armid.estimation.recursive.forgetting import COLUMNS, Fading, Forgetting
from armid.identifiability.base import BaseParameters
from armid.information.information import triangular
from armid.information.solve import solve_factor
from armid.kernels.evaluate import Restricted
from armid.kernels.single import SingleRows
from armid.kernels.source import RowSource
from armid.notes import Note, Severity

_SEPARABLE = 1e-6
"""Sine of the angle between a column and those before it below which a parameter is not yet determined: with torque
good to a thousandth, a smaller angle would turn it into a thousand times the parameter."""

_MATRIX_PARTS = 7
"""Steps of an exchange besides solving and folding: the copy, the matrices, the exchange of factors."""

_DONE = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeDetection:
    """When innovations say that the arm is no longer the same.

    Args:
        warm_up: [s] before watching begins, at the start and after every change.
        memory: [s] over which the ordinary size of the innovations is averaged.
        allowance: how much larger than ordinary their energy may be for long; 3 is twice the amplitude.
        patience: [s] an energy of twice the allowed one, or any larger, may last.
        keep: share of the information that survives a change.
    """

    warm_up: float = 3.0
    memory: float = 5.0
    allowance: float = 3.0
    patience: float = 0.1
    keep: float = 1e-2

    def rule(self, rate: float) -> FloatArray:
        """The numbers the compiled code uses."""
        threshold = self.patience * rate * (1.0 + self.allowance)
        return np.array([self.warm_up * rate, 1.0 / (self.memory * rate), self.allowance, threshold])


@dataclass(frozen=True, eq=False)
class ExcitedSoFar:
    """What the samples so far determine.

    Args:
        names: of the parameters.
        determined: whether each is, shape [p].
        condition_number_scaled: of the determined ones, columns of unit length.
    """

    names: tuple[str, ...]
    determined: npt.NDArray[np.bool_]
    condition_number_scaled: float

    @property
    def frozen(self) -> tuple[str, ...]:
        """Parameters that keep their value until something excites them."""
        return tuple(name for name, seen in zip(self.names, self.determined, strict=True) if not seen)


class RecursiveEstimator:
    """Base parameters while the arm moves. Memory and time per sample are fixed.

    Args:
        source: rows over the standard parameters.
        base: which combinations to estimate.
        sigma: noise per channel, in the channel's unit.
        rate: samples per second [Hz].
        start: values of parameters that nothing has determined yet, shape [r]; zero by default.
        prior: a belief that counts as data; none by default.
        forgetting: see `Forgetting`.
        detection: see `ChangeDetection`; None does not watch.
    """

    def __init__(
        self,
        source: RowSource,
        base: BaseParameters,
        sigma: Mapping[str, float],
        *,
        rate: float,
        start: npt.ArrayLike | None = None,
        prior: GaussianPrior | None = None,
        forgetting: Forgetting | None = None,
        detection: ChangeDetection | None = None,
    ) -> None:
        if not (isfinite(rate) and rate > 0.0):
            raise InputError("rate", f"{rate} Hz", "a positive number of samples per second")
        self.source, self.base, self.rate = source, base, float(rate)
        self.forgetting, self.detection = forgetting or Forgetting(), detection
        self.count, self.samples = 0.0, 0
        self._rows = SingleRows(Restricted(source, tuple(int(i) for i in base.independent)))
        self._lay_out(_weights_of(source, sigma))
        self.sigma = {name: float(sigma[name]) for name in source.channels}
        p = len(base)
        self._values = np.zeros(p) if start is None else _checked_start(start, p)
        if prior is not None:
            self._F[:, : p + 1] = triangular(np.column_stack([prior.root, prior.root @ prior.values]))
            self._lengths[:] = np.sum(self._F[:, :p] ** 2, axis=0)
            self._values[:] = prior.values
        self._fading = Fading.of(self.forgetting, self.rate, self.factor[:-1, :-1])
        self._rule = (detection or ChangeDetection()).rule(self.rate)
        if detection is None:
            self._rule[0] = inf
        self._monitor = np.zeros(3)

    def _lay_out(self, weights: FloatArray) -> None:
        """Rows that begin further to the right go last, so that a reflection touches only those that have begun."""
        # numba takes a third of a second to load: only who estimates on-line pays.
        from armid.estimation.recursive.kernels import CHUNK, QUAD, faded_copy, fold_also, fold_rows, solve, update

        self._step, self._fold_also, self._fold_rows, self._faded_copy = update, fold_also, fold_rows, faded_copy
        self._solve = solve
        rows, p, m = self._rows, len(self.base), len(self.source.channels)
        first = np.array([rows.columns[rows.channels == k].min(initial=p) for k in range(m)])
        self._order = np.argsort(first, kind="stable")
        position = np.empty(m, dtype=np.intp)
        position[self._order] = np.arange(m)
        m4, W = -(-m // QUAD) * QUAD, -(-(p + 1) // CHUNK) * CHUNK
        self._place = rows.columns * m4 + position[rows.channels]
        self._entry_weights = weights[rows.channels]
        self._row_weights = weights[self._order]
        begun = np.searchsorted(np.sort(first), np.arange(p + 1), side="right")
        begun[-1] = m
        self._active = np.maximum(-(-begun // QUAD), 1).astype(np.intp)
        self._F = np.zeros((p + 1, W))
        self._A = np.zeros((p + 1, m4))
        self._errors = np.zeros(m4)
        self._rooms = np.zeros((3, max(m4, W)))
        self._faded, self._faded_lengths = np.zeros_like(self._F), np.zeros(p)
        self._exchange: Generator[None, None, None] | None = None
        self._forgetting_room = np.zeros((p + 2, 2 * QUAD))
        self._lengths = np.zeros(p)
        self._frozen = np.ones(p, dtype=np.bool_)

    def update(self, inputs: FloatArray, y: FloatArray, counted: npt.NDArray[np.bool_] | None = None) -> bool:
        """One sample.

        Args:
            inputs: what the source takes, shape [n_inputs].
            y: measured, in the order of the source's channels, shape [m].
            counted: which channels count at this sample, shape [m]; all by default.

        Returns:
            Whether the innovations say that the arm has changed; what was known then counts for little from here on.
        """
        entry, row = self._entry_weights, self._row_weights
        if counted is not None:
            entry, row = entry * counted[self._rows.channels], row * counted[self._order]
        packed, weighted = self._rows(inputs), y[self._order] * row
        changed = bool(
            self._step(
                self._F,
                self._A,
                packed,
                self._place,
                entry,
                weighted,
                self._active,
                self._values,
                self._frozen,
                self._errors,
                self._rooms,
                self._monitor,
                self._rule,
                self._lengths,
                _SEPARABLE,
            )
        )
        self.samples += 1
        self.count += len(self._order) if counted is None else int(np.count_nonzero(counted))
        if self._exchange is not None:
            self._fold_also(
                self._faded,
                self._A,
                packed,
                self._place,
                entry,
                weighted,
                self._active,
                self._faded_lengths,
                self._rooms[1],
            )
        if self._fading is not None:
            self._forget(self._fading)
        if changed:
            self._restart()
        return changed

    def _forget(self, fading: Fading) -> None:
        """Old information makes way for new, where there is new; begun once per block and spread over its samples."""
        if self.samples % fading.block == 0:
            self._exchange = self._exchanged(fading)
        if self._exchange is None:
            return
        for _ in range(-(-self._parts // max(fading.block - 1, 1))):
            if next(self._exchange, _DONE) is _DONE:
                self._exchange = None
                return

    def _settle(self) -> None:
        """Finishes an exchange that is under way, for whoever looks between samples."""
        if self._exchange is None:
            return
        for _ in self._exchange:
            pass
        self._exchange = None
        self._solve(self._F, self._values, self._frozen, self._lengths, self._rooms[0], _SEPARABLE)

    @property
    def _parts(self) -> int:
        """Of an exchange: its matrices, some columns solved for and eight rows folded at a time."""
        p = len(self.base)
        return _MATRIX_PARTS + -(-p // COLUMNS) + -(-p // 8)

    def _exchanged(self, fading: Fading) -> Generator[None, None, None]:
        """One exchange on a copy of the factor, which samples that come meanwhile are folded into too.

        Information adds up, so that in the end the copy holds what an exchange at the first sample would have left.
        """
        p = len(self.base)
        R, values = self._F[:p, :p].copy(), self._values.copy()  # left of the diagonal it is zero
        self._faded_copy(self._F, 1.0 - fading.loss, fading.kept, self._faded)
        self._faded_lengths[:] = (1.0 - fading.loss) * self._lengths
        rest = self.count
        yield
        rows = yield from fading.parts(R)
        yield
        for start in range(0, p, 8):
            self._fold_rows(self._faded, rows, start, values, self._faded_lengths, self._forgetting_room)
            yield
        self._F, self._faded = self._faded, self._F
        self._lengths, self._faded_lengths = self._faded_lengths, self._lengths
        self.count -= (1.0 - fading.kept) * rest

    def _restart(self) -> None:
        self._settle()
        keep = self.detection.keep if self.detection is not None else 1.0
        if self._fading is not None:
            self._fading.scale(keep)
        self._F *= keep**0.5
        self._lengths *= keep
        self.count *= keep
        self._monitor[:] = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        return self.base.names

    @property
    def values(self) -> FloatArray:
        """Present base parameters, shape [r]; those not yet determined at their start."""
        self._settle()
        return self._values.copy()

    @property
    def innovations(self) -> dict[str, float]:
        """Latest measurement minus prediction per channel, in the channel's unit."""
        names = self.source.channels
        return {names[int(k)]: float(self._errors[i] * self.sigma[names[int(k)]]) for i, k in enumerate(self._order)}

    @property
    def factor(self) -> FloatArray:
        """`[R z; 0 rho]` of the rows divided by their noise, shape [r + 1, r + 1]."""
        self._settle()
        return np.triu(self._F[:, : len(self.base) + 1])

    def excitation(self) -> ExcitedSoFar:
        """What is determined, and how well conditioned it is."""
        self._settle()
        determined = ~self._frozen
        if not determined.any():
            return ExcitedSoFar(self.names, determined, inf)
        R = self.factor[:-1, :-1][:, determined]
        s = np.linalg.svd(R / np.linalg.norm(R, axis=0), compute_uv=False)
        return ExcitedSoFar(self.names, determined, float(s[0] / s[-1]))

    @property
    def relative_error(self) -> float:
        """What the parameters leave of the torque so far, as a fraction of it, every channel in units of its noise."""
        last = self.factor[:, -1]
        size = float(np.linalg.norm(last))
        return float(abs(last[-1])) / size if size > 0.0 else 0.0

    def present(self, units: tuple[str, ...] = (), *, scaled: bool = True) -> Estimate:
        """The present estimate whatever has been excited: parameters that nothing has determined have an infinite variance.

        Args:
            units: of the base parameters.
            scaled: whether the covariance is scaled by how well the rows are explained; else the noise is taken as given.
        """
        self._settle()
        determined = np.flatnonzero(~self._frozen)
        covariance = np.diag(np.full(len(self.base), inf))
        factor = 0.0
        if len(determined):
            names = tuple(self.names[int(k)] for k in determined)
            columns = np.append(determined, len(self.base))
            solution = solve_factor(triangular(self.factor[:, columns]), names)
            factor = solution.energy / max(self.count - len(determined), 1.0) if scaled else 1.0
            covariance[np.ix_(determined, determined)] = factor * solution.inverse
        return self._estimate(self.values, covariance, factor, units)

    def estimate(self, units: tuple[str, ...] = ()) -> Estimate:
        """The present estimate with its covariance, scaled by how well the rows are explained.

        Raises:
            EstimationError: a direction that nothing has excited yet; names the parameters in it.
        """
        solution = solve_factor(self.factor, self.names)
        factor = solution.energy / max(self.count - len(self.base), 1.0)
        return self._estimate(solution.values, factor * solution.inverse, factor, units)

    def _estimate(self, values: FloatArray, covariance: FloatArray, factor: float, units: tuple[str, ...]) -> Estimate:
        """Values with a covariance and the note that says how much counts."""
        spread = max(factor, np.finfo(float).tiny) ** 0.5
        note = Note(
            "recursive",
            Severity.INFO,
            f"{self.samples} samples, of which the equivalent of {self.count:.0f} rows count",
        )
        return Estimate(
            base=self.base,
            units=units or ("",) * len(self.base),
            values=values,
            covariance=covariance,
            covariance_kind="recursive",
            sigma={name: value * spread for name, value in self.sigma.items()},
            method="recursive least squares",
            notes=(note,),
        )


def _weights_of(source: RowSource, sigma: Mapping[str, float]) -> FloatArray:
    """One over the noise of every channel, shape [m]."""
    for name in source.channels:
        if name not in sigma:
            raise UnknownNameError("noise of channel", name, sigma)
        if not (isfinite(sigma[name]) and sigma[name] > 0.0):
            raise InputError(f"noise of {name}", f"{sigma[name]}", "a positive standard deviation")
    return np.array([1.0 / sigma[name] for name in source.channels])


def _checked_start(start: npt.ArrayLike, size: int) -> FloatArray:
    values = np.array(start, dtype=np.float64)
    if values.shape != (size,):
        raise ShapeError("start", values.shape, f"[{size}]")
    return finite("start", values)
