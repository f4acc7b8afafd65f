"""What rows show in practice: a direction that is independent on paper may be far below the noise of any torque."""

from __future__ import annotations

import numpy as np

from armid.identifiability.base import BaseParameters, base_parameters
from armid.information.information import Information

PRACTICAL_RANK = 1e-4
"""Of the largest singular value of the column-scaled rows, below which a direction is not excited; why is said by
`armid check --thresholds`."""


def excited(information: Information, base: BaseParameters) -> bool:
    """Whether the rows show every one of these parameters apart from the others."""
    factor = information.select(base.independent).stacked()[:, :-1]
    norms = np.linalg.norm(factor, axis=0)
    singular = np.linalg.svd(factor / np.where(norms > 0.0, norms, 1.0), compute_uv=False)
    return bool(np.all(norms > 0.0) and singular[-1] > PRACTICAL_RANK * singular[0])


def excited_base(information: Information, *, what: str = "the torque") -> BaseParameters:
    """Base parameters that the rows show.

    Args:
        information: of the rows.
        what: they are of, for the reason of the rank.
    """
    why = f"tolerance {PRACTICAL_RANK:g}: less is not excited"
    return base_parameters(information, tolerance=PRACTICAL_RANK, why=why, what=what)
