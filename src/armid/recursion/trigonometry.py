"""Closed-form scalars: polynomials in cosines and sines of the joint angles, joint lengths, rates and link lengths."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from armid.errors import MissingDependencyError
from armid.recursion.scalars import GRAVITY, Scalar
from armid.recursion.symbols import ANGLE_PREFIX, Angle, exact_angle, exact_number, length_symbols
from armid.robot.robot import JointKind, Robot

try:
    import sympy
    from sympy.polys.domains import QQ
    from sympy.polys.rings import ring
except ImportError:
    raise MissingDependencyError("sympy", "closed forms of parameters", "symbolic") from None


class TrigonometricScalars:
    """Polynomials with rational coefficients in c_i = cos q_i, s_i = sin q_i, and everything else that has a name.

    Args:
        robot: its joints name the angles, its lengths stay symbols.
        inputs: names of the other inputs (`qd1`, `qdd1`, ...); positions are always there.
    """

    def __init__(self, robot: Robot, inputs: Sequence[str] = ()) -> None:
        self.robot = robot
        self.turning = [joint.kind is JointKind.REVOLUTE for joint in robot.joints]
        names: list[str] = []
        for i, turns in enumerate(self.turning, start=1):
            names += [f"c{i}", f"s{i}"] if turns else [f"q{i}"]
        self.rates = tuple(name for name in inputs if not _is_position(name))
        # Lengths may be called s1 or c1 too: generators are told apart by a prefix that never shows.
        self.lengths = length_symbols(robot)
        self.ring: Any = ring([*names, *self.rates, GRAVITY, *(f"length_{name}" for name in self.lengths)], QQ)[0]
        self.place = {str(g): i for i, g in enumerate(self.ring.gens)}
        self.sines = [
            (self.place[f"s{i}"], self.place[f"c{i}"]) for i, turns in enumerate(self.turning, start=1) if turns
        ]

    def generator(self, name: str) -> Scalar:
        return self.ring.gens[self.place[name]]

    def number(self, value: Fraction) -> Scalar:
        return self.ring(QQ(value.numerator, value.denominator))

    def constant(self, value: float, symbol: str | None = None) -> Scalar:
        if symbol is not None and symbol.startswith(ANGLE_PREFIX):
            c, s = exact_angle(value)
            return Angle(self.number(c), self.number(s))
        if symbol == GRAVITY:
            return self.generator(GRAVITY)
        if symbol in self.lengths and value != 0.0:
            return self.generator(f"length_{symbol}")
        return self.number(exact_number(value))

    def sin(self, x: Angle) -> Scalar:
        return x.sin

    def cos(self, x: Angle) -> Scalar:
        return x.cos

    def sign(self, x: Scalar) -> Scalar:
        raise NotImplementedError("the sign of a velocity is not a polynomial; closed forms leave Coulomb friction out")

    def inputs(self, names: Sequence[str]) -> list[Scalar]:
        """One scalar per input of a source."""
        return [self.position(int(n[1:]) - 1) if _is_position(n) else self.generator(n) for n in names]

    def position(self, i: int) -> Scalar:
        if self.turning[i]:
            return Angle(self.generator(f"c{i + 1}"), self.generator(f"s{i + 1}"))
        return self.generator(f"q{i + 1}")

    def reduced(self, p: Scalar) -> Scalar:
        """The same function with every sin^2 written as 1 - cos^2: equal functions become equal polynomials."""
        for s, c in self.sines:
            p = self._without_square(p, s, c)
        return p

    def _without_square(self, p: Scalar, s: int, c: int) -> Scalar:
        """Replaces s^(2k + r) by s^r (1 - c^2)^k for one pair of generators."""
        if all(monomial[s] < 2 for monomial in p):
            return p
        out: Any = self.ring.zero
        parts: dict[int, Any] = {}
        for monomial, coefficient in p.terms():
            k, r = divmod(monomial[s], 2)
            lowered = (*monomial[:s], r, *monomial[s + 1 :])
            part = parts.setdefault(k, self.ring.zero.copy())
            part[lowered] = part.get(lowered, 0) + coefficient
        one_minus = 1 - self.ring.gens[c] ** 2
        for k, part in parts.items():
            part.strip_zero()
            out = out + part * one_minus**k
        return out

    def shortened(self, p: Scalar) -> Scalar:
        """The same function with sin^2 = 1 - cos^2 used in whichever direction leaves fewer terms, angle by angle."""
        for s, c in self.sines:
            other = self._without_square(p, c, s)
            p = other if len(other) < len(p) else p
        return p

    def derivative(self, p: Scalar, i: int) -> Scalar:
        """d/dq_i."""
        if not self.turning[i]:
            return p.diff(self.generator(f"q{i + 1}"))
        c, s = self.generator(f"c{i + 1}"), self.generator(f"s{i + 1}")
        return self.reduced(c * p.diff(s) - s * p.diff(c))

    def expression(self, p: Scalar) -> sympy.Expr:
        """As a SymPy expression in q1, qd1, ..., and the link lengths."""
        return p.as_expr(*(self.meaning(str(g)) for g in self.ring.gens))

    def factored(self, p: Scalar) -> sympy.Expr:
        """The same with what all terms share in front."""
        shared = tuple(min(powers) for powers in zip(*p, strict=True))
        if not any(shared):
            return self.expression(p)
        rest = {tuple(a - b for a, b in zip(m, shared, strict=True)): c for m, c in p.terms()}
        return self.expression(self.ring({shared: QQ(1)})) * self.expression(self.ring(rest))

    def meaning(self, name: str) -> sympy.Expr:
        """What a generator stands for."""
        if name.startswith("length_"):
            return sympy.Symbol(name.removeprefix("length_"))
        if name == GRAVITY:
            return sympy.Symbol("g")
        if name in self.rates or name[0] == "q":
            return sympy.Symbol(name, real=True)
        q = sympy.Symbol(f"q{name[1:]}", real=True)
        return sympy.cos(q) if name[0] == "c" else sympy.sin(q)


def _is_position(name: str) -> bool:
    """Whether an input is a joint position (`q3`, not `qd3`)."""
    return name[0] == "q" and name[1:].isdigit()
