"""The answer about elastic joints: stiffness, motor inertia, and whether they may be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any, ClassVar

from armid.documents import write_json
from armid.errors import UnknownNameError
from armid.notes import Note
from armid.outcome import Check, Outcome, Provenance
from armid.page import Table
from armid.robot.robot import Robot
from armid.transmission.one_sensor import SEEN, OneSensorJoint
from armid.transmission.two_encoders import ElasticJoint

_LARGEST_UNEXPLAINED = 0.5
"""Of the motor's torque: an equation that leaves half of it is not the equation of this joint."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Transmission(Outcome):
    """Elastic joints of one arm.

    Args:
        robot: the arm.
        joints: one record per joint, all of one kind: with encoders on both sides, or on the link's side only.
        checks: what each joint was held against.
        notes: of all joints.
        provenance: inputs and settings.
    """

    _page: ClassVar[str] = "armid.report.transmission:transmission_page"
    _loads = True

    robot: Robot
    joints: tuple[ElasticJoint, ...] | tuple[OneSensorJoint, ...]
    checks: tuple[Check, ...] = ()
    notes: tuple[Note, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    def joint(self, name: str) -> ElasticJoint | OneSensorJoint:
        """The record of one joint."""
        for joint in self.joints:
            if joint.joint == name:
                return joint
        raise UnknownNameError("joint", name, [joint.joint for joint in self.joints])

    def as_dict(self) -> dict[str, Any]:
        return {
            "joints": [joint.as_dict() for joint in self.joints],
            "verdict": self.verdict,
            "reasons": self.reasons,
            "checks": [check.as_dict() for check in self.checks],
        }

    def _heading(self) -> str:
        return f"{self.robot.name}: {len(self.joints)} elastic joint{'s' if len(self.joints) != 1 else ''}"

    def _tables(self) -> tuple[Table, ...]:
        return (joints_table(self.joints),) if self.joints else ()

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes `elastic.json`."""
        return (write_json(Path(folder) / "elastic.json", self.as_dict()),)


def joints_table(joints: Sequence[ElasticJoint] | Sequence[OneSensorJoint]) -> Table:
    """One row per joint."""
    both = [joint for joint in joints if isinstance(joint, ElasticJoint)]
    one = [joint for joint in joints if isinstance(joint, OneSensorJoint)]
    return _two_encoders_table(both) if both else _one_sensor_table(one)


def _two_encoders_table(joints: Sequence[ElasticJoint]) -> Table:
    header = (
        "joint",
        "stiffness N m/rad",
        "+-",
        "motor inertia kg m^2",
        "+-",
        "Coulomb N m",
        "encoder lag ms",
        "load deflects rad",
        "encoders' error rad",
        "error",
    )
    rows = tuple(
        (
            j.joint,
            j.stiffness,
            float(j.standard_deviations[0]),
            j.rotor_inertia,
            float(j.standard_deviations[1]),
            j.coulomb,
            1e3 * j.lag,
            j.load_deflection,
            j.encoder_error,
            f"{100 * j.relative_error:.2f} %",
        )
        for j in joints
    )
    return Table(header, rows, digits=3)


def _one_sensor_table(joints: Sequence[OneSensorJoint]) -> Table:
    header = ("joint", "B / K s^2", "+-", "resonance Hz", "stiffness N m/rad", "+-", "error", "as a rigid joint")
    rows = tuple(
        (
            j.joint,
            j.ratio,
            j.ratio_deviation,
            j.resonance,
            j.stiffness,
            j.stiffness_deviation,
            f"{100 * j.relative_error:.2f} %",
            f"{100 * j.relative_error_rigid:.2f} %",
        )
        for j in joints
    )
    return Table(header, rows, digits=3)


def joint_checks(joint: ElasticJoint | OneSensorJoint) -> list[Check]:
    """What one joint is held against."""
    own = _two_encoders_checks(joint) if isinstance(joint, ElasticJoint) else _one_sensor_checks(joint)
    name, limit = joint.joint, 0.5 * joint.rate
    resonance = joint.resonance
    return [
        *own,
        Check(
            code="torque-explained",
            passed=joint.relative_error < _LARGEST_UNEXPLAINED,
            value=joint.relative_error,
            limit=_LARGEST_UNEXPLAINED,
            message=f"{name}: the equation leaves {100 * joint.relative_error:.0f} % of the motor's torque unexplained",
            subject=name,
        ),
        Check(
            code="resonance-in-band",
            passed=isnan(resonance) or resonance == float("inf") or resonance < limit,
            value=resonance,
            limit=limit,
            message=f"{name}: its resonance of {resonance:.3g} Hz is above half the sampling rate, {limit:.3g} Hz: record faster",
            subject=name,
            decisive=False,
        ),
    ]


def _two_encoders_checks(joint: ElasticJoint) -> list[Check]:
    K, spread, name = joint.stiffness, float(joint.standard_deviations[0]), joint.joint
    clearness = abs(K) / spread if spread > 0.0 else float("inf")
    smallest = min(K, joint.rotor_inertia)
    return [
        Check(
            code="possible-transmission",
            passed=smallest > 0.0,
            value=smallest,
            limit=0.0,
            message=f"{name}: stiffness {K:.3g} N m/rad and motor inertia {joint.rotor_inertia:.3g} kg m^2 of which one is not "
            "positive: torque or one encoder has the wrong sign, or the motion is too slow",
            subject=name,
        ),
        Check(
            code="stiffness-seen",
            passed=clearness > SEEN,
            value=clearness,
            limit=SEEN,
            message=f"{name}: stiffness {K:.3g} +- {spread:.2g} N m/rad is not to be told from a rigid joint: load it more",
            subject=name,
        ),
    ]


def _one_sensor_checks(joint: OneSensorJoint) -> list[Check]:
    score = joint.ratio / joint.ratio_deviation if joint.ratio_deviation > 0.0 else float("inf")
    name = joint.joint
    return [
        Check(
            code="possible-transmission",
            passed=score > -SEEN,
            value=score,
            limit=-SEEN,
            message=f"{name}: B / K comes out as {joint.ratio:.3g} s^2: torque has the wrong sign or lags the position",
            subject=name,
        ),
        # What is given then is a bound and an infinite stiffness, which is the truth about this motion.
        Check(
            code="stiffness-seen",
            passed=score > SEEN,
            value=score,
            limit=SEEN,
            message=f"{name}: no elasticity is seen; its stiffness is given as infinite",
            subject=name,
            decisive=False,
        ),
    ]
