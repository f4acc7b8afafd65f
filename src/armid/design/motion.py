"""The noun of this room: a certified excitation trajectory and what it will tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from armid.arrays import FloatArray
from armid.design.certificate import CLEARANCE_TOLERANCE, USAGE_TOLERANCE, Certificate
from armid.design.known import Fulfilment
from armid.design.search import Search
from armid.design.search_files import save_search
from armid.design.statement import DesignSettings
from armid.documents import plain
from armid.identifiability.base import BaseParameters
from armid.identifiability.expectation import WEAKLY_KNOWN
from armid.identifiability.rank import STRUCTURAL_TOLERANCE, WEAK
from armid.motions.fourier import FourierTrajectory
from armid.motions.limits import MotionLimits
from armid.motions.sample_table import save_csv
from armid.motions.spline import SplineTrajectory
from armid.motions.trajectory import Trajectory, grid
from armid.motions.trajectory_files import save_joint_trajectory, save_trajectory
from armid.notes import Note
from armid.outcome import Check, Outcome, Provenance
from armid.page import Table
from armid.robot.robot import Robot
from armid.scene.hulls import HullCheck
from armid.scene.scene import Scene

_WEAK_NAMED = 6
"""Weakly known parameters named in the summary; the page and the JSON have all."""

FILE_RATE_HZ = 100.0
"""Of sampled files, unless something else is asked for."""


class RankedMotion(Protocol):
    """One motion after a run that shows what it is worth; `armid.studies.ranking.rank_motions` gives these."""

    @property
    def index(self) -> int: ...
    @property
    def predicted(self) -> float: ...
    @property
    def achieved(self) -> float: ...


class Judge(Protocol):
    """Runs motions and ranks them, best first."""

    def __call__(self, robot: Robot, motions: Sequence[Trajectory], *, seed: int = 0) -> Sequence[RankedMotion]: ...


@dataclass(frozen=True, kw_only=True)
class Trial:
    """How a certified motion did when it was run.

    Args:
        start: number of the search's start it came from.
        condition_number: of its base regressor.
        predicted_error: root mean square of the relative deviations its information promises.
        achieved_error: root mean square of the relative errors against the truth.
    """

    start: int
    condition_number: float
    predicted_error: float
    achieved_error: float


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Design(Outcome):
    """A certified excitation trajectory and what it will tell.

    Args:
        robot: the arm.
        settings: what was asked.
        trajectory: everything the robot runs: approach, repetitions, return.
        excitation: one period of it.
        base: the parameters it excites.
        condition_number: 2-norm, SI units, of the stacked base regressor at `REPORT_RATE_HZ`.
        condition_number_scaled: with columns scaled to unit norm.
        certificate: of `trajectory`, against `limits`.
        limit_usage: worst ratio to each of the robot's own limits, margins included and whether they counted or not.
        limits: that were kept, margins taken off.
        scene: clearances that were kept.
        deviations: predicted standard deviation of each base parameter for one period and what was known before, shape [r].
        relative: after all periods, over the described magnitude, shape [r]; not a number where nothing is described.
        noise: of each torque channel that they rest on [N m or N], shape [n_channels].
        misses: of the goals, in the order condition number, joints; empty without goals.
        search: how it was found.
        notes: what the reader must know.
        hulls: closest approach of the real shapes; None when the arm has none.
        baseline: condition number of trapezoidal motion through random way-points of the same length, not optimised.
        wishes: how many periods each wish takes; empty when there was none.
        ranking: how the best motions of the search did when they were run, best first; empty when none was.
        provenance: what it came from.
    """

    _page = "armid.report.design:design_report"
    _loads = True

    robot: Robot
    settings: DesignSettings
    trajectory: Trajectory
    excitation: FourierTrajectory | SplineTrajectory
    base: BaseParameters
    condition_number: float
    condition_number_scaled: float
    certificate: Certificate
    limit_usage: dict[str, float]
    limits: MotionLimits
    scene: Scene
    deviations: FloatArray
    relative: FloatArray
    noise: FloatArray
    misses: FloatArray
    search: Search
    notes: tuple[Note, ...]
    hulls: HullCheck | None
    baseline: float
    wishes: tuple[Fulfilment, ...] = ()
    ranking: tuple[Trial, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def checks(self) -> tuple[Check, ...]:  # type: ignore[override]
        """Limits, clearances and rank of the motion as it is; goals, if there were any."""
        return _design_checks(self)

    def _heading(self) -> str:
        certified = "certified at every instant" if self.certificate.feasible else "not feasible"
        return (
            f"{self.robot.name}: condition number {self.condition_number:.2f} over {len(self.base)} base parameters, "
            f"{self.trajectory.duration:.1f} s, {certified}"
        )

    def _tables(self) -> tuple[Table, ...]:
        usage, swept = self.certificate.usage, self.swept_range
        noise = self.noise[: self.robot.n_joints]
        counts = {kind: np.isfinite(getattr(self.limits, kind, swept)) for kind in usage}
        rows = tuple(
            (
                joint,
                _share(swept[j], 0),
                *(_share(values[j], 1) if counts[kind][j] else "-" for kind, values in usage.items()),
                f"{noise[j]:.3g}",
            )
            for j, joint in enumerate(self.robot.joint_names)
        )
        caption = (
            f"Share of the range that is swept, largest use of each limit less its margin of {100 * self.settings.margin:g} % "
            "(between samples too), and the torque noise [N m or N] predictions rest on"
        )
        tables = [Table(("joint", "range", *usage, "noise"), rows, caption=caption, digits=3), self._weak_table()]
        if self.wishes:
            tables.append(_wishes_table(self.wishes, self.excitation.period))
        if self.certificate.closest:
            closest = (self.certificate.closest, 1000.0 * self.certificate.clearance)
            caption = f"A margin counts as kept to within {1000.0 * CLEARANCE_TOLERANCE:g} mm"
            below = self.certificate.clearance < 0.0
            tables.append(Table(("closest", "beyond the margin [mm]"), (closest,), caption=caption if below else ""))
        if self.ranking:
            tables.append(_ranking_table(self.ranking))
        return tuple(tables)

    @property
    def swept_range(self) -> FloatArray:
        """Share of each joint's allowed range that the excitation sweeps, shape [n_joints]."""
        t = grid(self.excitation.period, FILE_RATE_HZ)
        return np.asarray(np.ptp(self.excitation.sample(t)[0], axis=0) / (2.0 * self.limits.half_range))

    @property
    def weak(self) -> tuple[tuple[str, float], ...]:
        """Base parameters expected to deviate by more than 15 % of their value, worst first, with that share."""
        over = [k for k in np.argsort(-np.nan_to_num(self.relative)) if self.relative[k] > WEAKLY_KNOWN]
        return tuple((self.base.names[k], float(self.relative[k])) for k in over)

    def _weak_table(self) -> Table:
        """What will be known, in one line per kind."""
        known, weak = np.isfinite(self.relative), self.weak
        typical = (
            f"{100 * np.median(self.relative[known]):.2g} %" if known.any() else "nothing is described to compare with"
        )
        named = ", ".join(f"{name} {100 * share:.0f} %" for name, share in weak[:_WEAK_NAMED])
        more = f" and {len(weak) - _WEAK_NAMED} others" if len(weak) > _WEAK_NAMED else ""
        rows = [
            ("typical deviation", typical),
            (
                f"above {100 * WEAKLY_KNOWN:.0f} %",
                f"{len(weak)} of {len(self.base)}: {named}{more}" if weak else "none",
            ),
        ]
        if not known.all():
            rows.append(("not described, so without a share", f"{int((~known).sum())} (friction, as a rule)"))
        return Table(("expected", "base parameters"), tuple(rows))

    def as_dict(self) -> dict[str, Any]:
        proof, search = self.certificate, self.search
        result: dict[str, Any] = {
            "robot": self.robot.name,
            "condition_number": self.condition_number,
            "condition_number_scaled": self.condition_number_scaled,
            "base_parameters": len(self.base),
            "feasible": proof.feasible,
            "limit_usage": self.limit_usage,
            "margin": self.settings.margin,
            "clearance": proof.clearance,
            "closest": proof.closest,
            "baseline_condition_number": self.baseline,
            "hull_distance": None if self.hulls is None else self.hulls.distance,
            "period": self.excitation.period,
            "duration": self.trajectory.duration,
            "seconds": search.seconds,
            "search_seconds": search.seconds,
            "starts": search.explored,
            "evaluations": search.evaluations,
            "history": search.history,
            "interrupted": search.interrupted,
            "workers": search.workers,
            "retries": search.retries,
            "criterion": str(self.settings.criterion),
            "noise": self.noise,
            "swept_range": self.swept_range,
            "joint_usage": dict(proof.usage),
            "typical_deviation": float(np.nanmedian(self.relative)) if np.isfinite(self.relative).any() else None,
            "weak": [{"parameter": name, "relative_deviation": share} for name, share in self.weak],
            "periods": self.settings.repetitions,
            "verdict": str(self.verdict),
            "reasons": list(self.reasons),
            "notes": [note.as_dict() for note in self.notes],
        }
        if len(self.misses):
            result |= {"goal_misses": self.misses, "goals_attained": bool((self.misses <= 0.0).all())}
        if self.wishes:
            result["until"] = [asdict(wish) for wish in self.wishes]
        if self.ranking:
            result["ranking"] = [asdict(trial) for trial in self.ranking]
        out: dict[str, Any] = plain(result)
        return out

    def save(self, folder: str | Path, *, rate_hz: float = FILE_RATE_HZ) -> tuple[Path, ...]:
        """Writes the motion for controllers, its page, and the search to go on from.

        Args:
            folder: created when missing.
            rate_hz: of the sampled files.

        Returns:
            `trajectory.json` (coefficients), `trajectory.csv` (samples), `joint_trajectory.json` and `.yaml` (ROS messages),
            `design.html` and `search.json`.
        """
        place = Path(folder)
        return (
            save_trajectory(self.trajectory, place / "trajectory.json", robot=self.robot.name),
            save_csv(self.trajectory, place / "trajectory.csv", rate_hz=rate_hz, robot=self.robot),
            save_joint_trajectory(self.trajectory, place / "joint_trajectory.json", rate_hz=rate_hz),
            save_joint_trajectory(self.trajectory, place / "joint_trajectory.yaml", rate_hz=rate_hz),
            self.report(place / "design.html"),
            save_search(self.search, place / "search.json"),
        )


def _design_checks(design: Design) -> tuple[Check, ...]:
    """What a motion must keep and show before somebody runs it."""
    proof, least = design.certificate, 1.0 / design.condition_number_scaled
    over, near = proof.worst > 1.0 + USAGE_TOLERANCE, proof.clearance < -CLEARANCE_TOLERANCE
    broken = "; ".join(proof.violations[:4])
    checks = [
        Check(
            code="limits",
            passed=not over,
            value=proof.worst,
            limit=1.0,
            message=f"limits are broken: {broken}" if over else "every limit is kept, between samples too",
        ),
        Check(
            code="clearance",
            passed=not near,
            value=proof.clearance,
            limit=-CLEARANCE_TOLERANCE,
            message=f"{proof.closest} come too close" if near else "every clearance is kept, between samples too",
        ),
        Check(
            code="rank",
            passed=least > STRUCTURAL_TOLERANCE,
            value=least,
            limit=STRUCTURAL_TOLERANCE,
            message=f"the motion shows all {len(design.base)} base parameters"
            if least > STRUCTURAL_TOLERANCE
            else "the motion does not show every base parameter; search longer, or allow more room",
        ),
        Check(
            code="excitation",
            passed=least >= WEAK,
            value=least,
            limit=WEAK,
            message="every combination of parameters is excited"
            if least >= WEAK
            else f"some combination is excited {1.0 / max(least, 1e-300):.0f} times less than the strongest; search longer",
            decisive=False,
        ),
    ]
    if len(design.misses):
        worst = float(design.misses.max())
        said = ", ".join(f"{100 * miss:+.1f} %" for miss in design.misses)
        checks.append(
            Check(
                code="goals",
                passed=worst <= 0.0,
                value=worst,
                limit=0.0,
                message=f"goals {'attained' if worst <= 0.0 else 'not attained'}: misses {said}",
                decisive=False,
            )
        )
    return tuple(checks)


def _share(value: float, digits: int) -> str:
    return f"{100 * value:.{digits}f} %"


def _wishes_table(wishes: tuple[Fulfilment, ...], period: float) -> Table:
    rows = tuple(
        (
            f"{w.wish.what} {100 * w.wish.deviation:g} %",
            "out of reach" if w.periods is None else f"{w.periods} ({w.periods * period:.0f} s)",
            w.worst,
            f"{100 * w.after_one:.2g} %",
        )
        for w in wishes
    )
    return Table(("asked", "periods", "takes longest", "after one period"), rows)


def _ranking_table(ranking: tuple[Trial, ...]) -> Table:
    header = ("start", "condition number", "predicted error", "achieved error")
    rows = tuple(
        (t.start, t.condition_number, f"{100 * t.predicted_error:.2g} %", f"{100 * t.achieved_error:.2g} %")
        for t in ranking
    )
    return Table(header, rows, caption="Run on the embedded robot: relative error of the parameters")
