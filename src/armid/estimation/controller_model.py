"""The model inside a controller, from the gravity vectors and inertia matrices it reports; [Gaz2014].

Gravity and inertia coefficients are fitted apart, as in the paper, and together over one parameter vector: inertia matrices
and gravity vectors of one arm share most of their coefficients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from armid.arrays import FloatArray
from armid.design.scene import build_scene
from armid.errors import InputError
from armid.estimation.consistency.consistent import Consistency, ConsistentEstimate
from armid.estimation.consistency.prior import Prior, nominal_prior
from armid.estimation.controller_gravity import suspicions
from armid.estimation.estimate import Estimate, units_of
from armid.estimation.factor import channel_sigmas, solve_factor
from armid.estimation.least_squares import noise_floor, reduced
from armid.experiments.controller_model import ControllerSamples
from armid.experiments.torque import space_of
from armid.identifiability.base import BaseParameters
from armid.identifiability.rank import STRUCTURAL_TOLERANCE
from armid.identifiability.structure import structural_rows, structure
from armid.information.information import Information, triangular
from armid.kernels.dynamics import inverse_dynamics
from armid.kernels.evaluate import residuals
from armid.kernels.rows import RowSource
from armid.notes import Note, Severity
from armid.parameters.effects import Effects
from armid.parameters.inertial import N_INERTIAL
from armid.robot.robot import Robot

SILENT = 1e-9
"""Relative to the largest value of its quantity: a channel that never exceeds this is zero. Interfaces transmit single
precision at worst, 6e-8 of the value itself, but a zero is transmitted as zero."""

DISAGREEMENT = 10.0
"""Gravity and inertia that share no model fit together at least this many times worse than apart."""

MODEL_SHARE = 1e-6
"""Of a quantity's energy: a worse joint fit than this is no round-off."""

BODY_SHARE = 1e-4
"""Of a channel's size: the noise it is given when bodies are fitted, so that the conic program stays well scaled."""

ROUNDS = 30
"""Draws of as many poses as wanted: an arm that is free in one of thirty random poses still gets its poses."""


class Silence(StrEnum):
    """Why a channel says nothing, or less than it could."""

    STRUCTURAL = "structural"
    """The model says zero and so does the controller: a vertical first axis carries no gravity torque."""
    DISCARDED = "discarded"
    """The model says zero but the controller does not: a base that is not level, or calibration residue. Left out."""
    CONSTRAINT = "constraint"
    """The model allows values and the controller always says zero: parameters must cancel, and that is used."""


@dataclass(frozen=True, eq=False)
class SilentChannel:
    """A channel that is zero where it need not be, or not zero where it should be.

    Args:
        channel: its name.
        kind: which of the two.
        largest: largest magnitude reported.
        constraints: combinations of base parameters that must vanish, name -> coefficient each.
    """

    channel: str
    kind: Silence
    largest: float
    constraints: tuple[Mapping[str, float], ...] = ()

    @property
    def note(self) -> Note:
        match self.kind:
            case Silence.STRUCTURAL:
                text, severity = "identically zero, as the model has it; says nothing", Severity.INFO
            case Silence.DISCARDED:
                text = f"the model says zero, the controller up to {self.largest:.3g}: left out (base not quite level?)"
                severity = Severity.WARNING
            case Silence.CONSTRAINT:
                implied = "; ".join(equation(c) for c in self.constraints)
                text, severity = f"always zero although it need not be, hence {implied}", Severity.INFO
        return Note(f"silent-{self.kind.value}", severity, text, self.channel)


@dataclass(frozen=True, slots=True)
class ElementError:
    """How well one reported element is reproduced.

    Args:
        channel: `joint2:gravity`, `M_1_1`, ...
        size: root mean square of the reported values.
        mean_square, largest: of the error, in the channel's unit (squared).
    """

    channel: str
    size: float
    mean_square: float
    largest: float


@dataclass(frozen=True, eq=False)
class Recovery:
    """The recovered model.

    Args:
        robot: geometry and gravity.
        gravity, inertia: coefficients from either quantity alone; None when it was not read.
        joint: base parameters from all of it.
        free: how many of them the constraints leave.
        silent: channels that are zero, or should be.
        training, validation: errors per element, of the joint estimate.
        consistent: full standard parameters of possible bodies.
        notes: what a reader must know.
    """

    robot: Robot
    gravity: Estimate | None
    inertia: Estimate | None
    joint: Estimate
    free: int
    silent: tuple[SilentChannel, ...]
    training: tuple[ElementError, ...]
    validation: tuple[ElementError, ...]
    consistent: ConsistentEstimate | None
    notes: tuple[Note, ...]

    @property
    def standard(self) -> FloatArray:
        """One of the inertial vectors with these base values, shape [10 n]. For prediction only."""
        return self.joint.standard[: N_INERTIAL * self.robot.n_joints]

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not to be trusted; none when it is."""
        return tuple(f"{note.subject}: {note.message}" for note in self.notes if note.severity is Severity.ERROR)

    @property
    def verdict(self) -> str:
        return "untrusted" if self.reasons else "trusted"

    def largest(self, quantity: str) -> float:
        """Largest validation error of `gravity` or `inertia` elements."""
        inside = [e.largest for e in self.validation if e.channel.endswith(":gravity") == (quantity == "gravity")]
        return max(inside, default=0.0)

    def torque(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """M qdd + c + g, Coriolis terms by Christoffel symbols of the recovered M; [Gaz2014] eqs. 15-16, 26."""
        return inverse_dynamics(self.robot, q, qd, qdd, inertial=self.standard)


def recover(
    robot: Robot,
    training: ControllerSamples,
    validation: ControllerSamples,
    *,
    bodies: bool = True,
    prior: Prior | None = None,
) -> Recovery:
    """The model inside the controller.

    Args:
        robot: geometry and gravity; its inertial values are only used where the data cannot see.
        training, validation: read at different poses.
        bodies: also find full standard parameters of possible bodies.
        prior: for those; the description's own values by default.
    """
    sources = {name: source for name, (source, _) in training.sources(robot).items()}
    apart = {name: fit(robot, training, {name: source}) for name, source in sources.items()}
    joint, silent, free, information = fit(robot, training, sources)
    shown = errors(robot, training, joint)
    notes = [s.note for s in silent] + suspicions(robot, training)
    # Data that are something else disagree with everything; to say so twice would not help.
    if not any(note.severity is Severity.ERROR for note in notes):
        notes += disagreements(training, apart, joint, robot)
    consistent = possible_bodies(robot, information, joint, prior) if bodies else None
    return Recovery(
        robot,
        apart["gravity"][0] if "gravity" in apart else None,
        apart["inertia"][0] if "inertia" in apart else None,
        joint,
        free,
        silent,
        shown,
        errors(robot, validation, joint),
        consistent,
        tuple(notes),
    )


Fit = tuple[Estimate, tuple[SilentChannel, ...], int, Information]


def fit(robot: Robot, samples: ControllerSamples, sources: Mapping[str, RowSource]) -> Fit:
    """Base parameters from some of the quantities: estimate, silent channels, free parameters, the rows used."""
    found = structure(*sources.values(), what="controller data")
    part = samples.only(*sources)
    information = part.information(robot)
    silent = silent_channels(robot, part, found.per_channel, found.base)
    left_out = {s.channel for s in silent if s.kind is not Silence.CONSTRAINT}
    kept = replace(information, channels=tuple(c for c in information.channels if c.name not in left_out))
    T = unconstrained(found.base, silent)
    estimate = least_squares(kept, found.base, T, space_of(robot, Effects()).units)
    return estimate, silent, T.shape[1], kept


def silent_channels(
    robot: Robot, samples: ControllerSamples, ranks: Mapping[str, int], base: BaseParameters
) -> tuple[SilentChannel, ...]:
    """Channels that are zero where they need not be, or the other way round."""
    out = []
    for source, y in samples.sources(robot).values():
        scale = float(np.abs(y).max(initial=0.0))
        for k, name in enumerate(source.channels):
            largest = float(np.abs(y[:, k]).max(initial=0.0))
            quiet = largest <= SILENT * scale
            if ranks[name] == 0:
                out.append(SilentChannel(name, Silence.STRUCTURAL if quiet else Silence.DISCARDED, largest))
            elif quiet:
                rows = structural_rows(source)[:, k][:, base.independent]
                out.append(SilentChannel(name, Silence.CONSTRAINT, largest, implied(rows, base.names)))
    return tuple(out)


def implied(rows: FloatArray, names: Sequence[str]) -> tuple[Mapping[str, float], ...]:
    """What must vanish so that rows b = 0 for all rows: reduced echelon form of their row space."""
    E = echelon(rows)
    return tuple({names[int(i)]: float(row[i]) for i in np.flatnonzero(row)} for row in E)


def echelon(rows: FloatArray) -> FloatArray:
    """Reduced row echelon form of the row space, full rank, shape [rank, p]."""
    _, s, Vt = np.linalg.svd(rows, full_matrices=False)
    E = Vt[: int(np.count_nonzero(s > STRUCTURAL_TOLERANCE * s[0]))].copy()
    pivot_row = 0
    for column in range(E.shape[1]):
        if pivot_row == len(E):
            break
        best = pivot_row + int(np.argmax(np.abs(E[pivot_row:, column])))
        if abs(E[best, column]) < STRUCTURAL_TOLERANCE:
            continue
        E[[pivot_row, best]] = E[[best, pivot_row]]
        E[pivot_row] /= E[pivot_row, column]
        others = [i for i in range(len(E)) if i != pivot_row]
        E[others] -= np.outer(E[others, column], E[pivot_row])
        pivot_row += 1
    return np.where(np.abs(E) < STRUCTURAL_TOLERANCE, 0.0, E)


def unconstrained(base: BaseParameters, silent: Sequence[SilentChannel]) -> FloatArray:
    """T with b = T t for the free parameters t: the leading one of every constraint follows from the others."""
    equations = [c for s in silent for c in s.constraints]
    T = np.eye(len(base))
    if not equations:
        return T
    rows = np.zeros((len(equations), len(base)))
    for i, terms in enumerate(equations):
        for name, value in terms.items():
            rows[i, base.index(name)] = value
    E = echelon(rows)
    lead = [int(np.flatnonzero(row)[0]) for row in E]
    T[lead] = -E
    T[lead, lead] = 0.0
    return np.delete(T, lead, axis=1)


def least_squares(information: Information, base: BaseParameters, T: FloatArray, units: Sequence[str]) -> Estimate:
    """Weighted least squares over b = T t; every channel counts by its own residual, found in two rounds."""
    rows = transformed(reduced(information, base), T)
    floor = noise_floor(rows)
    names = rows.parameters
    solution = solve_factor(rows.stacked(), names)
    sigma = floor
    for _ in range(2):
        sigma = {c: max(s, floor[c]) for c, s in channel_sigmas(rows, solution.values, solution.inverse, {}).items()}
        sigma = {c: s if s > 0.0 else 1.0 for c, s in sigma.items()}
        solution = solve_factor(rows.weighted({c: 1.0 / s for c, s in sigma.items()}).stacked(), names)
    return Estimate(
        base, units_of(base, np.array(units, dtype=object)), T @ solution.values, T @ solution.inverse @ T.T, "per-channel",
        sigma, "weighted least squares" + (f", {T.shape[0] - T.shape[1]} constraints" if T.shape[0] > T.shape[1] else ""),
    )  # fmt: skip


def transformed(rows: Information, T: FloatArray) -> Information:
    """The same rows over other parameters t, b = T t."""
    channels = []
    every = np.arange(T.shape[1])
    for channel in rows.channels:
        factor = np.column_stack([channel.factor[:, :-1] @ T[channel.columns], channel.factor[:, -1]])
        channels.append(replace(channel, columns=every, factor=triangular(factor)))
    # A free parameter bears the name of the base parameter it equals.
    names = tuple(rows.parameters[int(np.flatnonzero(T[:, k] == 1.0)[0])] for k in every)
    return Information(names, tuple(channels), rows.method)


def errors(robot: Robot, samples: ControllerSamples, estimate: Estimate) -> tuple[ElementError, ...]:
    """How well every reported element is reproduced at some poses."""
    out = []
    for source, y in samples.sources(robot).values():
        out += element_errors(source.channels, y, residuals(source, samples.q, y, estimate.standard))
    return tuple(out)


def element_errors(channels: Sequence[str], y: FloatArray, e: FloatArray) -> list[ElementError]:
    """Size of every element and of its error; y and e of shape [n_poses, n_channels]."""
    return [
        ElementError(
            name, float(np.sqrt(np.mean(y[:, k] ** 2))), float(np.mean(e[:, k] ** 2)), float(np.abs(e[:, k]).max())
        )
        for k, name in enumerate(channels)
    ]


def disagreements(samples: ControllerSamples, apart: Mapping[str, Fit], joint: Estimate, robot: Robot) -> list[Note]:
    """Gravity and inertia that no single arm has: a reversed sign, or a tool only one of them knows of."""
    out = []
    for name, (alone, *_) in apart.items():
        part = samples.only(name)
        own, shared = (sum(e.mean_square for e in errors(robot, part, fit)) for fit in (alone, joint))
        size = sum(e.size**2 for e in errors(robot, part, joint))
        if shared > DISAGREEMENT**2 * own and shared > MODEL_SHARE * size:
            text = (
                f"{name} fitted with the rest is {np.sqrt(shared / max(own, 1e-300)):.2g} times worse than alone: gravity and "
                "inertia do not belong to one arm (a reversed sign, another mounting, or a tool that only one of them includes)"
            )
            out.append(Note("gravity-inertia-disagree", Severity.ERROR, text, name))
    return out


def possible_bodies(
    robot: Robot, information: Information, joint: Estimate, prior: Prior | None
) -> ConsistentEstimate | None:
    """Full standard parameters that reproduce the data and belong to bodies that can exist."""
    sizes = {c.name: float(np.sqrt(np.sum(c.factor[:, -1] ** 2) / max(c.count, 1.0))) for c in information.channels}
    weights = {n: 1.0 / max(joint.sigma[n], BODY_SHARE * sizes[n], 1e-9) for n in sizes}
    belief = prior or nominal_prior(robot, information.parameters)
    return Consistency().fit(information.weighted(weights), space_of(robot, Effects()).units, belief)


def equation(terms: Mapping[str, float]) -> str:
    """`link7.Ixz = 0`, `link6.my + 0.5 link7.mass = 0`."""
    text = " + ".join(name if value == 1.0 else f"{value:.6g} {name}" for name, value in terms.items())
    return f"{text} = 0".replace("+ -", "- ")


def random_poses(robot: Robot, count: int, rng: np.random.Generator, *, free: bool = False) -> FloatArray:
    """Uniform within the position limits, shape [count, n_joints]; [Gaz2014] sec. VI.

    Args:
        robot: its limits.
        count: how many.
        rng: chance.
        free: leave out poses in which links touch, by the shapes of the description.

    Raises:
        InputError: a joint without limits, or an arm that touches itself in almost every pose.
    """
    lower, upper = robot.limit("lower"), robot.limit("upper")
    if not (np.isfinite(lower) & np.isfinite(upper)).all():
        name = robot.joint_names[int(np.argmin(np.isfinite(lower) & np.isfinite(upper)))]
        raise InputError(
            f"joint {name!r}", "has no position limits to draw poses from", "add limits to the description"
        )
    if not free:
        return rng.uniform(lower, upper, size=(count, robot.n_joints))
    scene = build_scene(robot, None, self_collision=True)
    kept: list[FloatArray] = []
    for _ in range(ROUNDS):
        poses = rng.uniform(lower, upper, size=(count, robot.n_joints))
        kept.append(poses[scene.is_free(poses)] if len(scene) else poses)
        if sum(map(len, kept)) >= count:
            return np.concatenate(kept)[:count]
    raise InputError(robot.name, f"links touch in almost all of {ROUNDS * count} random poses", "check its shapes")
