"""A recorded recursion run over a few samples by NumPy: one array operation per line of the tape.

Running the recursion itself on arrays multiplies by zeros and ones and computes the same thing again in several places; the tape
does not. It takes half the time, and what is computed is what the compiled code computes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.recursion.tape import Node, Op, Operation, Tape

_TWO: dict[Op, Callable[[Any, Any], Any]] = {Op.ADD: operator.add, Op.SUB: operator.sub, Op.MUL: operator.mul}
_ONE: dict[Op, Callable[[Any], Any]] = {Op.NEG: operator.neg, Op.SIN: np.sin, Op.COS: np.cos, Op.SIGN: np.sign}


class Replay:
    """What some nodes of a tape are at given samples.

    Args:
        tape: with everything recorded.
        outputs: the nodes wanted.
    """

    def __init__(self, tape: Tape, outputs: Sequence[Node]) -> None:
        needed = tape.needed(list(outputs))
        self._constants: list[tuple[int, FloatArray]] = []
        self._inputs: list[tuple[int, int]] = []
        self._uniforms: list[tuple[int, int]] = []
        self._lines: list[tuple[Callable[..., Any], int, int, int]] = []
        # Values that nobody needs any more give their place to the next: what is worked on stays in the cache.
        kept = {node.index for node in outputs}
        last = {argument: index for index in needed for argument in _arguments(tape.operations[index])}
        given = [index for index in needed if tape.operations[index].op < Op.ADD]
        place = {index: at for at, index in enumerate(given)}
        self.places, free = len(given), list[int]()
        for index in needed:
            operation = tape.operations[index]
            arguments = _arguments(operation)
            own = [place[argument] for argument in arguments]
            if arguments:
                free += {place[k] for k in arguments if last[k] == index and k not in kept}
                place[index] = free.pop() if free else self.places
                self.places = max(self.places, place[index] + 1)
            self._enter(operation, place[index], own)
        self._outputs = [place[node.index] for node in outputs]

    def _enter(self, operation: Operation, at: int, own: Sequence[int]) -> None:
        """One line, whose value goes to a place, from the places of its arguments."""
        op = operation.op
        if op in _TWO:
            self._lines.append((_TWO[op], at, own[0], own[1]))
        elif op in _ONE:
            self._lines.append((_ONE[op], at, own[0], -1))
        elif op is Op.CONSTANT:
            # Arrays of no axis: numbers of Python are converted at every operation.
            self._constants.append((at, np.array(operation.value)))
        else:
            (self._inputs if op is Op.INPUT else self._uniforms).append((at, operation.a))

    def __call__(self, columns: Sequence[FloatArray], shared: Sequence[float] | FloatArray = ()) -> list[FloatArray]:
        """Every output, shape [n_samples], or a number where it is the same for all samples.

        Args:
            columns: the inputs, each of shape [n_samples].
            shared: numbers common to all samples.
        """
        values: list[Any] = [None] * self.places
        for at, constant in self._constants:
            values[at] = constant
        for at, k in self._inputs:
            values[at] = columns[k]
        for at, k in self._uniforms:
            values[at] = np.array(shared[k])
        for function, at, a, b in self._lines:
            values[at] = function(values[a], values[b]) if b >= 0 else function(values[a])
        return [values[at] for at in self._outputs]


def _arguments(operation: Operation) -> tuple[int, ...]:
    """Lines that an operation takes its values from."""
    if operation.op < Op.ADD:
        return ()
    return (operation.a,) if operation.b < 0 else (operation.a, operation.b)
