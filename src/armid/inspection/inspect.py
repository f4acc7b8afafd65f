"""`armid.inspect`: what can be identified at all, before anything is recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from armid.errors import InputError
from armid.identifiability.base import BaseParameters
from armid.identifiability.closed_terms import closed_terms, numeric_combinations
from armid.identifiability.exchange import exchanged
from armid.identifiability.excitation import EXCITED
from armid.identifiability.rank import STRUCTURAL_TOLERANCE
from armid.identifiability.structure import structure
from armid.inspection.closed_form import FormWord
from armid.inspection.inspection import Inspection
from armid.inspection.motion_excitation import MotionExcitation, planned_excitation, recorded_excitation
from armid.notes import Note, Severity
from armid.outcome import Check, InputFile, Provenance
from armid.parameters.effects import DEFAULT_FRICTION, Effects, PayloadRuns, TorqueSide, effects_of
from armid.robot.described import description_notes
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.rows.pose import ChainErrors, PoseMeasure
from armid.rows.quantity import ArmSource, Quantity, Tracking, sources_for
from armid.rows.torque import TorqueRows
from armid.threads import one_blas_thread
from armid.words import choice

if TYPE_CHECKING:
    from armid.logs.log import Log
    from armid.motions.trajectory import Trajectory

_CLEAR_GAP = 1e3
"""Factor by which singular values must fall where the rank is decided. Round-off stays below 1e-12 of the largest and what
can be identified above 1e-6: where less than a thousand lies between two neighbours, the tolerance decided and not the arm."""

_MOST_JOINTS = 80
"""Joints of one chain. Memory grows with their third power, time with the fourth: 60 take 20 s, 80 a minute and 700 MB."""

_POINTS = ((0.1, 0.05, 0.02), (-0.05, 0.1, 0.03), (0.02, -0.08, 0.1))
"""[m] In the tracked frame. Off its axes, because a target on the last joint's axis does not see that joint turn."""


@one_blas_thread
def inspect(
    robot: str | Path | Robot,
    *,
    friction: str = DEFAULT_FRICTION,
    rotor_inertia: bool = False,
    payload: str | PayloadRuns = PayloadRuns.NONE,
    torques: str | TorqueSide = TorqueSide.LINK,
    effects: Effects | None = None,
    quantity: str | Quantity | Iterable[str | Quantity] = Quantity.TORQUE,
    frame: str | None = None,
    measure: str | PoseMeasure = PoseMeasure.POSE,
    points: int | Sequence[Sequence[float]] = 1,
    errors: str | ChainErrors | None = None,
    without: str | Iterable[str] = (),
    tolerance: float = STRUCTURAL_TOLERANCE,
    closed_forms: str | Iterable[str | FormWord] = (),
    log: str | Path | Log | None = None,
    trajectory: str | Path | Trajectory | None = None,
    noise: str | float | Sequence[float] | None = None,
    base: str | None = None,
    tip: str | None = None,
) -> Inspection:
    """Which parameters can be found alone, which in combination (and in which), and which not at all.

    For example `armid.inspect("iiwa14", friction="viscous,coulomb")`: 57 of 84.

    Args:
        robot: path of a URDF or robot YAML, a name of the catalogue, or an arm.
        friction: words with commas between them: `viscous`, `coulomb`, `offset`, and shapes beyond; `none` for none.
        rotor_inertia: rotor inertias too (always so on the motor side).
        payload: which runs carry an unknown payload: `none`, `loaded` or `both`.
        torques: where torque is measured: `link`, `motor`, `both` or `difference`.
        effects: instead of the four above.
        quantity: what is measured: `torque`, `gravity`, `inertia-matrix`, `axis-inertia` or `pose`; several together
            with commas between them.
        frame: tracked frame, for poses; the tip by default.
        measure: for poses: the whole `pose`, `points` or their `distance`.
        points: for points and distances: how many (1 to 3), or where they are in the frame [m].
        errors: for poses: `described` (the description's constants) or `complete` (six per joint).
        without: standard parameters that shall fall out of the base, as in another work's convention; coefficients are numbers
            then. Ours keeps the first of each combination.
        tolerance: of the rank decision, relative to the largest singular value, in (0, 1).
        closed_forms: to write besides: `gravity`, `inertia-matrix`, `coriolis`, `axis-inertia`.
        log: a recording; what does its motion excite, and what stands out of its noise?
        trajectory: a planned motion; what does it excite?
        noise: of the torque with a motion [N m, or N], one or one per channel; a log's own by default.
        base: link of a URDF that stands still; its root by default.
        tip: where the arm ends; the end of the longest chain by default.

    Raises:
        UnknownNameError: a word that does not exist; lists those that do.
        InputError: choices that contradict each other, a file that cannot be read, or a parameter that cannot fall out.
        NothingIdentifiableError: no parameter has an effect on the quantity.
        ToleranceError: tolerance outside (0, 1).
    """
    chosen = effects or effects_of(friction, rotor_inertia=rotor_inertia, payload=payload, torques=torques)
    quantities = tuple(choice("quantity", word, Quantity) for word in _words(quantity))
    words = tuple(choice("closed form", word, FormWord) for word in _words(closed_forms))
    tracking = Tracking(
        frame,
        choice("measure", measure, PoseMeasure),
        _POINTS[:points] if isinstance(points, int) else tuple((float(x), float(y), float(z)) for x, y, z in points),
        None if errors is None else choice("errors", errors, ChainErrors),
    )
    levels = _noise(noise)
    _check_motion(quantities, log=log, trajectory=trajectory, noise=levels)
    arm = load_robot(robot, base=base, tip=tip)
    if arm.n_joints > _MOST_JOINTS:
        hint = f"at most {_MOST_JOINTS} are inspected: choose a part of it with --base and --tip"
        raise InputError(arm.name, f"{arm.n_joints} joints", hint)
    sources = sources_for(arm, quantities, chosen, tracking)
    found = structure(*sources, tolerance=tolerance, what=" and ".join(quantities))
    leading = exchanged(found.base, _words(without))
    combinations = closed_terms(sources, leading) if leading is found.base else numeric_combinations(leading)
    motion, moved = _motion(sources[0], leading, log=log, trajectory=trajectory, noise=levels)
    answer = Inspection(
        robot=arm,
        quantities=quantities,
        effects=chosen,
        standard=sources[0].space.parameters if isinstance(sources[0], ArmSource) else (),
        base=leading,
        terms=combinations.terms,
        closed_form=combinations.exact,
        per_channel=found.per_channel,
        motion=motion,
        checks=(*_rank_checks(found.base), *_motion_checks(motion)),
        notes=(*combinations.notes, *_weak_notes(found.base), *description_notes(arm)),
        provenance=Provenance(
            inputs=(InputFile(arm.source.path, arm.source.sha256, "robot"), *moved),
            settings={"quantity": quantities, "friction": chosen.friction, "tolerance": tolerance},
        ),
    )
    return answer.with_forms(words)


def _words(given: str | Iterable[str]) -> tuple[str, ...]:
    """Words from text with commas between them, or one by one."""
    parts = given.split(",") if isinstance(given, str) else given
    return tuple(word for word in (str(part).strip() for part in parts) if word)


def _noise(given: str | float | Sequence[float] | None) -> list[float] | None:
    """Standard deviations as numbers.

    Raises:
        InputError: text that is no list of numbers.
    """
    if given is None:
        return None
    try:
        if isinstance(given, int | float):
            return [float(given)]
        return [float(part) for part in (given.split(",") if isinstance(given, str) else given)]
    except ValueError:
        raise InputError("noise", f"{given!r} is not a list of numbers", "for example 0.1,0.1,0.05") from None


def _check_motion(quantities: tuple[Quantity, ...], *, log: object, trajectory: object, noise: object) -> None:
    """Refuses choices that contradict each other before any file is read."""
    if log is not None and trajectory is not None:
        raise InputError("log", "given together with a trajectory", "one motion at a time")
    given = log is not None or trajectory is not None
    if noise is not None and not given:
        raise InputError("noise", "given without a motion", "it says what a log or a trajectory can tell")
    if given and quantities != (Quantity.TORQUE,):
        measured = " and ".join(quantities)
        raise InputError("excitation", f"{measured} is measured", "a motion excites the parameters in torque alone")


def _motion(
    source: object,
    base: BaseParameters,
    *,
    log: str | Path | Log | None,
    trajectory: str | Path | Trajectory | None,
    noise: list[float] | None,
) -> tuple[MotionExcitation | None, tuple[InputFile, ...]]:
    """What a motion on request excites, and the files it came from."""
    if not isinstance(source, TorqueRows) or (log is None and trajectory is None):
        return None, ()
    if log is not None:
        from armid.logs.log import Log  # only recordings need it

        recording = log if isinstance(log, Log) else _recording(log, source.robot)
        files = tuple(InputFile(path, digest, "log") for path, digest in recording.source.files)
        return recorded_excitation(source, base, recording, noise=noise), files
    assert trajectory is not None
    if not isinstance(trajectory, str | Path):
        return planned_excitation(source, base, trajectory, noise=noise), ()
    from armid.motions.trajectory_files import load_trajectory

    planned = load_trajectory(Path(trajectory))
    file = InputFile(str(trajectory), sha256(Path(trajectory).read_bytes()).hexdigest(), "trajectory")
    return planned_excitation(source, base, planned, noise=noise), (file,)


def _recording(path: str | Path, robot: Robot) -> Log:
    from armid.logs.read import unchecked_log

    return unchecked_log(path, robot)


def _rank_checks(base: BaseParameters) -> tuple[Check, ...]:
    """The number of base parameters is the arm's and not the tolerance's."""
    gap = base.decision.gap
    return (
        Check(
            code="rank-gap",
            passed=gap >= _CLEAR_GAP,
            value=gap,
            limit=_CLEAR_GAP,
            message=f"singular values fall by a factor of {gap:.2g} where the rank was decided; "
            f"below {_CLEAR_GAP:g} another tolerance gives another number of base parameters",
        ),
    )


def _motion_checks(motion: MotionExcitation | None) -> tuple[Check, ...]:
    """The motion says something about every parameter. A poor motion makes no wrong answer: these only warn."""
    if motion is None:
        return ()
    weakest = float(motion.excitation.strength.min())
    lost, all_names = motion.excitation.not_excited, motion.excitation.names
    excited = Check(
        code="excitation",
        passed=not lost,
        value=weakest,
        limit=EXCITED,
        message=f"this motion: {len(lost)} of {len(all_names)} base parameters are not excited: {', '.join(lost)}"
        if lost
        else "this motion: every base parameter is excited",
        decisive=False,
    )
    if motion.detected is None:
        return (excited,)
    drowned = f"; lost in it: {', '.join(motion.lost)}" if motion.lost else ""
    above = Check(
        code="above-noise",
        passed=not motion.lost,
        value=float(len(motion.detected)),
        limit=float(len(all_names)),
        message=f"{len(motion.detected)} of {len(all_names)} base parameters stand out of the noise{drowned} "
        f"({motion.detected.decision.reason})",
        decisive=False,
    )
    return excited, above


def _weak_notes(base: BaseParameters) -> tuple[Note, ...]:
    """One warning per direction that is identifiable only by a hair."""
    return tuple(
        Note(
            "weak-direction",
            Severity.WARNING,
            f"identifiable only by a hair ({weak.ratio:.1e} of the strongest direction): "
            + " ".join(f"{value:+.2f} {name}" for name, value in weak.combination),
            weak.combination[0][0],
        )
        for weak in base.weak
    )
