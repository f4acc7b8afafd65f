"""A delay is found only where it explains more than friction that turns around late."""

from __future__ import annotations

import numpy as np
import pytest

from armid.identification.late_torque import doubtful_delays
from armid.identification.sensors import Sized
from armid.rows.imperfections import Family, Imperfection

GAIN, OWN, OTHER = (
    Sized(Imperfection(family=family, joint=joint, unit="s", tolerance=0.003), 0.02, 0.001)
    for family, joint in ((Family.GAIN, 0), (Family.DELAY, 1), (Family.DELAY, 2))
)
COMMON = Sized(Imperfection(family=Family.COMMON_DELAY, joint=None, unit="s", tolerance=0.003), 0.02, 0.001)


@pytest.mark.parametrize(
    ("ratios", "doubtful"),
    [
        ((0.88, 0.29, 0.9), []),  # torque on time leaves a third
        ((1.05, 0.95, 1.02), [OWN, OTHER, COMMON]),  # friction that turns late is as good
        ((1.0, 0.3, 1.0), [OTHER]),  # one of two delays explains nothing of its own joint
        ((0.5, 1.2, 1.3), [OWN, OTHER]),
    ],
)
def test_the_hypothesis_that_leaves_less_is_taken(ratios: tuple[float, ...], doubtful: list[Sized]) -> None:
    assert doubtful_delays((GAIN, OWN, OTHER, COMMON), np.array(ratios)) == doubtful
