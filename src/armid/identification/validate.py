"""`armid.validate`: a stored result against recordings it has never seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isnan, nan
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from armid.arrays import FloatArray
from armid.documents import write_json
from armid.errors import InputError
from armid.estimation.recording import runs_of
from armid.estimation.run import Run
from armid.estimation.run_maker import pieces_of
from armid.estimation.runs import RunShelf
from armid.identification.chosen import Parameters, standard_values
from armid.identification.combine import joint_errors
from armid.identification.evidence import Evidence
from armid.identification.figures import moved_back, other_load
from armid.identification.gate import log_checks, nominal_checks
from armid.identification.held_out import held_out_checks
from armid.identification.metrics import CONSISTENT, FREE, Predicted, has_masses, nominal_models, predicted
from armid.identification.provenance import log_record
from armid.identification.records import ResolvedConditioning
from armid.identification.request import Source, listed, opened
from armid.identification.result import Result, load_result
from armid.identification.result_tables import said
from armid.identification.thresholds import REPEATED_SHARE
from armid.identification.torque_error import JointErrors, TorqueErrors
from armid.logs.conditioning import Conditioning, Differentiator, FilterKind, VelocitySource
from armid.logs.error_codes import accepted_codes
from armid.logs.log import Channel
from armid.logs.read import ReadOptions
from armid.logs.recording import Recording
from armid.notes import Note
from armid.outcome import Check, InputFile, Outcome, Provenance
from armid.page import Table
from armid.threads import one_blas_thread
from armid.words import choice

_ABOUT_MOTION = (
    "held-out",
    "joint-unexplained",
    "joint-undetermined",
    "joint-at-rest",
    "joint-overfitted",
    "worse-than-constant",
    "not-worse-than-nominal",
    "extrapolation",
    "held-out-repeats",
    "held-out-still",
)
"""Checks of the stored result that the new motion decides afresh."""

_NOT_TESTED = ("held-out-repeats", "held-out-still")
"""Conditions that fail because nothing was tested yet; other motion may make up for it. So it does for a missing one."""

NOT_SEEN = "never-seen"
"""Code of the check that a recording is not one the result learned from."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Validation(Outcome):
    """How a result does on other motion.

    Args:
        name: of the arm.
        joints: errors of the consistent estimate; `joints_raw` of the unconstrained one; training errors as stored.
        relative_error: all joints stacked.
        checks: conditions with their outcome; those of the stored result that failed stay failed.
        conditioning: as it was for the stored result.
        notes: of the recordings.
        provenance: the recordings.
        freed: what the recordings were freed from before they were predicted, as the stored result's were.
        parameters: which values of the result predicted; `joints` and `relative_error` are theirs.
        price: relative error over that of all base parameters as estimated, on the same motion.
    """

    _page: ClassVar[str] = "armid.report.identification:validation_report"
    _loads: ClassVar[bool] = True

    name: str
    joints: tuple[JointErrors, ...]
    joints_raw: tuple[JointErrors, ...]
    relative_error: float
    checks: tuple[Check, ...]
    conditioning: ResolvedConditioning
    notes: tuple[Note, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)
    freed: tuple[str, ...] = ()
    parameters: Parameters = Parameters.CONSISTENT
    price: float = nan

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not to be trusted, each once."""
        return tuple(dict.fromkeys(super().reasons))

    def as_dict(self) -> dict[str, Any]:
        return {
            "joints": [joint.as_dict() for joint in self.joints],
            "joints_raw": [joint.as_dict() for joint in self.joints_raw],
            "relative_error_held_out": self.relative_error,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "conditioning": self.conditioning.as_dict(),
            "freed_from": list(self.freed),
            "parameters": self.parameters.value,
            "price": self.price,
        }

    def _heading(self) -> str:
        of = "" if self.parameters is Parameters.CONSISTENT else f" of the {self.parameters} parameters"
        beside = f", {self.price:.3f} times that of all base parameters" if of else ""
        return f"{self.name}: held-out torque error{of} {100 * self.relative_error:.2f} %{beside}"

    def _tables(self) -> tuple[Table, ...]:
        return (
            Table(
                ("joint", "train RMSE", "held-out RMSE", "relative"),
                tuple(
                    (j.name, j.train.rmse, j.held_out.rmse, f"{100 * j.held_out.relative:.1f} %") for j in self.joints
                ),
            ),
            *(said(text) for text in self.freed),
        )

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes `validation.json`."""
        values = {**self.as_dict(), "provenance": self.provenance.as_dict()}
        return (write_json(Path(folder) / "validation.json", values),)


@one_blas_thread
def validate(
    result: str | Path | Result,
    logs: Source | Sequence[Source],
    *,
    accept: str | Sequence[str] = (),
    options: ReadOptions | None = None,
    parameters: str | Parameters = Parameters.CONSISTENT,
) -> Validation:
    """Errors and verdict on other recordings, conditioned as the training logs were.

    Args:
        result: of an identification, or its folder.
        logs: recordings; one or several.
        accept: codes of errors in the logs that were looked at and are accepted.
        options: what log files do not say themselves.
        parameters: which values of the result predict: its bodies, its base parameters, or the essential ones alone.

    Raises:
        InputError: no logs, currents without the result's gains, or essential parameters that it does not name.
    """
    meant = choice("parameters", parameters, Parameters)
    known = result if isinstance(result, Result) else load_result(result, traces=False)
    codes = accepted_codes(accept)
    recordings = [opened(source, known.described, options) for source in listed(logs)]
    if not recordings:
        raise InputError("logs", "there are none", "give at least one recording")
    settings = _stored_conditioning(known, codes)
    shelf = RunShelf()
    for recording in recordings:
        for run in _stored_runs(known, recording, settings):
            shelf.append(run)
    names = known.consistent.names
    own = standard_values(known, meant)
    models = {CONSISTENT: own, FREE: known.estimate.standard, **nominal_models(known.described, names)}
    found = predicted(shelf.runs(), models, speeds=_training_speeds(known))
    joints, raw = (
        _beside_training(found.sums[name].errors(), stored)
        for name, stored in ((CONSISTENT, _training_errors(known, meant, own)), (FREE, known.joints_raw))
    )
    error = found.sums[CONSISTENT].stacked_relative()
    compared = found.against_description() if has_masses(known.described) else ()
    notes = tuple(dict.fromkeys(note for recording in recordings for note in recording.notes))
    return Validation(
        name=known.described.name,
        joints=joints,
        joints_raw=raw,
        relative_error=error,
        checks=(
            *(check for check in known.checks if check.code not in _ABOUT_MOTION),
            *held_out_checks(joints, {"held_out": error}, _evidence(known, found, shelf.runs(), own)),
            *_repeat_checks(known, found),
            *nominal_checks(compared),
            *log_checks(notes, torque_delay=settings.torque_delay + moved_back(known.imperfections)),
            *_seen_checks(known, recordings),
            *_stored_checks(known),
        ),
        conditioning=known.conditioning,
        freed=() if known.imperfections is None else known.imperfections.sentences(),
        parameters=meant,
        price=error / whole if (whole := found.sums[FREE].stacked_relative()) > 0.0 else nan,
        notes=notes,
        provenance=Provenance(
            inputs=tuple(InputFile(p, digest, "held-out") for r in recordings for p, digest in r.source.files)
        ),
    )


def _beside_training(held_out: dict[str, TorqueErrors], stored: Sequence[JointErrors]) -> tuple[JointErrors, ...]:
    """Errors on new runs beside the training errors that are already known."""
    known = {joint.name: joint.train for joint in stored}
    return tuple(JointErrors(name, known.get(name, TorqueErrors()), errors) for name, errors in held_out.items())


def _training_errors(result: Result, parameters: Parameters, standard: FloatArray) -> tuple[JointErrors, ...]:
    """Training errors of the values meant: as stored, and of a reduced model from the Information of its training."""
    match parameters:
        case Parameters.CONSISTENT:
            return result.joints
        case Parameters.BASE:
            return result.joints_raw
        case Parameters.ESSENTIAL:
            return joint_errors(result.information, None, standard)


def _training_speeds(result: Result) -> FloatArray | None:
    """Largest speed of every joint in the training motion [rad/s or m/s]; None when it is not known."""
    if result.evidence is None or not result.evidence.train:
        return None
    return np.array([motion.speed for motion in result.evidence.train[: result.described.n_joints]])


def _evidence(result: Result, found: Predicted, runs: Sequence[Run], standard: FloatArray) -> Evidence:
    """What the new motion was, beside what is known of the training motion."""
    stored = result.evidence or Evidence(structural_rank=len(result.estimate))
    load = other_load(runs, standard)
    return replace(
        stored,
        held_out=() if found.motion is None else found.motion.joints(),
        repeated=_repeated(result, found) if stored.cross_predicted else nan,
        other_load=load,
    )


def _repeated(result: Result, found: Predicted) -> float:
    """Share of the new motion that repeats the training motion; NaN when that is not known."""
    if result.course is None or found.motion is None:
        return nan
    return found.motion.repeats_course(result.course)


def _repeat_checks(result: Result, found: Predicted) -> tuple[Check, ...]:
    """Motion that repeats the training motion is no test, and decides where the result was never tested on other motion.

    Where the result predicted fifths of its training motion from the rest, these decide, as they did when it was made.
    """
    share, evidence = _repeated(result, found), result.evidence
    if not share > REPEATED_SHARE.value or (evidence is not None and evidence.cross_predicted):
        return ()
    tested = result.held_out_information is not None and not (evidence and evidence.repeated > REPEATED_SHARE.value)
    text = f"{100 * share:.0f} % of this motion repeats the training motion and counts as training: "
    text += (
        "the result was tested on other motion when it was made, and is not by this" if tested else "it is no test; "
    )
    text += "" if tested else "record another motion to validate on"
    return (
        Check(
            code="held-out-repeats",
            passed=False,
            value=share,
            limit=REPEATED_SHARE.value,
            message=text,
            decisive=not tested,
        ),
    )


def _stored_checks(result: Result) -> tuple[Check, ...]:
    """Fails for a result that was untrusted for more than a missing test: predicting one motion does not mend it."""
    wrong = [
        check.message
        for check in result.checks
        if check.decisive and not check.passed and check.code not in _NOT_TESTED and not _missing(check)
    ]
    if not wrong and any(check.decisive for check in result.checks):
        return ()
    text = f"the result itself is untrusted: {'; '.join(wrong[:2]) or '; '.join(result.reasons)}"
    return (Check(code="stored-verdict", passed=False, value=len(wrong), limit=0.0, message=text),)


def _missing(check: Check) -> bool:
    """Whether there was no held-out motion at all."""
    return check.code == "held-out" and isnan(check.value)


def _seen_checks(result: Result, recordings: Sequence[Recording]) -> tuple[Check, ...]:
    """One failure for every recording that the result learned from: no test of it."""
    out = []
    for recording in recordings:
        record = log_record(recording)
        if any(record.overlaps(log) for log in result.provenance.train):
            text = f"{recording.name}: the result learned from it; predicting it is no test"
            out.append(
                Check(
                    code=NOT_SEEN,
                    passed=False,
                    value=1.0,
                    limit=0.0,
                    message=text,
                    subject=recording.name,
                )
            )
    return tuple(out)


def _stored_conditioning(result: Result, accept: tuple[str, ...] = ()) -> Conditioning:
    """The conditioning a result was made with."""
    stored = result.conditioning
    return Conditioning(
        cutoff=stored.cutoff_hz or np.inf,
        torque_cutoff=stored.torque_cutoff_hz or np.inf,
        order=stored.filter_order,
        filter=FilterKind(stored.filter),
        differentiator=Differentiator(stored.differentiator),
        velocity=VelocitySource(stored.velocity),
        torque_delay=stored.torque_delay_s,
        accept=accept,
    )


def _stored_runs(result: Result, recording: Recording, settings: Conditioning) -> Sequence[Run]:
    """Runs of one recording as the result's own were made: same rows, same friction, currents times gains."""
    shelf = RunShelf()
    for samples in pieces_of(recording, settings):
        runs = runs_of(samples, result.described, result.effects, shapes=result.shapes)
        currents = samples.channel(result.effects.torques) is Channel.CURRENT
        if currents and not result.gains:
            raise InputError(
                recording.name, "motor currents, but the result has no drive gains", "identify from currents first"
            )
        for run in runs:
            gains = np.array([result.gains[name].value for name in run.channels]) if currents else 1.0
            raw = None if run.y_raw is None else run.y_raw * gains
            torque = replace(run, y=run.y * gains, y_raw=raw) if currents else run
            shelf.append(torque if result.imperfections is None else result.imperfections.corrected(torque))
    return shelf.runs()
