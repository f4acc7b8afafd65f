"""Vectors of samples: how many doubles wide, and how a block of them lies in memory."""

from __future__ import annotations

import struct
from dataclasses import dataclass

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


def _literal(value: float) -> str:
    """A double as LLVM's exact hexadecimal literal."""
    return "0x" + struct.pack(">d", value).hex().upper()


@dataclass(frozen=True, slots=True)
class Lanes:
    """One vector width.

    Args:
        lanes: doubles in a vector.
    """

    lanes: int

    @property
    def vector(self) -> str:
        return f"<{self.lanes} x double>"

    @property
    def integers(self) -> str:
        return f"<{self.lanes} x i64>"

    @property
    def fma(self) -> str:
        """The name of the fused multiply-add."""
        return f"@llvm.fma.v{self.lanes}f64"

    def splat(self, value: float) -> str:
        return f"<{', '.join([f'double {_literal(value)}'] * self.lanes)}>"

    def splat_integer(self, value: int) -> str:
        return f"<{', '.join([f'i64 {value}'] * self.lanes)}>"

    def declarations(self) -> str:
        """What every module ends with: functions of LLVM it calls, and attributes of its own."""
        bits = 64 * self.lanes
        v = self.vector
        return "\n".join(
            [
                f"declare {v} {self.fma}({v}, {v}, {v})",
                "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
                "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
                # Without this some CPUs' tuning splits 512-bit vectors in two.
                f'attributes #0 = {{ nounwind "min-legal-vector-width"="{bits}" "prefer-vector-width"="{bits}" }}',
            ]
        )
