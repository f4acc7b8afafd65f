"""Whether to believe a calibration: outliers, notes, checks and the advice that follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armid.calibration.fit import KinematicFit
from armid.calibration.hold_out import WORTHWHILE, Advice, HeldOut
from armid.calibration.identifiable import ParameterStatus
from armid.calibration.noise import threshold
from armid.estimation.paired import sure
from armid.kinematics.measurement import Measurements
from armid.notes import Note, Severity
from armid.outcome import Check
from armid.rows.pose_residual import parts

_OUTLIER = 1e-5
"""Probability of a Gaussian residual beyond which a row is named an outlier."""
_MANY_NAMED = 20
"""Outliers listed by name in a note; the residual file has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlier:
    """One measurement far from what the others say.

    Args:
        label: file and line.
        target: which target.
        kind: `position`, `orientation` or `distance`.
        error: length of the residual [m or rad].
        sigmas: the same in standard deviations.
    """

    label: str
    target: str
    kind: str
    error: float
    sigmas: float


def find_outliers(fit: KinematicFit, measurements: Measurements) -> tuple[Outlier, ...]:
    """Measurements whose residual a Gaussian of the estimated width would not produce, worst first."""
    out = []
    for residual in fit.after.residuals:
        o = residual.observations
        sigma = fit.after.noise.sigma(o)
        for part, channels in parts(o.quantity):
            z = np.linalg.norm(residual.r[channels] / sigma[channels], axis=0)
            for i in np.flatnonzero(z > threshold(_OUTLIER, channels.stop - channels.start)):
                size = float(np.linalg.norm(residual.r[channels, i]))
                label = measurements.labels[o.rows[i]]
                out.append(Outlier(label=label, target=o.target, kind=part, error=size, sigmas=float(z[i])))
    return tuple(sorted(out, key=lambda x: -x.sigmas))


def outlier_notes(outliers: Sequence[Outlier]) -> list[Note]:
    """One note that names the worst rows."""
    if not outliers:
        return []
    worst = ", ".join(f"{x.label} ({x.target} {x.kind}, {x.sigmas:.0f} sigma)" for x in outliers[:_MANY_NAMED])
    more = f" and {len(outliers) - _MANY_NAMED} more" if len(outliers) > _MANY_NAMED else ""
    text = f"{len(outliers)} measurements far from the rest, weighted down: {worst}{more}"
    return [Note("outliers", Severity.WARNING, text)]


def parameter_notes(fit: KinematicFit) -> list[Note]:
    """Which parameters stayed at nominal and why."""
    notes = []
    weak = [n for n, s in zip(fit.model.names, fit.after.selection.status, strict=True) if s is ParameterStatus.WEAK]
    if weak:
        text = f"held at nominal because these configurations show them no better than the tolerance does: {', '.join(weak)}"
        notes.append(Note("weak-parameters", Severity.INFO, text))
    if not fit.after.converged:
        notes.append(Note("not-converged", Severity.WARNING, "the iteration stopped before its step vanished"))
    return notes


def comparison_notes(
    fits: Sequence[KinematicFit], tested: Sequence[HeldOut], held_out: HeldOut, best: int
) -> list[Note]:
    """How the candidates compared on held-out data, and what the choice among them comes to."""
    if len(fits) < 2:
        return []
    unit = "mm" if len(held_out.after.position) else "mrad"
    told = "; ".join(
        f"{'+'.join(sorted(f.errors.terms)) or 'no joint terms'}: {1e3 * t.after.main[0].mean():.3f} {unit}"
        for f, t in zip(fits, tested, strict=True)
    )
    text = (
        f"held-out mean by error model: {told}; chosen within each training set: {1e3 * held_out.after.main[0].mean():.3f} "
        f"{unit}; taken for all data: number {best + 1}"
    )
    return [Note("error-models", Severity.INFO, text)]


def judge(held_out: HeldOut, notes: Sequence[Note]) -> tuple[Advice, tuple[Check, ...]]:
    """What to do with a calibration, and the conditions it was held against.

    The measurements must be what they claim to be (no note is an error), and held-out errors must fall by more than
    `WORTHWHILE`, beyond chance.
    """
    broken = [
        Check(code=note.code, passed=False, value=1.0, limit=0.0, message=note.message, subject=note.subject)
        for note in notes
        if note.severity is Severity.ERROR
    ]
    checks = (*broken, *_gain_checks(held_out))
    if broken:
        return Advice.UNTRUSTED, checks
    return Advice.TRUSTED if held_out.helps else Advice.NO_GAIN, checks


def _gain_checks(held_out: HeldOut) -> tuple[Check, Check]:
    limit, percent = sure(held_out.groups), -100 * held_out.gain
    told = f"mean held-out error changes by {percent:+.1f} % (paired t = {held_out.t:.1f}; {held_out.method})"
    large, certain = held_out.gain > WORTHWHILE, held_out.t > limit
    chance = f"no held-out gain beyond chance: {told}, t not above {limit:.1f}; keep the nominal links"
    return (
        Check(
            code="held-out-gain",
            passed=large,
            value=held_out.gain,
            limit=WORTHWHILE,
            message=told if large else f"no held-out gain: {told}; keep the nominal links",
        ),
        Check(
            code="held-out-significance",
            passed=certain,
            value=held_out.t,
            limit=limit,
            message=told if certain else chance,
        ),
    )
