"""Stages of a sequential identification: which joint's torque, what moved, what was locked; [Khosla1985] sec. 3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray, read_only, samples
from armid.errors import InputError
from armid.logs.check import check_log
from armid.logs.conditioning import Conditioning, LowPass, VelocitySource, condition, low_pass
from armid.logs.conditioning.condition import resolved_settings
from armid.logs.conditioning.parts import uniform_parts
from armid.logs.log import Channel, Log, matched
from armid.logs.samples import Samples, Segment
from armid.parameters.effects import Effects, TorqueSide
from armid.robot.robot import Robot
from armid.sequential.pairing import Pairing, pairing_of, step_of

_LOCKED_TRAVEL = 1e-3
"""[rad or m] A joint on its brake moves less than this: the give of a brake and the noise of an encoder together."""

MOVING_TRAVEL = 2e-2
"""[rad or m] A joint that was meant to move goes further than this. In between, a brake has slipped or a joint was pushed."""

_MOTION_SHARE = 2.0
"""The motion passes this many times the cut-off of the rows, so that its own filter leaves what the rows' filter keeps alone
(to 0.4 % at the cut-off itself, far less below)."""

_REVERSAL = 0.05
"""Of a joint's root-mean-square velocity: slower than this the sign of its velocity, hence of Coulomb friction, is a matter of
filters and stiction. Such samples, as far as the rows' filter spreads them, are left out."""


class ErrorStructure(StrEnum):
    """Which motion the model's torque is computed from; [Khosla1985] fig. 1. The estimators are the same."""

    INPUT = "input-error"
    """The measured motion: the model in series behind the robot, for measurements."""
    OUTPUT = "output-error"
    """The commanded motion, given to robot and model alike: for simulation studies, where both follow it exactly."""


@dataclass(frozen=True)
class RowFilter:
    """One linear filter on both sides of `y = A pi`: `F y = (F A) pi`, whatever pi is.

    Args:
        cutoff: of the zero-phase low-pass [Hz].
        segments: stretches of uniform sampling.
        reversal: [rad/s or m/s] samples near slower motion of the stage's joint are left out; 0 keeps all.
        order: of the one-way filter.
    """

    cutoff: float
    segments: tuple[Segment, ...]
    reversal: float = 0.0
    order: int = 4

    def apply(self, rows: FloatArray, torque: FloatArray, velocity: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Rows [n, p] and torque [n, k] filtered and thinned, without ends and reversals, and how many independent ones they are.

        Reversals stay in when too little would be left without them: friction that turns around a little differently than its
        model does less harm than rows that hardly outnumber the parameters.
        """
        parts = [self._stretch(segment, rows, torque, velocity) for segment in self.segments]
        wanted = _RESERVE * np.count_nonzero(rows.any(axis=0))
        left = sum(share * float(np.count_nonzero(clear)) for *_, clear, share in parts)
        keep = [clear if left >= wanted else np.ones_like(clear) for *_, clear, _ in parts]
        A = np.concatenate([part[0][k] for part, k in zip(parts, keep, strict=True)])
        y = np.concatenate([part[1][k] for part, k in zip(parts, keep, strict=True)])
        count = sum(part[3] * float(np.count_nonzero(k)) for part, k in zip(parts, keep, strict=True))
        return A, y, count

    def rate_of_change(self, torque: FloatArray) -> FloatArray:
        """d(tau)/dt [N m/s or N/s] within every stretch, shape [n]."""
        out = np.zeros_like(torque)
        for segment in self.segments:
            if len(segment) > 1:
                out[segment.slice] = segment.rate * np.gradient(torque[segment.slice])
        return out

    def _stretch(
        self, segment: Segment, rows: FloatArray, torque: FloatArray, velocity: FloatArray
    ) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_], float]:
        """Filtered rows and torque, which of them are clear of reversals, and how much each counts as an independent one."""
        filter = LowPass(segment.rate, self.cutoff, self.order)
        period = 0 if filter.passes_all else int(np.ceil(filter.transient * segment.rate))
        slow = np.abs(velocity[segment.slice]) < self.reversal
        reach = period // 2
        near = np.convolve(slow, np.ones(2 * reach + 1), mode="same") > 0.5 if slow.any() and reach else slow
        # What a low-pass leaves is determined by two samples per period of its cut-off; twice as many are kept.
        every = max(1, int(segment.rate / (_KEPT * self.cutoff)))
        kept = slice(period, max(period, len(segment) - period), every)
        share = 1.0 if filter.passes_all else min(1.0, 2.0 * self.cutoff * every / segment.rate)
        A, y = (low_pass(values[segment.slice], filter)[kept] for values in (rows, torque))
        return A, y, ~near[kept], share


_KEPT = 4.0
"""Rows per period of the cut-off."""

_RESERVE = 3.0
"""Independent rows per column: with fewer, leaving samples out costs more than it mends."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Stage:
    """The data of one stage.

    Args:
        joint: whose torque is used.
        inputs: (q, qd, qdd) of all joints side by side, shape [n_samples, 3 n_joints].
        torque: of that joint [N m or N], shape [n_samples].
        locked: names of joints that stood still.
        filter: for rows and torque alike; None when they are used as they are.
        pairing: of torque and motion, when it was measured.
        rate: samples per second of rows that are used as they are [Hz].
    """

    joint: str
    inputs: FloatArray
    torque: FloatArray
    locked: tuple[str, ...] = ()
    filter: RowFilter | None = None
    pairing: Pairing | None = None
    rate: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", read_only(self.inputs))
        object.__setattr__(self, "torque", read_only(self.torque))

    @property
    def stretches(self) -> tuple[tuple[int, int, float], ...]:
        """Start, stop and rate [Hz] of every stretch of uniform sampling."""
        if self.filter is None:
            return ((0, len(self.torque), self.rate),)
        return tuple((segment.start, segment.stop, segment.rate) for segment in self.filter.segments)


def moving_stages(robot: Robot, inputs: npt.ArrayLike, torque: npt.ArrayLike) -> tuple[Stage, ...]:
    """One motion of all joints, looked at joint by joint from the tip (the on-line procedure).

    Args:
        robot: the arm.
        inputs: shape [n_samples, 3 n_joints].
        torque: of every joint, shape [n_samples, n_joints].
    """
    x = samples("inputs", inputs, 3 * robot.n_joints)
    tau = samples("torque", torque, robot.n_joints)
    return tuple(Stage(joint=robot.joint_names[i], inputs=x, torque=tau[:, i]) for i in reversed(range(robot.n_joints)))


def locked_stage(
    robot: Robot, joint: str, inputs: npt.ArrayLike, torque: npt.ArrayLike, locked: Sequence[str]
) -> Stage:
    """A stage whose locked joints are checked to have stood still.

    Raises:
        InputError: a joint that should be locked moved.
    """
    n = robot.n_joints
    x = samples("inputs", inputs, 3 * n)
    tau = samples("torque", torque, n)
    _check_locked(robot, x[:, :n], locked, f"stage of {joint!r}")
    return Stage(joint=joint, inputs=x, torque=tau[:, robot.joint_index(joint)], locked=tuple(locked))


def _check_locked(robot: Robot, q: FloatArray, locked: Sequence[str], name: str) -> None:
    """Refuses a joint that should be locked but moved."""
    for joint in locked:
        travel = float(np.ptp(q[:, robot.joint_index(joint)]))
        if travel > _LOCKED_TRAVEL:
            raise InputError(name, f"joint {joint!r} should be locked but moved by {travel:.3g}", "apply its brake")


@dataclass(frozen=True, slots=True, kw_only=True)
class Staging:
    """From a recording to stages.

    Args:
        effects: what is in the torque besides the links; Coulomb friction asks for care at reversals.
        cutoff: of the low-pass on rows and torque alike [Hz]; chosen from the spectrum when None.
        structure: measured or commanded motion.
        velocity: derived from position, or as measured.
        torque_delay: how late torque is stamped [s]; measured when None. A torque command held for a period is half a period
            early: minus that.
        locked: names of joints that have to stand still.
        accept: codes of errors of the log that the user has looked at.
        as_recorded: take recorded position, velocity, acceleration and torque as they are, sample by sample.
    """

    effects: Effects = field(default_factory=Effects)
    cutoff: float | None = None
    structure: ErrorStructure = ErrorStructure.INPUT
    velocity: VelocitySource = VelocitySource.POSITION
    torque_delay: float | None = None
    locked: tuple[str, ...] = ()
    accept: tuple[str, ...] = ()
    as_recorded: bool = False


def stages_of_log(log: Log, robot: Robot, settings: Staging | None = None) -> tuple[Stage, ...]:
    """The stages a recording serves: all joints when all move, else the first joint that moves.

    Raises:
        InputError: nothing moves, a joint moved that should not, or a brake slipped.
        LogRefusedError: the recording is not what it claims to be.
        UnknownNameError: a channel is missing.
    """
    plan = settings or Staging()
    ordered = matched(log, robot)
    if plan.structure is ErrorStructure.OUTPUT:
        command = {Channel.POSITION: ordered[Channel.COMMANDED_POSITION]}
        ordered = replace(ordered, channels=dict(ordered.channels) | command)
    pairing = None
    if plan.as_recorded:
        inputs, torque, filter = _recorded(ordered), _recorded_torque(ordered, plan.effects.torques), None
    else:
        data, cutoff, pairing = _paired(_sound(ordered, robot), robot, plan)
        inputs, torque = np.array(data.inputs()), data.torque(plan.effects.torques)
        filter = RowFilter(cutoff, data.segments)
    n = robot.n_joints
    _check_locked(robot, inputs[:, :n], plan.locked, log.name)
    first = _first_moving(log.name, inputs[:, :n], robot)
    # A joint on its brake does not accelerate; what a differentiator makes of its encoder's noise is left out.
    inputs[:, n : n + first] = inputs[:, 2 * n : 2 * n + first] = 0.0
    joints = [first] if first else list(reversed(range(n)))
    stages = (
        Stage(
            joint=robot.joint_names[j],
            inputs=inputs,
            torque=torque[:, j],
            locked=robot.joint_names[:first],
            filter=filter,
            pairing=pairing,
            rate=1.0 / (step_of(log) or 1.0),
        )
        for j in joints
    )
    return tuple(_with_reversals(stage, robot) if plan.effects.coulomb else stage for stage in stages)


def _sound(log: Log, robot: Robot) -> Log:
    """The log with its findings; a locked joint's encoder is meant to show the same value all along."""
    checked = check_log(log, robot)
    q = np.where(np.isfinite(log[Channel.POSITION]), log[Channel.POSITION], 0.0)
    still = {name for name, x in zip(log.joints, q.T, strict=True) if np.ptp(x) < _LOCKED_TRAVEL}
    kept = (
        n for n in checked.notes if not (n.code == "frozen" and n.subject in still) and n.code != "too-little-motion"
    )
    return replace(checked, notes=tuple(kept))


def _first_moving(name: str, q: FloatArray, robot: Robot) -> int:
    """Index of the first joint that moves; those before it are locked, those after it move or not."""
    travel = np.ptp(q, axis=0)
    if (travel < _LOCKED_TRAVEL).all():
        raise InputError(name, "no joint moves", "record the motion of the joint and those beyond it")
    first = int(np.argmax(travel >= _LOCKED_TRAVEL))
    if travel[first] < MOVING_TRAVEL:
        raise InputError(
            name,
            f"joint {robot.joint_names[first]!r} moved by {travel[first]:.3g}: too far for a locked joint, not enough to be seen",
            f"apply its brake (below {_LOCKED_TRAVEL:g}), or move it further than {MOVING_TRAVEL:g}",
        )
    return first


def _paired(log: Log, robot: Robot, plan: Staging) -> tuple[Samples, float, Pairing | None]:
    """Samples with torque moved to the motion it belongs to, the rows' cut-off [Hz], and the shift where it was measured."""
    data, cutoff = _conditioned(log, robot, plan)
    if plan.torque_delay is not None:
        return data, cutoff, None
    travel = np.ptp(data.q, axis=0)
    locked = int(np.argmax(travel >= _LOCKED_TRAVEL)) if (travel >= _LOCKED_TRAVEL).any() else 0
    found = pairing_of(log, robot, data, data.channel(plan.effects.torques), locked=locked)
    if found is not None and found.taken_out:
        data, _ = _conditioned(log, robot, replace(plan, cutoff=cutoff, torque_delay=found.taken_out))
    return data, cutoff, found


def _conditioned(log: Log, robot: Robot, plan: Staging) -> tuple[Samples, float]:
    """Samples whose motion passes `_MOTION_SHARE` times the rows' cut-off, and that cut-off [Hz]."""
    wanted = Conditioning(velocity=plan.velocity, torque_delay=plan.torque_delay or 0.0, accept=plan.accept)
    if plan.cutoff is None:
        parts, _ = uniform_parts(log, wanted)
        chosen = resolved_settings(parts, wanted)[0].cutoff
        assert chosen is not None
        cutoff = chosen
    else:
        cutoff = plan.cutoff
    return condition(log, robot, replace(wanted, cutoff=_MOTION_SHARE * cutoff)), cutoff


def _with_reversals(stage: Stage, robot: Robot) -> Stage:
    """The stage without what lies near reversals of its joint."""
    if stage.filter is None:
        return stage
    n = robot.n_joints
    velocity = stage.inputs[:, n + robot.joint_index(stage.joint)]
    limit = _REVERSAL * float(np.sqrt(np.mean(velocity**2)))
    return replace(stage, filter=replace(stage.filter, reversal=limit))


def _recorded(log: Log) -> FloatArray:
    """(q, qd, qdd) as they stand in the file, shape [n_samples, 3 n_joints]."""
    arrays = [log[channel] for channel in (Channel.POSITION, Channel.VELOCITY, Channel.ACCELERATION)]
    inputs = np.hstack(arrays)
    bad = int((~np.isfinite(inputs)).any(axis=1).sum())
    if bad:
        raise InputError(log.name, f"{bad} samples are not finite", "leave them out, or let the log be conditioned")
    return inputs


def _recorded_torque(log: Log, side: TorqueSide) -> FloatArray:
    """Torque of the side asked for as it stands in the file, shape [n_samples, n_joints]."""
    order = [Channel.LINK_TORQUE, Channel.MOTOR_TORQUE, Channel.COMMANDED_TORQUE]
    if side is TorqueSide.MOTOR:
        order = [Channel.MOTOR_TORQUE, Channel.COMMANDED_TORQUE, Channel.LINK_TORQUE]
    found = [channel for channel in order if channel in log]
    if not found:
        raise InputError(log.name, "holds no torque", f"one of {', '.join(c.value for c in order)}")
    torque = log[found[0]]
    if not np.isfinite(torque).all():
        raise InputError(log.name, f"{found[0].value} holds values that are not finite")
    return torque
