"""Which parameters the measurements know better than the maker's tolerance does.

Rows are whitened by the measurement noise and columns scaled by the tolerances, so that lengths are signal-to-noise
ratios: a parameter whose column, after removing everything the kept parameters already explain, is shorter than one
is known no better from the data than beforehand. It is held at nominal and named; that is what keeps a nearly frozen
joint from asking for metres.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from armid.arrays import FloatArray
from armid.identifiability.select import choose_columns
from armid.kinematics.model import KinematicModel
from armid.parameters.space import OwnerKind

_WORTH_KNOWING = 1.0
"""Signal-to-noise ratio from which on a parameter is fitted."""
_WORTH_MOVING = 3.0
"""The same for a frame on the tool: it starts where closed form puts it, or where the description has the tip in directions that
the configurations do not show, and is better left there than moved by what is mostly noise."""
_DEPENDENT = 1e-4
"""Relative length below which a column counts as dependent whatever the noise: two parameters that differ in a
ten-thousandth of their effect are one for an arm whose errors are themselves of that size."""


_MOST_OF_EQUATIONS = 0.75
"""Fraction of the equations that may become parameters: with fewer left over residuals no longer show the noise, everything
looks significant, and a model that passes through every measurement would be believed."""


class ParameterStatus(StrEnum):
    """What became of a parameter."""

    IDENTIFIED = "identified"
    REDUNDANT = "redundant"
    """Others already have the same effect at these configurations: held at nominal."""
    WEAK = "weak"
    """It has an effect, but below the noise: held at nominal."""
    GAUGE = "gauge"
    """No measurement knows it: chosen so that the base stays where it is."""


@dataclass(frozen=True, eq=False)
class Selection:
    """The decision for every parameter.

    Args:
        kept: mask, shape [p].
        ratio: signal-to-noise ratio of what each parameter adds to those kept before it, shape [p].
        status: shape [p].
    """

    kept: npt.NDArray[np.bool_]
    ratio: FloatArray
    status: tuple[ParameterStatus, ...]


def select(
    model: KinematicModel,
    factor: FloatArray,
    allowed: npt.NDArray[np.bool_] | None = None,
    *,
    previous: npt.NDArray[np.bool_] | None = None,
    n_equations: int | None = None,
) -> Selection:
    """Decide for every parameter, frames first, then zeros, then lengths and axes, from tip to base.

    Args:
        model: for names, ranks and tolerances.
        factor: any matrix with the same column products as the whitened rows, shape [m, p].
        allowed: mask of the parameters that may be kept at all.
        previous: those kept at an earlier, worse noise come first, so that two nearly dependent ones do not take turns.
        n_equations: behind the factor; limits how many are kept.
    """
    p = len(model.parameters)
    first = np.zeros(p, dtype=bool) if previous is None else previous
    order = sorted(model.preferred, key=lambda i: not first[i])
    if allowed is not None:
        order = [i for i in order if allowed[i]]
    worth = np.where(model.owned(OwnerKind.TARGET), _WORTH_MOVING / _WORTH_KNOWING, 1.0)
    found = choose_columns(
        factor * model.tolerances / worth,
        order,
        dependent=_DEPENDENT,
        worth=_WORTH_KNOWING,
        most=None if n_equations is None else int(_MOST_OF_EQUATIONS * n_equations),
    )
    kept = np.isin(np.arange(p), found.kept)
    status = tuple(
        ParameterStatus.IDENTIFIED
        if kept[i]
        else ParameterStatus.REDUNDANT
        if found.dependent[i]
        else ParameterStatus.WEAK
        for i in range(p)
    )
    return Selection(kept, found.distance * worth, status)
