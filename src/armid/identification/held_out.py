"""The conditions of the gate about motion the fit never saw: joint by joint, against what can be achieved on each.

A joint is judged on the samples in which it moves. What it may miss is a share of its own torque, or, for a joint that carries
little of the arm's torque, a share of that; where its torque is mostly noise, nothing can be said and it is *undetermined*.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import hypot, inf, isnan, nan

from armid.identification.evidence import Evidence
from armid.identification.growth import diagnosis, extrapolations
from armid.identification.motion import JointMotion
from armid.identification.thresholds import (
    FLOOR_RATIO,
    GROWTH,
    JOINT_ERROR,
    LIGHT_ERROR,
    MOVING_SECONDS,
    NEGLIGIBLE,
    REPEATED_SHARE,
    STILL_SHARE,
    UNEXPLAINED,
)
from armid.identification.torque_error import JointErrors
from armid.outcome import Check

UNDETERMINED = "joint-undetermined"
"""Code of the finding that the data cannot tell whether a joint is right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedJoint:
    """One joint as the held-out conditions see it.

    Args:
        name: of the channel.
        error, torque: root mean square while it moves; over everything where motion was not told apart [N m or N]. No error
            for a joint that never moves: it is judged at rest.
        train: error in the training motion, likewise.
        arm: root of the sum of all joints' squared torques.
        noise: of its conditioned torque; zero when not known.
        rest: error at rest beyond what friction can hold; NaN when it never rests.
        rest_share: of the samples.
        offset: constant torque that the model holds, which `torque` is without.
    """

    name: str
    error: float
    torque: float
    train: float
    arm: float
    noise: float
    rest: float = nan
    rest_share: float = 0.0
    offset: float = 0.0

    @property
    def relative(self) -> float:
        """Error over its torque."""
        return self.error / self.torque if self.torque > 0.0 else nan

    @property
    def limit(self) -> float:
        """Of `relative`: a share of its own torque, or of the arm's; never so much that too little is explained."""
        light = LIGHT_ERROR.value * self.arm / self.torque if self.torque > 0.0 else 0.0
        return max(JOINT_ERROR.value, min(light, UNEXPLAINED.value))

    @property
    def unexplained(self) -> bool:
        """Whether its error in motion is beyond its limit, in training or held-out motion, and not mostly noise."""
        largest = max(self.limit * self.torque, FLOOR_RATIO.value * self.noise)
        return max(self.error, self.train) > largest

    @property
    def is_noise(self) -> bool:
        """Whether what is not explained is mostly noise of the torque, which no model predicts."""
        return self.noise * FLOOR_RATIO.value >= self.error


def judged_joints(joints: Sequence[JointErrors], evidence: Evidence) -> tuple[JudgedJoint, ...]:
    """Every joint with what can be achieved on it."""
    train = {motion.name: motion for motion in evidence.train}
    tested = {motion.name: motion for motion in evidence.held_out}
    torques = {joint.name: _torque(joint, tested.get(joint.name)) for joint in joints}
    arm = hypot(*(value for value in torques.values() if not isnan(value))) if torques else 0.0
    out = []
    for joint in joints:
        motion, trained = tested.get(joint.name), train.get(joint.name)
        out.append(
            JudgedJoint(
                name=joint.name,
                error=joint.held_out.rmse if motion is None else _or(motion.rmse_moving, 0.0),
                torque=torques[joint.name],
                train=joint.train.rmse if trained is None else _or(trained.rmse_moving, joint.train.rmse),
                arm=arm,
                noise=evidence.noise.get(joint.name, 0.0),
                rest=nan if motion is None else motion.rmse_rest,
                rest_share=0.0 if motion is None else motion.rest_share,
                offset=0.0 if motion is None else motion.offset,
            )
        )
    return tuple(out)


def _or(value: float, other: float) -> float:
    """The value, or another where it is NaN."""
    return other if isnan(value) else value


def _torque(joint: JointErrors, motion: JointMotion | None) -> float:
    """Root mean square torque of a joint in motion, or at rest when it never moves; over everything where not told apart."""
    if motion is not None:
        return _or(motion.torque_moving, motion.torque_rest)
    return joint.held_out.rmse / joint.held_out.relative if joint.held_out.relative > 0.0 else nan


def held_out_checks(
    joints: Sequence[JointErrors], relative_error: Mapping[str, float], evidence: Evidence
) -> tuple[Check, ...]:
    """Torque the fit never saw.

    Args:
        joints: errors of the consistent estimate.
        relative_error: stacked, with `held_out`.
        evidence: what the motions were.
    """
    error = relative_error.get("held_out", nan)
    if isnan(error):
        text = "no held-out motion: nothing shows that it predicts; validate it"
        return (Check(code="held-out", passed=False, value=error, limit=JOINT_ERROR.value, message=text),)
    judged = judged_joints(joints, evidence)
    failing = tuple(check for joint in judged for check in _joint_checks(joint, evidence))
    return (
        _overall(error, judged, failing),
        *failing,
        *_repeat_checks(judged, evidence),
        *_extrapolation_checks(evidence),
        *_still_checks(evidence),
    )


def _overall(error: float, judged: Sequence[JudgedJoint], failing: Sequence[Check]) -> Check:
    """The stacked error beside what the joints' own limits add up to."""
    arm = judged[0].arm if judged else 0.0
    limit = hypot(*(joint.limit * joint.torque for joint in judged)) / arm if arm > 0.0 else JOINT_ERROR.value
    moving = hypot(*(joint.error for joint in judged)) / arm if arm > 0.0 else error
    bad = [check.subject for check in failing if check.decisive and not check.passed]
    text = f"held-out torque error {100 * moving:.1f} % of the torque in motion ({100 * error:.1f} % with rest)"
    noisy = [joint.name for joint in judged if joint.is_noise and not joint.relative <= joint.limit]
    if bad:
        text += f"; {', '.join(dict.fromkeys(bad))} beyond what the joint may miss"
    elif noisy:
        text += f"; that of {', '.join(noisy)} is mostly noise, which shows neither a right model nor a wrong one: move faster"
    else:
        text += ", every joint within its limit"
    return Check(code="held-out", passed=moving <= limit, value=moving, limit=limit, message=text)


def _joint_checks(joint: JudgedJoint, evidence: Evidence) -> Iterator[Check]:
    """What one joint's error says."""
    if not joint.relative <= joint.limit:
        yield _limit_check(joint)
    growth = joint.error / max(joint.train, 1e-300)
    if not (growth <= GROWTH.value or joint.relative <= NEGLIGIBLE.value * joint.limit or joint.is_noise):
        why, remedy = diagnosis(joint.name, evidence)
        yield Check(
            code="joint-overfitted",
            passed=False,
            value=growth,
            limit=GROWTH.value,
            message=f"{joint.name}: held-out error {growth:.1f} times the training error; {why}: {remedy}",
            subject=joint.name,
        )
    largest = max(joint.limit * joint.torque, FLOOR_RATIO.value * joint.noise)
    if joint.rest > largest:
        yield Check(
            code="joint-at-rest",
            passed=False,
            value=joint.rest,
            limit=largest,
            message=f"{joint.name}: at rest {joint.rest:.3g} beyond what its friction can hold "
            f"(limit {largest:.3g}): weight, zero or load differ there",
            subject=joint.name,
        )


def _limit_check(joint: JudgedJoint) -> Check:
    """A joint beyond its limit: undetermined when its torque is noise, unexplained otherwise."""
    text = f"{joint.name}: held-out error {100 * joint.relative:.0f} % of its torque in motion (limit {100 * joint.limit:.0f} %)"
    if abs(joint.offset) > joint.torque:
        text += f", a constant {joint.offset:.3g} left out that no body makes"
    if joint.is_noise:
        return Check(
            code=UNDETERMINED,
            passed=False,
            value=joint.relative,
            limit=joint.limit,
            message=f"{text}, but its torque has {joint.noise:.2g} of noise: undetermined, not shown right or wrong; "
            "move it faster or record longer",
            subject=joint.name,
            decisive=False,
        )
    if joint.train > joint.limit * joint.torque:
        text += "; the training motion is explained no better, so something about this joint is not in the model: its friction, "
        text += "its sensor, or what is attached to it"
    return Check(
        code="joint-unexplained",
        passed=False,
        value=joint.relative,
        limit=joint.limit,
        message=text,
        subject=joint.name,
    )


def _extrapolation_checks(evidence: Evidence) -> Iterator[Check]:
    beyond = extrapolations(evidence)
    if beyond:
        text = (
            f"the held-out motion goes beyond the training motion: {'; '.join(one.words for one in beyond.values())}; "
        )
        text += "errors there are of extrapolation"
        yield Check(code="extrapolation", passed=False, value=len(beyond), limit=0.0, message=text, decisive=False)


def _repeat_checks(judged: Sequence[JudgedJoint], evidence: Evidence) -> Iterator[Check]:
    """A held-out motion that the training motion has gone through already is no test: other stretches of it must be.

    Said in either case: who asks for a test on other motion must know that there was none.
    """
    if not evidence.repeated > REPEATED_SHARE.value:
        return
    found = evidence.cross_predicted
    over = {j.name: found.get(j.name, nan) / j.limit for j in judged}
    over = {j.name: over[j.name] for j in judged if over[j.name] <= 1.0 or not j.is_noise}
    worst = max(over, key=lambda name: inf if isnan(over[name]) else over[name], default="")
    within = bool(over) and over[worst] <= 1.0
    text = (
        f"{100 * evidence.repeated:.0f} % of the held-out motion repeats the training motion and counts as training; "
    )
    text += "fifths of the training motion, each predicted from the rest, "
    if not found:
        text += "could not be: record another motion to validate on"
    elif within:
        text += f"are within every joint's limit (worst: {worst}, {100 * found.get(worst, nan):.1f} % of its torque)"
    else:
        text += f"are not ({worst}: {100 * found.get(worst, nan):.0f} % of its torque): record another motion to validate on"
    yield Check(
        code="held-out-repeats",
        passed=False,
        value=over.get(worst, nan),
        limit=1.0,
        message=text,
        subject="" if within else worst,
        decisive=not within,
    )


def _still_checks(evidence: Evidence) -> Iterator[Check]:
    """Joints that the held-out motion does not move are not tested."""
    still = [
        motion
        for motion in evidence.held_out
        if motion.rest_share > STILL_SHARE.value and motion.seconds_moving < MOVING_SECONDS.value
    ]
    for motion in still:
        yield Check(
            code=UNDETERMINED,
            passed=False,
            value=motion.rest_share,
            limit=STILL_SHARE.value,
            message=f"{motion.name}: at rest {100 * motion.rest_share:.0f} % of the held-out time: undetermined in motion",
            subject=motion.name,
            decisive=False,
        )
    if still and len(still) == len(evidence.held_out):
        text = "no joint moves in the held-out motion: friction and inertia were not tested; validate it on motion"
        yield Check(code="held-out-still", passed=False, value=len(still), limit=0.0, message=text)
