"""From a tape to LLVM IR: one straight line of vector arithmetic per block of samples, and what follows it.

A kernel works on blocks of `BLOCK` samples that stay in cache:

1. *evaluate*: for every vector of lanes in the block, run the tape and put output k at `scratch[k * STRIDE + lane]`.
2. *finish*: copy the columns out (`store`), add their sums (`total`), or add the Gram matrix of each group of columns (`gram`).

Entry point of every kernel:

    void kernel(double** inputs, double* uniform, double* scratch, double** out, i64 blocks, i64 last)

`inputs[k]` is the contiguous column of input k; `last` is the number of valid samples in the last block (the inputs
are readable up to the full block). Written as text because text is what LLVM reads anyway.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from armid.arrays import FloatArray
from armid.kernels.tape import Node, Op, Operation, Tape

BLOCK = 64
"""Samples per block: large enough that adding up a Gram tile is cheap beside filling it, small enough that the columns of a
7-joint arm stay near the core. Measured: 32, 64, 96, 128 give 0.056, 0.047, 0.069, 0.066 us per sample of 43 base columns."""

STRIDE = BLOCK + 8
"""Doubles from one column of scratch to the next. One cache line more than the block: a power of two would put the
same lanes of all columns into the same few sets of the first-level cache."""

TILE = 4
"""Columns per side of a Gram tile: 16 accumulators and 8 operands fit the 32 registers of AVX-512, nearly the 16 of AVX2."""


MOST_LANES = 8
"""Doubles in the widest vector in use."""


class Finish(StrEnum):
    """What happens to the columns of a block once they are computed."""

    STORE = "store"
    TOTAL = "total"
    GRAM = "gram"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to compile.

    Args:
        tape: the recorded arithmetic.
        groups: output columns; one group per channel for `GRAM`, otherwise usually one.
        finish: what to do with them.
    """

    tape: Tape
    groups: tuple[tuple[Node, ...], ...]
    finish: Finish

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns of each group in scratch, padded with zero columns to what the finish takes at a time."""
        unit = {Finish.STORE: 1, Finish.TOTAL: MOST_LANES, Finish.GRAM: TILE}[self.finish]
        return tuple(-(-len(group) // unit) * unit for group in self.groups)

    @property
    def slots(self) -> int:
        return sum(self.widths)


def module_text(plan: Plan, lanes: int) -> str:
    """The LLVM module of a plan, for vectors of `lanes` doubles."""
    emitter = _Emitter(lanes)
    finish = {Finish.STORE: emitter.store, Finish.TOTAL: emitter.total, Finish.GRAM: emitter.gram}[plan.finish]
    return "\n".join(
        [
            emitter.evaluate(plan),
            finish(),
            emitter.entry(plan),
            emitter.attributes(),
        ]
    )


def literal(value: float) -> str:
    """A double as LLVM's exact hexadecimal literal."""
    return "0x" + struct.pack(">d", value).hex().upper()


# Range reduction to [-pi/4, pi/4] in three parts with fused multiply-add, and the minimax polynomials in common use
# since fdlibm. Adding this number leaves the nearest integer in the low bits of the mantissa.
_ROUND = 6755399441055744.0  # 1.5 * 2**52
_TWO_OVER_PI = 0.6366197723675814
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
_SIN = (
    -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
    2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
)  # fmt: skip
_COS = (
    4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
    -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
)  # fmt: skip


class _Emitter:
    """Writes functions for one vector width."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.vector = f"<{lanes} x double>"
        self.integers = f"<{lanes} x i64>"

    def splat(self, value: float) -> str:
        return f"<{', '.join([f'double {literal(value)}'] * self.lanes)}>"

    def splat_integer(self, value: int) -> str:
        return f"<{', '.join([f'i64 {value}'] * self.lanes)}>"

    def attributes(self) -> str:
        bits = 64 * self.lanes
        v, name = self.vector, f"v{self.lanes}f64"
        return "\n".join(
            [
                f"declare {v} @llvm.fma.{name}({v}, {v}, {v})",
                "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
                "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
                # Without this some CPUs' tuning splits 512-bit vectors in two.
                f'attributes #0 = {{ nounwind "min-legal-vector-width"="{bits}" "prefer-vector-width"="{bits}" }}',
            ]
        )

    def evaluate(self, plan: Plan) -> str:
        """One block: the tape over all its vectors, outputs to scratch."""
        body = _Body(self)
        places = self._places(plan)
        wanted = [node for group in plan.groups for node in group]
        for index in plan.tape.needed(wanted):
            body.operation(index, plan.tape.operations[index])
            for slot in places.pop(index, ()):
                body.store(index, slot)
        lines = "\n".join(body.lines)
        return f"""
define internal void @evaluate(ptr noalias %inputs, ptr noalias %uniform, ptr noalias %scratch, i64 %start) #0 {{
entry:
  br label %loop
loop:
  %lane = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sample = add i64 %start, %lane
{lines}
  %next = add i64 %lane, {self.lanes}
  %more = icmp slt i64 %next, {BLOCK}
  br i1 %more, label %loop, label %done
done:
  ret void
}}"""

    def _places(self, plan: Plan) -> dict[int, list[int]]:
        """Scratch slots each operation's value goes to."""
        places: dict[int, list[int]] = {}
        start = 0
        for group, width in zip(plan.groups, plan.widths, strict=True):
            for k, node in enumerate(group):
                places.setdefault(node.index, []).append(start + k)
            start += width
        return places

    def entry(self, plan: Plan) -> str:
        """The exported function: blocks, a possibly shorter last one, and the finish of each group."""
        calls, start = [], 0
        for k, width in enumerate(plan.widths):
            calls.append(
                f"  %from{k} = getelementptr double, ptr %scratch, i64 {start * STRIDE}\n"
                f"  call void @finish(ptr %from{k}, i64 {width}, ptr %out, i64 {start}, i64 {k}, i64 %first, i64 %valid)"
            )
            start += width
        finish = "\n".join(calls)
        return f"""
define void @kernel(ptr %inputs, ptr %uniform, ptr %scratch, ptr %out, i64 %blocks, i64 %last) #0 {{
entry:
  %empty = icmp sle i64 %blocks, 0
  br i1 %empty, label %done, label %loop
loop:
  %block = phi i64 [ 0, %entry ], [ %next, %finish ]
  %first = mul i64 %block, {BLOCK}
  call void @evaluate(ptr %inputs, ptr %uniform, ptr %scratch, i64 %first)
  %next = add i64 %block, 1
  %more = icmp slt i64 %next, %blocks
  %valid = select i1 %more, i64 {BLOCK}, i64 %last
  %short = icmp slt i64 %valid, {BLOCK}
  br i1 %short, label %clear, label %finish
clear:
  %slot = phi i64 [ 0, %loop ], [ %slot1, %clear ]
  %base = mul i64 %slot, {STRIDE}
  %from = add i64 %base, %valid
  %rest = sub i64 {BLOCK}, %valid
  %bytes = mul i64 %rest, 8
  %where = getelementptr double, ptr %scratch, i64 %from
  call void @llvm.memset.p0.i64(ptr %where, i8 0, i64 %bytes, i1 false)
  %slot1 = add i64 %slot, 1
  %again = icmp slt i64 %slot1, {plan.slots}
  br i1 %again, label %clear, label %finish
finish:
{finish}
  br i1 %more, label %loop, label %done
done:
  ret void
}}"""

    FINISH = (
        "define internal void @finish(ptr noalias %from, i64 %width, ptr %out, i64 %slot, i64 %group,"
        " i64 %first, i64 %valid) #0 {"
    )

    def store(self) -> str:
        """out[slot] is the column of that slot."""
        return f"""
{self.FINISH}
entry:
  %bytes = mul i64 %valid, 8
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %offset = mul i64 %k, {STRIDE}
  %source = getelementptr double, ptr %from, i64 %offset
  %number = add i64 %slot, %k
  %place = getelementptr ptr, ptr %out, i64 %number
  %column = load ptr, ptr %place
  %target = getelementptr double, ptr %column, i64 %first
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 false)
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %width
  br i1 %more, label %loop, label %done
done:
  ret void
}}"""

    def sums(self, names: Sequence[str], prefix: str) -> tuple[list[str], str]:
        """IR that turns as many vectors as there are lanes into one vector of their sums.

        Neighbours are added pairwise, twice as many per vector each time: fewer operations than one horizontal sum each.
        """
        v, n = self.vector, self.lanes
        lines: list[str] = []
        current, level = list(names), 0
        even = ", ".join(f"i32 {2 * k}" for k in range(n))
        odd = ", ".join(f"i32 {2 * k + 1}" for k in range(n))
        while len(current) > 1:
            merged = []
            for k in range(0, len(current), 2):
                x, y, name = current[k], current[k + 1], f"%{prefix}{level}_{k}"
                lines.append(f"  {name}e = shufflevector {v} {x}, {v} {y}, <{n} x i32> <{even}>")
                lines.append(f"  {name}o = shufflevector {v} {x}, {v} {y}, <{n} x i32> <{odd}>")
                lines.append(f"  {name} = fadd {v} {name}e, {name}o")
                merged.append(name)
            current, level = merged, level + 1
        return lines, current[0]

    def add_to_memory(self, names: Sequence[str], target: str) -> str:
        """IR that adds the sum of each of these vectors to consecutive doubles at `target`."""
        v, n = self.vector, self.lanes
        lines: list[str] = []
        for first in range(0, len(names), n):
            more, value = self.sums(names[first : first + n], f"r{first}_")
            lines += more
            lines.append(f"  %rp{first} = getelementptr double, ptr {target}, i64 {first}")
            lines.append(f"  %ro{first} = load {v}, ptr %rp{first}, align 8")
            lines.append(f"  %rn{first} = fadd {v} %ro{first}, {value}")
            lines.append(f"  store {v} %rn{first}, ptr %rp{first}, align 8")
        return "\n".join(lines)

    def loads(self, pointer: str, count: int) -> str:
        """IR that loads the current lanes of `count` columns behind a pointer, as %<pointer>0, %<pointer>1, ..."""
        return "\n".join(
            f"  %at{pointer}{i} = getelementptr double, ptr %{pointer}, i64 %lane{i}\n"
            f"  %{pointer}{i} = load {self.vector}, ptr %at{pointer}{i}, align 8"
            for i in range(count)
        )

    def lane_offsets(self, count: int) -> str:
        return "\n".join(f"  %lane{i} = add i64 %lane, {i * STRIDE}" for i in range(count))

    def total(self) -> str:
        """out[0][slot] += sum of the column, as many columns at a time as there are lanes."""
        v, n = self.vector, self.lanes
        phis = "\n".join(f"  %s{i} = phi {v} [ zeroinitializer, %column ], [ %t{i}, %loop ]" for i in range(n))
        additions = "\n".join(f"  %t{i} = fadd {v} %s{i}, %a{i}" for i in range(n))
        return f"""
{self.FINISH}
entry:
  %totals = load ptr, ptr %out
  %own = getelementptr double, ptr %totals, i64 %slot
  br label %column
column:
  %k = phi i64 [ 0, %entry ], [ %k1, %end ]
  %offset = mul i64 %k, {STRIDE}
  %a = getelementptr double, ptr %from, i64 %offset
  br label %loop
loop:
  %lane = phi i64 [ 0, %column ], [ %next, %loop ]
{phis}
{self.lane_offsets(n)}
{self.loads("a", n)}
{additions}
  %next = add i64 %lane, {n}
  %more = icmp slt i64 %next, {BLOCK}
  br i1 %more, label %loop, label %end
end:
  %target = getelementptr double, ptr %own, i64 %k
{self.add_to_memory([f"%t{i}" for i in range(n)], "%target")}
  %k1 = add i64 %k, {n}
  %again = icmp slt i64 %k1, %width
  br i1 %again, label %column, label %done
done:
  ret void
}}"""

    def gram(self) -> str:
        """out[group] += sums over the block of products of columns, tile after tile on and above the diagonal.

        The tile of columns i.. and j.. holds its TILE x TILE sums row by row; see `gram_matrix`.
        """
        v, name = self.vector, f"v{self.lanes}f64"
        pairs = [(i, j) for i in range(TILE) for j in range(TILE)]
        phis = "\n".join(f"  %s{i}{j} = phi {v} [ zeroinitializer, %tile ], [ %t{i}{j}, %loop ]" for i, j in pairs)
        products = "\n".join(
            f"  %t{i}{j} = call {v} @llvm.fma.{name}({v} %a{i}, {v} %b{j}, {v} %s{i}{j})" for i, j in pairs
        )
        return f"""
{self.FINISH}
entry:
  %place = getelementptr ptr, ptr %out, i64 %group
  %G = load ptr, ptr %place
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i1, %outerend ]
  %g0 = phi ptr [ %G, %entry ], [ %g2, %outerend ]
  %oi = mul i64 %i, {STRIDE}
  %a = getelementptr double, ptr %from, i64 %oi
  br label %tile
tile:
  %j = phi i64 [ %i, %outer ], [ %j1, %end ]
  %g1 = phi ptr [ %g0, %outer ], [ %g2, %end ]
  %oj = mul i64 %j, {STRIDE}
  %b = getelementptr double, ptr %from, i64 %oj
  br label %loop
loop:
  %lane = phi i64 [ 0, %tile ], [ %next, %loop ]
{phis}
{self.lane_offsets(TILE)}
{self.loads("a", TILE)}
{self.loads("b", TILE)}
{products}
  %next = add i64 %lane, {self.lanes}
  %more = icmp slt i64 %next, {BLOCK}
  br i1 %more, label %loop, label %end
end:
{self.add_to_memory([f"%t{i}{j}" for i, j in pairs], "%g1")}
  %g2 = getelementptr double, ptr %g1, i64 {TILE * TILE}
  %j1 = add i64 %j, {TILE}
  %againj = icmp slt i64 %j1, %width
  br i1 %againj, label %tile, label %outerend
outerend:
  %i1 = add i64 %i, {TILE}
  %againi = icmp slt i64 %i1, %width
  br i1 %againi, label %outer, label %done
done:
  ret void
}}"""


def gram_length(width: int) -> int:
    """Doubles that the tiles of a Gram matrix of this (padded) width take."""
    tiles = width // TILE
    return tiles * (tiles + 1) // 2 * TILE * TILE


def gram_matrix(tiles: FloatArray, width: int) -> FloatArray:
    """The symmetric matrix [width, width] from its tiles, in the order the code writes them."""
    G = np.zeros((width, width))
    corners = [(i, j) for i in range(0, width, TILE) for j in range(i, width, TILE)]
    for (i, j), tile in zip(corners, tiles.reshape(-1, TILE, TILE), strict=True):
        G[i : i + TILE, j : j + TILE] = tile
        G[j : j + TILE, i : i + TILE] = tile.T
    return G


class _Body:
    """The straight line inside the evaluation loop."""

    def __init__(self, emitter: _Emitter) -> None:
        self.e = emitter
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
            self.line(f"%{name}{k} = call {v} @llvm.fma.v{n}f64({v} {a}, {v} {b}, {v} {c})")
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
