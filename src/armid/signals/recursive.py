"""Recursions along time, eight columns at a time: a cascade of second-order filters, and a tridiagonal system.

Each sample needs the one before, so nothing can be done in parallel along time; columns can. Written as text for LLVM like the
kernels of the arm, compiled once per machine and kept on disk; `armid.kernels.machine` says how.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from armid.arrays import FloatArray
from armid.kernels.machine import Loaded, load

LANES = 8
"""Columns of a pack: two registers of AVX2, one of AVX-512, four of the smallest."""

_VECTOR = f"<{LANES} x double>"


def packed(values: FloatArray) -> FloatArray:
    """Columns [n, k] in packs of `LANES` side by side, shape [packs, n, LANES]; what is missing of the last pack is zero."""
    count, width = values.shape
    packs = -(-width // LANES)
    out = np.zeros((packs, count, LANES))
    for p in range(packs):
        own = values[:, p * LANES : (p + 1) * LANES]
        out[p, :, : own.shape[1]] = own
    return out


def unpacked(packs: FloatArray, width: int) -> FloatArray:
    """The columns of packs, shape [n, width], contiguous."""
    out = np.empty((width, packs.shape[1]))
    for p in range(packs.shape[0]):
        own = out[p * LANES : (p + 1) * LANES]
        own[:] = packs[p, :, : len(own)].T
    return out.T


def filter_packs(packs: FloatArray, sections: FloatArray, *, state: FloatArray, backward: bool = False) -> None:
    """Runs second-order sections over packs, in place; transposed direct form II.

    Args:
        packs: shape [packs, n, LANES], contiguous.
        sections: rows [b0 b1 b2 1 a1 a2], shape [n_sections, 6].
        state: before the first sample, shape [packs, n_sections, 2, LANES], contiguous; left as it is after the last.
        backward: from the last sample to the first.
    """
    count = packs.shape[1]
    coefficients = np.ascontiguousarray(sections[:, [0, 1, 2, 4, 5]])
    kernel = _cascade(len(sections))
    for pack, own in zip(packs, state, strict=True):
        start = pack.ctypes.data + (8 * LANES * (count - 1) if backward else 0)
        kernel.call(start, coefficients.ctypes.data, own.ctypes.data, None, count, -1 if backward else 1)


def solve_tridiagonal(bands: FloatArray, packs: FloatArray) -> None:
    """Solves `lower[i] x[i-1] + diagonal[i] x[i] + upper[i] x[i+1] = y[i]` for every column of packs, in place, without pivoting.

    Args:
        bands: lower, diagonal and upper of each row, shape [n, 3]; the first lower and the last upper are zero.
        packs: y, shape [packs, n, LANES], contiguous; x afterwards.
    """
    rows = np.ascontiguousarray(bands)
    for pack in packs:
        eliminated = np.empty(len(rows))
        _tridiagonal().call(pack.ctypes.data, rows.ctypes.data, eliminated.ctypes.data, None, len(rows), 0)


@cache
def _cascade(sections: int) -> Loaded:
    return load(_cascade_text(sections))


@cache
def _tridiagonal() -> Loaded:
    return load(_TRIDIAGONAL)


def _splat(name: str, scalar: str) -> str:
    return (
        f"  %{name}.one = insertelement {_VECTOR} undef, double {scalar}, i32 0\n"
        f"  %{name} = shufflevector {_VECTOR} %{name}.one, {_VECTOR} undef, <{LANES} x i32> zeroinitializer"
    )


def _fma(name: str, a: str, b: str, c: str) -> str:
    v = _VECTOR
    return f"  %{name} = call {v} @llvm.fma.v{LANES}f64({v} {a}, {v} {b}, {v} {c})"


_FMA = f"declare {_VECTOR} @llvm.fma.v{LANES}f64({_VECTOR}, {_VECTOR}, {_VECTOR})"


def _cascade_text(sections: int) -> str:
    """`y = b0 v + z0; z0' = b1 v - a1 y + z1; z1' = b2 v - a2 y` for each section, whose y is the next one's v."""
    v = _VECTOR
    before: list[str] = []
    phis: list[str] = []
    body: list[str] = []
    after: list[str] = []
    value = "%x"
    for s in range(sections):
        for k, name in enumerate(("b0", "b1", "b2", "a1", "a2")):
            before += [
                f"  %p{name}.{s} = getelementptr double, ptr %coefficients, i64 {5 * s + k}",
                f"  %s{name}.{s} = load double, ptr %p{name}.{s}",
            ]
            scalar = f"%s{name}.{s}"
            if name in ("a1", "a2"):
                before.append(f"  %m{name}.{s} = fneg double {scalar}")
                scalar = f"%m{name}.{s}"
            before.append(_splat(f"{name}.{s}", scalar))
        for k in (0, 1):
            before += [
                f"  %pz{k}.{s} = getelementptr double, ptr %state, i64 {(2 * s + k) * LANES}",
                f"  %i{k}.{s} = load {v}, ptr %pz{k}.{s}, align 8",
            ]
            phis.append(f"  %z{k}.{s} = phi {v} [ %i{k}.{s}, %entry ], [ %n{k}.{s}, %loop ]")
            after.append(f"  store {v} %n{k}.{s}, ptr %pz{k}.{s}, align 8")
        body += [
            _fma(f"y.{s}", f"%b0.{s}", value, f"%z0.{s}"),
            _fma(f"h.{s}", f"%b1.{s}", value, f"%z1.{s}"),
            _fma(f"n0.{s}", f"%a1.{s}", f"%y.{s}", f"%h.{s}"),
            f"  %g.{s} = fmul {v} %b2.{s}, {value}",
            _fma(f"n1.{s}", f"%a2.{s}", f"%y.{s}", f"%g.{s}"),
        ]
        value = f"%y.{s}"
    lines = "\n".join
    return f"""
{_FMA}
define void @kernel(ptr %data, ptr %coefficients, ptr %state, ptr %unused, i64 %count, i64 %step) {{
entry:
{lines(before)}
  %stride = mul i64 %step, {LANES}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{lines(phis)}
  %offset = mul i64 %i, %stride
  %place = getelementptr double, ptr %data, i64 %offset
  %x = load {v}, ptr %place, align 8
{lines(body)}
  store {v} {value}, ptr %place, align 8
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %done
done:
{lines(after)}
  ret void
}}"""


_TRIDIAGONAL = f"""
{_FMA}
define void @kernel(ptr %data, ptr %bands, ptr %eliminated, ptr %unused, i64 %count, i64 %ignored) {{
entry:
  br label %down
down:
  %i = phi i64 [ 0, %entry ], [ %i1, %down ]
  %c = phi double [ 0.0, %entry ], [ %c1, %down ]
  %d = phi {_VECTOR} [ zeroinitializer, %entry ], [ %d1, %down ]
  %row = mul i64 %i, 3
  %pl = getelementptr double, ptr %bands, i64 %row
  %pd = getelementptr double, ptr %pl, i64 1
  %pu = getelementptr double, ptr %pl, i64 2
  %lower = load double, ptr %pl
  %diagonal = load double, ptr %pd
  %upper = load double, ptr %pu
  %taken = fmul double %lower, %c
  %pivot = fsub double %diagonal, %taken
  %inverse = fdiv double 1.0, %pivot
  %c1 = fmul double %upper, %inverse
  %pe = getelementptr double, ptr %eliminated, i64 %i
  store double %c1, ptr %pe
  %offset = mul i64 %i, {LANES}
  %place = getelementptr double, ptr %data, i64 %offset
  %y = load {_VECTOR}, ptr %place, align 8
  %minus = fneg double %lower
{_splat("lowers", "%minus")}
{_fma("rest", "%lowers", "%d", "%y")}
{_splat("inverses", "%inverse")}
  %d1 = fmul {_VECTOR} %rest, %inverses
  store {_VECTOR} %d1, ptr %place, align 8
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %count
  br i1 %more, label %down, label %turn
turn:
  %last = sub i64 %count, 1
  br label %up
up:
  %k = phi i64 [ %last, %turn ], [ %k1, %up ]
  %x = phi {_VECTOR} [ zeroinitializer, %turn ], [ %x1, %up ]
  %qe = getelementptr double, ptr %eliminated, i64 %k
  %ck = load double, ptr %qe
  %mk = fneg double %ck
  %ofs = mul i64 %k, {LANES}
  %at = getelementptr double, ptr %data, i64 %ofs
  %dk = load {_VECTOR}, ptr %at, align 8
{_splat("cks", "%mk")}
{_fma("x1", "%cks", "%x", "%dk")}
  store {_VECTOR} %x1, ptr %at, align 8
  %k1 = sub i64 %k, 1
  %again = icmp sge i64 %k1, 0
  br i1 %again, label %up, label %done
done:
  ret void
}}"""
