"""A path q = Phi(theta) in joint space, with three derivatives by its parameter: [Kolyubin2017] eq. 27."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy.interpolate import BSpline, make_interp_spline

from armid.arrays import FloatArray, read_only, samples
from armid.errors import InputError
from armid.motions.trajectory import Trajectory, times
from armid.planning.errors import SingularPathError

_DEGREE = 5
"""Jerk needs a continuous third derivative of the path."""

_SAME_POINT = 1e-9
"""[rad or m] Waypoints closer than this are the same point: far below any encoder."""

STANDSTILL = 1e-6
"""|Phi'| relative to its largest value, below which the path has no direction."""

_HALVINGS = 40
"""Of an interval in which the path turns: a smooth path either shows its turn or comes to a standstill long before."""

Derivatives = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Phi, Phi', Phi'', Phi''' at the parameters asked for, each of shape [n, n_joints]."""


@runtime_checkable
class Path(Protocol):
    """A smooth curve in the space of drive positions, for parameters from 0 to `length`."""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """From base to tip."""

    @property
    def length(self) -> float:
        """The last parameter."""

    def derivatives(self, theta: npt.ArrayLike) -> Derivatives:
        """Positions and their derivatives by theta."""

    def place(self, theta: float) -> str:
        """Where a parameter is, in words."""


@dataclass(frozen=True, eq=False)
class SplinePath:
    """The quintic spline through waypoints; its parameter is the length of the chords between them [rad or m].

    Args:
        joint_names: columns.
        waypoints: drive positions [rad or m], shape [n_waypoints, n_joints].
        straight_ends: second and third derivatives vanish at both ends, so that two waypoints give a straight line;
            otherwise the first and last three pieces are one polynomial, which suits dense points of a smooth curve.
    """

    joint_names: tuple[str, ...]
    waypoints: FloatArray
    straight_ends: bool = True

    def __post_init__(self) -> None:
        points = read_only(samples("waypoints", self.waypoints, len(self.joint_names)))
        object.__setattr__(self, "waypoints", points)
        least = 2 if self.straight_ends else _DEGREE + 1
        if len(points) < least:
            raise InputError(
                "path", f"{len(points)} waypoint(s)", f"at least {'two' if least == 2 else least} are needed"
            )
        steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
        if (steps < _SAME_POINT).any():
            k = int(np.argmax(steps < _SAME_POINT))
            raise SingularPathError(
                f"waypoints {k + 1} and {k + 2}",
                "are the same point, so the path has no direction there",
                "leave one of them out; a pause is not part of a path",
            )

    @cached_property
    def knots(self) -> FloatArray:
        """Parameters of the waypoints, shape [n_waypoints]."""
        steps = np.linalg.norm(np.diff(self.waypoints, axis=0), axis=1)
        return read_only(np.concatenate([[0.0], np.cumsum(steps)]))

    @property
    def length(self) -> float:
        return float(self.knots[-1])

    @cached_property
    def _splines(self) -> tuple[BSpline, ...]:
        zero = np.zeros(len(self.joint_names))
        straight = [(2, zero), (3, zero)]
        ends = (straight, straight) if self.straight_ends else None
        spline = make_interp_spline(self.knots, self.waypoints, k=_DEGREE, bc_type=ends)
        return spline, *(spline.derivative(order) for order in (1, 2, 3))

    def derivatives(self, theta: npt.ArrayLike) -> Derivatives:
        t = np.clip(times(theta), 0.0, self.length)
        value, first, second, third = (np.asarray(spline(t)) for spline in self._splines)
        return value, first, second, third

    def place(self, theta: float) -> str:
        k = int(np.clip(np.searchsorted(self.knots, theta, side="right") - 1, 0, len(self.knots) - 2))
        share = (theta - self.knots[k]) / (self.knots[k + 1] - self.knots[k])
        where = f"{100 * share:.0f} % of the way from waypoint {k + 1} to {k + 2}"
        return f"{where}, {100 * theta / self.length:.1f} % of the path"


@dataclass(frozen=True, eq=False)
class TrajectoryPath:
    """The path of a motion (a Fourier series, a spline, a table), its own timing forgotten; the parameter is its time [s].

    Args:
        trajectory: that never stands still on the way.
    """

    trajectory: Trajectory

    @property
    def joint_names(self) -> tuple[str, ...]:
        return self.trajectory.joint_names

    @property
    def length(self) -> float:
        return self.trajectory.duration

    def derivatives(self, theta: npt.ArrayLike) -> Derivatives:
        t = np.clip(times(theta), 0.0, self.length)
        return *self.trajectory.sample(t), self.trajectory.jerk(t)

    def place(self, theta: float) -> str:
        return f"{theta:.4g} s into the motion it follows, {100 * theta / self.length:.1f} % of the path"


_EASED = 0.15
"""Share of the parameter at either end over which an eased path gathers speed."""


@dataclass(frozen=True, eq=False)
class EasedPath:
    """The same path with a parameter from 0 to 1 that leaves and enters the ends like the cube of time.

    A motion at rest with zero acceleration at the ends has a positive, smooth parameter speed here: nothing is singular.

    Args:
        path: any path.
    """

    path: Path

    @property
    def joint_names(self) -> tuple[str, ...]:
        return self.path.joint_names

    @property
    def length(self) -> float:
        return 1.0

    def inner(self, sigma: npt.ArrayLike) -> Derivatives:
        """The original parameter and its three derivatives, each of shape [n]."""
        s = np.clip(times(sigma), 0.0, 1.0)
        z = np.clip(np.minimum(s, 1.0 - s) / _EASED, 0.0, 1.0)
        scale = self.path.length / (1.0 - 0.8 * _EASED)
        rise = _EASED * (2.0 * z**3 - 2.0 * z**4 + 0.6 * z**5)
        middle = np.minimum(s, 1.0 - s) - _EASED + 0.6 * _EASED
        near = scale * np.where(z < 1.0, rise, middle)
        sign = np.where(s <= 0.5, 1.0, -1.0)
        value = np.where(s <= 0.5, near, self.path.length - near)
        first = scale * z**2 * (6.0 - 8.0 * z + 3.0 * z**2)
        second = sign * scale * 12.0 * z * (1.0 - z) ** 2 / _EASED
        third = scale * 12.0 * (1.0 - z) * (1.0 - 3.0 * z) / _EASED**2
        return value, first, second, third

    def derivatives(self, theta: npt.ArrayLike) -> Derivatives:
        at, w1, w2, w3 = (x[:, np.newaxis] for x in self.inner(theta))
        q, d1, d2, d3 = self.path.derivatives(at[:, 0])
        return q, d1 * w1, d2 * w1**2 + d1 * w2, d3 * w1**3 + 3.0 * d2 * w1 * w2 + d1 * w3

    def place(self, theta: float) -> str:
        return self.path.place(float(self.inner(theta)[0][0]))


@dataclass(frozen=True, eq=False)
class ReorderedPath:
    """A path with its columns in another order."""

    path: Path
    order: tuple[int, ...]

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(self.path.joint_names[k] for k in self.order)

    @property
    def length(self) -> float:
        return self.path.length

    def derivatives(self, theta: npt.ArrayLike) -> Derivatives:
        value, first, second, third = (x[:, list(self.order)] for x in self.path.derivatives(theta))
        return value, first, second, third

    def place(self, theta: float) -> str:
        return self.path.place(theta)


def in_joint_order(path: Path, names: Sequence[str]) -> Path:
    """The path with its columns in the robot's order.

    Raises:
        InputError: other joints than the robot has.
    """
    if tuple(path.joint_names) == tuple(names):
        return path
    if sorted(path.joint_names) != sorted(names):
        raise InputError("path", f"moves {', '.join(path.joint_names)}", f"the arm has {', '.join(names)}")
    return ReorderedPath(path, tuple(path.joint_names.index(name) for name in names))


def regular_grid(path: Path, theta: npt.ArrayLike) -> FloatArray:
    """The grid with points added wherever the path turns by more than a right angle between two of its points.

    Whether a path can be followed is a property of the path and not of its grid: a tight turn that a coarse grid steps over is
    resolved, a turn on the spot is not, however close the points.

    Args:
        path: whose direction must vanish nowhere.
        theta: ascending parameters, shape [n].

    Returns:
        Ascending parameters, those given among them.

    Raises:
        SingularPathError: at the first place where the path has no direction.
    """
    grid = times(theta)
    slope = path.derivatives(grid)[1]
    largest = float(np.linalg.norm(slope, axis=1).max())
    for _ in range(_HALVINGS):
        _check_moving(path, grid, slope, largest)
        turned = np.einsum("ij,ij->i", slope[:-1], slope[1:]) < 0.0
        if not turned.any():
            return grid
        places = np.flatnonzero(turned)
        middle = 0.5 * (grid[places] + grid[places + 1])
        slope = np.insert(slope, places + 1, path.derivatives(middle)[1], axis=0)
        grid = np.insert(grid, places + 1, middle)
    raise _singular(path, float(grid[places[0]]))


def _check_moving(path: Path, grid: FloatArray, slope: FloatArray, largest: float) -> None:
    """That Phi' vanishes at no point of a grid."""
    still = np.linalg.norm(slope, axis=1) < STANDSTILL * largest
    if still.any():
        raise _singular(path, float(grid[int(np.argmax(still))]))


def _singular(path: Path, theta: float) -> SingularPathError:
    return SingularPathError(
        path.place(theta),
        "singular parameterisation: the path turns back or stands still, so velocity has no direction",
        "split the path there, or round the turn",
    )
