"""A conic program, built constraint by constraint and handed to Clarabel directly.

minimise  sum of |A_i v - b_i|^2 + f^T v   subject to   G_k v + h_k in K_k
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.consistency.lapack import lend_lapack
from armid.information.status import Status

_ROOT2 = float(np.sqrt(2.0))


@dataclass(frozen=True, eq=False, kw_only=True)
class ConicSolution:
    """What the solver found.

    Args:
        v: the variables, shape [n].
        status: solved, infeasible or failed.
        iterations: of the interior-point method.
        seconds: spent inside the solver.
        detail: the solver's own word for its status.
    """

    v: FloatArray
    status: Status
    iterations: int
    seconds: float
    detail: str


@dataclass(eq=False)
class ConicProgram:
    """The program under construction; `n` variables, more can be appended; `f` is the linear part of the objective."""

    n: int
    f: FloatArray = field(init=False)
    _squares: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)
    _blocks: list[tuple[FloatArray, FloatArray, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.f = np.zeros(self.n)

    def append_variables(self, count: int) -> int:
        """Adds variables at the end; returns the index of the first."""
        first = self.n
        self.n += count
        self.f = np.pad(self.f, (0, count))
        return first

    def add_squares(self, A: FloatArray, b: FloatArray, weight: float = 1.0) -> None:
        """Weight ||A v - b||^2 to the objective; A may be narrower than v."""
        root = np.sqrt(weight)
        self._squares.append((root * A, root * b))

    def non_negative(self, G: FloatArray, h: FloatArray) -> None:
        """G v + h >= 0, row by row."""
        import clarabel

        if len(h):
            self._blocks.append((G, h, clarabel.NonnegativeConeT(len(h))))

    def non_negative_on(self, columns: npt.NDArray[np.intp], G: FloatArray, h: FloatArray) -> None:
        """G v[columns] + h >= 0 for many rows on few variables, by copies of these variables.

        The rows then stay sparse when the variables themselves are transformed, which makes them cheap.
        """
        first = self.append_variables(len(columns))
        same = np.zeros((len(columns), self.n))
        same[np.arange(len(columns)), columns] = 1.0
        same[:, first:] = -np.eye(len(columns))
        self.equal(same, np.zeros(len(columns)))
        wide = np.zeros((len(G), self.n))
        wide[:, first:] = G
        self.non_negative(wide, h)

    def equal(self, G: FloatArray, h: FloatArray) -> None:
        """G v + h = 0."""
        import clarabel

        self._blocks.append((G, h, clarabel.ZeroConeT(len(h))))

    def second_order(self, G: FloatArray, h: FloatArray) -> None:
        """(G v + h)_0 >= norm of the rest."""
        import clarabel

        self._blocks.append((G, h, clarabel.SecondOrderConeT(len(h))))

    def exponential(self, G: FloatArray, h: FloatArray) -> None:
        """(x, y, z) = G v + h with y exp(x / y) <= z."""
        import clarabel

        self._blocks.append((G, h, clarabel.ExponentialConeT()))

    def semidefinite(self, F: FloatArray, constant: FloatArray) -> None:
        """sum_k v_k F[k] + constant positive semidefinite.

        Args:
            F: shape [n_columns, k, k]; may cover only the first variables.
            constant: shape [k, k].
        """
        import clarabel

        self._blocks.append((svec(F).T, svec(constant), clarabel.PSDTriangleConeT(constant.shape[0])))

    def wide(self, blocks: list[FloatArray]) -> FloatArray:
        """Rows on the first variables as rows on all of them, one block below the other."""
        return np.vstack([np.empty((0, self.n)), *(np.pad(B, ((0, 0), (0, self.n - B.shape[1]))) for B in blocks)])

    def solve(
        self, *, tolerance: float = 1e-8, transform: FloatArray | None = None, centre: FloatArray | None = None
    ) -> ConicSolution:
        """Clarabel's answer; never raises for an infeasible program.

        Args:
            tolerance: of the interior-point method.
            transform: T with v = centre + T u for the first variables, solved in u: an objective whose curvatures span
                twenty decades (data here, a weak prior there) becomes round, and the weak directions converge as well as the
                strong.
            centre: near the optimum, shape as the first variables. Tolerances are relative to the objective's value, and
                from far away the squares of all data drown what a weak prior has to say.
        """
        import clarabel

        G = self.wide([block for block, _, _ in self._blocks])
        h = np.concatenate([constant for _, constant, _ in self._blocks])
        A = self.wide([rows for rows, _ in self._squares])
        b = np.concatenate([np.empty(0), *(values for _, values in self._squares)])
        T, origin = np.eye(self.n), np.zeros(self.n)
        if centre is not None:
            origin[: len(centre)] = centre
        if transform is not None:
            T[: len(transform), : len(transform)] = transform
        # Residuals at the centre first, squares after: their difference would be lost in the squares of precise data.
        h, e = h + G @ origin, A @ origin - b
        G, A = G @ T, A @ T
        H, f = 2.0 * A.T @ A, T.T @ self.f + 2.0 * A.T @ e
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        # The objective is scaled to order one, so that absolute tolerances mean the same for short and long logs.
        diagonal = np.diag(H)
        size = max(float(np.median(diagonal[diagonal > 0.0])), 1e-300) if H.any() else 1.0
        upper = _Columns.of(np.triu(H / size))
        cones = [cone for _, _, cone in self._blocks]
        lend_lapack()
        raw = clarabel.DefaultSolver(upper, f / size, _Columns.of(-G), h, cones, settings).solve()
        return ConicSolution(
            v=origin + T @ np.asarray(raw.x, dtype=np.float64),
            status=_status_of(str(raw.status)),
            iterations=raw.iterations,
            seconds=raw.solve_time,
            detail=str(raw.status),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Columns:
    """A matrix by its columns, under SciPy's names for them: what Clarabel reads. Loading SciPy's own takes longer than a fit.

    Args:
        data: entries that are not zero, column by column.
        indices: their rows.
        indptr: where each column begins.
        shape: of the matrix.
    """

    data: FloatArray
    indices: npt.NDArray[np.int32]
    indptr: npt.NDArray[np.int32]
    shape: tuple[int, int]
    has_canonical_format: bool = True
    has_sorted_indices: bool = True

    @staticmethod
    def of(M: FloatArray) -> _Columns:
        columns, rows = np.nonzero(M.T)
        starts = np.searchsorted(columns, np.arange(M.shape[1] + 1))
        return _Columns(
            data=M[rows, columns],
            indices=rows.astype(np.int32),
            indptr=starts.astype(np.int32),
            shape=(M.shape[0], M.shape[1]),
        )


def _status_of(word: str) -> Status:
    """Our status for Clarabel's."""
    if word in ("Solved", "AlmostSolved"):
        return Status.SOLVED
    if "Infeasible" in word:
        return Status.INFEASIBLE
    return Status.SOLVER_FAILED


def svec(M: FloatArray) -> FloatArray:
    """Upper triangle, column by column, off-diagonals times sqrt 2: Clarabel's order. Works on [..., k, k]."""
    k = M.shape[-1]
    columns, rows = np.tril_indices(k)
    return M[..., rows, columns] * np.where(rows == columns, 1.0, _ROOT2)
