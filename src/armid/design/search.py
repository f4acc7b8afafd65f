"""Many starts in parallel processes, the best certified motion at any time.

First a modest motion is sketched and certified, so that there is one within seconds; then random starts are explored; then
the best are polished and certified; then good ones are shaken and descend again, and what comes out better is polished too. A
search with a given number of starts repeats exactly for a seed, and makes no sketch; one with a time budget does as many of
the same starts as the machine manages. Finished starts can be kept in a file, from which a killed search goes on.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from multiprocessing.connection import Connection, wait
from typing import Any
from uuid import uuid4

from armid.cluster.workers import open_workers
from armid.design.candidate import Candidate, Task, Work, Workshop, better
from armid.design.candidate_values import candidate_of, candidate_values
from armid.design.excitation import ExcitationProblem
from armid.documents import restored
from armid.errors import ArmidError, InputError
from armid.motions.basis import Basis
from armid.threads import without_script
from armid.unfinished import UnfinishedWork


@dataclass(frozen=True, slots=True)
class Budget:
    """How long to search.

    Args:
        seconds: of wall time; None for no limit.
        starts: random starts to explore; None for as many as time allows. At least one of the two is needed.
        workers: processes; 1 works in this one.
        cluster: where motions are searched instead; see `armid.cluster`.
    """

    seconds: float | None = 60.0
    starts: int | None = None
    workers: int = 2
    cluster: Any = None

    def __post_init__(self) -> None:
        if self.seconds is None and self.starts is None:
            raise InputError("budget", "a search without end", "give --search-seconds, or --starts")
        if self.seconds is not None and not self.seconds > 0.0:
            raise InputError("budget", f"{self.seconds} s", "must be positive")
        if self.starts is not None and self.starts < 1:
            raise InputError("budget", f"{self.starts} starts", "at least one is needed; none given: as time allows")
        if self.workers < 1:
            raise InputError("budget", f"{self.workers} workers", "at least one is needed")


@dataclass(frozen=True, slots=True)
class Progress:
    """What a display may show.

    Args:
        seconds: since the start.
        explored, polished: how many so far.
        best: condition number of the best certified motion; infinite before there is one.
        objective: its objective.
    """

    seconds: float
    explored: int
    polished: int
    best: float
    objective: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Search:
    """What a search found.

    Args:
        best: certified if any is; otherwise the one that misses least.
        explored, polished: how many motions.
        evaluations: of value and gradient together.
        seconds: wall time.
        history: seconds and condition number at every improvement.
        pool: good motions, best first, to go on from.
        interrupted: whether a key press ended it.
        workers, retries: of the cluster.
    """

    best: Candidate
    explored: int
    polished: int
    evaluations: int
    seconds: float
    history: tuple[tuple[float, float], ...]
    pool: tuple[Candidate, ...]
    interrupted: bool = False
    workers: int = 1
    retries: int = 0


_EXPLORING = 0.35
"""Share of the time for random starts."""


_EXPLORED = 0.5
"""Share of the time by which a random start is taken as it is: on a slow machine the rest goes into one that fits."""


_FIRST_POLISH = 0.08
"""After this share one motion is polished, so that there is a certified one early."""


_FIRST_CHOICE = 5
"""Explored motions polished before good ones are shaken."""


_NEAR = 0.04
"""A shaken motion is polished when its objective comes this close to the best explored one (4 % of a condition number)."""


_POOL = 8
"""Explored motions kept for polishing."""


_DRAWN_IN = 3
"""Motions that are made smaller when none fits as it is."""


_LAST_RESORT = 2.0
"""[s] for each of them."""


_POLISHED_WITHOUT_TIME = 4
"""Motions polished when a number of starts, not time, ends the search."""


@dataclass(eq=False, kw_only=True)
class SearchState:
    """What has been done and what to do next.

    Args:
        budget: how long.
        families: how many bases there are.
        next_start, first_start: number of the next random start, and of the first one.
        began: [s since the epoch]; earlier by the time a killed search took before.
        explored, polished: finished motions.
        done: starts whose exploring is finished.
        taken: starts that are polished or being polished.
        in_hand: those being polished; a killed search polishes them again.
        history: seconds and condition number at every improvement.
        evaluations: of value and gradient together.
        waited: for the first process to be ready [s].
        sketch: a modest motion that is certified before any start is explored; None before it is there, or when none fits.
        sketching: whether one has been asked for.
        forgotten: how many explored and polished motions of a killed search are not in the lists: worse than what is.
        cluster: workers and retries of one.
    """

    budget: Budget
    families: int
    next_start: int = 0
    began: float = field(default_factory=time.time)
    explored: list[Candidate] = field(default_factory=list)
    polished: list[Candidate] = field(default_factory=list)
    done: set[int] = field(default_factory=set)
    taken: set[int] = field(default_factory=set)
    in_hand: set[int] = field(default_factory=set)
    history: list[tuple[float, float]] = field(default_factory=list)
    evaluations: int = 0
    first_start: int = 0
    waited: float = 0.0
    sketch: Candidate | None = None
    sketching: bool = False
    forgotten: tuple[int, int] = (0, 0)
    cluster: tuple[int, int] = (1, 0)

    @property
    def counts(self) -> tuple[int, int]:
        """Explored and polished motions."""
        return len(self.explored) + self.forgotten[0], len(self.polished) + self.forgotten[1]

    @property
    def elapsed(self) -> float:
        return time.time() - self.began

    @property
    def share(self) -> float:
        """Part of the time that is gone; zero without a time limit."""
        return self.elapsed / self.budget.seconds if self.budget.seconds else 0.0

    @property
    def deadline(self) -> float:
        return self.began + self.budget.seconds if self.budget.seconds else float("inf")

    @property
    def best(self) -> Candidate | None:
        """What there is to run now: the best polished motion, or the sketch."""
        found = [c for c in (self.sketch, *self.polished) if c is not None]
        return reduce(better, found) if found else None

    def waiting(self) -> list[Candidate]:
        """Explored motions not yet polished, best first."""
        left = [c for c in self.explored if c.start not in self.taken]
        return sorted(left, key=lambda c: (c.objective, c.start))

    def task(self) -> Task | None:
        """The next piece of work; None when there is none to hand out."""
        if self.share >= 1.0:
            return None
        if self.budget.starts is not None:
            return self._counted()
        if not self.sketching:
            self.sketching = True
            return Task(work=Work.SKETCH, start=self.next_start, family=0, deadline=self.deadline)
        if self.share < _EXPLORING and not (self.share > _FIRST_POLISH and not self.taken and self.explored):
            return self._explore()
        return self._improve()

    def _counted(self) -> Task | None:
        assert self.budget.starts is not None
        self._skip_done()
        if self.next_start - self.first_start < self.budget.starts:
            return self._explore()
        # Polishing waits until every start is explored, so that the choice does not depend on who finished first.
        if len(self.done) < self.budget.starts or len(self.taken) >= _POLISHED_WITHOUT_TIME:
            return None
        return self._polish()

    def _skip_done(self) -> None:
        while self.next_start in self.done:
            self.next_start += 1

    def _fresh_start(self) -> int:
        self._skip_done()
        self.next_start += 1
        return self.next_start - 1

    def _explore(self) -> Task:
        start, deadline = self._fresh_start(), self.deadline
        if self.budget.starts is None and self.budget.seconds and self.share < _EXPLORING:
            deadline = self.began + _EXPLORED * self.budget.seconds
        return Task(work=Work.EXPLORE, start=start, family=start % self.families, deadline=deadline)

    def _polish(self) -> Task | None:
        waiting = self.waiting()
        if not waiting:
            return None
        chosen = waiting[0]
        self.taken.add(chosen.start)
        self.in_hand.add(chosen.start)
        return Task(
            work=Work.POLISH,
            start=chosen.start,
            family=chosen.family,
            origin=chosen.coefficients,
            deadline=self.deadline,
        )

    def _improve(self) -> Task | None:
        """Polish while something promising waits; otherwise shake a good motion."""
        waiting, best = self.waiting(), self.best
        if len(self.taken) < _FIRST_CHOICE or best is None:
            return self._polish() or self._explore()
        # A shaken motion is worth polishing when exploring alone brought it near the best explored one so far.
        reference = min(c.objective for c in self.explored)
        if waiting and waiting[0].objective < reference + _NEAR:
            return self._polish()
        good = sorted((c for c in self.polished if c.feasible), key=lambda c: c.objective) or [best]
        start = self._fresh_start()
        origin = good[start % min(3, len(good))]
        return Task(
            work=Work.HOP, start=start, family=origin.family, origin=origin.coefficients, deadline=self.deadline
        )

    def record(self, task: Task, result: Candidate) -> None:
        """Takes in a finished piece of work."""
        self.evaluations += result.evaluations
        if task.work in (Work.EXPLORE, Work.HOP):
            self.explored.append(result)
            self.done.add(task.start)
            return
        before = self.best
        if task.work is Work.POLISH:
            self.in_hand.discard(task.start)
            self.polished.append(result)
        elif result.feasible:
            self.sketch = result
        best = self.best
        if best is not before and best is not None and best.feasible:
            self.history.append((self.elapsed, best.condition_number))

    def progress(self) -> Progress:
        best = self.best
        good = best is not None and best.feasible
        return Progress(
            self.elapsed,
            *self.counts,
            best.condition_number if good and best else float("inf"),
            best.objective if good and best else float("inf"),
        )

    def values(self) -> dict[str, Any]:
        """All that going on needs: every finished start by its number, the good ones with their motions."""
        ranked = sorted(self.explored, key=lambda c: (c.objective, c.start))
        good = {c.start: c for c in (*ranked[:_POOL], *self.waiting()[:_POOL])}
        certified = {c.start: c for c in sorted(self.polished, key=_order)[:_POOL]}
        if self.polished:
            best = reduce(better, self.polished)
            certified[best.start] = best
        return {
            "seconds": self.elapsed,
            "done": sorted(self.done),
            "taken": sorted(self.taken - self.in_hand),
            "counts": self.counts,
            "evaluations": self.evaluations,
            "history": self.history,
            "explored": [candidate_values(c) for c in good.values()],
            "polished": [candidate_values(c) for c in certified.values()],
        }

    def go_on(self, values: Mapping[str, Any], workshop: Workshop) -> None:
        """Takes up where a killed search had come to."""
        self.began = time.time() - float(values["seconds"])
        self.done = {int(start) for start in values["done"]}
        self.taken = {int(start) for start in values["taken"]}
        self.evaluations = int(values["evaluations"])
        self.history = [(float(seconds), float(number)) for seconds, number in values["history"]]
        self.explored = [candidate_of(c) for c in values["explored"]]
        # A certificate is never read: it follows from the motion.
        self.polished = [replace(c, certificate=workshop.proof(c)) for c in map(candidate_of, values["polished"])]
        explored, polished = values["counts"]
        self.forgotten = int(explored) - len(self.explored), int(polished) - len(self.polished)


def _order(candidate: Candidate) -> tuple[bool, float, int]:
    """Of certified motions, best first."""
    return not candidate.feasible, candidate.objective, candidate.start


Watcher = Callable[[Progress], None]


def search(
    problem: ExcitationProblem,
    bases: tuple[Basis, ...],
    budget: Budget,
    *,
    seed: int = 0,
    watch: Watcher | None = None,
    resume: Search | None = None,
    kept: UnfinishedWork | None = None,
    name: str = "search",
) -> Search:
    """Searches for the best motion; a key press (Ctrl-C) ends it with the best so far.

    Args:
        problem: what is asked.
        bases: families of motions, usually one per period to try.
        budget: how long.
        seed: of all random starts.
        watch: called after every finished piece of work.
        resume: an earlier search to go on from.
        kept: where finished starts are kept, and found again after a kill.
        name: of this search among what is kept.
    """
    plan = SearchState(budget=budget, families=len(bases))
    if resume is not None:
        plan.next_start = plan.first_start = 1 + max(c.start for c in resume.pool)
        plan.explored = [replace(c, certificate=None) for c in resume.pool]
    if kept is not None:
        _take_up(plan, kept, name, Workshop(problem, bases, seed))
        watch = _keeping(plan, kept, name, watch)
    interrupted = False
    try:
        if budget.cluster is not None:
            _run_on_cluster(plan, problem, bases, seed, watch)
        elif budget.workers == 1:
            _run_here(plan, Workshop(problem, bases, seed), watch)
        else:
            _run_in_processes(plan, problem, bases, seed, watch)
    except KeyboardInterrupt:
        interrupted = True
    return _finish(plan, Workshop(problem, bases, seed), interrupted)


def _take_up(plan: SearchState, kept: UnfinishedWork, name: str, workshop: Workshop) -> None:
    """Goes on from what is kept of this search, if anything is."""
    if (values := kept.get(name)) is not None:
        restored(kept.path or name, values, lambda found: plan.go_on(found, workshop), "a search that was interrupted")


def _keeping(plan: SearchState, kept: UnfinishedWork, name: str, watch: Watcher | None) -> Watcher:
    """Keeps the search after every finished piece of work, then tells whoever watches."""

    def note(state: Progress) -> None:
        kept.put(name, plan.values())
        if watch is not None:
            watch(state)

    return note


def _finish(plan: SearchState, workshop: Workshop, interrupted: bool) -> Search:
    """The outcome; certifies the best explored motion when nothing was polished in time."""
    best, waiting = plan.best, plan.waiting()
    if not plan.polished and (waiting or best is None):
        # A machine busy with other work may not have come to a single motion in time: one is tried all the same.
        last = Task(work=Work.EXPLORE, start=0, family=0, deadline=time.time() + _LAST_RESORT)
        tried = workshop.certified(waiting[0] if waiting else workshop.do(last))
        tried = workshop.drawn_in(tried, time.monotonic() + _LAST_RESORT)
        if best is None or better(best, tried) is tried:
            best = tried
            plan.history.append((plan.elapsed, best.condition_number))
    assert best is not None
    if not best.feasible:
        near = sorted((c for c in (*plan.polished, best) if c.certificate is not None), key=lambda c: c.objective)
        for candidate in near[:_DRAWN_IN]:
            best = better(best, workshop.drawn_in(candidate, time.monotonic() + _LAST_RESORT))
    ranked = sorted({c.start: c for c in (*plan.polished, best)}.values(), key=_order)
    pool = (*ranked, *(c for c in plan.waiting() if c.start not in {p.start for p in ranked}))[:_POOL]
    explored, polished = plan.counts
    return Search(
        best=best,
        explored=explored,
        polished=polished,
        evaluations=plan.evaluations,
        seconds=plan.elapsed,
        history=tuple(plan.history),
        pool=pool,
        interrupted=interrupted,
        workers=plan.cluster[0],
        retries=plan.cluster[1],
    )


def _run_here(plan: SearchState, workshop: Workshop, watch: Watcher | None) -> None:
    """All work in this process."""
    while (task := plan.task()) is not None:
        plan.record(task, workshop.do(task))
        if watch is not None:
            watch(plan.progress())


@dataclass(frozen=True, eq=False)
class _Piece:
    """A task for a worker of a cluster, with the problem it is about."""

    key: str
    workshop: tuple[ExcitationProblem, tuple[Basis, ...], int]
    task: Task


_AT_HAND: dict[str, Workshop] = {}
"""The workshop of the search that this process worked for last."""


def search_piece(piece: _Piece) -> Candidate:
    """One piece of work, on a worker of a cluster; grids of the same search are kept from piece to piece."""
    if piece.key not in _AT_HAND:
        _AT_HAND.clear()
        _AT_HAND[piece.key] = Workshop(*piece.workshop)
    return _AT_HAND[piece.key].do(piece.task)


def _run_on_cluster(
    plan: SearchState, problem: ExcitationProblem, bases: tuple[Basis, ...], seed: int, watch: Watcher | None
) -> None:
    """Rounds of all tasks there are now; with a time limit as many as keep every worker busy twice."""
    key, workshop = uuid4().hex, (problem, bases, seed)
    with open_workers(plan.budget.cluster) as workers:
        while tasks := _round(plan, 2 * workers.count):
            pieces = [_Piece(key, workshop, task) for task in tasks]
            for k, candidate in workers.map(search_piece, pieces, label="motions"):
                plan.record(tasks[k], candidate)
                plan.cluster = workers.count, workers.retries
                if watch is not None:
                    watch(plan.progress())


def _round(plan: SearchState, most: int) -> list[Task]:
    """Tasks to hand out at once."""
    tasks: list[Task] = []
    while (plan.budget.starts is not None or len(tasks) < most) and (task := plan.task()) is not None:
        tasks.append(task)
    return tasks


def _serve(connection: Connection, problem: ExcitationProblem, bases: tuple[Basis, ...], seed: int) -> None:
    """A worker process: tasks in, candidates out, until the other end closes."""
    import signal

    # The parent decides what a key press means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    workshop = Workshop(problem, bases, seed)
    # On a busy machine the search may be over before this process is ready, or while it works: nobody listens any more.
    with suppress(EOFError, ConnectionError):
        connection.send(None)  # ready: until now this process was loading libraries
        while True:
            connection.send(workshop.do(connection.recv()))


def _run_in_processes(
    plan: SearchState, problem: ExcitationProblem, bases: tuple[Basis, ...], seed: int, watch: Watcher | None
) -> None:
    """Keeps every worker busy with one task; time counts from the first one that is ready."""
    with _workers(plan.budget.workers, problem, bases, seed) as connections:
        asked, busy = time.time(), dict[Connection, Task | None].fromkeys(connections)  # None: still loading libraries
        idle: list[Connection] = []
        while True:
            idle = [connection for connection in idle if not _hand_out(plan, connection, busy)]
            if idle and not any(busy.values()):
                return
            for ready in wait(list(busy)):
                assert isinstance(ready, Connection)
                try:
                    result = ready.recv()
                except (EOFError, ConnectionError):
                    raise ArmidError("a search process died; run with one worker to see why") from None
                task = busy.pop(ready)
                idle.append(ready)
                if task is not None:
                    plan.record(task, result)
                elif not plan.waited:
                    plan.waited = time.time() - asked
                    plan.began += plan.waited
            if watch is not None and (plan.explored or plan.sketch):
                watch(plan.progress())


def _hand_out(plan: SearchState, connection: Connection, busy: dict[Connection, Task | None]) -> bool:
    """Gives a worker its next task; whether there was one."""
    task = plan.task()
    if task is None:
        return False
    connection.send(task)
    busy[connection] = task
    return True


@contextmanager
def _workers(count: int, problem: ExcitationProblem, bases: tuple[Basis, ...], seed: int) -> Iterator[list[Connection]]:
    """Processes of this search, ended with it."""
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(count)]
    processes = []
    with _one_thread_each(), without_script():
        for _, theirs in pipes:
            process = context.Process(target=_serve, args=(theirs, problem, bases, seed), daemon=True)
            process.start()
            theirs.close()
            processes.append(process)
    try:
        yield [ours for ours, _ in pipes]
    finally:
        for ours, _ in pipes:
            ours.close()
        for process in processes:
            process.join(timeout=0.5)
            if process.is_alive():
                process.terminate()


_THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ARMID_THREADS")


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes started meanwhile use one thread each: with one process per core more would only get in the way."""
    before = {name: os.environ.get(name) for name in _THREAD_SETTINGS}
    os.environ.update(dict.fromkeys(_THREAD_SETTINGS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
