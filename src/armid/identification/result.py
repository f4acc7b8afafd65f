"""What an identification leaves behind: a judged model of the arm, with the Information it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from math import inf, nan
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.certificates import Certificates
from armid.consistency.consistent import ConsistentEstimate
from armid.estimation.estimate import NORMAL_95, Estimate
from armid.identification.evidence import Evidence
from armid.identification.faults import Fault, faults_table, listed_faults
from armid.identification.faults_in_brief import brief_tables
from armid.identification.held_out import UNDETERMINED
from armid.identification.origins import ResultProvenance
from armid.identification.records import FrictionShapes, Gain, ResolvedConditioning, Sensitivity
from armid.identification.result_tables import (
    error_table,
    friction_tables,
    judged_errors,
    judged_share,
    said,
    sentences,
)
from armid.identification.sensors import Imperfections
from armid.identification.torque_error import JointErrors
from armid.information.information import Information
from armid.notes import Note
from armid.outcome import Check, Listing, Outcome, Verdict
from armid.page import Table
from armid.parameters.effects import Effects
from armid.parameters.inertial import N_INERTIAL
from armid.robot.robot import Robot
from armid.rows.friction import Shapes
from armid.words import path_of

_DRIVE_QUANTITIES = ("rotor_inertia", "viscous", "coulomb", "offset")
"""Parameters of a joint that its drive can hold."""

_NOT_JUDGED = "no conditions were checked: nothing shows that it may be used"


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseRow:
    """A base parameter as the data have it.

    Args:
        name: of its leading standard parameter.
        value, standard_deviation: unconstrained estimate [unit].
        low, high: ends of the 95 % interval.
        unit: SI.
        determined_by: always `data`; what the data do not determine is no base parameter.
        expression: the combination of standard parameters it stands for.
    """

    name: str
    value: float
    low: float
    high: float
    standard_deviation: float
    unit: str
    determined_by: str
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardRow:
    """A standard parameter, physically consistent.

    Args:
        name, unit: of the parameter.
        value, standard_deviation: consistent estimate.
        low, high: ends of the 95 % interval; infinite where regularisation alone determines the value.
        determined_by: `data`, `both` or `prior`.
        data_share: how much of the value the data decided, 0 to 1.
        prior: where it was pulled to.
    """

    name: str
    value: float
    low: float
    high: float
    standard_deviation: float
    unit: str
    determined_by: str
    data_share: float
    prior: float


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Result(Outcome):
    """A finished identification.

    Args:
        described: the arm it is about, as described; `robot` is the identified one.
        effects: what the model contains.
        estimate: base parameters without constraints.
        consistent: standard parameters, physically consistent.
        certificates: evidence of physicality.
        joints: errors of the consistent estimate; `joints_raw` of the unconstrained one; `joints_nominal` of the description.
        relative_error: all joints stacked, `train` and `held_out`, of the consistent estimate.
        condition_number: of the stacked base regressor, SI units; `condition_number_scaled` with unit columns.
        checks: every condition of the gate with its outcome; a result without any is untrusted.
        evidence: what the checks rest on besides; None when it is not known, and nothing can be judged again.
        information: of all training motion, over the standard parameters, torque in SI units; it adds up.
        held_out_information: the same of the motion held out; None when there is none.
        gains: drive gains per joint, when currents were identified.
        friction: shapes beyond linear friction; None without.
        conditioning: cut-offs, rate and the other resolved choices.
        sensitivity: how parameters move with the cut-off and when a motion is left out.
        provenance: inputs with hashes, versions, settings, seed.
        notes: of logs, estimation and consistency.
        traces: held-out torque for the report: arrays by name.
        seconds, peak_memory_mb: of the run.
        workers: processes that did the work; 1 for this one.
        retries: pieces of work that were done again because a worker was lost.
        suspects: what could be wrong with the recordings, with an answer each; `faults` is the same as rows.
        imperfections: of sensors and friction beside the parameters; None when there are none. Errors are those with them undone.
        course: of the training motion, ten poses a second, by which other motion that repeats it is known; None when not known.
    """

    _page: ClassVar[str] = "armid.report.identification:identification_report"

    described: Robot
    effects: Effects
    estimate: Estimate
    consistent: ConsistentEstimate
    certificates: Certificates
    joints: tuple[JointErrors, ...]
    joints_raw: tuple[JointErrors, ...]
    joints_nominal: tuple[JointErrors, ...]
    relative_error: Mapping[str, float]
    condition_number: float
    condition_number_scaled: float
    information: Information
    held_out_information: Information | None = None
    checks: tuple[Check, ...] = ()
    evidence: Evidence | None = None
    gains: Mapping[str, Gain] = field(default_factory=dict)
    conditioning: ResolvedConditioning = field(default_factory=ResolvedConditioning)
    sensitivity: Sensitivity = field(default_factory=Sensitivity)
    provenance: ResultProvenance = field(default_factory=ResultProvenance)
    notes: tuple[Note, ...] = ()
    traces: Mapping[str, FloatArray] = field(default_factory=dict)
    seconds: float = 0.0
    peak_memory_mb: float = 0.0
    workers: int = 1
    retries: int = 0
    friction: FrictionShapes | None = None
    suspects: tuple[Fault, ...] = ()
    imperfections: Imperfections | None = None
    course: FloatArray | None = None

    def __post_init__(self) -> None:
        for name in ("relative_error", "gains", "traces"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not to be trusted, each once; a result that was never judged is not."""
        found = tuple(dict.fromkeys(super().reasons))
        return found or (() if any(check.decisive for check in self.checks) else (_NOT_JUDGED,))

    @property
    def standard(self) -> FloatArray:
        """Consistent standard parameters, in the order of the torque rows' columns."""
        return self.consistent.values

    @property
    def shapes(self) -> Shapes:
        """What the rows of friction need besides parameters, as found."""
        scales = () if self.friction is None else tuple(scale.value for scale in self.friction.scales.values())
        load = None if self.friction is None else self.friction.load
        return Shapes(self.conditioning.presliding, scales, load, self.conditioning.friction_width)

    @cached_property
    def robot(self) -> Robot:
        """The identified arm: consistent bodies, friction, rotor inertias and offsets; a payload is not part of it.

        A drive has one friction: where both sides of the transmission were told apart, it is their sum, as the motor feels it.
        """
        values = dict(zip(self.consistent.names, self.consistent.values, strict=True))
        inertial = np.array(self.described.inertial)
        for body in self.consistent.bodies:
            if body.link is not None:
                inertial[body.link * N_INERTIAL : (body.link + 1) * N_INERTIAL] = body.of(self.consistent.values)
        joints = []
        for i, joint in enumerate(self.described.joints):
            names = {quantity: f"joint{i + 1}.{quantity}" for quantity in _DRIVE_QUANTITIES}
            before = {quantity: values.get(f"joint{i + 1}.motor_{quantity}", 0.0) for quantity in names}
            found = {q: float(values[name] + before[q]) for q, name in names.items() if name in values}
            joints.append(replace(joint, drive=replace(joint.drive, **found)))
        return replace(self.described.with_inertial(inertial), joints=tuple(joints))

    @cached_property
    def parameters(self) -> Listing[BaseRow]:
        """Base parameters: what the data say, without constraints."""
        e = self.estimate
        low, high = e.interval()
        return Listing(
            BaseRow(
                name=name,
                value=float(e.values[k]),
                low=float(low[k]),
                high=float(high[k]),
                standard_deviation=float(e.standard_deviations[k]),
                unit=e.units[k],
                determined_by="data",
                expression=combination(e.base.terms(k)),
            )
            for k, name in enumerate(e.names)
        )

    @cached_property
    def standard_parameters(self) -> Listing[StandardRow]:
        """Standard parameters, physically consistent, with what determines each."""
        c = self.consistent
        half = [
            inf if by == "prior" else NORMAL_95 * float(s)
            for by, s in zip(c.determined_by, c.standard_deviations, strict=True)
        ]
        return Listing(
            StandardRow(
                name=name,
                value=float(c.values[k]),
                low=float(c.values[k]) - half[k],
                high=float(c.values[k]) + half[k],
                standard_deviation=float(c.standard_deviations[k]),
                unit=c.units[k],
                determined_by=c.determined_by[k],
                data_share=float(c.data_share[k]),
                prior=float(c.prior.values[k]),
            )
            for k, name in enumerate(c.names)
        )

    @cached_property
    def faults(self) -> Listing[Fault]:
        """What could be wrong with the recordings: found first, then what they cannot tell, then the bounds."""
        return listed_faults(self.suspects)

    def __add__(self, other: Result) -> Result:
        """Both experiments together: their Information adds up and is solved anew.

        Raises:
            InputError: about another arm or other parameters, or a recording that both learned from.
        """
        from armid.identification.combine import combined

        return combined(self, other)

    def joint_verdict(self, name: str) -> Verdict:
        """Untrusted when a decisive condition about this joint fails; undetermined when its torque cannot tell."""
        about = [check for check in self.checks if check.subject == name and not check.passed]
        if any(check.decisive for check in about):
            return Verdict.UNTRUSTED
        return Verdict.UNDETERMINED if any(check.code == UNDETERMINED for check in about) else Verdict.TRUSTED

    def as_dict(self) -> dict[str, Any]:
        """The keys programs rely on."""
        friction = {} if self.friction is None else self.friction.as_dict()
        return {
            "base_parameters": len(self.estimate),
            "condition_number": self.condition_number,
            "condition_number_scaled": self.condition_number_scaled,
            "joints": [self._joint(joint) for joint in self.joints],
            "joints_raw": [joint.as_dict() for joint in self.joints_raw],
            "relative_error_train": self.relative_error.get("train", nan),
            "relative_error_held_out": self.relative_error.get("held_out", nan),
            "physically_consistent": self.certificates.physical,
            "consistency": self._consistency(),
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "faults": [fault.as_dict() for fault in self.faults],
            "imperfections": None if self.imperfections is None else self.imperfections.as_dict(),
            "conditioning": self.conditioning.as_dict(),
            "gains": {name: gain.as_dict() for name, gain in self.gains.items()},
            "friction": {key: value for key, value in friction.items() if key != "load"},
            "sensitivity": self.sensitivity.as_dict(),
            "notes": [note.as_dict() for note in self.notes],
            "seconds": self.seconds,
            "peak_memory_mb": self.peak_memory_mb,
            "workers": self.workers,
            "retries": self.retries,
        }

    def _joint(self, joint: JointErrors) -> dict[str, Any]:
        """One joint's errors, in motion and at rest too, with its verdict."""
        motion = self._motions().get(joint.name, {})
        moving = {f"{key}_held_out": motion.get(key, nan) for key in ("rmse_moving", "rmse_rest", "rest_share")}
        moving["relative_error_moving_held_out"] = judged_share(judged_errors(self).get(joint.name))
        return {**joint.as_dict(), **moving, "verdict": self.joint_verdict(joint.name)}

    def _motions(self) -> dict[str, dict[str, Any]]:
        """What every channel did in the held-out motion."""
        return {} if self.evidence is None else {m.name: m.as_dict() for m in self.evidence.held_out}

    def _consistency(self) -> dict[str, Any]:
        """How the bodies were found, what proves them, what they rest on."""
        c, k = self.consistent, self.certificates
        return {
            "method": c.method,
            "regulariser": c.regulariser,
            "status": c.status.value,
            "pseudo_inertia": dict(k.pseudo_inertia),
            "mass_matrix": k.mass_matrix,
            "mass_matrix_bound": k.mass_matrix_bound,
            "distance": k.distance,
            "distance_limit": k.distance_limit,
            "p_value": k.p_value,
            "torque_cost": dict(k.torque_cost),
            "determined_by": dict(zip(c.names, c.determined_by, strict=True)),
        }

    def _heading(self) -> str:
        error = 100 * self.relative_error.get("held_out", nan)
        return (
            f"{self.described.name}: {len(self.estimate)} base parameters, condition number {self.condition_number:.4g}, "
            f"held-out torque error {error:.2f} %"
        )

    def summary(self, *, notes: bool = True, all_faults: bool = False) -> str:
        """The answer as text.

        Args:
            notes: whether they are part of it; the command line prints them apart.
            all_faults: every fault that was looked for in a row of its own, rather than those that matter.
        """
        return self._text(self._all_tables() if all_faults else self._tables(), notes=notes)

    def _tables(self) -> tuple[Table, ...]:
        return self._tables_with(brief_tables(self.suspects) if self.suspects else ())

    def _all_tables(self) -> tuple[Table, ...]:
        return self._tables_with((faults_table(self.suspects),) if self.suspects else ())

    def _tables_with(self, faults: tuple[Table, ...]) -> tuple[Table, ...]:
        beside = () if self.imperfections is None else (self.imperfections.table(),)
        return (
            error_table(self, self._motions()),
            *friction_tables(self.friction),
            *beside,
            *faults,
            *(said(text) for text in sentences(self)),
        )

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes the folder that `load_result` reads, whole or not at all; an earlier result there is replaced."""
        from armid.identification.stored import write_result

        return write_result(self, Path(folder))

    def export(self, path: str | Path, *, force: bool = False) -> tuple[Path, ...]:
        """Writes the identified arm for other programs; the suffix tells the format (.urdf, .xml, .json, .py, .c, .m).

        Args:
            path: of the file.
            force: also when the result is not to be trusted; the name and the file then say UNVALIDATED.

        Raises:
            ExportRefusedError: untrusted, and not forced.
        """
        # Export is the floor above; it loads when somebody asks for a file.
        written = import_module("armid.export.export").export_file(self, Path(path), force=force)
        files: tuple[Path, ...] = written.files
        return files


def combination(terms: Mapping[str, float]) -> str:
    """A base parameter as a sum of standard ones."""
    text = ""
    for name, weight in terms.items():
        size = "" if abs(abs(weight) - 1.0) < 1e-12 else f"{abs(weight):.4g} "
        sign = ("- " if weight < 0 else "") if not text else (" - " if weight < 0 else " + ")
        text += f"{sign}{size}{name}"
    return text


def load_result(folder: str | Path, *, traces: bool = True) -> Result:
    """A stored result.

    Args:
        folder: of the result, or its `result.json`.
        traces: also the held-out torque, which figures need.

    Raises:
        InputError: not a result, damaged, or written by an earlier version.
    """
    from armid.identification.stored import read_result

    return read_result(path_of("result", folder, "a folder written by armid identify, or a Result"), traces=traces)
