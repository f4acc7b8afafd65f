"""What an earlier result already knows, for the next motion to fill in; and how many periods a wish takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError, UnknownNameError
from armid.identifiability.base import BaseParameters
from armid.identifiability.expectation import REPORT_RATE_HZ, relative_deviations
from armid.identification.result import Result, load_result
from armid.robot.robot import Robot
from armid.rows.torque import TorqueRows

_MOST_PERIODS = 10_000
"""Beyond this a wish is said to be out of reach: at 20 s that is two days."""

_GROUPS = {
    "mass": ("mass",),
    "moment": ("mx", "my", "mz"),
    "inertia": ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz"),
    "friction": ("viscous", "coulomb", "offset"),
    "viscous": ("viscous",),
    "coulomb": ("coulomb",),
    "offset": ("offset",),
    "rotor-inertia": ("rotor_inertia",),
}
"""Words for kinds of parameters, and the quantities they mean; `all` is every base parameter."""


@dataclass(frozen=True, eq=False)
class Known:
    """What is known about the base parameters before a motion.

    Args:
        information: inverse covariance over the base parameters, shape [r, r]; zero where nothing is known.
        noise: of each torque channel, as white noise at `REPORT_RATE_HZ` that gives the result's own deviations,
            shape [n_channels].
    """

    information: FloatArray
    noise: FloatArray


def result_of(after: str | Path | Result | None) -> Result | None:
    """A result from its folder; one that is loaded, or none, stays."""
    return load_result(after) if isinstance(after, str | Path) else after


def known_from(result: Result, robot: Robot, rows: TorqueRows, base: BaseParameters) -> Known:
    """What a result knows about the base parameters of a design.

    Its covariance counts, which allows for correlated residuals; so does the noise it implies for the next motion.

    Raises:
        InputError: the result is about another arm, or its torque was measured elsewhere.
    """
    if result.described.joint_names != robot.joint_names:
        theirs, ours = ", ".join(result.described.joint_names), ", ".join(robot.joint_names)
        raise InputError("after", f"a result about the joints {theirs}", f"this arm has {ours}")
    estimate = result.estimate
    place = {name: k for k, name in enumerate(estimate.names)}
    shared = [k for k, name in enumerate(base.names) if name in place]
    if not shared:
        raise InputError("after", "a result without any parameter of this design", "use the effects of the result")
    theirs_ = [place[base.names[k]] for k in shared]
    covariance = estimate.covariance[np.ix_(theirs_, theirs_)]
    information = np.zeros((len(base), len(base)))
    information[np.ix_(shared, shared)] = np.linalg.pinv(covariance, hermitian=True)
    return Known(information, _noise(result, rows, base))


def _noise(result: Result, rows: TorqueRows, base: BaseParameters) -> FloatArray:
    """Residual of each channel, enlarged by what correlation costs, as white noise at the rate of predictions."""
    estimate = result.estimate
    missing = [channel for channel in rows.channels if channel not in estimate.sigma]
    if missing:
        raise InputError("after", f"a result without the channel {missing[0]}", "design with its side of the torque")
    sigma = np.array([estimate.sigma[channel] for channel in rows.channels])
    weights = {channel: 1.0 / max(value, 1e-12) for channel, value in estimate.sigma.items()}
    gram = result.information.select(estimate.base.independent).weighted(weights).gram()
    white = np.diag(np.linalg.pinv(gram, hermitian=True))
    cost = float(np.median(np.diag(estimate.covariance) / np.maximum(white, 1e-300)))
    rate = result.conditioning.rate_hz or REPORT_RATE_HZ
    return np.asarray(sigma * np.sqrt(max(cost, 1.0) * REPORT_RATE_HZ / rate))


@dataclass(frozen=True, kw_only=True)
class Wish:
    """How well some parameters shall be known.

    Args:
        what: a kind of parameter, or the name of a base parameter.
        deviation: relative standard deviation to reach, a fraction.
    """

    what: str
    deviation: float


@dataclass(frozen=True, kw_only=True)
class Fulfilment:
    """How many periods a wish takes.

    Args:
        wish: what was asked.
        periods: to run; None when it stays out of reach.
        worst: the parameter that takes longest.
        after_one: its relative deviation after one period, a fraction.
    """

    wish: Wish
    periods: int | None
    worst: str
    after_one: float


def wishes_of(until: str | Sequence[Wish] | None) -> tuple[Wish, ...]:
    """`mass 2 %, friction 5 %` as wishes."""
    if until is None or not isinstance(until, str):
        return tuple(until or ())
    found = []
    for part in until.split(","):
        match = re.fullmatch(r"\s*(\S+)\s+([0-9.]+)\s*%?\s*", part)
        if match is None or not float(match[2]) > 0.0:
            raise InputError("until", repr(part.strip()), "a kind of parameter and per cent: 'mass 2 %, friction 5 %'")
        found.append(Wish(what=match[1], deviation=float(match[2]) / 100.0))
    return tuple(found)


def concerned(wish: Wish, rows: TorqueRows, base: BaseParameters) -> list[int]:
    """Base parameters a wish is about: those whose combination contains such a parameter.

    Raises:
        UnknownNameError: neither a kind nor a base parameter.
    """
    if wish.what == "all":
        return list(range(len(base)))
    if wish.what in base.names:
        return [base.names.index(wish.what)]
    if wish.what not in _GROUPS:
        raise UnknownNameError("parameter", wish.what, (*_GROUPS, "all", *base.names))
    parameters, wanted = rows.space.parameters, _GROUPS[wish.what]
    matching = np.array([parameters[i].quantity in wanted for i in base.dependent], dtype=np.bool_)
    leading = [parameters[i].quantity in wanted for i in base.independent]
    return [k for k in range(len(base)) if leading[k] or (base.K[k][matching] != 0.0).any()]


def check_wishes(wishes: Sequence[Wish], robot: Robot, rows: TorqueRows, base: BaseParameters) -> None:
    """Whether every wish is about parameters of which there is a value to be a share of.

    Args:
        wishes: how well parameters shall be known.
        robot: whose values shares refer to.
        rows: of the torque.
        base: the parameters.

    Raises:
        InputError: the arm gives no value of that kind at all, as a plain URDF of friction.
    """
    told = np.isfinite(relative_deviations(robot, rows, base, np.ones(len(base))))
    for wish in wishes:
        if not told[concerned(wish, rows, base)].all():
            missing = [base.names[k] for k in concerned(wish, rows, base) if not told[k]]
            raise InputError(
                "until",
                f"{wish.what}: {robot.name} gives no value of {', '.join(missing[:3])}{', ...' if missing[3:] else ''} to be a "
                "share of",
                "identify once and give the result with --after, or describe the drives",
            )


def periods_needed(
    wish: Wish,
    *,
    rows: TorqueRows,
    base: BaseParameters,
    scale: FloatArray,
    one: FloatArray,
    known: FloatArray | None,
) -> Fulfilment:
    """The least number of periods after which a wish is fulfilled.

    Args:
        wish: what is asked.
        rows: of the torque.
        base: the parameters.
        scale: magnitudes relative deviations refer to, shape [r].
        one: information of one period, shape [r, r].
        known: before the first, shape [r, r].
    """
    of = concerned(wish, rows, base)
    if not of:
        return Fulfilment(wish=wish, periods=None, worst="", after_one=float("inf"))
    before = np.zeros_like(one) if known is None else known

    def reached(periods: int) -> FloatArray:
        inverse = np.linalg.pinv(periods * one + before, hermitian=True)
        return np.asarray(np.sqrt(np.diag(inverse))[of] / scale[of])

    first = reached(1)
    low, high = 0, 1
    while reached(high).max() > wish.deviation and high <= _MOST_PERIODS:
        low, high = high, 2 * high
    if high > _MOST_PERIODS:
        periods = None
    else:
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if reached(middle).max() <= wish.deviation else (middle, high)
        periods = high
    worst = int(np.argmax(reached(periods or _MOST_PERIODS)))
    return Fulfilment(wish=wish, periods=periods, worst=base.names[of[worst]], after_one=float(first[worst]))
