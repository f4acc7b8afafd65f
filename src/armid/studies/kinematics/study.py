"""The study from end to end: calibrate, move, record again and again, identify in four ways, compare with the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from armid.apart import refuse_inputs_within
from armid.arrays import FloatArray
from armid.cluster.workers import Cluster, InProcess, Workers, in_order, open_workers
from armid.design.question import mesh_files
from armid.documents import restored
from armid.estimation.recording import runs_of
from armid.identifiability.base import BaseParameters
from armid.kernels.evaluate import evaluate_rows
from armid.logs.samples import Samples
from armid.motions.limits import InfeasibleError
from armid.motions.trajectory import Trajectory
from armid.motions.trajectory_files import input_of
from armid.outcome import InputFile, Provenance
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.simulation.plant import build_plant
from armid.simulation.truth import true_parameters
from armid.simulation.variation import varied
from armid.studies.kinematics.calibrated import KinematicStep, kinematic_step, stored_step
from armid.studies.kinematics.comparison import ESSENTIAL, Study, StudySettings
from armid.studies.kinematics.estimates import (
    NOMINAL_LABEL,
    Belief,
    Case,
    RunEstimate,
    compare_runs,
    described_base,
)
from armid.studies.kinematics.misbuilt import PUBLISHED_ARM, Misbuilt, misbuilt
from armid.studies.kinematics.motions import (
    Room,
    StudyMotion,
    room_of,
    stored_motion,
    waypoint_motion,
)
from armid.studies.kinematics.pieces import MotionTask, SearchTask, motion_estimates, search_motion
from armid.studies.kinematics.recordings import SENSED_FRICTION, carry_out, payload_body, record_runs
from armid.threads import one_blas_thread
from armid.unfinished import UnfinishedWork
from armid.words import choice

_PUBLISHED_PAYLOAD = 3.28
"""[kg] of [Kolyubin2017] section 4.5."""

NOMINAL, CALIBRATED = "nominal kinematics", "calibrated kinematics"
_MOTION_LABELS = ("RP", "OT")

Progress = Callable[[str, float], None]
"""(what is being done, share of the work done before it)."""


@one_blas_thread
def study(
    robot: str | Path | Robot = PUBLISHED_ARM,
    *,
    correction: str | Path | None = None,
    trajectories: Sequence[str | Path] = (),
    motions: int = 4,
    repetitions: int = 3,
    seconds: float = 25.0,
    starts: int = 1,
    poses: int = 17,
    variation: float = 0.2,
    payload_kg: float | None = None,
    torques: str | TorqueSide = TorqueSide.BOTH,
    cutoff_hz: float = 10.0,
    seed: int = 0,
    out: str | Path | None = None,
    cluster: Cluster = None,
    progress: Callable[[str], None] | None = None,
) -> Study:
    """What calibrated kinematics and an optimised motion do to the dynamic parameters, on the embedded robot.

    [Kolyubin2017]'s study: an arm that is not built as described is calibrated, moved through random way-points and along an
    optimised motion, recorded again and again, and identified with nominal and with calibrated kinematics.

    Args:
        robot: URDF or YAML path, catalogue name, or a robot; with inertial parameters.
        correction: how the real arm deviates (`correction.json`); published for the LWR4+, else drawn.
        trajectories: optimised motions of `armid design` instead of a search.
        motions: of each kind.
        repetitions: recordings of each motion, each identified by itself.
        seconds: length of the motions.
        starts: random starts of each search.
        poses: measured for the calibration.
        variation: of inertias and friction from their description, relative.
        payload_kg: carried in half of the runs; none at zero; 3.28 for the LWR4+, else none, when None.
        torques: where torque is measured: link, motor or both (model 2 of the paper).
        cutoff_hz: low-pass on motion and torque.
        seed: of everything random.
        out: folder the study will be saved to. The calibration, finished searches and recordings are kept there at once:
            killed and called again with the same arguments, only what is missing is done. Saving the study ends the keeping.
        cluster: where searches run, and motions are recorded and identified: `local[:N]`, a scheduler's address, a Dask client;
            None for here. Of searches on a cluster nothing is kept before the recordings.
        progress: told what is being done.

    Raises:
        ArmidError: a stage refuses to go on, with the reason.
    """
    refuse_inputs_within(out, (robot, correction, *trajectories))
    settings = StudySettings(
        motions=motions,
        repetitions=repetitions,
        seconds=seconds,
        starts=starts,
        trajectories=tuple(Path(path) for path in trajectories),
        poses=poses,
        variation=variation,
        payload=payload_kg,
        torques=choice("torques", torques, TorqueSide),
        cutoff=cutoff_hz,
        correction=None if correction is None else Path(correction),
        seed=seed,
    )
    arm = robot if isinstance(robot, Robot) else load_robot(robot)

    def tell(text: str, share: float) -> None:
        if progress is not None:
            progress(f"{100 * share:.0f} %: {text}")

    return run_study(arm, settings, progress=tell, out=out, cluster=cluster)


def run_study(
    robot: Robot,
    settings: StudySettings,
    *,
    progress: Progress = lambda _text, _share: None,
    out: str | Path | None = None,
    cluster: Cluster = None,
) -> Study:
    """The whole study; the same seed gives the same numbers.

    Args:
        robot: as described, with inertial parameters.
        settings: what is compared.
        progress: told what is being done, and how much of the work is behind.
        out: folder in which the calibration, finished searches and recordings are kept; none when None.
        cluster: see `study`.

    Raises:
        ArmidError: a stage refuses to go on, with the reason.
    """
    seed = settings.seed
    files = (
        *input_of(settings.correction, "correction"),
        *(file for path in settings.trajectories for file in input_of(path, "trajectory")),
    )
    question = {"robot": robot, "meshes": mesh_files(robot), "settings": settings, "files": files}
    kept = UnfinishedWork(out, Study.__name__, question)
    real = misbuilt(robot, settings.correction, np.random.default_rng([seed, 11]))
    specimen = varied(real.robot, settings.variation, np.random.default_rng([seed, 12]))
    payloads = payloads_of(robot, settings)
    effects = Effects(
        viscous=True,
        coulomb=True,
        offset=True,
        rotor_inertia=settings.torques is not TorqueSide.LINK,
        torques=settings.torques,
        payload=PayloadRuns.BOTH if len(payloads) > 1 else PayloadRuns.NONE,
    )
    room = room_of(_with_payload(robot, payloads[-1]))
    stored = [stored_motion(room, path) for path in settings.trajectories]
    progress("measuring poses and calibrating", 0.0)
    kinematics = _kept_step(robot, real, settings, kept)
    base = described_base(robot, effects)
    beliefs = (Belief(NOMINAL, NOMINAL_LABEL, robot), Belief(CALIBRATED, "ID", kinematics.robot))
    with open_workers(cluster, progress=lambda text: progress(text, 0.05)) as workers:
        motions, trajectory = _all_motions(room, settings, stored, workers, kept)
        tasks = [
            MotionTask(
                robot=robot,
                specimen=specimen,
                payloads=payloads,
                settings=settings,
                beliefs=beliefs,
                base=base,
                effects=effects,
                motion=motion,
                place=(m, k),
                repetitions=tuple(range(settings.repetitions)),
            )
            for m, kind in enumerate(motions)
            for k, motion in enumerate(kind)
        ]
        found = _all_estimates(tasks, workers, kept)
        count, retries = workers.count, workers.retries
    fits = [found[: len(motions[0])], found[len(motions[0]) :]]
    progress("moving the simulated arm: held-out motion", 0.9)
    held_out = record_runs(
        robot, carry_out(robot, specimen, trajectory, payloads), settings.cutoff, [seed, len(motions)]
    )
    cases: list[Case] = []
    for which, belief in enumerate(beliefs):
        for kind, label, made in zip(motions, _MOTION_LABELS, fits, strict=True):
            own = [[run[which] for run in repeats] for repeats in made]
            cases.append(compare_runs(belief, (kind[0].name, label), base, effects, own, held_out))
    truth = _true_values(specimen, payloads[-1], base, effects)
    test = runs_of(held_out, robot, effects)
    units = test[0].source.space.units  # type: ignore[attr-defined]
    a, b, c, d = cases
    return Study(
        robot=robot,
        settings=settings,
        real=real,
        effects=effects,
        base=base,
        units=tuple(units[i] for i in base.independent),
        truth=truth,
        essential=_essential_parameters(robot, effects, held_out, base, truth),
        kinematics=kinematics,
        motions=motions,
        cases=(a, b, c, d),
        held_out=held_out,
        torque=np.vstack([run.y for run in test]),
        notes=(*real.notes, *kinematics.notes, *kept.notes),
        workers=count,
        retries=retries,
        provenance=Provenance(
            inputs=(
                InputFile(robot.source.path, robot.source.sha256, "robot"),
                *files,
            ),
            settings=settings.as_dict(),
            seed=seed,
        ),
    )


def _kept_step(robot: Robot, real: Misbuilt, settings: StudySettings, kept: UnfinishedWork) -> KinematicStep:
    """The calibration; that of an interrupted study is not done again."""
    stored = kept.get(_CALIBRATION)
    if stored is not None:
        what = "the calibration of an interrupted study"
        found: KinematicStep = restored(kept.path or what, stored, stored_step, what)
        return found
    found = kinematic_step(
        robot,
        real,
        count=settings.poses,
        position_noise=settings.position_noise,
        orientation_noise=settings.orientation_noise,
        seed=settings.seed,
    )
    kept.put(_CALIBRATION, found.as_dict())
    return found


_CALIBRATION = "calibration"


def payloads_of(robot: Robot, settings: StudySettings) -> tuple[FloatArray | None, ...]:
    """What the runs carry: nothing, and the payload if there is one."""
    mass = settings.payload
    if mass is None:
        mass = _PUBLISHED_PAYLOAD if robot.source.path == f"catalogue:{PUBLISHED_ARM}" else 0.0
    return (None, payload_body(mass)) if mass > 0.0 else (None,)


def _with_payload(robot: Robot, payload: FloatArray | None) -> Robot:
    """The arm with the payload as part of its last link, for torque limits."""
    if payload is None:
        return robot
    values = robot.inertial.copy()
    values[-10:] += payload
    return robot.with_inertial(values)


def _all_motions(
    room: Room, settings: StudySettings, stored: Sequence[StudyMotion], workers: Workers, kept: UnfinishedWork
) -> tuple[tuple[tuple[StudyMotion, ...], tuple[StudyMotion, ...]], Trajectory]:
    """Through way-points and optimised, equally long; and the motion held out.

    That one is of slower harmonics from a search of its own, and never rests. At rest a joint sticks with any friction up to
    the Coulomb torque, which no model here predicts and which would hide what kinematics and excitation change.
    """
    tasks = [
        SearchTask(
            room=room,
            seconds=settings.seconds,
            starts=settings.starts,
            harmonics=settings.harmonics,
            seed=settings.seed + _STRIDE * k,
            name=f"search {k + 1}",
        )
        for k in range(0 if stored else settings.motions)
    ]
    held_out = SearchTask(
        room=room,
        seconds=settings.seconds,
        starts=1,
        harmonics=_HELD_OUT_HARMONICS,
        seed=settings.seed + _STRIDE * (settings.motions + 1),
        name="search of the held-out motion",
    )
    # Elsewhere there is no folder: what is kept of a search is kept by those done here.
    search = partial(search_motion, kept=kept) if isinstance(workers, InProcess) else search_motion
    try:
        *searched, last = in_order(workers, search, [*tasks, held_out], "searches for motions")
    except InfeasibleError:
        kept.drop()
        raise
    best = [*stored, *searched]
    seconds = best[0].trajectory.duration
    by_chance = tuple(waypoint_motion(room, seconds, [settings.seed, k]) for k in range(settings.motions))
    return (by_chance, tuple(best)), last.trajectory


_STRIDE = 1000
"""Between seeds of the searches of one study, so that studies with neighbouring seeds share none."""


def _all_estimates(
    tasks: Sequence[MotionTask], workers: Workers, kept: UnfinishedWork
) -> list[list[list[RunEstimate]]]:
    """Estimates by motion, recording and belief; what is kept is not done again."""
    out: list[dict[int, list[RunEstimate]]] = [{} for _ in tasks]
    for task, own in zip(tasks, out, strict=True):
        for repetition in task.repetitions:
            stored = kept.get(_recording_name(task, repetition))
            if stored is not None:
                what = "recordings of an interrupted study"
                own[repetition] = restored(kept.path or what, stored, _estimates_of, what)
    missing = [tuple(r for r in task.repetitions if r not in own) for task, own in zip(tasks, out, strict=True)]
    left = [k for k, repetitions in enumerate(missing) if repetitions]
    todo = [replace(tasks[k], repetitions=missing[k]) for k in left]
    for number, answer in workers.map(motion_estimates, todo, label="motions recorded and identified"):
        k = left[number]
        for repetition, found in zip(missing[k], answer, strict=True):
            out[k][repetition] = found
            estimates = [[one.standard.tolist(), one.deviations.tolist()] for one in found]
            kept.put(_recording_name(tasks[k], repetition), {"estimates": estimates})
    return [[own[repetition] for repetition in task.repetitions] for task, own in zip(tasks, out, strict=True)]


def _recording_name(task: MotionTask, repetition: int) -> str:
    return f"recording {task.place[0]} {task.place[1]} {repetition}"


def _estimates_of(stored: dict[str, Any]) -> list[RunEstimate]:
    return [RunEstimate(np.array(a, dtype=float), np.array(b, dtype=float)) for a, b in stored["estimates"]]


_HELD_OUT_HARMONICS = 5


def _true_values(specimen: Robot, payload: FloatArray | None, base: BaseParameters, effects: Effects) -> FloatArray:
    """The described arm's combinations of the real arm's parameters, shape [r]."""
    plant = build_plant(specimen, payload=payload, sensed_friction=SENSED_FRICTION)
    truth = true_parameters(plant, effects.torques)
    return np.asarray(base.projection @ np.array([truth[name] for name in base.parameters]))


def _essential_parameters(
    robot: Robot, effects: Effects, held_out: Samples, base: BaseParameters, truth: FloatArray
) -> npt.NDArray[np.bool_]:
    """Which base parameters matter in the held-out motion; see `ESSENTIAL`."""
    runs = runs_of(held_out, robot, effects)
    rows = np.vstack([evaluate_rows(run.source, run.inputs) for run in runs])[:, :, base.independent] * truth
    torque = np.vstack([run.y for run in runs])
    share = np.sqrt((rows**2).mean(axis=0)) / np.sqrt((torque**2).mean(axis=0))[:, np.newaxis]
    return np.asarray(share.max(axis=0) > ESSENTIAL)
