"""What a load is held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.imperfections import FACTORS
from armid.identification.sensors import Sized
from armid.identification.stamped_clock import clock_words
from armid.outcome import Check
from armid.parameters.inertial import inertial_problem, pseudo_inertia
from armid.payload.synchronisation import LATE
from armid.rows.imperfections import KINDS, Family

SEEN = 3.0
"""Standard deviations from which on a load is more than nothing."""

_NEAR = 3.0
"""Standard deviations by which parameters may be moved to make a possible body."""

_LARGEST_REST = 0.15
"""Of the torque, all joints stacked: arm and load together are held against the same limit as an arm alone, whose held-out error
has to be below it. Ratios to the arm's own error say less: that depends on how often a motion turns around."""


_ONE_JOINT = 0.9
"""Of the squared torque that is left over, at one joint: a load that is no rigid body is felt at several."""


def load_checks(mass: float, spread: float, moved: float, *, doubt: float | None, limit: float) -> tuple[Check, ...]:
    """Whether there is a load, and a body that can be it.

    Args:
        mass: by least squares alone [kg].
        spread: its standard deviation [kg].
        moved: largest change that made the body possible, in standard deviations.
        doubt: standard deviation of the worst direction of the inertia over that of a typical body; None at rest, where the
            inertia is not looked for.
        limit: of the doubt.
    """
    score = mass / spread if spread > 0.0 else np.inf
    checks = [
        Check(
            code="load-present",
            passed=mass > 0.0,
            value=mass,
            limit=0.0,
            message=f"the torque asks for a mass of {mass:.3g} kg: no load, or torque of the wrong sign",
        ),
        Check(
            code="load-seen",
            passed=score >= SEEN,
            value=score,
            limit=SEEN,
            message=f"{mass:.3g} kg with a standard deviation of {spread:.2g} kg is not to be told from nothing",
        ),
        Check(
            code="near-possible-body",
            passed=moved <= _NEAR,
            value=moved,
            limit=_NEAR,
            message=f"the nearest possible body is {moved:.1f} standard deviations away from what was measured",
            decisive=False,
        ),
    ]
    if doubt is not None:
        text = f"the inertia is known to {100 * doubt:.3g} % of a typical body's only: that of a compact body is given"
        checks.append(
            Check(
                code="inertia-separated",
                passed=doubt < limit,
                value=doubt,
                limit=limit,
                message=text,
                decisive=False,
            )
        )
    return tuple(checks)


def torque_check(relative: float, shares: Mapping[str, float]) -> Check:
    """Whether arm and load together explain the torque as well as an arm has to that is to be trusted.

    Args:
        relative: norm of what they leave over the norm of the measured torque, all joints stacked.
        shares: of the square of that, by joint.
    """
    worst = max(shares, key=shares.__getitem__)
    alone = shares[worst] > _ONE_JOINT
    cause = (
        f", nearly all of it at {worst}: its torque sensor or encoder may be another than the arm was identified with"
    )
    return Check(
        code="torque-explained",
        passed=relative < _LARGEST_REST,
        value=relative,
        limit=_LARGEST_REST,
        message=f"arm and load leave {100 * relative:.1f} % of the torque unexplained"
        + (cause if alone else ": something else than a rigid body is carried, or this is another arm"),
    )


def clock_check(clock: Sized | None) -> Check:
    """Whether time is that of the arm: stamps too long by a share make accelerations too small by twice that.

    Args:
        clock: share by which recorded velocities say that time was stamped too long, beyond tolerance and doubt; None without.
    """
    size = 0.0 if clock is None else clock.value
    limit = FACTORS[-1] * KINDS[Family.CLOCK].tolerance
    return Check(
        code="clock",
        passed=clock is None,
        value=abs(size),
        limit=limit,
        message="no recorded velocity speaks against the stamps"
        if clock is None
        else f"the recorded velocity says that {1.0 + size:.4g} s were stamped for each that passed, and the load is wrong by "
        f"more than its interval: compare with another clock, and say so in a mapping ({clock_words(size)})",
        decisive=abs(size) > limit,
    )


def synchronisation_check(lag: float) -> Check:
    """Whether torque and position are in step; a lag on which the load depends is refused before."""
    return Check(
        code="synchronised",
        passed=abs(lag) < LATE,
        value=abs(lag),
        limit=LATE,
        message=f"torque is {1e3 * abs(lag):.0f} ms {'late' if lag > 0.0 else 'early'} against position",
        decisive=False,
    )


def remainder_check(rest: FloatArray, name: str) -> Check:
    """Whether what is left after a known body was taken away is a body that can exist."""
    smallest = float(np.linalg.eigvalsh(pseudo_inertia(rest))[0])
    problem = inertial_problem(rest)
    return Check(
        code="possible-remainder",
        passed=not problem,
        value=smallest,
        limit=0.0,
        message=f"without the {name} what is left is no possible body: {problem}"
        if problem
        else f"without the {name} a possible body is left",
    )


def arm_check(reasons: Sequence[str]) -> Check:
    """Whether the arm that carries the load may be used itself."""
    return Check(
        code="arm-trusted",
        passed=not reasons,
        value=len(reasons),
        limit=0,
        message=f"the arm itself is not to be trusted: {'; '.join(reasons)}" if reasons else "the arm is trusted",
    )
