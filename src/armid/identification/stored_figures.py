"""Figures of a stored result held against the rows that are stored with it.

The triangular factors give the error of any parameters on all samples of a motion. What a result says of its errors follows from
them and from its own parameters; figures that do not were changed after it was made, whatever its seal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import hypot, isnan, nan, sqrt
from typing import TYPE_CHECKING

import numpy as np

from armid.arrays import FloatArray
from armid.identification.comparison import TOLERATED, Comparison
from armid.identification.metrics import NOMINAL, RIGID, nominal_models
from armid.identification.motion import JointMotion, static_friction
from armid.identification.sensors import Imperfections
from armid.identification.thresholds import NEGLIGIBLE_ERROR
from armid.identification.torque_error import TorqueErrors
from armid.information.information import Information
from armid.outcome import Check

if TYPE_CHECKING:
    from armid.identification.result import Result

CODE = "stored-figures"
"""Of the check."""

_SHARE = 1e-3
"""Of a figure, by which it may differ: both are one sum of squares, added up in another order and through factors. On the
recordings of `docs/real-robots.md` they agree to 1e-14; below a thousandth no verdict changes."""

_OF_TORQUE = 1e-5
"""Of the torque, by which its error may differ besides: what factors from Gram matrices leave of an exact model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figure:
    """One number as stored, and between which ends the rows have it.

    Args:
        what: it is, in words.
        stored: NaN where there is none, which is none of what can be.
        low, high: NaN where the rows do not give it.
        torque: of which it is an error, in the same unit.
    """

    what: str
    stored: float
    low: float
    high: float
    torque: float

    @property
    def contradicted(self) -> bool:
        """Whether it lies outside by more than rounding."""
        if isnan(self.low) or isnan(self.high):
            return False
        floor = _OF_TORQUE * self.torque
        return (
            not self.low - _SHARE * abs(self.low) - floor <= self.stored <= self.high + _SHARE * abs(self.high) + floor
        )


def _one(what: str, stored: float, found: float, torque: float) -> _Figure:
    """A number that the rows give exactly."""
    return _Figure(what=what, stored=stored, low=found, high=found, torque=torque)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Motion:
    """Rows of one motion.

    Args:
        part: `training` or `held-out`.
        rows: one channel per measured one.
        scales: by which torque is multiplied to be as it was recorded, by channel.
    """

    part: str
    rows: Information
    scales: dict[str, float]

    def error(self, name: str, values: FloatArray) -> float:
        """Root mean square error of a channel in units of the rows."""
        channel = self.rows.channel(name)
        return sqrt(channel.error_energy(values) / max(channel.count, 1.0))

    def torque(self, name: str) -> float:
        """Root mean square torque of a channel, likewise."""
        channel = self.rows.channel(name)
        return sqrt(float(np.sum(channel.factor[:, -1] ** 2)) / max(channel.count, 1.0))

    def stacked(self, values: FloatArray, *, recorded: bool) -> float:
        """Error over torque of all channels together, as recorded or in units of the rows."""
        channels = self.rows.channels
        weights = [(self.scales[c.name] if recorded else 1.0) ** 2 * c.count for c in channels]
        error, torque = (
            sum(w * f**2 for w, f in zip(weights, found, strict=True))
            for found in ([self.error(c.name, values) for c in channels], [self.torque(c.name) for c in channels])
        )
        return sqrt(error / torque) if torque > 0.0 else nan


def figure_checks(result: Result) -> tuple[Check, ...]:
    """One failure when stored figures contradict the stored rows; nothing when they agree.

    Args:
        result: as it was read.
    """
    wrong = [figure for figure in _figures(result) if figure.contradicted]
    if not wrong:
        return ()
    first = wrong[0]
    found = first.low if not first.stored >= first.low else first.high
    message = f"{first.what} is {first.stored:.4g} in the stored result, but its stored rows and parameters make it {found:.4g}"
    message += f" ({len(wrong)} figures contradict them)" if len(wrong) > 1 else ""
    message += ": it was changed after it was made; identify again"
    return (Check(code=CODE, passed=False, value=first.stored, limit=found, message=message),)


def _figures(result: Result) -> Iterator[_Figure]:
    """All that follow from the rows."""
    train, tested = _training(result), _held_out(result)
    evidence, values = result.evidence, result.consistent.values
    for stored, words, own in (
        (result.joints, "", values),
        (result.joints_raw, " unconstrained", result.estimate.standard),
    ):
        for motion, errors in (
            (train, {j.name: j.train for j in stored}),
            (tested, {j.name: j.held_out for j in stored}),
        ):
            if motion is not None:
                yield from _errors(motion, errors, own, words)
    for motion, key in ((train, "train"), (tested, "held_out")):
        if motion is not None:
            yield _stacked(motion, result.relative_error.get(key, nan), values)
    if evidence is None:
        return
    for motion, joints in ((train, evidence.train), (tested, evidence.held_out)):
        if motion is not None:
            yield from _in_motion(motion, joints, values, result.described.n_joints)
    rests = any(joint.rest_share > 0.0 for joint in evidence.held_out)
    if tested is not None and not rests:
        yield from _beside_description(result, tested, evidence.against_nominal)


def _training(result: Result) -> _Motion | None:
    """The training motion; None where rows of an earlier result are among those stored."""
    rows = result.information.pooled()
    if any(channel.count != result.conditioning.samples_train for channel in rows.channels):
        return None
    return _Motion(part="training", rows=rows, scales=recorded_scales(result.imperfections, rows))


def _held_out(result: Result) -> _Motion | None:
    """The held-out motion; None without."""
    if result.held_out_information is None:
        return None
    rows = result.held_out_information.pooled()
    return _Motion(part="held-out", rows=rows, scales=recorded_scales(result.imperfections, rows))


def recorded_scales(found: Imperfections | None, rows: Information) -> dict[str, float]:
    """By what torque is multiplied per channel to be as it was recorded; see `Run.torque_scale`.

    Args:
        found: what the runs were freed from.
        rows: of them.
    """
    scales, step = np.ones(len(rows.channels)), found
    while step is not None:
        if len(step.joints) == len(scales):
            scales = scales * (1.0 + step.gains)
        step = step.before
    return {channel.name: float(scale) for channel, scale in zip(rows.channels, scales, strict=True)}


def _errors(motion: _Motion, stored: dict[str, TorqueErrors], values: FloatArray, words: str) -> Iterator[_Figure]:
    """Of every joint: as recorded or, in a sum of results, in units of the rows."""
    for name in motion.scales:
        said = stored.get(name, TorqueErrors())
        what, error, torque = f"{motion.part} error{words} of {name}", motion.error(name, values), motion.torque(name)
        scale = _nearer(said.rmse / max(error, 1e-300), motion.scales[name])
        yield _one(what, said.rmse, scale * error, scale * torque)
        yield _one(f"relative {what}", said.relative, error / torque if torque > 0.0 else nan, 1.0)


def _nearer(ratio: float, scale: float) -> float:
    """The scale that a stored error was told in."""
    return scale if abs(ratio - scale) < abs(ratio - 1.0) else 1.0


def _stacked(motion: _Motion, stored: float, values: FloatArray) -> _Figure:
    """The error of all joints together."""
    ends = sorted(motion.stacked(values, recorded=recorded) for recorded in (True, False))
    return _Figure(what=f"relative {motion.part} error", stored=stored, low=ends[0], high=ends[1], torque=1.0)


def _in_motion(motion: _Motion, joints: Sequence[JointMotion], values: FloatArray, n_joints: int) -> Iterator[_Figure]:
    """Torque and error while joints move, beside those of all samples.

    At rest an error is charged only beyond the friction F that may hold it, and can be larger by 2 F than what is charged:
    over all samples error <= hypot(moving, rest + 2 F), each times the root of its share of the samples. Torque is without what
    the offset O makes of its mean: torque^2 - 2 O torque at least.
    """
    friction = static_friction(motion.rows.parameters, values, n_joints)
    for k, joint in enumerate(joints):
        if joint.name not in motion.scales:
            continue
        error, torque = motion.error(joint.name, values), motion.torque(joint.name)
        moves, rests = sqrt(max(1.0 - joint.rest_share, 0.0)), sqrt(max(joint.rest_share, 0.0))
        scale = motion.scales[joint.name]
        if not rests:
            scale = _nearer(joint.rmse_moving / max(error, 1e-300), scale)
        size = hypot(_of(moves, joint.torque_moving), _of(rests, joint.torque_rest))
        least = scale * sqrt(max(torque**2 - 2.0 * abs(joint.offset / scale) * torque, 0.0))
        what = f"{motion.part} torque of {joint.name}"
        yield _Figure(what=what, stored=size, low=least, high=scale * torque, torque=scale * torque)
        held = rests * (joint.rmse_rest + 2.0 * scale * friction[k % n_joints]) if rests else 0.0
        least = sqrt(max((scale * error) ** 2 - held**2, 0.0))
        what = f"{motion.part} error of {joint.name} in motion"
        stored = _of(moves, joint.rmse_moving)
        yield _Figure(what=what, stored=stored, low=least, high=scale * error, torque=scale * torque)


def _of(share: float, value: float) -> float:
    """A root mean square of a share of the samples as one of all; zero where there are no such samples."""
    return share * value if share > 0.0 else 0.0


def _beside_description(result: Result, tested: _Motion, stored: Sequence[Comparison]) -> Iterator[_Figure]:
    """Errors of both models on held-out motion that never rests, and by how much the squares of one exceed the other's."""
    known = nominal_models(result.described, tested.rows.parameters)
    for one in stored:
        if one.name not in tested.scales:
            continue
        torque = tested.torque(one.name)
        mine = tested.error(one.name, result.consistent.values)
        ends = sorted(tested.error(one.name, known[name]) for name in (NOMINAL, RIGID))
        yield _one(f"held-out error of {one.name} beside the description's", one.rmse, mine, torque)
        what = f"held-out error of the description's {one.name}"
        yield _Figure(what=what, stored=one.rmse_other, low=ends[0], high=ends[1], torque=torque)
        excess = one.rmse**2 - (TOLERATED * one.rmse_other) ** 2 - (NEGLIGIBLE_ERROR.value * torque) ** 2
        room = _SHARE * (one.rmse**2 + one.rmse_other**2)
        what = f"excess of {one.name} over the description"
        yield _Figure(what=what, stored=one.excess, low=excess - room, high=excess + room, torque=torque**2)
