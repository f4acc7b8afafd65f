"""What a plain URDF does not say about its drives, assumed plausibly so that the arm can be simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.link_shapes import link_shapes
from armid.consistency.plausible import inertia_at_joints
from armid.errors import InputError
from armid.notes import Note, Severity
from armid.parameters.inertial import from_centre_of_mass, inertial_problem, to_centre_of_mass
from armid.robot.robot import JointKind, Robot

ROTOR_RATIO = 0.5
"""Rotor inertia over the inertia a joint carries: gears are chosen so that the two are of one order."""
FRICTION_RATIO = 0.05
"""Coulomb friction over the torque that accelerates what a joint carries at 20 rad/s^2; viscous friction adds as much at
1 rad/s. Drives of measured arms lose 2 to 20 % of their working torque."""
_SMALLEST_DRIVE = 0.01
"""Of the largest inertia at a joint of the same kind: motors of a wrist do not shrink with what it carries."""
_WORKING_ACCELERATION = 20.0
"""[rad/s^2 or m/s^2] by which friction is sized."""
_THINNEST = 0.1
"""Of the second moments of a solid as large as the link: least that a body gets whose own are impossible. Hollow links have
more than a solid, slender ones less; what the description says beyond that is kept."""


@dataclass(frozen=True, slots=True)
class AssumedDrives:
    """How drives are assumed where a description says nothing.

    Args:
        rotor_ratio: rotor inertia over the inertia each joint carries; 0 for none.
        friction_ratio: Coulomb friction over the working torque; 0 for none.
    """

    rotor_ratio: float = ROTOR_RATIO
    friction_ratio: float = FRICTION_RATIO

    def __post_init__(self) -> None:
        for name in ("rotor_ratio", "friction_ratio"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise InputError(f"--{name.replace('_', '-')}", f"{value}", "expected zero or a positive number")

    def apply(self, robot: Robot) -> tuple[Robot, tuple[Note, ...]]:
        """The arm with a rotor and friction on every joint that has none, and what was assumed in words.

        Links without inertial values weigh nothing then; their rotors carry them. Bodies that cannot exist get moments that can:
        no arm has the others, and none could be identified from its log.
        """
        robot, weightless = _weightless(robot)
        robot, impossible = _possible(robot)
        carried = _drive_sizes(robot)
        rotor, friction = self.rotor_ratio * carried, self.friction_ratio * _WORKING_ACCELERATION * carried
        joints = []
        for joint, inertia, loss in zip(robot.joints, rotor, friction, strict=True):
            drive = joint.drive
            if drive.rotor_inertia == 0.0:
                drive = replace(drive, rotor_inertia=float(inertia))
            if drive.viscous == 0.0 and drive.coulomb == 0.0:
                drive = replace(drive, viscous=float(loss), coulomb=float(loss))
            joints.append(replace(joint, drive=drive))
        assumed = replace(robot, joints=tuple(joints))
        return assumed, (*weightless, *impossible, *_notes(robot, assumed))


def _drive_sizes(robot: Robot) -> FloatArray:
    """Inertia each joint carries [kg m^2 or kg], and not less than a share of the largest of its kind."""
    carried = inertia_at_joints(robot)
    slides = np.array([joint.kind is JointKind.PRISMATIC for joint in robot.joints])
    for kind in (slides, ~slides):
        if kind.any():
            carried[kind] = np.maximum(carried[kind], _SMALLEST_DRIVE * carried[kind].max())
    return carried


def _weightless(robot: Robot) -> tuple[Robot, tuple[Note, ...]]:
    """Links without inertial values as links without mass; an arm none of whose links has mass stays as it is."""
    bare = [link.name for link in robot.links if link.inertial is None]
    if not bare or len(bare) == robot.n_joints:
        return robot, ()
    links = tuple(link if link.inertial is not None else replace(link, inertial=np.zeros(10)) for link in robot.links)
    text = f"no inertial values on {', '.join(bare)}: simulated without mass"
    return replace(robot, links=links), (Note("links-weightless", Severity.WARNING, text),)


def _possible(robot: Robot) -> tuple[Robot, tuple[Note, ...]]:
    """Links with a mass whose moments of inertia no body has, with the nearest that one as large as the link has."""
    bodies = {
        i: _possible_body(robot, i, link.inertial)
        for i, link in enumerate(robot.links)
        if link.inertial is not None and link.inertial[0] > 0.0 and inertial_problem(link.inertial) is not None
    }
    if not bodies:
        return robot, ()
    links = tuple(replace(link, inertial=bodies.get(i, link.inertial)) for i, link in enumerate(robot.links))
    names = ", ".join(robot.links[i].name for i in bodies)
    text = f"no body has the moments of inertia described for {names}: the nearest possible ones are simulated"
    return replace(robot, links=links), (Note("bodies-assumed", Severity.WARNING, text),)


def _possible_body(robot: Robot, link: int, described: FloatArray) -> FloatArray:
    """Mass and centre as described; second moments raised along their own axes where they are too small."""
    mass, centre, I = to_centre_of_mass(described)
    least = _THINNEST * mass * float(np.min(link_shapes(robot)[link].half)) ** 2 / 5.0
    moments, axes = np.linalg.eigh(np.trace(I) / 2.0 * np.eye(3) - I)
    Sigma = (axes * np.maximum(moments, least)) @ axes.T
    return from_centre_of_mass(mass, centre, np.trace(Sigma) * np.eye(3) - Sigma)


def _notes(before: Robot, after: Robot) -> tuple[Note, ...]:
    rotors = _listed(before, after, "rotor_inertia")
    friction = _listed(before, after, "coulomb")
    notes = []
    if rotors:
        text = f"the description has no rotor inertia; assumed [kg m^2 or kg]: {rotors} (--rotor-ratio changes it, 0 for none)"
        notes.append(Note("rotors-assumed", Severity.WARNING, text))
    if friction:
        text = (
            f"the description has no friction; assumed Coulomb [N m or N], and as much viscous at 1 rad/s or m/s: {friction} "
            "(--friction-ratio changes it, 0 for none)"
        )
        notes.append(Note("friction-assumed", Severity.WARNING, text))
    return tuple(notes)


def _listed(before: Robot, after: Robot, quantity: str) -> str:
    values: Sequence[tuple[str, float, float]] = [
        (a.name, float(getattr(a.drive, quantity)), float(getattr(b.drive, quantity)))
        for a, b in zip(before.joints, after.joints, strict=True)
    ]
    return ", ".join(f"{name} {now:.2g}" for name, was, now in values if now != was)
