"""What the parts of an arm can plausibly be, judged by its geometry: inertia at the joints, masses, extents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.consistency.link_shapes import link_shapes, relative_spreads
from armid.kernels.dynamics import mass_matrix
from armid.notes import Note, Severity
from armid.robot.robot import JointKind, Robot
from armid.thresholds import Threshold

_POSES = 64
"""Random ones: the median of a diagonal element of M(q) over them settles within a tenth."""
_WIDEST = np.pi
"""[rad]; joints without limits are looked at within a half turn to either side."""
_LONGEST = 1.0
"""[m]; the same for prismatic joints."""
WIDEST_SPREAD = Threshold(
    "widest-spread",
    1.5,
    "of the distance of the link's farthest point",
    "root mean square distance of a link's mass from the centre of its shapes. More than 1 is impossible; half as much again "
    "allows for shapes drawn too small. 52 of 58 links of the catalogue lie between 0.2 and 1, the wrists of a widely used UR5 "
    "description at 2.9 to 3.4",
)
LIGHTEST_LINK = Threshold(
    "lightest-link",
    20.0,
    "kg/m^3",
    "mass over the ellipsoid in a link's shapes: lighter than foam; published links start at 200",
)
HEAVIEST_LINK = Threshold(
    "heaviest-link",
    20_000.0,
    "kg/m^3",
    "the same: heavier than any metal that arms are made of; published links end at 8000",
)
LIGHTEST_ARM = Threshold(
    "lightest-arm", 100.0, "kg/m^3", "all links together, which vary less: published arms start at 350"
)
HEAVIEST_ARM = Threshold("heaviest-arm", 10_000.0, "kg/m^3", "all links together: published arms end at 5500")
UNMEASURED_MASS = Threshold(
    "unmeasured-mass",
    5.0,
    "times the prior's mass",
    "of a link whose mass the data do not determine, either way: the default pull doubts a body by 2.2 times its size, and two "
    "such deviations are as far as a prior goes; beyond, the link stands in for something that is not in the model",
)

AS_DESCRIBED = Threshold(
    "as-described",
    1.5,
    "times the description's own",
    "spread or density of a link, from which on it is the result's fault and not the description's",
)
WITHIN_LINKS = Threshold(
    "within-links",
    0.95,
    "of the chi-square distribution",
    "up to which noise explains what it costs in torque to keep bodies within the sizes of their links: then the data leave it "
    "open, and they are kept there; beyond, the torque itself asks for such a body, and the gate names it",
)

THRESHOLDS = (
    WIDEST_SPREAD,
    AS_DESCRIBED,
    WITHIN_LINKS,
    LIGHTEST_LINK,
    HEAVIEST_LINK,
    LIGHTEST_ARM,
    HEAVIEST_ARM,
    UNMEASURED_MASS,
)
"""Of plausible bodies, for the table of the gate."""


def inertia_at_joints(robot: Robot, bodies: Sequence[FloatArray] | None = None) -> FloatArray:
    """Typical inertia that every joint carries [kg m^2 or kg], shape [n_joints]: medians of M(q)'s diagonal, links alone.

    Args:
        robot: the arm; its own bodies unless others are given.
        bodies: ten parameters of every link.
    """
    inertial = robot.inertial if bodies is None else np.concatenate(list(bodies))
    rng = np.random.default_rng(0)
    lower, upper = _room(robot)
    q = rng.uniform(lower, upper, size=(_POSES, robot.n_joints))
    M = mass_matrix(robot, q, inertial=inertial)
    return np.asarray(np.median(np.diagonal(M, axis1=1, axis2=2), axis=0))


def _room(robot: Robot) -> tuple[FloatArray, FloatArray]:
    """Where poses are looked for: within the limits, and not without end."""
    widest = np.array([_WIDEST if joint.kind is JointKind.REVOLUTE else _LONGEST for joint in robot.joints])
    lower, upper = robot.limit("lower"), robot.limit("upper")
    bounded = np.isfinite(lower) & np.isfinite(upper) & (lower < upper)
    lower, upper = np.where(bounded, lower, -widest), np.where(bounded, upper, widest)
    middle = (lower + upper) / 2.0
    return np.maximum(lower, middle - widest), np.minimum(upper, middle + widest)


def densities(robot: Robot, masses: Sequence[float]) -> FloatArray:
    """Of ellipsoids as large as the links' shapes [kg/m^3], shape [n_joints]; nan for links without shapes."""
    return np.array(
        [mass / shape.volume if shape.drawn else np.nan for mass, shape in zip(masses, link_shapes(robot), strict=True)]
    )


def absurdly_dense(robot: Robot, masses: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether masses are too light or too heavy for the shapes of their links, shape [n_joints]; never without shapes."""
    dense = densities(robot, masses.tolist())
    return (dense > HEAVIEST_LINK.value) | (dense < LIGHTEST_LINK.value)


def widest_spreads(robot: Robot) -> FloatArray:
    """Largest plausible relative spread of every link's body, shape [n_joints]; wider where the description's own is."""
    described = np.nan_to_num(relative_spreads(robot, [link.inertial for link in robot.links]), nan=0.0, posinf=0.0)
    return np.maximum(WIDEST_SPREAD.value, AS_DESCRIBED.value * described)


def mass_limits(robot: Robot, described: FloatArray, unmeasured: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lightest and heaviest plausible mass of every link [kg], shapes [n_joints].

    Args:
        robot: whose shapes they fill.
        described: masses expected beforehand [kg], shape [n_joints].
        unmeasured: whether the data do not determine a mass, so that it stays near the expected one, shape [n_joints].
    """
    dense = densities(robot, described.tolist())
    volume = described / dense
    heaviest = np.nan_to_num(np.maximum(HEAVIEST_LINK.value, AS_DESCRIBED.value * dense) * volume, nan=np.inf)
    lightest = np.nan_to_num(np.minimum(LIGHTEST_LINK.value, dense / AS_DESCRIBED.value) * volume, nan=0.0)
    near = np.where(unmeasured, UNMEASURED_MASS.value, np.inf)
    return np.maximum(lightest, described / near), np.minimum(heaviest, described * near)


def absurd_bodies(robot: Robot) -> tuple[Note, ...]:
    """Says which of the description's own bodies do not fit into the shapes it gives them."""
    bodies = [link.inertial for link in robot.links]
    spreads = relative_spreads(robot, bodies)
    masses = np.array([np.nan if body is None else float(body[0]) for body in bodies])
    dense, unfit = densities(robot, masses.tolist()), absurdly_dense(robot, masses)
    notes = []
    for link, spread, density, misfit in zip(robot.links, spreads, dense, unfit, strict=True):
        what = []
        if spread > WIDEST_SPREAD.value:
            what.append(f"its mass would lie on average {spread:.1f} times as far out as its farthest point")
        if misfit:
            what.append(f"it would weigh {density:.3g} kg per m^3 of its shapes")
        if what:
            text = f"the description's link {link.name!r} is no plausible body: {' and '.join(what)}; correct its <inertial>"
            notes.append(Note("description-absurd", Severity.WARNING, text, link.name))
    return tuple(notes)
