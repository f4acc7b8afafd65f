"""Which values of a result are meant: consistent bodies, base parameters as estimated, or the essential ones alone."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

import numpy as np

from armid.arrays import FloatArray
from armid.consistency.positivity import with_standard
from armid.errors import InputError
from armid.estimation.estimate import Estimate
from armid.identification.records import EssentialChoice
from armid.identification.result import Result
from armid.parameters.effects import PayloadRuns
from armid.robot.robot import Robot


class Parameters(StrEnum):
    """Values of a result."""

    CONSISTENT = "consistent"
    """Physically consistent standard parameters: for simulators, and for anything that inverts M."""
    BASE = "base"
    """The base parameters as estimated, in the leading columns: exactly what the data say."""
    ESSENTIAL = "essential"
    """Those that were found or named essential, the others zero: the reduced model."""


def essential_choice(result: Result) -> EssentialChoice:
    """The choice of essential parameters of a result.

    Raises:
        InputError: nobody asked which parameters are.
    """
    choice = result.sensitivity.essential
    if choice is None:
        hint = "identify with --essential, or with --keep and --drop"
        raise InputError("--parameters essential", "the result does not say which parameters are", hint)
    return choice


def standard_values(result: Result, parameters: Parameters) -> FloatArray:
    """The values meant, in the order of the torque rows' columns, shape [p]; zero in every column that is not leading.

    Raises:
        InputError: essential parameters of a result that does not name any.
    """
    match parameters:
        case Parameters.CONSISTENT:
            return result.standard
        case Parameters.BASE:
            return result.estimate.standard
        case Parameters.ESSENTIAL:
            values = essential_choice(result).values
            return np.array([values.get(name, 0.0) for name in result.estimate.base.parameters])


def chosen_robot(result: Result, parameters: Parameters) -> Robot:
    """The arm with the values meant; those without bodies stand in the leading parameters, zeros elsewhere.

    A payload told apart is not part of the arm.
    """
    if parameters is Parameters.CONSISTENT:
        return result.robot
    values = dict(zip(result.estimate.base.parameters, standard_values(result, parameters), strict=True))
    if result.effects.payload is PayloadRuns.BOTH:
        values = {name: value for name, value in values.items() if not name.startswith("payload.")}
    return with_standard(result.described, values)


def chosen_estimate(result: Result, parameters: Parameters) -> Estimate:
    """The base estimate meant; of a reduced model those left out are zero without deviation, for nobody estimated them."""
    if parameters is not Parameters.ESSENTIAL:
        return result.estimate
    choice, full = essential_choice(result), result.estimate
    deviations = np.array([choice.standard_deviations.get(name, 0.0) for name in full.names])
    return replace(
        full,
        values=np.array([choice.values.get(name, 0.0) for name in full.names]),
        covariance=np.diag(deviations**2),
        method=f"{full.method}, essential parameters",
    )
