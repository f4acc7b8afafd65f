"""What calibrated kinematics and the direction of gravity change in the dynamics: one recording, identified under each belief."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Unpack

import numpy as np
import numpy.typing as npt

from armid.estimation.estimate import Estimate
from armid.identification.identify import requested
from armid.identification.pipeline import run_identification
from armid.identification.request import IdentifyWords, Source
from armid.identification.result import Result
from armid.identification.settings import Identification
from armid.logs.log import Log
from armid.logs.recording import Recording
from armid.outcome import Outcome
from armid.page import Cell, Table
from armid.robot.robot import Robot

NOMINAL, CALIBRATED, LEVELLED = "nominal kinematics", "calibrated kinematics", "calibrated, gravity levelled"


@dataclass(frozen=True)
class Change:
    """One combination of standard parameters under every belief; the combinations are those of the nominal arm.

    Args:
        name, unit: of the base parameter.
        values, standard_deviations: one per result.
    """

    name: str
    unit: str
    values: tuple[float, ...]
    standard_deviations: tuple[float, ...]

    @property
    def relative(self) -> tuple[float, ...]:
        """Difference from the first over its size, or over its standard deviation where that is larger.

        [Kolyubin2017] fig. 7; a parameter near zero would otherwise change by any percentage.
        """
        size = max(abs(self.values[0]), self.standard_deviations[0])
        return tuple((value - self.values[0]) / size if size > 0.0 else 0.0 for value in self.values)


@dataclass(frozen=True, eq=False, repr=False)
class HandOver(Outcome):
    """Identifications of the same recordings: nominal kinematics first, everything that is known last.

    Its verdict, checks, notes and provenance are those of the last.

    Args:
        names: of the beliefs.
        results: one per belief; the last is the one to use.
        changes: of the nominal arm's base parameters.
    """

    _page: ClassVar[str] = "armid.report.hand_over:hand_over_report"

    names: tuple[str, ...]
    results: tuple[Result, ...]
    changes: tuple[Change, ...]

    def __post_init__(self) -> None:
        for name in ("checks", "notes", "provenance"):
            object.__setattr__(self, name, getattr(self.result, name))

    @property
    def result(self) -> Result:
        """With calibrated kinematics and, when asked for, the real direction of gravity."""
        return self.results[-1]

    def as_dict(self) -> dict[str, Any]:
        """The keys of the result to use; under `hand_over` errors under every belief, and the parameters that moved."""
        return {**self.result.as_dict(), "hand_over": self._summary()}

    def _summary(self) -> dict[str, Any]:
        return {
            "results": [
                {
                    "name": name,
                    "verdict": result.verdict,
                    "relative_error_held_out": result.relative_error["held_out"],
                    "gravity": result.described.gravity.tolist(),
                    "joints": [joint.as_dict() for joint in result.joints],
                }
                for name, result in zip(self.names, self.results, strict=True)
            ],
            "parameters": [
                {
                    "name": c.name,
                    "unit": c.unit,
                    "values": c.values,
                    "standard_deviations": c.standard_deviations,
                    "relative_differences": c.relative,
                }
                for c in self.changes
            ],
        }

    def _heading(self) -> str:
        return self.result._heading()

    def _tables(self) -> tuple[Table, ...]:
        rows: list[tuple[Cell, ...]] = []
        for k, (name, result) in enumerate(zip(self.names, self.results, strict=True)):
            moved = sorted(abs(c.relative[k]) for c in self.changes)
            change = f"{100 * moved[len(moved) // 2]:.2f} %" if k else ""
            rows.append((name, f"{100 * result.relative_error['held_out']:.3f} %", str(result.verdict), change))
        header = ("kinematics", "held-out error", "verdict", "median change of parameters")
        return (Table(header, tuple(rows), caption="what calibration changed"), *self.result._tables())

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes the result to use, the page that puts the beliefs side by side, and the nominal result in its own folder."""
        place = Path(folder)
        files = self.result.save(place)
        page = self.report(place / "hand_over.html")
        return (*files, page, *self.results[0].save(place / "nominal"))


def identify_calibrated(
    robot: str | Path | Robot, logs: Source | Sequence[Source], **words: Unpack[IdentifyWords]
) -> HandOver:
    """Identifies with a calibration's correction, and beside it what less knowledge would have given.

    Args:
        robot: description: a path, a name of the catalogue, or a loaded robot.
        logs: to learn from.
        words: as `armid.identify` takes them; `correction` among them.
    """
    asked = requested(robot, logs, **words)
    assert asked.calibrated is not None, "a correction is needed"
    return hand_over(
        asked.robot,
        asked.calibrated.without_gravity,
        asked.train,
        asked.held_out,
        asked.settings,
        gravity=asked.calibrated.gravity,
        motion=asked.calibrated.moved,
        progress=asked.progress,
    )


def hand_over(
    nominal: Robot,
    calibrated: Robot,
    train: Sequence[Recording | Log],
    held_out: Sequence[Recording | Log],
    settings: Identification,
    *,
    gravity: npt.ArrayLike | None = None,
    motion: Callable[[Any], Recording | Log] = lambda log: log,
    progress: Callable[[str], None] = lambda _: None,
) -> HandOver:
    """Identify with nominal kinematics, with calibrated ones, and with gravity as it really is.

    Args:
        nominal: the arm as described.
        calibrated: the same arm after kinematic calibration.
        train: recordings to learn from.
        held_out: recordings no part of which is used for any choice.
        settings: of the identification; `find_gravity` fits base tilt from the training torque.
        gravity: in the base frame, from a levelled instrument [m/s^2], shape [3]; a sensor frame alone does not know it.
        motion: what the calibration makes of a recording: encoder errors taken off. Nominal kinematics knows of none.
        progress: told in words what is being done.
    """
    plain = replace(settings, find_gravity=False, sensitivity=False)
    beliefs = [(NOMINAL, nominal, plain), (CALIBRATED, calibrated, replace(plain, described=nominal))]
    if gravity is not None or settings.find_gravity:
        arm = calibrated if gravity is None else calibrated.with_gravity(gravity)
        beliefs.append((LEVELLED, arm, replace(settings, described=nominal)))
    else:
        beliefs[-1] = (CALIBRATED, calibrated, replace(settings, described=nominal))
    results = []
    moved = [motion(log) for log in train], [motion(log) for log in held_out]
    for name, arm, how in beliefs:
        progress(name)
        learned, tested = (train, held_out) if name == NOMINAL else moved
        results.append(run_identification(arm, learned, tested, how))
    return HandOver(tuple(name for name, _, _ in beliefs), tuple(results), changes([r.estimate for r in results]))


def changes(estimates: Sequence[Estimate]) -> tuple[Change, ...]:
    """Base parameters of the first estimate, and the same combinations of the others' parameters.

    Base parameters of a calibrated arm are other combinations: axes that no longer meet split some of them into
    parts the data can hardly tell apart. The nominal combination `b = P pi` of those parts is well determined, with covariance
    `P E C (P E)^T` for an estimate with embedding E and covariance C.
    """
    first = estimates[0]
    values, deviations = [], []
    for e in estimates:
        M = first.base.projection @ e.base.embedding
        values.append(M @ e.values)
        deviations.append(np.sqrt(np.einsum("ij,jk,ik->i", M, e.covariance, M)))
    return tuple(
        Change(name, unit, tuple(float(v[k]) for v in values), tuple(float(d[k]) for d in deviations))
        for k, (name, unit) in enumerate(zip(first.names, first.units, strict=True))
    )
