"""`armid.identify_payload`: an identified arm and recordings with a load in, the load out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.estimation.recording import runs_of
from armid.estimation.run import Run
from armid.identification.faults import listed_faults
from armid.identification.gate import fault_checks
from armid.identification.inputs import LogsInput, Recordings, files_of, result_of
from armid.identification.result import Result
from armid.identification.stamped_clock import clock_of_logs
from armid.logs.conditioning import Conditioning, condition
from armid.logs.log import MEASURED_TORQUES, Channel, Log, matched
from armid.logs.samples import MOTOR_SIDE
from armid.outcome import Provenance
from armid.parameters.effects import PayloadRuns, TorqueSide
from armid.parameters.inertial import from_centre_of_mass, tensor
from armid.payload.checks import arm_check, clock_check
from armid.payload.faults import load_faults
from armid.payload.online import OnlinePayload
from armid.payload.payload import Payload
from armid.payload.search import Arm, PayloadSearch
from armid.payload.static import Rest, poses_at_rest, static_payload
from armid.signals.causal import CausalDifferentiator, LocalPolynomial
from armid.threads import one_blas_thread

_SMOOTHING = 0.05
"""[s] Half window of the differentiator, sample by sample."""


@one_blas_thread
def identify_payload(
    result: str | Path | Result,
    logs: LogsInput,
    *,
    static: bool = False,
    online: bool = False,
    frame: str | None = None,
    subtract: str | Sequence[float] | None = None,
    offsets: bool = False,
    data_root: str | Path | None = None,
) -> Payload:
    """Mass, centre of mass and inertia of what an identified arm carries.

    Args:
        result: the arm as it was identified without the load, or its folder.
        logs: recordings with the load (paths or logs); all carried the same.
        static: use the poses at rest only: mass and centre of mass.
        online: sample by sample, derivatives from the past only, as on a live stream.
        frame: the load is given in; the tip frame by default.
        subtract: a known body in that frame, as mass [kg] and centre [m] (4 numbers or `M,X,Y,Z`), or with the six inertias
            about its centre [kg m^2] (10 numbers: Ixx, Ixy, Ixz, Iyy, Iyz, Izz).
        offsets: let the drives' offsets differ from the result's (temperature, another day).
        data_root: where mapping files find recordings.

    Raises:
        InputError: options that contradict each other, recordings of the wrong kind, torque out of step with position.
    """
    if static and online:
        raise InputError("static", "given with online", "one of them")
    body = None if subtract is None else known_body(subtract)
    known = result_of(result)
    if known.effects.shapes and (static or online or known.effects.load):
        words = ", ".join(known.effects.shapes)
        raise InputError("result", f"friction with {words}", "for this, identify the arm with viscous,coulomb,offset")
    read = Recordings(data_root=data_root).read(logs, known.robot)
    arm = identified_arm(known)
    if static:
        found = _at_rest(arm, known, read, frame)
    elif online:
        found = _streamed(arm, known, read, frame)
    else:
        runs = loaded_runs(known, read)
        found = PayloadSearch(offsets=offsets).fit(arm, runs, frame=frame)
        faults = load_faults(known, runs, in_newtons=not known.gains)
        found = replace(found, faults=listed_faults(faults), checks=(*found.checks, *fault_checks(faults)))
    if body is not None:
        found = found.without(body)
    way = "static" if static else "online" if online else "moving"
    settings = {"way": way, "offsets": offsets, "subtract": None if body is None else body.tolist()}
    provenance = Provenance(inputs=files_of(known.robot, read, role="loaded"), settings=settings)
    checks = (arm_check(known.reasons), *found.checks)
    if not static:
        ordered = [matched(log, known.robot) for log in read]
        checks = (*checks, clock_check(clock_of_logs(known.robot, ordered, known.imperfections)))
    return replace(found, checks=checks, provenance=provenance)


def identified_arm(known: Result) -> Arm:
    """What a result knows of the arm alone."""
    # The joint that feels the load best sets the scale of all.
    scale = min((abs(deviation / gain) for gain, deviation in known.gains.values()), default=0.0)
    return Arm(robot=known.robot, estimate=known.estimate, scale_deviation=scale)


def loaded_runs(known: Result, logs: Sequence[Log]) -> list[Run]:
    """The recordings as runs with the load among the parameters, conditioned as the result's were."""
    stored = known.conditioning
    settings = Conditioning(torque_delay=stored.torque_delay_s)
    if stored.cutoff_hz:
        settings = replace(settings, cutoff=stored.cutoff_hz, order=stored.filter_order)
    effects = replace(known.effects, payload=PayloadRuns.LOADED)
    runs: list[Run] = []
    for log in logs:
        samples = condition(log, known.robot, settings)
        gain = _gains_of(known, log, samples.channel(effects.torques))
        own = [run.with_measured(run.y * gain) for run in runs_of(samples, known.robot, effects, shapes=known.shapes)]
        runs += own if known.imperfections is None else [known.imperfections.corrected(run) for run in own]
    return runs


def known_body(numbers: str | npt.ArrayLike) -> FloatArray:
    """Ten parameters from mass, centre and optionally the inertia about the centre.

    Raises:
        InputError: neither four nor ten numbers.
    """
    try:
        parts = numbers.split(",") if isinstance(numbers, str) else np.asarray(numbers).ravel().tolist()
        values = [float(part) for part in parts]
    except (TypeError, ValueError):
        values = []
    if len(values) not in (4, 10):
        raise InputError("known body", repr(numbers), "mass and centre (4 numbers), or with six inertias (10)")
    inertia = tensor(values[4:]) if len(values) == 10 else np.zeros((3, 3))
    return from_centre_of_mass(values[0], values[1:4], inertia)


def _gains_of(known: Result, log: Log, channel: Channel) -> FloatArray:
    """Torque per unit of the channel, shape [n]: the identified drive gains for currents, one for torques."""
    if channel is not Channel.CURRENT:
        return np.ones(known.robot.n_joints)
    if not known.gains:
        raise InputError(
            log.name,
            "motor currents, but the result has no drive gains",
            "identify with runs with and without a known payload",
        )
    return np.array([known.gains[name][0] for name in known.robot.joint_names])


def _single_torque(known: Result, log: Log) -> Channel:
    """The torque of the side the arm was identified from.

    Raises:
        InputError: none, or a result of both sides.
    """
    side = known.effects.torques
    if side not in (TorqueSide.LINK, TorqueSide.MOTOR):
        raise InputError("result", f"identified from {side.value} torques", "at rest and on-line take one side's")
    order = MEASURED_TORQUES if side is TorqueSide.LINK else (*MOTOR_SIDE, Channel.LINK_TORQUE)
    found = [channel for channel in order if channel in log]
    if not found:
        names = ", ".join(c.value for c in log.channels)
        raise InputError(log.name, f"no torque among {names}", "record joint torque, motor torque or current")
    return found[0]


def _at_rest(arm: Arm, known: Result, logs: Sequence[Log], frame: str | None) -> Payload:
    """From the stretches in which every joint stands still."""
    found = []
    for log in logs:
        ordered = matched(log, known.robot)
        channel = _single_torque(known, ordered)
        gain = _gains_of(known, log, channel)
        rest = poses_at_rest(ordered, channel)
        found.append(Rest(rest.q, rest.torque * gain))
    together = Rest(np.vstack([r.q for r in found]), np.vstack([r.torque for r in found]))
    return static_payload(arm, known.effects, together, frame=frame)


def _streamed(arm: Arm, known: Result, logs: Sequence[Log], frame: str | None) -> Payload:
    """The recursive estimator over the samples one by one, derivatives from past samples only."""
    log = matched(logs[0], known.robot)
    rate = 1.0 / float(np.median(np.diff(log.time)))
    polynomial = LocalPolynomial(rate, half_window=max(3, round(_SMOOTHING * rate)))
    n = known.robot.n_joints
    estimator = OnlinePayload(arm, known.effects, rate=rate, frame=frame)
    for one in logs:
        ordered = matched(one, known.robot)
        channel = _single_torque(known, ordered)
        torque = ordered[channel] * _gains_of(known, one, channel)
        differentiator = CausalDifferentiator(polynomial, n, n)
        for q, tau in zip(ordered[Channel.POSITION], torque, strict=True):
            state = differentiator.push(q, tau)
            if state is not None:
                estimator.update(*state, differentiator.one_way)
    return estimator.payload()
