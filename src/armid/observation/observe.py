"""`armid observe`: contacts along a recorded motion, from an identified arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from armid.arrays import FloatArray
from armid.documents import write_json
from armid.errors import InputError
from armid.identification.inputs import LogInput, LogsInput, Recordings, files_of, is_result, result_of, robot_of
from armid.identification.result import Result
from armid.kernels.evaluate import Restricted, evaluate_rows
from armid.kernels.kinematics import jacobian
from armid.logs.log import MEASURED_TORQUES, Channel, Log
from armid.notes import Note, Severity
from armid.observation.levels import AlarmLevels, Features, alarm_levels
from armid.observation.residuals import ObservedMotion, Residuals, observed_motion, residuals
from armid.outcome import Check, Outcome, Provenance
from armid.page import Table
from armid.parameters.effects import TorqueSide
from armid.robot.robot import Robot
from armid.rows.torque import TorqueRows
from armid.threads import one_blas_thread

ResidualWord = Literal["momentum", "direct"]

_APART = 0.1
"""[s] of silence that ends a contact."""

_WELL_CONDITIONED = 100.0
"""Condition number of the Jacobian (lengths in metres) beyond which no wrench is given."""

_FORCE_AT_TIP = 6
"""Joints that a wrench at the flange needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    """Something that pushed.

    Args:
        begins, ends: [s]; when it was known, not when it happened.
        joint: that stood out most.
        torque: largest external torque in it [N m or N].
        deviations: by how many of its own the joint stood out.
        joints: all that passed their levels.
        wrench: force [N] and moment [N m] at the flange in base axes, at the peak; None where the Jacobian does not allow it.
    """

    begins: float
    ends: float
    joint: str
    torque: float
    deviations: float
    joints: tuple[str, ...]
    wrench: tuple[float, ...] | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "begins": self.begins,
            "ends": self.ends,
            "joint": self.joint,
            "torque": self.torque,
            "deviations": self.deviations,
            "joints": list(self.joints),
            "wrench": None if self.wrench is None else list(self.wrench),
        }


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
        accepted = f"{self.levels.per_hour:g} false alarms an hour accepted"
        return f"{self.name}: {len(self.contacts)} contacts in {self.duration:.1f} s, {accepted}"

    def _tables(self) -> tuple[Table, ...]:
        found = tuple(
            (
                f"{c.begins:.3f}",
                f"{c.ends - c.begins:.3f}",
                c.joint,
                c.torque,
                c.deviations,
                ", ".join(c.joints),
                "" if c.wrench is None else ", ".join(f"{x:.3g}" for x in c.wrench),
            )
            for c in self.contacts
        )
        header = ("from [s]", "lasts [s]", "joint", "torque [N m or N]", "deviations", "all joints", "wrench [N, N m]")
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
        return (Table(header, found, caption="Contacts"), levels) if found else (levels,)

    def as_dict(self) -> dict[str, Any]:
        return {
            "schema": "armid.observation/1",
            "robot": self.robot.name,
            "recording": self.name,
            "seconds_observed": self.duration,
            "delay": self.motion.delay,
            "contacts": [contact.as_dict() for contact in self.contacts],
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
        InputError: no torque on the side of the model, or too little free motion.
    """
    robot, result = _model_of(arm, force=force)
    reader = Recordings(step=step, data_root=data_root)
    side = TorqueSide.LINK if result is None else result.effects.torques
    seen, calm = reader.read(log, robot)[0], reader.read(free, robot)
    watched, quiet = _motion_of(seen, side), [_motion_of(each, side) for each in calm]
    levels = _levels_from(robot, result, quiet, per_hour, residual, bandwidth_hz)
    found = residuals(robot, watched, bandwidth_hz)
    external = beyond_rest(found, residual)
    features = _features(robot, result, watched, found)
    threshold = levels.level(features)
    contacts = _contacts(robot, watched, external, levels.deviation(features), threshold)
    return Observation(
        robot=robot,
        name=seen.name,
        motion=watched,
        external=external,
        residuals=found,
        levels=levels,
        threshold=threshold,
        contacts=contacts,
        checks=(_range_check(robot, quiet, watched), _rate_check(levels)),
        notes=_notes(result),
        provenance=Provenance(
            inputs=(*files_of(robot, [seen], role="watched"), *files_of(robot, calm, role="free")[1:]),
            settings={"per_hour": per_hour, "residual": residual, "bandwidth_hz": bandwidth_hz},
        ),
    )


def _model_of(arm: str | Path | Result | Robot, *, force: bool) -> tuple[Robot, Result | None]:
    """The robot that predicts, and the result it comes from."""
    if not is_result(arm):
        return robot_of(arm), None  # type: ignore[arg-type]
    result = result_of(arm)  # type: ignore[arg-type]
    if not force:
        result.raise_if_untrusted()
    return result.robot, result


def _motion_of(log: Log, side: TorqueSide) -> ObservedMotion:
    """Positions and the torque that the model predicts."""
    wanted = {TorqueSide.LINK: Channel.LINK_TORQUE, TorqueSide.MOTOR: Channel.MOTOR_TORQUE}.get(side)
    there = [channel for channel in MEASURED_TORQUES if channel in log.channels]
    if wanted not in there and not there:
        raise InputError(log.name, "no torque", "an observer needs measured torque of every joint")
    channel = wanted if wanted in there else there[0]
    assert channel is not None
    return observed_motion(log.time, log.channels[Channel.POSITION], log.channels[channel])


def beyond_rest(found: Residuals, which: ResidualWord) -> FloatArray:
    """External torque less what friction at rest may hide, shape [n, n_joints]."""
    momentum = which == "momentum"
    raw, band = (found.momentum, found.momentum_band) if momentum else (found.direct, found.direct_band)
    return np.sign(raw) * np.maximum(np.abs(raw) - band, 0.0)


def _features(robot: Robot, result: Result | None, motion: ObservedMotion, found: Residuals) -> Features:
    deviation = np.zeros_like(motion.q)
    if result is not None:
        rows = TorqueRows(robot, result.effects)
        source = Restricted(rows, tuple(int(k) for k in result.estimate.base.independent))
        values, vectors = np.linalg.eigh(result.estimate.covariance)
        factor = vectors * np.sqrt(np.maximum(values, 0.0))
        A = evaluate_rows(source, np.hstack([motion.q, motion.qd, motion.qdd]))[:, : robot.n_joints]
        deviation = np.linalg.norm(A @ factor, axis=2)
    return Features(
        speed=np.abs(motion.qd), acceleration=np.abs(motion.qdd), deviation=deviation, reversal=found.reversal
    )


def _levels_from(
    robot: Robot,
    result: Result | None,
    quiet: Sequence[ObservedMotion],
    per_hour: float,
    residual: ResidualWord,
    bandwidth_hz: float,
) -> AlarmLevels:
    """Levels from all motion without contact."""
    found = [residuals(robot, motion, bandwidth_hz) for motion in quiet]
    parts = [beyond_rest(each, residual) for each in found]
    features = [_features(robot, result, motion, each) for motion, each in zip(quiet, found, strict=True)]
    joined = Features(
        speed=np.vstack([f.speed for f in features]),
        acceleration=np.vstack([f.acceleration for f in features]),
        deviation=np.vstack([f.deviation for f in features]),
        reversal=np.vstack([f.reversal for f in features]),
    )
    step = float(np.median(np.diff(quiet[0].time)))
    return alarm_levels(np.vstack(parts), joined, step, per_hour)


def _contacts(
    robot: Robot, motion: ObservedMotion, external: FloatArray, deviation: FloatArray, threshold: FloatArray
) -> tuple[Contact, ...]:
    """Stretches in which some joint passes its level, those close to each other as one."""
    passed = np.abs(external) > threshold
    index = np.flatnonzero(passed.any(axis=1))
    if not len(index):
        return ()
    gap = max(int(_APART / float(np.median(np.diff(motion.time)))), 1)
    pieces = np.split(index, np.flatnonzero(np.diff(index) > gap) + 1)
    return tuple(_contact(robot, motion, external, deviation, passed, piece) for piece in pieces)


def _contact(
    robot: Robot,
    motion: ObservedMotion,
    external: FloatArray,
    deviation: FloatArray,
    passed: np.ndarray[Any, np.dtype[np.bool_]],
    piece: np.ndarray[Any, np.dtype[np.intp]],
) -> Contact:
    z = np.abs(external[piece]) / deviation[piece]
    row, joint = (int(k) for k in np.unravel_index(int(z.argmax()), z.shape))
    peak = int(piece[row])
    names = robot.joint_names
    return Contact(
        begins=float(motion.time[piece[0]] + motion.delay),
        ends=float(motion.time[piece[-1]] + motion.delay),
        joint=names[joint],
        torque=float(external[peak, joint]),
        deviations=float(z[row, joint]),
        joints=tuple(name for name, any_ in zip(names, passed[piece].any(axis=0), strict=True) if any_),
        wrench=_wrench(robot, motion.q[peak], external[peak]),
    )


def _wrench(robot: Robot, q: FloatArray, external: FloatArray) -> tuple[float, ...] | None:
    """Force and moment at the flange that make this joint torque: tau = J^T F, in the least-squares sense."""
    if robot.n_joints < _FORCE_AT_TIP:
        return None
    J = jacobian(robot, q).reshape(6, -1)
    if np.linalg.cond(J) > _WELL_CONDITIONED:
        return None
    solution, *_ = np.linalg.lstsq(J.T, external, rcond=None)
    return tuple(float(x) for x in solution)


def _range_check(robot: Robot, quiet: Sequence[ObservedMotion], motion: ObservedMotion) -> Check:
    """Whether the free motion was as fast as the one that is watched."""
    known = np.max([np.abs(each.qd).max(axis=0) for each in quiet], axis=0)
    ratio = np.abs(motion.qd).max(axis=0) / np.maximum(known, 1e-9)
    worst = int(ratio.argmax())
    return Check(
        code="speed-range",
        passed=bool(ratio[worst] <= 1.2),
        value=float(ratio[worst]),
        limit=1.2,
        message=(
            f"{robot.joint_names[worst]} moves {ratio[worst]:.2f} times as fast as in the motion without contact"
            + (": levels are extrapolated, record free motion at this speed" if ratio[worst] > 1.2 else "")
        ),
        subject=robot.joint_names[worst],
    )


def _rate_check(levels: AlarmLevels) -> Check:
    """How far the stated rate lies beyond what the free motion can show by itself."""
    reach = 1.0 / max(levels.hours * levels.per_hour, 1e-12)
    return Check(
        code="free-motion",
        passed=reach <= 1000.0,
        value=reach,
        limit=1000.0,
        message=(
            f"{60 * levels.hours:.1f} minutes without contact for {levels.per_hour:g} false alarms an hour: "
            + ("the tail is extrapolated" if reach <= 1000.0 else "too far beyond what was seen, record more")
        ),
        decisive=False,
    )


def _notes(result: Result | None) -> tuple[Note, ...]:
    notes = []
    if result is not None and result.effects.shapes:
        text = f"friction shapes {', '.join(result.effects.shapes)} are not part of the observer's model; levels account for it"
        notes.append(Note("shapes-left-out", Severity.INFO, text))
    if result is None:
        notes.append(Note("no-covariance", Severity.INFO, "a robot taken at its word has no covariance"))
    return tuple(notes)
