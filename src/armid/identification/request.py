"""What `armid.identify` was asked for: words become settings, before any file is read; then recordings are opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from armid.consistency.bounds import Bounds
from armid.consistency.inequalities import slender_axes
from armid.consistency.possible import REGULARISERS, Way
from armid.errors import InputError, UnknownNameError
from armid.identification.pipeline import SETTLED_BY_GRAVITY, Progress
from armid.identification.prepare import payload_effects
from armid.identification.result import Result, load_result
from armid.identification.sensor_file import not_undone_twice, sensors_of
from armid.identification.settings import Identification, Method
from armid.identification.several import Usable, usable
from armid.identification.tolerances import ImperfectionTolerances, tolerances_of
from armid.logs.conditioning import Conditioning, VelocitySource
from armid.logs.conditioning.processing import Processing, processing_of
from armid.logs.error_codes import accepted_codes
from armid.logs.log import Log
from armid.logs.read import ReadOptions
from armid.logs.recording import Recording, open_recording
from armid.notes import Note
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide, effects_of
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.words import choice, numbers, several, wrong_kind

if TYPE_CHECKING:  # files that few name: controllers, calibrations, populations
    from armid.closed_loop.controller import JointController
    from armid.estimation.essential import Rule
    from armid.estimation.population import Population
    from armid.identification.calibrated import Calibrated

_HELD_OUT = 0.4
"""Fraction of the time of every log that is kept aside when no validation log is given."""

_GEOMETRY = "geometry"
"""Word for bounds by the links' shapes alone, where otherwise a file is named."""

_HALPER = "halper2024"
"""Word for all inequalities of eq. 3.53."""

Source = str | Path | Log | Recording
"""A recording, or where it is."""


class IdentifyWords(TypedDict, total=False):
    """What `identify` takes besides robot and logs; see there."""

    validate: Source | Sequence[Source] | None
    prior: str | Path | Result | Population | None
    friction: str
    rotor_inertia: bool
    payload: str | PayloadRuns
    torques: str | TorqueSide
    effects: Effects | None
    method: str | Method
    cutoff_hz: float | None
    torque_cutoff_hz: float | None
    processing: str | Processing | None
    torque_delay: float
    velocity: str | VelocitySource | None
    find_gravity: bool
    essential: str | Rule | None
    keep: str | Sequence[str]
    drop: str | Sequence[str]
    gravity: str | Sequence[float] | None
    gravity_frame: str
    consistency: str | Way
    regulariser: str
    prior_weight: float
    bounds: str | Path | Bounds | None
    correction: str | Path | None
    imperfections: str | ImperfectionTolerances
    tolerance: str | Sequence[str]
    correct: bool
    sensors: str | Path | None
    controller: str | Path | JointController | None
    sensitivity: bool
    accept: str | Sequence[str]
    strict: bool
    cluster: Any
    options: ReadOptions | None
    seed: int
    progress: Progress


@dataclass(frozen=True, eq=False, kw_only=True)
class Request:
    """An identification that was asked for: recordings open, words read.

    Args:
        robot: as described.
        train, held_out: recordings.
        settings: see there.
        calibrated: the arm with its correction, when one was given.
        progress: told in words what is being done.
    """

    robot: Robot
    train: tuple[Recording, ...]
    held_out: tuple[Recording, ...]
    settings: Identification
    calibrated: Calibrated | None
    progress: Progress


def request(robot: str | Path | Robot, logs: Source | Sequence[Source], words: IdentifyWords) -> Request:
    """What is to be identified from what, and how; all the words of `identify`."""
    progress, accept, correction = words["progress"], words["accept"], words["correction"]
    progress("reading")
    gravity = words["gravity"]
    down = None if gravity is None else numbers("--gravity", gravity, 3, "0,0,-9.81")
    _check_gravity_frame(words["gravity_frame"], down, correction)
    settings = _settings_of(words)
    arm = loaded(robot, down if correction is None else None)
    earlier = _earlier(words["prior"])
    opening = _Opening(
        robot=arm,
        options=words["options"],
        accept=_accepted(accept, find_gravity=words["find_gravity"]),
        strict=words["strict"],
        cluster=words["cluster"],
        progress=progress,
    )
    average = settings.conditioning.average
    train, held_out, remarks = _training_and_held_out(opening, logs, words["validate"], average=average)
    sensors = sensors_of(words["sensors"], [*train, *held_out], arm)
    settings = replace(
        settings,
        remarks=remarks,
        effects=payload_effects(settings.effects, [*train, *held_out]),
        bounds=_bounds_of(words["bounds"], arm, halper=words["consistency"] == _HALPER),
        sensors=not_undone_twice(sensors, earlier.imperfections if isinstance(earlier, Result) else None),
        prior=earlier if isinstance(earlier, Result) else None,
        population=None if isinstance(earlier, Result) else earlier,
        controller=_controller_of(words["controller"], arm),
    )
    return Request(
        robot=arm,
        train=tuple(train),
        held_out=tuple(held_out),
        settings=settings,
        calibrated=_calibrated(correction, arm, down, words["gravity_frame"]),
        progress=progress,
    )


def _controller_of(controller: str | Path | JointController | None, robot: Robot) -> JointController | None:
    """Of a file, or as given."""
    if not isinstance(controller, str | Path):
        return controller
    from armid.closed_loop.controller import read_controller

    return read_controller(controller, robot)


def _calibrated(
    correction: str | Path | None, robot: Robot, gravity: Sequence[float] | None, frame: str
) -> Calibrated | None:
    """The arm with the correction of a calibration, where one was given."""
    if correction is None:
        return None
    from armid.identification.calibrated import Calibrated

    return Calibrated(robot, Path(correction), gravity, frame)


def _settings_of(words: IdentifyWords) -> Identification:
    """Settings from words, before any file is read.

    Raises:
        UnknownNameError: a word that does not exist.
        InputError: a weight that is not positive.
    """
    regulariser, weight, velocity = words["regulariser"], words["prior_weight"], words["velocity"]
    if regulariser not in REGULARISERS:
        raise UnknownNameError("regulariser", regulariser, REGULARISERS)
    if not weight > 0.0:
        raise InputError("--prior-weight", f"{weight}", "expected a positive number")
    keep, drop = _patterns(words["keep"]), _patterns(words["drop"])
    essential = words["essential"] if words["essential"] is not None or not (keep or drop) else "hand"
    way = Way.THESIS if words["consistency"] == _HALPER else words["consistency"]
    return Identification(
        effects=_effects_of(words),
        conditioning=_conditioning_of(words),
        velocity=None if velocity in (None, "auto") else choice("velocity source", velocity or "", VelocitySource),
        method=choice("method", words["method"], Method),
        find_gravity=words["find_gravity"],
        essential=None if essential is None else _rule(essential),
        keep=keep,
        drop=drop,
        regulariser=REGULARISERS[regulariser](weight),
        way=choice("consistency", way, Way),
        imperfections=tolerances_of(words["imperfections"], words["tolerance"]),
        correct=words["correct"],
        sensitivity=words["sensitivity"],
        seed=words["seed"],
    )


def _rule(word: str | Rule) -> Rule:
    """Of a word."""
    from armid.estimation.essential import Rule

    return choice("rule for essential parameters", word, Rule)


def _effects_of(words: IdentifyWords) -> Effects:
    """What enters the model besides the links."""
    return words["effects"] or effects_of(
        words["friction"],
        rotor_inertia=words["rotor_inertia"],
        payload=words["payload"],
        torques=words["torques"],
        shapes=True,
    )


def _conditioning_of(words: IdentifyWords) -> Conditioning:
    """How logs become samples."""
    processing = processing_of(
        words["processing"], cutoff_hz=words["cutoff_hz"], torque_cutoff_hz=words["torque_cutoff_hz"]
    )
    return processing.conditioning(
        torque_delay=words["torque_delay"], accept=_accepted(words["accept"], find_gravity=False)
    )


def loaded(robot: str | Path | Robot, gravity: Sequence[float] | None = None) -> Robot:
    """A robot, with another direction of gravity where one is given [m/s^2]."""
    arm = robot if isinstance(robot, Robot) else load_robot(robot)
    return arm if gravity is None else arm.with_gravity(gravity)


def listed(sources: Source | Sequence[Source] | None) -> list[Source]:
    """One or several sources as a list."""
    if sources is None:
        return []
    return several("logs", sources, (str, Path, Log, Recording), "recordings: paths or Logs, one or several")


def opened(
    source: Source, robot: Robot, options: ReadOptions | None = None, fraction: float | None = None
) -> Recording:
    """A recording, read and checked, in two parts where it is going to be split; one that is open stays as it is."""
    if isinstance(source, Recording):
        return source
    return open_recording(source, robot, options=options, fraction=fraction)


def _earlier(prior: str | Path | Result | Population | None) -> Result | Population | None:
    """What is known from before: a result of this arm, or a population of arms of its kind."""
    from armid.estimation.population import Population, is_population, load_population

    if prior is None or isinstance(prior, Result | Population):
        return prior
    if not isinstance(prior, str | Path):
        raise wrong_kind("prior", prior, "a Result or the folder of one, or a fleet's")
    return load_population(prior) if is_population(prior) else load_result(prior)


def _accepted(accept: str | Sequence[str], *, find_gravity: bool) -> tuple[str, ...]:
    """Codes of errors that do not keep a log from being used; one word counts as a list of codes with commas."""
    return (*accepted_codes(accept), *(SETTLED_BY_GRAVITY if find_gravity else ()))


@dataclass(frozen=True, kw_only=True)
class _Opening:
    """How recordings are opened."""

    robot: Robot
    options: ReadOptions | None
    accept: tuple[str, ...]
    strict: bool
    cluster: Any
    progress: Progress

    def all(self, sources: Sequence[Source], fraction: float | None = None) -> Usable:
        """Recordings, read and checked.

        Args:
            sources: of them.
            fraction: of the time, where they are going to be split.
        """
        paths = [str(one) for one in sources if isinstance(one, str | Path)]
        if self.cluster is not None and len(paths) == len(sources):
            openers = self._elsewhere(paths, fraction)
        else:
            opening = partial(opened, robot=self.robot, options=self.options, fraction=fraction)
            openers = [(_name_of(source), partial(opening, source)) for source in sources]
        if self.strict:
            return Usable(tuple(opening() for _, opening in openers), ())
        return usable(openers, self.robot, accept=self.accept, progress=self.progress)

    def _elsewhere(self, paths: Sequence[str], fraction: float | None) -> list[tuple[str, Callable[[], Recording]]]:
        """Openers of files that workers read and check."""
        from armid.identification.checked_elsewhere import checked_openers, opened_for

        if len(paths) == 1:
            return [(paths[0], partial(opened_for, paths[0], self.robot, self.options, self.cluster, fraction))]
        return checked_openers(paths, self.robot, self.options, self.cluster, self.progress, fraction)


def _name_of(source: Source) -> str:
    return source.name if isinstance(source, Log | Recording) else Path(source).name


def _training_and_held_out(
    opening: _Opening,
    logs: Source | Sequence[Source],
    validate: Source | Sequence[Source] | None,
    *,
    average: bool = False,
) -> tuple[list[Recording], list[Recording], tuple[Note, ...]]:
    """Checked recordings; without validation logs the last part of the time of each is held out. And what was set aside.

    Args:
        opening: how they are opened.
        logs, validate: as `identify` takes them.
        average: repetitions are going to be averaged, so training recordings are cut to whole ones of them.
    """
    read = opening.all(listed(logs), None if listed(validate) or average else 1.0 - _HELD_OUT)
    train = [recording.repeated() if average else recording for recording in read.recordings]
    if listed(validate):
        tested = opening.all(listed(validate))
        return train, list(tested.recordings), (*read.notes, *tested.notes)
    pairs = [recording.split(_training_share(recording, average=average)) for recording in train]
    return [first for first, _ in pairs], [last for _, last in pairs], read.notes


def _patterns(words: str | Sequence[str]) -> tuple[str, ...]:
    """Names or patterns from words with commas between them, or from a sequence of such."""
    parts = [words] if isinstance(words, str) else words
    return tuple(name.strip() for part in parts for name in part.split(",") if name.strip())


def _training_share(recording: Recording, *, average: bool) -> float:
    """Of the time of a recording; a whole number of repetitions where they are averaged, one at least on either side."""
    if not average:
        return 1.0 - _HELD_OUT
    count = recording.repetition().count
    return min(max(round((1.0 - _HELD_OUT) * count), 1), max(count - 1, 1)) / max(count, 2)


def _bounds_of(bounds: str | Path | Bounds | None, robot: Robot, *, halper: bool = False) -> Bounds:
    """Bounds of a file, of the shapes alone, as given, or none but the signs of drives.

    Args:
        bounds: as `identify` takes them.
        robot: the arm.
        halper: with eqs. 3.53e and f for the links nothing else is said about.
    """
    if halper:
        known = _bounds_of(bounds, robot)
        slender = {**slender_axes(robot), **known.inequalities.slender}
        return replace(known, inequalities=replace(known.inequalities, slender=slender))
    if bounds is None:
        return Bounds()
    if isinstance(bounds, Bounds):
        return bounds
    if str(bounds) == _GEOMETRY and not Path(bounds).exists():
        from armid.consistency.geometry_bounds import GeometryBounds

        return GeometryBounds().apply(robot)
    from armid.consistency.bounds_file import read_bounds

    return read_bounds(Path(bounds), robot)


def _check_gravity_frame(frame: str, gravity: Sequence[float] | None, correction: str | Path | None) -> None:
    """Refuses a frame that nothing is known about.

    Raises:
        InputError: a sensor's frame without gravity in it, or without the calibration that places it.
    """
    if frame != "base" and (gravity is None or correction is None):
        raise InputError(
            "--gravity-frame", frame, "a sensor's frame needs --gravity in it and --correction to place it"
        )
