"""What can change on an arm by itself, and how well each explains the sizes that the watch has found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from armid.arrays import FloatArray
from armid.online.watched import WatchLayout
from armid.parameters.space import Parameter
from armid.rows.imperfections import Family

_LARGE = 3.0
"""Tolerances from which on something is said to have drifted, as in the gate of `identify`."""

_NOISE = 3.0
"""Deviations of a channel's noise below which no offset and no friction is told: on a light joint friction errs by that much."""

_GROWN = 0.25
"""Share of its friction by which a joint's must have changed, where that is less than tolerances of its torque."""

_ORDINARY = 0.5
"""Tolerances that everything else may have changed by meanwhile."""

_FREE = 10.0
"""Times what may change at once: what is proven already may be as large as it likes."""

_WHAT = {
    Family.GAIN: "gain of the torque of {}",
    Family.DRIFT: "offset of the torque of {}",
    Family.DELAY: "delay of the torque of {}",
    Family.COMMON_DELAY: "delay of all torques",
    Family.FRICTION_DRIFT: "friction of {}",
    Family.ZERO: "zero of the encoder of {}",
    Family.TILT: "tilt of the base",
    None: "load on the last link",
}


@dataclass(frozen=True, slots=True)
class Cause:
    """Something that can change, as directions among the states.

    Its size is that of its first state; friction is Coulomb and viscous friction together, at the speed of training.

    Args:
        family: of it; None for a load.
        subject: channel or joint; empty for the whole arm.
        places: states that belong to it.
        common: whether all of them change alike; each as it likes otherwise.
    """

    family: Family | None
    subject: str
    places: tuple[int, ...]
    common: bool = False

    @property
    def what(self) -> str:
        return _WHAT[self.family].format(self.subject)

    def size(self, values: FloatArray, covariance: FloatArray) -> tuple[float, float]:
        """Present size and its deviation, in tolerances, whatever else has changed.

        Args:
            values: of all states, shape [N].
            covariance: theirs, shape [N, N].
        """
        at = list(self.places)
        if self.common:  # each may differ from the others by its tolerance
            weights = np.linalg.inv(covariance[np.ix_(at, at)] + np.eye(len(at)))
            return float((weights @ values[at]).sum() / weights.sum()), float(weights.sum() ** -0.5)
        if self.family is Family.FRICTION_DRIFT:
            c, v = at
            variance = covariance[c, c] + covariance[v, v] + 2.0 * covariance[c, v]
            return float(values[c] + values[v]), float(max(variance, 0.0) ** 0.5)
        own = at if self.family is Family.TILT else at[:1]
        largest = max(own, key=lambda i: abs(float(values[i])))
        return float(values[largest]), float(covariance[largest, largest] ** 0.5)


class Alone:
    """What each cause explains if it is the only one that changed beside what is known to have.

    The sizes x, with their covariance P, are those of causes within a fraction of their tolerance t, and of one that may be
    as large as jumps J are: evidence is the ratio of likelihoods of x ~ N(0, P + t^2 + U J^2 U^T) and of N(0, P + t^2).

    Args:
        values: x in tolerances, shape [N].
        covariance: P, shape [N, N].
        jumps: J, shape [N].
        known: what is known to have changed.
    """

    def __init__(self, values: FloatArray, covariance: FloatArray, jumps: FloatArray, known: Iterable[Cause]) -> None:
        ordinary = np.full(len(values), _ORDINARY**2)
        for cause in known:
            at = list(cause.places)
            ordinary[at] += (_FREE * jumps[at]) ** 2
        self._weights = np.asarray(np.linalg.inv(covariance + np.diag(ordinary)), dtype=np.float64)
        self._pulls = self._weights @ values
        self._jumps = jumps

    def explained(self, cause: Cause) -> tuple[float, float]:
        """Logarithms of the ratio at the best size, and over all sizes: more directions fit better, and are penalised."""
        if len(cause.places) == 1:
            (i,) = cause.places
            own = 1.0 + float(self._weights[i, i]) * self._jumps[i] ** 2
            fit = 0.5 * (float(self._pulls[i]) * self._jumps[i]) ** 2 / own
            return fit, fit - 0.5 * log(own)
        g, G, jumps = self._parts(cause)
        whole = np.eye(len(g)) + jumps[:, np.newaxis] * G * jumps
        fit = 0.5 * float(jumps * g @ np.linalg.solve(whole, jumps * g))
        return fit, fit - 0.5 * float(np.linalg.slogdet(whole)[1])

    def size(self, cause: Cause) -> tuple[float, float]:
        """Of a cause, with its deviation, in tolerances."""
        g, G, jumps = self._parts(cause)
        spread = np.linalg.inv(G + np.diag(jumps**-2.0))
        own = np.zeros(len(g))
        own[: None if cause.family is Family.FRICTION_DRIFT else 1] = 1.0
        return float(own @ spread @ g), float(own @ spread @ own) ** 0.5

    def _parts(self, cause: Cause) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Pull, weight and jump along the directions of a cause, shapes [s], [s, s] and [s]."""
        at = list(cause.places)
        g, G, jumps = self._pulls[at], self._weights[np.ix_(at, at)], self._jumps[at]
        if not cause.common:
            return g, G, jumps
        return np.array([g.sum()]), np.array([[G.sum()]]), jumps[:1]


def causes_of(layout: WatchLayout) -> tuple[Cause, ...]:
    """Everything that can change by itself."""
    parts = (layout.delays, layout.coulomb, layout.viscous, layout.tilt, layout.load)
    delays, coulomb, viscous, tilt, load = (tuple(range(part.start, part.stop)) for part in parts)
    states = layout.states
    single = (
        Cause(states[k].family, states[k].subject, (k,))
        for part in (layout.gains, layout.offsets, layout.delays, layout.zeros)
        for k in range(part.start, part.stop)
    )
    return (
        *single,
        *(Cause(states[c].family, states[c].subject, (c, v)) for c, v in zip(coulomb, viscous, strict=True)),
        Cause(Family.COMMON_DELAY, "", delays, common=True),
        Cause(Family.TILT, "", tilt),
        Cause(None, "", load),
    )


def limits_of(causes: Sequence[Cause], layout: WatchLayout, friction: FloatArray, sigma: FloatArray) -> FloatArray:
    """Sizes from which on each is said, in tolerances of its first state.

    Args:
        causes: everything that can change.
        layout: of the states.
        friction: of every joint at the speed of its training [N m or N], shape [n].
        sigma: noise of every channel's residual [N m or N], shape [m].
    """
    limits, tolerances = np.full(len(causes), _LARGE), layout.tolerances
    for k, cause in enumerate(causes):
        place = cause.places[0]
        if cause.family is Family.DRIFT:
            limits[k] = max(_LARGE, _NOISE * sigma[place - layout.offsets.start] / tolerances[place])
        elif cause.family is Family.FRICTION_DRIFT:
            j = place - layout.coulomb.start
            grown = _GROWN * friction[j] / tolerances[place] or _LARGE
            limits[k] = max(min(_LARGE, grown), _NOISE * sigma[j - layout.joints] / tolerances[place])
    return limits


def ordinary_friction(standard: FloatArray, parameters: Iterable[Parameter], layout: WatchLayout) -> FloatArray:
    """Friction of every joint at the speed of its training, as it was identified [N m or N], shape [n].

    Args:
        standard: full parameter vector, shape [p].
        parameters: what they are.
        layout: of the states.
    """
    out = np.zeros(layout.joints)
    for value, parameter in zip(standard, parameters, strict=True):
        if parameter.quantity in ("coulomb", "motor_coulomb"):
            out[parameter.body] += value
        elif parameter.quantity in ("viscous", "motor_viscous"):
            out[parameter.body] += value * layout.speed[parameter.body]
    return np.abs(out)
