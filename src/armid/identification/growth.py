"""Why a joint does worse on other motion than on that learnt from: another load, gain or weight, extrapolation, or none."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan

from armid.identification.evidence import Evidence, OtherLoad
from armid.identification.motion import JointMotion
from armid.identification.thresholds import BEYOND_POSITION, BEYOND_SPEED, GAIN_EXPLAINS, LOAD_EXPLAINS, LOAD_MASS

_CLEARLY = 1.5
"""Times the thresholds of extrapolation at which a motion explains errors of other joints than its own: 1.8 times as fast, three
times the torque of velocities, or by 30 % of the range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extrapolation:
    """How far a joint goes beyond its training motion.

    Args:
        words: `joint6 1.2 times as fast`.
        share: by how much, over what counts as beyond; at least 1.
        torque: root mean square of its torque in the other motion [N m or N].
    """

    words: str
    share: float
    torque: float


def diagnosis(name: str, evidence: Evidence) -> tuple[str, str]:
    """Why a joint does worse on other motion, and what to do: another load, gain or weight, extrapolation, or none of these."""
    # Named first: going a little beyond the training motion is ordinary, what explains most of the error is not.
    named = _at_once(evidence.other_load)
    if named is not None:
        return named
    blamed = _blamed(name, evidence)
    if blamed:
        return f"the held-out motion goes beyond the training motion ({blamed})", "train on motion as fast and as wide"
    return (
        "neither faster or wider motion nor another load explains it: it was memorised, or the model lacks something",
        "record a richer motion, and look at what could be wrong",
    )


def _at_once(load: OtherLoad | None) -> tuple[str, str] | None:
    """What explains most of the errors of all joints at once: a body on the flange, or one number of sensors or controller.

    A load that weighs less than nothing is one that the arm carried in training. It cannot have lacked more than its last bodies
    weigh: weight that is subtracted in the held-out motion alone looks like a load of minus half the arm.
    """
    if load is None or load.explains_train >= 0.5 * load.explains:
        return None
    otherwise = load.instead_explains > load.explains
    if otherwise and load.instead_explains > GAIN_EXPLAINS.value:
        return (
            f"{load.instead} is another there ({100 * load.instead_size:+.0f} %), which explains "
            f"{100 * load.instead_explains:.0f} % of the held-out error",
            "look at the settings of sensors and controller, and record both motions with the same",
        )
    if otherwise or load.explains <= LOAD_EXPLAINS.value or load.mass < load.lightest:
        return None
    what = f"{load.mass:+.2g} kg" if abs(load.mass) > LOAD_MASS.value else "the same mass placed or turned otherwise"
    return (
        f"another load on the flange ({what}) explains {100 * load.explains:.0f} % of the held-out error",
        "say what the arm carried, or record both with the same",
    )


def extrapolations(evidence: Evidence) -> dict[str, Extrapolation]:
    """By joint: how far the held-out motion goes beyond the training motion."""
    train = {motion.name: motion for motion in evidence.train}
    pairs = ((train[motion.name], motion) for motion in evidence.held_out if motion.name in train)
    found = {motion.name: _extrapolation(known, motion) for known, motion in pairs}
    return {name: beyond for name, beyond in found.items() if beyond is not None}


def _extrapolation(known: JointMotion, motion: JointMotion) -> Extrapolation | None:
    speed = motion.speed / max(known.speed, 1e-12)
    over = max(motion.high - known.high, known.low - motion.low)
    words, shares = [], []
    if speed > BEYOND_SPEED.value:
        words.append(f"{motion.name} {speed:.2g} times as fast")
        shares.append(speed / BEYOND_SPEED.value)
    wider = over / (BEYOND_POSITION.value * max(known.high - known.low, 1e-12))
    if wider > 1.0:
        words.append(f"{motion.name} {over:.2g} rad or m further")
        shares.append(wider)
    if not words:
        return None
    return Extrapolation(words=", ".join(words), share=max(shares), torque=motion.torque_moving)


def _blamed(name: str, evidence: Evidence) -> str:
    """The extrapolation behind what a joint does worse, in words: its own, or else a clear one of a joint that can load it.

    A joint before it moves its bodies. One behind it loads it by what it weighs itself: by its torque, which must be as large as
    what the error has grown by.
    """
    beyond = extrapolations(evidence)
    if name in beyond:
        return beyond[name].words
    order = [motion.name for motion in evidence.held_out]
    grown = _grown(name, evidence)
    clear = (
        found
        for other, found in beyond.items()
        if found.share > _CLEARLY and (order.index(other) < order.index(name) or found.torque >= grown)
    )
    return "; ".join(found.words for found in clear)


def _grown(name: str, evidence: Evidence) -> float:
    """Error of a joint in the held-out motion beyond that in the training motion [N m or N]; zero when either is not known."""
    train, tested = (
        next((motion.rmse_moving for motion in motions if motion.name == name), float("nan"))
        for motions in (evidence.train, evidence.held_out)
    )
    return 0.0 if isnan(tested - train) else max(tested - train, 0.0)
