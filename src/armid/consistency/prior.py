"""Where parameters are pulled in directions the data cannot see, and how hard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from armid.arrays import FloatArray, read_only
from armid.consistency.bodies import Body, bodies_of, other_columns
from armid.consistency.link_shapes import link_shapes
from armid.consistency.plausible import absurd_bodies, absurdly_dense, inertia_at_joints
from armid.information.information import Information
from armid.information.solve import smallest_solution
from armid.notes import Note, Severity
from armid.parameters.inertial import InertialIndex, inertial_problem, pseudo_inertia
from armid.parameters.space import Parameter, named_parameters
from armid.robot.robot import Robot

_DENSITY = 1300.0
"""[kg/m^3] of ellipsoids as large as a link's shapes, where no link's mass is known: the median over 90 links of the
catalogue and of five arms in example-robot-data is 1289, and nine in ten lie between 380 and 5000."""
_SMALLEST_SCALE = 0.05
"""[kg per stand-in]; lighter links than this are no arm."""
_SINGULAR = 1e-6
"""Relative to the trace: a nominal pseudo-inertia with a smaller eigenvalue is a point or a rod, no use as a metric."""
_UNKNOWN_ROTOR = 100.0
"""Doubt of a rotor inertia that no description gives, in units of what its joint carries. Reflected through a gear it lies
between a tenth and some hundred times of that (the last joint of a wrist carries almost nothing), and links are known far
better: they must not grow to stand in for it."""
_SMALLEST_ROTOR = 1e-3
"""[kg m^2 or kg]; unit of doubt where a joint carries next to nothing."""


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
    def parameters(self) -> tuple[Parameter, ...]:
        """What the names stand for."""
        return named_parameters(self.names)

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
    """A solid ellipsoid of 1 kg as large as the link's shapes, or between its joints where it has none.

    Args:
        robot: geometry.
        link: 0-based.
    """
    return link_shapes(robot)[link].body()


def nominal_prior(robot: Robot, names: Sequence[str], *, masses: FloatArray | None = None) -> Prior:
    """The description's own bodies where they are sound, stand-in ellipsoids elsewhere; drives at their nominal values.

    Args:
        robot: the arm.
        names: standard parameters.
        masses: of the stand-ins [kg], shape [n_joints]; by default as dense as the arm's sound links.
    """
    return _described(robot, tuple(names), None if masses is None else tuple(np.asarray(masses).tolist()))


@lru_cache(maxsize=16)
def _described(robot: Robot, names: tuple[str, ...], masses: tuple[float, ...] | None) -> Prior:
    """The prior of an arm: every fit to its torques asks for the same one."""
    values, scale = np.zeros(len(names)), np.ones(len(names))
    bodies = bodies_of(names)
    origin: dict[str, str] = {}
    sound = [usable_as_prior(link.inertial) for link in robot.links]
    typical = _typical_masses(robot, sound)
    for body in bodies:
        if body.link is not None:
            i = body.link
            nominal = robot.links[i].inertial
            if sound[i] and nominal is not None:
                ten, origin[body.owner] = nominal, "nominal"
            else:
                mass = float((typical if masses is None else masses)[i])
                ten, origin[body.owner] = stand_in_body(robot, i) * mass, "geometry"
        else:
            ten, origin[body.owner] = stand_in_body(robot, robot.n_joints - 1) * typical[-1], "geometry"
        values[list(body.columns)] = ten
    links = [body for body in bodies if body.link is not None]
    carried = inertia_at_joints(robot, [body.of(values) for body in links]) if len(links) == robot.n_joints else None
    parameters = named_parameters(names)
    for column in other_columns(names, bodies):
        values[column], scale[column] = _drive_prior(robot, parameters[column], carried)
    notes = (*_prior_notes(origin), *absurd_bodies(robot))
    return Prior(names=names, values=values, scale=scale, origin=origin, notes=notes)


def _typical_masses(robot: Robot, sound: Sequence[bool]) -> FloatArray:
    """Of links as large as these and as dense as the arm's sound ones [kg], shape [n_joints].

    A mass that is stated is kept where it fits the link, also when no body has the moments of inertia stated beside it. Joints
    alone say nothing about how heavy a link is: those without shapes weigh as much as the others do in the middle.
    """
    shapes = link_shapes(robot)
    stated = np.array([0.0 if link.inertial is None else link.inertial[InertialIndex.MASS] for link in robot.links])
    known = {i: float(mass) for i, mass in enumerate(stated) if sound[i]}
    dense = [mass / shapes[i].volume for i, mass in known.items() if shapes[i].drawn]
    density = np.median(dense) if dense else _DENSITY
    masses = np.array([density * shape.volume if shape.drawn else np.nan for shape in shapes])
    drawn = masses[np.isfinite(masses)]
    middle = np.median(list(known.values())) if known else np.median(drawn) if len(drawn) else 1.0
    usable = (stated > 0.0) & ~(absurdly_dense(robot, stated))
    return np.where(usable, stated, np.where(np.isfinite(masses), masses, middle))


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


def _drive_prior(robot: Robot, parameter: Parameter, carried: FloatArray | None) -> tuple[float, float]:
    """Centre and unit of doubt of a friction, rotor or offset parameter.

    Friction is centred at zero: `damping` and `friction` of most URDF files are there to calm a simulator, and where a
    motion does not show friction such numbers must not appear in the result as if it had. A rotor inertia that the
    description does not give is unknown, not zero: where the torque shows only its sum with the inertia of a link, the link
    stays as described and the rotor takes the rest.
    """
    quantity = parameter.drive_quantity or parameter.quantity
    joint = parameter.body if parameter.of_joint else -1
    nominal = float(getattr(robot.joints[joint].drive, quantity, 0.0)) if joint >= 0 else 0.0
    if quantity == "rotor_inertia":
        size = 1.0 if carried is None or joint < 0 else float(carried[joint])
        return nominal, max(size, nominal, _SMALLEST_ROTOR) if nominal > 0.0 else _UNKNOWN_ROTOR * max(
            size, _SMALLEST_ROTOR
        )
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
