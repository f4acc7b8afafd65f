"""An arm that is not built as described, and what is allowed to be wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import pi
from pathlib import Path

import numpy as np

from armid.arrays import FloatArray
from armid.kinematics.build import kinematic_model
from armid.kinematics.calibrated import calibrated_robot, frame_matrix
from armid.kinematics.correction import read_correction
from armid.kinematics.model import ErrorModel
from armid.kinematics.parameter import Tolerances
from armid.kinematics.words import Term, UnknownGeometry
from armid.notes import Note, Severity
from armid.parameters.space import OwnerKind
from armid.robot.elementary import Elementary, Move, product
from armid.robot.robot import Robot

PUBLISHED_ARM = "lwr4plus"

_PUBLISHED: dict[str, tuple[float, float, float, float]] = {
    "link2": (1.2e-4, -3e-4, -4.2e-3, 3.9e-5),
    "link3": (6.1e-4, -3e-4, -9.8e-3, -1e-4),
    "link4": (1.4e-4, 1.1e-3, -6.5e-3, 2.6e-4),
    "link5": (-1.1e-4, -9e-4, 1.1e-3, 8e-4),
    "link6": (6.4e-4, 4e-4, -1.6e-3, 1.6e-4),
    "link7": (-3.6e-4, -6e-4, 0.0, 0.0),
}
"""Calibrated minus nominal alpha [rad], a [m], theta [rad], d [m] of frames 2 to 7, [Kolyubin2017] table 2."""

_FIXTURE = (5.3e-4, -0.0002, 0.7859, 0.0911)
"""The LED fixture as calibrated, the same four of frame 8; [Kolyubin2017] table 2."""

_OTHER_TARGET = (0.0, 0.04, 0.8, 0.1)
"""Where the target sits on any other arm's last link."""

_USUAL = Tolerances(length=6e-4, angle=4e-4, offset=5e-3, offset_length=6e-4)
"""Root mean square of the deviations of table 2, for arms nobody has published any for."""

_ERRORS = ErrorModel(UnknownGeometry.HAYATI, frozenset({Term.OFFSET}))
"""Denavit-Hartenberg constants of every link; the model of [Kolyubin2017] wherever no two axes are parallel."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Misbuilt:
    """The arm that is really there.

    Args:
        robot: with its own geometry; link frames, and so the meaning of its inertial parameters, move along with it.
        errors: what a calibration may look for.
        T_link_target: where the tracked target really sits on the last link, shape [4, 4].
        origin: where the deviations come from, in words.
        notes: what could not be built in.
    """

    robot: Robot
    errors: ErrorModel
    T_link_target: FloatArray
    origin: str
    notes: tuple[Note, ...] = field(default=())


def misbuilt(nominal: Robot, correction: Path | None, rng: np.random.Generator) -> Misbuilt:
    """The published specimen of the arm of the paper, that of a correction file, or one drawn at random.

    Args:
        nominal: the arm as described.
        correction: written by a calibration; its values are taken as the truth.
        rng: of the deviations that are drawn.
    """
    if correction is not None:
        return _from_correction(nominal, correction)
    if nominal.source.path == f"catalogue:{PUBLISHED_ARM}":
        return _published_arm(nominal)
    return _drawn_arm(nominal, rng)


def _published_arm(nominal: Robot) -> Misbuilt:
    """The LWR4+ of [Kolyubin2017]: table 2 without its camera rows, which are no manufacturing deviations."""
    model = kinematic_model(nominal, _ERRORS, setups={}, targets={})
    values = np.zeros(len(model.parameters))
    for link, row in _PUBLISHED.items():
        for label, value in zip(("alpha", "a", "theta", "d"), row, strict=True):
            values[model.index(f"{link}.{label}")] = value
    origin = "deviations of frames 2 to 8 as published ([Kolyubin2017] table 2)"
    return Misbuilt(
        robot=calibrated_robot(model, values), errors=_ERRORS, T_link_target=target(_FIXTURE), origin=origin
    )


def _drawn_arm(nominal: Robot, rng: np.random.Generator) -> Misbuilt:
    """Deviations of the usual size.

    The first joint stays where the base is and the last zero where the target is: no measurement of the target tells
    them from the frames of sensor and target.
    """
    errors = ErrorModel(_ERRORS.geometry, _ERRORS.terms, tolerances=_USUAL)
    model = kinematic_model(nominal, errors, setups={}, targets={})
    values = model.tolerances * rng.standard_normal(len(model.parameters))
    last = nominal.n_joints - 1
    for i, parameter in enumerate(model.parameters):
        if parameter.of_link and (
            parameter.body == 0 or (parameter.body == last and parameter.quantity in ("theta", "d"))
        ):
            values[i] = 0.0
        assert parameter.kind in (OwnerKind.LINK, OwnerKind.JOINT)
    origin = "deviations drawn at random: 0.6 mm, 0.4 mrad between axes, 5 mrad of joint zeros (standard deviations)"
    return Misbuilt(
        robot=calibrated_robot(model, values), errors=_ERRORS, T_link_target=target(_OTHER_TARGET), origin=origin
    )


def _from_correction(nominal: Robot, path: Path) -> Misbuilt:
    """The arm a calibration found, taken as the real one."""
    found = read_correction(path, nominal)
    frames = list(found.model.targets.values())
    T = frame_matrix(frames[0], found.values) if frames else target(_OTHER_TARGET)
    notes: tuple[Note, ...] = ()
    if found.encoder_terms:
        text = f"encoder errors are not simulated: {', '.join(found.encoder_terms)}"
        notes = (Note("encoders-perfect", Severity.INFO, text),)
    return Misbuilt(
        robot=found.robot, errors=_ERRORS, T_link_target=T, origin=f"deviations of {path.name}", notes=notes
    )


def target(numbers: tuple[float, float, float, float]) -> FloatArray:
    """T_link_target from alpha, a, theta, d."""
    motions = (Move.RX, Move.TX, Move.RZ, Move.TZ)
    return product(Elementary(motion=motion, value=value) for motion, value in zip(motions, numbers, strict=True))


def beside(distance: float = 2.0) -> FloatArray:
    """T_sensor_base of a camera that looks at the arm from the side, its own z axis level, shape [4, 4]."""
    steps = (
        Elementary(motion=Move.TZ, value=distance),
        Elementary(motion=Move.RX, value=pi / 2),
        Elementary(motion=Move.RZ, value=0.4),
        Elementary(motion=Move.TZ, value=-0.5),
    )
    return product(steps)
