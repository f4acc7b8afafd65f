"""Numbers as people write them in robot files: `0.333`, `-pi/2`, `d3`, `q + pi/2`. A tiny grammar, never `eval`.

    sum     = product { (+|-) product }
    product = factor { (*|/) factor }
    factor  = [+|-] factor | number | name | ( sum )

Names are `pi`, the entries of the file's table of lengths, and `q` where a joint variable may stand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from math import isfinite, pi

from armid.errors import RobotError

LARGEST = 1e12
"""No quantity of a robot in SI units is larger, and sums of products of three such numbers still are finite."""

SMALLEST = 1e-100
"""Closer to zero than this is zero: such numbers come from broken exporters, and dividing by one overflows."""

_MAX_LENGTH = 200
"""Characters; the longest sensible expression is far shorter, and this bounds the recursion."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<sign>[-+*/()]))",
    re.ASCII,
)
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
_NOT_FINITE = re.compile(r"\s*[-+]?\.?(nan|inf|infinity)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Amount:
    """`constant + slope * q`.

    Args:
        constant: [m or rad].
        slope: factor of the joint variable; 0 for a constant.
        symbol: the name, when the text was one bare name of a length.
    """

    constant: float
    slope: float = 0.0
    symbol: str | None = None


def amount(text: str, where: str, *, names: Mapping[str, float] | None = None, variable: bool = False) -> Amount:
    """Read one expression.

    Args:
        text: what the file says.
        where: file and field, for the message.
        names: values of the names that may be used besides `pi`.
        variable: whether `q` may occur, linearly.

    Raises:
        RobotError: when the text is not a finite number in the grammar above.
    """
    if _DECIMAL_COMMA.fullmatch(text):
        raise RobotError(where, f"{text!r} is not a number", f"write a decimal point: {text.strip().replace(',', '.')}")
    if _NOT_FINITE.fullmatch(text):
        raise RobotError(where, f"{text!r} is not a finite number", "leave the field out when there is no value")
    known = {"pi": Amount(pi), **{name: Amount(value, symbol=name) for name, value in (names or {}).items()}}
    if variable:
        known["q"] = Amount(0.0, 1.0)
    result = _Reader(text, where, known).read()
    if not (isfinite(result.constant) and isfinite(result.slope)):
        raise RobotError(where, f"{text!r} is not a finite number")
    if abs(result.constant) > LARGEST:
        raise RobotError(where, f"{text[:60]!r} is larger than {LARGEST:g}", "is this in SI units?")
    return result if abs(result.constant) >= SMALLEST else replace(result, constant=0.0)


class _Reader:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, text: str, where: str, known: Mapping[str, Amount]) -> None:
        self.text, self.where, self.known = text, where, known
        self.tokens = self._tokens()
        self.position = 0

    def _tokens(self) -> list[tuple[str, str]]:
        text = self.text.strip()
        if not text or len(text) > _MAX_LENGTH:
            raise self._error("expected a number" if not text else f"is longer than {_MAX_LENGTH} characters")
        out, start = [], 0
        while start < len(text):
            match = _TOKEN.match(text, start)
            if match is None:
                raise self._error(f"cannot be read from {text[start:][:20]!r} on")
            kind = match.lastgroup or ""
            out.append((kind, match.group(kind)))
            start = match.end()
        return out

    def _error(
        self, problem: str, hint: str = "expected a number or an expression such as -pi/2, 0.5*d3"
    ) -> RobotError:
        return RobotError(self.where, f"{self.text[:60]!r} {problem}", hint)

    def _next(self) -> str:
        return self.tokens[self.position][1] if self.position < len(self.tokens) else ""

    def read(self) -> Amount:
        result = self._sum()
        if self.position != len(self.tokens):
            raise self._error(f"cannot be read from {self._next()!r} on")
        return result

    def _sum(self) -> Amount:
        left = self._product()
        while self._next() in ("+", "-"):
            sign = 1.0 if self._next() == "+" else -1.0
            self.position += 1
            right = self._product()
            left = Amount(left.constant + sign * right.constant, left.slope + sign * right.slope)
        return left

    def _product(self) -> Amount:
        left = self._factor()
        while self._next() in ("*", "/"):
            divide = self._next() == "/"
            self.position += 1
            right = self._factor()
            left = self._quotient(left, right) if divide else self._times(left, right)
        return left

    def _times(self, a: Amount, b: Amount) -> Amount:
        if a.slope and b.slope:
            raise self._error("is not linear in q")
        return Amount(a.constant * b.constant, a.slope * b.constant + b.slope * a.constant)

    def _quotient(self, a: Amount, b: Amount) -> Amount:
        if b.slope:
            raise self._error("is not linear in q")
        if b.constant == 0.0:
            raise self._error("divides by zero")
        return Amount(a.constant / b.constant, a.slope / b.constant)

    def _factor(self) -> Amount:
        if self.position >= len(self.tokens):
            raise self._error("ends too early")
        kind, token = self.tokens[self.position]
        self.position += 1
        if kind == "number":
            return Amount(float(token))
        if kind == "name":
            return self._named(token)
        if token in "+-":
            value = self._factor()
            return Amount(-value.constant, -value.slope) if token == "-" else value
        if token == "(":
            value = self._sum()
            if self._next() != ")":
                raise self._error("has an opening parenthesis without a closing one")
            self.position += 1
            return value
        raise self._error(f"has {token!r} where a number should stand")

    def _named(self, name: str) -> Amount:
        if name in self.known:
            return self.known[name]
        near = get_close_matches(name, self.known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known names: {', '.join(sorted(self.known))}"
        raise self._error(f"uses the unknown name {name!r}", hint)
