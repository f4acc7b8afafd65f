"""Base parameters as text: plain, in Unicode mathematics, and in LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sympy

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


def grouped(terms: Terms) -> list[tuple[sympy.Expr, list[str]]]:
    """Terms with the same coefficient together, in order of first appearance."""
    out: dict[sympy.Expr, list[str]] = {}
    for name, coefficient in terms.items():
        out.setdefault(coefficient, []).append(name)
    return list(out.items())


def joined(terms: Terms, name: Callable[[str], str], number: Callable[[sympy.Expr], str], times: str) -> str:
    """A sum written with the given ways to write names and coefficients."""
    text = ""
    for coefficient, names in grouped({name: decimal(value) for name, value in terms.items()}):
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


def decimal(x: sympy.Expr) -> sympy.Expr:
    """Fractions whose decimals are long as decimals of seven digits; short ones stay as they are."""
    return x.xreplace({r: short_number(r) for r in x.atoms(sympy.Rational) if r.q > 12})


def short_number(r: sympy.Rational) -> sympy.Expr:
    """Seven digits, or the integer they come to."""
    value = float(f"{float(r):.7g}")
    return sympy.Integer(round(value)) if value == round(value) else sympy.Float(value, 7)


def text_of(x: sympy.Expr) -> str:
    """An expression in SymPy's own syntax, decimals without trailing zeros."""
    return str(sympy.sstr(decimal(x), full_prec=False))


def plain(terms: Terms) -> str:
    """`link2.my + d3*link3.mass + (d3 + d4)*(link4.mass + link5.mass)`."""
    return joined(terms, str, lambda c: text_of(c).replace("**", "^"), "*")


def unicode(terms: Terms) -> str:
    """`my₂ + d₃ m₃ + (d₃ + d₄) (m₄ + m₅)`."""

    def number(c: sympy.Expr) -> str:
        text = text_of(c).replace("*", "\0")
        text = "".join(unicode_symbol(part) if part.isidentifier() else part for part in _split(text))
        for digit, raised in _SUPERSCRIPTS.items():
            text = text.replace(f"\0\0{digit}", raised)
        return text.replace("\0\0", "^").replace("\0", " ")

    return joined(terms, unicode_name, number, " ")


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


def unicode_symbol(name: str) -> str:
    """`d3` as `d₃`."""
    stem = name.rstrip("0123456789")
    return stem + name[len(stem) :].translate(_SUBSCRIPTS)


def unicode_name(parameter: str) -> str:
    """`link3.mx` as `mx₃`, `payload.mass` as `m_P`."""
    owner, _, quantity = parameter.partition(".")
    index = owner[len(owner.rstrip("0123456789")) :]
    short = _SHORT.get(quantity, quantity)
    return short + (index.translate(_SUBSCRIPTS) if index else "_" + owner[:1].upper())


def latex(terms: Terms) -> str:
    """The same for LaTeX."""
    return joined(terms, latex_name, lambda c: str(sympy.latex(decimal(c), full_prec=False)), r"\,")


def latex_name(parameter: str) -> str:
    """`link3.mx` as `mx_{3}`."""
    owner, _, quantity = parameter.partition(".")
    index = owner[len(owner.rstrip("0123456789")) :] or rf"\mathrm{{{owner}}}"
    short = _SHORT_LATEX.get(quantity)
    if short is None:
        short = rf"I_{{{quantity[1:]}}}" if quantity.startswith("I") else rf"\mathit{{{quantity}}}"
    return rf"{{{short}}}_{{{index}}}" if "_" not in short else rf"{{{short}}}_{{,{index}}}"
