"""Motion: in radians, within limits, enough of it, and velocity the derivative of position."""

from __future__ import annotations

from collections.abc import Iterator
from math import pi

import numpy as np

from armid.arrays import FloatArray
from armid.logs.conditioning.uniform import ordinary_step
from armid.logs.health.channels import minimum_range
from armid.logs.health.findings import finding, share
from armid.logs.health.leaps import leap_findings
from armid.logs.health.rows import ABSURD, corrupt, within
from armid.logs.health.thresholds import (
    AGREES,
    CLOCK_FACTOR,
    FAR_OVER_LIMIT,
    FAR_SHARE,
    OVER_LIMIT,
    REST_CHANGE,
    REST_SHARE,
    SWAPPED,
    SWAPPED_OWN,
    TURNS,
    WIDE,
)
from armid.logs.health.velocity import VelocityRatios, usable_rows, velocity_ratios
from armid.logs.log import Channel, Clock, Log
from armid.notes import Note, Severity
from armid.robot.robot import JointKind, Robot

_REST_SECONDS = 0.2
"""Over which a change of position is looked at: reversals pass in less."""


def motion_findings(log: Log, robot: Robot) -> Iterator[Note]:
    """Findings about positions and velocities."""
    q = log[Channel.POSITION]
    if not within(q, ABSURD[Channel.POSITION]):
        q = q[~corrupt(q, ABSURD[Channel.POSITION]).any(axis=1)]
    if len(q) < 10:
        return
    degrees = list(_degree_findings(log, q, robot))
    yield from degrees
    if not degrees:
        yield from _limit_findings(log, q, robot)
    yield from leap_findings(log, robot)
    yield from _range_findings(log, q, robot)
    yield from _rest_findings(log, q, robot)
    if Channel.VELOCITY in log:
        yield from _velocity_findings(log, robot)


def _degree_findings(log: Log, q: FloatArray, robot: Robot) -> Iterator[Note]:
    """Angles that only make sense as degrees: beyond two turns, or far outside limits that they meet once converted."""
    revolute = np.array([joint.kind is JointKind.REVOLUTE for joint in robot.joints])
    low, high = robot.limit("lower"), robot.limit("upper")
    reach = np.abs(q).max(axis=0)
    width = np.where(np.isfinite(high - low), high - low, np.inf)
    beyond = revolute & ((reach > TURNS) | (np.ptp(q, axis=0) > WIDE * width))
    lowest, highest = (q.min(axis=0) * pi / 180.0, q.max(axis=0) * pi / 180.0)
    fits = np.asarray((lowest >= low - OVER_LIMIT) & (highest <= high + OVER_LIMIT))
    if beyond.any() and fits[revolute].all():
        j = int(np.argmax(np.where(beyond, reach, 0.0)))
        yield finding(
            "degrees",
            Severity.ERROR,
            log.joints[j],
            f"positions reach {reach[j]:.4g}, which is {reach[j] / (2 * pi):.3g} turns in radians but fits as degrees",
            "give `unit: deg` in a mapping",
        )


def _limit_findings(log: Log, q: FloatArray, robot: Robot) -> Iterator[Note]:
    low, high = robot.limit("lower"), robot.limit("upper")
    for j, name in enumerate(log.joints):
        if low[j] - q[:, j].min() <= OVER_LIMIT and q[:, j].max() - high[j] <= OVER_LIMIT:
            continue
        over = np.maximum(low[j] - q[:, j], q[:, j] - high[j])
        outside = float(np.mean(over > OVER_LIMIT))
        severe = float(np.mean(over > FAR_OVER_LIMIT)) > FAR_SHARE
        yield finding(
            "position-limits",
            Severity.ERROR if severe else Severity.WARNING,
            name,
            f"{share(outside)} of the positions lie outside {low[j]:.4g}..{high[j]:.4g}, by up to {over.max():.3g}",
            "check zero offset, sign, unit and joint order" if severe else "check the limits and the zero offset",
        )


def _range_findings(log: Log, q: FloatArray, robot: Robot) -> Iterator[Note]:
    """Joints that hardly move."""
    still = np.array([np.ptp(q[:, j]) < minimum_range(robot, j) for j in range(q.shape[1])])
    if still.all():
        text = "no joint moves by more than a few hundredths"
        yield finding("too-little-motion", Severity.ERROR, log.name, text, "record an exciting trajectory")
        return
    for j in np.flatnonzero(still):
        yield finding(
            "too-little-motion",
            Severity.WARNING,
            log.joints[j],
            f"moves by {np.ptp(q[:, j]):.2g} only",
            "its own inertia and friction cannot be identified from this log",
        )


def _rest_findings(log: Log, q: FloatArray, robot: Robot) -> Iterator[Note]:
    """Joints that stand still for much of the time although they move otherwise."""
    step = ordinary_step(log.time) or 0.0
    reach = max(1, round(_REST_SECONDS / step)) if step > 0.0 else 1
    if len(q) <= 4 * reach:
        return
    resting = np.array([_resting_share(x, reach) for x in q.T])
    moves = np.array([np.ptp(q[:, j]) >= minimum_range(robot, j) for j in range(q.shape[1])])
    long = [j for j in np.flatnonzero(moves & (resting > REST_SHARE))]
    if long:
        names = ", ".join(f"{log.joints[j]} {share(float(resting[j]))}" for j in long)
        yield finding(
            "at-rest",
            Severity.WARNING,
            log.name,
            f"joints stand still for much of the time: {names}",
            "friction at rest is anything up to Coulomb friction, so these rows tell little: record more motion",
        )


def _resting_share(x: FloatArray, reach: int) -> float:
    """Share of the rows over which a joint hardly changes within `reach` rows, against its largest change."""
    change = x[reach:] - x[:-reach]
    np.abs(change, out=change)
    return float(np.mean(change < REST_CHANGE * change.max()))


def _velocity_findings(log: Log, robot: Robot) -> Iterator[Note]:
    """Recorded velocity against the derivative of position: same joint, same unit, same clock."""
    if log.clock is Clock.UNKNOWN:
        return
    slopes, measured = _derivative_and_velocity(log)
    if len(slopes) < 20:
        return
    span = np.nanmax(log[Channel.POSITION], axis=0) - np.nanmin(log[Channel.POSITION], axis=0)
    moving = (slopes.std(axis=0) > 0.0) & (span > [minimum_range(robot, j) for j in range(len(log.joints))])
    if not moving.any():
        return
    match = _correlations(slopes, measured)
    ratio = np.array(
        [
            np.dot(slopes[:, j], measured[:, j]) / max(np.dot(slopes[:, j], slopes[:, j]), 1e-300)
            for j in range(len(log.joints))
        ]
    )
    own = np.diag(match)
    swapped = [
        (j, int(np.argmax(match[j])))
        for j in np.flatnonzero(moving)
        if own[j] < SWAPPED_OWN * match[j].max() and match[j].max() > SWAPPED and int(np.argmax(match[j])) != j
    ]
    for j, k in swapped:
        yield finding(
            "joint-order",
            Severity.ERROR,
            log.joints[j],
            f"its velocity column follows the position of {log.joints[k]} (correlation {match[j, k]:.2f}), not its own",
            "name the joints in the order of the columns in a mapping",
        )
    if swapped:
        return
    exact = velocity_ratios(log, robot)
    rate = 1.0 if exact is None or exact.clock is None else 1.0 + exact.clock[0]
    rate = rate if 1.0 / CLOCK_FACTOR < rate < CLOCK_FACTOR else 1.0
    found = list(_ratio_findings(log, moving, own, ratio, rate))
    yield from found
    told = {note.subject for note in found}
    if exact is not None and log.name not in told:
        yield from (note for note in _rate_findings(log, exact, rate) if note.subject not in told)


def _ratio_findings(log: Log, moving: np.ndarray, own: FloatArray, ratio: FloatArray, rate: float) -> Iterator[Note]:
    """Velocity proportional to the derivative, but not equal to it, nor what a clock of this rate makes of it."""
    follows = moving & (own > AGREES)
    common = float(np.median(ratio[follows])) if follows.any() else 1.0
    shared = follows.sum() >= 2 and _uniform_ratio(ratio[follows]) and not _units_between(common)
    if shared and log.clock is Clock.COLUMN and not 1.0 / CLOCK_FACTOR < common < CLOCK_FACTOR:
        yield finding(
            "clock-unit",
            Severity.ERROR,
            log.name,
            f"the recorded velocity is {common:.4g} times the derivative of position on every joint",
            "the unit of time is wrong: name it in a mapping (clock: {unit: ms})",
        )
        return
    for j in np.flatnonzero(moving):
        if own[j] > AGREES and abs(ratio[j] / rate - 1.0) <= 1.0 - AGREES:
            continue
        what = f"velocity is {ratio[j]:.3g} times the derivative of position (correlation {own[j]:.2f})"
        if own[j] > AGREES and (units := _units_between(float(ratio[j]))):
            what += f", which is the factor between {units}"
        yield finding(
            "velocity-inconsistent",
            Severity.WARNING,
            log.joints[j],
            what,
            "it is derived from position instead; check unit, sign and clock of this channel",
        )


def _rate_findings(log: Log, ratios: VelocityRatios, rate: float) -> Iterator[Note]:
    """A clock that runs fast or slow, and joints whose velocity has a scale of its own."""
    if rate != 1.0 and ratios.clock is not None:
        yield finding(
            "clock-rate",
            Severity.WARNING,
            log.name,
            f"the recorded velocity is {rate:.4f} +- {ratios.clock[1]:.4f} times the derivative of position on every joint, as "
            "with so many seconds stamped for each that passed",
            f"compare with another clock, and say so in a mapping (clock: {{gain: {1.0 / rate:.4g}}})",
        )
    for j in ratios.apart:
        yield finding(
            "velocity-scale",
            Severity.WARNING,
            log.joints[j],
            f"its recorded velocity is {ratios.ratio[j]:.4f} +- {ratios.deviation[j]:.4f} times the derivative of its position, "
            f"where {ratios.usual:.4f} is usual in this log",
            "check the gain of its velocity and the scale of its encoder",
        )


def _uniform_ratio(ratio: FloatArray) -> bool:
    return bool(np.abs(ratio / np.median(ratio) - 1.0).max() < 0.1)


def _units_between(ratio: float) -> str:
    """Units of velocity, one of which was taken for the other; empty where no such factor is between them."""
    for words, factor, apart in (
        ("degrees and radians", 180.0 / pi, 0.1),
        ("revolutions per minute and radians per second", 30.0 / pi, 0.02),
    ):
        if abs(ratio / factor - 1.0) < apart or abs(ratio * factor - 1.0) < apart:
            return words
    return ""


def _derivative_and_velocity(log: Log) -> tuple[FloatArray, FloatArray]:
    """Mean velocity over a few steps, derived and recorded, shape [n, n_joints]; thinned."""
    q, qd = log[Channel.POSITION], log[Channel.VELOCITY]
    row = usable_rows(log)
    t = log.time[row]
    # A fiftieth of a second, so that quantisation and jitter do not matter, or a few steps of a slow log.
    reach = int(np.clip(round(0.02 / max(float(np.median(np.diff(t))), 1e-6)), 4, 200)) if len(t) > 10 else 4
    if len(t) <= reach + 1:
        return np.empty((0, q.shape[1])), np.empty((0, q.shape[1]))
    span = t[reach:] - t[:-reach]
    # Neither across gaps nor across rows left out where the clock steps back.
    kept = np.flatnonzero((span < 5.0 * np.median(span)) & (row[reach:] - row[:-reach] < 2 * reach))
    at = kept[:: max(1, len(kept) // _COMPARED)]
    derived = (q[row[at + reach]] - q[row[at]]) / span[at, np.newaxis]
    # Trapezium rule over the same samples.
    area = np.zeros_like(derived)
    for k in range(reach):
        step = (t[at + k + 1] - t[at + k])[:, np.newaxis]
        area += 0.5 * step * (qd[row[at + k]] + qd[row[at + k + 1]])
    return derived, area / span[at, np.newaxis]


_COMPARED = 5000
"""Places at which velocity and derivative are compared."""


def _correlations(x: FloatArray, y: FloatArray) -> FloatArray:
    """Correlation of each column of y with each column of x, shape [columns of y, columns of x]."""

    def unit(a: FloatArray) -> FloatArray:
        b = a - a.mean(axis=0)
        size = np.linalg.norm(b, axis=0)
        return b / np.where(size > 0.0, size, np.inf)

    return unit(y).T @ unit(x)
