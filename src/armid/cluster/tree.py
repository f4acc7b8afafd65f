"""Sums along one tree: the same rounding wherever, and by however many, they are formed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

WIDTH = 4
"""Neighbours that are added in one step: stacking more factors at once saves little, and workers add up whole branches."""

Summand = TypeVar("Summand")
Plus = Callable[[Sequence[Summand]], Summand]
"""The sum of a few, in order."""


def tree_sum(parts: Iterable[Summand], plus: Plus[Summand]) -> Summand:
    """Neighbours are added `WIDTH` at a time, then their sums, and so on; of any number of parts few sums are held.

    The tree follows from the number of parts alone. A cluster goes through it level by level, with `groups`.

    Args:
        parts: at least one, in order.
        plus: of two to `WIDTH` of them.
    """
    levels: list[list[Summand]] = [[]]
    for part in parts:
        height = 0
        levels[0].append(part)
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


def groups(parts: Sequence[Summand]) -> list[Sequence[Summand]]:
    """Those that one level of the tree adds to one another."""
    return [parts[k : k + WIDTH] for k in range(0, len(parts), WIDTH)]


def is_branch(count: int) -> bool:
    """Whether so many neighbours, counted from the first part, are one branch of the tree."""
    while count > 1 and count % WIDTH == 0:
        count //= WIDTH
    return count == 1
