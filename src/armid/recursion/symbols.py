"""Exact scalars: rational functions of the link lengths, and angles with rational sine and cosine.

A right angle is exact. Any other constant angle is replaced by one with a rational tangent of its half, closer to it
than double precision can tell, so that cosine and sine lie exactly on the unit circle and ranks are decided exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isinf, pi, tan
from typing import Any

from armid.errors import MissingDependencyError
from armid.recursion.placement import Placement, identity, is_right_angle, rotation
from armid.recursion.scalars import Scalar
from armid.robot.elementary import Elementary
from armid.robot.robot import Joint, Robot

try:
    from sympy.polys.domains import QQ
    from sympy.polys.fields import field
except ImportError:
    raise MissingDependencyError("sympy", "closed forms of parameters", "symbolic") from None

_ANGLE_DENOMINATOR = 10**8
"""A fraction with this denominator comes within 1e-16 of any number."""
_LENGTH_DENOMINATOR = 10**12
"""Lengths are decimals in text; anything beyond a picometre is round-off of an earlier conversion."""
ANGLE_PREFIX = "angle:"
"""Marks a constant angle that is to be met as one exact `Angle`."""


@dataclass(frozen=True, slots=True)
class Angle:
    """An angle known by its exact cosine and sine."""

    cos: Scalar
    sin: Scalar


def exact_number(value: float) -> Fraction:
    """The short decimal or fraction a float stands for."""
    short = Fraction(value).limit_denominator(10**4)
    return short if abs(float(short) - value) < 1e-14 else Fraction(value).limit_denominator(_LENGTH_DENOMINATOR)


def exact_angle(value: float) -> tuple[Fraction, Fraction]:
    """Rational cosine and sine of an angle [rad] on the unit circle."""
    if is_right_angle(value):
        return (
            (Fraction(1), Fraction(0)),
            (Fraction(0), Fraction(1)),
            (Fraction(-1), Fraction(0)),
            (Fraction(0), Fraction(-1)),
        )[round(value / (pi / 2)) % 4]
    half = tan(value / 2)
    return _half_angle(Fraction(half).limit_denominator(_ANGLE_DENOMINATOR))


def _half_angle(t: Fraction) -> tuple[Fraction, Fraction]:
    """Cosine and sine of the angle whose half has the tangent t."""
    return (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)


class FieldScalars:
    """Rational functions of the link lengths, with rational coefficients.

    Args:
        lengths: names of the lengths kept as symbols; a length that is zero is part of the structure and never one.
    """

    def __init__(self, lengths: Iterable[str] = ()) -> None:
        self.lengths = tuple(lengths)
        # A field needs a generator; an arm without symbols gets one that never appears.
        self.field: Any = field(list(self.lengths) or ["unused"], QQ)[0]
        self.generators: dict[str, Any] = dict(zip(self.lengths, self.field.gens, strict=False))

    def number(self, value: Fraction) -> Scalar:
        return self.field(QQ(value.numerator, value.denominator))

    def constant(self, value: float, symbol: str | None = None) -> Scalar:
        if symbol is not None and symbol.startswith(ANGLE_PREFIX):
            c, s = exact_angle(value)
            return Angle(self.number(c), self.number(s))
        if symbol in self.generators and value != 0.0:
            return self.generators[symbol]
        return self.number(exact_number(value))

    def sin(self, x: Angle) -> Scalar:
        return x.sin

    def cos(self, x: Angle) -> Scalar:
        return x.cos

    def sign(self, x: Scalar) -> Scalar:
        value = Fraction(str(x.as_expr()))
        return self.number(Fraction((value > 0) - (value < 0)))

    def angle(self, t: Fraction) -> Angle:
        """A joint position whose half has the tangent t."""
        c, s = _half_angle(t)
        return Angle(self.number(c), self.number(s))

    def placement(self, elements: Sequence[Elementary]) -> Placement:
        """Product of elementary transforms with every variable at q = 0, exactly."""
        total = identity(self)
        for element in elements:
            axis, eye = element.motion.axis, identity(self)
            if element.motion.is_rotation:
                c, s = exact_angle(element.value)
                step = Placement(rotation(axis, self.number(c), self.number(s), self), eye.p)
            else:
                amount = self.constant(element.value, element.symbol)
                step = Placement(eye.R, tuple(amount if i == axis else eye.p[i] for i in range(3)))
            total = total.then(step)
        return total


def length_symbols(robot: Robot) -> tuple[str, ...]:
    """Names of the lengths of the chain that are not zero, from base to tip, each once."""
    names = [
        e.symbol
        for joint in robot.joints
        for e in joint.transforms
        if e.symbol is not None and not e.motion.is_rotation and e.value != 0.0 and not isinf(e.value)
    ]
    return tuple(dict.fromkeys(names))


def with_exact_angles(robot: Robot) -> Robot:
    """The same arm written so that a recursion on `FieldScalars` meets every constant angle as one exact `Angle`.

    A constant next to the variable commutes with it and becomes a transform of its own.
    """

    def parts(element: Elementary) -> list[Elementary]:
        if not element.motion.is_rotation:
            return [element]
        constant = replace(element, symbol=f"{ANGLE_PREFIX}{element.value!r}", variable=False, sign=1)
        if not element.variable:
            return [constant]
        return [constant, replace(element, value=0.0)] if element.value != 0.0 else [element]

    def rewritten(joint: Joint) -> Joint:
        return replace(joint, transforms=tuple(p for e in joint.transforms for p in parts(e)))

    return replace(robot, joints=tuple(rewritten(joint) for joint in robot.joints))
