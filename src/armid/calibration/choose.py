"""The choice between error models, from errors with each configuration left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from armid.calibration.fit import KinematicFit
from armid.calibration.leave_out import left_out_errors
from armid.calibration.tool_error import by_group
from armid.errors import InputError
from armid.estimation.paired import paired_t, sure
from armid.kinematics.measurement import Measurements
from armid.kinematics.model import ErrorModel
from armid.kinematics.parameter import Tolerances
from armid.kinematics.words import Term, UnknownGeometry
from armid.robot.robot import Robot
from armid.words import choice

_EQUATIONS_PER_PARAMETER = 2.0
"""A richer model with fewer equations than this for each parameter fits noise as readily as anything real, and the leverage of
its rows no longer tells what it would do elsewhere."""

AUTO = "auto"
"""Word for the terms that the data may choose from by themselves."""


def default_candidates(
    robot: Robot,
    *,
    geometry: UnknownGeometry = UnknownGeometry.COMPLETE,
    tolerances: Tolerances | None = None,
    torque: bool = False,
) -> tuple[ErrorModel, ...]:
    """Geometry and joint zeros; the same with eccentricity, and compliance where masses are known or torque was measured."""
    simple = ErrorModel(geometry, frozenset({Term.OFFSET}), (), tolerances or Tolerances())
    rich = {Term.OFFSET, Term.ECCENTRICITY} | ({Term.COMPLIANCE} if torque or robot.inertial.any() else set())
    return simple, replace(simple, terms=frozenset(rich))


def candidates_of(
    robot: Robot, model: UnknownGeometry | str, terms: str | Iterable[Term | str], *, torque: bool = False
) -> tuple[ErrorModel, ...]:
    """The error models to choose from, simplest first.

    Args:
        robot: nominal arm.
        model: which link constants are unknown.
        terms: joint terms, as words with commas or one by one; `auto` for the default pair, `none` for none.
        torque: whether the measurements come with joint torques.

    Raises:
        UnknownNameError: a word that does not exist.
        InputError: compliance, and nothing says under which torque.
    """
    chosen = default_candidates(robot, geometry=choice("model", model, UnknownGeometry), torque=torque)
    words = [word.strip() for word in terms.split(",")] if isinstance(terms, str) else list(terms)
    if words == [AUTO]:
        return chosen
    wanted = frozenset(choice("joint term", word, Term) for word in words if word != "none")
    if Term.COMPLIANCE in wanted and not torque and not robot.inertial.any():
        raise InputError(
            robot.name,
            "joint compliance was asked for, but the description has no masses",
            "use a URDF with <inertial>, measure joint torques (columns tau1, tau2, ...), or leave the term out",
        )
    simple = replace(chosen[0], terms=wanted & {Term.OFFSET})
    rich = replace(chosen[0], terms=wanted)
    return (simple,) if rich == simple else (simple, rich)


def choose(fits: Sequence[KinematicFit], measurements: Measurements) -> int:
    """The last candidate that is clearly better than the best simpler one, by errors with each configuration left out.

    Everything comes from the measurements the candidates were fitted to, so the choice can be repeated inside every
    training set of a held-out test.
    """
    best = 0
    if len(fits) == 1:
        return best
    errors = [by_group(*left_out_errors(f, measurements).main, measurements) for f in fits]
    for k in range(1, len(fits)):
        if measurements.n_distinct_equations < _EQUATIONS_PER_PARAMETER * fits[k].after.selection.kept.sum():
            continue
        if paired_t(errors[best], errors[k]) > sure(len(errors[k])):
            best = k
    return best
