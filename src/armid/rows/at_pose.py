"""What sources of rows at a standing pose share: the parameter vector, and positions as their inputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from armid.parameters.effects import Effects
from armid.parameters.space import ParameterSpace
from armid.robot.robot import Robot
from armid.rows.torque import space_of


@dataclass(frozen=True)
class AtPose:
    """A quantity of the arm that depends on its position alone.

    Args:
        robot: geometry, gravity, coupling.
        effects: decides the parameter vector, so that several quantities can share one.
        loaded: whether the payload was there; only meaningful with a payload among the effects.
    """

    robot: Robot
    effects: Effects = Effects()
    loaded: bool = field(default=True, kw_only=True)

    @cached_property
    def space(self) -> ParameterSpace:
        return space_of(self.robot, self.effects)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.space.names

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(f"q{i + 1}" for i in range(self.robot.n_joints))
