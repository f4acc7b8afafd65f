"""What sensors that are as wrong as they ordinarily are do to the uncertainty of a load.

Gains, zeros, scales, delays, the clock and the level of the base stand beside the load as random effects with their tolerances,
the arm known. By the likelihood of the rows each family is there with some probability; what it then does to the load that was
found without it widens its intervals.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armid.arrays import FloatArray
from armid.estimation.estimate import Estimate
from armid.estimation.recording import torque_source
from armid.estimation.run import Run
from armid.identification.imperfection_rows import RowsBeside, reference_of
from armid.identification.ordinary_sensors import ORDINARY, by_family
from armid.identification.possible_sizes import UNRESOLVED
from armid.rows.imperfections import Family, imperfections


def sensor_covariance(rest: Sequence[Run], load: Estimate, together: FloatArray, *, gains_known: bool) -> FloatArray:
    """Of the load's parameters, beyond what noise makes, shape [k, k].

    Args:
        rest: runs without the torque of the arm.
        load: fitted to them.
        together: parameters of arm and load, where columns of sensors are taken, shape [p].
        gains_known: whether drive gains have deviations of their own.
    """
    source = torque_source(rest)
    reference = reference_of(rest, together, recorded_velocity=False)
    families = [family for family in ORDINARY if not (gains_known and family is Family.GAIN)]
    items = imperfections(source.robot, source.effects, reference, families)
    rows = RowsBeside(rest, load.base, items)
    blocks = rows.blocks(reference, rows.noise(load), folds=1)
    return blocks.hidden(by_family(items), (), np.zeros((len(load.base), len(items))), UNRESOLVED)
