"""The motions of the study: random way-points, an optimised one of the same length, and one to test on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from armid.arrays import FloatArray
from armid.design.approach import edge_is_free
from armid.design.optimise import design_excitation
from armid.design.search import Budget, Watcher
from armid.design.statement import DesignSettings
from armid.errors import InputError
from armid.identifiability.expectation import trajectory_condition
from armid.kernels.evaluate import evaluate_rows
from armid.motions.limits import DEFAULT_MARGIN, InfeasibleError, MotionLimits, motion_limits
from armid.motions.trajectory import Trajectory, grid
from armid.motions.trajectory_files import load_trajectory
from armid.motions.trapezoid import TrapezoidalTrajectory
from armid.parameters.effects import Effects
from armid.robot.robot import Robot
from armid.rows.nominal_torque import NominalTorque
from armid.scene.scene import Scene, build_scene
from armid.unfinished import UnfinishedWork

WAYPOINTS, OPTIMISED = "random way-points", "optimised motion"

DESIGN_EFFECTS = Effects(viscous=True, coulomb=True)
"""What the condition number of a motion is about: links and joint friction. Drives see the same velocities."""

_MOST_POINTS = 400
_MOST_TRIES = 2000
"""Random poses tried for the next way-point before a cell counts as too narrow."""

_SLOWER = 0.85
"""Factor on the accelerations of a motion that asks for too much torque."""

_CHECK_HZ = 100.0


@dataclass(frozen=True, eq=False)
class Room:
    """What a motion may use.

    Args:
        robot: the arm as described, with the heaviest payload of the study on its last link.
        limits: less the margin that designs keep.
        scene: clearances of the arm from itself.
    """

    robot: Robot
    limits: MotionLimits
    scene: Scene


def room_of(robot: Robot) -> Room:
    """The space of an arm in empty surroundings."""
    return Room(robot, motion_limits(robot)[0].within(DEFAULT_MARGIN), build_scene(robot, None, self_collision=True))


@dataclass(frozen=True, eq=False)
class StudyMotion:
    """A motion and how well conditioned it is.

    Args:
        name: in tables and pictures.
        trajectory: what is commanded.
        condition_number: of the stacked base regressor, 2-norm, SI units.
        remark: how it was found.
    """

    name: str
    trajectory: Trajectory
    condition_number: float
    remark: str


def random_points(room: Room, seconds: float, rng: np.random.Generator) -> TrapezoidalTrajectory:
    """Straight ways with trapezoidal velocity through random poses, exactly `seconds` long, free of collisions.

    Poses are added until the time is used up; the last one is drawn nearer until it is used up exactly.
    """
    points = [_free_pose(room, None, rng)]
    while True:
        points.append(_free_pose(room, points[-1], rng))
        motion = _through(room, points)
        if motion.duration >= seconds:
            return _shorten(room, points, seconds)
        if len(points) >= _MOST_POINTS:
            raise InfeasibleError(
                f"{_MOST_POINTS} way-points take {motion.duration:.3g} s, {seconds:g} s are asked for"
            )


def _free_pose(room: Room, before: FloatArray | None, rng: np.random.Generator) -> FloatArray:
    """A random pose that can be reached straight from the one before."""
    for _ in range(_MOST_TRIES):
        pose = rng.uniform(room.limits.lower, room.limits.upper)
        if room.scene.is_free(pose)[0] and (before is None or edge_is_free(room.scene, before, pose)):
            return pose
    raise InfeasibleError(f"none of {_MOST_TRIES} random poses of {room.robot.name} can be reached without a collision")


def _through(room: Room, points: list[FloatArray], ease: float = 1.0) -> TrapezoidalTrajectory:
    limits = room.limits
    return TrapezoidalTrajectory(
        room.robot.joint_names, np.array(points), limits.velocity, np.asarray(ease * limits.acceleration)
    )


def _shorten(room: Room, points: list[FloatArray], seconds: float) -> TrapezoidalTrajectory:
    """The motion cut to length within its torque limits: slower accelerations while it asks for too much."""
    ease = 1.0
    while _torque_usage(room, _through(room, points, ease)) > 1.0:
        ease *= _SLOWER
    while _through(room, points[:-1], ease).duration >= seconds:
        points = points[:-1]
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if _through(room, _part_way(points, middle), ease).duration > seconds:
            high = middle
        else:
            low = middle
    return _through(room, _part_way(points, low), ease)


def _part_way(points: list[FloatArray], share: float) -> list[FloatArray]:
    return [*points[:-1], points[-2] + share * (points[-1] - points[-2])]


def _torque_usage(room: Room, motion: Trajectory) -> float:
    """Largest share of a torque limit that the described arm needs."""
    x = np.hstack(motion.sample(grid(motion.duration, _CHECK_HZ)))
    return float((np.abs(evaluate_rows(NominalTorque(room.robot), x)[:, :, 0]) / room.limits.torque).max())


def waypoint_motion(room: Room, seconds: float, seed: Sequence[int]) -> StudyMotion:
    """Random way-points with trapezoidal velocity, [Kolyubin2017]'s RP."""
    motion = random_points(room, seconds, np.random.default_rng([*seed]))
    return StudyMotion(
        WAYPOINTS,
        motion,
        trajectory_condition(room.robot, DESIGN_EFFECTS, motion),
        f"{len(motion.waypoints)} way-points",
    )


def optimised_motion(
    room: Room,
    seconds: float,
    *,
    starts: int,
    harmonics: int,
    seed: int,
    watch: Watcher | None = None,
    kept: UnfinishedWork | None = None,
    name: str = "search",
) -> StudyMotion:
    """The best Fourier series of a search, [Kolyubin2017]'s OT; a number of starts, unlike a time, repeats exactly."""
    settings = DesignSettings(effects=DESIGN_EFFECTS, periods=(seconds,), harmonics=harmonics)
    budget = Budget(seconds=None, starts=starts, workers=1)
    design = design_excitation(room.robot, settings, budget=budget, seed=seed, watch=watch, kept=kept, name=name)
    remark = f"{harmonics} harmonics, best of {design.search.polished}"
    return StudyMotion(OPTIMISED, design.trajectory, design.condition_number, remark)


def stored_motion(room: Room, path: Path) -> StudyMotion:
    """A motion designed before.

    Raises:
        InputError: not a trajectory, or one of another arm.
    """
    trajectory = load_trajectory(path)
    if len(trajectory.joint_names) != room.robot.n_joints:
        raise InputError(
            path, f"moves {len(trajectory.joint_names)} joints", f"{room.robot.name} has {room.robot.n_joints}"
        )
    condition = trajectory_condition(room.robot, DESIGN_EFFECTS, trajectory)
    return StudyMotion(OPTIMISED, trajectory, condition, f"read from {path.name}")
