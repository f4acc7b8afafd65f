"""From a robot to a certified excitation trajectory: the one call behind `armid design`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import floor

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, finite
from armid.design.approach import safe_transition
from armid.design.basis import Basis, FourierBasis, SplineBasis
from armid.design.candidate import Candidate, Workshop
from armid.design.cell import Cell
from armid.design.certificate import Certificate, certify
from armid.design.criterion import Criterion, Quality
from armid.design.excitation import Excitation
from armid.design.fourier import FourierTrajectory
from armid.design.goals import Goals
from armid.design.hulls import HullCheck, hull_check
from armid.design.limits import InfeasibleError, MotionLimits, motion_limits
from armid.design.nominal_torque import NominalTorque
from armid.design.scene import Scene, build_scene
from armid.design.search import Budget, Search, Watcher, search
from armid.design.spline import SplineTrajectory
from armid.design.trajectory import SequenceTrajectory, Trajectory
from armid.design.trapezoid import TrapezoidalTrajectory, random_waypoints
from armid.errors import InputError, ShapeError
from armid.experiments.torque import TorqueRows
from armid.identifiability.base import BaseParameters
from armid.identifiability.structure import structural_base
from armid.information.accumulate import accumulate
from armid.information.information import Information
from armid.kernels.evaluate import Restricted, evaluate_rows
from armid.notes import Note, Severity
from armid.parameters.effects import Effects
from armid.parameters.inertial import from_centre_of_mass
from armid.robot.geometry import Capsule
from armid.robot.robot import Robot

REPORT_RATE_HZ = 100.0
"""Rate at which condition numbers are reported: that of the iiwa thesis; more samples change the third digit."""

DEFAULT_MARGIN = 0.05
"""Fraction of every limit left unused: tracking overshoot and model error of the torques."""


@dataclass(frozen=True, eq=False)
class DesignSettings:
    """What is asked of an excitation trajectory.

    Args:
        effects: what will be estimated besides the links.
        periods: to try [s].
        harmonics: of the Fourier series.
        knots: use splines with this many knots instead of Fourier series.
        start: pose at which it starts and ends at rest, shape [n_joints]; free when None.
        margin: fraction of every limit left unused.
        limits: which kinds of limits count.
        analytic: whether sums of amplitudes must keep position and velocity limits too (iiwa thesis, eqs. 3.55d-f).
        resonance_hz: the highest harmonic stays below it.
        self_collision: whether the arm keeps clear of itself.
        criterion: what is improved.
        noise: standard deviation of each channel's torque [N m or N]; equal when None.
        goal_condition: condition number to attain, with `goal_reserve`; found by a first run when None.
        goal_reserve: joint name -> mean torque reserve to attain, as a fraction of the limit.
        goal_weights: how a miss of each goal counts, condition number first; the goals themselves when None.
        repetitions: periods to run.
        home: pose the robot comes from and goes back to; none for the bare excitation.
    """

    effects: Effects = field(default_factory=lambda: Effects(viscous=True, coulomb=True))
    periods: tuple[float, ...] = (20.0,)
    harmonics: int = 10
    knots: int | None = None
    start: npt.ArrayLike | None = None
    margin: float = DEFAULT_MARGIN
    limits: frozenset[str] = frozenset(("position", "velocity", "acceleration", "jerk", "torque"))
    analytic: bool = False
    resonance_hz: float | None = None
    self_collision: bool = True
    criterion: Criterion = Criterion.CONDITION
    noise: npt.ArrayLike | None = None
    goal_condition: float | None = None
    goal_reserve: dict[str, float] = field(default_factory=dict)
    goal_weights: npt.ArrayLike | None = None
    repetitions: int = 1
    home: npt.ArrayLike | None = None


@dataclass(frozen=True, eq=False)
class Design:
    """A certified excitation trajectory and what it will tell.

    Args:
        robot: the arm.
        settings: what was asked.
        trajectory: everything the robot runs: approach, repetitions, return.
        excitation: one period of it.
        base: the parameters it excites.
        condition_number: 2-norm, SI units, of the stacked base regressor at `REPORT_RATE_HZ`.
        condition_number_scaled: with columns scaled to unit norm.
        certificate: of `trajectory`, against `limits`.
        limit_usage: worst ratio to each of the robot's own limits, margins included and whether they counted or not.
        limits: that were kept, margins taken off.
        scene: clearances that were kept.
        deviations: predicted standard deviation of each base parameter for one period, shape [r].
        misses: of the goals, in the order condition number, joints; empty without goals.
        search: how it was found.
        notes: what the reader must know.
        hulls: closest approach of the real shapes; None when the arm has none.
        baseline: condition number of trapezoidal motion through random way-points of the same length, not optimised.
    """

    robot: Robot
    settings: DesignSettings
    trajectory: Trajectory
    excitation: FourierTrajectory | SplineTrajectory
    base: BaseParameters
    condition_number: float
    condition_number_scaled: float
    certificate: Certificate
    limit_usage: dict[str, float]
    limits: MotionLimits
    scene: Scene
    deviations: FloatArray
    misses: FloatArray
    search: Search
    notes: tuple[Note, ...]
    hulls: HullCheck | None
    baseline: float


def design_excitation(
    robot: Robot,
    settings: DesignSettings | None = None,
    *,
    cell: Cell | None = None,
    budget: Budget | None = None,
    seed: int = 0,
    watch: Watcher | None = None,
    resume: Search | None = None,
) -> Design:
    """Searches for the best motion within all limits and certifies it at every instant.

    Args:
        robot: with nominal parameters when torques are limited; a payload belongs to its last link.
        settings: what is asked.
        cell: what surrounds the arm.
        budget: how long to search.
        seed: of everything random.
        watch: told about progress.
        resume: an earlier search to go on from.

    Raises:
        InfeasibleError: no motion keeps the constraints; says which one misses and by how much.
    """
    wanted = settings or DesignSettings()
    bases = families_of(robot, wanted)
    if wanted.goal_reserve and wanted.goal_condition is None:
        wanted = with_found_goal(robot, wanted, cell, bases, budget or Budget(), seed)
        budget = halved(budget or Budget())
    problem, base, notes = stated(robot, wanted, cell)
    check_start(problem, wanted)
    found = search(problem, bases, budget or Budget(), seed=seed, watch=watch, resume=resume)
    if not found.best.feasible:
        assert found.best.certificate is not None
        raise InfeasibleError(
            f"no motion within all limits after {found.explored} starts and {found.seconds:.0f} s; the closest one misses: "
            + "; ".join(found.best.certificate.violations[:4])
            + " (give more time, relax that limit, or use a longer period)"
        )
    return described(problem, wanted, base, bases, found, notes, seed)


GOAL_SLACK = 1.1
"""A goal found by a first run asks for a condition number this much larger than it reached: room for the other goals."""


def with_found_goal(
    robot: Robot, settings: DesignSettings, cell: Cell | None, bases: tuple[Basis, ...], budget: Budget, seed: int
) -> DesignSettings:
    """The settings with a goal for the condition number from a single-objective run in half of the time."""
    alone = replace(settings, goal_reserve={}, goal_weights=None)
    problem, _, _ = stated(robot, alone, cell)
    check_start(problem, alone)
    first = search(problem, bases, halved(budget), seed=seed)
    return replace(settings, goal_condition=GOAL_SLACK * first.best.condition_number)


def halved(budget: Budget) -> Budget:
    return replace(budget, seconds=None if budget.seconds is None else budget.seconds / 2)


def stated(
    robot: Robot, settings: DesignSettings, cell: Cell | None
) -> tuple[Excitation, BaseParameters, tuple[Note, ...]]:
    """The search problem of the settings."""
    rows = TorqueRows(robot, settings.effects)
    base = structural_base(rows, what="joint torque")
    limits, notes = motion_limits(robot)
    notes += torque_notes(robot, settings)
    limits = only(limits.within(settings.margin), settings.limits)
    scene = build_scene(robot, cell, self_collision=settings.self_collision)
    scale = deviation_scale(robot, rows, base) if settings.criterion is Criterion.WORST_DEVIATION else None
    weights = None
    if settings.noise is not None:
        noise = checked("noise", settings.noise, len(rows.channels))
        weights = 1.0 / noise
    problem = Excitation(
        robot, rows, tuple(int(i) for i in base.independent), limits, scene, Quality(settings.criterion, scale=scale),
        weights, goals_of(robot, settings), settings.analytic,
    )  # fmt: skip
    return problem, base, notes + scene.notes


def torque_notes(robot: Robot, settings: DesignSettings) -> tuple[Note, ...]:
    """Warns when torques are limited but the arm's inertia is unknown, so that the limit checks nothing."""
    if "torque" in settings.limits and not robot.inertial.any() and np.isfinite(robot.limit("torque")).any():
        return (
            Note("torque-unchecked", Severity.WARNING,
                 f"{robot.name} has no inertial parameters: torque limits cannot be checked before a first identification"),
        )  # fmt: skip
    return ()


def only(limits: MotionLimits, kinds: frozenset[str]) -> MotionLimits:
    """Limits of the other kinds become infinite; positions always count, since without them no motion is bounded."""
    known = {"position", "velocity", "acceleration", "jerk", "torque"}
    unknown = sorted(kinds - known)
    if unknown:
        raise InputError("limits", f"{unknown[0]!r}", f"known: {', '.join(sorted(known))}")
    off: dict[str, FloatArray | float] = {kind: np.inf for kind in known - kinds - {"position"}}
    return limits.but(**off) if off else limits


def checked(name: str, values: npt.ArrayLike, count: int) -> FloatArray:
    array = finite(name, np.asarray(values, dtype=np.float64))
    if array.shape != (count,):
        raise ShapeError(name, array.shape, f"[{count}]")
    return array


def goals_of(robot: Robot, settings: DesignSettings) -> Goals | None:
    """Goals of the settings; none when only the criterion counts."""
    if settings.goal_condition is None and not settings.goal_reserve:
        return None
    if settings.goal_condition is None or not settings.goal_reserve:
        raise InputError("goals", "a condition number alone", "give at least one torque reserve beside it")
    if settings.criterion is not Criterion.CONDITION:
        raise InputError("goals", f"criterion {settings.criterion}", "goals go with the condition number")
    joints = tuple(robot.joint_index(name) for name in settings.goal_reserve)
    limits = robot.limit("torque")[list(joints)]
    if not np.isfinite(limits).all():
        raise InputError("goals", "a joint without a torque limit", "a reserve is a fraction of it")
    reserve = np.array(list(settings.goal_reserve.values()))
    weights = None if settings.goal_weights is None else checked("goal weights", settings.goal_weights, 1 + len(joints))
    return Goals(settings.goal_condition, joints, limits, reserve, weights)


def families_of(robot: Robot, settings: DesignSettings) -> tuple[Basis, ...]:
    """One family of motions per period, after checking that the period suits the harmonics."""
    start = None if settings.start is None else checked("start", settings.start, robot.n_joints)
    if not settings.periods:
        raise InputError("period", "none given")
    if settings.knots is not None:
        return tuple(SplineBasis(period, settings.knots, start) for period in settings.periods)
    for period in settings.periods:
        check_period(period, settings)
    return tuple(FourierBasis(period, settings.harmonics, start) for period in settings.periods)


def check_period(period: float, settings: DesignSettings) -> None:
    """Whether all harmonics stay below the resonance."""
    if not period > 0.0:
        raise InputError("period", f"{period} s", "must be positive")
    highest = settings.harmonics / period
    if settings.resonance_hz is not None and highest >= settings.resonance_hz:
        raise InfeasibleError(
            f"period {period:g} s is too short for {settings.harmonics} harmonics: the highest reaches {highest:.3g} Hz, "
            f"{highest - settings.resonance_hz:.3g} Hz above the resonance at {settings.resonance_hz:g} Hz; use a period above "
            f"{settings.harmonics / settings.resonance_hz:.3g} s or at most {floor(settings.resonance_hz * period)} harmonics"
        )


def check_start(problem: Excitation, settings: DesignSettings) -> None:
    """Start and home pose must be reachable, free and holdable."""
    robot, limits = problem.robot, problem.limits
    for name, pose in (("start", settings.start), ("home", settings.home)):
        if pose is None:
            continue
        q = checked(name, pose, robot.n_joints)
        outside = np.maximum(limits.lower - q, q - limits.upper)
        if (outside > 0.0).any():
            k = int(np.argmax(outside))
            raise InfeasibleError(
                f"{name} pose: {robot.joint_names[k]} at {q[k]:.4f} is {outside[k]:.4f} outside "
                f"[{limits.lower[k]:.4f}, {limits.upper[k]:.4f}] (margin {100 * settings.margin:g} % included)"
            )
        depth, pair = problem.scene.worst(q)
        if depth < 0.0:
            raise InfeasibleError(f"{name} pose is in collision: {pair}, {-depth:.4f} m too close (margin included)")
        check_holding(problem, name, q)


def check_holding(problem: Excitation, name: str, q: FloatArray) -> None:
    """Whether the torque limits can hold a pose."""
    x = np.concatenate([q, np.zeros(2 * len(q))])
    usage = np.abs(evaluate_rows(NominalTorque(problem.robot), x)[0, :, 0]) / problem.limits.torque
    if usage.max() > 1.0:
        k = int(np.argmax(usage))
        raise InfeasibleError(
            f"{name} pose: holding it takes {100 * usage[k]:.0f} % of the torque limit of {problem.robot.joint_names[k]}"
        )


def described(
    problem: Excitation,
    settings: DesignSettings,
    base: BaseParameters,
    bases: tuple[Basis, ...],
    found: Search,
    notes: tuple[Note, ...],
    seed: int,
) -> Design:
    """The motion around the best candidate, and what it will tell."""
    excitation = Workshop(problem, bases, seed).trajectory(found.best)
    trajectory = complete(problem, settings, excitation, np.random.default_rng([seed, 1_000_003]))
    information = excitation_information(problem.rows, excitation)
    condition, scaled = condition_numbers(information, base)
    proof = certify(trajectory, problem.robot, problem.limits, problem.scene)
    own = certify(trajectory, problem.robot, motion_limits(problem.robot)[0], without_clearances(problem.scene))
    hulls = checked_hulls(problem, settings, trajectory)
    baseline = baseline_motion(problem.robot, excitation.period, np.random.default_rng([seed, 1_000_033]))
    return Design(
        problem.robot, settings, trajectory, excitation, base, condition, scaled, proof,
        {name: float(values.max()) for name, values in own.usage.items()}, problem.limits, problem.scene,
        predicted_deviations(problem, excitation), attained(problem, excitation, condition), found, notes, hulls,
        condition_numbers(excitation_information(problem.rows, baseline), base)[0],
    )  # fmt: skip


def checked_hulls(problem: Excitation, settings: DesignSettings, trajectory: Trajectory) -> HullCheck | None:
    """The real shapes along the motion, when the arm has any beyond capsules.

    Raises:
        InfeasibleError: shapes of links overlap that the capsules did not check.
    """
    bodies = (problem.robot.geometry, *(link.geometry for link in problem.robot.links))
    if not settings.self_collision or all(isinstance(g.shape, Capsule) for geometry in bodies for g in geometry):
        return None
    found = hull_check(problem.robot, trajectory)
    if found.distance < 0.0:
        raise InfeasibleError(
            f"the shapes of {found.pair} overlap by {-found.distance:.4f} m at {found.time:.2f} s, although their capsules were "
            "not checked against each other; narrow a joint's position limits, or turn self-collision off if the shapes are wrong"
        )
    return found


def baseline_motion(robot: Robot, period: float, rng: np.random.Generator) -> TrapezoidalTrajectory:
    """Trapezoidal motion through random way-points, about as long as the excitation: [Kolyubin2017]'s comparison."""
    limits = motion_limits(robot)[0].within(DEFAULT_MARGIN)
    points = 2
    while True:
        motion = random_waypoints(
            robot.joint_names, limits.lower, limits.upper, limits.velocity, limits.acceleration, count=points, rng=rng
        )
        if motion.duration >= period or points >= MOST_WAYPOINTS:
            return motion
        points += 1


MOST_WAYPOINTS = 500


def alternatives(design: Design) -> tuple[Candidate, ...]:
    """All certified motions the search kept, the design's own among them, best first."""
    return tuple(candidate for candidate in design.search.pool if candidate.feasible)


def redesigned(design: Design, candidate: Candidate, *, cell: Cell | None = None, seed: int = 0) -> Design:
    """The same design around another of its certified motions."""
    problem, base, notes = stated(design.robot, design.settings, cell)
    bases = families_of(design.robot, design.settings)
    return described(problem, design.settings, base, bases, replace(design.search, best=candidate), notes, seed)


def without_clearances(scene: Scene) -> Scene:
    """The same arm in empty space, allowed to touch itself."""
    return replace(scene, table=np.zeros((0, 7)), names=())


def complete(
    problem: Excitation,
    settings: DesignSettings,
    excitation: FourierTrajectory | SplineTrajectory,
    rng: np.random.Generator,
) -> Trajectory:
    """Approach from home, the repeated excitation, and the way back."""
    repeated = excitation.repeated(settings.repetitions)
    if settings.home is None:
        return repeated
    home = checked("home", settings.home, problem.robot.n_joints)
    start = excitation.sample(0.0)[0][0]
    approach = safe_transition(problem.robot, home, start, problem.limits, problem.scene, rng=rng)
    return SequenceTrajectory((approach, repeated, approach.reversed()))


def excitation_inputs(trajectory: Trajectory, rate_hz: float = REPORT_RATE_HZ) -> FloatArray:
    """Samples of one period, the end left out when it is the start again, shape [n_samples, 3 n_joints]."""
    count = max(round(trajectory.duration * rate_hz), 2)
    return np.hstack(trajectory.sample(np.arange(count) * (trajectory.duration / count)))


def excitation_information(rows: TorqueRows, trajectory: Trajectory) -> Information:
    """What one run of a motion tells about the standard parameters, with measured values left at zero."""
    x = excitation_inputs(trajectory)
    return accumulate(rows, x, np.zeros((len(x), len(rows.channels))))


def condition_numbers(information: Information, base: BaseParameters) -> tuple[float, float]:
    """2-norm condition number of the stacked base columns: unscaled, and with columns of unit norm."""
    R = information.select(base.independent).stacked()[:-1, :-1]
    norms = np.linalg.norm(R, axis=0)
    return float(np.linalg.cond(R)), float(np.linalg.cond(R / np.where(norms > 0.0, norms, 1.0)))


def trajectory_condition(robot: Robot, effects: Effects, trajectory: Trajectory) -> float:
    """Condition number of any motion for the base parameters of a robot with these effects."""
    rows = TorqueRows(robot, effects)
    return condition_numbers(excitation_information(rows, trajectory), structural_base(rows, what="joint torque"))[0]


NOISE_OF_LIMIT = 0.005
"""Torque noise assumed where none is given, as a fraction of the torque limit; 1 N m where that is unknown."""


def assumed_noise(robot: Robot, channels: int) -> FloatArray:
    """Standard deviation of each channel's torque."""
    limits = robot.limit("torque")
    own = np.where(np.isfinite(limits), NOISE_OF_LIMIT * limits, 1.0)
    return np.tile(own, channels // robot.n_joints)


def predicted_deviations(problem: Excitation, trajectory: Trajectory) -> FloatArray:
    """Standard deviation of each base parameter after one period at `REPORT_RATE_HZ` with white noise, shape [r]."""
    noise = (
        assumed_noise(problem.robot, len(problem.rows.channels)) if problem.weights is None else 1.0 / problem.weights
    )
    A = evaluate_rows(Restricted(problem.rows, problem.columns), excitation_inputs(trajectory))
    R = np.linalg.qr((A / noise[:, np.newaxis]).reshape(-1, A.shape[2]), mode="r")
    return np.linalg.norm(np.linalg.inv(R), axis=1)


def attained(problem: Excitation, trajectory: Trajectory, condition: float) -> FloatArray:
    """Relative misses of the goals; none positive when all are attained."""
    if problem.goals is None:
        return np.zeros(0)
    torque = evaluate_rows(NominalTorque(problem.robot), excitation_inputs(trajectory))[:, :, 0]
    return problem.goals.misses(condition, torque.T)


def nominal_base(robot: Robot, rows: TorqueRows, base: BaseParameters) -> FloatArray:
    """Base parameters of the robot's own nominal values, shape [r]."""
    values = np.zeros(len(base.parameters))
    for name, i in ((name, rows.space.index(name)) for name in rows.columns):
        owner, quantity = name.split(".")
        k = rows.space.parameters[i].body
        if owner.startswith("joint"):
            values[i] = getattr(robot.joints[k].drive, quantity.removeprefix("motor_"), 0.0)
    inertial = robot.inertial
    for k in range(robot.n_joints):
        if f"link{k + 1}.mass" in rows.space:
            first = rows.space.index(f"link{k + 1}.mass")
            values[first : first + 10] = inertial[10 * k : 10 * k + 10]
    return base.values(values)


SCALE_FLOOR = 0.05
"""Of the largest nominal value with the same unit: a parameter that is nominally zero need not be known to infinite precision."""


def deviation_scale(robot: Robot, rows: TorqueRows, base: BaseParameters) -> FloatArray:
    """Magnitudes relative deviations refer to, shape [r]."""
    nominal = np.abs(nominal_base(robot, rows, base))
    units = np.array([rows.space.units[i] for i in base.independent])
    floor_of = {unit: SCALE_FLOOR * max(float(nominal[units == unit].max()), 1e-6) for unit in set(units)}
    return np.maximum(nominal, [floor_of[unit] for unit in units])


def with_payload(robot: Robot, mass: float, centre: npt.ArrayLike) -> Robot:
    """The robot carrying a point-like payload, for torques and goals.

    Args:
        robot: the arm.
        mass: [kg].
        centre: of mass in the tip frame [m], shape [3].
    """
    if mass < 0.0:
        raise InputError("payload mass", f"{mass} kg", "cannot be negative")
    tip = robot.tip
    if tip.link != robot.n_joints:
        raise InputError("payload", f"the tip frame {tip.name!r} is not on the last link")
    c = tip.T_link_frame @ np.append(np.asarray(centre, dtype=np.float64), 1.0)
    values = robot.inertial.copy()
    values[-10:] += from_centre_of_mass(mass, c[:3], np.zeros((3, 3)))
    return robot.with_inertial(values)


def replaced_limits(robot: Robot, **values: FloatArray) -> Robot:
    """The robot with other limits for all joints, from the command line: name of the limit -> [n_joints]."""
    joints = []
    for k, joint in enumerate(robot.joints):
        own = {name: float(array[k]) for name, array in values.items()}
        joints.append(replace(joint, limits=replace(joint.limits, **own)))
    return replace(robot, joints=tuple(joints))
