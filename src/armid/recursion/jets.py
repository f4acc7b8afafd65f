"""Scalars that carry their first and second time derivative: the recursion run on them differentiates itself.

A jet is (x, x', x''). Products follow Leibniz, sine and cosine the chain rule; the parts may be floats, arrays or tape nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from armid.recursion.scalars import Scalar, Scalars


@dataclass(frozen=True, slots=True)
class Jet:
    """A value with its first two derivatives by time.

    Args:
        x, d, dd: value, first and second derivative.
    """

    x: Scalar
    d: Scalar
    dd: Scalar

    def __add__(self, other: Any) -> Jet:
        if isinstance(other, Jet):
            return Jet(self.x + other.x, self.d + other.d, self.dd + other.dd)
        return Jet(self.x + other, self.d, self.dd)

    __radd__ = __add__

    def __neg__(self) -> Jet:
        return Jet(-self.x, -self.d, -self.dd)

    def __sub__(self, other: Any) -> Jet:
        if isinstance(other, Jet):
            return Jet(self.x - other.x, self.d - other.d, self.dd - other.dd)
        return Jet(self.x - other, self.d, self.dd)

    def __rsub__(self, other: Any) -> Jet:
        return Jet(other - self.x, -self.d, -self.dd)

    def __mul__(self, other: Any) -> Jet:
        if isinstance(other, Jet):
            return Jet(
                self.x * other.x,
                self.d * other.x + self.x * other.d,
                self.dd * other.x + (self.d * other.d + self.d * other.d) + self.x * other.dd,
            )
        return Jet(self.x * other, self.d * other, self.dd * other)

    __rmul__ = __mul__


@dataclass(frozen=True)
class JetScalars:
    """Jets over other scalars.

    Args:
        inner: what their parts are made of.
    """

    inner: Scalars

    def constant(self, value: float, symbol: str | None = None) -> Jet:
        zero = self.inner.constant(0.0)
        return Jet(self.inner.constant(value, symbol), zero, zero)

    def sin(self, x: Jet) -> Jet:
        s, c = self.inner.sin(x.x), self.inner.cos(x.x)
        return Jet(s, c * x.d, c * x.dd - s * (x.d * x.d))

    def cos(self, x: Jet) -> Jet:
        s, c = self.inner.sin(x.x), self.inner.cos(x.x)
        return Jet(c, -(s * x.d), -(s * x.dd) - c * (x.d * x.d))

    def sign(self, x: Jet) -> Jet:
        """Constant between its jumps."""
        zero = self.inner.constant(0.0)
        return Jet(self.inner.sign(x.x), zero, zero)
