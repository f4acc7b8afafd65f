"""Base parameters: the combinations of standard parameters that the measurements can tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, finite, read_only
from armid.errors import ShapeError, UnknownNameError
from armid.identifiability.errors import NothingIdentifiableError
from armid.identifiability.rank import (
    STRUCTURAL_TOLERANCE,
    WEAK,
    RankDecision,
    checked_tolerance,
    decide_rank,
    scaled_columns,
)
from armid.identifiability.select import choose_columns
from armid.information.information import Information
from armid.parameters.space import Parameter, named_parameters


class Category(StrEnum):
    """What measurements say about one standard parameter; the three categories of [Khosla1985]."""

    ALONE = "alone"
    COMBINED = "in combination"
    NOT_AT_ALL = "not at all"


@dataclass(frozen=True, slots=True)
class WeakDirection:
    """A combination of base parameters that is identifiable only by a hair.

    Args:
        ratio: its singular value over the largest one, both of the column-scaled rows.
        combination: unit-length direction over base parameters (in units of one over their column's length); the
            entries that matter.
    """

    ratio: float
    combination: tuple[tuple[str, float], ...]

    def as_dict(self) -> dict[str, Any]:
        return {"ratio": self.ratio, "combination": dict(self.combination)}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class BaseParameters:
    """A full set of independent combinations `b = pi[independent] + K pi[dependent]`.

    A base parameter bears the name of its leading standard parameter, the one with the lowest index in it.

    Args:
        parameters: names of all standard parameters.
        independent: indices of the leading parameters, ascending, shape [r].
        dependent: indices of all others, ascending, shape [p - r]; those without any effect have a zero column in K.
        K: shape [r, p - r].
        decision: how the rank was decided.
        weak: directions identifiable only by a hair.
    """

    parameters: tuple[str, ...]
    independent: npt.NDArray[np.intp]
    dependent: npt.NDArray[np.intp]
    K: FloatArray
    decision: RankDecision
    weak: tuple[WeakDirection, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "K", read_only(self.K))
        for name in ("independent", "dependent"):
            indices = np.array(getattr(self, name), dtype=np.intp)
            indices.flags.writeable = False
            object.__setattr__(self, name, indices)

    def __repr__(self) -> str:
        return f"<BaseParameters {len(self)} of {len(self.parameters)}: {', '.join(self.names[:3])}, ...>"

    def __len__(self) -> int:
        return len(self.independent)

    @property
    def standard(self) -> tuple[Parameter, ...]:
        """What the standard parameters are, in the order of `parameters`."""
        return named_parameters(self.parameters)

    @property
    def leading(self) -> tuple[Parameter, ...]:
        """What the leading parameter of every base parameter is, in the order of `names`."""
        return named_parameters(self.names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One name per base parameter."""
        return tuple(self.parameters[i] for i in self.independent)

    @cached_property
    def unidentifiable(self) -> tuple[str, ...]:
        """Standard parameters that enter no base parameter."""
        return tuple(self.parameters[i] for k, i in enumerate(self.dependent) if not self.K[:, k].any())

    @cached_property
    def projection(self) -> FloatArray:
        """P with `b = P pi`, shape [r, p]."""
        P = np.zeros((len(self), len(self.parameters)))
        P[np.arange(len(self)), self.independent] = 1.0
        P[:, self.dependent] = self.K
        return read_only(P)

    @cached_property
    def embedding(self) -> FloatArray:
        """E with `pi = E b` for the one parameter vector whose dependent entries are zero; P E = 1. Shape [p, r]."""
        E = np.zeros((len(self.parameters), len(self)))
        E[self.independent, np.arange(len(self))] = 1.0
        return read_only(E)

    @cached_property
    def null_space(self) -> FloatArray:
        """N with P N = 0: changes of the standard parameters that no measurement notices, shape [p, p - r]."""
        N = np.zeros((len(self.parameters), len(self.dependent)))
        N[self.dependent, np.arange(len(self.dependent))] = 1.0
        N[self.independent] = -self.K
        return read_only(N)

    def terms(self, which: int | str) -> dict[str, float]:
        """The base parameter as standard parameter -> coefficient, in the order of the parameter vector."""
        row = self.projection[self.index(which) if isinstance(which, str) else which]
        return {self.parameters[i]: float(row[i]) for i in np.flatnonzero(row)}

    def index(self, name: str) -> int:
        if name not in self.names:
            raise UnknownNameError("base parameter", name, self.names)
        return self.names.index(name)

    def category(self, name: str) -> Category:
        """Whether a standard parameter can be found alone, only in combination, or not at all."""
        return self.categories[name]

    @cached_property
    def categories(self) -> dict[str, Category]:
        """The category of every standard parameter.

        Alone: no unnoticed change touches it. Not at all: changing it alone goes unnoticed.
        """
        touched = np.abs(self.null_space).sum(axis=1) > 0.0
        lost = set(self.unidentifiable)
        return {
            name: Category.NOT_AT_ALL if name in lost else Category.COMBINED if touched[i] else Category.ALONE
            for i, name in enumerate(self.parameters)
        }

    def values(self, pi: npt.ArrayLike) -> FloatArray:
        """Base parameters of given standard ones, shape [r] (or [..., r])."""
        return np.asarray(pi, dtype=np.float64) @ self.projection.T


def base_parameters(
    source: Information | FloatArray,
    *,
    parameters: Sequence[str] | None = None,
    tolerance: float = STRUCTURAL_TOLERANCE,
    why: str = "tolerance tied to double precision",
    what: str = "the measured quantity",
) -> BaseParameters:
    """The base parameters of given rows.

    Of dependent columns the one with the highest index is removed first ([Gautier1991]; [Halper2024] eq. 3.33): a column
    goes exactly when those before it already span it, so the order of the parameter vector decides, never the numbers.

    Args:
        source: information, or rows (or their R factor), shape [m, p].
        parameters: names of the columns when rows are given.
        tolerance: relative to the largest singular value of the column-scaled rows, in (0, 1).
        why: what the tolerance is tied to, for the record.
        what: the measured quantity, for messages.

    Raises:
        ToleranceError: outside (0, 1).
        NothingIdentifiableError: all columns are zero.
    """
    checked_tolerance(tolerance)
    if isinstance(source, Information):
        names, A = source.parameters, source.stacked()[:, :-1]
    else:
        A = finite("rows", np.asarray(source, dtype=np.float64))
        names = tuple(parameters or (f"parameter{i + 1}" for i in range(A.shape[1])))
        if A.ndim != 2 or len(names) != A.shape[1]:
            raise ShapeError("rows", A.shape, f"[m, {len(names)}]")
    scaled, norms = scaled_columns(compressed(A))
    decision = decide_rank(scaled, tolerance=tolerance, why=why)
    if decision.rank == 0:
        raise NothingIdentifiableError(what, names)
    independent = _leading_columns(scaled, decision)
    dependent = np.setdiff1d(np.arange(len(names)), independent)
    K = np.linalg.lstsq(scaled[:, independent], scaled[:, dependent], rcond=None)[0]
    K = _cleaned(K * norms[dependent], norms[independent])
    weak = weak_directions(scaled[:, independent], [names[i] for i in independent])
    return BaseParameters(
        parameters=names, independent=independent, dependent=dependent, K=K, decision=decision, weak=weak
    )


def compressed(A: FloatArray) -> FloatArray:
    """A triangular factor with the same singular values and dependencies, when A is tall."""
    return np.asarray(np.linalg.qr(A, mode="r")) if A.shape[0] > A.shape[1] else A


def _leading_columns(scaled: FloatArray, decision: RankDecision) -> npt.NDArray[np.intp]:
    """Indices of the columns that those before them do not span, exactly `decision.rank` of them.

    A column leads when its distance from the span of the leading columns before it exceeds a threshold. The threshold
    starts at the tolerance and moves only when the count would contradict the singular values.
    """
    low, high = 0.0, 1.0
    threshold = decision.tolerance
    chosen = _greedy_columns(scaled, threshold)
    # Halving the exponent range 60 times separates any two distances that differ in double precision.
    for _ in range(60):
        if len(chosen) == decision.rank:
            break
        low, high = (threshold, high) if len(chosen) > decision.rank else (low, threshold)
        threshold = np.sqrt(max(low, np.finfo(float).tiny ** 0.25) * high)
        chosen = _greedy_columns(scaled, threshold)
    return np.array(chosen, dtype=np.intp)


def _greedy_columns(scaled: FloatArray, threshold: float) -> list[int]:
    """Left to right, each column further than the threshold from the span of those already chosen."""
    return list(choose_columns(scaled, range(scaled.shape[1]), dependent=threshold).kept)


COEFFICIENT_ROUND_OFF = 1e-9
"""Coefficients come out of a least-squares solve with a condition number of at most some 1e4: noise below 1e-11."""


def _cleaned(K: FloatArray, lengths: FloatArray) -> FloatArray:
    """Coefficients with round-off replaced by the zero or the short decimal it came from.

    Args:
        K: `K * length of the dependent column`, not yet divided by the lengths of the independent columns.
        lengths: of the independent columns.
    """
    K = (
        np.where(np.abs(K) < COEFFICIENT_ROUND_OFF * np.abs(K).max(axis=0, initial=0.0), 0.0, K)
        / lengths[:, np.newaxis]
    )
    short = np.round(K, 9)
    return np.where(np.abs(K - short) <= COEFFICIENT_ROUND_OFF * 0.1 * np.maximum(1.0, np.abs(K)), short, K) + 0.0


def weak_directions(scaled: FloatArray, names: Sequence[str], *, below: float = WEAK) -> tuple[WeakDirection, ...]:
    """Directions whose singular value is far below the others, weakest first.

    Args:
        scaled: rows with columns of unit length, or their R factor, shape [m, r].
        names: of the columns.
        below: fraction of the largest singular value.
    """
    _, values, Vt = np.linalg.svd(scaled, full_matrices=False)
    out = []
    for k in range(len(values) - 1, -1, -1):
        ratio = float(values[k] / values[0]) if values[0] > 0.0 else 0.0
        if ratio >= below:
            break
        v = Vt[k] * np.sign(Vt[k][np.argmax(np.abs(Vt[k]))])
        # Entries below a tenth of the largest do not decide which parameters trade off against each other.
        order = [int(i) for i in np.argsort(-np.abs(v)) if abs(v[i]) >= 0.1 * np.abs(v).max()]
        out.append(WeakDirection(ratio, tuple((names[i], float(v[i])) for i in order)))
    return tuple(out)
