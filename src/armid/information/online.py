"""Information that forgets: exponentially, or everything before a window."""

from __future__ import annotations

from dataclasses import dataclass, replace

from armid.errors import InputError
from armid.information.information import Information, total


def forgotten(information: Information, factor: float) -> Information:
    """The same information with every past row's squared weight multiplied by `factor` in (0, 1].

    Adding new rows to what is left, chunk after chunk, is recursive least squares with exponential forgetting.
    """
    if not 0.0 < factor <= 1.0:
        raise InputError("forgetting factor", f"{factor}", "expected a number in (0, 1]; 1 forgets nothing")
    channels = tuple(replace(c.scaled(factor**0.5), count=c.count * factor) for c in information.channels)
    return replace(information, channels=channels)


@dataclass(frozen=True)
class SlidingWindow:
    """The last few pieces of information; older ones drop out whole.

    Nothing is ever subtracted from a factor, which would lose digits: the window's sum is taken anew over its pieces.

    Args:
        length: how many pieces to keep.
        pieces: the newest last.
    """

    length: int
    pieces: tuple[Information, ...] = ()

    def __post_init__(self) -> None:
        if self.length < 1:
            raise InputError("window length", f"{self.length}", "expected at least one piece")

    def push(self, piece: Information) -> SlidingWindow:
        """The window after one more piece."""
        return SlidingWindow(self.length, (*self.pieces, piece)[-self.length :])

    @property
    def information(self) -> Information:
        """All pieces together; there must be at least one."""
        return total(self.pieces)
