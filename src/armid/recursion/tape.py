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
    """A recorded scalar."""

    __slots__ = ("index", "tape")

    def __init__(self, tape: Tape, index: int) -> None:
        self.tape = tape
        self.index = index

    def __add__(self, other: Node | float) -> Node:
        return self.tape.add(self, self.tape.node(other))

    __radd__ = __add__

    def __sub__(self, other: Node | float) -> Node:
        return self.tape.subtract(self, self.tape.node(other))

    def __rsub__(self, other: float) -> Node:
        return self.tape.subtract(self.tape.node(other), self)

    def __mul__(self, other: Node | float) -> Node:
        return self.tape.multiply(self, self.tape.node(other))

    __rmul__ = __mul__

    def __neg__(self) -> Node:
        return self.tape.negative(self)

    @property
    def is_zero(self) -> bool:
        return self.tape.constant_value(self) == 0.0


class Tape:
    """The recorder. It is itself the `Scalars` of a recursion."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._known: dict[Operation, int] = {}
        self._constants: dict[float, Node] = {}

    def _record(self, operation: Operation) -> Node:
        index = self._known.get(operation)
        if index is None:
            index = len(self.operations)
            self.operations.append(operation)
            self._known[operation] = index
        return Node(self, index)

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

    def constant_value(self, x: Node) -> float | None:
        operation = self.operations[x.index]
        return operation.value if operation.op is Op.CONSTANT else None

    def _negated(self, x: Node) -> Node | None:
        """Y when x is recorded as -y."""
        operation = self.operations[x.index]
        return Node(self, operation.a) if operation.op is Op.NEG else None

    def negative(self, x: Node) -> Node:
        value = self.constant_value(x)
        if value is not None:
            return self.constant(-value)
        inner = self._negated(x)
        if inner is not None:
            return inner
        operation = self.operations[x.index]
        if operation.op is Op.SUB:
            flipped = self._known.get(Operation(Op.SUB, operation.b, operation.a))
            if flipped is not None:
                return Node(self, flipped)
        return self._record(Operation(Op.NEG, x.index))

    def add(self, x: Node, y: Node) -> Node:
        cx, cy = self.constant_value(x), self.constant_value(y)
        if cx is not None and cy is not None:
            return self.constant(cx + cy)
        if cx == 0.0:
            return y
        if cy == 0.0:
            return x
        nx, ny = self._negated(x), self._negated(y)
        if nx is not None and ny is not None:
            return self.negative(self.add(nx, ny))
        if ny is not None:
            return self.subtract(x, ny)
        if nx is not None:
            return self.subtract(y, nx)
        a, b = sorted((x.index, y.index))
        return self._record(Operation(Op.ADD, a, b))

    def subtract(self, x: Node, y: Node) -> Node:
        cx, cy = self.constant_value(x), self.constant_value(y)
        if cx is not None and cy is not None:
            return self.constant(cx - cy)
        if cy == 0.0:
            return x
        if cx == 0.0:
            return self.negative(y)
        if x.index == y.index:
            return self.constant(0.0)
        nx, ny = self._negated(x), self._negated(y)
        if ny is not None:
            return self.add(x, ny)
        if nx is not None:
            return self.negative(self.add(nx, y))
        flipped = self._known.get(Operation(Op.SUB, y.index, x.index))
        if flipped is not None:
            return self.negative(Node(self, flipped))
        return self._record(Operation(Op.SUB, x.index, y.index))

    def multiply(self, x: Node, y: Node) -> Node:
        cx, cy = self.constant_value(x), self.constant_value(y)
        if cx is not None and cy is not None:
            return self.constant(cx * cy)
        if cy is not None:
            x, y, cx = y, x, cy
        if cx is not None:
            return self._scale(cx, y)
        nx, ny = self._negated(x), self._negated(y)
        if nx is not None or ny is not None:
            product = self.multiply(nx or x, ny or y)
            return product if nx is not None and ny is not None else self.negative(product)
        a, b = sorted((x.index, y.index))
        return self._record(Operation(Op.MUL, a, b))

    def _scale(self, factor: float, x: Node) -> Node:
        """A constant times a node: 0, 1 and -1 cost nothing, a negative factor becomes a sign, factors combine."""
        if factor == 0.0:
            return self.constant(0.0)
        if factor == 1.0:
            return x
        if factor < 0.0:
            return self.negative(self._scale(-factor, x))
        inner = self._negated(x)
        if inner is not None:
            return self.negative(self._scale(factor, inner))
        operation = self.operations[x.index]
        if operation.op is Op.MUL and self.operations[operation.a].op is Op.CONSTANT:
            return self._scale(factor * self.operations[operation.a].value, Node(self, operation.b))
        # The constant goes first whatever its index, so that the rule above finds it.
        return self._record(Operation(Op.MUL, self.constant(factor).index, x.index))

    def sin(self, x: Node) -> Node:
        inner = self._negated(x)
        return -self.sin(inner) if inner is not None else self._record(Operation(Op.SIN, x.index))

    def cos(self, x: Node) -> Node:
        inner = self._negated(x)
        return self.cos(inner) if inner is not None else self._record(Operation(Op.COS, x.index))

    def sign(self, x: Node) -> Node:
        inner = self._negated(x)
        return -self.sign(inner) if inner is not None else self._record(Operation(Op.SIGN, x.index))

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
        left, right = Node(tape, operation.a), Node(tape, operation.b)
        match operation.op:
            case Op.ADD:
                accumulate(operation.a, b)
                accumulate(operation.b, b)
            case Op.SUB:
                accumulate(operation.a, b)
                accumulate(operation.b, -b)
            case Op.MUL:
                accumulate(operation.a, b * right)
                accumulate(operation.b, b * left)
            case Op.NEG:
                accumulate(operation.a, -b)
            case Op.SIN:
                accumulate(operation.a, b * tape.cos(left))
            case Op.COS:
                accumulate(operation.a, -(b * tape.sin(left)))
    zero = tape.constant(0.0)
    return [bar.get(node.index, zero) for node in inputs]
