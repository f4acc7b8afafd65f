"""What one recorded motion excites: the persistent-excitation test of [Khosla1985] as a result with names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray, read_only
from armid.errors import InputError
from armid.identifiability.base import BaseParameters, WeakDirection, weak_directions
from armid.identifiability.criteria import standard_deviations
from armid.identifiability.rank import checked_tolerance, decide_rank, scaled_columns
from armid.information.information import Information
from armid.notes import Note, Severity

EXCITED = 1e-4
"""Sine of the angle between a parameter's column and all others, below which the motion does not excite it: with one
per cent of noise a smaller one leaves an error of a hundred times the parameter's share in the torque."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Excitation:
    """Which base parameters a motion excites, and how well.

    Args:
        names: of the base parameters.
        strength: per base parameter, sine of the angle between its column and the span of all others; 1 is perfect.
        standard_deviations: predicted for the given noise [unit of the parameter]; infinite when not excited at all.
        excited: whether the motion excites the parameter.
        bounds: smallest and largest eigenvalue of A^T A / count for columns of unit length: the alpha and beta of the
            persistent-excitation condition alpha I <= sum a a^T <= beta I.
        unexcited_directions: combinations the motion leaves open, weakest first.
        notes: findings in words.
    """

    names: tuple[str, ...]
    strength: FloatArray
    standard_deviations: FloatArray
    excited: tuple[bool, ...]
    bounds: tuple[float, float]
    unexcited_directions: tuple[WeakDirection, ...]
    notes: tuple[Note, ...]

    @property
    def is_persistent(self) -> bool:
        """Whether the motion excites every base parameter."""
        return all(self.excited)

    @property
    def not_excited(self) -> tuple[str, ...]:
        return tuple(name for name, yes in zip(self.names, self.excited, strict=True) if not yes)


def excitation(
    information: Information,
    base: BaseParameters,
    noise: float | Mapping[str, float] = 1.0,
    *,
    tolerance: float = EXCITED,
) -> Excitation:
    """The persistent-excitation test of given data.

    Args:
        information: of the motion (measured values in it are not used).
        base: the structural base parameters of the same parameter vector.
        noise: standard deviation of the measurement, one for all or one per channel.
        tolerance: strength below which a parameter counts as not excited, in (0, 1).
    """
    checked_tolerance(tolerance)
    if information.parameters != base.parameters:
        raise InputError("excitation", "information and base parameters are about different parameter vectors")
    weights = {c.name: 1.0 / _noise_of(noise, c.name) for c in information.channels}
    R = information.weighted(weights).select(base.independent).stacked()[:-1, :-1]
    scaled, norms = scaled_columns(R)
    strength = _sines(scaled)
    excited = tuple(bool(x > tolerance) for x in strength)
    values = decide_rank(scaled, tolerance=tolerance, why="strength of excitation").singular_values
    low = float(values[-1] ** 2) if len(values) == len(base) else 0.0
    directions = weak_directions(scaled, base.names, below=tolerance)
    deviations = np.where(strength > np.finfo(float).eps * len(base), _deviations_of(R, norms), np.inf)
    return Excitation(
        names=base.names,
        strength=read_only(strength),
        standard_deviations=read_only(deviations),
        excited=excited,
        bounds=(low, float(values[0] ** 2) if len(values) else 0.0),
        unexcited_directions=directions,
        notes=tuple(_excitation_notes(base.names, excited)),
    )


def _noise_of(noise: float | Mapping[str, float], channel: str) -> float:
    """The standard deviation of one channel, checked."""
    value = noise if isinstance(noise, float | int) else noise.get(channel)
    if value is None or not value > 0.0:
        raise InputError(f"noise of channel {channel!r}", f"{value}", "a positive standard deviation is needed")
    return float(value)


def _sines(scaled: FloatArray) -> FloatArray:
    """For each column of unit length its distance from the span of all others, shape [r]; zero for a zero column.

    Equals 1 / sqrt of the diagonal of (B^T B)^-1 where that exists; by projection, so that dependent columns give zero.
    """
    r = scaled.shape[1]
    out = np.zeros(r)
    for j in range(r):
        if scaled[:, j].any():
            others = np.delete(scaled, j, axis=1)
            U, s, _ = np.linalg.svd(others, full_matrices=False)
            basis = U[:, s > np.finfo(float).eps * r * max(float(s[0]), 1.0)] if s.size else U[:, :0]
            residual = scaled[:, j] - basis @ (basis.T @ scaled[:, j])
            out[j] = np.linalg.norm(residual - basis @ (basis.T @ residual))
    return out


def _deviations_of(R: FloatArray, norms: FloatArray) -> FloatArray:
    """Predicted standard deviations for rows of unit noise; parameters in directions left open get infinity."""
    if norms.all():
        direct = standard_deviations(R)
        if np.isfinite(direct).all():
            return direct
    # Rank deficient: the pseudo-inverse speaks for those parameters that the open directions do not touch.
    B, _ = scaled_columns(R)
    _, s, Vt = np.linalg.svd(B, full_matrices=False)
    kept = s > np.finfo(float).eps * len(s) * s[0]
    touched = (Vt[~kept] ** 2).sum(axis=0) > np.finfo(float).eps ** 0.5
    spread = np.sqrt(((Vt[kept] / s[kept, np.newaxis]) ** 2).sum(axis=0))
    return np.where(touched | (norms == 0.0), np.inf, spread / np.where(norms > 0.0, norms, 1.0))


def _excitation_notes(names: tuple[str, ...], excited: tuple[bool, ...]) -> list[Note]:
    """One warning that names what the motion leaves open."""
    lost = [name for name, yes in zip(names, excited, strict=True) if not yes]
    if not lost:
        return []
    message = f"the motion does not excite {len(lost)} of {len(names)} base parameters: {', '.join(lost)}"
    return [Note("not-excited", Severity.WARNING, message, lost[0])]
