"""`armid.identify`: recordings of an arm to a judged model of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from armid.cluster.workers import open_workers
from armid.consistency.bounds import Bounds
from armid.consistency.possible import Way
from armid.identification.pipeline import Progress, run_identification
from armid.identification.request import IdentifyWords, Request, Source, request
from armid.identification.result import Result
from armid.identification.settings import PRIOR_WEIGHT, Method
from armid.identification.tolerances import ImperfectionTolerances
from armid.logs.conditioning import VelocitySource
from armid.logs.conditioning.processing import Processing
from armid.logs.read import ReadOptions
from armid.parameters.effects import DEFAULT_FRICTION, Effects, PayloadRuns, TorqueSide
from armid.robot.robot import Robot

if TYPE_CHECKING:  # few name them
    from armid.closed_loop.controller import JointController
    from armid.estimation.essential import Rule
    from armid.estimation.population import Population


def identify(
    robot: str | Path | Robot,
    logs: Source | Sequence[Source],
    *,
    validate: Source | Sequence[Source] | None = None,
    prior: str | Path | Result | Population | None = None,
    friction: str = DEFAULT_FRICTION,
    rotor_inertia: bool = False,
    payload: str | PayloadRuns = PayloadRuns.NONE,
    torques: str | TorqueSide = TorqueSide.LINK,
    effects: Effects | None = None,
    method: str | Method = Method.WEIGHTED,
    cutoff_hz: float | None = None,
    torque_cutoff_hz: float | None = None,
    processing: str | Processing | None = None,
    torque_delay: float = 0.0,
    velocity: str | VelocitySource | None = None,
    find_gravity: bool = False,
    essential: str | Rule | None = None,
    keep: str | Sequence[str] = (),
    drop: str | Sequence[str] = (),
    gravity: str | Sequence[float] | None = None,
    gravity_frame: str = "base",
    consistency: str | Way = Way.LMI,
    regulariser: str = "pull-back",
    prior_weight: float = PRIOR_WEIGHT,
    bounds: str | Path | Bounds | None = None,
    correction: str | Path | None = None,
    imperfections: str | ImperfectionTolerances = "all",
    tolerance: str | Sequence[str] = (),
    correct: bool = False,
    sensors: str | Path | None = None,
    controller: str | Path | JointController | None = None,
    sensitivity: bool = True,
    accept: str | Sequence[str] = (),
    strict: bool = False,
    cluster: Any = None,
    options: ReadOptions | None = None,
    seed: int = 0,
    progress: Progress = lambda _: None,
) -> Result:
    """Estimates an arm's parameters, makes its bodies possible, tests them on motion held out, and judges the whole.

    Args:
        robot: description: a path, a name of the catalogue, or a loaded robot.
        logs: to learn from: files, mapping files, or logs in memory; one or several.
        validate: held-out recordings; without any the last 40 % of the time of every log are held out.
        prior: an earlier result of the same arm, whose Information is added; or the folder or population of a fleet of arms of
            this kind, towards which this one is pulled as far as its own recordings leave open.
        friction: words with commas between them: viscous, coulomb, offset; asymmetric, stribeck, smooth, load, coupled.
        rotor_inertia: whether rotor inertias are estimated (always so on the motor side).
        payload: which runs carried an unknown payload.
        torques: where torque was measured.
        effects: all of the four together, instead of words.
        method: of the unconstrained estimate.
        cutoff_hz: of the low-pass on motion and torque; chosen from the spectrum by default.
        torque_cutoff_hz: another one for torque.
        processing: kind and order of the filter, averaging over repetitions, differences: the name of a published one
            (`halper2024`, `khosla1985`), or a `Processing`; cut-offs given beside it win.
        torque_delay: how late torque is against the motion [s]; it is moved back.
        velocity: `position` or `measured`; whichever explains the training torque better by default.
        find_gravity: whether base tilt and mounting are estimated from the torque, and used.
        essential: rule by which parameters are also eliminated, with the price of each; None for not.
        keep, drop: base parameters that the elimination leaves in whatever the rule says, and takes out first: names or patterns
            such as `joint*.offset`, with commas between them; `drop` alone takes out just these.
        gravity: in the base frame [m/s^2]; the description's by default.
        gravity_frame: of `gravity`: `base`, or `sensor[:NAME]`, the levelled instrument that `correction` was measured with.
        consistency: way in which possible bodies are found: `lmi`, `log-cholesky`, `eq3.53` (inequalities a to d of
            [Halper2024], and those of a bounds file), or `halper2024` (all of them, e and f along the links of this arm).
        regulariser: kind of pull towards the description's bodies.
        prior_weight: of that pull, one over the squared relative doubt.
        bounds: what is known about the bodies: a file, the word `geometry`, or `Bounds`.
        correction: file of a kinematic calibration; the arm is identified with it.
        imperfections: of sensors and friction that may enter the model beside the parameters: `all`, `none`, or families
            with commas between them (gain, delay, zero, scale, clock, tilt, stribeck, ...).
        tolerance: base tolerances of families, such as `gain=2%` or `zero=0.5deg,delay=2ms`.
        sensors: sensor file of an earlier result of this arm; what it says is undone in every recording first;
            the one that the mappings name (`sensors: FILE`) by default.
        correct: whether faults found in the recordings are undone, training and held-out alike; the result says which.
        controller: of the recorded motion: a file (docs/formats.md), for `didim`, `cloe`, `ml` and `iv`.
        sensitivity: whether other cut-offs and leaving out each motion are tried.
        accept: codes of errors in the logs that were looked at and are accepted.
        strict: whether one unusable log among several stops everything, instead of being mended or set aside.
        cluster: where several logs are read, checked, conditioned and gone through: `local[:N]`, a scheduler's address, a Dask
            client; None for here. The answer is the same.
        options: what log files do not say themselves.
        seed: of sampled certificates.
        progress: told in words what is being done.

    Raises:
        InputError: unusable input, or options that contradict each other.
    """
    words = dict(locals())  # what this function was given, word for word
    with open_workers(words["cluster"], progress=progress) as workers:
        words["cluster"] = there = None if cluster is None else workers
        asked = request(words.pop("robot"), words.pop("logs"), cast(IdentifyWords, words))
        arm, train, held_out, settings = asked.robot, asked.train, asked.held_out, asked.settings
        if asked.calibrated is not None:
            train, held_out = (tuple(asked.calibrated.moved(log) for log in part) for part in (train, held_out))
            arm, settings = asked.calibrated.robot, replace(settings, described=arm)
        short = len(train) == 1 and not train[0].streamed  # one that is held is faster here than its way to a worker
        several = None if short else there
        result = run_identification(arm, train, held_out, settings, workers=several, progress=progress)
        return result if several is None else replace(result, workers=several.count, retries=several.retries)


def requested(robot: str | Path | Robot, logs: Source | Sequence[Source], **given: Unpack[IdentifyWords]) -> Request:
    """What `identify` would be asked for by these words, and by its own defaults where none are given."""
    parameters = signature(identify).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    return request(robot, logs, cast(IdentifyWords, {**defaults, **given}))
