"""Recording scalars: run a recursion on them once and keep what it computed as a list of operations.

Equal operations are recorded once, constants are folded, zeros and ones disappear, and minus signs move
outward until they meet an addition. What is left is the arithmetic one particular robot needs.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from armid.arrays import snapped


class Op(IntEnum):
    """Operations of a tape."""

    INPUT = 0
    """Differs from sample to sample."""
    UNIFORM = 1
    """The same for all samples of a call."""
    CONSTANT = 2
    ADD = 3
    SUB = 4
    MUL = 5
    NEG = 6
    SIN = 7
    COS = 8
    SIGN = 9


class Operation(NamedTuple):
    """One line of the tape: arguments are indices of earlier lines (or of an input), `value` that of a constant."""

    op: Op
    a: int = -1
    b: int = -1
    value: float = 0.0


class Node:
    """A recorded scalar; a tape has one of each.

    Args:
        tape: it is recorded on.
        index: of its line.
        value: of a constant, else None.
        inner: what it is the negative of, else None.
    """

    __slots__ = ("index", "inner", "tape", "value")

    def __init__(self, tape: Tape, index: int, value: float | None, inner: Node | None) -> None:
        self.tape = tape
        self.index = index
        self.value = value
        self.inner = inner

    def __add__(self, other: Node | float) -> Node:
        return self.tape.add(self, other if type(other) is Node else self.tape.node(other))

    __radd__ = __add__

    def __sub__(self, other: Node | float) -> Node:
        return self.tape.subtract(self, other if type(other) is Node else self.tape.node(other))

    def __rsub__(self, other: float) -> Node:
        return self.tape.subtract(self.tape.node(other), self)

    def __mul__(self, other: Node | float) -> Node:
        return self.tape.multiply(self, other if type(other) is Node else self.tape.node(other))

    __rmul__ = __mul__

    def __neg__(self) -> Node:
        return self.tape.negative(self)

    @property
    def is_zero(self) -> bool:
        return self.value == 0.0


class Tape:
    """The recorder. It is itself the `Scalars` of a recursion."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._nodes: list[Node] = []
        self._known: dict[Operation, Node] = {}
        self._constants: dict[float, Node] = {}

    def _record(self, operation: Operation) -> Node:
        node = self._known.get(operation)
        if node is None:
            value = operation.value if operation.op is Op.CONSTANT else None
            inner = self._nodes[operation.a] if operation.op is Op.NEG else None
            node = Node(self, len(self.operations), value, inner)
            self.operations.append(operation)
            self._nodes.append(node)
            self._known[operation] = node
        return node

    def at(self, index: int) -> Node:
        """The scalar of a line."""
        return self._nodes[index]

    def input(self, k: int) -> Node:
        """The k-th number of a sample."""
        return self._record(Operation(Op.INPUT, k))

    def uniform(self, k: int) -> Node:
        """The k-th number shared by all samples."""
        return self._record(Operation(Op.UNIFORM, k))

    def constant(self, value: float, symbol: str | None = None) -> Node:
        known = self._constants.get(value)
        if known is None:
            # Adding 0.0 turns -0.0 into 0.0, which would otherwise be a different constant.
            known = self._record(Operation(Op.CONSTANT, value=snapped(float(value)) + 0.0))
            self._constants[value] = known
        return known

    def node(self, value: Node | float) -> Node:
        return value if isinstance(value, Node) else self.constant(value)

    def negative(self, x: Node) -> Node:
        if x.value is not None:
            return self.constant(-x.value)
        if x.inner is not None:
            return x.inner
        operation = self.operations[x.index]
        if operation.op is Op.SUB:
            flipped = self._known.get(Operation(Op.SUB, operation.b, operation.a))
            if flipped is not None:
                return flipped
        return self._record(Operation(Op.NEG, x.index))

    def add(self, x: Node, y: Node) -> Node:
        cx, cy = x.value, y.value
        if cx is not None and cy is not None:
            return self.constant(cx + cy)
        if cx == 0.0:
            return y
        if cy == 0.0:
            return x
        nx, ny = x.inner, y.inner
        if nx is not None and ny is not None:
            return self.negative(self.add(nx, ny))
        if ny is not None:
            return self.subtract(x, ny)
        if nx is not None:
            return self.subtract(y, nx)
        a, b = (x.index, y.index) if x.index <= y.index else (y.index, x.index)
        return self._record(Operation(Op.ADD, a, b))

    def subtract(self, x: Node, y: Node) -> Node:
        cx, cy = x.value, y.value
        if cx is not None and cy is not None:
            return self.constant(cx - cy)
        if cy == 0.0:
            return x
        if cx == 0.0:
            return self.negative(y)
        if x.index == y.index:
            return self.constant(0.0)
        nx, ny = x.inner, y.inner
        if ny is not None:
            return self.add(x, ny)
        if nx is not None:
            return self.negative(self.add(nx, y))
        flipped = self._known.get(Operation(Op.SUB, y.index, x.index))
        if flipped is not None:
            return self.negative(flipped)
        return self._record(Operation(Op.SUB, x.index, y.index))

    def multiply(self, x: Node, y: Node) -> Node:
        cx, cy = x.value, y.value
        if cx is not None and cy is not None:
            return self.constant(cx * cy)
        if cy is not None:
            x, y, cx = y, x, cy
        if cx is not None:
            return self._scale(cx, y)
        nx, ny = x.inner, y.inner
        if nx is not None or ny is not None:
            product = self.multiply(nx or x, ny or y)
            return product if nx is not None and ny is not None else self.negative(product)
        a, b = (x.index, y.index) if x.index <= y.index else (y.index, x.index)
        return self._record(Operation(Op.MUL, a, b))

    def _scale(self, factor: float, x: Node) -> Node:
        """A constant times a node: 0, 1 and -1 cost nothing, a negative factor becomes a sign, factors combine."""
        if factor == 0.0:
            return self.constant(0.0)
        if factor == 1.0:
            return x
        if factor < 0.0:
            return self.negative(self._scale(-factor, x))
        if x.inner is not None:
            return self.negative(self._scale(factor, x.inner))
        operation = self.operations[x.index]
        if operation.op is Op.MUL and self.operations[operation.a].op is Op.CONSTANT:
            return self._scale(factor * self.operations[operation.a].value, self._nodes[operation.b])
        # The constant goes first whatever its index, so that the rule above finds it.
        return self._record(Operation(Op.MUL, self.constant(factor).index, x.index))

    def sin(self, x: Node) -> Node:
        return -self.sin(x.inner) if x.inner is not None else self._record(Operation(Op.SIN, x.index))

    def cos(self, x: Node) -> Node:
        return self.cos(x.inner) if x.inner is not None else self._record(Operation(Op.COS, x.index))

    def sign(self, x: Node) -> Node:
        return -self.sign(x.inner) if x.inner is not None else self._record(Operation(Op.SIGN, x.index))

    def needed(self, outputs: list[Node]) -> list[int]:
        """Indices of the operations that the outputs depend on, in order."""
        wanted = {node.index for node in outputs}
        for index in range(len(self.operations) - 1, -1, -1):
            if index in wanted:
                operation = self.operations[index]
                if operation.op >= Op.ADD:
                    wanted.add(operation.a)
                    if operation.b >= 0:
                        wanted.add(operation.b)
        return sorted(wanted)


def vector_jacobian(tape: Tape, outputs: list[Node], seeds: list[Node], inputs: list[Node]) -> list[Node]:
    """Sum over outputs of seed times d(output)/d(input), recorded on the same tape in reverse.

    The sign function has derivative zero.
    """
    bar: dict[int, Node] = {}

    def accumulate(index: int, term: Node) -> None:
        if not term.is_zero:
            bar[index] = bar[index] + term if index in bar else term

    for output, seed in zip(outputs, seeds, strict=True):
        accumulate(output.index, seed)
    for index in reversed(tape.needed(outputs)):
        if index not in bar:
            continue
        b, operation = bar[index], tape.operations[index]
        match operation.op:
            case Op.ADD:
                accumulate(operation.a, b)
                accumulate(operation.b, b)
            case Op.SUB:
                accumulate(operation.a, b)
                accumulate(operation.b, -b)
            case Op.MUL:
                accumulate(operation.a, b * tape.at(operation.b))
                accumulate(operation.b, b * tape.at(operation.a))
            case Op.NEG:
                accumulate(operation.a, -b)
            case Op.SIN:
                accumulate(operation.a, b * tape.cos(tape.at(operation.a)))
            case Op.COS:
                accumulate(operation.a, -(b * tape.sin(tape.at(operation.a))))
    zero = tape.constant(0.0)
    return [bar.get(node.index, zero) for node in inputs]
