"""`armid observe`: contacts along a recorded motion, from an identified arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, get_args

import numpy as np

from armid.arrays import FloatArray
from armid.documents import write_json
from armid.errors import InputError, UnknownNameError
from armid.identification.inputs import LogInput, LogsInput, Recordings, files_of
from armid.identification.provenance import log_record
from armid.identification.result import Result
from armid.logs.log import Log
from armid.logs.recording import open_recording
from armid.notes import Note
from armid.observation.arm import ObservedArm, observed_arm
from armid.observation.checks import fastest, rate_check, speed_check, tail_check
from armid.observation.contacts import Contact, contacts_along, contacts_table
from armid.observation.levels import AlarmLevels, Features, alarm_levels
from armid.observation.residuals import ObservedMotion, Residuals, ResidualWord, beyond_rest, residuals
from armid.observation.thresholds import SAME_RATE
from armid.outcome import Check, Outcome, Provenance
from armid.page import Table
from armid.robot.robot import Robot
from armid.threads import one_blas_thread


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Observation(Outcome):
    """External torque along a motion, and the contacts in it.

    Args:
        robot: the model.
        name: of the recording.
        motion: as observed.
        external: torque [N m or N] that counts, shape [n, n_joints].
        residuals: by both ways.
        levels: what raises an alarm.
        threshold: along the motion [N m or N], shape [n, n_joints].
        contacts: in the order of time.
        checks: what it was held against.
        notes: what a reader must know.
        provenance: inputs and settings.
    """

    _page: ClassVar[str] = "armid.report.observation:observation_report"

    robot: Robot
    name: str
    motion: ObservedMotion
    external: FloatArray
    residuals: Residuals
    levels: AlarmLevels
    threshold: FloatArray
    contacts: tuple[Contact, ...]
    checks: tuple[Check, ...] = ()
    notes: tuple[Note, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def duration(self) -> float:
        """[s]."""
        return float(self.motion.time[-1] - self.motion.time[0])

    def _heading(self) -> str:
        return f"{self.name}: {len(self.contacts)} contacts in {self.duration:.1f} s, {self.levels.accepted}"

    def _tables(self) -> tuple[Table, ...]:
        rows = tuple(
            (
                name,
                float(np.sqrt(np.mean(self.external[:, j] ** 2))),
                float(np.median(self.threshold[:, j])),
                self.levels.factor[j],
            )
            for j, name in enumerate(self.robot.joint_names)
        )
        levels = Table(
            ("joint", "external, rms", "level, median", "deviations"), rows, caption="What raises an alarm [N m or N]"
        )
        return (contacts_table(self.contacts), levels) if self.contacts else (levels,)

    def as_dict(self) -> dict[str, Any]:
        return {
            "schema": "armid.observation/1",
            "robot": self.robot.name,
            "recording": self.name,
            "seconds_observed": self.duration,
            "delay": self.motion.delay,
            "contacts": [contact.as_dict() for contact in self.contacts],
            "false_alarms_per_hour": self.levels.per_hour,
            "thresholds": [
                {
                    "joint": name,
                    "deviations": self.levels.factor[j],
                    "median": float(np.median(self.threshold[:, j])),
                    "largest": float(self.threshold[:, j].max()),
                }
                for j, name in enumerate(self.robot.joint_names)
            ],
            "levels": self.levels.as_dict(),
            "verdict": self.verdict.value,
            "checks": [check.as_dict() for check in self.checks],
            "notes": [note.as_dict() for note in self.notes],
        }

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes `observation.json`."""
        return (write_json(Path(folder) / "observation.json", self.as_dict()),)


@one_blas_thread
def observe(
    arm: str | Path | Result | Robot,
    log: LogInput,
    *,
    free: LogsInput,
    per_hour: float = 1.0,
    residual: ResidualWord = "momentum",
    bandwidth_hz: float = 10.0,
    step: float | None = None,
    data_root: str | Path | None = None,
    force: bool = False,
) -> Observation:
    """Contacts along a recorded motion.

    Everything is computed from the past only, as a live observer would. Levels depend on speed, acceleration and the model's
    covariance, and are set on motion without contact for a stated rate of false alarms. Where a joint stands, friction may be
    anything up to Coulomb friction: only what is beyond counts.

    Args:
        arm: an identified result (its folder), or a robot taken at its word.
        log: the recording to be watched.
        free: recordings of the same arm without contact that were not used to identify it.
        per_hour: false alarms accepted.
        residual: `momentum` (no acceleration needed) or `direct`.
        bandwidth_hz: of the momentum observer.
        step: sampling step of files without a clock [s].
        data_root: where mapping files find recordings.
        force: use an untrusted result.

    Raises:
        UntrustedError: the result is untrusted.
        InputError: no torque on the side of the model, too little free motion, or free motion that is the watched one.
    """
    if residual not in get_args(ResidualWord):
        raise UnknownNameError("residual", str(residual), get_args(ResidualWord))
    known = observed_arm(arm, force=force)
    reader = Recordings(step=step, data_root=data_root)
    seen, calm = reader.read(log, known.robot)[0], reader.read(free, known.robot)
    _refuse_watched(seen, calm, known.robot)
    quiet = [known.motion(each) for each in calm]
    levels = levels_from(known, quiet, per_hour, residual, bandwidth_hz)
    found = _watched(known, seen, levels, residual, bandwidth_hz)
    checks = (
        speed_check(known.robot, fastest(quiet), np.abs(found.motion.qd).max(axis=0)),
        rate_check(levels, 1.0 / found.motion.step),
        tail_check(levels),
    )
    provenance = Provenance(
        inputs=(*files_of(known.robot, [seen], role="watched"), *files_of(known.robot, calm, role="free")[1:]),
        settings={"per_hour": per_hour, "residual": residual, "bandwidth_hz": bandwidth_hz},
    )
    return replace(found, checks=checks, provenance=provenance)


def _refuse_watched(seen: Log, calm: Sequence[Log], robot: Robot) -> None:
    """Levels set on the very motion that is watched would call its contacts ordinary."""
    watched = log_record(open_recording(seen, robot, check=False))
    for log in calm:
        if watched.overlaps(log_record(open_recording(log, robot, check=False))):
            raise InputError(
                log.name, "is both watched and said to be free of contact", "give other recordings as free motion"
            )


def _watched(
    arm: ObservedArm, log: Log, levels: AlarmLevels, residual: ResidualWord, bandwidth_hz: float
) -> Observation:
    """A recording against the levels."""
    motion = arm.motion(log)
    found = residuals(arm.robot, motion, bandwidth_hz)
    external = beyond_rest(found, residual)
    features = arm.features(motion, found)
    threshold = levels.level(features)
    return Observation(
        robot=arm.robot,
        name=log.name,
        motion=motion,
        external=external,
        residuals=found,
        levels=levels,
        threshold=threshold,
        contacts=contacts_along(arm.robot, motion, external, levels.deviation(features), threshold),
        notes=arm.notes(),
    )


def levels_from(
    arm: ObservedArm,
    quiet: Sequence[ObservedMotion],
    per_hour: float,
    residual: ResidualWord,
    bandwidth_hz: float,
) -> AlarmLevels:
    """Levels from all motion without contact.

    Raises:
        InputError: motions sampled at different rates, or too little of them.
    """
    found = [residuals(arm.robot, motion, bandwidth_hz) for motion in quiet]
    parts = [beyond_rest(each, residual) for each in found]
    features = [arm.features(motion, each) for motion, each in zip(quiet, found, strict=True)]
    steps = [motion.step for motion in quiet]
    if max(steps) > SAME_RATE.value * min(steps):
        rates = ", ".join(f"{1.0 / step:.0f}" for step in steps)
        raise InputError("free motion", f"recorded at {rates} Hz", "levels are those of one rate")
    lengths = [len(part) for part in parts]
    return alarm_levels(np.vstack(parts), Features.joined(features), steps[0], per_hour, lengths=lengths)
