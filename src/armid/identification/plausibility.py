"""Conditions of the gate that hold the identified bodies against the size of their links: masses, total mass, extents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.bodies import Body
from armid.consistency.consistent import ConsistentEstimate
from armid.consistency.link_shapes import link_shapes, relative_spreads
from armid.consistency.plausible import (
    AS_DESCRIBED,
    HEAVIEST_ARM,
    LIGHTEST_ARM,
    UNMEASURED_MASS,
    densities,
    mass_limits,
    widest_spreads,
)
from armid.consistency.within_links import unmeasured_masses
from armid.outcome import Check
from armid.parameters.space import ROTOR_INERTIA
from armid.robot.robot import Robot


def plausibility_checks(robot: Robot, consistent: ConsistentEstimate) -> tuple[Check, ...]:
    """Each mass, the total mass and each extent; empty when not every link is a body of the estimate.

    A link that is as implausible in the description as in the result is the description's matter, which a note names.

    Args:
        robot: as described.
        consistent: possible bodies.
    """
    bodies = [body for body in consistent.bodies if body.link is not None]
    if len(bodies) != robot.n_joints:
        return ()
    hint = _hint(consistent)
    return (
        _mass_check(robot, consistent, bodies, hint),
        *_total_mass_checks(robot, consistent, bodies),
        _extent_check(robot, consistent, bodies, hint),
    )


def _hint(consistent: ConsistentEstimate) -> str:
    """What usually hides in a body that has grown."""
    rotors = any(one.drive_quantity == ROTOR_INERTIA for one in consistent.parameters)
    return "a payload or a coupling may be missing in the model" if rotors else "try --rotor-inertia"


def _weak_torque(robot: Robot, masses: FloatArray, described: FloatArray, i: int) -> str:
    """What may have made all a joint carries too light: torque that lacks its gear ratio; empty where it is not that light.

    The torque of a vertical slide or of a last joint holds its own masses and little else: it cannot tell its own scale.
    """
    carried, expected = float(masses[i:].sum()), float(described[i:].sum())
    if expected < UNMEASURED_MASS.value * carried:
        return ""
    name = robot.joint_names[i]
    return (
        f"all that {name} carries would weigh {carried:.3g} kg instead of {expected:.3g} kg: its torque may be in another unit, "
        f"or before its gear (a ratio of about {expected / carried:.2g}); compare with the data sheet, or carry a weighed load"
    )


def _mass_check(robot: Robot, consistent: ConsistentEstimate, bodies: Sequence[Body], hint: str) -> Check:
    """The worst mass: against the prior where the data do not determine it, against the shapes anyway."""
    masses, before = (
        np.array([body.of(v)[0] for body in bodies]) for v in (consistent.values, consistent.prior.values)
    )
    low, high = mass_limits(robot, before, unmeasured_masses(consistent, bodies))
    by_shape = mass_limits(robot, before, np.zeros(len(bodies)))
    worst = np.maximum(masses / high, low / masses)
    i = int(np.argmax(worst))
    passed = bool(worst[i] <= 1.0)
    hint = _weak_torque(robot, masses, before, i) or hint
    text = f"{robot.links[i].name}: {masses[i]:.3g} kg"
    if not by_shape[0][i] <= masses[i] <= by_shape[1][i]:
        text += f", {densities(robot, masses.tolist())[i]:.3g} kg per m^3 of its shapes; {hint}"
    elif not passed:
        text += f" where {before[i]:.3g} kg were expected and the data do not determine it; {hint}"
    else:
        text = "every mass fits its link"
    return Check(
        code="plausible-mass",
        passed=passed,
        value=float(worst[i]),
        limit=1.0,
        message=text,
        subject="" if passed else robot.links[i].name,
    )


def _total_mass_checks(robot: Robot, consistent: ConsistentEstimate, bodies: Sequence[Body]) -> tuple[Check, ...]:
    """All links together against all shapes; nothing when a link has none."""
    shapes = link_shapes(robot)
    if not all(shape.drawn for shape in shapes):
        return ()
    volume = sum(shape.volume for shape in shapes)
    total = float(sum(body.of(consistent.values)[0] for body in bodies))
    density = total / volume
    lightest, heaviest = _arm_densities(robot, volume)
    text = f"all links together {total:.3g} kg, {density:.3g} kg per m^3 of their shapes"
    passed, limit = lightest <= density <= heaviest, heaviest if density > lightest else lightest
    return (Check(code="plausible-total-mass", passed=passed, value=density, limit=limit, message=text),)


def _arm_densities(robot: Robot, volume: float) -> tuple[float, float]:
    """Lightest and heaviest plausible arm per volume of its shapes [kg/m^3]; wider where the description's own is."""
    described = float(sum(0.0 if link.inertial is None else link.inertial[0] for link in robot.links)) / volume
    lightest = min(LIGHTEST_ARM.value, described / AS_DESCRIBED.value) if described > 0.0 else LIGHTEST_ARM.value
    return lightest, max(HEAVIEST_ARM.value, AS_DESCRIBED.value * described)


def _extent_check(robot: Robot, consistent: ConsistentEstimate, bodies: Sequence[Body], hint: str) -> Check:
    """The body that reaches farthest beyond its link."""
    found = relative_spreads(robot, [body.of(consistent.values) for body in bodies])
    allowed = widest_spreads(robot)
    i = int(np.argmax(found / allowed))
    passed = bool(found[i] <= allowed[i])
    text = "every body fits into its link"
    if not passed:
        text = (
            f"{robot.links[i].name}: its mass would lie on average {found[i]:.1f} times as far out as its farthest point "
            f"(at most {allowed[i]:.2g}); {hint}"
        )
    return Check(
        code="plausible-extent",
        passed=passed,
        value=float(found[i]),
        limit=float(allowed[i]),
        message=text,
        subject="" if passed else robot.links[i].name,
    )
