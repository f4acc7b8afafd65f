"""How Coulomb friction turns around at a reversal: at once, over a distance, or over a range of velocity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.cluster.workers import Workers
from armid.estimation.determined import described_structure, noise_left
from armid.estimation.run import Run, information_of
from armid.estimation.run_maker import RunMaker, choice_runs, choice_sum, in_torque
from armid.estimation.runs import map_runs
from armid.identifiability.base import BaseParameters
from armid.identification.data import Data
from armid.identification.gains import DriveGains, gain_values
from armid.identification.moving import made_to_learn
from armid.identification.sensors import Imperfections, corrected_runs
from armid.identification.settings import Identification
from armid.information.information import Information, added
from armid.logs.conditioning import Conditioning
from armid.logs.recording import Recording
from armid.logs.samples import Samples
from armid.notes import Note, Severity
from armid.parameters.effects import Effects
from armid.robot.robot import Robot
from armid.rows.friction import Shapes
from armid.rows.presliding import CANDIDATES, DISTANCE_WORTHWHILE, WIDTH_WORTHWHILE, WIDTHS, chosen_options


def turning_of(
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
    options = turning_options(choice)
    told = _Turnings(robot, settings.effects, options, freed)
    intended = None
    if settings.described is not None:
        intended = described_structure(told.runs(choice, options[0]), settings.described)
    every = choice_sum(recordings, conditioning, told, _added_each, known=choice, workers=workers)
    sigma = np.array([noise_left(information, structural, intended) for information in every])
    # With both sides measured every joint has two channels; their geometric mean decides.
    sigma = np.exp(np.log(np.maximum(sigma, 1e-12)).reshape(len(sigma), -1, n).mean(axis=1))
    return best_turning(options, sigma)


def turning_options(choice: Sequence[Samples]) -> tuple[Shapes, ...]:
    """Ways in which friction may turn around, alike in every joint: at once, over distances, over ranges of velocity.

    Args:
        choice: motion that choices rest on.
    """
    speed = np.quantile(np.abs(np.concatenate([samples.qd for samples in choice])), 0.9, axis=0)
    none = (0.0,) * len(speed)
    return (
        Shapes(none),
        *(Shapes((d,) * len(speed)) for d in CANDIDATES),
        *(Shapes(none, (), None, tuple(float(w) for w in share * speed)) for share in WIDTHS),
    )


def best_turning(options: Sequence[Shapes], sigma: FloatArray) -> Shapes:
    """Joint by joint the way that leaves least, and at once where nothing pays.

    Args:
        options: at once first.
        sigma: residual noise, shape [n_options, n_joints].
    """
    worthwhile = [WIDTH_WORTHWHILE if option.widths else DISTANCE_WORTHWHILE for option in options[1:]]
    best = chosen_options(sigma, worthwhile)
    none = (0.0,) * sigma.shape[1]
    return Shapes(
        tuple(options[k].presliding[j] for j, k in enumerate(best)),
        (),
        None,
        tuple((options[k].widths or none)[j] for j, k in enumerate(best)),
    )


def turning_notes(robot: Robot, shapes: Shapes) -> tuple[Note, ...]:
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


_TURNING = ("presliding", "friction-width")
"""Codes of the notes about how friction turns around."""


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
    shapes = replace(data.shapes, presliding=(0.0,) * robot.n_joints, widths=())
    maker = RunMaker(
        robot=robot, effects=effects, shapes=shapes, conditioning=data.conditioning, gains=gain_values(gains)
    )
    train, held_out = made_to_learn(maker, data.recordings, data.workers).runs
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
    shapes = turning_of(
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
    runs = [map_runs(part, freed) for part in made_to_learn(maker, data.recordings, data.workers).runs]
    notes = tuple(note for note in data.notes if note.code not in _TURNING)
    return replace(
        data,
        train=runs[0],
        held_out=runs[1],
        shapes=shapes,
        notes=(*notes, *turning_notes(robot, shapes)),
        imperfections=undone.after(data.imperfections),
    )


@dataclass(frozen=True, eq=False)
class _Freed:
    """A run in units of torque, freed from imperfections and then from faults."""

    gains: DriveGains | None
    imperfections: Imperfections | None
    undone: Imperfections

    def __call__(self, run: Run) -> Run:
        own = run if self.gains is None else in_torque(run, self.gains.values)
        own = own if self.imperfections is None else self.imperfections.corrected(own)
        return self.undone.corrected(own)
