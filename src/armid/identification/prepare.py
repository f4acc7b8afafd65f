"""Recordings to runs: conditioning, velocity, friction and drive gains, all settled on the training motion alone.

Choices between models are made on a bounded part of the training motion (`choice_samples`), held in memory; estimates rest on
all of it, however long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from armid.arrays import FloatArray
from armid.cluster.workers import Workers
from armid.errors import InputError
from armid.estimation.determined import described_structure, noise_left, structure_of, usable_base
from armid.estimation.run import Run, information_of
from armid.estimation.run_maker import RunMaker, choice_runs, choice_samples, in_torque, resolved_for
from armid.estimation.runs import map_runs
from armid.identifiability.base import BaseParameters
from armid.identification.data import Data
from armid.identification.gains import DriveGains, DriveGainSearch
from armid.identification.moving import made_to_learn
from armid.identification.settings import Identification
from armid.identification.temperature import run_temperatures
from armid.identification.turning import turning_notes, turning_of
from armid.logs.conditioning import Conditioning, VelocitySource
from armid.logs.log import Channel
from armid.logs.recording import Recording
from armid.logs.samples import Samples
from armid.notes import Note, Severity
from armid.parameters.effects import Effects, PayloadRuns
from armid.parameters.inertial import transformed
from armid.robot.robot import Robot
from armid.rows.friction import Shapes


def payload_effects(effects: Effects, recordings: Sequence[Recording]) -> Effects:
    """Effects with `payload both` when the logs say that only some runs carried one and nothing else was asked for."""
    loaded = {bool(recording.conditions.loaded) for recording in recordings}
    if effects.payload is PayloadRuns.NONE and loaded == {True, False}:
        return replace(effects, payload=PayloadRuns.BOTH)
    if effects.payload is PayloadRuns.BOTH and loaded != {True, False}:
        said = "every recording says it carried a payload" if loaded == {True} else "no recording says it carried one"
        raise InputError(
            "--payload both", said, "say which did in a mapping: conditions: {payload: 1.5}, or 0 for none"
        )
    empty = next((r.name for r in recordings if r.conditions.payload == 0.0), None)
    if effects.payload is PayloadRuns.LOADED and empty is not None:
        raise InputError("--payload loaded", f"{empty} says it carried nothing", "use --payload both")
    return effects


def prepared(
    robot: Robot,
    train: Sequence[Recording],
    held_out: Sequence[Recording],
    settings: Identification,
    workers: Workers | None = None,
) -> Data:
    """Conditioned runs; open choices are settled on the training logs alone."""
    if not train:
        raise InputError("logs", "there are none", "give at least one recording")
    choice, resolved, structural, notes = _chosen_velocity(robot, train, settings, workers)
    shapes = turning_of(robot, train, choice, resolved, settings, structural, workers=workers)
    maker = RunMaker(robot=robot, effects=settings.effects, shapes=shapes, conditioning=resolved)
    made = made_to_learn(maker, (train, held_out), workers)
    runs = made.runs
    # How the cut-off was chosen is known where that was done.
    notes = (*longest(train).conditioning_notes(resolved), *made.notes, *notes, *turning_notes(robot, shapes))
    return Data(
        train=runs[0],
        held_out=runs[1],
        workers=workers,
        conditioning=resolved,
        choice=choice,
        shapes=shapes,
        structural=structural,
        intended=described_structure(runs[0], settings.described),
        recordings=(tuple(train), tuple(held_out)),
        notes=tuple(dict.fromkeys(notes)),
        temperatures=_temperatures_of(held_out, robot, resolved),
    )


def _chosen_velocity(
    robot: Robot, train: Sequence[Recording], settings: Identification, workers: Workers | None
) -> tuple[tuple[Samples, ...], Conditioning, BaseParameters, tuple[Note, ...]]:
    """Samples for choices, with the velocity that explains the training torque better, and the structure of their rows."""
    sources = [VelocitySource.POSITION] if settings.velocity is None else [settings.velocity]
    if settings.velocity is None and all(Channel.VELOCITY in recording for recording in train):
        sources.append(VelocitySource.MEASURED)
    options = []
    for source in sources:
        try:
            resolved = _common_settings(train, replace(settings.conditioning, velocity=source))
            options.append((choice_samples(train, resolved, workers), resolved))
        except InputError:
            # A recorded velocity full of holes cannot be used; the derived one always can, or the log is refused for good.
            if source is sources[0]:
                raise
    structural = structure_of(choice_runs(robot, options[0][0], settings.effects, Shapes()))
    scores = [0.0]
    if len(options) > 1:
        scores = [
            _misfit(choice_runs(robot, samples, settings.effects, Shapes()), structural, settings.described)
            for samples, _ in options
        ]
    samples, resolved = options[int(np.argmin(scores))]
    if len(options) == 1:
        return samples, resolved, structural, ()
    how = "as recorded" if resolved.velocity is VelocitySource.MEASURED else "from position"
    text = f"velocity taken {how}: it explains the training torque better"
    return samples, resolved, structural, (Note("velocity-source", Severity.INFO, text),)


def _common_settings(recordings: Sequence[Recording], settings: Conditioning) -> Conditioning:
    """Conditioning of all training logs, with the choices made on the longest of them."""
    return longest(recordings).resolved(settings)


def longest(recordings: Sequence[Recording]) -> Recording:
    """Whose spectrum cut-offs are chosen on."""
    return max(recordings, key=len)


def _temperatures_of(
    recordings: Sequence[Recording], robot: Robot, settings: Conditioning
) -> tuple[FloatArray | None, ...]:
    """Drive temperatures along the runs of recordings; none unless all are held in memory and some recorded it."""
    if any(recording.streamed for recording in recordings) or not any(Channel.TEMPERATURE in r for r in recordings):
        return ()
    return tuple(
        values
        for recording in recordings
        for values in run_temperatures(recording.log, robot, recording.condition(resolved_for(recording, settings)))
    )


def _misfit(runs: Sequence[Run], structural: BaseParameters, described: Robot | None) -> float:
    """Sum over channels of the logarithm of the residual noise, for comparing choices on the same torque."""
    return float(np.sum(np.log(np.maximum(_residual_noise(runs, structural, described), 1e-12))))


def _residual_noise(runs: Sequence[Run], structural: BaseParameters, described: Robot | None) -> FloatArray:
    """Standard deviation of the residuals of the free fit per channel."""
    return noise_left(information_of(runs), structural, described_structure(runs, described))


def drive_gains(robot: Robot, data: Data) -> DriveGains:
    """Gains of all joints from runs with and without a weighed payload.

    Raises:
        InputError: no such pair among the logs.
    """
    loads = {segment.conditions.payload or 0.0 for segment in data.segments}
    if len(loads) != 2 or 0.0 not in loads:
        raise InputError(
            "logs",
            f"currents with payloads {sorted(loads)} kg",
            "torque needs drive gains: give runs with and without a weighed payload (--payload both), or a gain in the mapping",
        )
    mass = max(loads)
    if "payload.mass" not in data.train[0].source.columns:
        raise InputError("payload", "some runs carried one", "use --payload both")
    known = {"payload.mass": mass}
    centre = next((s.conditions.payload_centre for s in data.segments if s.conditions.payload), None)
    if centre is not None:
        # Given in the flange frame; parameters live in the last link's frame.
        point = np.array([mass, *(mass * np.asarray(centre)), *np.zeros(6)])
        h = transformed(point, robot.tip.T_link_frame)[1:4]
        known |= {f"payload.m{axis}": float(value) for axis, value in zip("xyz", h, strict=True)}
    information = information_of(data.train)
    base, _ = usable_base(data.train, information, data.structural, data.intended)
    return DriveGainSearch().fit(information, base, known)


def in_torque_units(data: Data, gains: DriveGains) -> Data:
    """Currents times gains."""
    train, held_out = (map_runs(runs, partial(in_torque, gains=gains.values)) for runs in (data.train, data.held_out))
    return replace(data, train=train, held_out=held_out)
