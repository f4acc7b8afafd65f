"""What can be computed again, kept while it is small enough: the latest used, of all recordings together."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from itertools import count
from threading import RLock
from typing import Any, TypeVar

Kept = TypeVar("Kept")

_KEPT_BYTES = 192 << 20
"""Of all recordings together: two hundred logs of a minute each stay within half a gigabyte with everything else."""

_LARGE = 0.005
"""Of the limit: what is smaller (conditioned samples of a short log) took more work than it takes room."""

_owners = count()


class Shelf:
    """Values by owner and key; the longest unused are let go when there is too much.

    Args:
        limit: [bytes]. The value put last always stays.
    """

    def __init__(self, limit: int = _KEPT_BYTES) -> None:
        self.limit = limit
        self._values: OrderedDict[tuple[int, Hashable], tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        self._lock = RLock()

    def owner(self, of: object) -> int:
        """A number for an object; what is kept under it goes when the object does."""
        number = next(_owners)
        weakref.finalize(of, self.forget, number)
        return number

    def get(self, owner: int, key: Hashable, make: Callable[[], Kept], size: Callable[[Kept], int]) -> Kept:
        """The value kept, or made now and kept.

        Args:
            owner: from `owner`.
            key: of the value.
            make: the value.
            size: of it [bytes].
        """
        with self._lock:
            if (owner, key) in self._values:
                kept: Kept = self.find(owner, key)
                return kept
        value = make()
        with self._lock:
            self._drop((owner, key))
            self._values[owner, key] = value, size(value)
            self._bytes += self._values[owner, key][1]
            while self._bytes > self.limit and len(self._values) > 1:
                self._drop(self._dispensable())
        return value

    def find(self, owner: int, key: Hashable) -> Any:
        """The value kept; None when there is none."""
        with self._lock:
            found = self._values.get((owner, key))
            if found is None:
                return None
            self._values.move_to_end((owner, key))
            return found[0]

    def _dispensable(self) -> tuple[int, Hashable]:
        """The longest unused of the large ones, which make room; of all when none is large. Never the one put last."""
        *keys, _ = self._values
        return next((key for key in keys if self._values[key][1] > _LARGE * self.limit), keys[0])

    def forget(self, owner: int) -> None:
        """Lets go of everything of an owner."""
        with self._lock:
            for key in [key for key in self._values if key[0] == owner]:
                self._drop(key)

    def _drop(self, key: tuple[int, Hashable]) -> None:
        _, size = self._values.pop(key, (None, 0))
        self._bytes -= size


SHELF = Shelf()
"""Of this process."""
