"""Names of constant lengths in closed forms."""

from __future__ import annotations

from collections.abc import Mapping

from armid.robot.amount import Amount


class Symbols:
    """Hands out names so that one name never means two lengths.

    Args:
        taken: names of the file's own table and their values.
    """

    def __init__(self, taken: Mapping[str, float] | None = None) -> None:
        self._values = dict(taken or {})

    def name(self, value: Amount, automatic: str | None) -> str | None:
        """The name the file used, or a free automatic one; None for zero, which is structure."""
        if value.constant == 0.0 or value.slope != 0.0:
            return None
        if value.symbol is not None or automatic is None:
            return value.symbol
        return self.automatic(automatic, value.constant)

    def automatic(self, wanted: str, value: float) -> str | None:
        """`wanted`, or `wanted_2`, ... when that name already stands for something else; None for zero."""
        if value == 0.0:
            return None
        name, count = wanted, 1
        while name in self._values:
            count += 1
            name = f"{wanted}_{count}"
        self._values[name] = value
        return name
