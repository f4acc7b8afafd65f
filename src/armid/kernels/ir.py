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

from dataclasses import dataclass
from enum import StrEnum

from armid.kernels.arithmetic import Arithmetic
from armid.kernels.finish import gram, store, total
from armid.kernels.lanes import BLOCK, MOST_LANES, STRIDE, TILE, Lanes
from armid.recursion.tape import Node, Tape


class Finish(StrEnum):
    """What happens to the columns of a block once they are computed."""

    STORE = "store"
    TOTAL = "total"
    GRAM = "gram"


@dataclass(frozen=True, slots=True)
class KernelPlan:
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


def module_text(plan: KernelPlan, lanes: int) -> str:
    """The LLVM module of a plan, for vectors of `lanes` doubles."""
    width = Lanes(lanes)
    match plan.finish:
        case Finish.STORE:
            finish = store()
        case Finish.TOTAL:
            finish = total(width)
        case Finish.GRAM:
            finish = gram(width)
    return "\n".join([_evaluate(plan, width), finish, entry(plan), width.declarations()])


def _evaluate(plan: KernelPlan, lanes: Lanes) -> str:
    """One block: the tape over all its vectors, outputs to scratch."""
    body = Arithmetic(lanes)
    places = _scratch_slots(plan)
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
  %next = add i64 %lane, {lanes.lanes}
  %more = icmp slt i64 %next, {BLOCK}
  br i1 %more, label %loop, label %done
done:
  ret void
}}"""


def _scratch_slots(plan: KernelPlan) -> dict[int, list[int]]:
    """Scratch slots each operation's value goes to."""
    places: dict[int, list[int]] = {}
    start = 0
    for group, width in zip(plan.groups, plan.widths, strict=True):
        for k, node in enumerate(group):
            places.setdefault(node.index, []).append(start + k)
        start += width
    return places


def entry(plan: KernelPlan) -> str:
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
