"""A tape's operations as straight-line vector instructions, sine and cosine included."""

from __future__ import annotations

from collections.abc import Sequence

from armid.kernels.lanes import STRIDE, Lanes
from armid.recursion.tape import Op, Operation

# Range reduction to [-pi/4, pi/4] in three parts with fused multiply-add, and the minimax polynomials in common use
# since fdlibm. Adding this number leaves the nearest integer in the low bits of the mantissa.
_ROUND = 6755399441055744.0  # 1.5 * 2**52
_TWO_OVER_PI = 0.6366197723675814
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
_SIN = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
_COS = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)


class Arithmetic:
    """The straight line of vector instructions that a tape becomes, one operation after the other.

    Args:
        lanes: width of the vectors.

    Attributes:
        lines: instructions so far.
        names: by operation, the value it left.
    """

    def __init__(self, lanes: Lanes) -> None:
        self.e = lanes
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.angles: dict[int, tuple[str, str]] = {}

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def operation(self, index: int, operation: Operation) -> None:
        """One operation of the tape; `contract` lets the compiler fuse a product into the sum that uses it."""
        v, x = self.e.vector, f"%x{index}"
        self.names[index] = x
        match operation.op:
            case Op.CONSTANT:
                self.names[index] = self.e.splat(operation.value)
            case Op.INPUT:
                self.line(f"%c{index} = getelementptr ptr, ptr %inputs, i64 {operation.a}")
                self.line(f"%p{index} = load ptr, ptr %c{index}")
                self.line(f"%a{index} = getelementptr double, ptr %p{index}, i64 %sample")
                self.line(f"{x} = load {v}, ptr %a{index}, align 8")
            case Op.UNIFORM:
                self.line(f"%a{index} = getelementptr double, ptr %uniform, i64 {operation.a}")
                self.line(f"%u{index} = load double, ptr %a{index}")
                self.line(f"%i{index} = insertelement {v} poison, double %u{index}, i32 0")
                self.line(f"{x} = shufflevector {v} %i{index}, {v} poison, <{self.e.lanes} x i32> zeroinitializer")
            case Op.ADD | Op.SUB | Op.MUL:
                name = {Op.ADD: "fadd", Op.SUB: "fsub", Op.MUL: "fmul"}[operation.op]
                self.line(f"{x} = {name} contract {v} {self.names[operation.a]}, {self.names[operation.b]}")
            case Op.NEG:
                self.line(f"{x} = fneg {v} {self.names[operation.a]}")
            case Op.SIN:
                self.names[index] = self.sine_cosine(operation.a)[0]
            case Op.COS:
                self.names[index] = self.sine_cosine(operation.a)[1]
            case Op.SIGN:
                self.sign(index, self.names[operation.a])

    def sign(self, index: int, a: str) -> None:
        """(a > 0) - (a < 0)."""
        v, n = self.e.vector, self.e.lanes
        self.line(f"%g{index} = fcmp ogt {v} {a}, zeroinitializer")
        self.line(f"%l{index} = fcmp olt {v} {a}, zeroinitializer")
        self.line(f"%gd{index} = uitofp <{n} x i1> %g{index} to {v}")
        self.line(f"%ld{index} = uitofp <{n} x i1> %l{index} to {v}")
        self.line(f"%x{index} = fsub {v} %gd{index}, %ld{index}")

    def store(self, index: int, slot: int) -> None:
        """One output to its place in the block."""
        self.line(f"%so{index}_{slot} = add i64 %lane, {slot * STRIDE}")
        self.line(f"%sp{index}_{slot} = getelementptr double, ptr %scratch, i64 %so{index}_{slot}")
        self.line(f"store {self.e.vector} {self.names[index]}, ptr %sp{index}_{slot}, align 8")

    def sine_cosine(self, argument: int) -> tuple[str, str]:
        """Both functions of one angle, computed once."""
        if argument not in self.angles:
            self.angles[argument] = self._sine_cosine(argument)
        return self.angles[argument]

    def _sine_cosine(self, argument: int) -> tuple[str, str]:
        e, v, k = self.e, self.e.vector, argument
        x = self.names[argument]
        n, i = e.lanes, e.integers

        def fma(name: str, a: str, b: str, c: str) -> str:
            self.line(f"%{name}{k} = call {v} {e.fma}({v} {a}, {v} {b}, {v} {c})")
            return f"%{name}{k}"

        def polynomial(name: str, z: str, coefficients: Sequence[float]) -> str:
            value = e.splat(coefficients[-1])
            for degree, c in reversed(list(enumerate(coefficients[:-1]))):
                value = fma(f"{name}{degree}_", value, z, e.splat(c))
            return value

        turns = fma("tq", x, e.splat(_TWO_OVER_PI), e.splat(_ROUND))
        self.line(f"%tb{k} = bitcast {v} {turns} to {i}")
        self.line(f"%tk{k} = fsub {v} {turns}, {e.splat(_ROUND)}")
        self.line(f"%tn{k} = fneg {v} %tk{k}")
        r = x
        for step, part in enumerate(_HALF_PI):
            r = fma(f"tr{step}_", f"%tn{k}", e.splat(part), r)
        self.line(f"%tz{k} = fmul {v} {r}, {r}")
        self.line(f"%tc{k} = fmul {v} {r}, %tz{k}")
        sine = fma("ts", f"%tc{k}", polynomial("tsp", f"%tz{k}", _SIN), r)
        self.line(f"%tw{k} = fmul {v} %tz{k}, %tz{k}")
        half = fma("th", f"%tz{k}", e.splat(-0.5), e.splat(1.0))
        cosine = fma("tco", f"%tw{k}", polynomial("tcp", f"%tz{k}", _COS), half)
        # Quadrant: odd ones exchange sine and cosine, the second bit flips signs.
        self.line(f"%todd{k} = trunc {i} %tb{k} to <{n} x i1>")
        self.line(f"%tsa{k} = select <{n} x i1> %todd{k}, {v} {cosine}, {v} {sine}")
        self.line(f"%tca{k} = select <{n} x i1> %todd{k}, {v} {sine}, {v} {cosine}")
        self.line(f"%tcb{k} = add {i} %tb{k}, {e.splat_integer(1)}")
        results = []
        for name, bits, value in (("s", f"%tb{k}", f"%tsa{k}"), ("c", f"%tcb{k}", f"%tca{k}")):
            self.line(f"%t{name}m{k} = and {i} {bits}, {e.splat_integer(2)}")
            self.line(f"%t{name}f{k} = shl {i} %t{name}m{k}, {e.splat_integer(62)}")
            self.line(f"%t{name}v{k} = bitcast {v} {value} to {i}")
            self.line(f"%t{name}x{k} = xor {i} %t{name}v{k}, %t{name}f{k}")
            self.line(f"%t{name}r{k} = bitcast {i} %t{name}x{k} to {v}")
            results.append(f"%t{name}r{k}")
        return results[0], results[1]
