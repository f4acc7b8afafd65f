"""What can be identified: one arm, a set of effects, and what is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from armid.errors import InputError
from armid.identifiability.base import BaseParameters
from armid.identifiability.errors import UnsupportedClosedFormError
from armid.identifiability.rank import STRUCTURAL_TOLERANCE
from armid.identifiability.structure import structure
from armid.kernels.source import RowSource
from armid.notes import Note, Severity
from armid.parameters.effects import Effects, PayloadRuns
from armid.robot.robot import Robot
from armid.rows.axis_inertia import AxisInertiaRows
from armid.rows.gravity import GravityRows
from armid.rows.inertia_matrix import InertiaMatrixRows
from armid.rows.pose import ChainErrors, PoseMeasure, PoseRows
from armid.rows.torque import TorqueRows

if TYPE_CHECKING:
    import sympy


class Quantity(StrEnum):
    """What is measured."""

    TORQUE = "torque"
    GRAVITY = "gravity"
    INERTIA_MATRIX = "inertia-matrix"
    AXIS_INERTIA = "axis-inertia"
    POSE = "pose"


_DYNAMIC: dict[Quantity, Any] = {
    Quantity.TORQUE: TorqueRows,
    Quantity.GRAVITY: GravityRows,
    Quantity.INERTIA_MATRIX: InertiaMatrixRows,
    Quantity.AXIS_INERTIA: AxisInertiaRows,
}


NOTES_THAT_MATTER = ("angle-rounded", "tip-chosen", "branch-lumped", "inertial-impossible")
"""What a reader of a description says that decides what can be identified, or that identification would mend."""


@dataclass(frozen=True, slots=True)
class Tracking:
    """How a pose is measured.

    Args:
        frame: name of the tracked frame; the tip by default.
        measure: the whole pose, points, or distances of points.
        points: fixed to the frame [m].
        model: which constants are in question; by default what the description calls for.
    """

    frame: str | None = None
    measure: PoseMeasure = PoseMeasure.POSE
    points: tuple[tuple[float, float, float], ...] = ((0.0, 0.0, 0.0),)
    model: ChainErrors | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Inspection:
    """What can be identified.

    Args:
        robot: the arm.
        quantities: what is measured.
        effects: what the model holds.
        base: the base parameters with numbers.
        terms: their coefficients as exact expressions, in the link lengths where closed forms exist.
        closed_form: whether they do.
        per_channel: rank of each channel's own rows.
        notes: what a reader must know.
    """

    robot: Robot
    quantities: tuple[Quantity, ...]
    effects: Effects
    base: BaseParameters
    terms: tuple[dict[str, sympy.Expr], ...]
    closed_form: bool
    per_channel: dict[str, int]
    notes: tuple[Note, ...] = ()


def sources_for(
    robot: Robot, quantities: Sequence[Quantity], effects: Effects, tracking: Tracking | None = None
) -> tuple[RowSource, ...]:
    """The sources of rows that stand for these measurements, over one parameter vector.

    Effects that none of the quantities can hold (friction in a gravity vector) are left out of the vector.
    """
    if Quantity.POSE in quantities:
        if len(quantities) > 1:
            raise InputError(
                "quantity", "pose together with another quantity", "kinematics and dynamics are inspected apart"
            )
        t = tracking or Tracking()
        return (PoseRows(robot=robot, frame=t.frame, measure=t.measure, model=t.model, points=t.points),)
    if Quantity.TORQUE not in quantities:
        effects = Effects(rotor_inertia=effects.rotor_inertia, payload=effects.payload)
    if Quantity.AXIS_INERTIA in quantities:
        effects = replace(effects, rotor_inertia=True)
    runs = (True, False) if effects.payload is PayloadRuns.BOTH else (True,)
    return tuple(_DYNAMIC[quantity](robot, effects, loaded) for loaded in runs for quantity in quantities)


def inspect(
    robot: Robot,
    quantities: Sequence[Quantity] = (Quantity.TORQUE,),
    effects: Effects | None = None,
    *,
    tracking: Tracking | None = None,
    tolerance: float = STRUCTURAL_TOLERANCE,
) -> Inspection:
    """Which parameters can be found alone, which in combination (and in which), and which not at all.

    Args:
        robot: the arm.
        quantities: what is measured.
        effects: what the model holds besides the links; nothing by default.
        tracking: how poses are measured.
        tolerance: of the rank decision, in (0, 1).

    Raises:
        NothingIdentifiableError: no parameter has an effect on the quantity.
        ToleranceError: tolerance outside (0, 1).
    """
    effects = effects or Effects()
    sources = sources_for(robot, quantities, effects, tracking)
    found = structure(*sources, tolerance=tolerance, what=" and ".join(quantities))
    terms, closed, notes = closed_terms(sources, found.base)
    notes += weak_notes(found.base) + [note for note in robot.notes if note.code in NOTES_THAT_MATTER]
    return Inspection(
        robot=robot,
        quantities=tuple(quantities),
        effects=effects,
        base=found.base,
        terms=terms,
        closed_form=closed,
        per_channel=found.per_channel,
        notes=tuple(notes),
    )


def closed_terms(
    sources: Sequence[RowSource], base: BaseParameters
) -> tuple[tuple[dict[str, sympy.Expr], ...], bool, list[Note]]:
    """Coefficients in closed form, or as numbers with a note that says why."""
    # sympy takes a quarter of a second to load: only who asks for closed forms pays.
    from armid.identifiability.regrouping import numeric_terms, regroup

    if isinstance(sources[0], PoseRows) or not any(name.endswith(".mass") for name in base.parameters):
        return numeric_terms(base), False, []
    try:
        return regroup(*sources, base=base).terms, True, []  # type: ignore[arg-type]
    except UnsupportedClosedFormError as reason:
        return numeric_terms(base), False, [Note("no-closed-form", Severity.INFO, str(reason))]


def weak_notes(base: BaseParameters) -> list[Note]:
    """One warning per direction that is identifiable only by a hair."""
    return [
        Note(
            "weak-direction",
            Severity.WARNING,
            f"identifiable only by a hair ({weak.ratio:.1e} of the strongest direction): "
            + " ".join(f"{value:+.2f} {name}" for name, value in weak.combination),
            weak.combination[0][0],
        )
        for weak in base.weak
    ]
