"""What is asked of an excitation, checked, and the search problem it makes."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, floor

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, finite
from armid.design.excitation import ExcitationProblem
from armid.design.goals import Goals
from armid.design.known import Known, Wish, known_from
from armid.errors import InputError, ShapeError, UnknownNameError
from armid.identifiability.base import BaseParameters
from armid.identifiability.expectation import REPORT_RATE_HZ, assumed_noise, deviation_scale
from armid.identifiability.smooth import Merit, SmoothCriterion
from armid.identifiability.structure import structural_base
from armid.identification.result import Result
from armid.kernels.evaluate import evaluate_rows
from armid.motions.basis import Basis, FourierBasis, SplineBasis
from armid.motions.limits import DEFAULT_MARGIN, InfeasibleError, MotionLimits, motion_limits
from armid.motions.needed_torque import limits_are_placeholders
from armid.notes import Note, Severity
from armid.parameters.effects import Effects, effects_of
from armid.parameters.inertial import InertialIndex, from_centre_of_mass, inertial_problem
from armid.robot.described import description_notes
from armid.robot.robot import Robot
from armid.rows.nominal_torque import NominalTorque
from armid.rows.torque import TorqueRows
from armid.scene.cell import Cell
from armid.scene.scene import build_scene

LIMITS = ("position", "velocity", "acceleration", "jerk", "torque")
"""Kinds of limits a motion may have to keep."""


@dataclass(frozen=True, eq=False, kw_only=True)
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
        analytic: whether sums of amplitudes must keep position and velocity limits too ([Halper2024], eqs. 3.55d-f).
        resonance_hz: the highest harmonic stays below it.
        self_collision: whether the arm keeps clear of itself.
        criterion: what is improved.
        noise: standard deviation of each channel's torque [N m or N]; equal when None.
        goal_condition: condition number to attain, with `goal_reserve`; found by a first run when None.
        goal_reserve: joint name -> mean torque reserve to attain, as a fraction of the limit.
        goal_weights: how a miss of each goal counts, condition number first; the goals themselves when None.
        repetitions: periods to run.
        wishes: how well parameters shall be known; decides the number of periods.
        home: pose the robot comes from and goes back to; none for the bare excitation.
    """

    effects: Effects = field(default_factory=effects_of)
    periods: tuple[float, ...] = (20.0,)
    harmonics: int = 10
    knots: int | None = None
    start: npt.ArrayLike | None = None
    margin: float = DEFAULT_MARGIN
    limits: frozenset[str] = frozenset(LIMITS)
    analytic: bool = False
    resonance_hz: float | None = None
    self_collision: bool = True
    criterion: SmoothCriterion = SmoothCriterion.CONDITION
    noise: npt.ArrayLike | None = None
    goal_condition: float | None = None
    goal_reserve: dict[str, float] = field(default_factory=dict)
    goal_weights: npt.ArrayLike | None = None
    repetitions: int = 1
    wishes: tuple[Wish, ...] = ()
    home: npt.ArrayLike | None = None


def excitation_problem(
    robot: Robot, settings: DesignSettings, cell: Cell | None, *, after: Result | None = None
) -> tuple[ExcitationProblem, BaseParameters, tuple[Note, ...]]:
    """The search problem of the settings.

    Args:
        robot: the arm.
        settings: what is asked.
        cell: what surrounds the arm.
        after: a result whose knowledge the motion adds to; None for nothing known.
    """
    rows = TorqueRows(robot, settings.effects)
    base = structural_base(rows, what="joint torque")
    limits, notes = motion_limits(robot)
    notes += _torque_notes(robot, settings)
    limits = _only_kinds(limits.within(settings.margin), settings.limits)
    scene = build_scene(robot, cell, self_collision=settings.self_collision)
    scale = deviation_scale(robot, rows, base) if settings.criterion is SmoothCriterion.WORST_DEVIATION else None
    known = None if after is None else known_from(after, robot, rows, base)
    weights = _weights(robot, settings, len(rows.channels), known)
    before = None
    if known is not None:
        before = known.information / (settings.repetitions * settings.periods[0] * REPORT_RATE_HZ)
    problem = ExcitationProblem(
        robot=robot,
        rows=rows,
        columns=tuple(int(i) for i in base.independent),
        limits=limits,
        scene=scene,
        quality=Merit(settings.criterion, scale=scale, known=before),
        weights=weights,
        goals=_goals_of(robot, settings),
        analytic=settings.analytic,
    )
    return problem, base, notes + scene.notes + description_notes(robot)


def _weights(robot: Robot, settings: DesignSettings, channels: int, known: Known | None) -> FloatArray | None:
    """One over the noise of each channel: as given, as an earlier result showed, or as assumed where deviations count.

    The condition number is that of the unweighted rows by definition: without noise given it has none.
    """
    if settings.noise is not None:
        return 1.0 / finite_vector("noise", settings.noise, channels)
    if known is not None:
        return 1.0 / known.noise
    if settings.criterion is SmoothCriterion.DEVIATIONS:
        return 1.0 / assumed_noise(robot, channels)
    return None


def _torque_notes(robot: Robot, settings: DesignSettings) -> tuple[Note, ...]:
    """Warns when torque is not limited, or inertial values of some link are missing or impossible: then too little is checked."""
    if "torque" not in settings.limits:
        return ()
    free = [name for name, most in zip(robot.joint_names, robot.limit("torque"), strict=True) if not np.isfinite(most)]
    unlimited = tuple([_unlimited_note(robot, free)] if free else [])
    if limits_are_placeholders(robot):
        unlimited += (_placeholder_note(robot, settings),)
    return unlimited if len(free) == robot.n_joints else unlimited + _doubtful_torque(robot)


def _unlimited_note(robot: Robot, joints: list[str]) -> Note:
    text = f"{robot.name} gives no torque limit for {', '.join(joints)}: torque is not checked there (state it with --max-torque)"
    return Note("torque-unlimited", Severity.WARNING, text)


def _placeholder_note(robot: Robot, settings: DesignSettings) -> Note:
    limits = ", ".join(f"{most:g}" for most in robot.limit("torque"))
    noise = "" if settings.noise is not None else "; noise is taken as that of drives such links need (--noise)"
    text = f"no joint of {robot.name} can use a tenth of its torque limit ({limits}): placeholders, it seems{noise}"
    return Note("torque-limit-idle", Severity.WARNING, f"{text}; state real ones with --max-torque")


def _doubtful_torque(robot: Robot) -> tuple[Note, ...]:
    """Whether the described bodies are good enough to check torque with.

    Raises:
        InputError: a mass is negative: no torque found with it says anything.
    """
    for link in robot.links:
        if link.inertial is not None and link.inertial[InertialIndex.MASS] < 0.0:
            mass = float(link.inertial[InertialIndex.MASS])
            problem = f"link {link.name!r} has a mass of {mass:g} kg: torque limits cannot be checked"
            raise InputError(robot.name, problem, "correct its <inertial>, or take it out of the description")
    if not robot.inertial.any():
        text = f"{robot.name} has no inertial parameters: torque limits cannot be checked before a first identification"
        return (Note("torque-unchecked", Severity.WARNING, text),)
    weightless = [link.name for link in robot.links if link.inertial is None or not link.inertial.any()]
    wrong = [link.name for link in robot.links if link.inertial is not None and inertial_problem(link.inertial)]
    doubts = []
    if weightless:
        doubts.append(f"no inertial values on {', '.join(weightless)}: torque limits are checked without their weight")
    if wrong:
        doubts.append(f"no body has the inertial values of {', '.join(wrong)}: torque limits are checked with them")
    notes = [Note("torque-partly-checked", Severity.WARNING, f"{doubt}; {_LEAVE_ROOM}") for doubt in doubts]
    return (*notes, *_bare_drives(robot))


_LEAVE_ROOM = "leave more of them unused (--margin), identify, and design again with the identified arm"
"""What helps where torque is known in part."""


def _bare_drives(robot: Robot) -> tuple[Note, ...]:
    """Says which drives are described without friction and rotors, which take their share of every motion's torque."""
    bare = [
        joint.name
        for joint, most in zip(robot.joints, robot.limit("torque"), strict=True)
        if np.isfinite(most) and not (joint.drive.viscous or joint.drive.coulomb or joint.drive.rotor_inertia)
    ]
    if not bare:
        return ()
    whose = "any joint" if len(bare) == robot.n_joints else ", ".join(bare)
    text = (
        f"no friction and no rotor inertia described for {whose}: torque limits are checked without them; {_LEAVE_ROOM}"
    )
    return (Note("drives-bare", Severity.WARNING, text),)


def _only_kinds(limits: MotionLimits, kinds: frozenset[str]) -> MotionLimits:
    """Limits of the other kinds become infinite; positions always count, since without them no motion is bounded."""
    unknown = sorted(kinds - set(LIMITS))
    if unknown:
        raise UnknownNameError("limit", unknown[0], LIMITS)
    off: dict[str, FloatArray | float] = {kind: np.inf for kind in set(LIMITS) - kinds - {"position"}}
    return limits.but(**off) if off else limits


def finite_vector(name: str, values: npt.ArrayLike, count: int) -> FloatArray:
    array = finite(name, np.asarray(values, dtype=np.float64))
    if array.shape != (count,):
        raise ShapeError(name, array.shape, f"[{count}]")
    return array


def _goals_of(robot: Robot, settings: DesignSettings) -> Goals | None:
    """Goals of the settings; none when only the criterion counts."""
    if settings.goal_condition is None and not settings.goal_reserve:
        return None
    if settings.goal_condition is None or not settings.goal_reserve:
        raise InputError("goals", "a condition number alone", "give at least one torque reserve beside it")
    if settings.criterion is not SmoothCriterion.CONDITION:
        raise InputError("goals", f"criterion {settings.criterion}", "goals go with the condition number")
    joints = tuple(robot.joint_index(name) for name in settings.goal_reserve)
    limits = robot.limit("torque")[list(joints)]
    if not np.isfinite(limits).all():
        raise InputError("goals", "a joint without a torque limit", "a reserve is a fraction of it")
    reserve = np.array(list(settings.goal_reserve.values()))
    weights = (
        None if settings.goal_weights is None else finite_vector("goal weights", settings.goal_weights, 1 + len(joints))
    )
    return Goals(
        condition_number=settings.goal_condition, joints=joints, torque_limits=limits, reserve=reserve, weights=weights
    )


_HARMONICS = 10, 25
"""Fewest and most harmonics that are chosen: fewer bend a motion too little for all parameters, more make searching slow."""


def harmonics_for(robot: Robot, periods: tuple[float, ...], resonance_hz: float | None) -> int:
    """As many harmonics as the quickest joint can use.

    A joint of half range A, velocity limit v and acceleration limit a that swings through all of its range can do so at
    min(v/A, sqrt(a/A)) rad/s. Slower harmonics alone would leave a short and quick axis, such as the quill of a SCARA, idle.

    Args:
        robot: the arm.
        periods: that are tried [s].
        resonance_hz: that the highest harmonic stays below; None for no such bound.
    """
    fewest, most = _HARMONICS
    limits, _ = motion_limits(robot)
    swing = np.minimum(limits.velocity / limits.half_range, np.sqrt(limits.acceleration / limits.half_range))
    usable = ceil(min(periods, default=0.0) * float(swing.max()) / (2.0 * np.pi))
    if resonance_hz is not None:
        most = min(most, ceil(resonance_hz * min(periods, default=0.0)) - 1)
    return max(fewest, min(usable, most))


def families_of(robot: Robot, settings: DesignSettings) -> tuple[Basis, ...]:
    """One family of motions per period, after checking that the period suits the harmonics."""
    start = None if settings.start is None else finite_vector("start", settings.start, robot.n_joints)
    if not settings.periods:
        raise InputError("period", "none given")
    if settings.knots is not None:
        return tuple(SplineBasis(period, settings.knots, start) for period in settings.periods)
    for period in settings.periods:
        _check_period(period, settings)
    return tuple(FourierBasis(period, settings.harmonics, start) for period in settings.periods)


def _check_period(period: float, settings: DesignSettings) -> None:
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


def check_start(problem: ExcitationProblem, settings: DesignSettings) -> None:
    """Start and home pose must be reachable, free and holdable."""
    robot, limits = problem.robot, problem.limits
    for name, pose in (("start", settings.start), ("home", settings.home)):
        if pose is None:
            continue
        q = finite_vector(name, pose, robot.n_joints)
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
        _check_holding(problem, name, q)


def _check_holding(problem: ExcitationProblem, name: str, q: FloatArray) -> None:
    """Whether the torque limits can hold a pose."""
    x = np.concatenate([q, np.zeros(2 * len(q))])
    usage = np.abs(evaluate_rows(NominalTorque(problem.robot), x)[0, :, 0]) / problem.limits.torque
    if usage.max() > 1.0:
        k = int(np.argmax(usage))
        raise InfeasibleError(
            f"{name} pose: holding it takes {100 * usage[k]:.0f} % of the torque limit of {problem.robot.joint_names[k]}"
        )


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
