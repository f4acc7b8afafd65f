"""The answer of a sequential identification: base parameters joint by joint, and whether they may be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from armid.documents import write_json
from armid.estimation.estimate import Estimate
from armid.estimation.friction_sign import friction_sign
from armid.estimation.imperfections import FACTORS
from armid.identifiability.base import BaseParameters, Category
from armid.identification.faults import Fault
from armid.identification.faults_in_brief import brief_tables
from armid.notes import Note
from armid.outcome import Check, Listing, Outcome, Provenance
from armid.page import Table
from armid.parameters.space import ParameterSpace
from armid.robot.robot import Robot
from armid.rows.imperfections import KINDS, Family
from armid.sequential.estimate import SequentialEstimate, StageOutcome
from armid.sequential.stages import ErrorStructure

_SMALL_TERM = 1e-9
"""Of the largest term of a change: smaller ones are round-off."""

_NOTABLE_REST = 0.5
"""Of a joint's torque: a stage that leaves this much found little of what is in it."""

_CONTRADICTS = KINDS[Family.GAIN].tolerance
"""Of a joint's torque: the tolerance of a torque gain, by which two recordings of it may differ. Sound recordings of real arms
came to 5 to 9 %, and a joint of 1 N m that is mostly friction to 32 %; so decisive is three times as much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialParameter:
    """A base parameter.

    Args:
        name: of the standard parameter that leads it.
        unit: SI.
        value: of the combination.
        standard_deviation: of noise and of what ordinary sensors may have done, propagated through the stages; infinite when no
            stage determined it.
        terms: standard parameter -> coefficient.
    """

    name: str
    unit: str
    value: float
    standard_deviation: float
    terms: dict[str, float]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Sequential(Outcome):
    """Base parameters found one link after the other from the tip, [Khosla1985] sec. 3.

    Args:
        robot: the arm.
        estimate: base parameters with the covariance that error propagation through the stages gives, beside ordinary sensors.
        found: what the stages found, over the standard parameters.
        structure: measured or commanded motion.
        faults: what could be wrong with the recordings, each with its answer; looked for where all joints move.
        checks: what it was held against.
        notes: what a reader must know.
        provenance: inputs and settings.
    """

    _page: ClassVar[str] = "armid.report.sequential:sequential_page"
    _loads = True

    robot: Robot
    estimate: Estimate
    found: SequentialEstimate
    structure: ErrorStructure
    faults: Listing[Fault] = field(default_factory=lambda: Listing(()))
    checks: tuple[Check, ...] = ()
    notes: tuple[Note, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def stages(self) -> tuple[StageOutcome, ...]:
        """In the order they were solved."""
        return self.found.stages

    @property
    def parameters(self) -> Listing[SequentialParameter]:
        """Base parameters as rows."""
        e = self.estimate
        rows = zip(e.names, e.units, e.values, e.standard_deviations, strict=True)
        return Listing(
            SequentialParameter(
                name=name, unit=unit, value=float(v), standard_deviation=float(s), terms=e.base.terms(name)
            )
            for name, unit, v, s in rows
        )

    @property
    def alone(self) -> tuple[str, ...]:
        """Standard parameters that are found by themselves."""
        return self._of(Category.ALONE)

    @property
    def in_combination(self) -> tuple[str, ...]:
        """Standard parameters that are found in combinations only."""
        return self._of(Category.COMBINED)

    def _of(self, category: Category) -> tuple[str, ...]:
        return tuple(name for name, own in self.estimate.base.categories.items() if own is category)

    @property
    def invisible_changes(self) -> tuple[dict[str, float], ...]:
        """Changes of several standard parameters together that no torque notices: why fewer can be found than show."""
        return invisible_changes(self.estimate.base)

    def as_dict(self) -> dict[str, Any]:
        return {
            "base_parameters": len(self.estimate),
            "known_directions": len(self.found.directions),
            "stages": [
                {
                    "joint": s.joint,
                    "locked": s.locked,
                    "rows": s.rows,
                    "found": s.found,
                    "known": s.known,
                    "sigma": s.sigma,
                    "relative_error": s.relative_error,
                    "contradiction": s.contradiction,
                    "parameters": s.parameters,
                }
                for s in self.stages
            ],
            "parameters": self.parameters.as_dicts(),
            "invisible_changes": self.invisible_changes,
            "alone": self.alone,
            "in_combination": self.in_combination,
            "standard": dict(zip(self.found.parameters, self.found.values.tolist(), strict=True)),
            "structure": self.structure,
            "faults": [fault.as_dict() for fault in self.faults],
            "verdict": self.verdict,
            "reasons": self.reasons,
            "checks": [check.as_dict() for check in self.checks],
            "notes": [note.as_dict() for note in self.notes],
        }

    def _heading(self) -> str:
        stages = len(self.stages)
        return (
            f"{self.robot.name}: {len(self.estimate)} base parameters from {stages} stage{'s' if stages != 1 else ''}"
        )

    def _tables(self) -> tuple[Table, ...]:
        wrong = brief_tables(self.faults, whole="--json and the report list everything") if self.faults else ()
        return stages_table(self.stages), parameters_table(self), changes_table(self), *wrong

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes `sequential.json`."""
        return (write_json(Path(folder) / "sequential.json", self.as_dict()),)


def invisible_changes(base: BaseParameters) -> tuple[dict[str, float], ...]:
    """Directions of the null space with more than one term, as standard parameter -> amount."""
    out = []
    for direction in base.null_space.T:
        smallest = _SMALL_TERM * float(np.abs(direction).max())
        terms = {n: float(v) for n, v in zip(base.parameters, direction, strict=True) if abs(v) > smallest}
        if len(terms) > 1:
            out.append(terms)
    return tuple(out)


def stages_table(stages: Sequence[StageOutcome]) -> Table:
    """What every stage found."""
    rows = tuple(
        (s.joint, ", ".join(s.locked) or "-", s.rows, s.found, s.known, f"{100 * s.relative_error:.2f} %")
        for s in stages
    )
    return Table(("stage", "locked", "rows", "found", "known so far", "unexplained"), rows)


def parameters_table(found: Sequential) -> Table:
    """Values with deviations, and what each is made of."""
    shown, alone = len(found.alone) + len(found.in_combination), found.alone
    caption = (
        f"{shown} standard parameters show in the torque, but their columns are dependent: {len(found.estimate)} combinations "
        f"can be found, {len(alone)} of them parameters by themselves ({', '.join(alone) or 'none'}). Other directions keep "
        "their starting values."
    )
    rows = tuple((p.name, p.value, p.standard_deviation, p.unit, _sum_of(p.terms)) for p in found.parameters)
    return Table(("base parameter", "value", "+-", "unit", "made of"), rows, caption=caption, digits=5)


def changes_table(found: Sequential) -> Table:
    """Changes of several parameters that leave all torque as it is."""
    changes = found.invisible_changes
    rows = tuple((k, _sum_of(terms)) for k, terms in enumerate(changes, start=1))
    caption = f"{len(changes)} changes that no torque notices, whatever the motion:" if changes else ""
    return Table(("", "change"), rows, caption=caption)


def _sum_of(terms: dict[str, float]) -> str:
    return " ".join(f"{value:+.4g} {name}" for name, value in terms.items())


def sequential_checks(estimate: Estimate, found: SequentialEstimate, space: ParameterSpace) -> tuple[Check, ...]:
    """What a sequential identification is held against.

    Every base parameter must have been determined by some stage, errors propagated through the stages must stay finite, and
    friction must not drive. A stage that leaves most of its torque unexplained is worth a word.
    """
    lost = set(found.undetermined(estimate.base))
    wild = [
        name
        for name, s in zip(estimate.names, estimate.standard_deviations, strict=True)
        if name not in lost and not np.isfinite(s)
    ]
    return (
        Check(
            code="determined",
            passed=not lost,
            value=len(lost),
            limit=0,
            message=f"no stage determined {', '.join(sorted(lost))}: record motions in which more joints move"
            if lost
            else "every base parameter was determined by some stage",
        ),
        Check(
            code="errors-bounded",
            passed=not wild,
            value=len(wild),
            limit=0,
            message=f"errors of earlier stages grow without bound in {', '.join(wild)}: do not hold them fixed"
            if wild
            else "errors stay finite from stage to stage",
        ),
        friction_sign(estimate, space).check(),
        *(_explained(stage) for stage in found.stages),
        _agreed(found.stages),
    )


def _agreed(stages: Sequence[StageOutcome]) -> Check:
    """Whether the stages can be explained together: what one alone explains and all together do not, recordings contradict."""
    worst = max(stages, key=lambda stage: stage.contradiction)
    passed = worst.contradiction <= _CONTRADICTS
    others = ", ".join(worst.locked)
    return Check(
        code="stages-agree",
        passed=passed,
        value=worst.contradiction,
        limit=_CONTRADICTS,
        message="the stages agree"
        if passed
        else f"stage {worst.joint}{f' ({others} locked)' if others else ''}: the other stages leave "
        f"{100 * worst.contradiction:.0f} % of its torque that it explains alone; compare gain, sign and zero of {worst.joint} "
        "between the recordings",
        subject="" if passed else worst.joint,
        decisive=worst.contradiction > FACTORS[-1] * _CONTRADICTS,
    )


def _explained(stage: StageOutcome) -> Check:
    return Check(
        code="torque-explained",
        passed=stage.relative_error < _NOTABLE_REST,
        value=stage.relative_error,
        limit=_NOTABLE_REST,
        message=f"stage {stage.joint} leaves {100 * stage.relative_error:.0f} % of its torque unexplained",
        subject=stage.joint,
        decisive=False,
    )
