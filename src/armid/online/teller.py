"""Says what has changed: what is proven whatever else did, and else what explains best that something has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.identification.sizes import said_within
from armid.online.causes import Alone, Cause, causes_of, limits_of, ordinary_friction
from armid.online.drifts import News, Sizes
from armid.online.watched import WatchLayout
from armid.rows.imperfections import Family
from armid.rows.torque import TorqueRows

_SURE = 5.0
"""Standard deviations by which a change must be beyond doubt, whatever else has changed."""

_LASTS = 3
"""Looks in a row at which something must be beyond its limit: a change that is just being learnt moves everything."""

_SETTLED = 5.0
"""Looks over which a size is averaged, from which it may be a deviation away: what is still on its way is not told."""

_STEADY = 0.1
"""Share of itself that it may be away likewise: what grows slowly is told while it grows."""

_MEMORY = 100.0
"""Looks over which the filter remembers where it knows a size to a tolerance; less by the square of what it knows better."""

_ALIKE = 3.0
"""Deviations by which late torques may differ from one delay that all of them have."""

_LIKELIER = float(np.log(1e4))
"""By which one cause must explain better than tolerances do, to be named where nothing is proven; as of signs and swaps."""

_RIVAL = float(np.log(1e2))
"""Causes that fit within this of the likeliest explain as much."""

_NAMED = 3
"""Of these."""

_NO_LOAD = (Family.ZERO, Family.DELAY, Family.COMMON_DELAY)
"""What nothing that an arm carries or touches can make: proven, a stream must not be used as it is."""


class Teller:
    """Looks now and then, and says everything once, and again only after it was well within.

    Args:
        standard: full parameter vector of the arm it started from.
        source: of its rows.
        layout: of the states.
        sigma: noise of every channel's residual [N m or N], shape [m].
    """

    def __init__(self, standard: FloatArray, source: TorqueRows, layout: WatchLayout, sigma: FloatArray) -> None:
        self._states, self._jumps = layout.states, layout.jumps
        self._causes = causes_of(layout)
        self._limits = limits_of(self._causes, layout, ordinary_friction(standard, source.space, layout), sigma)
        self._single = np.array([cause.family is Family.DELAY for cause in self._causes])
        self._common = next(k for k, cause in enumerate(self._causes) if cause.common)
        count = len(self._causes)
        self._course, self._lasted = np.zeros(count), np.zeros(count, dtype=np.intp)
        self._known, self._said, self._told = np.zeros((3, count), dtype=np.bool_)
        self._best, self._looks = -1, 0

    def proven(self, sizes: Sizes) -> tuple[News, ...]:
        """What has just been proven to have changed, whatever else has."""
        value, deviation = self._sized(sizes)
        moved = np.abs(value - self._course)
        large = (np.abs(value) > self._limits) & (np.abs(value) > _SURE * deviation)
        large = self._alike(sizes, value, large)
        settled = moved < np.maximum(deviation, _STEADY * np.abs(value))
        self._lasted = np.where(large & settled, self._lasted + 1, 0)
        fresh = (self._lasted >= _LASTS) & ~self._said
        self._said = (self._said | fresh) & (np.abs(value) > 0.5 * self._limits)
        self._known = large | self._said
        return tuple(self._changed(self._causes[k], value[k], deviation[k]) for k in np.flatnonzero(fresh))

    def likeliest(self, sizes: Sizes) -> tuple[News, ...]:
        """The likeliest cause where something has changed beyond what was proven at the last look, and what fits as well."""
        known = self._known
        alone = Alone(sizes.values, sizes.covariance, self._jumps, (self._causes[k] for k in np.flatnonzero(known)))
        fits, evidence = np.array([alone.explained(cause) for cause in self._causes]).T
        evidence[known] = -np.inf
        best = int(np.argmax(evidence))
        size, deviation = alone.size(self._causes[best])
        self._told &= (evidence > 0.0) | known
        likely = evidence[best] > _LIKELIER and abs(size) > self._limits[best] and not self._told[best]
        self._best, self._looks = (best, self._looks + 1 if self._best == best else 1) if likely else (-1, 0)
        if self._looks < _LASTS:
            return ()
        self._told[best] = True
        rivals = [k for k in np.argsort(-fits) if fits[k] > fits[best] - _RIVAL and k != best and not known[k]]
        return (self._likely(self._causes[best], size, deviation, [self._causes[k].what for k in rivals]),)

    def _sized(self, sizes: Sizes) -> tuple[FloatArray, FloatArray]:
        """Size of every cause and its deviation, what is still to come of a change included.

        A filter that was sure of nothing for long follows late what changes then: by what has moved lately, times what it
        remembers.
        """
        value, deviation = np.array([cause.size(sizes.values, sizes.covariance) for cause in self._causes]).T
        self._course += (value - self._course) / _SETTLED
        coming = np.minimum(deviation**2, 1.0) * _MEMORY / _SETTLED * np.abs(value - self._course)
        return value, np.hypot(deviation, coming)

    def _alike(self, sizes: Sizes, value: FloatArray, large: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Torques that may all be late alike are late by one cause, once more than one is; one that is late alone is itself."""
        at, delay = list(self._causes[self._common].places), value[self._common]
        spread = np.sqrt(np.diagonal(sizes.covariance)[at] + 1.0)
        alike = bool(np.all(np.abs(sizes.values[at] - delay) < _ALIKE * spread))
        several = int((large & self._single).sum()) > 1
        out = large.copy()
        out[self._common] &= alike and several
        out[self._single] &= not (alike and abs(delay) > 0.5 * self._limits[self._common])
        return out

    def _changed(self, cause: Cause, size: float, deviation: float) -> News:
        text = f"the {cause.what} has changed by {self._words(cause, size, deviation)} against the arm it started from"
        return News(family=cause.family, subject=cause.subject, text=text, decisive=cause.family in _NO_LOAD)

    def _likely(self, cause: Cause, size: float, deviation: float, rivals: Sequence[str]) -> News:
        text = "something has changed against the arm it started from, likeliest "
        text += f"the {cause.what} by {self._words(cause, size, deviation)}"
        if rivals:
            more = ", ..." if len(rivals) > _NAMED else ""
            text += f"; as much is explained by the {', the '.join(rivals[:_NAMED])}{more}: move other joints to tell"
        return News(family=cause.family, subject=cause.subject, text=text)

    def _words(self, cause: Cause, size: float, deviation: float) -> str:
        state = self._states[cause.places[0]]
        return said_within(size * state.tolerance, deviation * state.tolerance, state.unit)
