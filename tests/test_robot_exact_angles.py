"""Right angles written with a few decimals: which ones, and that rank never rests on them."""

from __future__ import annotations

from dataclasses import replace
from math import pi

import pytest

from armid.identifiability.regrouping import regroup
from armid.identifiability.structure import meant_source, structural_base
from armid.kernels.evaluate import Restricted
from armid.robot.exact_angles import is_rounded, meant_angle, meant_robot
from armid.robot.load import load_robot
from armid.rows.filtered import FilteredTorqueRows
from armid.rows.torque import TorqueRows


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (1.5708, pi / 2),
        (-1.57, -pi / 2),
        (3.14, pi),
        (3.1415, pi),
        (0.7854, pi / 4),
        (-2.3562, -3 * pi / 4),
        (4.712, 1.5 * pi),
    ],
)
def test_decimal_roundings_are_seen(written, meant):
    assert meant_angle(written) == pytest.approx(meant, abs=1e-15)


@pytest.mark.parametrize("written", [0.0, 0.1, 1.5, 1.571234, 0.79, 0.8, 3.2, 1.5711, pi / 2, -pi])
def test_other_angles_stay(written):
    assert meant_angle(written) == written
    assert not is_rounded(written)


def rounded(robot, digits: int):
    """The arm with every constant angle written with a few digits."""
    return replace(
        robot,
        joints=tuple(
            replace(
                joint,
                transforms=tuple(
                    replace(e, value=round(e.value, digits)) if e.motion.is_rotation else e for e in joint.transforms
                ),
            )
            for joint in robot.joints
        ),
    )


@pytest.mark.parametrize("name", ["iiwa14", "lwr4-dh"])
@pytest.mark.parametrize("digits", [2, 4])
def test_rank_does_not_rest_on_roundings(name, digits):
    arm = load_robot(name)
    written = rounded(arm, digits)
    assert any(is_rounded(e.value) for joint in written.joints for e in joint.transforms)
    assert structural_base(TorqueRows(written)).names == structural_base(TorqueRows(arm)).names
    assert regroup(TorqueRows(written)).terms == regroup(TorqueRows(arm)).terms


def test_rank_does_not_rest_on_roundings_behind_other_rows():
    arm = load_robot("iiwa14")
    written = rounded(arm, 4)
    for source in (FilteredTorqueRows(TorqueRows(written)), Restricted(TorqueRows(written), tuple(range(70)))):
        meant = meant_source(source)
        assert isinstance(meant, type(source))
        assert meant is not source
        assert meant_source(meant) is meant
    assert structural_base(FilteredTorqueRows(TorqueRows(written))).names == structural_base(TorqueRows(arm)).names
    plain = FilteredTorqueRows(TorqueRows(arm))
    assert meant_source(plain) is plain


def test_an_arm_without_roundings_is_the_same_object():
    arm = load_robot("ur10e")
    assert meant_robot(arm) is arm
