"""Three arms that armid was not raised on, from description to files read by other programs."""

from __future__ import annotations

import numpy as np
import pytest

from armid.errors import InputError
from armid.studies.arms import arm_story, package_arms

ARMS = ("kinova.urdf", "ur5_robot.urdf", "z1.urdf")


@pytest.fixture(scope="module")
def arms():
    try:
        return {file.path.name: file for file in package_arms(*ARMS) if file.path.name in ARMS}
    except InputError:
        pytest.skip("example-robot-data is not installed")


@pytest.mark.parametrize("name", ARMS)
def test_an_unknown_arm_gets_a_model_and_files_as_good_as_it(arms, name: str) -> None:
    robot = arms[name].robot
    assert robot is not None, arms[name].reason
    record = arm_story(robot, name=name, design=False, motion_seconds=10.0, rate_hz=100.0)
    assert record.model < 0.03, record.line()
    assert record.wrong_masses == (), record.line()
    assert record.inside >= 0.8 * record.intervals, record.line()
    if record.verdict == "trusted":
        # The only file that a trusted model may be refused is one that lost what made it better than the description.
        assert all("error is larger than the description's" in why for why in record.refused), record.line()
        written = [error for error in (record.urdf, record.mjcf) if not np.isnan(error)]
        assert len(written) + len(record.refused) == 2, record.line()
        assert all(error < max(1.5 * record.model, 0.02) for error in written), record.line()
