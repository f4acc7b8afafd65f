"""Measurements in, calibrated arm out: fit, choose among error models on held-out data, judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from armid.calibration.diagnose import check_misfit, diagnose, misfit_notes
from armid.calibration.fit import FitSettings, KinematicFit, fit
from armid.calibration.hold_out import Advice, HeldOut, cross_validate, folds, paired_t, sure
from armid.calibration.identifiable import ParameterStatus
from armid.calibration.leave_out import left_out_errors
from armid.calibration.noise import threshold
from armid.calibration.start import start_frames
from armid.calibration.tool_error import ErrorTable, by_group, error_table
from armid.calibration.validate import validated
from armid.kinematics.calibrated import calibrated_robot
from armid.kinematics.measurement import MeasurementError, Measurements, joined
from armid.kinematics.model import ErrorModel, Term, UnknownGeometry
from armid.kinematics.parameter import Tolerances
from armid.notes import Note, Severity
from armid.robot.robot import Robot
from armid.rows.pose_residual import parts

OUTLIER = 1e-5
"""Probability of a Gaussian residual beyond which a row is named an outlier."""
MANY_NAMED = 20
"""Outliers listed by name in a note; the residual file has them all."""


EQUATIONS_PER_PARAMETER = 2.0
"""A richer model with fewer equations than this for each parameter fits noise as readily as anything real, and the leverage of
its rows no longer tells what it would do elsewhere."""


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


@dataclass(frozen=True)
class CalibrationSettings:
    """How to calibrate.

    Args:
        candidates: error models, simplest first; a richer one is taken only when held-out errors clearly ask for it.
        fit: iterations, loss, noise, frames.
        folds: number of parts for the held-out test; by default it depends on how many configurations there are.
        seed: of the split.
    """

    candidates: tuple[ErrorModel, ...]
    fit: FitSettings = field(default_factory=FitSettings)
    folds: int | None = None
    seed: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Calibration:
    """What was found, and whether to believe it.

    Args:
        nominal: the arm as described.
        measurements: all that was fitted.
        fit: the chosen model.
        geometric: the simplest candidate, whose corrections a robot description can hold.
        held_out: errors where nothing was fitted or chosen: each part is predicted by the model that the other parts chose.
        held_out_geometric: the same of the simplest candidate.
        outliers: measurements far from the rest.
        verdict, reasons: what to do with it, and why.
        notes: everything else a reader must know.
    """

    nominal: Robot
    measurements: Measurements
    fit: KinematicFit
    geometric: KinematicFit
    held_out: HeldOut
    held_out_geometric: HeldOut
    outliers: tuple[Outlier, ...]
    verdict: Advice
    reasons: tuple[str, ...]
    notes: tuple[Note, ...]

    @property
    def robot(self) -> Robot:
        """The calibrated arm for everything downstream: identification, planning, a controller."""
        return calibrated_robot(self.geometric.model, self.geometric.after.values)

    @property
    def errors_before(self) -> ErrorTable:
        return error_table(self.fit.before.residuals)

    @property
    def errors_after(self) -> ErrorTable:
        return error_table(self.fit.after.residuals)

    @property
    def identified(self) -> tuple[str, ...]:
        """Names of the fitted parameters."""
        model = self.fit.model
        return tuple(n for n, kept in zip(model.names, self.fit.after.selection.kept, strict=True) if kept)

    def held_at_nominal(self, status: ParameterStatus) -> tuple[str, ...]:
        """Names of the parameters not fitted for this reason."""
        pairs = zip(self.fit.model.names, self.fit.after.selection.status, strict=True)
        return tuple(name for name, s in pairs if s is status)


def default_candidates(
    robot: Robot, *, geometry: UnknownGeometry = UnknownGeometry.COMPLETE, tolerances: Tolerances | None = None
) -> tuple[ErrorModel, ...]:
    """Geometry and joint zeros; the same with eccentricity, and compliance where masses are known."""
    simple = ErrorModel(geometry, frozenset({Term.OFFSET}), (), tolerances or Tolerances())
    rich = {Term.OFFSET, Term.ECCENTRICITY} | ({Term.COMPLIANCE} if robot.inertial.any() else set())
    return simple, replace(simple, terms=frozenset(rich))


def calibrate(
    robot: Robot,
    measurements: Measurements,
    *,
    validate: Measurements | None = None,
    settings: CalibrationSettings | None = None,
) -> Calibration:
    """Find where joints and links really are.

    Args:
        robot: nominal arm.
        measurements: what was observed.
        validate: further measurements for the held-out test; without them part of the first is kept aside in turn.
        settings: error models to choose from and how to fit.

    Raises:
        MeasurementError: the measurements cannot be what they claim to be; the message names the likely cause.
    """
    settings = settings or CalibrationSettings(default_candidates(robot))
    measurements, notes = diagnose(robot, measurements)
    start = None if settings.fit.setups else start_frames(robot, measurements)
    fits: list[KinematicFit] = []
    for errors in settings.candidates:
        fits.append(fit(robot, measurements, errors, settings=settings.fit, start=start))
        if len(fits) == 1:
            notes += check_misfit(robot, measurements, fits[0])
    notes += misfit_notes(fits[0], measurements)
    method, splits = folds(measurements, np.random.default_rng(settings.seed), settings.folds)
    best = choose(fits, measurements)
    chosen = fits[best]
    if validate is None:
        held_out, tested = cross_validate(fits, choose, measurements, splits, method)
    else:
        tested = [validated(f, validate) for f in fits]
        held_out = tested[best]
    outliers = outlying(chosen, measurements)
    notes += (
        parameter_notes(chosen) + outlier_notes(outliers, measurements) + comparison_notes(fits, tested, held_out, best)
    )
    verdict, reasons = judged(chosen, held_out, notes)
    return Calibration(
        nominal=robot,
        measurements=measurements,
        fit=chosen,
        geometric=fits[0],
        held_out=held_out,
        held_out_geometric=tested[0],
        outliers=tuple(outliers),
        verdict=verdict,
        reasons=reasons,
        notes=tuple(notes),
    )


def choose(fits: Sequence[KinematicFit], measurements: Measurements) -> int:
    """The last candidate that is clearly better than the best simpler one, by errors with each configuration left out.

    Everything comes from the measurements the candidates were fitted to, so the choice can be repeated inside every
    training set of a held-out test.
    """
    best = 0
    if len(fits) == 1:
        return best
    errors = [by_group(*left_out_errors(f, measurements).main, measurements) for f in fits]
    for k in range(1, len(fits)):
        if measurements.n_equations < EQUATIONS_PER_PARAMETER * fits[k].after.selection.kept.sum():
            continue
        if paired_t(errors[best], errors[k]) > sure(len(errors[k])):
            best = k
    return best


def outlying(fit: KinematicFit, measurements: Measurements) -> list[Outlier]:
    """Measurements whose residual a Gaussian of the estimated width would not produce."""
    out = []
    for residual in fit.after.residuals:
        o = residual.observations
        sigma = fit.after.noise.sigma(o)
        for part, channels in parts(o.quantity):
            z = np.linalg.norm(residual.r[channels] / sigma[channels], axis=0)
            for i in np.flatnonzero(z > threshold(OUTLIER, channels.stop - channels.start)):
                size = float(np.linalg.norm(residual.r[channels, i]))
                out.append(
                    Outlier(
                        label=measurements.labels[o.rows[i]], target=o.target, kind=part, error=size, sigmas=float(z[i])
                    )
                )
    return sorted(out, key=lambda x: -x.sigmas)


def outlier_notes(outliers: Sequence[Outlier], measurements: Measurements) -> list[Note]:
    """One note that names the worst rows."""
    if not outliers:
        return []
    worst = ", ".join(f"{x.label} ({x.target} {x.kind}, {x.sigmas:.0f} sigma)" for x in outliers[:MANY_NAMED])
    more = f" and {len(outliers) - MANY_NAMED} more" if len(outliers) > MANY_NAMED else ""
    return [
        Note(
            "outliers",
            Severity.WARNING,
            f"{len(outliers)} measurements far from the rest, weighted down: {worst}{more}",
        )
    ]


def parameter_notes(fit: KinematicFit) -> list[Note]:
    """Which parameters stayed at nominal and why."""
    notes = []
    weak = [n for n, s in zip(fit.model.names, fit.after.selection.status, strict=True) if s is ParameterStatus.WEAK]
    if weak:
        notes.append(
            Note(
                "weak-parameters",
                Severity.INFO,
                f"held at nominal because these configurations show them no better than the tolerance does: {', '.join(weak)}",
            )
        )
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
    return [
        Note(
            "error-models",
            Severity.INFO,
            f"held-out mean by error model: {told}; chosen within each training set: {1e3 * held_out.after.main[0].mean():.3f} "
            f"{unit}; taken for all data: number {best + 1}",
        )
    ]


def judged(fit: KinematicFit, held_out: HeldOut, notes: Sequence[Note]) -> tuple[Advice, tuple[str, ...]]:
    """The verdict on a calibration."""
    reasons = [note.message for note in notes if note.severity is Severity.ERROR]
    if reasons:
        return Advice.UNTRUSTED, tuple(reasons)
    told = (
        f"mean held-out error changes by {-100 * held_out.gain:+.1f} % (paired t = {held_out.t:.1f}; {held_out.method})"
    )
    if not held_out.helps:
        return Advice.NO_GAIN, (f"no held-out gain: {told}; keep the nominal links",)
    return Advice.TRUSTED, (told,)


__all__ = [
    "Advice",
    "Calibration",
    "CalibrationSettings",
    "MeasurementError",
    "Outlier",
    "calibrate",
    "default_candidates",
    "joined",
]
