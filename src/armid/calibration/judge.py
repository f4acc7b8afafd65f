"""Whether to believe a calibration: outliers, notes, checks and the advice that follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import FloatArray
from armid.calibration.fit import KinematicFit
from armid.calibration.hold_out import WORTHWHILE, Advice, BlockedTest, HeldOut
from armid.calibration.identifiable import ParameterStatus
from armid.calibration.noise import threshold
from armid.calibration.thresholds import BLOCKED_FOLDS, OVERFITTED
from armid.calibration.tool_error import ErrorTable, error_table
from armid.estimation.paired import sure
from armid.kinematics.measurement import Measurements
from armid.notes import Note, Severity
from armid.outcome import Check
from armid.rows.pose_residual import parts

_OUTLIER = 1e-5
"""Probability of a Gaussian residual beyond which a row is named an outlier."""
_MANY_NAMED = 8
"""Runs of outliers listed by name in a note; the residual file has them all."""
_ENOUGH_EQUATIONS = 3.0
"""Equations per parameter with which errors elsewhere are at most 1.4 times those of the fit, when rows are alike."""
_NEIGHBOURS = 5
"""Configurations apart that still count as one run: what disturbs an instrument lasts for several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlier:
    """One measurement far from what the others say.

    Args:
        label: file and line.
        target: which target.
        kind: `position`, `orientation` or `distance`.
        error: length of the residual [m or rad].
        sigmas: the same in standard deviations.
        row: its configuration, counted from 0.
    """

    label: str
    row: int
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
                out.append(
                    Outlier(label=label, row=int(o.rows[i]), target=o.target, kind=part, error=size, sigmas=float(z[i]))
                )
    return tuple(sorted(out, key=lambda x: -x.sigmas))


def outlier_runs(outliers: Sequence[Outlier]) -> list[list[Outlier]]:
    """Outliers on neighbouring configurations together: one cause, one finding; worst run first."""
    runs: list[list[Outlier]] = []
    for x in sorted(outliers, key=lambda x: x.row):
        if runs and x.row - runs[-1][-1].row <= _NEIGHBOURS:
            runs[-1].append(x)
        else:
            runs.append([x])
    return sorted(runs, key=lambda run: -max(x.sigmas for x in run))


def errors_without(table: ErrorTable, outliers: Sequence[Outlier]) -> FloatArray:
    """Error norms where nothing was far from the rest; all of them where everything was [m or rad]."""
    errors, rows = table.main
    kept = ~np.isin(rows, [x.row for x in outliers])
    return errors[kept] if kept.any() else errors


def outlier_notes(outliers: Sequence[Outlier], held_out: HeldOut | None = None) -> list[Note]:
    """One note that names the worst runs.

    Args:
        outliers: found.
        held_out: errors at the same rows, whose mean without them is told.
    """
    if not outliers:
        return []
    runs = outlier_runs(outliers)
    told = ", ".join(_run_words(run) for run in runs[:_MANY_NAMED])
    more = f" and {len(runs) - _MANY_NAMED} more" if len(runs) > _MANY_NAMED else ""
    rows = len({x.row for x in outliers})
    count = "one configuration is" if rows == 1 else f"{rows} configurations in {len(runs)} places are"
    text = f"{count.replace('in 1 places', 'in one place')} far from the rest, weighted down: {told}{more}"
    if held_out is not None:
        unit = "mm" if len(held_out.after.position) else "mrad"
        text += (
            f"; without them the held-out mean is {1e3 * errors_without(held_out.after, outliers).mean():.3g} {unit}"
        )
    return [Note("outliers", Severity.WARNING, text)]


def _run_words(run: Sequence[Outlier]) -> str:
    worst, count = max(run, key=lambda x: x.sigmas), len({x.row for x in run})
    where = run[0].label if count == 1 else f"{run[0].label} to {run[-1].label.rsplit(':', 1)[-1]} ({count} rows)"
    kinds = " and ".join(sorted({x.kind for x in run}))
    return f"{where} ({worst.target} {kinds}, {worst.sigmas:.0f} sigma)"


def parameter_notes(fit: KinematicFit) -> list[Note]:
    """Which parameters stayed at nominal and why."""
    notes = []
    weak = [n for n, s in zip(fit.model.names, fit.after.selection.status, strict=True) if s is ParameterStatus.WEAK]
    if weak:
        text = f"held at nominal because these configurations show them no better than the tolerance does: {', '.join(weak)}"
        notes.append(Note("weak-parameters", Severity.INFO, text))
    return notes


def unexplained_notes(fit: KinematicFit, measurements: Measurements) -> list[Note]:
    """What the model leaves unexplained, beside the noise that the instrument is said to have."""
    told = []
    for (setup, part), value in fit.after.noise.model.items():
        own = [
            o.noise[:, rows] ** 2
            for o in measurements.observations
            if o.setup == setup
            for name, rows in parts(o.quantity)
            if name == part
        ]
        instrument = float(np.sqrt(np.mean(np.concatenate([x.ravel() for x in own])))) if own else 0.0
        unit = "mrad" if part == "orientation" else "mm"
        known = (
            f"with an instrument of {1e3 * instrument:.2g} {unit}"
            if instrument
            else "the instrument's own noise included"
        )
        told.append(f"{1e3 * value:.2g} {unit} per axis of {setup} {part} stays unexplained, {known}")
    return [Note("unexplained", Severity.INFO, "; ".join(told))] if told else []


def overfit_notes(fit: KinematicFit, measurements: Measurements, held_out: HeldOut) -> list[Note]:
    """Whether the error after the fit flatters: too few equations for its parameters, or rows unlike the held-out ones."""
    fitted, unseen = error_table(fit.after.residuals).main[0], held_out.after.main[0]
    if not len(fitted) or not len(unseen) or unseen.mean() <= OVERFITTED.value * fitted.mean():
        return []
    unit = "mm" if len(held_out.after.position) else "mrad"
    kept, equations = int(fit.after.selection.kept.sum()), measurements.n_distinct_equations
    said = f"the error after the fit ({1e3 * fitted.mean():.2g} {unit}) is no measure of the arm: "
    unlike = f"{1e3 * unseen.mean():.2g} {unit} on configurations it has not seen"
    if equations > _ENOUGH_EQUATIONS * kept:
        text = (
            f"{said}{unlike}, although {equations} equations are enough for {kept} parameters: the arm stands or is loaded "
            "otherwise there, or time has passed; quote that one, or measure where the arm will work"
        )
        return [Note("unlike-configurations", Severity.WARNING, text)]
    text = f"{said}{equations} equations for {kept} parameters, and {unlike}; quote that one, or measure more configurations"
    return [Note("few-configurations", Severity.WARNING, text)]


def kind_notes(fit: KinematicFit) -> list[Note]:
    """Lengths and distances from planes are one number where a position is three: their common mean says little of either."""
    errors: dict[str, list[FloatArray]] = {}
    for r in fit.after.residuals:
        for part, rows in parts(r.observations.quantity):
            if part != "orientation":
                kind = "positions" if rows.stop - rows.start == 3 else "lengths and distances"
                errors.setdefault(kind, []).append(np.linalg.norm(r.r[rows], axis=0))
    if len(errors) < 2:
        return []
    told = " and ".join(f"{len(x)} {kind} (mean {1e3 * x.mean():.3g} mm)" for kind, x in _together(errors))
    text = f"position errors average {told} after the fit: compare each kind with its own (residuals.csv)"
    return [Note("mixed-kinds", Severity.WARNING, text)]


def _together(errors: dict[str, list[FloatArray]]) -> list[tuple[str, FloatArray]]:
    return [(kind, np.concatenate(x)) for kind, x in errors.items()]


def comparison_notes(
    fits: Sequence[KinematicFit], tested: Sequence[HeldOut], held_out: HeldOut, best: int
) -> list[Note]:
    """How the candidates compared on held-out data, and what the choice among them comes to."""
    if len(fits) < 2:
        return []
    unit = "mm" if len(held_out.after.position) else "mrad"
    names = ["+".join(sorted(f.errors.terms)) or "no joint terms" for f in fits]
    told = "; ".join(f"{name} {1e3 * t.after.main[0].mean():.3f} {unit}" for name, t in zip(names, tested, strict=True))
    text = (
        f"held-out mean by error model: {told}; chosen within each training set "
        f"{1e3 * held_out.after.main[0].mean():.3f} {unit}; taken for all data: {names[best]}"
    )
    return [Note("error-models", Severity.INFO, text)]


def judge(
    held_out: HeldOut, blocked: BlockedTest | None, notes: Sequence[Note], *, converged: bool
) -> tuple[Advice, tuple[Check, ...]]:
    """What to do with a calibration, and the conditions it was held against.

    The measurements must be what they claim to be (no note is an error), the iteration must have ended, blocked folds must
    agree with random ones, and held-out errors must fall by more than `WORTHWHILE`, beyond chance.
    """
    broken = [
        Check(code=note.code, passed=False, value=1.0, limit=0.0, message=note.message, subject=note.subject)
        for note in notes
        if note.severity is Severity.ERROR
    ]
    if not converged:
        text = "the iteration stopped before its step vanished: what it found is no answer"
        broken.append(Check(code="converged", passed=False, value=0.0, limit=1.0, message=text))
    agreement = [] if blocked is None else [_blocked_check(blocked)]
    checks = (*broken, *_gain_checks(held_out), *agreement)
    if broken or not all(check.passed for check in agreement):
        return Advice.UNTRUSTED, checks
    return Advice.TRUSTED if held_out.helps else Advice.NO_GAIN, checks


def _blocked_check(test: BlockedTest) -> Check:
    """Whether consecutive rows kept aside together are predicted as well as random ones; chance does not decide."""
    errors = [1e3 * float(h.after.main[0].mean()) for h in (test.blocked, test.scattered)]
    unit = "mm" if len(test.blocked.after.position) else "mrad"
    told = f"{errors[0]:.3g} {unit} with {test.blocked.method} kept aside, {errors[1]:.3g} {unit} with {test.scattered.method}"
    agree = test.ratio <= BLOCKED_FOLDS.value or test.t <= sure(test.blocked.groups)
    cause = (
        "rows resemble their neighbours more than the rest: drift, a change on the way, or joint ranges seen once only"
    )
    return Check(
        code="blocked-folds",
        passed=agree,
        value=test.ratio,
        limit=BLOCKED_FOLDS.value,
        message=told if agree else f"{told}: {cause}",
    )


def _gain_checks(held_out: HeldOut) -> tuple[Check, Check]:
    limit, percent = sure(held_out.groups), -100 * held_out.gain
    told = f"mean held-out error changes by {percent:+.1f} % ({held_out.method})"
    large, certain = held_out.gain > WORTHWHILE, held_out.t > limit
    t = f"paired t = {held_out.t:.1f}, with {limit:.1f} as the limit of chance"
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
            message=f"that change is beyond chance: {t}" if certain else _by_chance(t, told, large=large),
        ),
    )


def _by_chance(t: str, told: str, *, large: bool) -> str:
    """What a change within chance is called; the gain's own sentence stands before it when that failed too."""
    return (
        f"no held-out gain beyond chance: {told}, {t}; keep the nominal links" if large else f"nor beyond chance: {t}"
    )
