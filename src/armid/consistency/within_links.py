"""Bodies kept within the sizes of their links where the data leave that open.

Torque shows combinations of the bodies' parameters. How much of its mass a link shares with its neighbour is often not among
them, and a weak pull can then settle on a body wider or heavier than its link although another one explains the torque as well.
Limits of mass and of its distance from the centre of the link are linear in the parameters, so that one more program decides
whether they can be kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.consistency.bodies import Body
from armid.consistency.bounds import Bounds
from armid.consistency.consistent import ConsistentEstimate
from armid.consistency.link_shapes import link_shapes, relative_spreads
from armid.consistency.places import Where, support_of_ellipsoid
from armid.consistency.plausible import WITHIN_LINKS, mass_limits, widest_spreads
from armid.consistency.possible import PossibleBodies, Way
from armid.estimation.quantiles import chi_square_quantile
from armid.information.information import Information
from armid.information.status import EstimationError, Status
from armid.notes import Note, Severity
from armid.robot.robot import Robot

_ROOM = 0.99
"""Of every limit: a body on the limit itself would be judged by round-off."""


def unmeasured_masses(found: ConsistentEstimate, bodies: Sequence[Body]) -> FloatArray:
    """Which of these bodies' masses the data do not determine: ones and zeros."""
    return np.array([float(found.determined_by[body.columns[0]] == "prior") for body in bodies])


def within_links(
    robot: Robot, found: ConsistentEstimate, information: Information, settings: PossibleBodies
) -> ConsistentEstimate:
    """The estimate, or one whose bodies fit their links when noise explains what that costs in torque.

    Bodies that the torque itself asks to be wider or heavier than their links stay as they are, for the gate to name.

    Args:
        robot: whose links they are.
        found: possible bodies without regard to their links.
        information: rows they were found from, in units of their noise.
        settings: by which they were found.
    """
    bodies = [body for body in found.bodies if body.link is not None]
    if settings.way is not Way.LMI or len(bodies) != robot.n_joints:
        return found
    sizes = _Sizes.of(robot, found, bodies)
    beyond = sizes.beyond(robot, found.values)
    if not len(beyond):
        return found
    try:
        inside = replace(settings, bounds=sizes.bounds(robot, settings.bounds)).fit(
            information, found.units, found.prior
        )
    except EstimationError:
        return found
    allowed = chi_square_quantile(WITHIN_LINKS.value, len(beyond))
    if inside.status is not Status.SOLVED or inside.chi_square - found.chi_square > allowed:
        return found
    names = ", ".join(robot.links[i].name for i in beyond)
    text = (
        f"{names}: the data leave open how heavy it is and how far out its mass lies; kept within the size of its link"
    )
    return replace(inside, notes=(*inside.notes, Note("placed-within-link", Severity.INFO, text, names)))


@dataclass(frozen=True, eq=False, kw_only=True)
class _Sizes:
    """Plausible sizes of the links' bodies: lightest and heaviest [kg], widest relative spread; shape [n_joints] each."""

    bodies: Sequence[Body]
    lightest: FloatArray
    heaviest: FloatArray
    widest: FloatArray

    @staticmethod
    def of(robot: Robot, found: ConsistentEstimate, bodies: Sequence[Body]) -> _Sizes:
        expected = np.array([body.of(found.prior.values)[0] for body in bodies])
        # What the data see only in combination is theirs to settle within reason, and only if the torque does not mind.
        open_ = np.array([float(found.determined_by[body.columns[0]] != "data") for body in bodies])
        low, high = mass_limits(robot, expected, open_)
        return _Sizes(bodies=bodies, lightest=low, heaviest=high, widest=widest_spreads(robot))

    def beyond(self, robot: Robot, values: FloatArray) -> npt.NDArray[np.intp]:
        """Links whose bodies are too light, too heavy or too wide."""
        own = [body.of(values) for body in self.bodies]
        masses = np.array([body[0] for body in own])
        wide = relative_spreads(robot, own) > self.widest
        return np.flatnonzero(wide | (masses < self.lightest) | (masses > self.heaviest))

    def bounds(self, robot: Robot, known: Bounds) -> Bounds:
        """What is known, and these sizes with a little room."""
        where: dict[str, tuple[Where, ...]] = {}
        mass: dict[str, tuple[float, float]] = {}
        for i, (body, shape) in enumerate(zip(self.bodies, link_shapes(robot), strict=True)):
            radius = _ROOM * self.widest[i] * shape.radius
            where[body.owner] = (support_of_ellipsoid(shape.centre, np.eye(3) / radius),)
            mass[body.owner] = (float(self.lightest[i] / _ROOM), float(_ROOM * self.heaviest[i]))
        return replace(known.merged(where), mass={**mass, **known.mass})
