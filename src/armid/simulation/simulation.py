"""The noun of this room: what the embedded robot did, what was logged, and the truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from armid.errors import ArmidError
from armid.logs.log import Log
from armid.notes import Note, Severity
from armid.outcome import Check, Outcome, Provenance
from armid.page import Table
from armid.robot.robot import Robot
from armid.simulation.files import RunRecord, write_experiment
from armid.simulation.postures import PostureExperiment, write_posture_experiment
from armid.simulation.scenario import Experiment, Scenario
from armid.simulation.truth import truth_of
from armid.simulation.writers import LogFormat


class RecordedChannels(StrEnum):
    """What is recorded."""

    LOG = "log"
    """Joint motion and torque along a trajectory."""
    TRACKER = "tracker"
    """Poses of the tool at postures."""
    CONTROLLER_MODEL = "controller-model"
    """Gravity vectors and inertia matrices at postures."""


_COMPLETE = 1.0 - 1e-9
"""Share of a motion that counts as all of it: round-off of its last tick."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Simulation(Outcome):
    """What the embedded robot did.

    Args:
        robot: the arm as described.
        scenario: everything else that was simulated; the first run's seed.
        record: what was recorded.
        runs: every run in short; none at postures.
        experiments: the runs whole: logs, true motion, truth. Only the first when runs were written as they finished.
        postures: what was measured at postures; None along a motion.
        formats: of the logs.
        files: written while it ran; none when all stays in memory.
        wall_seconds: it took.
        notes: warnings.
        provenance: what it came from.
    """

    _page = "armid.report.simulation:simulation_report"

    robot: Robot
    scenario: Scenario
    record: RecordedChannels
    runs: tuple[RunRecord, ...] = ()
    experiments: tuple[Experiment, ...] = ()
    postures: PostureExperiment | None = None
    formats: tuple[LogFormat, ...] = (LogFormat.CSV,)
    files: tuple[Path, ...] = ()
    wall_seconds: float = 0.0
    notes: tuple[Note, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def log(self) -> Log:
        """Of the first run, as it would be read from its file.

        Raises:
            ArmidError: postures have no log.
        """
        return self._first.log

    @property
    def logs(self) -> tuple[Log, ...]:
        """Of every run in memory."""
        return tuple(experiment.log for experiment in self.experiments)

    @property
    def truth(self) -> dict[str, Any]:
        """Of the first run, as plain values: parameters by name, payload, gravity, what is wrong with the log on purpose."""
        return self.postures.truth if self.postures is not None else truth_of(self._first)

    @property
    def _first(self) -> Experiment:
        if not self.experiments:
            raise ArmidError(f"a simulation of {self.record} has no log; record='log' along a motion has")
        return self.experiments[0]

    @property
    def events(self) -> tuple[Note, ...]:
        """What happened on the way, in all runs."""
        return tuple(event for run in self.runs for event in run.events)

    @property
    def duration(self) -> float:
        """Of all runs together [s]."""
        return sum(run.duration for run in self.runs)

    @property
    def samples(self) -> int:
        """Rows of all logs, or postures."""
        return sum(run.samples for run in self.runs) if self.postures is None else len(self.postures.measured.q)

    @property
    def checks(self) -> tuple[Check, ...]:  # type: ignore[override]
        """Every run carried out to its end, and what happened on the way."""
        return tuple(check for k, run in enumerate(self.runs, start=1) for check in _run_checks(run, f"run {k}"))

    def _heading(self) -> str:
        if self.postures is not None:
            return f"{self.robot.name}: {self.record} at {self.samples} postures, seed {self.scenario.seed}"
        speed = self.duration / max(self.wall_seconds, 1e-9)
        runs = f"{len(self.runs)} runs, " if len(self.runs) > 1 else ""
        return (
            f"{self.robot.name}: {runs}{self.duration:.1f} s of motion in {self.wall_seconds:.2f} s ({speed:.0f} times "
            f"real time), seed {self.scenario.seed}"
        )

    def _tables(self) -> tuple[Table, ...]:
        if not self.runs:
            return ()
        rows = tuple((k, run.duration, run.samples, len(run.events)) for k, run in enumerate(self.runs, start=1))
        return (Table(("run", "motion [s]", "samples", "events"), rows, digits=6),)

    def as_dict(self) -> dict[str, Any]:
        along = {"duration": self.duration, "runs": len(self.runs)} if self.postures is None else {}
        return {
            "samples": self.samples,
            **along,
            "seed": self.scenario.seed,
            "events": [event.as_dict() for event in self.events],
            "verdict": str(self.verdict),
            "reasons": list(self.reasons),
            "notes": [note.as_dict() for note in self.notes],
        }

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes every run's log in every format, `log.truth.json` and `log.truth.npz`; `log1...`, `log2...` when several.

        At postures: `poses.csv` or `controller.npz`, and its truth.

        Raises:
            ArmidError: the runs were written elsewhere as they finished and are no longer in memory.
        """
        place = Path(folder)
        if self.postures is not None:
            return write_posture_experiment(self.postures, place)
        if len(self.experiments) < len(self.runs):
            raise ArmidError(f"these runs were written as they finished: {self.files[0].parent} has them")
        return tuple(
            file
            for k, experiment in enumerate(self.experiments)
            for file in write_experiment(
                experiment, place, formats=self.formats, name=log_name(k, len(self.experiments))
            )
        )


def log_name(k: int, runs: int) -> str:
    """Stem of the files of the k-th run, counted from 0."""
    return "log" if runs == 1 else f"log{k + 1}"


def _run_checks(run: RunRecord, subject: str) -> list[Check]:
    share = run.duration / run.commanded
    stopped = [event for event in run.events if event.severity is Severity.ERROR]
    done = Check(
        code="complete",
        passed=not stopped,
        value=share,
        limit=_COMPLETE,
        message="; ".join(f"{event.code}: {event.message}" for event in stopped) or "carried out to its end",
        subject=subject,
    )
    noticed = [
        Check(
            code=event.code,
            passed=False,
            value=share,
            limit=_COMPLETE,
            message=f"{event.code}: {event.message}",
            subject=subject,
            decisive=False,
        )
        for event in run.events
        if event.severity is not Severity.ERROR
    ]
    return [done, *noticed]
