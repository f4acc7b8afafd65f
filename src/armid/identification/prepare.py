"""Recordings to runs: conditioning, velocity, friction and drive gains, all settled on the training motion alone.

Choices between models are made on a bounded part of the training motion (`choice_samples`), held in memory; estimates rest on
all of it, however long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from armid.arrays import FloatArray
from armid.cluster.workers import Workers
from armid.errors import InputError
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.recording import runs_of
from armid.estimation.run import Run, information_of
from armid.estimation.runs import lengths_of, map_runs
from armid.identifiability.base import BaseParameters
from armid.identification.conditioned import RunMaker, choice_samples, choice_sum, in_torque, resolved_for
from armid.identification.fit import described_structure, structure_of, usable_base
from armid.identification.gains import DriveGains, DriveGainSearch
from armid.identification.records import ResolvedConditioning
from armid.identification.sensors import Imperfections, corrected_runs
from armid.identification.settings import Identification
from armid.identification.temperature import run_temperatures
from armid.information.information import Information, added
from armid.logs.conditioning import Conditioning, VelocitySource
from armid.logs.log import Channel
from armid.logs.recording import Recording
from armid.logs.samples import Samples, Segment
from armid.notes import Note, Severity
from armid.parameters.effects import Effects, PayloadRuns
from armid.parameters.inertial import transformed
from armid.robot.robot import Robot
from armid.rows.friction import Shapes
from armid.rows.presliding import CANDIDATES, DISTANCE_WORTHWHILE, WIDTH_WORTHWHILE, WIDTHS, chosen_options


@dataclass(frozen=True, eq=False, kw_only=True)
class Data:
    """Training and held-out runs under one conditioning.

    Args:
        train, held_out: runs; in memory, or put aside.
        conditioning: resolved.
        choice: training motion in memory on which models are chosen: all of it, or a bounded part.
        shapes: of friction, as settled.
        structural: base parameters that a perfect motion would determine, of these rows; None until they are known.
        intended: the same for the arm as described, when that is another one.
        recordings: of the runs, training and held-out.
        temperatures: of the drives along the held-out runs.
        notes: of logs and choices.
        imperfections: that the runs were freed from; None for none.
        workers: who keep the runs; None when they are here.
    """

    train: Sequence[Run]
    held_out: Sequence[Run]
    conditioning: Conditioning
    choice: tuple[Samples, ...]
    shapes: Shapes
    structural: BaseParameters
    intended: BaseParameters | None
    recordings: tuple[tuple[Recording, ...], tuple[Recording, ...]]
    notes: tuple[Note, ...]
    temperatures: tuple[FloatArray | None, ...] = ()
    imperfections: Imperfections | None = None
    workers: Workers | None = None

    @property
    def presliding(self) -> tuple[float, ...]:
        """Distance over which Coulomb friction turns around, per joint [rad or m]."""
        return self.shapes.presliding

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Of the training motion that choices rest on; every recording has some."""
        return tuple(segment for samples in self.choice for segment in samples.segments)

    def record(self) -> ResolvedConditioning:
        """The choices beside which every error must be read."""
        c = self.conditioning
        first = self.choice[0]
        return ResolvedConditioning(
            cutoff_hz=_finite_or_none(c.cutoff),
            torque_cutoff_hz=_finite_or_none(c.torque_cutoff),
            filter_order=c.order,
            filter=c.filter.value,
            averaged=c.average or c.period is not None,
            torque_delay_s=c.torque_delay,
            rate_hz=first.rate,
            velocity=c.velocity.value,
            differentiator=c.differentiator.value,
            torque=tuple(channel.value for channel in first.torques),
            presliding=self.presliding,
            friction_width=self.shapes.widths,
            samples_train=sum(lengths_of(self.train)),
            samples_held_out=sum(lengths_of(self.held_out)),
        )


def _finite_or_none(value: float | None) -> float | None:
    """None for what is not there or infinite."""
    return None if value is None or not np.isfinite(value) else value


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
    shapes = _turning_of(robot, train, choice, resolved, settings, structural, workers=workers)
    maker = RunMaker(robot=robot, effects=settings.effects, shapes=shapes, conditioning=resolved)
    made = maker.made((train, held_out), workers)
    runs = made.runs
    # How the cut-off was chosen is known where that was done.
    notes = (*longest(train).conditioning_notes(resolved), *made.notes, *notes, *_turning_notes(robot, shapes))
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


def choice_runs(
    robot: Robot, choice: Sequence[Samples], effects: Effects, shapes: Shapes, gains: DriveGains | None = None
) -> tuple[Run, ...]:
    """The motion that choices rest on as runs."""
    runs = [run for samples in choice for run in runs_of(samples, robot, effects, shapes=shapes)]
    return tuple(runs) if gains is None else tuple(in_torque(run, gains) for run in runs)


def turning_at_once(robot: Robot, data: Data, effects: Effects, gains: DriveGains | None) -> Data:
    """The data with Coulomb friction that turns around with the velocity, freed from the same imperfections.

    Over which distance or range of velocity friction turns was settled on the torque as recorded. One that comes late passes for
    a long distance, and would do so still when it is on time.

    Args:
        robot, data: as they are.
        effects: of the rows.
        gains: of the drives, when currents were measured.
    """
    if not any((*data.shapes.presliding, *data.shapes.widths)):
        return data
    shapes = Shapes((0.0,) * robot.n_joints)
    maker = RunMaker(robot=robot, effects=effects, shapes=shapes, conditioning=data.conditioning, gains=gains)
    train, held_out = maker.made(data.recordings, data.workers).runs
    if data.imperfections is not None:
        train, held_out = (corrected_runs(part, data.imperfections) for part in (train, held_out))
    return replace(data, train=train, held_out=held_out, shapes=shapes)


def turned_on_time(
    robot: Robot, data: Data, settings: Identification, gains: DriveGains | None, undone: Imperfections
) -> Data:
    """The data freed from faults, with how friction turns around settled on torque that is on time.

    Args:
        robot, data, settings: as they are.
        gains: of the drives, when currents were measured.
        undone: the faults, late torque among them.
    """
    linear = replace(settings, effects=settings.effects.linear)

    freed = _Freed(gains, data.imperfections, undone)
    shapes = _turning_of(
        robot,
        data.recordings[0],
        data.choice,
        data.conditioning,
        linear,
        data.structural,
        freed,
        workers=data.workers,
    )
    maker = RunMaker(robot=robot, effects=linear.effects, shapes=shapes, conditioning=data.conditioning)
    runs = [map_runs(part, freed) for part in maker.made(data.recordings, data.workers).runs]
    notes = tuple(note for note in data.notes if note.code not in _TURNING)
    return replace(
        data,
        train=runs[0],
        held_out=runs[1],
        shapes=shapes,
        notes=(*notes, *_turning_notes(robot, shapes)),
        imperfections=undone.after(data.imperfections),
    )


@dataclass(frozen=True, eq=False)
class _Freed:
    """A run in units of torque, freed from imperfections and then from faults."""

    gains: DriveGains | None
    imperfections: Imperfections | None
    undone: Imperfections

    def __call__(self, run: Run) -> Run:
        own = run if self.gains is None else in_torque(run, self.gains)
        own = own if self.imperfections is None else self.imperfections.corrected(own)
        return self.undone.corrected(own)


_TURNING = ("presliding", "friction-width")
"""Codes of the notes about how friction turns around."""


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


def _turning_of(
    robot: Robot,
    recordings: Sequence[Recording],
    choice: Sequence[Samples],
    conditioning: Conditioning,
    settings: Identification,
    structural: BaseParameters,
    freed: Callable[[Run], Run] | None = None,
    *,
    workers: Workers | None = None,
) -> Shapes:
    """How every joint's Coulomb friction turns around: at once, over a distance, or over a range of velocity.

    Whatever leaves least in the joint's own channel, and at once where nothing pays; as in an earlier result when there is one.

    Args:
        robot, settings, structural: as elsewhere.
        recordings: of the training.
        choice: their motion that choices rest on.
        conditioning: of that motion.
        freed: a run without the faults that were found in it.
        workers: who have the recordings.
    """
    n = robot.n_joints
    if settings.prior is not None:
        return Shapes(settings.prior.conditioning.presliding, (), None, settings.prior.conditioning.friction_width)
    if not (settings.effects.coulomb and settings.presliding):
        return Shapes((0.0,) * n)
    none = (0.0,) * n
    speed = np.quantile(np.abs(np.concatenate([samples.qd for samples in choice])), 0.9, axis=0)
    options = [
        Shapes(none),
        *(Shapes((d,) * n) for d in CANDIDATES),
        *(Shapes(none, (), None, tuple(float(w) for w in share * speed)) for share in WIDTHS),
    ]
    told = _Turnings(robot, settings.effects, tuple(options), freed)
    intended = None
    if settings.described is not None:
        intended = described_structure(told.runs(choice, options[0]), settings.described)
    every = choice_sum(recordings, conditioning, told, _added_each, known=choice, workers=workers)
    sigma = np.array([_noise_left(information, structural, intended) for information in every])
    # With both sides measured every joint has two channels; their geometric mean decides.
    sigma = np.exp(np.log(np.maximum(sigma, 1e-12)).reshape(len(sigma), -1, n).mean(axis=1))
    best = chosen_options(sigma, (DISTANCE_WORTHWHILE,) * len(CANDIDATES) + (WIDTH_WORTHWHILE,) * len(WIDTHS))
    return Shapes(
        tuple(options[k].presliding[j] for j, k in enumerate(best)),
        (),
        None,
        tuple((options[k].widths or none)[j] for j, k in enumerate(best)),
    )


def _turning_notes(robot: Robot, shapes: Shapes) -> tuple[Note, ...]:
    """What was found about it."""
    kinds = (
        ("presliding", "a distance [mrad or mm]", shapes.presliding),
        ("friction-width", "a range of velocity [mrad/s or mm/s]", shapes.widths),
    )
    return tuple(
        Note(
            code,
            Severity.INFO,
            f"Coulomb friction turns around over {what}: "
            + ", ".join(f"{name} {1e3 * x:.3g}" for name, x in zip(robot.joint_names, values, strict=True) if x),
        )
        for code, what, values in kinds
        if any(values)
    )


def _misfit(runs: Sequence[Run], structural: BaseParameters, described: Robot | None) -> float:
    """Sum over channels of the logarithm of the residual noise, for comparing choices on the same torque."""
    return float(np.sum(np.log(np.maximum(_residual_noise(runs, structural, described), 1e-12))))


def _residual_noise(runs: Sequence[Run], structural: BaseParameters, described: Robot | None) -> FloatArray:
    """Standard deviation of the residuals of the free fit per channel."""
    return _noise_left(information_of(runs), structural, described_structure(runs, described))


def _noise_left(information: Information, structural: BaseParameters, intended: BaseParameters | None) -> FloatArray:
    """The same from what the runs tell."""
    base, _ = usable_base((), information, structural, intended)
    return np.array(list(WeightedLeastSquares().quick(information, base)[1].values()))


@dataclass(frozen=True, eq=False)
class _Turnings:
    """What samples tell with Coulomb friction that turns around in each of several ways.

    Args:
        robot, effects: of the rows.
        options: how it turns around.
        freed: a run without the faults that were found in it; None for none.
    """

    robot: Robot
    effects: Effects
    options: tuple[Shapes, ...]
    freed: Callable[[Run], Run] | None

    def runs(self, pieces: Sequence[Samples], option: Shapes) -> tuple[Run, ...]:
        """Of some samples, with friction that turns around in one way."""
        runs = choice_runs(self.robot, pieces, self.effects, option)
        return runs if self.freed is None else tuple(map(self.freed, runs))

    def __call__(self, pieces: Sequence[Samples]) -> tuple[Information, ...]:
        return tuple(information_of(self.runs(pieces, option)) for option in self.options)


def _added_each(parts: Sequence[tuple[Information, ...]]) -> tuple[Information, ...]:
    """The sum of several, way by way."""
    return tuple(map(added, zip(*parts, strict=True)))


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
    train, held_out = (map_runs(runs, partial(in_torque, gains=gains)) for runs in (data.train, data.held_out))
    return replace(data, train=train, held_out=held_out)
