"""What only the description can tell: a gain that all torques have in common, and a payload nobody mentioned.

Both make other bodies of the arm, and no recording of it tells them from such. The description can, as far as it is to be
believed. With base parameters b = P pi the estimate is

    b = P (pi_0 + d) + g P pi_0 + P_n p + P_s s + noise

with the described masses and first moments pi_0, a common gain g, mass and first moment p of a body at the flange, second moments
and whatever drives have as the data say (s: rotors nobody described pass for inertia), and errors d of the description: of every
body a share of its mass, and its centre off by half that share of its size. How large the share is the estimate itself shows: at
least `DESCRIBED_SHARE`, and as much more as makes what is left ordinary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.bodies import Body, bodies_of
from armid.estimation.estimate import NORMAL_95, Estimate
from armid.identification.faults import Answer, Fault
from armid.identification.gains import DriveGains
from armid.identification.thresholds import (
    DESCRIBED_SHARE,
    FAR_APART,
    FAULT_EXCLUDED,
    IMPLAUSIBLE,
    PAYLOAD_SHARE,
    ROBUST_CHANCE,
)
from armid.logs.health.thresholds import UNIT_DOUBT, UNIT_WRONG
from armid.parameters.inertial import InertialIndex
from armid.robot.described import described_values
from armid.robot.robot import Robot
from armid.rows.imperfections import KINDS, Family

COMMON_GAIN = "common gain"
"""Kind of a gain that all torques have in common."""
_WEIGHED = "carry a weighed payload in a second recording (--payload both)"
_NAMED = "record with and without it (--payload both), or name it in the mapping (conditions: {payload: 1.5})"
_MISSING = "a tool of the description is not mounted, or its last bodies are lighter than described"
_FRICTION = Fault(
    kind="friction compensated",
    experiment="friction that the controller takes out of its torque is missing in the model: switch it off, or ask its manual",
)
"""What a torque does not hold, no recording of it shows."""
_COMPUTED = Fault(
    kind="computed torque",
    experiment="bodies are the description's own, which no built arm's are: a controller's model or a simulator may have "
    "computed this torque; record what a sensor or a drive measures",
)
"""Torque of the description's own bodies: it says nothing of an arm, and is right about a simulated one."""
_OWN_SHARE = 0.01
"""By which bodies may be off that are the description's own."""
_SHOWN_SHARE = 0.05
"""By which they would show to be off: a quarter of what is common from arm to arm."""
_FEWEST = 4
"""Directions in which that must be so."""
_FIRST = (InertialIndex.MASS, InertialIndex.MX, InertialIndex.MY, InertialIndex.MZ)
_DIAGONAL = (InertialIndex.IXX, InertialIndex.IYY, InertialIndex.IZZ)
_FLAT = 1e6
"""Times: by which one direction must show less than another to show nothing."""
_PART = 0.01
"""Of a size that may lie in directions that show nothing."""
_MOST = 3.0
"""Share by which bodies may be off; a description that is worse says nothing."""
_LEAST_GAIN = 0.1
"""Of torques that read too little."""
_ORDINARY_GAIN = IMPLAUSIBLE.value * KINDS[Family.GAIN].tolerance
"""What torques may have in common while a payload is weighed."""


@dataclass(frozen=True, eq=False)
class _Sizes:
    """Of columns, with the mean square of what is left in units of its deviation."""

    values: FloatArray
    deviations: FloatArray
    excess: float

    def of(self, column: int) -> tuple[float, float]:
        """Size and deviation of one."""
        return float(self.values[column]), float(self.deviations[column])


def undecided_scale(*, gains_known: bool) -> tuple[Fault, ...]:
    """Common gain and payload, where no description says what the bodies weigh.

    Args:
        gains_known: whether a weighed payload has set the scale of the torque.
    """
    payload = Fault(kind="payload", unit="kg", experiment=_NAMED)
    gain = Fault(kind=COMMON_GAIN, unit="1", tolerance=KINDS[Family.GAIN].tolerance, experiment=_WEIGHED)
    return (payload, _FRICTION) if gains_known else (gain, payload, _FRICTION)


def drive_gain_faults(gains: DriveGains | None) -> tuple[Fault, ...]:
    """Gains of currents that read too much or too little: each is part of the drive gain that a weighed payload has set."""
    if gains is None:
        return ()
    return tuple(
        Fault(
            kind=Family.GAIN.value,
            joint=name,
            unit="1",
            tolerance=KINDS[Family.GAIN].tolerance,
            experiment=f"part of the drive gain found, {gain:.3g} N m/A: compare it with the data sheet",
        )
        for name, gain in zip(gains.channels, gains.values, strict=True)
    )


def scale_faults(
    robot: Robot, estimate: Estimate, *, rows_per_sample: float, gains_known: bool, in_newtons: bool = True
) -> tuple[Fault, ...]:
    """Common gain and payload, held against the described bodies. A gain that is another unit is too large to be used.

    Args:
        robot: as described.
        estimate: of the base parameters, without constraints.
        rows_per_sample: how many samples tell as much as one independent one.
        gains_known: whether a weighed payload has set the scale of the torque.
        in_newtons: whether torques are in units of torque, as currents are not.
    """
    bodies = bodies_of(estimate.base.parameters)
    masses = np.array(
        [link.inertial[InertialIndex.MASS] if link.inertial is not None else 0.0 for link in robot.links[1:]]
    )
    carried = any(body.link is None for body in bodies)
    if carried or np.any(masses <= 0.0):
        return undecided_scale(gains_known=gains_known)
    comparison = _Comparison(robot, estimate, bodies, rows_per_sample)
    if comparison.own:
        return _COMPUTED, *undecided_scale(gains_known=gains_known)
    found = comparison.solved()
    if found is None:
        return undecided_scale(gains_known=gains_known)
    tolerance = PAYLOAD_SHARE.value * float(masses.sum())
    payload = payload_faults(tolerance, *found[1])
    gain = _answered(COMMON_GAIN, "1", KINDS[Family.GAIN].tolerance, *found[0], experiment=_WEIGHED)
    gain = replace(gain, large=in_newtons and _other_unit(gain))
    return (*payload, _FRICTION) if gains_known else (gain, *payload, _FRICTION)


def payload_faults(tolerance: float, size: float, deviation: float) -> tuple[Fault, ...]:
    """A body at the flange that the description lacks; or one that it has and the arm lacks: no body weighs less than nothing.

    Args:
        tolerance: that is ordinary [kg].
        size, deviation: of the mass by which the arm's end is heavier than described [kg].
    """
    found = _answered("payload", "kg", tolerance, size, deviation, experiment=_NAMED)
    if not isfinite(deviation):
        return (found,)
    half = NORMAL_95 * deviation
    possible = replace(found, estimate=max(size, 0.0), low=max(size - half, 0.0), high=max(size + half, 0.0))
    if found.answer is not Answer.FOUND or size > 0.0:
        return (possible,)
    missing = _answered("missing load", "kg", tolerance, -size, deviation, experiment=_MISSING)
    return missing, replace(possible, answer=Answer.EXCLUDED, words="")


@dataclass(frozen=True, eq=False)
class _Comparison:
    """The estimate beside the description.

    Args:
        robot, estimate, bodies, rows_per_sample: see `scale_faults`.
    """

    robot: Robot
    estimate: Estimate
    bodies: Sequence[Body]
    rows_per_sample: float

    def solved(self) -> tuple[tuple[float, float], tuple[float, float]] | None:
        """Sizes and deviations of common gain and payload mass; None where the description says nothing."""
        base = self.estimate.base
        first = [body.columns[k] for body in self.bodies for k in _FIRST]
        described = np.zeros(len(base.parameters))
        described[first] = described_values(self.robot, base.standard)[first]
        P = base.projection
        others = [k for k in range(len(base.parameters)) if k not in set(first)]
        X = np.column_stack([P @ described, P[:, first[-len(_FIRST) :]], P[:, others]])
        y, errors = self.estimate.values - P @ described, P @ self._errors(described)
        seen = np.linalg.norm(X, axis=0) > 1e-9 * np.linalg.norm(X)
        if not seen[:2].all():
            return None
        for share in np.geomspace(DESCRIBED_SHARE.value, _MOST, 40):
            as_described = self._fitted(X[:, seen], y, share * errors, inf)
            # What multiplies all torques multiplies errors of the description in them as well.
            scaled = max(1.0 + as_described.of(0)[0], _LEAST_GAIN) * share * errors
            free = self._fitted(X[:, seen], y, scaled, inf)
            if free.excess <= 1.0:
                gain, deviation = free.of(0)
                # Nothing is found that errors of a description whose torques read rightly may have made.
                deviation = max(deviation, as_described.of(0)[1])
                if abs(gain) >= FAR_APART.value * deviation:
                    return (gain, deviation), free.of(1)
                return (gain, deviation), self._fitted(X[:, seen], y, share * errors, _ORDINARY_GAIN).of(1)
        return None

    @property
    def own(self) -> bool:
        """Whether the bodies are the description's own, in enough directions in which they could have shown not to be."""
        base = self.estimate.base
        first = [body.columns[k] for body in self.bodies for k in _FIRST]
        described = np.zeros(len(base.parameters))
        described[first] = described_values(self.robot, base.standard)[first]
        P = base.projection
        others = P[:, [k for k in range(len(base.parameters)) if k not in set(first)]]
        errors = P @ self._errors(described)
        whitened = self._whitened(
            np.column_stack([errors, self.estimate.values - P @ described, others]), _OWN_SHARE * errors
        )
        k = errors.shape[1]
        U, s, _ = np.linalg.svd(whitened[:, k + 1 :], full_matrices=True)
        unseen = U[:, int(np.count_nonzero(s > 1e-9 * s.max(initial=0.0))) :]
        left = unseen.T @ whitened[:, : k + 1]
        shown = np.linalg.svd(_SHOWN_SHARE * left[:, :k], compute_uv=False)
        most = len(left) + ROBUST_CHANCE.value * np.sqrt(2.0 * len(left))
        return bool(np.count_nonzero(shown > FAR_APART.value) >= _FEWEST and np.sum(left[:, k] ** 2) < most)

    def _whitened(self, rows: FloatArray, errors: FloatArray) -> FloatArray:
        """Rows over the base parameters in units of what noise and these errors of the description make, shape as they are."""
        V = self.rows_per_sample * self.estimate.covariance + errors @ errors.T
        scale = 1.0 / np.sqrt(np.maximum(np.diag(V), 1e-300))
        L = np.linalg.cholesky(V * np.outer(scale, scale) + 1e-12 * np.eye(len(V)))
        return np.asarray(np.linalg.solve(L, scale[:, np.newaxis] * rows))

    def _fitted(self, X: FloatArray, y: FloatArray, errors: FloatArray, gain: float) -> _Sizes:
        """Sizes of the columns, of which the first is believed to be no larger than `gain`."""
        rows = self._whitened(np.column_stack([X, y]), errors)
        rows = np.vstack([rows, np.eye(1, rows.shape[1]) / gain])
        A, b = rows[:, :-1], rows[:, -1]
        norms = np.linalg.norm(A, axis=0)
        U, s, Vt = np.linalg.svd(A / norms, full_matrices=False)
        known = s > 1.0 / _FLAT
        part = Vt[known] / s[known, np.newaxis]
        sizes = part.T @ (U[:, known].T @ b)
        # A direction that nothing determines makes infinite the deviation of what has a part in it.
        unknown = np.sum(Vt[~known] ** 2, axis=0) > _PART**2
        left = b - (A / norms) @ sizes
        return _Sizes(
            values=sizes / norms,
            deviations=np.where(unknown, inf, np.sqrt(np.sum(part**2, axis=0)) / norms),
            excess=float(left @ left) / max(len(y) - int(known.sum()), 1),
        )

    def _errors(self, described: FloatArray) -> FloatArray:
        """What bodies that are off by the whole of themselves would change, independent directions, shape [p, 4 bodies]."""
        out = np.zeros((len(described), len(_FIRST) * len(self.bodies)))
        whole = described_values(self.robot, self.estimate.base.standard)
        for i, body in enumerate(self.bodies):
            own, places = body.of(whole), [body.columns[k] for k in _FIRST]
            mass, moment = float(own[InertialIndex.MASS]), own[list(_FIRST[1:])]
            about_centre = float(own[list(_DIAGONAL)].sum() - 2.0 * moment @ moment / mass)
            out[places, 4 * i] = own[list(_FIRST)]
            for k, place in enumerate(places[1:], start=1):
                out[place, 4 * i + k] = 0.5 * np.sqrt(mass * max(about_centre, 0.0) / 2.0)
        return out


def _other_unit(gain: Fault) -> bool:
    """Whether torques are so much too large or small, without doubt, that they are in another unit or before the gears."""
    small = 1.0 / max(1.0 + gain.estimate, 1e-9), 1.0 / max(1.0 + gain.high, 1e-9)
    large = 1.0 + gain.estimate, 1.0 + gain.low
    return gain.answer is Answer.FOUND and any(r > UNIT_WRONG and least > UNIT_DOUBT for r, least in (small, large))


def _answered(kind: str, unit: str, tolerance: float, size: float, deviation: float, *, experiment: str) -> Fault:
    """A size as found, excluded or undecidable.

    Found, it is no reason to refuse the model, which predicts the arm as it was recorded: it is said.
    """
    half = NORMAL_95 * deviation
    known = isfinite(deviation)
    found = known and abs(size) > max(FAR_APART.value * deviation, tolerance)
    excluded = known and abs(size) + half <= FAULT_EXCLUDED.value * tolerance
    answer = Answer.FOUND if found else Answer.EXCLUDED if excluded else Answer.UNDECIDABLE
    return Fault(
        kind=kind,
        estimate=size,
        standard_deviation=deviation,
        low=size - half if known else -inf,
        high=size + half if known else inf,
        unit=unit,
        tolerance=tolerance,
        answer=answer,
        words=f"beside the described bodies; {experiment}" if found else "",
        experiment="" if found or excluded else experiment,
    )
