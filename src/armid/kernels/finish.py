"""What happens to the columns of a block once they are computed: copied out, summed, or multiplied into Gram tiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armid.arrays import FloatArray
from armid.kernels.lanes import BLOCK, STRIDE, TILE, Lanes

_FINISH = (
    "define internal void @finish(ptr noalias %from, i64 %width, ptr %out, i64 %slot, i64 %group,"
    " i64 %first, i64 %valid) #0 {"
)


def store() -> str:
    """out[slot] is the column of that slot."""
    return f"""
{_FINISH}
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


def total(lanes: Lanes) -> str:
    """out[0][slot] += sum of the column, as many columns at a time as there are lanes."""
    v, n = lanes.vector, lanes.lanes
    phis = "\n".join(f"  %s{i} = phi {v} [ zeroinitializer, %column ], [ %t{i}, %loop ]" for i in range(n))
    additions = "\n".join(f"  %t{i} = fadd {v} %s{i}, %a{i}" for i in range(n))
    return f"""
{_FINISH}
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
{_lane_offsets(n)}
{_loads(lanes, "a", n)}
{additions}
  %next = add i64 %lane, {n}
  %more = icmp slt i64 %next, {BLOCK}
  br i1 %more, label %loop, label %end
end:
  %target = getelementptr double, ptr %own, i64 %k
{_add_to_memory(lanes, [f"%t{i}" for i in range(n)], "%target")}
  %k1 = add i64 %k, {n}
  %again = icmp slt i64 %k1, %width
  br i1 %again, label %column, label %done
done:
  ret void
}}"""


def gram(lanes: Lanes) -> str:
    """out[group] += sums over the block of products of columns, tile after tile on and above the diagonal.

    The tile of columns i.. and j.. holds its TILE x TILE sums row by row; see `gram_matrix`.
    """
    v = lanes.vector
    pairs = [(i, j) for i in range(TILE) for j in range(TILE)]
    phis = "\n".join(f"  %s{i}{j} = phi {v} [ zeroinitializer, %tile ], [ %t{i}{j}, %loop ]" for i, j in pairs)
    products = "\n".join(f"  %t{i}{j} = call {v} {lanes.fma}({v} %a{i}, {v} %b{j}, {v} %s{i}{j})" for i, j in pairs)
    return f"""
{_FINISH}
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
{_lane_offsets(TILE)}
{_loads(lanes, "a", TILE)}
{_loads(lanes, "b", TILE)}
{products}
  %next = add i64 %lane, {lanes.lanes}
  %more = icmp slt i64 %next, {BLOCK}
  br i1 %more, label %loop, label %end
end:
{_add_to_memory(lanes, [f"%t{i}{j}" for i, j in pairs], "%g1")}
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


def _sums(lanes: Lanes, names: Sequence[str], prefix: str) -> tuple[list[str], str]:
    """IR that turns as many vectors as there are lanes into one vector of their sums.

    Neighbours are added pairwise, twice as many per vector each time: fewer operations than one horizontal sum each.
    """
    v, n = lanes.vector, lanes.lanes
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


def _add_to_memory(lanes: Lanes, names: Sequence[str], target: str) -> str:
    """IR that adds the sum of each of these vectors to consecutive doubles at `target`."""
    v, n = lanes.vector, lanes.lanes
    lines: list[str] = []
    for first in range(0, len(names), n):
        more, value = _sums(lanes, names[first : first + n], f"r{first}_")
        lines += more
        lines.append(f"  %rp{first} = getelementptr double, ptr {target}, i64 {first}")
        lines.append(f"  %ro{first} = load {v}, ptr %rp{first}, align 8")
        lines.append(f"  %rn{first} = fadd {v} %ro{first}, {value}")
        lines.append(f"  store {v} %rn{first}, ptr %rp{first}, align 8")
    return "\n".join(lines)


def _loads(lanes: Lanes, pointer: str, count: int) -> str:
    """IR that loads the current lanes of `count` columns behind a pointer, as %<pointer>0, %<pointer>1, ..."""
    return "\n".join(
        f"  %at{pointer}{i} = getelementptr double, ptr %{pointer}, i64 %lane{i}\n"
        f"  %{pointer}{i} = load {lanes.vector}, ptr %at{pointer}{i}, align 8"
        for i in range(count)
    )


def _lane_offsets(count: int) -> str:
    return "\n".join(f"  %lane{i} = add i64 %lane, {i * STRIDE}" for i in range(count))


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
