"""Samples in, Information out, without ever holding the rows of more than one block.

Two ways. *Gram*: the compiled kernel adds up `[A y]^T [A y]` per channel while the rows are in cache, and a second pass
over the samples corrects the right-hand sides by the residuals of a first solution (corrected semi-normal equations),
which gives what QR would up to a condition number of about a million, at a small fraction of the cost. *QR*: blocks of rows are
folded into the triangular factor one after the other; always safe.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.errors import ShapeError
from armid.information.information import ChannelInformation, Information, triangular
from armid.information.solve import smallest_solution
from armid.kernels.compiled import contiguous_columns
from armid.kernels.evaluate import SMALL, CompiledRows, compiled_rows, few_rows, reference_rows
from armid.kernels.source import RowSource

_BLOCK = 2048
"""Samples per block of the QR way: a few megabytes of rows."""

_GRAM_CONDITION_LIMIT = 1e6
"""Condition number of the column-scaled rows up to which the Gram way is as accurate as QR (squared, it leaves four digits
of double precision to the first solution, and each correction squares its error)."""

_CORRECTION_LIMIT = 1e-7
"""Relative size of a correction below which another pass over the data would change nothing that matters."""

_MOST_CORRECTIONS = 3


class FactorMethod(StrEnum):
    """How rows become a factor."""

    AUTO = "auto"
    """Gram if the condition number allows it, else QR."""
    GRAM = "gram"
    QR = "qr"


def accumulate(
    source: RowSource, inputs: npt.ArrayLike, y: npt.ArrayLike, *, method: FactorMethod = FactorMethod.AUTO
) -> Information:
    """Information of measured samples.

    Args:
        source: what was measured.
        inputs: shape [n_samples, len(source.inputs)]; stored column by column they are not copied.
        y: measured values, shape [n_samples, len(source.channels)].
        method: Gram, QR, or the choice between them by conditioning; `Information.method` says which it was.
    """
    x = samples("inputs", inputs, len(source.inputs))
    measured = samples("y", y, len(source.channels))
    if len(x) != len(measured):
        raise ShapeError("y", measured.shape, f"[{len(x)}, {len(source.channels)}]")
    by_qr = method is FactorMethod.QR or (method is FactorMethod.AUTO and has_dependent_columns(source))
    if by_qr or len(x) <= SMALL:
        return _by_qr(source, x, measured)
    information = _by_gram(source, x, measured)
    if method is FactorMethod.AUTO and _scaled_condition(information) > _GRAM_CONDITION_LIMIT:
        return _by_qr(source, x, measured)
    return information


@lru_cache(maxsize=64)
def has_dependent_columns(source: RowSource) -> bool:
    """Whether some columns depend on others at whatever samples, so that no Gram matrix of them is good enough."""
    count = len(source.columns)
    x = np.random.default_rng(0).uniform(-3.0, 3.0, size=(count, len(source.inputs)))
    A = few_rows(source, x).reshape(-1, count) if count <= SMALL else reference_rows(source, x).reshape(-1, count)
    norms = np.linalg.norm(A, axis=0)
    if count == 0 or np.any(norms == 0.0):
        return count > 0
    singular = np.linalg.svd(A / norms, compute_uv=False)
    return bool(singular[-1] * _GRAM_CONDITION_LIMIT < singular[0])


def accumulate_apart(
    source: RowSource, inputs: npt.ArrayLike, y: npt.ArrayLike, groups: npt.NDArray[np.intp]
) -> dict[tuple[int, int], ChannelInformation]:
    """What every channel's rows of every group tell, by channel and group; rows are evaluated once.

    Args:
        source: what was measured.
        inputs, y: as `accumulate` takes them.
        groups: of every row, shape [n_samples, n_channels].
    """
    x, measured = samples("inputs", inputs, len(source.inputs)), samples("y", y, len(source.channels))
    factors: dict[tuple[int, int], FloatArray] = {}
    columns: Sequence[npt.NDArray[np.intp]] = ()
    for start in range(0, len(x), _BLOCK):
        block = slice(start, start + _BLOCK)
        columns, parts = _row_blocks(source, x[block])
        for k, A in enumerate(parts):
            rows, group = np.column_stack([A, measured[block, k]]), groups[block, k]
            for g in np.unique(group).tolist():
                factors[k, g] = _folded(factors.get((k, g)), rows[group == g])
    return {
        (k, g): ChannelInformation(source.channels[k], columns[k], factor, float(np.sum(groups[:, k] == g)))
        for (k, g), factor in factors.items()
    }


def _folded(factor: FloatArray | None, rows: FloatArray) -> FloatArray:
    """The factor of what it stood for and further rows."""
    return triangular(rows if factor is None else np.vstack([factor, rows]))


def _scaled_condition(information: Information) -> float:
    """Condition number of all rows with columns scaled to unit norm; columns nothing excites are left out."""
    G = information.gram()
    scale = np.sqrt(np.diag(G))
    seen = scale > 0.0
    G = G[np.ix_(seen, seen)] / np.outer(scale[seen], scale[seen])
    values = np.linalg.eigvalsh(G)
    return float(np.sqrt(values[-1] / values[0])) if values.size and values[0] > 0.0 else np.inf


def _by_qr(source: RowSource, x: FloatArray, y: FloatArray) -> Information:
    """Blocks of rows folded into one triangular factor per channel."""
    factors: list[FloatArray | None] = [None] * len(source.channels)
    columns: Sequence[npt.NDArray[np.intp]] = ()
    for start in range(0, max(len(x), 1), _BLOCK):
        block, target = x[start : start + _BLOCK], y[start : start + _BLOCK]
        columns, parts = _row_blocks(source, block)
        factors = [_folded(factors[k], np.column_stack([A, target[:, k]])) for k, A in enumerate(parts)]
    return _assembled(source, columns, [f for f in factors if f is not None], float(len(x)), FactorMethod.QR)


def _row_blocks(source: RowSource, x: FloatArray) -> tuple[tuple[npt.NDArray[np.intp], ...], Iterator[FloatArray]]:
    """The columns each channel sees, and its rows over them, channel by channel."""
    code = compiled_rows(source)
    columns = code.channel_columns
    if len(x) <= SMALL:
        A = few_rows(source, x)
        return columns, (A[:, k, c] for k, c in enumerate(columns))
    packed = code.packed(x)
    bounds = np.cumsum([0, *(len(c) for c in columns)])
    return columns, (packed[bounds[k] : bounds[k + 1]].T for k in range(len(columns)))


def _by_gram(source: RowSource, x: FloatArray, y: FloatArray) -> Information:
    """Gram matrices by the fused kernel, then corrections of the right-hand sides until they stop mattering."""
    code = compiled_rows(source)
    data = [*contiguous_columns(x), *contiguous_columns(y)]
    grams = code.gram_kernel.gram(data)
    factors = [factor_of_gram(G) for G in grams]
    b = solution(grams, code, len(source.columns))
    for _ in range(_MOST_CORRECTIONS):
        corrected = _corrected_factors(code, factors, data, b)
        step = _stacked_solution(corrected, code, len(source.columns)) - b
        factors, b = corrected, b + step
        if np.linalg.norm(step) <= _CORRECTION_LIMIT * np.linalg.norm(b):
            break
    return _assembled(source, code.channel_columns, factors, float(len(x)), FactorMethod.GRAM)


def factor_of_gram(G: FloatArray) -> FloatArray:
    """Upper triangular F with F^T F = G, also for a singular G: eigenvalues that round-off made negative become zero."""
    scale = np.sqrt(np.maximum(np.diag(G), 0.0))
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0.0)
    values, vectors = np.linalg.eigh(G * np.outer(inverse, inverse))
    root = np.sqrt(np.maximum(values, 0.0))
    return triangular((vectors * root).T * scale)


def solution(grams: Sequence[FloatArray], code: CompiledRows, size: int) -> FloatArray:
    """Least-squares solution of all channels from their Gram matrices, of smallest norm where it is not unique."""
    G, h = np.zeros((size, size)), np.zeros(size)
    for gram, columns in zip(grams, code.channel_columns, strict=True):
        G[np.ix_(columns, columns)] += gram[:-1, :-1]
        h[columns] += gram[:-1, -1]
    return _pseudo_solve(G, h)


def _pseudo_solve(G: FloatArray, h: FloatArray) -> FloatArray:
    """G^+ h for a symmetric G, columns scaled to unit norm first."""
    scale = np.sqrt(np.maximum(np.diag(G), 0.0))
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0.0)
    values, vectors = np.linalg.eigh(G * np.outer(inverse, inverse))
    kept = values > values[-1] * len(values) * np.finfo(float).eps
    projected = vectors[:, kept].T @ (inverse * h)
    return inverse * (vectors[:, kept] @ (projected / values[kept]))


def _stacked_solution(factors: Sequence[FloatArray], code: CompiledRows, size: int) -> FloatArray:
    """Least-squares solution of all channels from their factors."""
    blocks = []
    for factor, columns in zip(factors, code.channel_columns, strict=True):
        block = np.zeros((len(factor) - 1, size + 1))
        block[:, [*columns, size]] = factor[:-1]
        blocks.append(block)
    stacked = np.vstack(blocks)
    return smallest_solution(stacked[:, :-1], stacked[:, -1])


def _corrected_factors(
    code: CompiledRows, factors: Sequence[FloatArray], data: Sequence[FloatArray], b: FloatArray
) -> list[FloatArray]:
    """The factors with right-hand sides taken anew from the residuals of b.

    With r = y - A b summed over the data themselves, z = R b + R^-T A^T r and rho^2 = r^T r - |R^-T A^T r|^2: what the
    Gram matrix lost of A^T y is put back.
    """
    totals = code.correction_kernel.total(data, b)
    out, place = [], 0
    for factor, columns in zip(factors, code.channel_columns, strict=True):
        c = len(columns)
        h, energy = totals[place : place + c], totals[place + c]
        place += c + 1
        R = factor[:-1, :-1]
        scale = np.linalg.norm(R, axis=0)
        scale[scale == 0.0] = 1.0
        z = np.linalg.lstsq((R / scale).T, h / scale, rcond=None)[0]
        corrected = np.zeros_like(factor)
        corrected[:-1, :-1] = R
        corrected[:-1, -1] = R @ b[columns] + z
        corrected[-1, -1] = np.sqrt(max(energy - z @ z, 0.0))
        out.append(corrected)
    return out


def _assembled(
    source: RowSource,
    columns: Sequence[npt.NDArray[np.intp]],
    factors: Sequence[FloatArray],
    count: float,
    method: FactorMethod,
) -> Information:
    """The factors with their names."""
    channels = tuple(
        ChannelInformation(name, c, factor, count)
        for name, c, factor in zip(source.channels, columns, factors, strict=True)
    )
    return Information(tuple(source.columns), channels, method.value)
