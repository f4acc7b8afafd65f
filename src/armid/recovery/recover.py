"""The model inside a controller, from the gravity vectors and inertia matrices it reports; [Gaz2014].

Gravity and inertia coefficients are fitted apart, as in the paper, and together over one parameter vector: inertia matrices
and gravity vectors of one arm share most of their coefficients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.consistent import Consistency, ConsistentEstimate
from armid.consistency.prior import Prior, nominal_prior
from armid.errors import InputError
from armid.estimation.estimate import Estimate, units_of
from armid.estimation.factor import channel_sigmas, solve_factor
from armid.estimation.least_squares import noise_floor, reduced
from armid.identifiability.base import BaseParameters
from armid.identifiability.structure import structure
from armid.information.information import Information, triangular
from armid.kernels.dynamics import inverse_dynamics
from armid.kernels.evaluate import residuals
from armid.notes import Note, Severity
from armid.parameters.effects import Effects
from armid.recovery.gravity import suspicions
from armid.recovery.samples import ControllerSamples
from armid.recovery.silent_channels import Silence, SilentChannel, silent_channels, unconstrained
from armid.robot.robot import Robot
from armid.rows.torque import space_of
from armid.scene.scene import build_scene

DISAGREEMENT = 10.0
"""Gravity and inertia that share no model fit together at least this many times worse than apart."""

MODEL_SHARE = 1e-6
"""Of a quantity's energy: a worse joint fit than this is no round-off."""

BODY_SHARE = 1e-4
"""Of a channel's size: the noise it is given when bodies are fitted, so that the conic program stays well scaled."""

ROUNDS = 30
"""Draws of as many poses as wanted: an arm that is free in one of thirty random poses still gets its poses."""


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


@dataclass(frozen=True, eq=False, kw_only=True)
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
        effects: whether the inertia matrix has the rotors on its diagonal.
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
    effects: Effects = Effects()

    @property
    def standard(self) -> FloatArray:
        """One of the inertial vectors with these base values, shape [10 n]. For prediction only."""
        return self.joint.standard[self.places("link")]

    @property
    def rotors(self) -> FloatArray:
        """Rotor inertias with these base values, shape [n]; zero where the inertia matrix has none. For prediction only."""
        places = self.places("joint")
        return self.joint.standard[places] if places else np.zeros(self.robot.n_joints)

    @property
    def bodies(self) -> FloatArray | None:
        """Inertial vectors of possible bodies, shape [10 n]; None when there are none."""
        if self.consistent is None or not self.consistent.is_physical:
            return None
        return self.consistent.values[self.places("link")]

    def places(self, owner: str) -> list[int]:
        """Where the parameters of links or joints stand in the parameter vector."""
        return [i for i, name in enumerate(self.joint.base.parameters) if name.startswith(owner)]

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
        return inverse_dynamics(self.robot, q, qd, qdd, inertial=self.standard) + self.rotors * qdd


def recover(
    robot: Robot,
    training: ControllerSamples,
    validation: ControllerSamples,
    *,
    bodies: bool = True,
    prior: Prior | None = None,
    rotors: bool = False,
) -> Recovery:
    """The model inside the controller.

    Args:
        robot: geometry and gravity; its inertial values are only used where the data cannot see.
        training, validation: read at different poses.
        bodies: also find full standard parameters of possible bodies.
        prior: for those; the description's own values by default.
        rotors: whether the inertia matrix has rotor inertias on its diagonal.
    """
    effects = Effects(rotor_inertia=rotors)
    quantities = tuple(training.sources(robot, effects))
    apart = {name: fit(robot, training, (name,), effects) for name in quantities}
    joint, silent, free, information = fit(robot, training, quantities, effects)
    shown = errors(robot, training, joint, effects)
    notes = [s.note for s in silent] + suspicions(robot, training, effects)
    # Data that are something else disagree with everything; to say so twice would not help.
    if not any(note.severity is Severity.ERROR for note in notes):
        notes += disagreements(training, apart, joint, robot, effects)
    consistent = possible_bodies(robot, information, joint, prior, effects) if bodies else None
    return Recovery(
        robot=robot,
        gravity=apart["gravity"][0] if "gravity" in apart else None,
        inertia=apart["inertia"][0] if "inertia" in apart else None,
        joint=joint,
        free=free,
        silent=silent,
        training=shown,
        validation=errors(robot, validation, joint, effects),
        consistent=consistent,
        notes=tuple(notes),
        effects=effects,
    )


Fit = tuple[Estimate, tuple[SilentChannel, ...], int, Information]


def fit(robot: Robot, samples: ControllerSamples, quantities: Sequence[str], effects: Effects | None = None) -> Fit:
    """Base parameters from some of the quantities: estimate, silent channels, free parameters, the rows used.

    Args:
        robot: geometry and gravity.
        samples: what was read.
        quantities: `gravity`, `inertia`, or both.
        effects: see `Recovery`.
    """
    part, model = samples.only(*quantities), effects or Effects()
    found = structure(*(source for source, _ in part.sources(robot, model).values()), what="controller data")
    information = part.information(robot, model)
    silent = silent_channels(part.sources(robot, model).values(), found.per_channel, found.base)
    left_out = {s.channel for s in silent if s.kind is not Silence.CONSTRAINT}
    kept = replace(information, channels=tuple(c for c in information.channels if c.name not in left_out))
    T = unconstrained(found.base, silent)
    estimate = least_squares(kept, found.base, T, space_of(robot, model).units)
    return estimate, silent, T.shape[1], kept


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
        base=base,
        units=units_of(base, np.array(units, dtype=object)),
        values=T @ solution.values,
        covariance=T @ solution.inverse @ T.T,
        covariance_kind="per-channel",
        sigma=sigma,
        method="weighted least squares"
        + (f", {T.shape[0] - T.shape[1]} constraints" if T.shape[0] > T.shape[1] else ""),
    )


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


def errors(robot: Robot, samples: ControllerSamples, estimate: Estimate, effects: Effects) -> tuple[ElementError, ...]:
    """How well every reported element is reproduced at some poses."""
    out = []
    for source, y in samples.sources(robot, effects).values():
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


def disagreements(
    samples: ControllerSamples, apart: Mapping[str, Fit], joint: Estimate, robot: Robot, effects: Effects
) -> list[Note]:
    """Gravity and inertia that no single arm has: a reversed sign, or a tool only one of them knows of."""
    out = []
    for name, (alone, *_) in apart.items():
        part = samples.only(name)
        own, shared = (sum(e.mean_square for e in errors(robot, part, fit, effects)) for fit in (alone, joint))
        size = sum(e.size**2 for e in errors(robot, part, joint, effects))
        if shared > DISAGREEMENT**2 * own and shared > MODEL_SHARE * size:
            text = (
                f"{name} fitted with the rest is {np.sqrt(shared / max(own, 1e-300)):.2g} times worse than alone: gravity and "
                "inertia do not belong to one arm (a reversed sign, another mounting, or a tool that only one of them includes)"
            )
            out.append(Note("gravity-inertia-disagree", Severity.ERROR, text, name))
    return out


def possible_bodies(
    robot: Robot, information: Information, joint: Estimate, prior: Prior | None, effects: Effects
) -> ConsistentEstimate | None:
    """Full standard parameters that reproduce the data and belong to bodies that can exist."""
    sizes = {c.name: float(np.sqrt(np.sum(c.factor[:, -1] ** 2) / max(c.count, 1.0))) for c in information.channels}
    weights = {n: 1.0 / max(joint.sigma[n], BODY_SHARE * sizes[n], 1e-9) for n in sizes}
    belief = prior or nominal_prior(robot, information.parameters)
    return Consistency().fit(information.weighted(weights), space_of(robot, effects).units, belief)


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
