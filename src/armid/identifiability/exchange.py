"""The same base parameters led by other standard ones.

Which standard parameters lead is a convention: ours keeps the first of each combination, other works drop other ones. With N the
changes that no measurement notices, a set of parameters can fall out together exactly when N is invertible on their rows; then
N N_set^-1 has the identity there, and minus its other rows are the coefficients K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError, UnknownNameError
from armid.identifiability.base import BaseParameters

_INDEPENDENT = 1e-9
"""A row of the orthonormal null space is another direction when more than this of it lies outside the rows chosen before."""


def exchanged(base: BaseParameters, without: Sequence[str]) -> BaseParameters:
    """The base with these standard parameters fallen out; others fall out as before, as far as there is room.

    Args:
        base: any base.
        without: names that shall lead no base parameter.

    Raises:
        UnknownNameError: no such standard parameter.
        InputError: a parameter that cannot fall out beside those named before it.
    """
    if not without:
        return base
    for name in without:
        if name not in base.parameters:
            raise UnknownNameError("parameter", name, base.parameters)
    wanted = [base.parameters.index(name) for name in dict.fromkeys(without)]
    others = [int(i) for i in base.dependent if int(i) not in wanted]
    N = np.asarray(np.linalg.qr(base.null_space)[0])
    chosen: list[int] = []
    span = np.zeros((0, N.shape[1]))
    for place in (*wanted, *reversed(others)):
        rest = _outside(N[place], span)
        if np.linalg.norm(rest) > _INDEPENDENT:
            chosen.append(place)
            span = np.vstack([span, rest / np.linalg.norm(rest)])
        elif place in wanted:
            raise _cannot(base, place, wanted[: wanted.index(place)])
    dependent = np.sort(chosen)
    independent = np.setdiff1d(np.arange(len(base.parameters)), dependent)
    K = -N[independent] @ np.linalg.inv(N[dependent])
    return replace(base, independent=independent, dependent=dependent, K=np.where(np.abs(K) < _INDEPENDENT, 0.0, K))


def _outside(row: FloatArray, span: FloatArray) -> FloatArray:
    """The part of a row outside the span of orthonormal rows."""
    rest: FloatArray = row - span.T @ (span @ row)
    return rest


def _cannot(base: BaseParameters, place: int, before: Sequence[int]) -> InputError:
    names = ", ".join(base.parameters[i] for i in before)
    beside = f" beside {names}" if names else ""
    return InputError(
        base.parameters[place],
        f"cannot fall out of the base{beside}",
        f"{len(base.dependent)} of {len(base.parameters)} parameters do, and every change without it is noticed; name others",
    )
