"""Is a motion within its limits at every instant, also between the samples?

Positions and their derivatives: between two samples a function departs from the straight line by at most
h^2/8 max|f''|, and the families here bound their own derivatives. Torque: the same with the second derivative
taken from the samples and doubled; jumps of Coulomb friction are met by trying both signs around them. Clearances: a
link's point moves at most (length of chain) x (joint speed), so an interval is safe when the clearances at its ends
exceed half of what can be lost in between; intervals where they do not are halved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.kernels.evaluate import evaluate_rows
from armid.motions.fourier import FourierTrajectory
from armid.motions.limits import MotionLimits
from armid.motions.spline import DEGREE, SplineTrajectory
from armid.motions.trajectory import SequenceTrajectory, Trajectory, grid
from armid.robot.robot import Robot
from armid.rows.nominal_torque import NominalTorque
from armid.scene.scene import Scene

QUANTITIES = ("position", "velocity", "acceleration", "jerk", "torque")

_RATE_HZ = 1000.0
"""Samples for limits; the bound between them is then about a millionth of the limit."""

_CLEARANCE_RATE_HZ = 100.0
"""First samples for clearances; refined where needed."""

CLEARANCE_TOLERANCE = 1e-4
"""[m]: half-way between what simulation and reality agree on and the margin; also stops the refinement."""

USAGE_TOLERANCE = 1e-9
"""Round-off of a ratio that is exactly one by construction."""

_REFINEMENTS = 12
"""Halvings from 10 ms down to 2.4 microseconds, where nothing moves more than the tolerance."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """What was proven about a motion.

    Args:
        joint_names: columns of the usages.
        usage: for each of `QUANTITIES` the worst ratio to the limit over all instants, shape [n_joints]; 1 is at the limit.
        clearance: no clearance falls below this [m], margins already taken off; infinite when there is none to keep.
        closest: what comes closest.
    """

    joint_names: tuple[str, ...]
    usage: dict[str, FloatArray]
    clearance: float
    closest: str

    @property
    def worst(self) -> float:
        """Largest usage of all."""
        return max(float(values.max()) for values in self.usage.values())

    @property
    def kinematic_worst(self) -> float:
        """Largest usage without torque."""
        return max(float(self.usage[name].max()) for name in QUANTITIES[:4])

    @property
    def feasible(self) -> bool:
        return self.worst <= 1.0 + USAGE_TOLERANCE and self.clearance >= -CLEARANCE_TOLERANCE

    @property
    def violations(self) -> tuple[str, ...]:
        """Every broken constraint in words, worst first."""
        found = []
        for name, values in self.usage.items():
            for joint, value in zip(self.joint_names, values, strict=True):
                if value > 1.0 + USAGE_TOLERANCE:
                    found.append((value - 1.0, f"{name} of {joint} at {100 * value:.1f} % of its limit"))
        if self.clearance < -CLEARANCE_TOLERANCE:
            found.append((-10.0 * self.clearance, f"{self.closest}: {-self.clearance:.4f} m too little"))
        return tuple(text for _, text in sorted(found, reverse=True))


def certify(trajectory: Trajectory, robot: Robot, limits: MotionLimits, scene: Scene) -> Certificate:
    """Proves or refutes that a motion keeps its limits and clearances.

    Args:
        trajectory: the motion; one period is enough for a repeated one.
        robot: for torques.
        limits: margins already taken off.
        scene: clearances.
    """
    parts = trajectory.parts if isinstance(trajectory, SequenceTrajectory) else (_one_period(trajectory),)
    each = [_certify_part(part, robot, limits, scene) for part in parts]
    usage = {name: np.max([c.usage[name] for c in each], axis=0) for name in QUANTITIES}
    worst = min(each, key=lambda c: c.clearance)
    return Certificate(trajectory.joint_names, usage, worst.clearance, worst.closest)


def _one_period(trajectory: Trajectory) -> Trajectory:
    """A repeated motion once; any other as it is."""
    if isinstance(trajectory, FourierTrajectory | SplineTrajectory):
        return trajectory.repeated(1)
    return trajectory


def _certify_part(trajectory: Trajectory, robot: Robot, limits: MotionLimits, scene: Scene) -> Certificate:
    """One smooth motion."""
    q, qd, qdd = trajectory.sample(grid(trajectory.duration, _RATE_HZ))
    usage = kinematic_usage(trajectory, limits) | {"torque": _largest_torque(robot, q, qd, qdd) / limits.torque}
    clearance, closest = _smallest_clearance(trajectory, scene)
    return Certificate(trajectory.joint_names, usage, clearance, closest)


def kinematic_usage(trajectory: Trajectory, limits: MotionLimits) -> dict[str, FloatArray]:
    """Largest use of the limits of position and its derivatives over all instants of one smooth motion, by quantity.

    Args:
        trajectory: the motion; one period is enough for a repeated one.
        limits: margins already taken off.
    """
    t = grid(trajectory.duration, _RATE_HZ)
    q, qd, qdd = trajectory.sample(t)
    values = (q, qd, qdd, trajectory.jerk(t))
    gap = [_between(trajectory, values[order], order, t[1] - t[0]) for order in range(4)]
    return {
        "position": (np.abs(q - limits.middle).max(axis=0) + gap[0]) / limits.half_range,
        "velocity": (np.abs(qd).max(axis=0) + gap[1]) / limits.velocity,
        "acceleration": (np.abs(qdd).max(axis=0) + gap[2]) / limits.acceleration,
        "jerk": (np.abs(values[3]).max(axis=0) + gap[3]) / limits.jerk,
    }


def _between(trajectory: Trajectory, values: FloatArray, order: int, h: float) -> FloatArray:
    """How far a derivative can rise above its samples between them, shape [n_joints]: h^2/8 max|f''|."""
    if isinstance(trajectory, FourierTrajectory):
        return h**2 / 8 * trajectory.derivative_bound(order + 2)
    if isinstance(trajectory, SplineTrajectory) and order + 2 <= DEGREE:
        return h**2 / 8 * trajectory.derivative_bound(order + 2)
    # Piecewise polynomials and tables: second differences are h^2 f'' up to the next order; doubled for safety.
    finite = np.where(np.isfinite(values), values, 0.0)
    return np.abs(np.diff(finite, 2, axis=0)).max(axis=0, initial=0.0) / 4


def _largest_torque(robot: Robot, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
    """Bound on |torque| over all instants, shape [n_joints]."""
    x = np.hstack([q, qd, qdd])
    smooth = evaluate_rows(NominalTorque(robot, coulomb=False), x)[:, :, 0]
    gap = np.abs(np.diff(smooth, 2, axis=0)).max(axis=0, initial=0.0) / 4
    jump = robot.drive("coulomb") * np.sign(qd)
    # Around each sample the sign may be its own or a neighbour's.
    neighbours = (jump, np.vstack([jump[:1], jump[:-1]]), np.vstack([jump[1:], jump[-1:]]))
    return np.max([np.abs(smooth + sign).max(axis=0) for sign in neighbours], axis=0) + gap


def _smallest_clearance(trajectory: Trajectory, scene: Scene) -> tuple[float, str]:
    """A lower bound on all clearances over all instants, and which one it is.

    For a motion that is certainly too close somewhere it is the closest approach at the instants looked at.
    """
    if not len(scene):
        return float("inf"), ""
    acceleration = np.abs(scene.geometric(trajectory.sample(grid(trajectory.duration, _RATE_HZ))[2])).max(axis=0) * 1.01
    bounds = np.full(len(scene), np.inf)
    rows = np.arange(len(scene))
    t = grid(trajectory.duration, _CLEARANCE_RATE_HZ)
    c, v = _look(trajectory, scene, t)
    left, right = _Ends(t[:-1], c[:-1], v[:-1]), _Ends(t[1:], c[1:], v[1:])
    for k in range(_REFINEMENTS):
        low, lost = _interval_bounds(left, right, scene.rates[rows], acceleration)
        ends = np.minimum(left.clearance, right.clearance)
        broken = np.asarray((ends < -CLEARANCE_TOLERANCE).any(axis=1))
        # Good enough: certainly free, certainly not, or as precise as the tolerance asks for.
        sure = np.asarray(((low >= 0.0) | (lost <= CLEARANCE_TOLERANCE)).all(axis=1))
        settled = broken | sure | (k == _REFINEMENTS - 1)
        reached = np.where(broken[:, np.newaxis], ends, low)
        bounds[rows] = np.minimum(bounds[rows], reached[settled].min(axis=0, initial=np.inf))
        # Once it is too close at one instant, no look at the others makes the motion any better.
        if settled.all() or broken.any():
            break
        # Clearances that are certainly kept on all intervals that are left need no closer look.
        open_rows = np.asarray((low[~settled] < 0.0).any(axis=0))
        kept = ~open_rows
        bounds[rows[kept]] = np.minimum(bounds[rows[kept]], low[~settled][:, kept].min(axis=0, initial=np.inf))
        rows = rows[open_rows]
        left, right = _halved(
            trajectory, scene.only(rows), left.part(~settled, open_rows), right.part(~settled, open_rows)
        )
    worst = int(np.argmin(bounds))
    return float(bounds[worst]), scene.names[worst]


@dataclass(frozen=True, eq=False)
class _Ends:
    """One end of each interval: its time [s], clearances [n, rows] and absolute geometric joint velocities [n, n_joints]."""

    time: FloatArray
    clearance: FloatArray
    speed: FloatArray

    def part(self, intervals: npt.NDArray[np.bool_], rows: npt.NDArray[np.bool_]) -> _Ends:
        return _Ends(self.time[intervals], self.clearance[intervals][:, rows], self.speed[intervals])

    def and_also(self, other: _Ends) -> _Ends:
        return _Ends(
            np.concatenate([self.time, other.time]),
            np.vstack([self.clearance, other.clearance]),
            np.vstack([self.speed, other.speed]),
        )


def _look(trajectory: Trajectory, scene: Scene, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Clearances and absolute geometric joint velocities at given times."""
    q, qd, _ = trajectory.sample(t)
    return scene.clearances(q), np.abs(scene.geometric(qd))


def _halved(trajectory: Trajectory, scene: Scene, left: _Ends, right: _Ends) -> tuple[_Ends, _Ends]:
    """Both ends of the two halves of every interval."""
    t = (left.time + right.time) / 2
    middle = _Ends(t, *_look(trajectory, scene, t))
    return left.and_also(middle), middle.and_also(right)


def _interval_bounds(
    left: _Ends, right: _Ends, rates: FloatArray, acceleration: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Lower bound of each clearance on each interval, and how much of it is due to the interval's length.

    With Lipschitz constant L: min >= (c_left + c_right - L h) / 2.
    """
    c0, c1 = left.clearance, right.clearance
    h = (right.time - left.time)[:, np.newaxis]
    speed = np.maximum(left.speed, right.speed) + acceleration * h / 2
    lost = (speed @ rates.T) * h / 2
    return (c0 + c1) / 2 - lost, lost - np.abs(c0 - c1) / 2
