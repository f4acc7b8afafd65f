"""What can be compiled, accumulated and solved: anything that gives rows of `y = A(x) pi`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from armid.recursion.scalars import Scalar, Scalars

Row = dict[int, Scalar]
"""One row of A: column index -> coefficient; columns that are absent are structurally zero."""


class RowSource(Protocol):
    """A kind of measurement that is linear in a parameter vector.

    A source must be a frozen dataclass whose fields determine the rows completely: compiled kernels are
    cached by what `rows` records, nothing else.
    """

    def __hash__(self) -> int: ...

    @property
    def channels(self) -> tuple[str, ...]:
        """One name per row of a sample (`joint1`, `M_1_2`, ...)."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the parameters."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the numbers one sample consists of (`q1`.. `qd1`.. `qdd1`..), in the order `rows` takes them."""

    def rows(self, inputs: Sequence[Scalar], scalars: Scalars) -> list[Row]:
        """The rows of one sample, one per channel."""
