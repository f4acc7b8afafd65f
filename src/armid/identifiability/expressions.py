"""Base parameters as text: plain, in Unicode mathematics, and in LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from armid.errors import MissingDependencyError
from armid.parameters.inertial import InertialIndex
from armid.parameters.space import OwnerKind, Parameter

try:
    import sympy
except ImportError:
    raise MissingDependencyError("sympy", "closed forms of parameters", "symbolic") from None

_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_SUPERSCRIPTS = {"2": "²", "3": "³", "4": "⁴"}
_SHORT = {
    "mass": "m",
    "rotor_inertia": "Ia",
    "viscous": "Fv",
    "coulomb": "Fc",
    "offset": "Fo",
    "motor_viscous": "Fvᵐ",
    "motor_coulomb": "Fcᵐ",
    "motor_offset": "Foᵐ",
    "viscous_asymmetry": "Fa",
    "stribeck": "Fs",
    "coulomb_load": "μ",
    "coupled_viscous": "Fvᶜ",
    "coupled_coulomb": "Fcᶜ",
}
_SHORT_LATEX = {
    "mass": "m",
    "rotor_inertia": "I_a",
    "viscous": "F_v",
    "coulomb": "F_c",
    "offset": "F_o",
    "motor_viscous": "F_v^m",
    "motor_coulomb": "F_c^m",
    "motor_offset": "F_o^m",
    "viscous_asymmetry": "F_a",
    "stribeck": "F_s",
    "coulomb_load": "\\mu",
    "coupled_viscous": "F_v^c",
    "coupled_coulomb": "F_c^c",
}

Terms = Mapping[str, sympy.Expr]


def _grouped(terms: Terms) -> list[tuple[sympy.Expr, list[str]]]:
    """Terms with the same coefficient together, in order of first appearance."""
    out: dict[sympy.Expr, list[str]] = {}
    for name, coefficient in terms.items():
        out.setdefault(coefficient, []).append(name)
    return list(out.items())


def _joined(terms: Terms, name: Callable[[str], str], number: Callable[[sympy.Expr], str], times: str) -> str:
    """A sum written with the given ways to write names and coefficients."""
    text = ""
    for coefficient, names in _grouped({name: _decimal(value) for name, value in terms.items()}):
        negative = coefficient.could_extract_minus_sign()
        factor = -coefficient if negative else coefficient
        body = " + ".join(name(n) for n in names)
        if factor != 1:
            scale = number(factor)
            scale = f"({scale})" if factor.is_Add else scale
            body = f"{scale}{times}({body})" if len(names) > 1 else f"{scale}{times}{body}"
        elif negative and len(names) > 1:
            body = f"({body})"
        text += f" - {body}" if negative and text else f"-{body}" if negative else f" + {body}" if text else body
    return text


def _decimal(x: sympy.Expr) -> sympy.Expr:
    """Fractions whose decimals are long as decimals of seven digits; short ones stay as they are."""
    return x.xreplace({r: _short_number(r) for r in x.atoms(sympy.Rational) if r.q > 12})


def _short_number(r: sympy.Rational) -> sympy.Expr:
    """Seven digits, or the integer they come to."""
    value = float(f"{float(r):.7g}")
    return sympy.Integer(round(value)) if value == round(value) else sympy.Float(value, 7)


def _text_of(x: sympy.Expr) -> str:
    """An expression in SymPy's own syntax, decimals without trailing zeros."""
    return str(sympy.sstr(_decimal(x), full_prec=False))


def plain(terms: Terms) -> str:
    """`link2.my + d3*link3.mass + (d3 + d4)*(link4.mass + link5.mass)`."""
    return _joined(terms, str, lambda c: _text_of(c).replace("**", "^"), "*")


@dataclass(frozen=True)
class Notation:
    """How the parameters of an arm are written in mathematics.

    Args:
        parameters: standard parameters by name; any other name is written as it is.
    """

    parameters: Mapping[str, Parameter]

    @classmethod
    def of(cls, parameters: Iterable[Parameter]) -> Notation:
        """For the standard parameters of an arm."""
        return cls({parameter.name: parameter for parameter in parameters})

    def unicode(self, terms: Terms) -> str:
        """`my₂ + d₃ m₃ + (d₃ + d₄) (m₄ + m₅)`."""
        return _joined(terms, self.unicode_name, _unicode_number, " ")

    def latex(self, terms: Terms) -> str:
        """The same for LaTeX."""
        return _joined(terms, self.latex_name, lambda c: str(sympy.latex(_decimal(c), full_prec=False)), r"\,")

    def unicode_name(self, name: str) -> str:
        """`link3.mx` as `mx₃`, `payload.mass` as `m_P`."""
        p = self.parameters.get(name)
        if p is None:
            return name
        index = "_P" if p.kind is OwnerKind.PAYLOAD else str(p.body + 1).translate(_SUBSCRIPTS)
        return _SHORT.get(p.quantity, p.quantity) + index

    def latex_name(self, name: str) -> str:
        """`link3.mx` as `mx_{3}`."""
        p = self.parameters.get(name)
        if p is None:
            return rf"\mathit{{{name}}}"
        index = rf"\mathrm{{{p.owner}}}" if p.kind is OwnerKind.PAYLOAD else str(p.body + 1)
        if p.quantity in _SHORT_LATEX:
            short = _SHORT_LATEX[p.quantity]
        elif p.component is not None and p.component >= InertialIndex.IXX:
            short = rf"I_{{{p.quantity[1:]}}}"
        else:
            short = rf"\mathit{{{p.quantity}}}"
        return rf"{{{short}}}_{{{index}}}" if "_" not in short else rf"{{{short}}}_{{,{index}}}"


def _unicode_number(c: sympy.Expr) -> str:
    text = _text_of(c).replace("*", "\0")
    text = "".join(_unicode_symbol(part) if part.isidentifier() else part for part in _split(text))
    for digit, raised in _SUPERSCRIPTS.items():
        text = text.replace(f"\0\0{digit}", raised)
    return text.replace("\0\0", "^").replace("\0", " ")


def _split(text: str) -> list[str]:
    """Identifiers and what stands between them."""
    parts: list[str] = []
    for char in text:
        word = char.isalnum() or char == "_"
        if parts and (parts[-1][-1].isalnum() or parts[-1][-1] == "_") == word:
            parts[-1] += char
        else:
            parts.append(char)
    return parts


def _unicode_symbol(name: str) -> str:
    """`d3` as `d₃`."""
    stem = name.rstrip("0123456789")
    return stem + name[len(stem) :].translate(_SUBSCRIPTS)
