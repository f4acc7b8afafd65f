"""Kinematic error parameters: what they are called, what they move, and how far a maker may have been off."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, pi

from armid.parameters.space import Parameter


@dataclass(frozen=True, slots=True)
class KinematicParameter(Parameter):
    """One number added to the nominal kinematics: `link3.ty`, `joint3.offset`, `sensor.rx`, `tool.tz` (docs/conventions.md).

    Its `body` is the 0-based joint, -1 for what stands in front of the base and the number of joints for what hangs on the last
    link.

    Args:
        frame: name of the sensor placement, or of the body on the tool; empty for links and joints.
        tolerance: standard deviation of the Gaussian prior around nominal, same unit; infinite when nothing is known.
        rank: redundant parameters with a higher rank are dropped first.
    """

    frame: str = field(default="", kw_only=True)
    tolerance: float = field(default=inf, kw_only=True)
    rank: int = field(default=0, kw_only=True)

    @property
    def owner(self) -> str:
        """`link3`, `joint3`, or the name of the frame."""
        return self.frame or f"{self.kind}{self.body + 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerances:
    """Standard deviations of what makers, mounting and use leave uncertain: the default Gaussian prior.

    Published calibrations of industrial and collaborative arms find link lengths off by 0.1 to 2 mm, axes by 0.1 to
    2 mrad and zero positions by up to 10 mrad ([Kolyubin2017] table 2: 1.1 mm, 0.6 mrad, 9.8 mrad). The defaults are
    wider, chosen on recordings of real arms (docs/real-robots.md): a humanoid arm deviates by more. A parameter that
    the data know no better than this stays at its nominal value.

    Args:
        length: of a link [m].
        angle: between axes [rad].
        offset: of a revolute joint's zero [rad].
        offset_length: of a prismatic joint's zero [m].
        gain: of a joint's scale [1].
        eccentricity: amplitude of the once-per-turn error [rad or m].
        coupling: of one joint's motion into another [1].
        compliance: of a revolute joint [rad/(N m)].
        compliance_length: of a prismatic joint [m/N].
        sensor_position, sensor_angle: of a sensor frame [m, rad]: nothing is known beforehand.
        tool_position, tool_angle: of a tool frame around its closed-form start value [m, rad].
    """

    length: float = 5e-3
    angle: float = 5e-3
    offset: float = 2e-2
    offset_length: float = 5e-3
    gain: float = 5e-3
    eccentricity: float = 2e-3
    coupling: float = 5e-3
    compliance: float = 1e-3
    compliance_length: float = 1e-6
    sensor_position: float = 10.0
    sensor_angle: float = pi
    tool_position: float = 0.1
    tool_angle: float = 0.5
