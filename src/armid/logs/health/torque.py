"""Torque: does it hold up this arm, in this mounting, with these joints, at this time?"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from armid.arrays import FloatArray
from armid.errors import ArmidError
from armid.kernels.dynamics import gravity
from armid.logs.health.computed import computed_findings
from armid.logs.health.findings import finding
from armid.logs.health.lag import torque_lag
from armid.logs.health.order import carrying, order_findings, score, unexplained
from armid.logs.health.payload import payload_findings
from armid.logs.health.probe import Probe, probe, under_gravity
from armid.logs.health.rows import Mask
from armid.logs.health.thresholds import (
    ABSENT,
    COMPENSATED,
    CURRENT_SCALE,
    DECISIVE,
    DOUBTFUL,
    EXPLAINED,
    FRICTION_SIGN,
    FRICTIONLESS,
    FULL,
    GOOD,
    GRAVITY_ANGLE,
    GRAVITY_GAIN,
    LAG_CONFIDENCE,
    LAG_ERROR_SECONDS,
    LAG_SECONDS,
    LOST,
    MIN_REVERSALS,
    REMAINDER,
    UNIT_DOUBT,
    UNIT_WRONG,
    VISIBLE,
)
from armid.logs.health.weight import WeightFit, weight_fit
from armid.logs.log import Channel, Clock, Log
from armid.logs.samples import Samples
from armid.notes import Note, Severity
from armid.robot.robot import Robot

_NOT_THE_ARM = ("torque-sign", "joint-order", "gravity-reversed", "mounting", "gravity-compensated")
"""Findings after which a comparison with the nominal arm means nothing more."""


def torque_findings(log: Log, robot: Robot, conditioned: Callable[[], Samples]) -> Iterator[Note]:
    """Findings about the torque channels a fit would use.

    Args:
        log: whose torque it is.
        robot: nominal arm.
        conditioned: the samples of the log under automatic conditioning.
    """
    measured = tuple(c for c in log.torques if c is not Channel.COMMANDED_TORQUE)
    sides: tuple[Channel, ...] = measured or log.torques
    for channel in sides:
        if channel is Channel.CURRENT:
            yield _current_note(log)
        try:
            view = probe(log, robot, channel, conditioned())
        except ArmidError as error:
            text = f"{channel.value} could not be compared with the arm's weight ({error})"
            yield finding("torque-untested", Severity.WARNING, log.name, text, "mend what stands in the way")
            return
        fit = weight_fit(view)
        wrong = list(_weight_findings(view, fit))
        yield from wrong
        if not any(note.code in _NOT_THE_ARM for note in wrong):
            yield from payload_findings(view)
            yield from computed_findings(view, fit)
        yield from _friction_findings(view, fit)
        if log.clock is not Clock.UNKNOWN:
            yield from _lag_findings(view)


def _current_note(log: Log) -> Note:
    return finding(
        "torque-in-ampere",
        Severity.WARNING,
        log.name,
        "torque is recorded as motor current",
        "parameters come out per ampere unless drive gains are given (`gain` in a mapping, in N m/A, with side: motor)",
    )


def _weight_findings(view: Probe, fit: WeightFit) -> Iterator[Note]:
    """Sign, mounting, unit, compensation, joint order."""
    heavy = carrying(fit)
    if not heavy.any():
        return
    compensated = list(_compensation_findings(view, fit, heavy))
    if compensated:
        yield from compensated
        return
    c = fit.weight_correlation
    believed = heavy & (np.abs(c) > DECISIVE)
    agreeing = heavy & (c > DECISIVE)
    overall = score(fit, heavy)
    if overall < GOOD or unexplained(fit) > DOUBTFUL:
        found = list(order_findings(view, fit, heavy))
        lost = view.real and unexplained(fit) > LOST
        if not found and (overall < DECISIVE or lost or not believed.any()):
            found = list(_direction_findings(view))
        yield from found
        if found or overall < DECISIVE:
            return
    reversed_ = believed & (c < 0.0)
    if reversed_.any():
        yield from _reversal_findings(view, fit, reversed_, bool(agreeing.any()))
        return
    yield from _unit_findings(view, fit, agreeing)


def _reversal_findings(view: Probe, fit: WeightFit, reversed_: Mask, partly: bool) -> Iterator[Note]:
    """All of it reversed: torque or gravity, decided by friction and inertia. Some joints only: their torque."""
    motion = _motion_sign(fit)
    names = [name for name, yes in zip(view.log.joints, reversed_, strict=True) if yes]
    worst = ", ".join(
        f"{name} {value:.2f}" for name, value in zip(names, fit.weight_correlation[reversed_], strict=True)
    )
    nominal = "nominal weight" if view.real else "the weight of an arm of this shape"
    if partly or motion <= 0.0:
        for name, value in zip(names, fit.weight_correlation[reversed_], strict=True):
            also = "" if partly or motion == 0.0 else "; friction and inertia are reversed as well"
            yield finding(
                "torque-sign",
                Severity.ERROR,
                name,
                f"{view.channel.value} is opposite to {nominal} (correlation {value:.2f}){also}",
                f"give `sign: {{{name}: -1}}` for this channel in a mapping",
            )
        return
    yield finding(
        "gravity-reversed",
        Severity.ERROR,
        view.log.name,
        f"torque is opposite to {nominal} on every joint that carries it ({worst}), while friction and inertia are right",
        "the robot hangs, or its description has gravity upside down: give `mounting` in the conditions of the mapping",
    )


def _motion_sign(fit: WeightFit) -> float:
    """+1 when friction opposes motion and inertia resists it, -1 when both are reversed, 0 when the log does not say."""
    friction = fit.friction_correlation[np.abs(fit.friction_correlation) > ABSENT]
    inertia = fit.inertia_correlation[np.abs(fit.inertia_correlation) > ABSENT]
    votes = float(np.sum(friction)) + float(np.sum(inertia))
    return float(np.sign(votes)) if abs(votes) > 0.5 else 0.0


def _direction_findings(view: Probe) -> Iterator[Note]:
    """Gravity that points elsewhere in the base frame: a wall, a slope, a ceiling.

    Weight is linear in the gravity vector, so three numbers shared by all joints are fitted next to each joint's own friction.
    """
    fitted, gain = _fitted_gravity(view)
    assumed = view.robot.gravity
    size = float(np.linalg.norm(fitted))
    if size == 0.0 or gain < GRAVITY_GAIN:
        return
    angle = float(np.degrees(np.arccos(np.clip(fitted @ assumed / (size * np.linalg.norm(assumed)), -1.0, 1.0))))
    if angle < GRAVITY_ANGLE:
        return
    direction = ", ".join(f"{v:.1f}" for v in fitted / size * np.linalg.norm(assumed))
    yield finding(
        "mounting",
        Severity.ERROR,
        view.log.name,
        f"torque fits gravity ({direction}) m/s^2 in the base frame, {angle:.0f} degrees from the description's",
        "give `mounting` in the conditions of the mapping, or check the joint zeros",
    )


def _fitted_gravity(view: Probe) -> tuple[FloatArray, float]:
    """Gravity vector that explains torque best [m/s^2], and the share of the unexplained torque it accounts for."""
    s, n = view.samples, view.robot.n_joints
    unit = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    axes = [gravity(under_gravity(view.robot, axis), s.q, inertial=view.inertial) for axis in unit]
    inertia = view.inertia()
    normal, right, before = np.zeros((3, 3)), np.zeros(3), 0.0
    for j in range(n):
        speed = max(float(np.abs(s.qd[:, j]).max()), 1e-12)
        own = np.column_stack([inertia[:, j], s.qd[:, j], np.tanh(s.qd[:, j] / (0.02 * speed)), np.ones(len(s))])
        Q = np.linalg.qr(own / np.maximum(np.linalg.norm(own, axis=0), 1e-300))[0]
        G, y = (x - Q @ (Q.T @ x) for x in (np.column_stack([a[:, j] for a in axes]), view.torque[:, j]))
        power = float(y @ y)
        if power > 0.0:
            normal, right, before = normal + G.T @ G / power, right + G.T @ y / power, before + 1.0
    if before == 0.0:
        return np.zeros(3), 0.0
    fitted = np.asarray(np.linalg.lstsq(normal, right, rcond=1e-9)[0], dtype=np.float64)
    return fitted, float(right @ fitted) / before


def _compensation_findings(view: Probe, fit: WeightFit, heavy: Mask) -> Iterator[Note]:
    """Torque from which the controller has taken the weight: inertia is there in full, weight is not.

    What its own model left over may still follow the nominal weight, or oppose it, very closely: the scale decides.
    """
    strong = heavy & (fit.weight_spread > 0.2 * fit.weight_spread.max())
    if not _visible_weight(view, fit)[strong].all() or not (fit.torque_spread[strong] > 0.0).all():
        return
    uncorrelated = np.abs(fit.weight_correlation) < ABSENT
    if view.channel is Channel.CURRENT:
        # The unknown scale of amperes is common to both and cancels in the ratio.
        small = np.abs(fit.weight) < COMPENSATED * np.abs(fit.inertia)
    else:
        small = view.real & (np.abs(fit.weight) < REMAINDER) & (np.abs(fit.inertia) > FULL)
    if (uncorrelated | (small & (fit.inertia_correlation > DECISIVE)))[strong].all():
        j = int(np.argmax(fit.weight_spread))
        yield finding(
            "gravity-compensated",
            Severity.ERROR,
            view.log.joints[j],
            f"{view.channel.value} does not hold the arm's weight ({fit.weight[j]:.2g} of it, correlation "
            f"{fit.weight_correlation[j]:.2f}, where it should change by {fit.weight_spread[j]:.3g} N m)",
            "the controller has subtracted gravity: record the total torque, or another channel",
        )


def _visible_weight(view: Probe, fit: WeightFit) -> Mask:
    """Joints whose weight would stand out of what is left unexplained, were it in the torque."""
    scale = CURRENT_SCALE if view.channel is Channel.CURRENT else 1.0
    return np.asarray(scale * fit.weight_spread > VISIBLE * fit.residual)


def _unit_findings(view: Probe, fit: WeightFit, agreeing: Mask) -> Iterator[Note]:
    """Torque in proportion to the weight, but not equal to it."""
    if not view.real or view.channel is Channel.CURRENT:
        return
    ratio = float(np.median(fit.weight[agreeing]))
    if 1.0 / UNIT_DOUBT < ratio < UNIT_DOUBT:
        return
    severe = not 1.0 / UNIT_WRONG < ratio < UNIT_WRONG
    guess = (
        "amperes (--side current) or a motor-side torque without its gear ratio"
        if ratio < 1.0
        else "millinewton metres"
    )
    yield finding(
        "torque-unit",
        Severity.ERROR if severe else Severity.WARNING,
        view.log.name,
        f"{view.channel.value} is {ratio:.3g} times the nominal weight of the arm (median of {int(agreeing.sum())} joints)",
        f"not N m on the joint side: probably {guess}"
        if severe
        else "check unit and gain, or the masses of the description",
    )


def _friction_findings(view: Probe, fit: WeightFit) -> Iterator[Note]:
    """Friction of single joints with the wrong sign, or none where a motor must overcome some."""
    c = fit.friction_correlation
    if np.median(c) > 0.0:
        for j in np.flatnonzero((c < -FRICTION_SIGN) & (fit.reversals >= MIN_REVERSALS)):
            yield finding(
                "friction-sign",
                Severity.WARNING,
                view.log.joints[j],
                f"{view.channel.value} falls when the joint moves forward (correlation {c[j]:.2f}): friction would drive it",
                "torque or position of this joint has the wrong sign: check gear ratio and coupling",
            )
    if view.channel in (Channel.MOTOR_TORQUE, Channel.CURRENT) and _frictionless(fit):
        yield finding(
            "friction-compensated",
            Severity.WARNING,
            view.log.name,
            "motor torque shows no friction on any joint",
            "the controller seems to have subtracted it: leave friction out of the model, or record the total torque",
        )


def _frictionless(fit: WeightFit) -> bool:
    """Whether no joint shows friction, among those whose torque is understood; at least half of them must be."""
    torque = np.maximum(fit.torque_spread, 1e-12)
    clear = fit.residual < EXPLAINED * torque
    return 2 * int(clear.sum()) >= len(clear) and bool(
        (fit.friction_spread[clear] < FRICTIONLESS * torque[clear]).all()
    )


def _lag_findings(view: Probe) -> Iterator[Note]:
    """Torque and motion on two clocks."""
    lag = torque_lag(view)
    if lag is None or abs(lag.seconds) < LAG_SECONDS or lag.confidence < LAG_CONFIDENCE:
        return
    when = "late" if lag.seconds > 0.0 else "early"
    yield finding(
        "torque-lag",
        Severity.ERROR if abs(lag.seconds) - 3.0 * lag.deviation > LAG_ERROR_SECONDS else Severity.WARNING,
        view.log.name,
        f"{view.channel.value} comes {abs(lag.seconds) * 1e3:.1f} +- {lag.deviation * 1e3:.1f} ms {when} against the motion "
        f"({lag.confidence:.0f} standard deviations)",
        f"align the two clocks, or condition with a torque delay of {lag.seconds * 1e3:.1f} ms",
    )
