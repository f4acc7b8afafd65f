"""Sums along one tree: the same rounding wherever, and by however many, they are formed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise, repeat
from typing import TypeVar

WIDTH = 4
"""Neighbours that are added in one step: stacking more factors at once saves little, and workers add up whole branches."""

Summand = TypeVar("Summand")
Plus = Callable[[Sequence[Summand]], Summand]
"""The sum of a few, in order."""


def tree_sum(parts: Iterable[Summand], plus: Plus[Summand], heights: Iterable[int] = ()) -> Summand:
    """Neighbours are added `WIDTH` at a time, then their sums, and so on; of any number of parts few sums are held.

    The tree follows from the number of leaves alone.

    Args:
        parts: at least one, in order.
        plus: of two to `WIDTH` of them.
        heights: at which each part enters, where they are sums of branches (`branch_heights`); leaves by default.
    """
    levels: list[list[Summand]] = [[]]
    for part, height in zip(parts, chain(heights, repeat(0)), strict=False):
        levels += [[] for _ in range(height + 1 - len(levels))]
        levels[height].append(part)
        while len(levels[height]) == WIDTH:
            if height + 1 == len(levels):
                levels.append([])
            levels[height + 1].append(plus(levels[height]))
            levels[height] = []
            height += 1
    rest: list[Summand] = []
    for level in levels:
        own = [*level, *rest]
        rest = own if len(own) < 2 else [plus(own)]
    return rest[0]


def branch_heights(sizes: Sequence[int]) -> list[int] | None:
    """Heights at which sums of neighbouring leaves enter the tree of all; None where they are not its branches.

    Groups of `WIDTH`, or of a power of it, are branches as long as no larger one follows a smaller one. The last may be what is
    left: nothing comes after it.

    Args:
        sizes: leaves of every group, in order.
    """
    heights = [_height(size) for size in sizes]
    whole = all(size == WIDTH**height for size, height in zip(sizes[:-1], heights[:-1], strict=True))
    falling = all(a >= b for a, b in pairwise(heights))
    return heights if sizes and min(sizes) > 0 and whole and falling else None


def _height(size: int) -> int:
    """Of the smallest branch with so many leaves."""
    height = 0
    while WIDTH**height < size:
        height += 1
    return height


def group_sizes(count: int, largest: int, each: int, workers: int) -> list[int]:
    """Leaves of groups that are branches: large ones as long as every worker has several, then smaller ones, evenly dealt out.

    A task costs the same however many leaves it has, so groups are large; those who finish early would wait for the last one of
    every pass, so that what does not go evenly into large groups is dealt out in smaller ones.

    Args:
        count: of leaves.
        largest: leaves of a group, a power of `WIDTH`.
        each: groups that every worker is to have at least, where there are enough leaves.
        workers: who share them.
    """
    size, workers = 1, max(workers, 1)  # none for a moment, when the last one was lost
    while size < largest and count >= each * workers * WIDTH * size:
        size *= WIDTH
    out: list[int] = []
    while count:
        rounds = count // (size * workers)
        out += [size] * (rounds * workers)
        count -= rounds * workers * size
        if size == 1:
            out += [1] * count
            break
        size //= WIDTH
    return out
