"""Motor and joint torque together: models 1, 2 and 3 of [Kolyubin2017], and whether a pair of them may be used.

    model 1   tau_J = Y(q, qd, qdd) pi + joint-side friction                    link side only
    model 2   both of them stacked                                               17 parameters per joint
    model 3   tau_M - tau_J = rotor_inertia qdd + motor-side friction            the drives alone

The rows themselves are `TorqueRows` with the torque side of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.logs.samples import Samples
from armid.parameters.effects import Effects, TorqueSide
from armid.signals.differentiate import Differentiator, derivatives

_LARGEST_LAG = 1.5e-3
"""[s] Torque changes by some 100 N m/s in an exciting motion: a lag of this much is 0.15 N m, as much as friction's own
scatter."""


@dataclass(frozen=True, slots=True)
class TorquePairModel:
    """One of the three models.

    Args:
        number: 1, 2 or 3.
        side: of the torque, in the words of `--torques`.
        needs: what must be recorded.
        gives: what can be found.
    """

    number: int
    side: TorqueSide
    needs: str
    gives: str


MODELS: Mapping[TorqueSide, TorquePairModel] = {
    TorqueSide.LINK: TorquePairModel(
        1, TorqueSide.LINK, "joint torque sensors", "links and joint-side friction; nothing of the drives"
    ),
    TorqueSide.BOTH: TorquePairModel(
        2,
        TorqueSide.BOTH,
        "joint torque sensors and motor torque, one clock",
        "links, payload, rotor inertias, friction and offsets on either side",
    ),
    TorqueSide.DIFFERENCE: TorquePairModel(
        3,
        TorqueSide.DIFFERENCE,
        "joint torque sensors and motor torque, one clock",
        "rotor inertias and motor-side friction, whatever the links and the payload are",
    ),
}
"""Model by torque side. The motor side alone (no joint sensors) is the ordinary case of industrial arms, not one of the three."""


def effects_of(side: TorqueSide, effects: Effects) -> Effects:
    """The same friction with the torque of another model; the payload stays."""
    from dataclasses import replace

    return replace(effects, torques=side, rotor_inertia=effects.rotor_inertia or side is not TorqueSide.LINK)


def shared_parameters(first: TorqueSide, second: TorqueSide) -> tuple[str, ...]:
    """Endings of the names that mean the same in both models: where they must agree."""
    link = {"mass", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz", "viscous", "coulomb", "offset"}
    drive = {"rotor_inertia", "motor_viscous", "motor_coulomb", "motor_offset"}
    held = {TorqueSide.LINK: link, TorqueSide.BOTH: link | drive, TorqueSide.DIFFERENCE: drive}
    for side in (first, second):
        if side not in held:
            raise InputError("model", f"torque side {side.value!r}", f"one of {', '.join(s.value for s in held)}")
    return tuple(sorted(held[first] & held[second]))


def pair_lags(samples: Samples) -> FloatArray:
    """By how much motor torque is stamped later than joint torque [s], per joint.

    motor - link = B qdd + Fv qd + Fc sign(qd) + offset - lag * d(motor)/dt: what a late motor torque lacks is its own rate.
    Only samples well away from standstill count: there a low-pass has blurred the jump of Coulomb friction, which then looks
    like a lag, and a joint at rest sticks with any friction up to it.
    """
    return _lags_with_deviations(samples)[0]


def _lags_with_deviations(samples: Samples) -> tuple[FloatArray, FloatArray]:
    """Lags and their standard deviations [s], shape [n_joints] each; infinite deviations for joints that hardly moved.

    What a low-pass leaves independent are twice its cut-off samples a second.
    """
    both = samples.torque(TorqueSide.BOTH)
    n = samples.n_joints
    motor, difference = both[:, n:], both[:, n:] - both[:, :n]
    out, deviations = np.zeros(n), np.full(n, np.inf)
    for j in range(n):
        rows, y = [], []
        for segment in samples.segments:
            part = segment.slice
            rate_of_change = derivatives(motor[part, j : j + 1], segment.rate, Differentiator.CENTRAL_8)[0][:, 0]
            qd = samples.qd[part, j]
            kept = moving(qd, samples.cutoff_hz, segment.rate)
            rows.append(
                np.column_stack([rate_of_change, samples.qdd[part, j], qd, np.sign(qd), np.ones_like(qd)])[kept]
            )
            y.append(difference[part, j][kept])
        A = np.vstack(rows)
        if len(A) < _FEWEST_MOVING:
            continue
        norms = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
        x, *_ = np.linalg.lstsq(A / norms, np.concatenate(y), rcond=None)
        out[j] = -x[0] / norms[0]
        rest = np.concatenate(y) - (A / norms) @ x
        cutoff = samples.cutoff_hz or np.inf
        correlated = max(samples.segments[0].rate / (2.0 * cutoff), 1.0)
        variance = correlated * float(rest @ rest) / (len(A) - A.shape[1])
        spread = np.linalg.pinv((A / norms).T @ (A / norms))[0, 0]
        deviations[j] = float(np.sqrt(variance * spread)) / norms[0]
    return out, deviations


_STANDSTILL = 0.02
"""Of a joint's largest speed: slower counts as standing."""

_SURE = 4.0
"""Standard deviations of the joints' lags together from which they are no accident of a slow or short recording."""

_EXACT = 1e-6
"""[s] Smallest deviation that counts: exact data have none."""

_FEWEST_MOVING = 50
"""Samples in motion below which a joint shows no lag: ten per coefficient."""


def moving(qd: FloatArray, cutoff: float | None, rate: float) -> npt.NDArray[np.bool_]:
    """Samples further than a period of the low-pass from any standstill or reversal, and from the ends, shape [n]."""
    reach = 8 if cutoff is None or not np.isfinite(cutoff) else max(8, round(rate / cutoff))
    slow = np.abs(qd) < _STANDSTILL * np.abs(qd).max(initial=0.0)
    slow[1:] |= np.sign(qd[1:]) != np.sign(qd[:-1])
    near = np.convolve(slow, np.ones(2 * reach + 1), mode="full")[reach : reach + len(qd)] > 0.5
    near[:8] = near[-8:] = True
    return np.asarray(~near)


def check_pair(samples: Samples) -> FloatArray:
    """The lags of motor behind joint torque, when both were recorded together.

    Raises:
        InputError: one of the two is missing, or they are out of step; names the joint.
    """
    lags, deviations = _lags_with_deviations(samples)
    worst = int(np.argmax(np.abs(lags)))
    # A joint that hardly moves shows nothing: one alone must not condemn the pair, most of them must agree.
    typical = float(np.median(lags))
    low, high = np.percentile(lags, (25.0, 75.0))
    weights = np.where(np.isfinite(deviations), 1.0 / np.maximum(deviations, _EXACT) ** 2, 0.0)
    surely = abs(float(weights @ lags)) > _SURE * np.sqrt(weights.sum())
    if abs(typical) > _LARGEST_LAG and high - low < abs(typical) and surely:
        raise InputError(
            f"torque of {samples.joints[worst]}",
            f"motor and joint torque are not synchronised: about {1e3 * typical:.2g} ms apart",
            "record both with one clock, or shift one of them",
        )
    return lags
