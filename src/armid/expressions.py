"""Closed forms as plain values and back: a tree of the few operations they are made of; nothing is evaluated from text."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sympy

_OPERATIONS = ("Add", "Mul", "Pow", "sin", "cos", "tan", "Abs")


def is_expression(value: object) -> bool:
    """Whether a value is a closed form; without loading the library that makes them."""
    library = sys.modules.get("sympy")
    return library is not None and isinstance(value, library.Basic)


def plain_expression(value: sympy.Basic) -> Any:
    """Numbers, names of symbols with what is assumed of them, and operations with their arguments."""
    import sympy

    if isinstance(value, sympy.Symbol):
        assumed = {key: bool(said) for key, said in value._assumptions_orig.items() if said is not None}
        return {"symbol": value.name, "assumed": assumed}
    if isinstance(value, sympy.Integer):
        return int(value)
    if isinstance(value, sympy.Rational):
        return {"over": [int(value.p), int(value.q)]}
    if isinstance(value, sympy.Float):
        return {"decimal": str(value), "digits": int(value._prec)}
    if value is sympy.pi:
        return "pi"
    name = type(value).__name__
    if name not in _OPERATIONS:
        raise TypeError(f"a closed form with {name} cannot be kept")
    return [name, *(plain_expression(part) for part in value.args)]


def expression_of(tree: Any) -> Any:
    """The closed form of such a tree.

    Raises:
        ValueError: something in it is no part of one.
    """
    import sympy

    match tree:
        case "pi":
            return sympy.pi
        case int():
            return sympy.Integer(tree)
        case {"symbol": str(name), "assumed": dict(assumed)}:
            return sympy.Symbol(name, **assumed)
        case {"over": [int(p), int(q)]}:
            return sympy.Rational(p, q)
        case {"decimal": str(text), "digits": int(bits)}:
            return sympy.Float(text, precision=bits)
        case [str(name), *parts] if name in _OPERATIONS:
            return getattr(sympy, name)(*(expression_of(part) for part in parts), **_as_written(name))
    raise ValueError(f"{tree!r} is no part of a closed form")


def _as_written(name: str) -> dict[str, bool]:
    """Sums and products stay as they were kept, powers too: nothing is expanded or collected on the way back."""
    return {"evaluate": False} if name in ("Add", "Mul", "Pow") else {}
