"""Methods that know the controller: from recordings and gains to an unconstrained estimate, and instruments of the real loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.closed_loop.bodies import fitting_bodies, nearest_bodies
from armid.closed_loop.command import loop_motion
from armid.closed_loop.controller import JointController
from armid.closed_loop.fit import LoopFit, LoopMethod, LoopRecord, fit_loop
from armid.closed_loop.loop import LoopDivergedError
from armid.closed_loop.plant import LoopPlant
from armid.consistency.prior import Prior
from armid.errors import InputError
from armid.estimation.estimate import Estimate
from armid.estimation.fit_record import FitRecord, LoopBasis
from armid.identifiability.base import BaseParameters
from armid.information.information import Information
from armid.information.solve import reduced
from armid.information.status import EstimationError, Status
from armid.logs.log import Channel
from armid.logs.recording import Recording
from armid.notes import Note, Severity
from armid.robot.robot import Robot
from armid.rows.torque import TorqueRows

_EVEN = 0.5
"""A step of the clock that differs from the others by this share of them is a gap: the loop runs on through it."""
_EXPLAINED = 0.5
"""Share of the torque that proportional and derivative action must explain before their gains are refined together with the
bodies; another law (cascades of another kind, computed torque) explains next to nothing."""
_AVERAGED = 11
"""Samples over which error and torque are averaged before gains are read off them: differences of noisy positions are noise."""
_LOOSE = 0.2
"""Relative deviation of an estimated gain above which the log does not determine it."""
_WORDS = {
    LoopMethod.DIDIM: "torque of the simulated closed loop (DIDIM)",
    LoopMethod.CLOE: "position of the simulated closed loop (output error)",
    LoopMethod.ML: "maximum likelihood of position and torque in the simulated closed loop",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class RawMotion:
    """A recording as the controller lived it: nothing filtered.

    Args:
        name: of the recording.
        rate: [Hz].
        command, position, torque: shape [samples, n].
    """

    name: str
    rate: float
    command: FloatArray
    position: FloatArray
    torque: FloatArray


def raw_motions(logs: Sequence[Recording], channel: Channel, method: str) -> tuple[RawMotion, ...]:
    """Command, position and torque of every recording.

    Raises:
        InputError: a recording without a command, with gaps, or whose torque is a current of unknown gain.
    """
    if channel is Channel.CURRENT:
        raise InputError(
            f"--method {method}", "the recordings hold currents", "their gains are not estimated with a loop"
        )
    return tuple(_raw_motion(recording, channel, method) for recording in logs)


def _raw_motion(recording: Recording, channel: Channel, method: str) -> RawMotion:
    log = recording.log
    for needed in (Channel.COMMANDED_POSITION, Channel.POSITION, channel):
        if needed not in log:
            raise InputError(
                log.name,
                f"no channel {needed}; --method {method} simulates the loop along the commanded positions",
                "record what the controller asked for, or use another method",
            )
    steps = np.diff(log.time)
    usual = float(np.median(steps))
    odd = np.flatnonzero(np.abs(steps - usual) > _EVEN * usual)
    values = [np.asarray(log[c], dtype=np.float64) for c in (Channel.COMMANDED_POSITION, Channel.POSITION, channel)]
    broken = np.flatnonzero(~np.all(np.isfinite(np.hstack(values)), axis=1))
    for where, what in ((odd, "the clock jumps"), (broken, "values are missing")):
        if len(where):
            raise InputError(
                log.name,
                f"{what} at {log.time[where[0]]:.3f} s",
                f"--method {method} simulates without gaps: cut the log there",
            )
    command, position, torque = (np.ascontiguousarray(value) for value in values)
    rate = (len(log.time) - 1) / float(log.time[-1] - log.time[0])
    return RawMotion(name=log.name, rate=rate, command=command, position=position, torque=torque)


def loop_estimate(
    source: TorqueRows,
    motions: Sequence[RawMotion],
    controller: JointController,
    method: LoopMethod,
    first: Estimate,
    information: Information,
    prior: Prior,
    *,
    seed: int = 0,
) -> Estimate:
    """The estimate whose simulated loop comes nearest to the recordings.

    Args:
        source: rows of the arm.
        motions: recordings.
        controller: their loop.
        method: what is compared.
        first: to start from; its base is estimated.
        information: its rows.
        prior: bodies that decide what the data leave open.
        seed: of simulated noise.

    Raises:
        EstimationError: the loop cannot be simulated, or its gains cannot be told.
        InputError: a base that the motion only partly determines.
    """
    base = first.base
    plant = LoopPlant(source, base)
    law = controller if controller.known else _read_gains(motions, controller, source.robot.joint_names)
    rows = reduced(information, base).weighted({name: 1.0 / s for name, s in first.sigma.items()}).stacked()
    bodies = fitting_bodies(base, prior)
    start = bodies(rows[:-1, :-1], rows[:-1, -1])
    records = [
        LoopRecord(loop_motion(plant, law, m.command, start, log_rate=m.rate, where=m.name), m.position, m.torque)
        for m in motions
    ]
    try:
        fit = fit_loop(records, start, method, bodies, seed=seed)
    except LoopDivergedError as problem:
        raise EstimationError(
            Status.NOT_CONVERGED, f"{problem}; check gains, rate and delay of the controller file"
        ) from None
    return _estimate(fit, first, source.robot, controller, method)


def _estimate(fit: LoopFit, first: Estimate, robot: Robot, controller: JointController, method: LoopMethod) -> Estimate:
    notes = list(_gain_notes(fit, robot, controller))
    if not fit.converged:
        notes.append(Note("not-converged", Severity.WARNING, f"closed loop: {fit.why}"))
    return Estimate(
        base=first.base,
        units=first.units,
        values=fit.values,
        covariance=fit.covariance,
        covariance_kind="closed loop",
        sigma=dict(zip(robot.joint_names, fit.torque_deviation.tolist(), strict=True)),
        method=_WORDS[method],
        status=Status.SOLVED if fit.converged else Status.NOT_CONVERGED,
        iterations=fit.iterations,
        notes=tuple(notes),
        provenance=FitRecord(loop=_basis(first, fit)),
    )


def _basis(first: Estimate, fit: LoopFit) -> LoopBasis:
    """What the simulated loop rests on."""
    return LoopBasis(
        start=first.method,
        noise_fed_back=all(w.fed_back for w in fit.weightings),
        position_noise=tuple(np.max([w.position_noise for w in fit.weightings], axis=0).tolist()),
        gains=tuple(tuple(row) for row in fit.gains.tolist()),
        gain_deviations=tuple(tuple(row) for row in fit.gain_deviations.tolist()),
    )


def _gain_notes(fit: LoopFit, robot: Robot, controller: JointController) -> list[Note]:
    """What was found of gains that nobody gave."""
    if controller.known:
        return []
    out = []
    for j, name in enumerate(robot.joint_names):
        text = ", ".join(
            f"{word} = {fit.gains[k, j]:.5g} +- {1.96 * fit.gain_deviations[k, j]:.2g}"
            for k, word in enumerate(("kp", "kd"))
        )
        loose = np.any(fit.gain_deviations[:2, j] > _LOOSE * np.abs(fit.gains[:2, j]))
        severity = Severity.WARNING if loose else Severity.INFO
        out.append(
            Note("gains-estimated", severity, f"{text}{'; this log hardly determines them' if loose else ''}", name)
        )
    return out


def _read_gains(motions: Sequence[RawMotion], controller: JointController, joints: Sequence[str]) -> JointController:
    """Proportional and derivative gains read off error and torque, to start from.

    Raises:
        EstimationError: the torque is not that of such a law.
    """
    gains = np.zeros((3, len(joints)))
    window = np.ones(_AVERAGED) / _AVERAGED
    for j, name in enumerate(joints):
        rows, torque = [], []
        for m in motions:
            error = m.command[:, j] - m.position[:, j]
            columns = [error, np.gradient(error) * m.rate, m.torque[:, j]]
            smooth = [np.convolve(column, window, mode="valid") for column in columns]
            rows.append(np.column_stack(smooth[:2]))
            torque.append(smooth[2])
        A, y = np.vstack(rows), np.concatenate(torque)
        found = np.linalg.lstsq(A, y, rcond=None)[0]
        unexplained = float(np.sum((y - A @ found) ** 2) / np.sum((y - y.mean()) ** 2))
        if unexplained > 1.0 - _EXPLAINED or not np.all(found > 0.0):
            raise EstimationError(
                Status.NOT_CONVERGED,
                f"proportional and derivative action explain {100.0 * (1.0 - unexplained):.0f} % of the torque of {name}:"
                " the gains of this controller cannot be told from this log; give them, or use --method wls",
            )
        gains[:2, j] = found
    return controller.with_torque_gains(gains)


def simulated_positions(
    source: TorqueRows, base: BaseParameters, motions: Sequence[RawMotion], controller: JointController, prior: Prior
) -> Callable[[FloatArray], list[FloatArray]]:
    """From base values to the positions of every recording as the real loop would have made them without noise."""
    plant = LoopPlant(source, base)
    nearest = nearest_bodies(base, prior)

    def positions(values: FloatArray) -> list[FloatArray]:
        possible = base.values(nearest(values))
        out = []
        for m in motions:
            motion = loop_motion(plant, controller, m.command, possible, log_rate=m.rate, where=m.name)
            begin = replace(motion.at_rest(), position=m.position[0].copy())
            try:
                out.append(motion.simulate(possible, start=begin).position)
            except LoopDivergedError as problem:
                raise EstimationError(Status.NOT_CONVERGED, str(problem)) from None
        return out

    return positions
