"""The answer about a model inside a controller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.consistent import ConsistentEstimate
from armid.documents import new_file, write_json, write_text
from armid.estimation.estimate import Estimate
from armid.identifiability.errors import UnsupportedClosedFormError
from armid.kernels.dynamics import inverse_dynamics
from armid.notes import Note
from armid.outcome import Check, Outcome, Provenance, Verdict
from armid.page import Table
from armid.parameters.effects import Effects
from armid.parameters.inertial import INERTIAL_NAMES
from armid.recovery.coefficients import Coefficient, coefficient_counts, write_coefficients
from armid.recovery.elements import GRAVITY, ElementError
from armid.recovery.silent_channels import SilentChannel
from armid.recovery.tool_change import ToolChange
from armid.recovery.validation import Along, TorqueTest, joint_tables
from armid.robot.robot import Robot
from armid.robot.yaml_write import to_yaml
from armid.rows.gravity import GravityRows
from armid.rows.torque import space_of


@dataclass(frozen=True, slots=True, kw_only=True)
class GravityTerm:
    """A gravity coefficient, as eqs. 28-29 of [Gaz2014].

    Args:
        name: of the base parameter.
        expression: closed form in the standard parameters.
        value, standard_deviation: [kg m].
    """

    name: str
    expression: str
    value: float
    standard_deviation: float

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "expression": self.expression,
            "value": self.value,
            "standard_deviation": self.standard_deviation,
        }


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Recovery(Outcome):
    """The recovered model.

    Args:
        robot: geometry and gravity.
        gravity, inertia: coefficients from either quantity alone; None when it was not read.
        joint: base parameters from all of it.
        free: how many of them the constraints leave.
        silent: channels that are zero, or should be.
        training, validation: errors per element, of the joint estimate.
        training_poses, validation_poses: how many.
        consistent: full standard parameters of possible bodies; None when they were not looked for.
        along: every element along a motion, when they were read along one.
        torque_test: measured torque along a motion, when it was recorded.
        tool: what was added to the last link between two readings.
        coefficients: every one in the form of [Gaz2014], when they were asked for.
        effects: whether the inertia matrix has the rotors on its diagonal.
        checks: what it was held against.
        notes: what a reader must know.
        provenance: inputs and settings.
    """

    _page: ClassVar[str] = "armid.report.recovery:recovery_page"
    _loads = True

    robot: Robot
    gravity: Estimate | None
    inertia: Estimate | None
    joint: Estimate
    free: int
    silent: tuple[SilentChannel, ...]
    training: tuple[ElementError, ...]
    validation: tuple[ElementError, ...]
    training_poses: int
    validation_poses: int
    consistent: ConsistentEstimate | None
    along: Along | None = None
    torque_test: TorqueTest | None = None
    tool: ToolChange | None = None
    coefficients: tuple[Coefficient, ...] = ()
    effects: Effects = field(default_factory=Effects)
    checks: tuple[Check, ...] = ()
    notes: tuple[Note, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def standard(self) -> FloatArray:
        """One of the inertial vectors with these base values, shape [10 n]. For prediction only."""
        return self.joint.standard[self._places(INERTIAL_NAMES)]

    @property
    def rotors(self) -> FloatArray:
        """Rotor inertias with these base values, shape [n]; zero where the inertia matrix has none. For prediction only."""
        places = self._places(("rotor_inertia",))
        return self.joint.standard[places] if places else np.zeros(self.robot.n_joints)

    @property
    def bodies(self) -> FloatArray | None:
        """Inertial vectors of possible bodies, shape [10 n]; None when there are none."""
        if self.consistent is None or not self.consistent.is_physical:
            return None
        return self.consistent.values[self._places(INERTIAL_NAMES)]

    def _places(self, quantities: Sequence[str]) -> list[int]:
        """Where parameters of some quantities stand in the parameter vector."""
        parameters = space_of(self.robot, self.effects).parameters
        return [i for i, parameter in enumerate(parameters) if parameter.quantity in quantities]

    def largest(self, quantity: str) -> float:
        """Largest validation error of `gravity` or `inertia` elements."""
        return max((e.largest for e in self.validation if e.quantity == quantity), default=0.0)

    def torque(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """M qdd + c + g, Coriolis terms by Christoffel symbols of the recovered M; [Gaz2014] eqs. 15-16, 26.

        Args:
            q, qd, qdd: motion [rad, rad/s, rad/s^2 or m, ...], shape [n_samples, n_joints] each.

        Returns:
            [N m or N], shape [n_samples, n_joints].
        """
        return inverse_dynamics(self.robot, q, qd, qdd, inertial=self.standard) + self.rotors * qdd

    @cached_property
    def gravity_terms(self) -> tuple[GravityTerm, ...]:
        """Gravity coefficients in closed form with their values; numbers in place of symbols where there is no closed form."""
        if self.gravity is None:
            return ()
        # sympy takes a quarter of a second to load: only who asks for closed forms pays.
        from armid.identifiability.expressions import plain
        from armid.identifiability.regrouping import numeric_terms, regroup

        e = self.gravity
        try:
            terms = regroup(GravityRows(self.robot, self.effects), base=e.base).terms
        except UnsupportedClosedFormError:
            terms = numeric_terms(e.base)
        return tuple(
            GravityTerm(name=n, expression=plain(t), value=float(v), standard_deviation=float(s))
            for n, t, v, s in zip(e.names, terms, e.values, e.standard_deviations, strict=True)
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "base_parameters": self.free,
            "gravity_coefficients": None if self.gravity is None else len(self.gravity),
            "inertia_coefficients": None if self.inertia is None else len(self.inertia),
            "max_error_gravity": self.largest(GRAVITY),
            "max_error_inertia": self.largest("inertia"),
            "training_poses": self.training_poses,
            "validation_poses": self.validation_poses,
            "gravity": [term.as_dict() for term in self.gravity_terms],
            "base": self._base_rows(),
            "elements": self._element_rows(),
            "constraints": [
                {"channel": s.channel, "kind": s.kind, "vanish": [dict(c) for c in s.constraints]} for s in self.silent
            ],
            "physically_consistent": self.consistent is not None and self.consistent.is_physical,
            "standard": {}
            if self.consistent is None
            else dict(zip(self.consistent.names, self.consistent.values.tolist(), strict=True)),
            "verdict": self.verdict,
            "reasons": self.reasons,
            "checks": [check.as_dict() for check in self.checks],
            "notes": [note.as_dict() for note in self.notes],
            "tables": joint_tables(self),
            **self._along_a_motion(),
            **({"coefficients": [asdict(one) for one in self.coefficients]} if self.coefficients else {}),
        }

    def _base_rows(self) -> list[dict[str, Any]]:
        e = self.joint
        rows = zip(e.names, e.units, e.values, e.standard_deviations, strict=True)
        return [
            {"name": n, "unit": u, "value": float(v), "standard_deviation": float(s), "terms": e.base.terms(k)}
            for k, (n, u, v, s) in enumerate(rows)
        ]

    def _element_rows(self) -> list[dict[str, Any]]:
        """Tables II and III: mean square and largest error of every element."""
        return [
            {
                "element": t.channel,
                "size": t.size,
                "mean_square_train": t.mean_square,
                "mean_square_validation": v.mean_square,
                "largest_train": t.largest,
                "largest_validation": v.largest,
            }
            for t, v in zip(self.training, self.validation, strict=True)
        ]

    def _along_a_motion(self) -> dict[str, Any]:
        """Keys that are there only when something was read along a motion, or with a tool."""
        out: dict[str, Any] = {}
        if self.along is not None:
            out["along"] = {"poses": len(self.along.time), "elements": [e.as_dict() for e in self.along.errors]}
        if self.torque_test is not None:
            out["torque"] = self.torque_test.rows()
        if self.tool is not None:
            out["tool"] = self.tool.as_dict()
        return out

    def _heading(self) -> str:
        parts = [
            f"{len(e)} {name} coefficients" for name, e in ((GRAVITY, self.gravity), ("inertia", self.inertia)) if e
        ]
        return f"{self.robot.name}: {' and '.join(parts)}, {self.free} base parameters together"

    def _tables(self) -> tuple[Table, ...]:
        return _recovery_tables(self)

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes `recovered.json`, the page, elements along a motion, `coefficients.csv` when they were asked for, and when it is
        trusted the description with its bodies.
        """
        place = Path(folder)
        files = [write_json(place / "recovered.json", self.as_dict()), self.report(place / "recovered.html")]
        if self.along is not None:
            files.append(_write_elements(self.along, place / "elements.csv"))
        if self.coefficients:
            files.append(write_coefficients(self.coefficients, place / "coefficients.csv"))
        if self.verdict is Verdict.TRUSTED and self.bodies is not None:
            files.append(write_text(place / "recovered.yaml", to_yaml(self.robot.with_inertial(self.bodies))))
        return tuple(files)


def _write_elements(motion: Along, path: Path) -> Path:
    """Reported and recovered values side by side."""
    pairs = [x for name in motion.channels for x in (name, f"{name} recovered")]
    both = np.stack([motion.reported, motion.recovered], axis=2).reshape(len(motion.time), -1)
    with new_file(path, text=True) as file:
        table = np.column_stack([motion.time, both])
        np.savetxt(file, table, delimiter=",", header=",".join(["time", *pairs]), comments="")
    return path


def _recovery_tables(found: Recovery) -> tuple[Table, ...]:
    """Coefficients, errors per joint and per element, torque and tool."""
    tables = []
    if found.gravity_terms:
        rows = tuple((t.expression, t.value, t.standard_deviation) for t in found.gravity_terms)
        tables.append(Table(("gravity coefficient", "value", "+-"), rows, caption="gravity, kg m", digits=6))
    if found.coefficients:
        counts = tuple(coefficient_counts(found.coefficients).items())
        tables.append(Table(("in", "different coefficients"), counts, caption="counted as [Gaz2014] does, up to sign"))
    tables += [*joint_error_tables(found), elements_table(found)]
    if found.torque_test is not None:
        tables.append(_torque_table(found.torque_test))
    if found.tool is not None:
        x, y, z = found.tool.centre_of_mass
        body = (found.tool.frame, found.tool.mass, x, y, z)
        tables.append(Table(("tool in", "mass kg", "x m", "y m", "z m"), (body,)))
    return tuple(tables)


def joint_error_tables(found: Recovery) -> list[Table]:
    """Tables II and III of [Gaz2014]."""
    sets = ("training", "validation", "motion")
    header = ("joint", *(f"gravity, {name}" for name in sets), "torque test")
    tables = []
    for key, words, power in (("mean_square", "mean square error", " squared"), ("largest", "largest error", "")):
        rows = tuple(
            (row["joint"], *(row[f"gravity_{key}_{name}"] for name in sets), row[f"torque_{key}"])
            for row in joint_tables(found)
        )
        tables.append(Table(header, rows, caption=f"{words} per joint, N m (N for prismatic joints){power}", digits=3))
    return tables


def elements_table(found: Recovery) -> Table:
    """Every element at the poses."""
    header = ("element", "size", "MSE train", "MSE validation", "max train", "max validation")
    rows = tuple(
        (t.title, t.size, t.mean_square, v.mean_square, t.largest, v.largest)
        for t, v in zip(found.training, found.validation, strict=True)
    )
    return Table(header, rows, caption="every reported element at the poses", digits=3)


def _torque_table(test: TorqueTest) -> Table:
    header = ("joint", "MSE", "largest", "MSE without friction and offset")
    rows = tuple(
        (str(row["joint"]), row["mean_square"], row["largest"], row["mean_square_without_friction"])
        for row in test.rows()
    )
    return Table(header, rows, caption="torque along the motion, N m", digits=3)
