"""What an identified model may be used for: each use with the figure that decides it, on motion that was held out.

A result that is not trusted may be used for nothing; the figures are given all the same, since they show how far it is from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.identification.metrics import has_masses
from armid.identification.residuals import binned, run_names
from armid.identification.result import Result
from armid.identification.thresholds import CONTACT_QUANTILE, CONTACT_SHARE, GRAVITY_SHARE
from armid.kernels.dynamics import gravity
from armid.outcome import Verdict
from armid.robot.robot import JointKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One use of a model.

    Args:
        name: in the words of the field.
        allowed: whether the figure permits it; None when nothing is stored that could decide.
        figure: what decides, with its size and its limit, as a sentence.
        value, limit: the figure itself and what it must not exceed (must exceed, for simulation), in the unit of the figure.
    """

    name: str
    allowed: bool | None
    figure: str
    value: float
    limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Channel:
    """One joint's held-out torque, all runs together."""

    name: str
    joint: int
    unit: str
    residual: FloatArray
    measured: FloatArray
    gravity: FloatArray


def uses_of(result: Result) -> tuple[Use, ...]:
    """Gravity compensation, feed-forward, simulation and contact detection; load the result with its traces."""
    channels = tuple(_channels(result))
    found = (
        _gravity_compensation(result, channels),
        _feed_forward(result),
        _simulation(result),
        _contact_detection(result, channels),
    )
    if result.verdict is not Verdict.TRUSTED:
        return tuple(
            Use(name=u.name, allowed=False, figure=f"{u.figure}; the result is untrusted", value=u.value, limit=u.limit)
            for u in found
        )
    return found


def _channels(result: Result) -> Iterator[_Channel]:
    n, traces = result.described.n_joints, result.traces
    runs = [run for run in run_names(traces) if f"{run}.inputs" in traces]
    if not runs:
        return
    weights = {run: gravity(result.robot, traces[f"{run}.inputs"][:, :n]) for run in runs}
    for k, joint in enumerate(result.joints):
        j = k % n
        sliding = result.described.joints[j].kind is JointKind.PRISMATIC
        yield _Channel(
            name=joint.name,
            joint=j,
            unit="N" if sliding else "N m",
            residual=np.concatenate(
                [traces[f"{run}.measured"][:, k] - traces[f"{run}.consistent"][:, k] for run in runs]
            ),
            measured=np.concatenate([traces[f"{run}.measured"][:, k] for run in runs]),
            gravity=np.concatenate([weights[run][:, j] for run in runs]),
        )


def _unknown(name: str) -> Use:
    return Use(
        name=name,
        allowed=None,
        figure="no held-out torque is stored with this result",
        value=float("nan"),
        limit=float("nan"),
    )


def _gravity_compensation(result: Result, channels: tuple[_Channel, ...]) -> Use:
    """The slow error must be less than what friction holds, or than a hand corrects."""
    name = "gravity compensation"
    if not channels:
        return _unknown(name)
    worst: tuple[float, float, float, str] | None = None
    for channel in channels:
        load = float(np.abs(channel.gravity).max())
        if load <= _NO_LOAD * float(np.abs(channel.measured).max()):
            continue  # an axis that carries no weight
        slow = float(np.abs(binned(channel.gravity, channel.residual).mean).max())
        held = max(result.robot.joints[channel.joint].drive.coulomb, GRAVITY_SHARE.value * load)
        if worst is None or slow / held > worst[0]:
            worst = (slow / held, slow, held, f"{channel.unit} at {channel.name}")
    if worst is None:
        return Use(name=name, allowed=True, figure="no axis of this arm carries weight", value=0.0, limit=0.0)
    ratio, slow, held, where = worst
    figure = f"slow error at most {slow:.2g} {where}; friction, or a correction by hand, holds up to {held:.2g}"
    return Use(name=name, allowed=ratio <= 1.0, figure=figure, value=slow, limit=held)


_NO_LOAD = 1e-6
"""Gravity torque over measured torque below which an axis carries no weight: round-off."""


def _feed_forward(result: Result) -> Use:
    """The gate itself: held-out torque of every joint, and better than the description."""
    error = result.relative_error.get("held_out", float("nan"))
    untrusted = [joint.name for joint in result.joints if result.joint_verdict(joint.name) is Verdict.UNTRUSTED]
    undetermined = [joint.name for joint in result.joints if result.joint_verdict(joint.name) is Verdict.UNDETERMINED]
    figure = f"{100 * error:.1f} % of the torque stays for the controller"
    nominal = _nominal_error(result)
    if np.isfinite(nominal):
        figure += f"; with the description {100 * nominal:.0f} %"
    if untrusted:
        figure += f"; not for {', '.join(untrusted)}"
    if undetermined:
        figure += f"; nothing known of {', '.join(undetermined)}"
    worse = np.isfinite(nominal) and error > nominal
    allowed = bool(np.isfinite(error) and error < 1.0 and not untrusted and not worse)
    return Use(name="feed-forward", allowed=allowed, figure=figure, value=error, limit=nominal)


def _nominal_error(result: Result) -> float:
    """Held-out error of the description over the torque, all joints stacked; NaN without one."""
    errors = [joint.held_out.rmse for joint in result.joints_nominal]
    torques = [
        joint.held_out.rmse / joint.held_out.relative for joint in result.joints if joint.held_out.relative > 0.0
    ]
    if len(errors) != len(torques) or not errors or not has_masses(result.described):
        return float("nan")
    total = float(np.sqrt(np.sum(np.square(torques))))
    return float(np.sqrt(np.sum(np.square(errors)))) / total if total > 0.0 else float("nan")


def _simulation(result: Result) -> Use:
    """No configuration without inertia, no joint whose friction drives it."""
    certificates = result.certificates
    smallest = certificates.mass_matrix_bound if certificates.proven else certificates.mass_matrix
    word = "at every configuration" if certificates.proven else f"at {certificates.configurations} configurations"
    drives = [joint.drive for joint in result.robot.joints]
    driving = [
        joint.name for joint, d in zip(result.robot.joints, drives, strict=True) if min(d.viscous, d.coulomb) < 0.0
    ]
    figure = f"mass matrix at least {smallest:.2g} kg m² {word}"
    figure += f"; friction drives {', '.join(driving)}" if driving else "; friction takes energy in every joint"
    allowed = bool(certificates.physical and smallest > 0.0 and not driving)
    return Use(name="simulation", allowed=allowed, figure=figure, value=smallest, limit=0.0)


def _contact_detection(result: Result, channels: tuple[_Channel, ...]) -> Use:
    """A push must rise above what the model leaves over before the drive is strong."""
    name = "contact detection"
    if not channels:
        return _unknown(name)
    limits = result.described.limit("torque")
    worst = (-1.0, 0.0, 0.0, "")
    for channel in channels:
        level = float(np.quantile(np.abs(channel.residual), CONTACT_QUANTILE.value))
        limit = float(limits[channel.joint])
        strength = limit if np.isfinite(limit) and limit > 0.0 else float(np.abs(channel.measured).max())
        if strength > 0.0 and level / strength > worst[0]:
            worst = (level / strength, level, strength, f"{channel.unit} at {channel.name}")
    share, level, strength, where = worst
    figure = f"pushes above {level:.2g} {where} are seen: {100 * share:.2g} % of what that drive can give"
    allowed = share <= CONTACT_SHARE.value
    return Use(name=name, allowed=allowed, figure=figure, value=level, limit=CONTACT_SHARE.value * strength)
