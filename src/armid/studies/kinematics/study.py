"""The study from end to end: calibrate, move, record again and again, identify in four ways, compare with the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.estimation.recording import runs_of
from armid.identifiability.base import BaseParameters
from armid.kernels.evaluate import evaluate_rows
from armid.logs.samples import Samples
from armid.motions.trajectory import Trajectory
from armid.motions.trajectory_files import input_of
from armid.outcome import InputFile, Provenance
from armid.parameters.effects import Effects, PayloadRuns, TorqueSide
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.simulation.plant import build_plant
from armid.simulation.truth import true_parameters
from armid.simulation.variation import varied
from armid.studies.kinematics.calibrated import kinematic_step
from armid.studies.kinematics.comparison import ESSENTIAL, Study, StudySettings
from armid.studies.kinematics.estimates import NOMINAL_LABEL, Belief, Case, described_base, identify_case
from armid.studies.kinematics.misbuilt import PUBLISHED_ARM, misbuilt
from armid.studies.kinematics.motions import (
    Room,
    StudyMotion,
    optimised_motion,
    room_of,
    stored_motion,
    waypoint_motion,
)
from armid.studies.kinematics.recordings import SENSED_FRICTION, carry_out, payload_body, record_runs
from armid.threads import one_blas_thread
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
        progress: told what is being done.

    Raises:
        ArmidError: a stage refuses to go on, with the reason.
    """
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

    return run_study(arm, settings, progress=tell)


def run_study(robot: Robot, settings: StudySettings, *, progress: Progress = lambda _text, _share: None) -> Study:
    """The whole study; the same seed gives the same numbers.

    Args:
        robot: as described, with inertial parameters.
        settings: what is compared.
        progress: told what is being done, and how much of the work is behind.

    Raises:
        ArmidError: a stage refuses to go on, with the reason.
    """
    seed = settings.seed
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
    progress("measuring poses and calibrating", 0.0)
    kinematics = kinematic_step(
        robot,
        real,
        count=settings.poses,
        position_noise=settings.position_noise,
        orientation_noise=settings.orientation_noise,
        seed=seed,
    )
    room = room_of(_with_payload(robot, payloads[-1]))
    motions = _compared_motions(room, settings, progress)
    recordings, held_out = _all_recordings(robot, specimen, room, motions, payloads, settings, progress)
    base = described_base(robot, effects)
    beliefs = (Belief(NOMINAL, NOMINAL_LABEL, robot), Belief(CALIBRATED, "ID", kinematics.calibration.robot))
    cases: list[Case] = []
    for belief in beliefs:
        for kind, label, samples in zip(motions, _MOTION_LABELS, recordings, strict=True):
            progress(f"identifying: {belief.name}, {kind[0].name}", 0.7 + 0.075 * len(cases))
            cases.append(identify_case(belief, (kind[0].name, label), base, effects, samples, held_out))
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
        notes=(*real.notes, *kinematics.calibration.notes),
        provenance=Provenance(
            inputs=(
                InputFile(robot.source.path, robot.source.sha256, "robot"),
                *input_of(settings.correction, "correction"),
                *(file for path in settings.trajectories for file in input_of(path, "trajectory")),
            ),
            settings=settings.as_dict(),
            seed=seed,
        ),
    )


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


def _compared_motions(
    room: Room, settings: StudySettings, progress: Progress
) -> tuple[tuple[StudyMotion, ...], tuple[StudyMotion, ...]]:
    """Through way-points and optimised, equally long."""
    best = [stored_motion(room, path) for path in settings.trajectories]
    for k in range(0 if best else settings.motions):
        progress(f"searching for optimised motion {k + 1} of {settings.motions}", 0.05 + 0.3 * k / settings.motions)
        found = optimised_motion(
            room,
            settings.seconds,
            starts=settings.starts,
            harmonics=settings.harmonics,
            seed=settings.seed + _STRIDE * k,
        )
        best.append(found)
    progress("drawing random way-points", 0.35)
    seconds = best[0].trajectory.duration
    return tuple(waypoint_motion(room, seconds, [settings.seed, k]) for k in range(settings.motions)), tuple(best)


_STRIDE = 1000
"""Between seeds of the searches of one study, so that studies with neighbouring seeds share none."""


def _all_recordings(
    robot: Robot,
    specimen: Robot,
    room: Room,
    motions: Sequence[Sequence[StudyMotion]],
    payloads: Sequence[FloatArray | None],
    settings: StudySettings,
    progress: Progress,
) -> tuple[list[list[list[Samples]]], Samples]:
    """Repeated recordings of every motion of both kinds, and one of the held-out motion."""
    out: list[list[list[Samples]]] = [[] for _ in motions]
    total = sum(len(kind) for kind in motions) + 1
    for m, kind in enumerate(motions):
        for k, motion in enumerate(kind):
            done = sum(len(parts) for parts in out) / total
            progress(f"moving the simulated arm: {motion.name} {k + 1} of {len(kind)}", 0.4 + 0.3 * done)
            runs = carry_out(robot, specimen, motion.trajectory, payloads)
            seeds = ([settings.seed, m, k, repetition] for repetition in range(settings.repetitions))
            out[m].append([record_runs(robot, runs, settings.cutoff, seed) for seed in seeds])
    progress("moving the simulated arm: held-out motion", 0.4 + 0.3 * (total - 1) / total)
    trajectory = _held_out_motion(room, settings)
    runs = carry_out(robot, specimen, trajectory, payloads)
    return out, record_runs(robot, runs, settings.cutoff, [settings.seed, len(motions)])


_HELD_OUT_HARMONICS = 5


def _held_out_motion(room: Room, settings: StudySettings) -> Trajectory:
    """Another motion, of slower harmonics from a search of its own: none that is identified from.

    It never rests. At rest a joint sticks with any friction up to the Coulomb torque, which no model here predicts and
    which would hide what kinematics and excitation change.
    """
    seed = settings.seed + _STRIDE * (settings.motions + 1)
    return optimised_motion(room, settings.seconds, starts=1, harmonics=_HELD_OUT_HARMONICS, seed=seed).trajectory


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
