"""Where parameters are pulled in directions the data cannot see, and how hard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import FloatArray, read_only
from armid.consistency.bodies import Body, bodies_of, other_columns
from armid.information.information import Information
from armid.information.solve import smallest_solution
from armid.notes import Note, Severity
from armid.parameters.inertial import InertialIndex, from_centre_of_mass, inertial_problem, pseudo_inertia
from armid.parameters.space import named_parameter
from armid.robot.elementary import product
from armid.robot.robot import Robot

_SMALLEST_EXTENT = 0.05
"""[m]; radius of gyration scale given to links whose frames coincide, about the size of a small joint module."""
_SLENDERNESS = 0.35
"""Half width over half length of the stand-in ellipsoid of a link with no known inertia: between a rod and a ball."""
_SMALLEST_SCALE = 0.05
"""[kg per stand-in]; lighter links than this are no arm."""
_SINGULAR = 1e-6
"""Relative to the trace: a nominal pseudo-inertia with a smaller eigenvalue is a point or a rod, no use as a metric."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Prior:
    """A centre and a scale for every standard parameter.

    Args:
        names: of the standard parameters.
        values: the centre, shape [p].
        scale: one unit of doubt for parameters outside the bodies, shape [p]; bodies use the metric of their own centre.
        origin: for each body owner, `nominal` (from the description), `geometry` (a stand-in ellipsoid) or `result`.
        notes: what a reader must know about it.
    """

    names: tuple[str, ...]
    values: FloatArray
    scale: FloatArray
    origin: dict[str, str]
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", read_only(self.values))
        object.__setattr__(self, "scale", read_only(self.scale))

    @property
    def bodies(self) -> tuple[Body, ...]:
        return bodies_of(self.names)


def usable_as_prior(inertial: FloatArray | None) -> bool:
    """Whether a nominal body exists, has mass, and is not a point or a rod (its pseudo-inertia must be invertible)."""
    if inertial is None or inertial_problem(inertial) is not None or inertial[InertialIndex.MASS] <= 0.0:
        return False
    P = _normalised(pseudo_inertia(inertial))
    return bool(np.linalg.eigvalsh(P)[0] > _SINGULAR)


def _normalised(P: FloatArray) -> FloatArray:
    """A pseudo-inertia in units of its own mass and size, so that its eigenvalues can be compared."""
    mass = P[3, 3]
    size = max(float(np.trace(P[:3, :3]) / mass), 1e-12) ** 0.5
    S = np.diag([1.0 / size] * 3 + [1.0]) / mass**0.5
    return S @ P @ S


def stand_in_body(robot: Robot, link: int) -> FloatArray:
    """A solid ellipsoid of 1 kg between the link's own joint and the next, for links without usable inertia.

    Args:
        robot: geometry.
        link: 0-based.
    """
    joint = robot.joints[link]
    after = product(joint.transforms[joint.variable_index + 1 :])
    start = -after[:3, :3].T @ after[:3, 3]
    if link + 1 < robot.n_joints:
        following = robot.joints[link + 1]
        end = product(following.transforms[: following.variable_index])[:3, 3]
    else:
        end = robot.tip.T_link_frame[:3, 3] if robot.tip.link == robot.n_joints else start
    reach = float(np.linalg.norm(end - start))
    half = max(reach / 2.0, _SMALLEST_EXTENT)
    width = max(_SLENDERNESS * half, _SMALLEST_EXTENT)
    axis = (end - start) / reach if reach > 1e-9 else np.array([0.0, 0.0, 1.0])
    along = np.outer(axis, axis)
    # Second moments of a solid ellipsoid are semi-axis^2 / 5 per unit mass; I = tr(Sigma) 1 - Sigma.
    Sigma = (half**2 * along + width**2 * (np.eye(3) - along)) / 5.0
    return from_centre_of_mass(1.0, (start + end) / 2.0, np.trace(Sigma) * np.eye(3) - Sigma)


def nominal_prior(robot: Robot, names: Sequence[str], *, masses: FloatArray | None = None) -> Prior:
    """The description's own bodies where they are sound, stand-in ellipsoids elsewhere; drives at their nominal values.

    Args:
        robot: the arm.
        names: standard parameters.
        masses: of the stand-ins [kg], shape [n_joints]; by default those of neighbouring sound links, or 1 kg.
    """
    values, scale = np.zeros(len(names)), np.ones(len(names))
    bodies = bodies_of(names)
    origin: dict[str, str] = {}
    sound = [usable_as_prior(link.inertial) for link in robot.links]
    known = [link.inertial[0] for link, ok in zip(robot.links, sound, strict=True) if ok and link.inertial is not None]
    typical = float(np.median(known)) if known else 1.0
    for body in bodies:
        if body.link is not None:
            i = body.link
            nominal = robot.links[i].inertial
            if sound[i] and nominal is not None:
                ten, origin[body.owner] = nominal, "nominal"
            else:
                mass = typical if masses is None else float(masses[i])
                ten, origin[body.owner] = stand_in_body(robot, i) * mass, "geometry"
        else:
            ten, origin[body.owner] = stand_in_body(robot, robot.n_joints - 1) * typical, "geometry"
        values[list(body.columns)] = ten
    for column in other_columns(names, bodies):
        values[column], scale[column] = _drive_prior(robot, names[column], values, bodies)
    return Prior(names=tuple(names), values=values, scale=scale, origin=origin, notes=_prior_notes(origin))


def scaled_to_data(prior: Prior, information: Information) -> Prior:
    """The prior with its stand-in bodies multiplied by the one factor that fits the weighted rows best.

    Friction and everything else outside the bodies is left free for this; bodies from the description stay as they are.
    A factor that is not clearly positive says that gravity or the torque's sign is wrong; the prior then stays as it is.
    """
    made_up = [body for body in prior.bodies if prior.origin.get(body.owner) == "geometry"]
    if not made_up:
        return prior
    factor = information.stacked()
    R, z = factor[:, :-1], factor[:, -1]
    shape, known = np.zeros(len(prior.names)), np.zeros(len(prior.names))
    for body in prior.bodies:
        target = shape if body in made_up else known
        target[list(body.columns)] = body.of(prior.values)
    others = other_columns(prior.names, prior.bodies)
    solution = smallest_solution(np.column_stack([R @ shape, R[:, others]]), z - R @ known, rcond=1e-10)
    scale = float(solution[0])
    if scale < _SMALLEST_SCALE:
        return prior
    values = np.array(prior.values)
    for body in made_up:
        values[list(body.columns)] *= scale
    return replace(prior, values=values)


def _drive_prior(robot: Robot, name: str, values: FloatArray, bodies: Sequence[Body]) -> tuple[float, float]:
    """Centre and unit of doubt of a friction, rotor or offset parameter.

    Friction is centred at zero: `damping` and `friction` of most URDF files are there to calm a simulator, and where a
    motion does not show friction such numbers must not appear in the result as if it had.
    """
    parameter = named_parameter(name)
    quantity = parameter.quantity.removeprefix("motor_")
    joint = parameter.body if parameter.of_joint else -1
    nominal = float(getattr(robot.joints[joint].drive, quantity, 0.0)) if joint >= 0 else 0.0
    if quantity == "rotor_inertia":
        own = [body for body in bodies if body.link == joint]
        size = float(np.trace(pseudo_inertia(own[0].of(values))[:3, :3])) if own else 1.0
        return nominal, max(abs(nominal), size, 1e-3)
    return 0.0, max(abs(nominal), 1.0)


def _prior_notes(origin: dict[str, str]) -> tuple[Note, ...]:
    """Says which bodies were made up."""
    made_up = [owner for owner, source in origin.items() if source == "geometry"]
    if not made_up:
        return ()
    return (
        Note(
            "prior-from-geometry",
            Severity.INFO,
            f"{', '.join(made_up)}: the description has no usable inertia, so solid ellipsoids between neighbouring "
            "joints, scaled to the measured torque, stand in where the data cannot see; "
            "parameters marked 'prior' rest on them and not on measurement",
        ),
    )
