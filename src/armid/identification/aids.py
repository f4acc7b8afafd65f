"""What some methods need besides rows: the commanded motion, the recordings as the controller lived them, the noise of motion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.estimation.run import Run
from armid.identification.settings import Identification, Method
from armid.logs.conditioning import Conditioning, VelocitySource, condition
from armid.logs.log import Channel
from armid.logs.recording import Recording
from armid.logs.samples import concatenated
from armid.robot.robot import Robot

if TYPE_CHECKING:  # simulated loops load with the methods that run them
    from armid.identification.loop_methods import RawMotion


@dataclass(frozen=True, eq=False)
class Aids:
    """What some methods need besides rows.

    Args:
        commanded: (q, qd, qdd) that the controller asked for, by run, shape [n_samples, 3 n_joints].
        motion_noise: standard deviation of conditioned (q, qd, qdd), shape [3 n_joints]; empty when not known.
        raw: recordings as the controller lived them; empty without one.
        conditioned: positions of every recording at its own samples to (q, qd, qdd) by run, like the measured ones.
    """

    commanded: dict[str, FloatArray] = field(default_factory=dict)
    motion_noise: FloatArray = field(default_factory=lambda: np.empty(0))
    raw: tuple[RawMotion, ...] = ()
    conditioned: Callable[[Sequence[FloatArray]], dict[str, FloatArray]] | None = None


def aids_of(
    robot: Robot,
    logs: Sequence[Recording],
    runs: Sequence[Run],
    conditioning: Conditioning,
    settings: Identification,
    *,
    torque: Channel = Channel.LINK_TORQUE,
) -> Aids:
    """The aids that the method of the settings needs.

    Args:
        robot: the arm.
        logs: of the training runs.
        runs: made of them.
        conditioning: as resolved.
        settings: with the method.
        torque: channel that the rows explain.

    Raises:
        InputError: the logs do not hold what the method needs.
    """
    if settings.prior is not None and settings.method is not Method.WEIGHTED:
        raise InputError(f"--method {settings.method}", "with --prior", "an earlier result is continued by wls")
    match settings.method:
        case Method.INSTRUMENTAL:
            from armid.identification.loop_methods import raw_motions

            if settings.effects.shapes:
                raise InputError("--method iv", "with shapes of friction", "it simulates linear friction only")
            commanded = _commands_of(robot, logs, runs, conditioning)
            if settings.controller is None:
                return Aids(commanded=commanded)
            raw = raw_motions(logs, torque, settings.method)
            return Aids(
                commanded=commanded,
                raw=raw,
                conditioned=lambda positions: _conditioned_positions(robot, logs, runs, conditioning, positions),
            )
        case Method.DIDIM | Method.CLOE | Method.ML:
            from armid.identification.loop_methods import raw_motions

            if settings.controller is None:
                raise InputError(
                    f"--method {settings.method}",
                    "without --controller",
                    "give the file of the controller (docs/formats.md); kp: unknown has its gains estimated",
                )
            return Aids(raw=raw_motions(logs, torque, settings.method))
        case Method.TOTAL:
            return Aids(motion_noise=_motion_noise_of(robot, logs, conditioning))
        case _:
            return Aids()


def _commands_of(
    robot: Robot, logs: Sequence[Recording], runs: Sequence[Run], conditioning: Conditioning
) -> dict[str, FloatArray]:
    """The commanded motion at the samples of every run, conditioned like the measured one.

    Raises:
        InputError: a log without commanded positions, or whose command does not cover its motion.
    """
    missing = [log.name for log in logs if Channel.COMMANDED_POSITION not in log]
    if missing:
        raise InputError(
            missing[0],
            "no commanded positions; --method iv simulates the arm along them",
            "record what the controller asked for, or use another method",
        )
    return _conditioned_positions(
        robot, logs, runs, conditioning, [recording.log[Channel.COMMANDED_POSITION] for recording in logs]
    )


def _conditioned_positions(
    robot: Robot,
    logs: Sequence[Recording],
    runs: Sequence[Run],
    conditioning: Conditioning,
    positions: Sequence[FloatArray],
) -> dict[str, FloatArray]:
    """Other positions at the samples of every recording, conditioned like the measured ones.

    Raises:
        InputError: they do not cover the motion.
    """
    settings = replace(conditioning, velocity=VelocitySource.POSITION)
    parts = []
    for log, position in zip((recording.log for recording in logs), positions, strict=True):
        channels = dict(log.channels) | {Channel.POSITION: position}
        parts.append(condition(replace(log, channels=channels), robot, settings))
    whole = concatenated(parts)
    out, start = {}, 0
    for run in runs:
        out[run.name] = np.asarray(whole.inputs()[start : start + len(run)])
        start += len(run)
    if start != len(whole) or any(len(out[run.name]) != len(run) for run in runs):
        raise InputError(
            "--method iv", f"{len(whole)} commanded samples for {start} measured ones", "record both without holes"
        )
    return out


def _motion_noise_of(robot: Robot, logs: Sequence[Recording], conditioning: Conditioning) -> FloatArray:
    """Noise of conditioned (q, qd, qdd) from the white noise of the recorded position, shape [3 n_joints].

    White noise of deviation s at rate f has density 2 s^2 / f; what passes a low-pass at f_c after k derivatives is its
    integral times (2 pi f)^2k.

    Raises:
        InputError: no noise can be told from the logs.
    """
    noise = np.zeros(robot.n_joints)
    rate = np.inf
    for log in logs:
        found = next(log.samples(conditioning)).noise.get(Channel.POSITION)
        if found is not None:
            noise = np.maximum(noise, found)
            rate = min(rate, (len(log) - 1) / log.duration)
    cutoff = conditioning.cutoff or np.inf
    if not np.isfinite(rate) or not np.any(noise > 0.0):
        raise InputError(
            "--method tls", "the noise of the positions cannot be told", "record longer, or use another method"
        )
    edge = min(cutoff, rate / 2.0)
    w = 2.0 * np.pi
    shares = [w ** (2 * k) * edge ** (2 * k + 1) / (2 * k + 1) for k in range(3)]
    return np.concatenate([noise * np.sqrt(2.0 / rate * share) for share in shares])
