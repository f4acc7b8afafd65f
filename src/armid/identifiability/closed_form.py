"""Any source of rows in closed form: what it measures as base functions of the inputs times base parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, samples
from armid.errors import MissingDependencyError, ShapeError, UnknownNameError
from armid.identifiability.errors import UnsupportedClosedFormError
from armid.recursion.scalars import GRAVITY
from armid.recursion.symbols import length_symbols, with_exact_angles
from armid.recursion.trigonometry import TrigonometricScalars
from armid.robot.robot import Robot
from armid.rows.quantity import ArmSource

try:
    import sympy
    from sympy import QQ
    from sympy.printing.numpy import NumPyPrinter
except ImportError:
    raise MissingDependencyError("sympy", "closed forms of parameters", "symbolic") from None

Polynomial = Any
"""An element of the ring of `TrigonometricScalars`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ClosedForm:
    """`y_channel = sum over parameters of function(inputs) * parameter`, exactly.

    Args:
        name: of the quantity.
        channels: what is measured, one expression each.
        inputs: names of the arguments (`q1`, `qd1`, ...).
        parameters: names of the base parameters.
        entries: per channel, index of the base parameter -> polynomial.
        scalars: the ring of the polynomials.
    """

    name: str
    channels: tuple[str, ...]
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    entries: tuple[dict[int, Polynomial], ...]
    scalars: TrigonometricScalars

    def kept_fields(self) -> dict[str, Any]:
        """The form as plain values: coefficients by exponents, and what the ring is made of; see `of_kept`."""
        entries = tuple(
            {j: {tuple(m): (int(c.numerator), int(c.denominator)) for m, c in p.terms()} for j, p in row.items()}
            for row in self.entries
        )
        names = {"name": self.name, "channels": self.channels, "inputs": self.inputs, "parameters": self.parameters}
        return {**names, "entries": entries, "robot": self.scalars.robot, "rates": self.scalars.rates}

    @classmethod
    def of_kept(cls, *, entries: Any, robot: Robot, rates: tuple[str, ...], **names: Any) -> ClosedForm:
        """The form again from `kept_fields`."""
        scalars = TrigonometricScalars(robot, rates)
        rows = tuple(
            {j: scalars.ring({m: QQ(*c) for m, c in terms.items()}) for j, terms in row.items()} for row in entries
        )
        return cls(entries=rows, scalars=scalars, **names)

    def channel(self, name: str) -> int:
        if name not in self.channels:
            raise UnknownNameError("channel", name, self.channels)
        return self.channels.index(name)

    @property
    def symbols(self) -> tuple[sympy.Symbol, ...]:
        """One symbol per base parameter: `link2.my` is `link2_my`."""
        return tuple(sympy.Symbol(name.replace(".", "_"), real=True) for name in self.parameters)

    def expression(self, channel: int | str) -> sympy.Expr:
        """One channel as a SymPy expression, collected by base parameter."""
        row = self.entries[self.channel(channel) if isinstance(channel, str) else channel]
        shortest = {j: self.scalars.factored(self.scalars.shortened(p)) for j, p in row.items()}
        return sympy.Add(*(f * self.symbols[j] for j, f in shortest.items()))

    def expressions(self) -> tuple[sympy.Expr, ...]:
        return tuple(self.expression(k) for k in range(len(self.channels)))

    def latex(self) -> str:
        """An `align*` environment with one line per channel."""
        lines = [
            rf"  \mathrm{{{_latex_text(name)}}} &= {sympy.latex(expression)} \\"
            for name, expression in zip(self.channels, self.expressions(), strict=True)
        ]
        return "\n".join([r"\begin{align*}", *lines, r"\end{align*}"])

    def numpy_source(self) -> str:
        """A Python module with one function of the inputs [n_samples, n_inputs] and the base parameters."""
        return _numpy_module(self)

    def evaluate(self, inputs: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
        """Values of all channels, shape [n_samples, n_channels].

        Args:
            inputs: shape [n_samples, len(self.inputs)].
            b: base parameters, shape [len(self.parameters)].
        """
        values = np.asarray(b, dtype=np.float64)
        if values.shape != (len(self.parameters),):
            raise ShapeError("b", values.shape, f"[{len(self.parameters)}]")
        return self.functions(inputs) @ values

    def functions(self, inputs: npt.ArrayLike) -> FloatArray:
        """All base functions, shape [n_samples, n_channels, n_parameters]; zero where a parameter does not enter."""
        x = samples("inputs", inputs, len(self.inputs))
        generators = numeric_generators(self.scalars, dict(zip(self.inputs, x.T, strict=True)))
        out = np.zeros((len(x), len(self.channels), len(self.parameters)))
        for k, row in enumerate(self.entries):
            for j, p in row.items():
                out[:, k, j] = polynomial_values(p, generators, len(x))
        return out


def closed_form(source: ArmSource, parameters: Sequence[str], *, name: str = "") -> ClosedForm:
    """The rows of a source in closed form over given leading parameters.

    Args:
        source: what is measured.
        parameters: names of the base parameters (`BaseParameters.names`); every other column is left out, which changes
            nothing because the base parameters have absorbed it.
        name: of the quantity.

    Raises:
        UnsupportedClosedFormError: with drives that move several joints.
    """
    robot = source.robot
    if robot.coupling is not None:
        raise UnsupportedClosedFormError(f"{robot.name}: drives that move several joints have no closed form here")
    exact: Any = replace(source, robot=with_exact_angles(robot))  # type: ignore[type-var]
    scalars = TrigonometricScalars(exact.robot, exact.inputs)
    place = {parameter: j for j, parameter in enumerate(parameters)}
    columns = exact.columns
    entries = []
    for row in exact.rows(scalars.inputs(exact.inputs), scalars):
        wanted = {place[columns[c]]: scalars.reduced(p) for c, p in row.items() if columns[c] in place}
        entries.append({j: wanted[j] for j in sorted(wanted) if wanted[j]})
    return ClosedForm(
        name=name,
        channels=tuple(exact.channels),
        inputs=tuple(exact.inputs),
        parameters=tuple(parameters),
        entries=tuple(entries),
        scalars=scalars,
    )


def coriolis_form(inertia: ClosedForm, entries: Mapping[tuple[int, int], int]) -> ClosedForm:
    """C(q, qd) from M(q) by Christoffel symbols: C_ij = 1/2 sum_k (d_k M_ij + d_j M_ik - d_i M_jk) qd_k.

    Args:
        inertia: closed form of the inertia matrix.
        entries: (row, column) with row <= column -> channel of it.
    """
    n = inertia.scalars.robot.n_joints
    rates = tuple(f"qd{k + 1}" for k in range(n))
    scalars = TrigonometricScalars(inertia.scalars.robot, rates)

    def derivative(i: int, j: int, k: int) -> dict[int, Polynomial]:
        row = inertia.entries[entries[min(i, j), max(i, j)]]
        return {b: d for b, p in row.items() if (d := scalars.derivative(p.set_ring(scalars.ring), k))}

    dM = {(i, j, k): derivative(i, j, k) for i in range(n) for j in range(i, n) for k in range(n)}
    half = scalars.ring.one / 2
    rows = []
    for i in range(n):
        for j in range(n):
            total: dict[int, Polynomial] = {}
            for k in range(n):
                qd = half * scalars.generator(rates[k])
                for key, sign in (((i, j, k), 1), ((i, k, j), 1), ((j, k, i), -1)):
                    a, b = sorted(key[:2])
                    for index, p in dM[a, b, key[2]].items():
                        total[index] = total.get(index, scalars.ring.zero) + sign * qd * p
            rows.append({index: total[index] for index in sorted(total) if total[index]})
    channels = tuple(f"C_{i + 1}_{j + 1}" for i in range(n) for j in range(n))
    inputs = (*(f"q{k + 1}" for k in range(n)), *rates)
    return ClosedForm(
        name="coriolis",
        channels=channels,
        inputs=inputs,
        parameters=inertia.parameters,
        entries=tuple(rows),
        scalars=scalars,
    )


def numeric_generators(scalars: TrigonometricScalars, inputs: Mapping[str, FloatArray]) -> list[Any]:
    """Each generator of the ring as numbers."""
    lengths = lengths_of(scalars.robot)
    out: list[Any] = []
    for g in scalars.ring.gens:
        name = str(g)
        if name == GRAVITY:
            out.append(float(np.linalg.norm(scalars.robot.gravity)))
        elif name.startswith("length_"):
            out.append(lengths[name.removeprefix("length_")])
        elif name in inputs:
            out.append(inputs[name])
        else:
            q = inputs[f"q{name[1:]}"]
            out.append(np.cos(q) if name[0] == "c" else np.sin(q))
    return out


def polynomial_values(p: Polynomial, generators: Sequence[Any], count: int) -> FloatArray:
    """A polynomial at many points, shape [count]."""
    total = np.zeros(count)
    for monomial, coefficient in p.terms():
        term: Any = float(coefficient)
        for power, value in zip(monomial, generators, strict=True):
            if power:
                term = term * (value if power == 1 else value**power)
        total += term
    return total


def _latex_text(name: str) -> str:
    return name.replace("_", r"\_")


def _numpy_module(form: ClosedForm) -> str:
    """Source of a module whose `evaluate(x, b)` gives all channels; common parts are computed once."""
    printer = NumPyPrinter({"fully_qualified_modules": False})
    constants = _named_constants(form)
    own = {sympy.Symbol(name): sympy.Symbol(argument) for name, (argument, _) in constants.items()}
    parts, results = sympy.cse(
        [expression.xreplace(own) for expression in form.expressions()], symbols=sympy.numbered_symbols("_t")
    )
    arguments = ", ".join(["x", "b", *(f"{argument}={value!r}" for argument, value in constants.values())])
    lines = [
        f'"""{form.name or "quantity"} of {form.scalars.robot.name} in closed form, written by armid.',
        "",
        f"channels: {', '.join(form.channels)}",
        f"base parameters: {', '.join(form.parameters)}",
        '"""',
        "",
        "import numpy as np",
        "from numpy import cos, sin",
        "",
        "",
        f"def evaluate({arguments}):",
        f'    """x: [n_samples, {len(form.inputs)}] ({", ".join(form.inputs)}); b: [{len(form.parameters)}]."""',
        f"    ({', '.join(form.inputs)},) = np.asarray(x, dtype=float).T",
        f"    ({', '.join(str(s) for s in form.symbols)},) = b",
    ]
    lines += [f"    {symbol} = {printer.doprint(value)}" for symbol, value in parts]
    lines += [
        f"    y = np.zeros((len({form.inputs[0]}), {len(form.channels)}))",
        *(f"    y[:, {k}] = {printer.doprint(value)}" for k, value in enumerate(results)),
        "    return y",
    ]
    return "\n".join(lines) + "\n"


def _named_constants(form: ClosedForm) -> dict[str, tuple[str, float]]:
    """Name in expressions -> name as an argument of generated code, and value, of gravity and of every length."""
    robot = form.scalars.robot
    taken = {"x", "b", "y", "np", "cos", "sin", *form.inputs, *(str(s) for s in form.symbols)}
    values = {"g": float(np.linalg.norm(robot.gravity))} | lengths_of(robot)
    return {name: (f"{name}_" if name in taken else name, value) for name, value in values.items()}


def lengths_of(robot: Robot) -> dict[str, float]:
    """Values of the named link lengths [m]."""
    return {
        name: next(e.value for joint in robot.joints for e in joint.transforms if e.symbol == name)
        for name in length_symbols(robot)
    }
