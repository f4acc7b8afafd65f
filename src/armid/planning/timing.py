"""The fastest speed along a path within limits on velocity, acceleration and torque."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.planning import phase_plane
from armid.planning.constraints import Constraints
from armid.planning.errors import StuckError

_RETRIES = 60
"""How often a point that turns out to lead nowhere is excluded before giving up; none is needed without strong friction."""

_EXCLUDED = 0.97
"""What is left of the squared speed at such a point."""


@dataclass(frozen=True, eq=False)
class SpeedProfile:
    """theta'^2 over theta, acceleration constant between points.

    Args:
        theta: points, shape [n + 1].
        x: squared speed, shape [n + 1].
        tops: largest squared speed from which the end can still be reached, shape [n + 1].
    """

    theta: FloatArray
    x: FloatArray
    tops: FloatArray

    @property
    def duration(self) -> float:
        """[s]"""
        speed = np.sqrt(self.x)
        return float((2.0 * np.diff(self.theta) / (speed[1:] + speed[:-1])).sum())


def fastest(constraints: Constraints, *, start_speed: float = 0.0, end_speed: float = 0.0) -> SpeedProfile:
    """The fastest speed profile within the constraints.

    Args:
        constraints: at ascending points.
        start_speed, end_speed: theta' at the ends [1/s].

    Raises:
        StuckError: no motion reaches the end.
    """
    theta = np.ascontiguousarray(constraints.reduced.theta)
    path = constraints.reduced.path
    common = (constraints.table, constraints.bounds, constraints.kappa**2, constraints.variance)
    caps = np.array(constraints.caps)
    tops, x, u = np.zeros(len(theta)), np.zeros(len(theta)), np.zeros(len(theta) - 1)
    last = len(theta) - 1
    bad = phase_plane.backward(caps, last, min(end_speed**2, caps[last]), theta, *common, tops)
    for _ in range(_RETRIES):
        if bad >= 0:
            raise StuckError(path.place(float(theta[bad])), "no speed is possible there that leads on to the end")
        if start_speed**2 > tops[0] * (1.0 + 1e-9):
            raise StuckError(
                path.place(0.0), f"a start at {start_speed:g} is too fast, the limit is {np.sqrt(tops[0]):g}"
            )
        stuck = phase_plane.forward(start_speed**2, theta, *common, tops, x, u)
        if stuck < 0:
            return SpeedProfile(theta, x, tops)
        if stuck == 0 or x[stuck] <= 0.0:
            break
        caps[stuck] = _EXCLUDED * x[stuck]
        bad = phase_plane.backward(caps, stuck, caps[stuck], theta, *common, tops)
    raise StuckError(path.place(float(theta[max(stuck, 0)])), "the limits leave no acceleration that leads on")
