"""Torque sensors that drift while the arm moves: gain and offset of every channel as random walks beside a known arm.

With the torque tau0 of the arm that the estimator started from, a channel reads

    tau - tau0 = (g + s) tau0 + o + noise

where g is the gain that the result it started from had found already. s and o wander by their tolerance in `_WALK` seconds; a
Kalman filter of two states per channel follows them. Parameters that are estimated on-line would take a drifting sensor for
another arm; the arm it started from does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.identifiability.base import BaseParameters
from armid.kernels.evaluate import Restricted
from armid.kernels.single import SingleRows
from armid.kernels.source import RowSource
from armid.online.sensor_kernels import any_news, follow
from armid.rows.imperfections import KINDS, Family

_TOLERANCE = KINDS[Family.GAIN].tolerance
"""Of a gain; of an offset the same share of the channel's torque so far."""

_LARGE = 3.0
"""Tolerances from which on a sensor is said to have drifted, as in the gate of `identify`."""

_SURE = 5.0
"""Standard deviations by which that must be beyond noise."""

_NOISE = 3.0
"""Deviations of a channel's noise below which no offset is told: on a light joint friction errs by that much."""

_WALK = 100.0
"""[s] in which a sensor may wander by its tolerance: warming up takes minutes."""

_SETTLING = 2.0
"""[s] before anything is said: the torque so far must mean something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SensorDrift:
    """A channel against the arm it started from.

    Args:
        name: of the channel.
        gain, gain_deviation: share by which it reads too much, beyond what the result knew.
        offset, offset_deviation: constant that it reads too much [N m or N].
    """

    name: str
    gain: float
    gain_deviation: float
    offset: float
    offset_deviation: float

    def as_dict(self) -> dict[str, float | str]:
        return {
            "channel": self.name,
            "gain": self.gain,
            "gain_deviation": self.gain_deviation,
            "offset": self.offset,
            "offset_deviation": self.offset_deviation,
        }


class SensorWatch:
    """Follows gain and offset of every channel; fixed memory and time per sample.

    Args:
        source: of the rows.
        base: parameters of the arm it started from.
        values: theirs, shape [r].
        sigma: noise of every channel, in units in which samples count as independent, shape [m].
        rate: [Hz].
        gains: that were known to begin with, shape [m].
    """

    def __init__(
        self,
        source: RowSource,
        base: BaseParameters,
        values: FloatArray,
        sigma: FloatArray,
        *,
        rate: float,
        gains: FloatArray,
    ) -> None:
        self._rows = SingleRows(Restricted(source, tuple(int(i) for i in base.independent)))
        self._values, self._gains, self._rate = np.array(values), gains, float(rate)
        self._sigma = np.ascontiguousarray(sigma, dtype=np.float64)
        self._names = source.channels
        m = len(self._names)
        self._state, self._covariance = np.zeros((m, 2)), np.zeros((m, 2, 2))
        self._covariance[:, 0, 0] = _TOLERANCE**2
        self._energy, self._samples = np.zeros(m), 0
        self._said, self._new = np.zeros((m, 2), dtype=np.bool_), np.zeros((m, 2), dtype=np.bool_)
        self._all = np.ones(m, dtype=np.bool_)
        self._limit = np.full((m, 2), _LARGE * _TOLERANCE)

    def update(
        self, inputs: FloatArray, torque: FloatArray, counted: npt.NDArray[np.bool_] | None
    ) -> tuple[tuple[str, str], ...]:
        """One sample; name of every channel that has just drifted, with the words for it.

        Args:
            inputs: of the rows, shape [n_inputs].
            torque: measured, shape [m].
            counted: channels that count; all by default.
        """
        packed = self._rows(inputs)
        shares = packed * self._values[self._rows.columns]
        known: FloatArray = np.bincount(self._rows.channels, weights=shares, minlength=len(self._names))  # type: ignore[assignment]
        self._samples += 1
        walk = _TOLERANCE**2 / (_WALK * self._rate)
        follow(
            known,
            torque - (1.0 + self._gains) * known,
            self._all if counted is None else counted,
            self._sigma,
            walk,
            self._samples,
            self._energy,
            self._state,
            self._covariance,
        )
        return self._news() if self._samples > _SETTLING * self._rate else ()

    def _news(self) -> tuple[tuple[str, str], ...]:
        """Channels that have just gone beyond; said once, and again only after they were well within."""
        size = np.sqrt(self._energy / self._samples)
        np.maximum(_LARGE * _TOLERANCE * size, _NOISE * self._sigma, out=self._limit[:, 1])
        if not any_news(self._state, self._covariance, self._limit, _SURE, self._said, self._new):
            return ()
        return tuple((self._names[k], self._words(k, part)) for k, part in np.argwhere(self._new))

    def _words(self, k: int, part: int) -> str:
        value, deviation = self._state[k, part], self._deviations[k, part]
        if part == 0:
            what = f"gain {100 * value:+.0f} % +- {100 * deviation:.1g} %"
        else:
            what = f"offset {value:+.3g} +- {deviation:.1g} N m or N"
        return f"torque of {self._names[k]} has drifted against the arm it started from, {what}: its sensor, or what it carries"

    @property
    def _deviations(self) -> FloatArray:
        return np.sqrt(np.maximum(np.einsum("mii->mi", self._covariance), 0.0))

    @property
    def drifts(self) -> tuple[SensorDrift, ...]:
        """Where every channel is now."""
        return tuple(
            SensorDrift(
                name=name,
                gain=float(z[0]),
                gain_deviation=float(s[0]),
                offset=float(z[1]),
                offset_deviation=float(s[1]),
            )
            for name, z, s in zip(self._names, self._state, self._deviations, strict=True)
        )
