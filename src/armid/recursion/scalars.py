"""The scalars a recursion can run on: floats, NumPy arrays (one entry per sample), SymPy expressions, tape nodes.

A recursion uses only +, -, *, unary minus and the few functions gathered in `Scalars`; constants come in through
`constant`, so that a symbolic run can use exact numbers and named lengths.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from armid.arrays import snapped

Scalar = Any
"""Whatever supports +, - and * with its own kind and with the constants of its `Scalars`."""
Vector = tuple[Scalar, Scalar, Scalar]
Matrix = tuple[Vector, Vector, Vector]

GRAVITY = "gravity"
"""Symbol under which the magnitude of gravity is offered to scalars that keep names."""


class Scalars(Protocol):
    """The functions a recursion needs beyond arithmetic."""

    def constant(self, value: float, symbol: str | None = None) -> Scalar:
        """A constant; `symbol` names it where the scalar type can keep a name."""

    def sin(self, x: Scalar) -> Scalar: ...

    def cos(self, x: Scalar) -> Scalar: ...

    def sign(self, x: Scalar) -> Scalar:
        """-1, 0 or 1."""


class FloatScalars:
    """Plain Python floats: slow, obvious, the reference."""

    def constant(self, value: float, symbol: str | None = None) -> float:
        return snapped(value)

    def sin(self, x: float) -> float:
        return math.sin(x)

    def cos(self, x: float) -> float:
        return math.cos(x)

    def sign(self, x: float) -> float:
        return float((x > 0) - (x < 0))


class ArrayScalars(FloatScalars):
    """NumPy arrays: one operation over all samples at a time."""

    def sin(self, x: Scalar) -> Scalar:
        return np.sin(x)

    def cos(self, x: Scalar) -> Scalar:
        return np.cos(x)

    def sign(self, x: Scalar) -> Scalar:
        return np.sign(x)


FLOATS = FloatScalars()
ARRAYS = ArrayScalars()


def dot(a: Vector, b: Vector) -> Scalar:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Vector, b: Vector) -> Vector:
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


def add(a: Vector, b: Vector) -> Vector:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def subtract(a: Vector, b: Vector) -> Vector:
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def scale(s: Scalar, a: Vector) -> Vector:
    return (s * a[0], s * a[1], s * a[2])


def transpose_times(R: Matrix, v: Vector) -> Vector:
    """R^T v."""
    return (
        R[0][0] * v[0] + R[1][0] * v[1] + R[2][0] * v[2],
        R[0][1] * v[0] + R[1][1] * v[1] + R[2][1] * v[2],
        R[0][2] * v[0] + R[1][2] * v[1] + R[2][2] * v[2],
    )


def times(R: Matrix, v: Vector) -> Vector:
    """R v."""
    return (dot(R[0], v), dot(R[1], v), dot(R[2], v))


def matmul(A: Matrix, B: Matrix) -> Matrix:
    """A B."""
    return tuple(  # type: ignore[return-value]
        tuple(A[i][0] * B[0][j] + A[i][1] * B[1][j] + A[i][2] * B[2][j] for j in range(3)) for i in range(3)
    )
