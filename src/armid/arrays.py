"""Checks at the door: every public function that takes arrays passes them through here; and numerical guards."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armid.errors import InputError, NotFiniteError, ShapeError

FloatArray = npt.NDArray[np.float64]


def samples(name: str, values: npt.ArrayLike, columns: int) -> FloatArray:
    """A finite float64 array of shape [n_samples, columns]; one sample may be given as [columns]."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(name, f"{values!r} are no numbers", f"expected an array [n_samples, {columns}]") from None
    if array.ndim == 1 and array.shape[0] == columns:
        array = array[np.newaxis]
    if array.ndim != 2 or array.shape[1] != columns:
        raise ShapeError(name, array.shape, f"[n_samples, {columns}]")
    return finite(name, array)


def finite(name: str, array: FloatArray) -> FloatArray:
    """The array itself, or an error that says where its first NaN or infinity stands."""
    # One reduction instead of a mask: the sum of finite numbers is finite unless it overflows, which the mask then settles.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum()):
            return array
    bad = ~np.isfinite(array)
    if bad.any():
        raise NotFiniteError(name, int(bad.sum()), tuple(int(i) for i in np.argwhere(bad)[0]))
    return array


def read_only(array: npt.ArrayLike) -> FloatArray:
    """A float64 copy that cannot be written to, for fields of frozen dataclasses."""
    copy = np.array(array, dtype=np.float64)
    copy.flags.writeable = False
    return copy


_SNAP = 1e-15
"""cos(pi/2) is 6e-17 in floats. An entry this close to 0 or +-1 is a right angle that went through decimal text with 9 or more
digits or through one rotation product, never a manufacturing deviation one could measure."""


def snapped(x: float) -> float:
    """x, or the integer -1, 0, 1 it equals up to round-off, so that specialised kernels drop the term."""
    nearest = float(round(x))
    return nearest if abs(x - nearest) < _SNAP and abs(nearest) <= 1.0 else x
