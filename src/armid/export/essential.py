"""A model reduced to its essential parameters: its values, and the price of what was left out on the held-out motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.identification.chosen import Parameters, chosen_robot, essential_choice, standard_values
from armid.identification.combine import relative_error
from armid.identification.result import Result
from armid.identification.thresholds import JOINT_ERROR
from armid.robot.robot import Robot


@dataclass(frozen=True, eq=False, kw_only=True)
class ReducedModel:
    """Essential base parameters in the leading standard ones, zeros elsewhere.

    Args:
        robot: with these values.
        kept, base: how many parameters there are, and were.
        held_out: torque error on the held-out motion over the torque; not a number without one.
        price: that error over the full model's.
    """

    robot: Robot
    kept: int
    base: int
    held_out: float
    price: float

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not to be used; empty when it may be."""
        if self.held_out <= JOINT_ERROR.value:
            return ()
        if np.isnan(self.held_out):
            return ("the reduced model was not tested on held-out motion",)
        return (
            f"reduced to {self.kept} parameters the held-out torque error is {100 * self.held_out:.1f} % (limit "
            f"{100 * JOINT_ERROR.value:g} %)",
        )

    @property
    def words(self) -> str:
        """What a file says about it."""
        return (
            f"{self.kept} essential of {self.base} base parameters: held-out torque error {100 * self.held_out:.2f} % of the "
            f"torque, {self.price:.3f} times that of all of them"
        )


def reduced_model(result: Result) -> ReducedModel:
    """The reduced model of a result that was identified with `--essential`, `--keep` or `--drop`.

    Raises:
        InputError: nobody asked which parameters are essential.
    """
    standard = standard_values(result, Parameters.ESSENTIAL)
    errors = [
        float("nan") if result.held_out_information is None else relative_error(result.held_out_information, values)
        for values in (standard, result.estimate.standard)
    ]
    return ReducedModel(
        robot=chosen_robot(result, Parameters.ESSENTIAL),
        kept=len(essential_choice(result).kept),
        base=len(result.estimate),
        held_out=errors[0],
        price=errors[0] / errors[1] if errors[1] > 0.0 else float("nan"),
    )
