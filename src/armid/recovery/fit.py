"""Base parameters and bodies from the gravity vectors and inertia matrices that a controller reports; [Gaz2014].

Gravity and inertia coefficients are fitted apart, as in the paper, and together over one parameter vector: inertia matrices
and gravity vectors of one arm share most of their coefficients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.consistent import Consistency, ConsistentEstimate
from armid.consistency.prior import Prior, nominal_prior
from armid.estimation.estimate import Estimate, units_of
from armid.estimation.least_squares import noise_floor
from armid.identifiability.base import BaseParameters
from armid.identifiability.structure import structure
from armid.information.information import Information, triangular
from armid.information.solve import channel_sigmas, reduced, solve_factor
from armid.kernels.evaluate import residuals
from armid.parameters.effects import Effects
from armid.recovery.elements import ElementError, errors_of
from armid.recovery.samples import ControllerSamples
from armid.recovery.silent_channels import Silence, SilentChannel, silent_channels, unconstrained
from armid.robot.robot import Robot
from armid.rows.torque import space_of

_MODEL_SHARE = 1e-6
"""Of a quantity's energy: a worse joint fit than this is no round-off."""

_BODY_SHARE = 1e-4
"""Of a channel's size: the noise it is given when bodies are fitted, so that the conic program stays well scaled."""


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
    estimate = _least_squares(kept, found.base, T, space_of(robot, model).units)
    return estimate, silent, T.shape[1], kept


def _least_squares(information: Information, base: BaseParameters, T: FloatArray, units: Sequence[str]) -> Estimate:
    """Weighted least squares over b = T t; every channel counts by its own residual, found in two rounds."""
    rows = _transformed(reduced(information, base), T)
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


def _transformed(rows: Information, T: FloatArray) -> Information:
    """The same rows over other parameters t, b = T t."""
    channels = []
    every = np.arange(T.shape[1])
    for channel in rows.channels:
        factor = np.column_stack([channel.factor[:, :-1] @ T[channel.columns], channel.factor[:, -1]])
        channels.append(replace(channel, columns=every, factor=triangular(factor)))
    # A free parameter bears the name of the base parameter it equals.
    names = tuple(rows.parameters[int(np.flatnonzero(T[:, k] == 1.0)[0])] for k in every)
    return Information(names, tuple(channels), rows.method)


def element_errors(
    robot: Robot, samples: ControllerSamples, estimate: Estimate, effects: Effects
) -> tuple[ElementError, ...]:
    """How well every reported element is reproduced at some poses."""
    out: list[ElementError] = []
    for quantity, (source, y) in samples.sources(robot, effects).items():
        out += errors_of(quantity, source, y, residuals(source, samples.q, y, estimate.standard))
    return tuple(out)


def disagreements(
    samples: ControllerSamples, apart: Mapping[str, Fit], joint: Estimate, robot: Robot, effects: Effects
) -> dict[str, float]:
    """How many times worse each quantity fits together with the rest than alone; 1 where the difference is round-off."""
    out = {}
    for name, (alone, *_) in apart.items():
        part = samples.only(name)
        own, shared = (sum(e.mean_square for e in element_errors(robot, part, fit, effects)) for fit in (alone, joint))
        size = sum(e.size**2 for e in element_errors(robot, part, joint, effects))
        out[name] = float(np.sqrt(shared / max(own, 1e-300))) if shared > _MODEL_SHARE * size else 1.0
    return out


def possible_bodies(
    robot: Robot, information: Information, joint: Estimate, prior: Prior | None, effects: Effects
) -> ConsistentEstimate | None:
    """Full standard parameters that reproduce the data and belong to bodies that can exist."""
    sizes = {c.name: float(np.sqrt(np.sum(c.factor[:, -1] ** 2) / max(c.count, 1.0))) for c in information.channels}
    weights = {n: 1.0 / max(joint.sigma[n], _BODY_SHARE * sizes[n], 1e-9) for n in sizes}
    belief = prior or nominal_prior(robot, information.parameters)
    return Consistency().fit(information.weighted(weights), space_of(robot, effects).units, belief)
