"""Logs to runs: conditioning, velocity, friction and drive gains, all settled on the training motion alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from armid.arrays import FloatArray
from armid.errors import InputError
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.recording import runs_of
from armid.estimation.run import Run, information_of
from armid.identification.fit import usable_base
from armid.identification.gains import DriveGains, DriveGainSearch
from armid.identification.settings import Identification
from armid.identification.temperature import run_temperatures
from armid.logs.conditioning import Conditioning, VelocitySource, condition
from armid.logs.log import Channel, Log
from armid.logs.samples import Samples, concatenated
from armid.notes import Note, Severity
from armid.parameters.effects import Effects, PayloadRuns
from armid.parameters.inertial import transformed
from armid.robot.robot import Robot
from armid.rows.friction import Shapes
from armid.rows.presliding import CANDIDATES, chosen_distances


@dataclass(frozen=True, eq=False, kw_only=True)
class Data:
    """Training and held-out runs under one conditioning."""

    train: tuple[Run, ...]
    held_out: tuple[Run, ...]
    conditioning: Conditioning
    samples: Samples
    shapes: Shapes
    notes: tuple[Note, ...]
    temperatures: tuple[FloatArray | None, ...] = ()
    held_samples: tuple[Samples, ...] = ()

    @property
    def presliding(self) -> tuple[float, ...]:
        """Distance over which Coulomb friction turns around, per joint [rad or m]."""
        return self.shapes.presliding


def payload_effects(effects: Effects, logs: Sequence[Log]) -> Effects:
    """Effects with `payload both` when the logs say that only some runs carried one and nothing else was asked for."""
    loaded = {bool(log.conditions.loaded) for log in logs}
    if effects.payload is PayloadRuns.NONE and loaded == {True, False}:
        return replace(effects, payload=PayloadRuns.BOTH)
    if effects.payload is PayloadRuns.BOTH and loaded != {True, False}:
        said = "every recording says it carried a payload" if loaded == {True} else "no recording says it carried one"
        raise InputError(
            "--payload both", said, "say which did in a mapping: conditions: {payload: 1.5}, or 0 for none"
        )
    empty = next((log.name for log in logs if log.conditions.payload == 0.0), None)
    if effects.payload is PayloadRuns.LOADED and empty is not None:
        raise InputError("--payload loaded", f"{empty} says it carried nothing", "use --payload both")
    return effects


def prepared(robot: Robot, train: Sequence[Log], held_out: Sequence[Log], settings: Identification) -> Data:
    """Conditioned runs; open choices are settled on the training logs alone."""
    if not train:
        raise InputError("logs", "there are none", "give at least one recording")
    sources = [VelocitySource.POSITION] if settings.velocity is None else [settings.velocity]
    if settings.velocity is None and all(Channel.VELOCITY in log for log in train):
        sources.append(VelocitySource.MEASURED)
    options = []
    for source in sources:
        try:
            options.append(conditioned(robot, train, replace(settings.conditioning, velocity=source)))
        except InputError:
            # A recorded velocity full of holes cannot be used; the derived one always can, or the log is refused for good.
            if source is sources[0]:
                raise
    scores = [misfit(robot, samples, settings.effects) for samples, _ in options] if len(options) > 1 else [0.0]
    samples, resolved = options[int(np.argmin(scores))]
    notes = list(samples.notes)
    if len(options) > 1:
        how = "as recorded" if resolved.velocity is VelocitySource.MEASURED else "from position"
        text = f"velocity taken {how}: it explains the training torque better"
        notes.append(Note("velocity-source", Severity.INFO, text))
    distances = presliding_of(robot, samples, settings)
    if any(distances):
        shown = ", ".join(f"{name} {1e3 * d:g}" for name, d in zip(samples.joints, distances, strict=True) if d)
        notes.append(
            Note("presliding", Severity.INFO, f"Coulomb friction turns around over a distance [mrad or mm]: {shown}")
        )
    held = [condition(log, robot, resolved) for log in held_out]
    train_runs, *held_runs = (runs_of(part, robot, settings.effects, presliding=distances) for part in (samples, *held))
    temperatures = [run_temperatures(log, robot, part) for log, part in zip(held_out, held, strict=True)]
    return Data(
        train=train_runs,
        held_out=tuple(run for runs in held_runs for run in runs),
        conditioning=resolved,
        samples=samples,
        shapes=Shapes(distances),
        notes=tuple(notes),
        temperatures=tuple(t for parts in temperatures for t in parts),
        held_samples=tuple(held),
    )


def presliding_of(robot: Robot, samples: Samples, settings: Identification) -> tuple[float, ...]:
    """Presliding distance per joint, zero where it does not pay."""
    n = robot.n_joints
    if not (settings.effects.coulomb and settings.presliding):
        return (0.0,) * n
    sigma = np.array([residual_noise(robot, samples, settings.effects, (d,) * n) for d in (0.0, *CANDIDATES)])
    # With both sides measured every joint has two channels; their geometric mean decides.
    sigma = np.exp(np.log(np.maximum(sigma, 1e-12)).reshape(len(sigma), -1, n).mean(axis=1))
    return tuple(float(d) for d in chosen_distances(sigma))


def conditioned(robot: Robot, logs: Sequence[Log], settings: Conditioning) -> tuple[Samples, Conditioning]:
    """All training logs under the choices made on the longest of them."""
    longest = max(logs, key=len)
    first = condition(longest, robot, settings)
    assert first.settings is not None
    parts = [first if log is longest else condition(log, robot, first.settings) for log in logs]
    return concatenated(parts), first.settings


def misfit(robot: Robot, samples: Samples, effects: Effects) -> float:
    """Sum over channels of the logarithm of the residual noise, for comparing choices on the same torque."""
    return float(np.sum(np.log(np.maximum(residual_noise(robot, samples, effects, None), 1e-12))))


def residual_noise(
    robot: Robot, samples: Samples, effects: Effects, presliding: tuple[float, ...] | None
) -> FloatArray:
    """Standard deviation of the residuals of the free fit per channel."""
    runs = runs_of(samples, robot, effects, presliding=presliding)
    information = information_of(runs)
    base, _ = usable_base(runs, information)
    return np.array(list(WeightedLeastSquares().fit(information, base).sigma.values()))


def drive_gains(robot: Robot, data: Data) -> DriveGains:
    """Gains of all joints from runs with and without a weighed payload.

    Raises:
        InputError: no such pair among the logs.
    """
    loads = {segment.conditions.payload or 0.0 for segment in data.samples.segments}
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
    centre = next((s.conditions.payload_centre for s in data.samples.segments if s.conditions.payload), None)
    if centre is not None:
        # Given in the flange frame; parameters live in the last link's frame.
        point = np.array([mass, *(mass * np.asarray(centre)), *np.zeros(6)])
        h = transformed(point, robot.tip.T_link_frame)[1:4]
        known |= {f"payload.m{axis}": float(value) for axis, value in zip("xyz", h, strict=True)}
    information = information_of(data.train)
    base, _ = usable_base(data.train, information)
    return DriveGainSearch().fit(information, base, known)


def in_torque_units(data: Data, gains: DriveGains) -> Data:
    """Currents times gains."""
    return replace(data, train=scaled_runs(data.train, gains), held_out=scaled_runs(data.held_out, gains))


def scaled_runs(runs: Sequence[Run], gains: DriveGains) -> tuple[Run, ...]:
    """Runs whose measured currents are multiplied by the gains."""
    k = gains.values
    return tuple(replace(run, y=run.y * k, y_raw=None if run.y_raw is None else run.y_raw * k) for run in runs)


def conditioning_of(data: Data) -> dict[str, Any]:
    """The choices beside which every error must be read."""
    c = data.conditioning
    return {
        "cutoff_hz": c.cutoff,
        "torque_cutoff_hz": c.torque_cutoff,
        "filter_order": c.order,
        "torque_delay_s": c.torque_delay,
        "rate_hz": data.samples.rate,
        "velocity": c.velocity.value,
        "differentiator": c.differentiator.value,
        "torque": [channel.value for channel in data.samples.torques],
        "presliding": list(data.presliding),
        "samples_train": sum(len(run) for run in data.train),
        "samples_held_out": sum(len(run) for run in data.held_out),
    }
