"""Array scalars that know an exact zero and an exact one, so that a recursion over sparse chains skips what vanishes.

Every elementary transform has at least five zeros and ones; multiplying whole arrays by them is most of the cost of a
chain. The recursion stays as it is written; only the numbers it runs on are cleverer.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from armid.arrays import snapped
from armid.recursion.scalars import ArrayScalars, Scalar


class Zero:
    """0 that costs nothing."""

    __slots__ = ()
    __array_ufunc__ = None  # arrays hand operations with it back to this class

    def __add__(self, other: Any) -> Any:
        return other

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return -other

    def __rsub__(self, other: Any) -> Any:
        return other

    def __mul__(self, other: Any) -> Zero:
        return self

    __rmul__ = __mul__

    def __neg__(self) -> Zero:
        return self

    def __float__(self) -> float:
        return 0.0


class One:
    """1 that costs nothing to multiply by."""

    __slots__ = ()
    __array_ufunc__ = None

    def __add__(self, other: Any) -> Any:
        return self if isinstance(other, Zero) else 1.0 + (1.0 if isinstance(other, One) else other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return 1.0 - as_number(other)

    def __rsub__(self, other: Any) -> Any:
        return as_number(other) - 1.0

    def __mul__(self, other: Any) -> Any:
        return other

    __rmul__ = __mul__

    def __neg__(self) -> float:
        return -1.0

    def __float__(self) -> float:
        return 1.0


ZERO, ONE = Zero(), One()


def as_number(x: Any) -> Any:
    """A float or an array, whatever it was."""
    return float(x) if isinstance(x, Zero | One) else x


class StructuralScalars(ArrayScalars):
    """NumPy arrays with exact zeros and ones as objects of their own."""

    def constant(self, value: float, symbol: str | None = None) -> Scalar:
        value = snapped(value)
        return ZERO if value == 0.0 else ONE if value == 1.0 else value

    def sin(self, x: Scalar) -> Scalar:
        x = as_number(x)
        return self.constant(math.sin(x)) if isinstance(x, float) else np.sin(x)

    def cos(self, x: Scalar) -> Scalar:
        x = as_number(x)
        return self.constant(math.cos(x)) if isinstance(x, float) else np.cos(x)


STRUCTURAL = StructuralScalars()
