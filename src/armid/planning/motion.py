"""The noun of this room: a planned motion and what it uses of every limit."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from armid.motions.limits import MotionLimits
from armid.motions.sample_table import save_csv
from armid.motions.trajectory import SampledTrajectory, grid
from armid.motions.trajectory_files import save_joint_trajectory, save_trajectory
from armid.notes import Note
from armid.outcome import Check, Outcome, Provenance
from armid.page import Table
from armid.planning.confidence import DRAWS
from armid.planning.model import TorqueModel
from armid.planning.path import Path
from armid.planning.reduced import ReducedDynamics
from armid.planning.time_law import PathTrajectory
from armid.planning.timing import SpeedProfile
from armid.planning.usage import Usage

UNVALIDATED = "UNVALIDATED"
"""Part of the name of every file that rests on a result that is not to be trusted."""

HELD = 1e-9
"""Relative excess of a limit that counts as holding it: round-off."""

_FILE_RATE_HZ = 1000.0
"""Of sampled files, unless something else is asked for: what arm controllers take."""

_SAMPLING = 3.0
"""Standard deviations of a share of `DRAWS` draws by which it may differ from the probability asked for."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PlanSettings:
    """How to plan.

    Args:
        points: grid of the path for torque, acceleration, collisions and positions.
        jerk_points: grid of the jerk-limited motion.
        limits: to use instead of the robot's own.
        confidence: probability with which all torque limits shall hold given the parameters' covariance; None takes the
            expected values at their word.
        margin: share of every limit but positions that is left unused.
        seed: of the drawn parameters.
    """

    points: int = 1000
    jerk_points: int = 300
    limits: MotionLimits | None = None
    confidence: float | None = None
    margin: float = 0.0
    seed: int = 0


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Plan(Outcome):
    """A planned motion.

    Args:
        path: what it follows.
        model: what it was planned with.
        limits: that hold, margins taken off.
        trajectory: the motion.
        profile: fastest speed over the path without jerk limits, and the largest speeds from which the end is reached.
        usage: of every limit along the motion.
        reduced: dynamics along the path.
        kappa: deviations of torque kept free.
        confidence: probability asked for; None when the parameters were taken at their word.
        probability: with which all torque limits hold; None likewise.
        duration_certain: of the motion planned with parameters taken at their word [s].
        slowed: factor by which the motion was slowed down as a whole to respect limits between the points of the grid.
        doubts: why the result behind it is not to be trusted; empty when it is.
        described: the description's own model, for comparison; None when it has none.
        passive: joint whose motion generator the page shows; none when None.
        notes: what was assumed.
        provenance: what it came from.
    """

    _page = "armid.report.plan:plan_report"
    _loads = True

    path: Path
    model: TorqueModel
    limits: MotionLimits
    trajectory: PathTrajectory
    profile: SpeedProfile
    usage: Usage
    reduced: ReducedDynamics
    kappa: float
    confidence: float | None = None
    probability: float | None
    duration_certain: float
    slowed: float
    doubts: tuple[str, ...] = ()
    described: TorqueModel | None = None
    passive: str | None = None
    notes: tuple[Note, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def duration(self) -> float:
        """[s]"""
        return self.trajectory.duration

    @property
    def torque_usage(self) -> float:
        """Largest share of a torque limit that is used."""
        return self.usage.worst()["torque"]

    @property
    def longer(self) -> float:
        """Share by which the doubt in the parameters lengthens the motion."""
        return self.duration / self.duration_certain - 1.0

    @property
    def checks(self) -> tuple[Check, ...]:  # type: ignore[override]
        """The result behind it, every limit at the instants checked, and the probability that was asked for."""
        return _plan_checks(self)

    def _heading(self) -> str:
        mark = f"{UNVALIDATED}, " if self.doubts else ""
        return f"{self.model.robot.name}: {mark}{self.duration:.3f} s from rest to rest"

    def _tables(self) -> tuple[Table, ...]:
        kinds = [kind for kind, share in self.usage.worst().items() if share > 0.0]
        rows = tuple(
            (name, *(f"{100 * getattr(self.usage, kind)[:, j].max():.1f} %" for kind in kinds))
            for j, name in enumerate(self.model.robot.joint_names)
        )
        tables = [Table(("joint", *kinds), rows, caption="Largest use of each limit")]
        if self.probability is not None:
            row = (self.probability, self.kappa, f"{100 * self.longer:.2f} %")
            header = ("all torque limits hold with probability", "deviations kept free", "longer by")
            tables.append(Table(header, (row,)))
        return tuple(tables)

    def as_dict(self) -> dict[str, Any]:
        return {
            "duration": self.duration,
            "torque_usage": self.torque_usage,
            "limit_usage": self.usage.worst(),
            "joints": [
                {"name": name, "torque_usage": float(self.usage.torque[:, j].max())}
                for j, name in enumerate(self.model.robot.joint_names)
            ],
            "duration_without_jerk_limits": self.profile.duration,
            "duration_certain": self.duration_certain,
            "longer": self.longer,
            "probability": self.probability,
            "deviations": self.kappa,
            "verdict": str(self.verdict),
            "reasons": list(self.reasons),
            "notes": [note.as_dict() for note in self.notes],
        }

    def save(self, folder: str | FilePath, *, rate_hz: float = _FILE_RATE_HZ) -> tuple[FilePath, ...]:
        """Writes `plan.json` (samples and derivatives), `plan.csv`, `plan-joint-trajectory.yaml` and `plan.html`.

        Names of these files of the motion say UNVALIDATED when the result behind the plan is not to be trusted.

        Args:
            folder: created when missing.
            rate_hz: of the samples; the end of the motion is always one of them.

        Raises:
            InputError: the folder cannot be written.
        """
        place, stem = FilePath(folder), f"plan-{UNVALIDATED}" if self.doubts else "plan"
        t = grid(self.duration, rate_hz)
        sampled = SampledTrajectory(self.trajectory.joint_names, t, *self.trajectory.sample(t))
        return (
            save_trajectory(sampled, place / f"{stem}.json", robot=self.model.robot.name),
            save_csv(self.trajectory, place / f"{stem}.csv", rate_hz=rate_hz, robot=self.model.robot),
            save_joint_trajectory(self.trajectory, place / f"{stem}-joint-trajectory.yaml", rate_hz=rate_hz),
            self.report(place / f"{stem}.html"),
        )


def _plan_checks(plan: Plan) -> tuple[Check, ...]:
    """What must hold before somebody runs a planned motion."""
    worst = max(plan.usage.worst().values())
    held = plan.usage.needed <= 1.0 + HELD
    doubts = "; ".join(plan.doubts)
    checks = [
        Check(
            code="result",
            passed=not plan.doubts,
            value=float(len(plan.doubts)),
            limit=0.0,
            message=f"{UNVALIDATED}: planned with a result that is not to be trusted: {doubts}"
            if doubts
            else "planned with a trusted result",
        ),
        Check(
            code="limits",
            passed=held,
            value=worst,
            limit=1.0,
            message=f"every limit holds at {len(plan.usage.time)} instants"
            if held
            else f"a limit is used to {100 * worst:.1f} % although the motion was slowed down; leave a margin",
        ),
    ]
    if plan.probability is not None and plan.confidence is not None:
        spread = _SAMPLING * float(np.sqrt(plan.confidence * (1.0 - plan.confidence) / DRAWS))
        least = plan.confidence - spread
        checks.append(
            Check(
                code="confidence",
                passed=plan.probability >= least,
                value=plan.probability,
                limit=least,
                message=f"all torque limits hold with probability {plan.probability:.3f}, {plan.confidence:g} asked for",
            )
        )
    return tuple(checks)
