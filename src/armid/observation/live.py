"""A live arm watched sample by sample: alarms when they happen, the same contacts that `observe` finds in a recording of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.documents import write_json
from armid.errors import InputError
from armid.identification.inputs import LogsInput, Recordings, files_of
from armid.identification.result import Result
from armid.kernels.single import SingleRows
from armid.logs.live.stream import LiveStream, open_stream
from armid.notes import Note
from armid.observation.arm import ObservedArm, observed_arm
from armid.observation.checks import fastest, lost_check, rate_check, speed_check, tail_check
from armid.observation.contacts import APART, Contact, contacts_table, flange_wrench
from armid.observation.levels import AlarmLevels, Features
from armid.observation.observe import levels_from
from armid.observation.residuals import REVERSAL_MEMORY, MomentumObserver
from armid.outcome import Check, Outcome, Provenance
from armid.page import Table
from armid.robot.robot import Robot
from armid.threads import one_blas_thread


@dataclass(slots=True, kw_only=True)
class _Touch:
    """A contact that is still going on."""

    begins: float
    last: float
    deviations: float
    joint: int
    q: FloatArray
    external: FloatArray
    joints: set[int]


class LiveObserver:
    """Alarms of a live arm.

    Args:
        arm: what is known of it.
        levels: what raises an alarm, from motion without contact.
        rate_hz: of the samples.
        bandwidth_hz: of the observer; that of the levels.
    """

    def __init__(self, arm: ObservedArm, levels: AlarmLevels, *, rate_hz: float, bandwidth_hz: float = 10.0) -> None:
        self.robot, self.levels = arm.robot, levels
        self.observer = MomentumObserver(arm.robot, rate_hz, bandwidth_hz)
        self._gap = 1.5 / rate_hz
        self._forget = float(np.exp(-1.0 / (rate_hz * REVERSAL_MEMORY)))
        self._reversal, self._coulomb = np.zeros(arm.robot.n_joints), arm.robot.drive("coulomb")
        self._deviation = _Doubt(arm)
        self._time: float | None = None
        self._touch: _Touch | None = None
        self.contacts: list[Contact] = []
        """That are over."""
        self.reached = np.zeros(arm.robot.n_joints)
        """Largest speed of every joint so far."""

    @property
    def touched(self) -> bool:
        """Whether somebody pushes now."""
        return self._touch is not None

    def push(self, time: float, q: FloatArray, torque: FloatArray) -> bool:
        """One sample; whether some joint passes its level."""
        if self._time is not None and time - self._time > self._gap:
            self.observer.reset()
            self._reversal = np.zeros_like(self._reversal)
        self._time = time
        if self.observer.push(q, torque) is None:
            return False
        _, v, _ = self.observer.state
        self.reached = np.maximum(self.reached, np.abs(v))
        raw, band = self.observer.external, self.observer.band
        external = np.sign(raw) * np.maximum(np.abs(raw) - band, 0.0)
        deviation = self.levels.deviation(self._features())[0]
        passed = np.abs(external) > self.levels.factor * deviation
        self._follow(time, external, np.abs(external) / deviation, passed)
        return bool(passed.any())

    def _features(self) -> Features:
        _, v, a = self.observer.state
        resting = np.where(self.observer.resting, self._coulomb, 0.0)
        self._reversal = self._forget * self._reversal + (1.0 - self._forget) * resting
        return Features(
            speed=np.abs(v)[np.newaxis],
            acceleration=np.abs(a)[np.newaxis],
            deviation=self._deviation(self.observer.state)[np.newaxis],
            reversal=self._reversal[np.newaxis],
        )

    def _follow(self, time: float, external: FloatArray, z: FloatArray, passed: np.ndarray[Any, Any]) -> None:
        """Opens, goes on with, or closes a contact."""
        if self._touch is not None and time - self._touch.last > APART:
            self.close()
        if not passed.any():
            return
        joint, joints = int(z.argmax()), set(np.flatnonzero(passed).tolist())
        q = np.array(self.observer.state[0])
        if self._touch is None:
            self._touch = _Touch(
                begins=time,
                last=time,
                deviations=float(z[joint]),
                joint=joint,
                q=q,
                external=external.copy(),
                joints=joints,
            )
            return
        touch = self._touch
        touch.last, touch.joints = time, touch.joints | joints
        if z[joint] > touch.deviations:
            touch.deviations, touch.joint, touch.q, touch.external = float(z[joint]), joint, q, external.copy()

    def close(self) -> None:
        """Ends a contact that is still open."""
        if self._touch is None:
            return
        touch, names = self._touch, self.robot.joint_names
        self._touch = None
        self.contacts.append(
            Contact(
                begins=touch.begins,
                ends=touch.last,
                joint=names[touch.joint],
                torque=float(touch.external[touch.joint]),
                deviations=touch.deviations,
                joints=tuple(names[j] for j in sorted(touch.joints)),
                wrench=flange_wrench(self.robot, touch.q, touch.external),
            )
        )


class _Doubt:
    """Deviation of the model's torque at one state, by the covariance of its parameters."""

    def __init__(self, arm: ObservedArm) -> None:
        self._n, self._rows = arm.robot.n_joints, None
        if arm.doubt is not None:
            source, self._factor = arm.doubt
            self._rows = SingleRows(source)
            self._A = np.zeros((len(source.channels), len(source.columns)))

    def __call__(self, state: FloatArray) -> FloatArray:
        if self._rows is None:
            return np.zeros(self._n)
        self._A[self._rows.channels, self._rows.columns] = self._rows(state.reshape(-1))
        return np.asarray(np.linalg.norm(self._A[: self._n] @ self._factor, axis=1))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LiveObservation(Outcome):
    """What was seen of a live arm.

    Args:
        robot: the model.
        stream: where the samples came from.
        received, lost: samples.
        rate_hz: of the samples.
        delay: between a push and the alarm, besides the observer's time constant [s].
        levels: what raises an alarm.
        contacts: in the order of time.
        checks: what it was held against.
        notes: what a reader must know.
        provenance: inputs and settings.
    """

    robot: Robot
    stream: str
    received: int
    lost: int
    rate_hz: float
    delay: float
    levels: AlarmLevels
    contacts: tuple[Contact, ...]
    checks: tuple[Check, ...] = ()
    notes: tuple[Note, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    def _heading(self) -> str:
        counted = f"{self.received} samples, {self.lost} lost"
        return f"{self.stream}: {len(self.contacts)} contacts, {counted}, {self.levels.accepted}"

    def _tables(self) -> tuple[Table, ...]:
        return (contacts_table(self.contacts),) if self.contacts else ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "schema": "armid.live-observation/1",
            "robot": self.robot.name,
            "stream": self.stream,
            "received": self.received,
            "lost": self.lost,
            "rate_hz": self.rate_hz,
            "delay": self.delay,
            "contacts": [contact.as_dict() for contact in self.contacts],
            "false_alarms_per_hour": self.levels.per_hour,
            "levels": self.levels.as_dict(),
            "verdict": self.verdict.value,
            "checks": [check.as_dict() for check in self.checks],
            "notes": [note.as_dict() for note in self.notes],
        }

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes `observation.json`."""
        return (write_json(Path(folder) / "observation.json", self.as_dict()),)


@one_blas_thread
def observe_stream(
    arm: str | Path | Result | Robot,
    stream: str,
    *,
    free: LogsInput,
    rate_hz: float | None,
    per_hour: float = 1.0,
    bandwidth_hz: float = 10.0,
    tell: Callable[[dict[str, Any]], None] | None = None,
    step: float | None = None,
    data_root: str | Path | None = None,
    force: bool = False,
) -> LiveObservation:
    """Contacts of a live arm, as they happen.

    Args:
        arm: an identified result (its folder), or a robot taken at its word.
        stream: `-` for JSON lines on stdin, `udp://HOST:PORT`, or `rtde://HOST[:PORT][?torque=FIELD]`.
        free: recordings of the same arm at the same rate without contact, not used to identify it.
        rate_hz: samples per second of the stream.
        per_hour: false alarms accepted.
        bandwidth_hz: of the momentum observer.
        tell: called when samples may come, when a contact begins and when it is over.
        step, data_root: sampling step of files without a clock [s]; where mapping files find recordings.
        force: use an untrusted result.

    Raises:
        UntrustedError: the result is untrusted.
        InputError: no rate, no such stream, or too little free motion.
    """
    if rate_hz is None:
        raise InputError("--rate-hz", "not given", "samples per second of the stream")
    settings = {"per_hour": per_hour, "bandwidth_hz": bandwidth_hz, "rate_hz": rate_hz, "stream": stream}
    known = observed_arm(arm, force=force)
    calm = Recordings(step=step, data_root=data_root).read(free, known.robot)
    quiet = [known.motion(each) for each in calm]
    levels = levels_from(known, quiet, per_hour, "momentum", bandwidth_hz)
    observer = LiveObserver(known, levels, rate_hz=rate_hz, bandwidth_hz=bandwidth_hz)
    source = open_stream(stream, known.robot, rate_hz=rate_hz, side=known.side, gains=known.gains)
    tell = tell or (lambda said: None)
    tell({"event": "watching", "stream": stream})
    watch(observer, source, tell)
    return LiveObservation(
        robot=known.robot,
        stream=stream,
        received=source.received,
        lost=source.lost,
        rate_hz=rate_hz,
        delay=observer.observer.delay,
        levels=levels,
        contacts=tuple(observer.contacts),
        checks=(
            speed_check(known.robot, fastest(quiet), observer.reached),
            rate_check(levels, rate_hz),
            lost_check(source.received, source.lost),
            tail_check(levels),
        ),
        notes=known.notes(),
        provenance=Provenance(inputs=files_of(known.robot, calm, role="free"), settings=settings),
    )


def watch(observer: LiveObserver, source: LiveStream, tell: Callable[[dict[str, Any]], None]) -> None:
    """Every sample of a stream through an observer, until the stream ends."""
    for sample in source:
        before, known = observer.touched, len(observer.contacts)
        observer.push(sample.time, sample.q, sample.torque)
        for contact in observer.contacts[known:]:
            tell({"event": "contact", **contact.as_dict()})
        if observer.touched and (not before or len(observer.contacts) > known):
            tell({"event": "begins", "time": sample.time})
    known = len(observer.contacts)
    observer.close()
    for contact in observer.contacts[known:]:
        tell({"event": "contact", **contact.as_dict()})
