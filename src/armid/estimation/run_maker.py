"""Recordings to runs: here, or by the workers of a cluster that read them, condition them, and keep the runs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from armid.arrays import FloatArray
from armid.cluster.tree import Plus, group_sizes, tree_sum
from armid.cluster.workers import Kept, Workers, in_order
from armid.estimation.recording import runs_of
from armid.estimation.run import Run
from armid.estimation.runs import Pile, RunsElsewhere, RunShelf
from armid.logs.conditioning import Conditioning, VelocitySource
from armid.logs.log import Channel
from armid.logs.recording import Recording
from armid.logs.references import RecordingReference
from armid.logs.row_groups import RowGroup
from armid.logs.samples import Samples
from armid.notes import Note
from armid.parameters.effects import Effects
from armid.robot.robot import Robot
from armid.rows.friction import Shapes

Told = TypeVar("Told")

CHOICE_SAMPLES = 1 << 15
"""Of conditioned training motion on which velocity, presliding and shapes of friction are chosen: some minutes."""

CHOICE_RECORDINGS = 32
"""On which the same is chosen where there are more: further ones hardly change it, and memory would grow with them."""

_CONTEXT_SECONDS = 8.0
"""Of the neighbouring pieces of a long log: filters, and friction that remembers its path, forget in less."""

_LARGEST_GROUP = 16
"""Recordings in one task: a task costs some milliseconds beside them, and a pass over a log not much more."""

_TASKS_EACH = 4
"""Tasks for every worker in each pass, so that none waits long for another."""

_OPEN = 64
"""Recordings that a worker has open; what was read of all of them together is bounded (`armid.logs.shelf`)."""


def resolved_for(recording: Recording, settings: Conditioning) -> Conditioning:
    """Conditioning of a log that has no recorded velocity where others have one."""
    missing = settings.velocity is VelocitySource.MEASURED and Channel.VELOCITY not in recording
    return replace(settings, velocity=VelocitySource.POSITION) if missing else settings


def pieces_of(
    recording: Recording, settings: Conditioning, *, begin: bool = False, alone: bool = False
) -> Iterator[Samples]:
    """Conditioned samples: the whole at once when it is held in memory, else piece by piece with context.

    Args:
        recording: the log.
        settings: how.
        begin: only the first pieces are wanted.
        alone: the other part of a split is not wanted under these settings.
    """
    own = resolved_for(recording, settings)
    if not recording.streamed:
        yield recording.condition(own, alone=alone)
        return
    yield from recording.samples(own, context=_context(recording, own), begin=begin, alone=alone)


def _context(recording: Recording, settings: Conditioning) -> int:
    """Samples of the neighbouring pieces."""
    return int(_CONTEXT_SECONDS * min(recording.resolved(settings).rate or 100.0, 1e4))


@dataclass(frozen=True, eq=False, kw_only=True)
class RunMaker:
    """How recordings become runs.

    Args:
        robot: the arm.
        effects, shapes: what the rows hold.
        conditioning: resolved.
        gains: of the drives, where currents were measured, shape [n_channels].
    """

    robot: Robot
    effects: Effects
    shapes: Shapes
    conditioning: Conditioning
    gains: FloatArray | None = None

    def runs(self, samples: Samples) -> Iterator[Run]:
        """Of some samples."""
        for run in runs_of(samples, self.robot, self.effects, shapes=self.shapes):
            yield run if self.gains is None else in_torque(run, self.gains)

    def each(self, recording: Recording) -> Iterator[Run]:
        """Of a recording, one after the other."""
        for samples in pieces_of(recording, self.conditioning):
            yield from self.runs(samples)

    def made(self, parts: Sequence[Sequence[Recording]], workers: Workers | None = None) -> Made:
        """All motion of parts of recordings.

        Args:
            parts: such as training and held-out; where these are parts of the same files, a worker makes both at once.
            workers: who make and keep the runs; they are made here when there are none, and put aside when they are too many.
        """
        if workers is None:
            notes = tuple(note for recording in parts[0] for note in self._said(recording))
            return Made(tuple(self._here(part) for part in parts), notes)
        if len(parts) > 1 and not _same_files(parts):
            apart = [self.made([part], workers) for part in parts]
            return Made(tuple(made.runs[0] for made in apart), apart[0].notes)
        return self._elsewhere(parts, workers)

    def _here(self, recordings: Sequence[Recording]) -> Sequence[Run]:
        shelf = RunShelf()
        for recording in recordings:
            for run in self.each(recording):
                shelf.append(run)
        return shelf.runs()

    def _said(self, recording: Recording) -> tuple[Note, ...]:
        """What was found about a recording, and how it is conditioned."""
        return (*recording.notes, *recording.conditioning_notes(resolved_for(recording, self.conditioning)))

    def __call__(self, group: _Rows | Sequence[Sequence[RecordingReference]]) -> Pile:
        """On a worker: the runs of every part of some recordings, or of some rows of a long one."""
        if isinstance(group, _Rows):
            runs = tuple(run for samples in group.rows.samples(self.robot) for run in self.runs(samples))
            return Pile(tuple(runs if k == group.part else () for k in range(group.parts)), group.notes)
        parts: list[list[Run]] = [[] for _ in group[0]]
        notes: list[Note] = []
        for references in group:
            recordings = [_opened(reference, self.robot) for reference in references]
            for own, recording in zip(parts, recordings, strict=True):
                own.extend(self.each(recording))
            notes.extend(self._said(recordings[0]))
        return Pile(tuple(map(tuple, parts)), tuple(notes))

    def _elsewhere(self, parts: Sequence[Sequence[Recording]], workers: Workers) -> Made:
        """Runs that are kept by workers; those of recordings that they cannot read themselves are made here and sent."""
        tasks = self._tasks(list(zip(*parts, strict=True)), workers.count)
        there = [k for k, task in enumerate(tasks) if not isinstance(task, _Alone)]
        kept = dict(zip(there, workers.keep(self, [tasks[k] for k in there], label=_label(tasks)), strict=True))
        piles: list[Kept] = []
        for k, task in enumerate(tasks):
            mine = task.parts if isinstance(task, _Alone) else ()
            piles += [workers.keep(_sent, [made])[0] for made in self._pieces(mine)] if mine else [kept[k]]
        facts = list(workers.each(_facts, piles))
        runs = [RunsElsewhere(workers, piles, [own[part] for own, _ in facts], part=part) for part in range(len(parts))]
        return Made(tuple(runs), tuple(note for _, notes in facts for note in notes))

    def _tasks(self, pairs: Sequence[tuple[Recording, ...]], workers: int) -> list[_Task]:
        """What the parts of every recording are made by: a group of recordings, groups of rows of a long one, or here."""
        tasks: list[_Task] = []
        sizes = iter(groups_of(len(pairs), workers))
        size = 0
        for pair in pairs:
            references = tuple(recording.reference for recording in pair if recording.reference is not None)
            rows = self._rows(pair, workers) if any(recording.streamed for recording in pair) else None
            last = tasks[-1] if tasks else None
            if rows is not None:
                tasks += rows
            elif len(references) < len(pair) or any(recording.streamed for recording in pair):
                tasks.append(_Alone(pair))
            elif isinstance(last, list) and len(last) < size:
                last.append(references)
            else:
                size = next(sizes, 1)
                tasks.append([references])
        return tasks

    def _rows(self, pair: tuple[Recording, ...], workers: int) -> list[_Rows] | None:
        """Groups of rows of every part of a long recording; None where one of the parts is not divided."""
        out: list[_Rows] = []
        for part, recording in enumerate(pair):
            own = resolved_for(recording, self.conditioning)
            found = recording.row_groups(
                own, context=_context(recording, own), size=partial(group_size, workers=workers)
            )
            if found is None:
                return None
            said = self._said(recording) if part == 0 else ()
            out += [_Rows(rows, part, len(pair), () if k else said) for k, rows in enumerate(found)]
        return out

    def _pieces(self, parts: Sequence[Recording]) -> Iterator[Pile]:
        """Runs of a recording made here, one by one: a long one is never whole in memory."""
        notes = self._said(parts[0])
        for k, recording in enumerate(parts):
            for run in self.each(recording):
                yield Pile(tuple((run,) if k == i else () for i in range(len(parts))), notes)
                notes = ()


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of one part of a long recording.

    Args:
        rows: where they are.
        part, parts: which part, of how many.
        notes: on the recording, with the first of its groups.
    """

    rows: RowGroup
    part: int
    parts: int
    notes: tuple[Note, ...]


@dataclass(frozen=True, eq=False)
class _Alone:
    """Parts of a recording that workers cannot read themselves."""

    parts: tuple[Recording, ...]


_Task = list[tuple[RecordingReference, ...]] | _Rows | _Alone


@dataclass(frozen=True, eq=False)
class Made:
    """Runs of parts of recordings.

    Args:
        runs: of every part.
        notes: on the recordings of the first part and how they were conditioned.
    """

    runs: tuple[Sequence[Run], ...]
    notes: tuple[Note, ...]


def _label(tasks: Sequence[_Task]) -> str:
    """Of the progress."""
    sizes = [len(task) for task in tasks if isinstance(task, list)]
    if any(isinstance(task, _Rows) for task in tasks):
        return "groups of logs and rows conditioned" if sizes else "groups of rows conditioned"
    return "logs conditioned" if max(sizes, default=1) == 1 else f"groups of {max(sizes)} logs conditioned"


def groups_of(recordings: int, workers: int) -> list[int]:
    """Recordings that a worker goes through in every task: fewer tasks cost less, but every worker is to have several.

    Sums of groups are branches of the tree of all.
    """
    return group_sizes(recordings, _LARGEST_GROUP, _TASKS_EACH, workers)


def group_size(pieces: int, workers: int) -> int:
    """Pieces of a long recording in one task."""
    return groups_of(pieces, workers)[0]


def in_torque(run: Run, gains: FloatArray) -> Run:
    """A run whose measured currents are multiplied by the gains of their drives, shape [n_channels]."""
    return replace(run, y=run.y * gains, y_raw=None if run.y_raw is None else run.y_raw * gains)


def choice_runs(
    robot: Robot, choice: Sequence[Samples], effects: Effects, shapes: Shapes, gains: FloatArray | None = None
) -> tuple[Run, ...]:
    """The motion that choices rest on as runs; arguments as for `RunMaker`."""
    runs = [run for samples in choice for run in runs_of(samples, robot, effects, shapes=shapes)]
    return tuple(runs) if gains is None else tuple(in_torque(run, gains) for run in runs)


def _same_files(parts: Sequence[Sequence[Recording]]) -> bool:
    """Whether the recordings at one place in every part are of one file."""
    if len({len(part) for part in parts}) > 1:
        return False
    files = ([None if r.reference is None else r.reference.checked for r in own] for own in zip(*parts, strict=True))
    return all(all(file is own[0] for file in own) for own in files)


def _sent(pile: Pile) -> Pile:
    return pile


def _facts(pile: Pile) -> tuple[list[list[int]], tuple[Note, ...]]:
    """Samples of every run by part, and the notes."""
    return [[len(run) for run in part] for part in pile.parts], pile.notes


_recordings: OrderedDict[tuple[str, Robot], Recording] = OrderedDict()
"""Open on this worker, by file (and how it is read) and robot; the longest unused is closed."""


def _opened(reference: RecordingReference, robot: Robot) -> Recording:
    """A recording on a worker; parts of one file share what was read of it."""
    file = reference.checked
    key = (f"{file.source} {file.facts.source.files} {reference.options}", robot)
    whole = _recordings.pop(key, None) or RecordingReference(checked=file, options=reference.options).opened(robot)
    _recordings[key] = whole
    while len(_recordings) > _OPEN:
        _recordings.popitem(last=False)
    return reference.of(whole)


@dataclass(frozen=True, eq=False)
class _Beginning:
    """On a worker: conditioned samples from the beginning of a recording.

    Args:
        robot: the arm.
        settings: resolved.
        share: samples after which no further piece is added.
    """

    robot: Robot
    settings: Conditioning
    share: int

    def __call__(self, reference: RecordingReference) -> list[Samples]:
        return list(_first_pieces(_opened(reference, self.robot), self.settings, self.share, alone=True))


@dataclass(frozen=True, eq=False)
class _OfBeginning:
    """On a worker: what a function tells of conditioned samples from the beginning of a recording."""

    begin: _Beginning
    told: Callable[[Sequence[Samples]], Any]

    def __call__(self, reference: RecordingReference) -> Any:
        return self.told(self.begin(reference))


def _first_pieces(
    recording: Recording, settings: Conditioning, share: int, *, alone: bool = False
) -> Iterator[Samples]:
    """Samples from the beginning, up to the piece with which there are enough."""
    count = 0
    for piece in pieces_of(recording, settings, begin=True, alone=alone):
        yield piece
        count += len(piece)
        if count >= share:
            return


def choice_samples(
    recordings: Sequence[Recording], settings: Conditioning, workers: Workers | None = None
) -> tuple[Samples, ...]:
    """Training motion in memory: of `CHOICE_RECORDINGS` at most, their shares of `CHOICE_SAMPLES` from the beginning.

    Args:
        recordings: of the training.
        settings: resolved.
        workers: who read and condition what they can.
    """
    chosen = _evenly_chosen(recordings)
    share = _share_of(chosen)
    far = {k: r.reference for k, r in enumerate(chosen) if r.reference is not None and not r.streamed}
    found: dict[int, list[Samples]] = {}
    if workers is not None and far:
        begin = _Beginning(chosen[0].robot, settings, share)
        found = dict(zip(far, in_order(workers, begin, list(far.values()), "samples for choices"), strict=True))
    return tuple(
        piece
        for k, recording in enumerate(chosen)
        for piece in (found[k] if k in found else _first_pieces(recording, settings, share))
    )


def choice_sum(
    recordings: Sequence[Recording],
    settings: Conditioning,
    told: Callable[[Sequence[Samples]], Told],
    plus: Plus[Told],
    *,
    known: Sequence[Samples] | None = None,
    workers: Workers | None = None,
) -> Told:
    """The sum of what a function tells of the samples of `choice_samples`, recording by recording, along one tree.

    Workers that can read all of these recordings condition them and go through them; only the sum comes back. Here each piece is
    let go when it has been looked at.

    Args:
        recordings, settings, workers: as for `choice_samples`.
        told: of the samples of one recording, or of a piece of a long one; picklable.
        plus: picklable.
        known: the samples, where they are in memory already.
    """
    chosen = _evenly_chosen(recordings)
    share = _share_of(chosen)
    far = [r.reference for r in chosen if r.reference is not None and not r.streamed]
    if workers is not None and len(far) == len(chosen):
        return workers.summed(_OfBeginning(_Beginning(chosen[0].robot, settings, share), told), far, plus)
    made = (piece for recording in chosen for piece in _first_pieces(recording, settings, share, alone=True))
    return tree_sum((told((piece,)) for piece in (made if known is None else known)), plus)


def _share_of(chosen: Sequence[Recording]) -> int:
    """Samples of each recording that choices rest on."""
    return max(CHOICE_SAMPLES // len(chosen), 1)


def _evenly_chosen(recordings: Sequence[Recording]) -> list[Recording]:
    """At most `CHOICE_RECORDINGS` of them, in order: of every payload its share, and one at least."""
    if len(recordings) <= CHOICE_RECORDINGS:
        return list(recordings)
    groups: dict[float | None, list[int]] = {}
    for k, recording in enumerate(recordings):
        groups.setdefault(recording.conditions.payload, []).append(k)
    kept: list[int] = []
    for own in groups.values():
        count = max(1, CHOICE_RECORDINGS * len(own) // len(recordings))
        kept += [own[k * len(own) // count] for k in range(count)]
    return [recordings[k] for k in sorted(kept)]
