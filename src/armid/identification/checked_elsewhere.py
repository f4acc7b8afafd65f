"""Many recordings read and checked by the workers of a cluster: what is found comes back, the numbers stay in their files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from armid.cluster.tree import group_sizes
from armid.cluster.workers import in_order, open_workers
from armid.errors import ArmidError
from armid.identification.origins import STEP_SHARES
from armid.logs.checked import checked_file, recording_of, referenced
from armid.logs.read import ReadOptions
from armid.logs.recording import Recording, open_recording
from armid.logs.references import CheckedFile
from armid.robot.robot import Robot

Progress = Callable[[str], None]
Opener = tuple[str, Callable[[], Recording]]


_CHECKED_TOGETHER = 4
"""Files in one task, where there are many: its way there and back costs as much as the tenth part of a check."""
_TASKS_EACH = 8
"""Tasks for every worker at least: none waits long for another, and progress is seen."""


@dataclass(frozen=True, eq=False)
class CheckTask:
    """Files to read and check."""

    paths: tuple[str, ...]
    robot: Robot
    options: ReadOptions | None
    fraction: float | None = None


@dataclass(frozen=True, eq=False)
class Refusal:
    """Why a file cannot be used."""

    reason: str


def check_there(task: CheckTask) -> list[CheckedFile | Refusal]:
    """On a worker: what is known of each file."""
    return [_checked(path, task) for path in task.paths]


def _checked(path: str, task: CheckTask) -> CheckedFile | Refusal:
    try:
        return checked_file(path, task.robot, options=task.options, fraction=task.fraction, shares=STEP_SHARES)
    except ArmidError as error:
        return Refusal(str(error))


def checked_openers(
    paths: Sequence[str],
    robot: Robot,
    options: ReadOptions | None,
    cluster: Any,
    progress: Progress,
    fraction: float | None = None,
) -> list[Opener]:
    """Name and opening function of every file, all of them checked.

    A file that not every worker can read is opened, and checked, here.

    Args:
        paths: of the files.
        robot, options: as `open_recording` takes them.
        cluster: see `armid.cluster`.
        progress: told how many are checked.
        fraction: of the time, where they are going to be split; None for not.
    """
    full = [str(Path(path).resolve()) if Path(path).exists() else path for path in paths]
    with open_workers(cluster, progress=progress) as workers:
        seen = [k for k, there in enumerate(workers.sees(full)) if there]
        sizes = group_sizes(len(seen), _CHECKED_TOGETHER, _TASKS_EACH, workers.count)
        places = iter(full[k] for k in seen)
        tasks = [CheckTask(tuple(islice(places, size)), robot, options, fraction) for size in sizes]
        label = "logs checked" if max(sizes, default=1) == 1 else f"groups of {max(sizes)} logs checked"
        answers = in_order(workers, check_there, tasks, label)
    found = dict(zip(seen, chain.from_iterable(answers), strict=True))
    opening = partial(_opened, robot=robot, options=options, fraction=fraction)
    return [(Path(path).name, partial(opening, found.get(k), path)) for k, path in enumerate(paths)]


def opened_for(
    path: str, robot: Robot, options: ReadOptions | None, cluster: Any, fraction: float | None = None
) -> Recording:
    """The only recording, opened and checked here; one too long to be held can be gone through by workers that see its file."""
    recording = open_recording(path, robot, options=options, fraction=fraction)
    full = str(Path(path).resolve())
    if not recording.streamed:
        return recording
    with open_workers(cluster) as workers:
        return referenced(recording, full, options) if workers.sees([full])[0] else recording


def _opened(
    answer: CheckedFile | Refusal | None,
    path: str,
    robot: Robot,
    options: ReadOptions | None,
    fraction: float | None,
) -> Recording:
    if isinstance(answer, Refusal):
        raise ArmidError(answer.reason)
    if answer is None:
        return open_recording(path, robot, options=options, fraction=fraction)
    return recording_of(answer, robot, options=options)
