"""What single methods leave beside an estimate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class NominalCorrection:
    """A base parameter as a correction of the description ([Khosla1985]).

    Args:
        nominal: value of the description.
        correction: what was found less that.
        standard_deviation: of either.
    """

    nominal: float
    correction: float
    standard_deviation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopBasis:
    """What simulating the closed loop rests on.

    Args:
        start: method of the estimate it began with.
        noise_fed_back: whether sensor noise passes through the controller in the weighting of every motion.
        position_noise: standard deviation of every joint's encoder [rad or m], the largest of all motions.
        gains: of the controller, as given or as found, one row per kind of gain, shape [kinds, n_joints].
        gain_deviations: standard deviations of those found, zero of those given; same shape.
    """

    start: str
    noise_fed_back: bool
    position_noise: tuple[float, ...]
    gains: tuple[tuple[float, ...], ...]
    gain_deviations: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, kw_only=True)
class FitRecord:
    """What a method says beside its values; empty of most methods.

    Args:
        corrections: of the torque-error model, by base parameter.
        row_noise: of total least squares: standard deviation of every column's entries, by base parameter.
        loop: of methods that simulate the closed loop.
    """

    corrections: Mapping[str, NominalCorrection] = field(default_factory=dict)
    row_noise: Mapping[str, float] = field(default_factory=dict)
    loop: LoopBasis | None = None

    def as_dict(self) -> dict[str, Any]:
        """What there is, as plain values."""
        corrections = {name: asdict(own) for name, own in self.corrections.items()}
        found = {"corrections": corrections, "row_noise": dict(self.row_noise)}
        loop = {} if self.loop is None else {"loop": asdict(self.loop)}
        return {**{key: value for key, value in found.items() if value}, **loop}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> FitRecord:
        """The record of such values.

        Raises:
            TypeError, KeyError: something is missing or of another kind.
        """
        loop = values.get("loop")
        return FitRecord(
            corrections={name: NominalCorrection(**own) for name, own in values.get("corrections", {}).items()},
            row_noise=dict(values.get("row_noise", {})),
            loop=None if loop is None else LoopBasis(**{key: _tuples(own) for key, own in loop.items()}),
        )


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list | tuple) else value
