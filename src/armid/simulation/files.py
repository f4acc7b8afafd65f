"""Experiments to files, one after the other or in parallel processes."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from armid.arrays import FloatArray
from armid.folders import answer_folder
from armid.notes import Note
from armid.robot.robot import Robot
from armid.simulation.motions import CommandedMotion
from armid.simulation.scenario import Experiment, Scenario, run_scenario
from armid.simulation.truth import write_true_motion, write_truth
from armid.simulation.writers import SUFFIXES, LogFormat, write_log


def write_experiment(
    experiment: Experiment, directory: Path, *, formats: Sequence[LogFormat] = (LogFormat.CSV,), name: str = "log"
) -> list[Path]:
    """Writes the log in every wanted format, `<name>.truth.json` and `<name>.truth.npz`.

    Returns:
        The files, logs first.
    """
    with answer_folder(directory, f"simulation {name} {' '.join(formats)}"):
        files = [write_log(experiment.log, directory / f"{name}{SUFFIXES[kind]}", kind) for kind in formats]
        files.append(write_truth(experiment, directory / f"{name}.truth.json"))
        files.append(write_true_motion(experiment, directory / f"{name}.truth.npz"))
    return files


@dataclass(frozen=True, eq=False, kw_only=True)
class Job:
    """One experiment to run and write.

    Args:
        robot: as declared.
        motion: commanded.
        scenario: everything else.
        directory: where files go.
        name: their stem.
        formats: of the log.
        start: where the arm stands at rest, shape [n_joints]; None when it is already in the motion's first state.
    """

    robot: Robot
    motion: CommandedMotion
    scenario: Scenario
    directory: Path
    name: str = "log"
    formats: tuple[LogFormat, ...] = (LogFormat.CSV,)
    start: FloatArray | None = None


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """One run in short.

    Args:
        events: what happened on the way.
        samples: logged.
        duration: of the motion as far as it was carried out [s].
        commanded: duration of the motion asked for [s].
        files: that were written, logs first; none while it is only in memory.
    """

    events: tuple[Note, ...]
    samples: int
    duration: float
    commanded: float
    files: tuple[Path, ...] = ()


def record_of(experiment: Experiment, commanded: float, files: Sequence[Path] = ()) -> RunRecord:
    """An experiment in short; `commanded` is how long its motion should have taken [s]."""
    return RunRecord(
        events=experiment.run.faults,
        samples=len(experiment.log),
        duration=float(experiment.run.time[-1]),
        commanded=commanded,
        files=tuple(files),
    )


def _run_job(job: Job) -> RunRecord:
    """Runs one experiment and writes it."""
    experiment = run_scenario(job.robot, job.motion, job.scenario, start=job.start)
    files = write_experiment(experiment, job.directory, formats=job.formats, name=job.name)
    return record_of(experiment, job.motion.duration, files)


def run_jobs(jobs: Sequence[Job], *, processes: int = 1) -> list[RunRecord]:
    """Runs experiments, several at a time when asked; the outcome does not depend on how many."""
    if processes <= 1 or len(jobs) <= 1:
        return [_run_job(job) for job in jobs]
    # A fresh interpreter per worker: forking one that has started threads is not safe.
    with ProcessPoolExecutor(min(processes, len(jobs)), mp_context=get_context("spawn")) as pool:
        return list(pool.map(_run_job, jobs))
