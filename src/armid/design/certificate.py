"""Is a motion within its limits at every instant, also between the samples?

Positions and their derivatives: between two samples a function departs from the straight line by at most
h^2/8 max|f''|, and the families here bound their own derivatives. Torque: the same with the second derivative
taken from the samples and doubled; jumps of Coulomb friction are met by trying both signs around them. Clearances: a
link's point moves at most (length of chain) x (joint speed), so an interval is safe when the clearances at its ends
exceed half of what can be lost in between; intervals where they do not are halved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

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
            found.append((-10.0 * self.clearance, f"{self.closest}: {-self.clearance:.4f} too little"))
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
    t = grid(trajectory.duration, _RATE_HZ)
    q, qd, qdd = trajectory.sample(t)
    values = (q, qd, qdd, trajectory.jerk(t))
    gap = [_between(trajectory, values[order], order, t[1] - t[0]) for order in range(4)]
    centre, half = limits.middle, limits.half_range
    usage = {
        "position": (np.abs(q - centre).max(axis=0) + gap[0]) / half,
        "velocity": (np.abs(qd).max(axis=0) + gap[1]) / limits.velocity,
        "acceleration": (np.abs(qdd).max(axis=0) + gap[2]) / limits.acceleration,
        "jerk": (np.abs(values[3]).max(axis=0) + gap[3]) / limits.jerk,
        "torque": _largest_torque(robot, q, qd, qdd) / limits.torque,
    }
    clearance, closest = _smallest_clearance(trajectory, scene)
    return Certificate(trajectory.joint_names, usage, clearance, closest)


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
    """A lower bound on all clearances over all instants, and which one it is."""
    if not len(scene):
        return float("inf"), ""
    t = grid(trajectory.duration, _CLEARANCE_RATE_HZ)
    left, right = t[:-1], t[1:]
    bounds = np.full(len(scene), np.inf)
    acceleration = np.abs(scene.geometric(trajectory.sample(grid(trajectory.duration, _RATE_HZ))[2])).max(axis=0) * 1.01
    ask = _clearance_function(trajectory, scene)
    for k in range(_REFINEMENTS):
        low, lost = _interval_bounds(ask, left, right, scene, acceleration)
        # Good enough: certainly free, or as precise as the tolerance asks for.
        settled = ((low >= 0.0) | (lost <= CLEARANCE_TOLERANCE)).all(axis=1) | (k == _REFINEMENTS - 1)
        if settled.any():
            bounds = np.minimum(bounds, low[settled].min(axis=0))
        left, right = left[~settled], right[~settled]
        if not len(left):
            break
        middle = (left + right) / 2
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    worst = int(np.argmin(bounds))
    return float(bounds[worst]), scene.names[worst]


Clearances = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Clearances and absolute geometric joint velocities at given times."""


def _clearance_function(trajectory: Trajectory, scene: Scene) -> Clearances:
    """Clearances and speeds along a motion."""

    def ask(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        q, qd, _ = trajectory.sample(t)
        return scene.clearances(q), np.abs(scene.geometric(qd))

    return ask


def _interval_bounds(
    ask: Clearances, left: FloatArray, right: FloatArray, scene: Scene, acceleration: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Lower bound of each clearance on each interval, and how much of it is due to the interval's length.

    With Lipschitz constant L: min >= (c_left + c_right - L h) / 2.
    """
    (c0, v0), (c1, v1) = ask(left), ask(right)
    h = (right - left)[:, np.newaxis]
    speed = np.maximum(v0, v1) + acceleration * h / 2
    lost = (speed @ scene.rates.T) * h / 2
    return (c0 + c1) / 2 - lost, lost - np.abs(c0 - c1) / 2
