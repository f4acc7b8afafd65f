"""What the user gets: deviations as the criterion, motions after a result, and how many periods a wish takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.design.known import Wish, check_wishes, concerned, known_from, periods_needed, wishes_of
from armid.errors import InputError, UnknownNameError
from armid.identifiability.smooth import Merit, SmoothCriterion
from armid.identifiability.structure import structural_base
from armid.parameters.effects import Effects, effects_of
from armid.robot.load import load_robot
from armid.robot.robot import Drive
from armid.rows.torque import TorqueRows
from support.identified import trusted

QUICK = {"period": 6.0, "harmonics": 4, "seconds": None, "starts": 1, "workers": 1}


def test_the_mean_of_log_deviations_does_not_care_for_units():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(40, 6))
    merit, scale = Merit(SmoothCriterion.DEVIATIONS), rng.uniform(0.01, 100.0, 6)
    value = merit(A.T @ A)[0]
    assert value == pytest.approx(np.log(np.sqrt(np.diag(np.linalg.inv(A.T @ A)))).mean())
    rescaled = (A * scale).T @ (A * scale)
    assert merit(rescaled)[0] == pytest.approx(value - np.log(scale).mean())


def test_what_is_known_already_is_added_before_anything_is_weighed():
    rng = np.random.default_rng(2)
    A, B = rng.normal(size=(2, 30, 5))
    both = Merit(SmoothCriterion.DEVIATIONS)(A.T @ A + B.T @ B)
    known = Merit(SmoothCriterion.DEVIATIONS, known=B.T @ B)(A.T @ A)
    assert known[0] == pytest.approx(both[0])
    np.testing.assert_allclose(known[1], both[1], rtol=1e-9)


def test_motions_that_mix_metres_and_radians_are_better_known_by_deviations_than_by_the_condition_number():
    own = armid.design_motion("cylindrical", **QUICK)
    other = armid.design_motion("cylindrical", criterion="condition", **QUICK)
    assert own.settings.criterion is SmoothCriterion.DEVIATIONS
    assert np.log(own.deviations).mean() < np.log(other.deviations).mean()
    assert "typical deviation" in own.summary()
    assert own.as_dict()["criterion"] == "deviations"
    assert len(own.as_dict()["noise"]) == 3


def test_the_next_motion_starts_from_what_a_result_knows():
    result = trusted()
    arm = result.described
    rows = TorqueRows(arm, Effects(viscous=True, coulomb=True, offset=True))
    base = structural_base(rows)
    known = known_from(result, arm, rows, base)
    shared = [k for k, name in enumerate(base.names) if name in result.estimate.names]
    told = np.sqrt(np.diag(np.linalg.pinv(known.information[np.ix_(shared, shared)])))
    place = [result.estimate.names.index(base.names[k]) for k in shared]
    np.testing.assert_allclose(told, np.sqrt(np.diag(result.estimate.covariance))[place], rtol=1e-3)
    alone = armid.design_motion(arm, **QUICK, noise=known.noise)
    after = armid.design_motion(arm, **QUICK, after=result)
    assert (after.deviations[shared] <= 1.0001 * told).all()
    assert np.log(after.deviations).mean() < np.log(alone.deviations).mean()


def test_a_result_of_another_arm_is_refused():
    with pytest.raises(InputError, match="a result about the joints waist"):
        armid.design_motion("cylindrical", **QUICK, after=trusted())


def test_wishes_are_read_and_bad_ones_named():
    assert wishes_of("mass 2 %, friction 5") == (
        Wish(what="mass", deviation=0.02),
        Wish(what="friction", deviation=0.05),
    )
    with pytest.raises(InputError, match="mass 2 %, friction 5 %"):
        wishes_of("mass")
    rows = TorqueRows(load_robot("cylindrical"))
    with pytest.raises(UnknownNameError, match="weight"):
        concerned(Wish(what="weight", deviation=0.1), rows, structural_base(rows))


def test_periods_follow_the_square_root_and_what_is_known_shortens_them():
    rows = TorqueRows(load_robot("cylindrical"), Effects(viscous=True))
    base = structural_base(rows)
    rng = np.random.default_rng(4)
    A = rng.normal(size=(50, len(base)))
    one, scale = A.T @ A, np.ones(len(base))
    worst = np.sqrt(np.diag(np.linalg.inv(one))).max()
    ask = {"rows": rows, "base": base, "scale": scale, "one": one}
    found = periods_needed(Wish(what="all", deviation=worst / 3.01), known=None, **ask)
    assert found.periods == 10
    assert found.after_one == pytest.approx(worst)
    assert periods_needed(Wish(what="all", deviation=worst / 3.01), known=9 * one, **ask).periods == 1
    assert periods_needed(Wish(what="all", deviation=1e-9), known=None, **ask).periods is None


def test_a_wish_sets_the_number_of_periods():
    design = armid.design_motion("cylindrical", **QUICK)
    worst = float(np.nanmax(design.relative))
    asked = armid.design_motion("cylindrical", **QUICK, until=f"all {100 * worst / 2:.6f} %")
    assert asked.wishes[0].periods in (4, 5)
    assert asked.trajectory.duration == pytest.approx(asked.wishes[0].periods * asked.excitation.period)
    assert "takes longest" in asked.summary()
    assert replace(asked, wishes=()).as_dict().get("until") is None


def test_a_share_needs_a_value_to_be_a_share_of():
    """A plain URDF says nothing of friction: 1 % of nothing is refused before the search; of an identified value it is not."""
    result = trusted()
    bare = replace(result.described, joints=tuple(replace(joint, drive=Drive()) for joint in result.described.joints))
    rows = TorqueRows(bare, effects_of())
    base = structural_base(rows)
    wish = wishes_of("friction 1 %")
    with pytest.raises(InputError, match=r"friction: .* gives no value of .*--after"):
        check_wishes(wish, bare, rows, base)
    check_wishes(wish, result.robot, rows, base)
    with pytest.raises(InputError, match="--after"):
        armid.design_motion(bare, until="friction 1 %", seconds=1000.0, workers=1)
